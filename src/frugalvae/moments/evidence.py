"""Evidence: how samples were classified when they were held out, as sums.

It tells how sure answers may be, and how often to expect them right. Sums add up over batches
and files, and go with their class.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from frugalvae.maths.arrays import Array

BINS, SCALE, STEP = 32, 0.05, 0.25
EDGES = SCALE * np.sinh(STEP * (np.arange(BINS + 1) - BINS / 2))  # finest around zero, (33,)
DOUBT = 1.64  # standard deviations of the number of wrong answers that a promise allows for
GRID = np.concatenate([[0.0], np.geomspace(2e-3, EDGES[-1], 120)])  # leads that are tried


def margins_of(scores: Array, columns: Array) -> Array:
    """By how much the columns (n,) of scores (n, k) lead, (n,).

    >>> margins_of(np.array([[3.0, 1.0, 2.0], [3.0, 1.0, 2.0]]), np.array([0, 2])).tolist()
    [1.0, -1.0]
    """
    rows, others = np.arange(len(scores)), scores.copy()
    others[rows, columns] = -np.inf
    margins: Array = scores[rows, columns] - others.max(axis=1)
    return margins


def binned(margins: Array) -> Array:
    """How many margins (n,) are in each bin, (32,); the outermost bins are open.

    >>> binned(np.array([-9.0, -0.001, 0.001, 9.0])).nonzero()[0].tolist()
    [0, 15, 16, 31]
    """
    inside = np.clip(margins, EDGES[0], EDGES[-1])
    counts: Array = np.histogram(inside, EDGES)[0].astype(np.float32)
    return counts


def leads_of_wrong(scores: Array, columns: Array) -> Array:
    """By how much the best class leads over the second best where it is not the right one, (m,).

    >>> leads_of_wrong(np.array([[3.0, 1.0, 2.0], [3.0, 1.0, 2.0]]), np.array([0, 1])).tolist()
    [1.0]
    """
    wrong = scores[scores.argmax(axis=1) != columns]
    top = np.sort(wrong, axis=1)[:, -2:]
    leads: Array = top[:, 1] - top[:, 0]
    return leads


def share_above(bins: Array, limits: Array) -> Array:
    """The share of margins above limits: of histograms (k, 32) and limits (k,), (k,).

    >>> bins = binned(np.array([-0.5, 0.5, 0.5, 0.5]))[None]
    >>> share_above(bins, np.array([0.0])).tolist(), share_above(bins, np.array([2.0])).tolist()
    ([0.75], [0.0])
    """
    below = np.concatenate([np.zeros((len(bins), 1)), np.cumsum(bins, axis=1)], axis=1)  # (k, 33)
    below /= np.maximum(below[:, -1:], 1e-30)
    places = np.clip(np.arcsinh(limits / SCALE) / STEP + BINS / 2, 0, BINS)  # in bins
    whole = np.minimum(places.astype(int), BINS - 1)
    rows = np.arange(len(bins))
    low, high = below[rows, whole], below[rows, whole + 1]
    above: Array = 1 - (low + (places - whole) * (high - low))
    return above


def lead_for_error(wrong: Array, answered: Array, samples: float, error: float) -> float:
    """The lead from which on at most a share ``error`` of answers is wrong; or infinity.

    ``wrong`` and ``answered`` are shares of ``samples`` held-out samples, for each lead of GRID.
    What chance may hide is allowed for: the number of wrong ones may be larger by 1.64 of its
    standard deviations, and by one. The promise then fails about one time in twenty.
    """
    kept = np.flatnonzero(errors_at_most(wrong, answered, samples) <= error)
    return float(GRID[kept[0]]) if len(kept) else float("inf")


def errors_at_most(wrong: Array, answered: Array, samples: float) -> Array:
    """The share of answers that may be wrong, by :func:`lead_for_error`, for each lead of GRID."""
    most = wrong * samples + DOUBT * np.sqrt(wrong * samples + 1) + 1
    return most / np.maximum(answered * samples, 1e-30)


def gap_for_coverage(missed: Array, samples: float, coverage: float) -> float:
    """How far below the best class a set reaches to hold the right one so often.

    ``missed`` is the share of ``samples`` whose own class is further below, for each gap of GRID.
    """
    enough = np.flatnonzero(missed * samples + 1 <= (1 - coverage) * (samples + 1))
    return float(GRID[enough[0]]) if len(enough) else float("inf")


POWERS = 1.5 ** np.arange(1.0, 11.0)  # powers of densities that are tried, 1.5 to 58, (10,)
USUAL, WORTH = 12.0, 10  # the power with little evidence, and the samples that it is worth
POWER_WITHOUT_PAIRS = 15.0  # while no class has two samples
HALF_SURE = 2.0  # samples per class with which answers may be half as sure as with many
SURE = 2 + len(POWERS)  # sums that say how sure answers were
LEADS = BINS // 2  # bins of leads, which are positive
COUNTED = BINS + LEADS
LEAST_LEAD = 1e-3  # of the best class, in squared deviations: below it classes are alike


class MarginCorrections(NamedTuple):
    """How margins have changed since samples were held out: sums over samples."""

    fewer: Any = 0.0  # of one over the root of how many others the class had
    lost: Any = 0.0  # of what margins have lost to classes that came later
    halved: Any = 0.0  # samples whose class had half of its others,
    halved_right: Any = 0.0  # how many of them were correct,
    halved_fewer: Any = 0.0  # and their sum over roots
    observed: Any = 0.0  # answers that half of the other classes made wrong,
    predicted: Any = 0.0  # and how many they should have
    accounted_for: Any = 0.0  # whether the others' margins account for the class


CORRECTIONS = len(MarginCorrections._fields)
SIZE = SURE + COUNTED + CORRECTIONS


def _nothing() -> Array:
    return np.zeros(SIZE, np.float32)


@dataclass(frozen=True)
class Evidence:
    """Samples held out, how many were classified correctly, how sure, and by what margin.

    Attributes
    ----------
    sums
        (68,): the number of samples; of correct answers; for each of ten powers, the sum of the
        largest probability; margins in 32 bins, and leads of wrong answers in 16
        (:mod:`frugalvae.moments.evidence`); and eight :class:`MarginCorrections`.

    Examples
    --------
    >>> right = Evidence.of(np.array([[1.0, 0.0], [0.8, 0.0]]), 0)
    >>> wrong = Evidence.of(np.array([[0.0, 1.0]]), 0)
    >>> (right + wrong).right, right.tempering > (right + wrong).tempering
    (2.0, True)
    >>> int((right + wrong).margins.sum())
    3
    """

    sums: Array = field(default_factory=_nothing)

    @classmethod
    def of(cls, scores: Array, label: int, left: float = np.inf) -> Evidence:
        """Of scores (n, k) of samples of a class, the column ``label``, with ``left`` others."""
        below = scores - scores.max(axis=1, keepdims=True)
        sure = [float((1 / np.exp(power * below).sum(axis=1)).sum()) for power in POWERS]
        margins = margins_of(scores, np.full(len(scores), label))
        leads = binned(leads_of_wrong(scores, np.full(len(scores), label)))[-LEADS:]
        seen = [len(scores), float((margins > 0).sum()), *sure, *binned(margins), *leads]
        return cls(np.array([*seen, *MarginCorrections(fewer=len(scores) / left**0.5)], np.float32))

    @classmethod
    def of_corrections(cls, corrections: MarginCorrections) -> Evidence:
        """Of how margins change, and no more samples."""
        return cls.of_arrays(np.zeros(SURE), corrections=np.array(corrections))

    @classmethod
    def of_arrays(
        cls, sums: Array, margins: Array | None = None, corrections: Array | None = None
    ) -> Evidence:
        """Of what a file keeps: margins only where a budget has room for them."""
        margins = np.zeros(COUNTED) if margins is None else margins
        corrections = np.zeros(CORRECTIONS) if corrections is None else corrections
        return cls(np.concatenate([sums, margins, corrections]).astype(np.float32))

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
    def margins(self) -> Array:
        """How many margins were in each bin, (32,)."""
        return self.sums[SURE : SURE + BINS]

    @property
    def leads(self) -> Array:
        """How many wrong answers led over the second best class by how much, (16,)."""
        return self.sums[SURE + BINS : SURE + COUNTED]

    @property
    def corrections(self) -> MarginCorrections:
        """What is known of how margins change."""
        return MarginCorrections(*self.sums[-CORRECTIONS:].tolist())

    @property
    def is_accounted_for(self) -> bool:
        """Whether the other classes' margins account for this class."""
        return bool(self.corrections.accounted_for)

    @property
    def tempering(self) -> float:
        """The power at which answers are as sure as they are right."""
        held, right = self.held_out, self.right
        if not held:
            return POWER_WITHOUT_PAIRS
        expected = right * held / (held + 1)  # nothing is certain
        power = np.interp(expected, self.sums[2:SURE], np.log(POWERS))
        mean = (held * power + WORTH * np.log(USUAL)) / (held + WORTH)
        return float(np.exp(mean))


def tempering_of(evidence: Mapping[int, Evidence], counts: Mapping[int, int]) -> float:
    """The power at which answers are as sure as they are right, with so many samples per class.

    Samples were held out of classes that had fewer: the power that suits n samples per class goes
    as n / (n + 2). It matters for two or three.

    >>> pair = Evidence.of(np.array([[1.0, 0.0], [0.0, 0.2]]), 0, left=1)
    >>> [round(tempering_of({0: pair}, {0: n}) / pair.tempering, 2) for n in (1, 2, 1000)]
    [1.0, 1.5, 2.99]
    """
    total = sum(evidence.values(), Evidence())
    before = total.corrections.fewer  # of few, a file keeps no margins
    if not before:
        return total.tempering
    now = sum(own.held_out / counts[label] ** 0.5 for label, own in evidence.items())
    then, today = (1 + HALF_SURE * (roots / total.held_out) ** 2 for roots in (before, now))
    return total.tempering * max(1.0, then / today)


def tempered(scores: Array, white: Array) -> Array:
    """Scores (n, k) of whitened rows (n, d), to be multiplied by one power for all.

    They are divided by the length of the row, for rows far out are noisier, and by the root of
    the lead of the best class over the mean of all: large leads are less certain than Gaussians
    have it. Then the right power hardly depends on how many classes and samples there are, and
    what was held out when few classes were known still tells it.
    """
    lead = scores.max(axis=1, keepdims=True) - scores.mean(axis=1, keepdims=True)
    found: Array = scores / (lengths(white) * np.sqrt(np.maximum(lead, LEAST_LEAD)))
    return found


def lengths(white: Array) -> Array:
    """Lengths (n, 1) of rows (n, d), above zero."""
    found: Array = np.sqrt((white**2).sum(axis=1, keepdims=True) + 1e-12)
    return found
