"""Evidence: how samples were classified when they were held out, as sums.

It tells how sure answers may be. Sums add up over batches and files, and go with their class.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from frugalvae.maths.arrays import Array

POWERS = 1.5 ** np.arange(1.0, 11.0)  # powers of densities that are tried, 1.5 to 58, (10,)
EARLIER = 24.0 * 2.0 ** np.arange(-2.0, 2.6, 0.5)  # about those of older files, (10,)
HELD_OUT = 25  # samples of a class, in one batch, that are held out
USUAL, WORTH = 12.0, 10  # the power with little evidence, and the samples that it is worth
LONE = 15.0  # the power while no class has two samples
LARGEST = 48.0  # power: a few samples that were all correct ask for any


def _nothing() -> Array:
    return np.zeros(3 + len(POWERS), np.float32)


@dataclass(frozen=True)
class Evidence:
    """Samples held out, how many were classified correctly, and how sure answers were.

    Attributes
    ----------
    sums
        (13,): the number of samples; of correct answers; for each of ten powers, the sum of the
        largest probability; and how many samples of classes that came later were taken for this
        one.

    Examples
    --------
    >>> right = Evidence.of(np.array([[1.0, 0.0], [0.8, 0.0]]), 0)
    >>> wrong = Evidence.of(np.array([[0.0, 1.0]]), 0)
    >>> (right + wrong).right, right.tempering > (right + wrong).tempering
    (2.0, True)
    >>> (right + wrong + Evidence.of_taken(1)).expected
    0.5
    """

    sums: Array = field(default_factory=_nothing)

    @classmethod
    def of(cls, scores: Array, label: int) -> Evidence:
        """Of scores (n, k) of samples whose class is the column ``label``."""
        below = scores - scores.max(axis=1, keepdims=True)
        sure = [float((1 / np.exp(power * below).sum(axis=1)).sum()) for power in POWERS]
        right = float((scores.argmax(axis=1) == label).sum())
        return cls(np.array([len(scores), right, *sure, 0], np.float32))

    @classmethod
    def of_taken(cls, count: int) -> Evidence:
        """Of samples of classes that came later, which were taken for this one."""
        sums = _nothing()
        sums[-1] = count
        return cls(sums)

    @classmethod
    def of_older_file(cls, sums: Array) -> Evidence:
        """Of sums (13,) in which the power was not divided by the root of the lead, usually 8."""
        sure = np.interp(np.log(POWERS), np.log(EARLIER), sums[2:-1])
        return cls(np.concatenate([sums[:2], sure, sums[-1:]]).astype(np.float32))

    def __add__(self, other: Evidence) -> Evidence:
        return Evidence(self.sums + other.sums)

    @property
    def held_out(self) -> float:
        """The number of samples."""
        return float(self.sums[0])

    @property
    def right(self) -> float:
        """How many of them were classified correctly."""
        return float(self.sums[1])

    @property
    def expected(self) -> float:
        """The share of new samples to expect correct, with the classes that have come since.

        Two classes are about as often taken for each other: as many samples of this class may now
        be taken for later ones as the other way round. About half of these had been right.
        """
        right = self.right - float(self.sums[-1]) / 2
        return max(0.0, right) / self.held_out if self.held_out else float("nan")

    @property
    def tempering(self) -> float:
        """The power at which answers are as sure as they are right."""
        held, right = self.held_out, self.right
        if not held:
            return LONE
        expected = right * held / (held + 1)  # nothing is certain
        power = np.interp(expected, self.sums[2:-1], np.log(POWERS))
        mean = (held * power + WORTH * np.log(USUAL)) / (held + WORTH)
        return min(LARGEST, float(np.exp(mean)))


class HeldOut(NamedTuple):
    """The scatter of a class without its first new samples: axes, sizes, how many were left out."""

    axes: Array
    sizes: Array
    left_out: int

    @classmethod
    def of(cls, white: Array, leading: Array, first: int) -> HeldOut:
        """Of whitened rows (n, r), new from the row ``first`` on, and the leading ones (m, r).

        The leading axes of the other rows are found by two steps of orthogonal iteration.
        """
        count = min(HELD_OUT, max(1, (len(white) - first) // 5))
        rest = np.delete(white, np.s_[first : first + count], axis=0)
        axes = leading.T  # (r, m)
        for _ in range(2):
            axes = np.linalg.qr(rest.T @ (rest @ axes))[0]
        along = rest @ axes  # (n - count, m)
        sizes, vectors = np.linalg.eigh((along.T @ along).astype(np.float64))
        share = len(white) / max(1, len(rest))
        return cls((axes @ vectors.astype(np.float32)).T, np.maximum(sizes, 0) * share, count)
