"""Count, mean and scatter of samples that arrive in parts: the one place that sums them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from frugalvae.errors import InputError
from frugalvae.maths.arrays import Array


def _zero() -> Array:
    return np.zeros(())


@dataclass(frozen=True)
class RunningSums:
    """What must be kept of samples to know their mean and covariance exactly.

    Sums never change: each method returns others. Whatever the order and the size of the
    batches, the result is that of all samples at once, up to rounding.

    A caller that keeps the scatter elsewhere, because several classes share it, leaves it
    zero: :meth:`add` then gives the scatter to add there.

    Attributes
    ----------
    count
        The number of samples, n.
    mean
        Their mean, (d,).
    scatter
        The sum of outer products of their deviations from the mean, (d, d).

    Examples
    --------
    >>> x = np.array([[1.0], [1.0], [4.0]])
    >>> sums = RunningSums.of(x[:2]).add(x[2:])
    >>> sums.count, sums.mean.tolist(), sums.scatter.round(9).tolist()
    (3, [2.0], [[6.0]])
    >>> sums.subtract(RunningSums.of(x[2:])).mean.tolist()
    [1.0]
    """

    count: int = 0
    mean: Array = field(default_factory=_zero)
    scatter: Array = field(default_factory=_zero)

    @classmethod
    def of(cls, x: Array) -> RunningSums:
        """The sums of a batch (n, d)."""
        return cls().add(x)

    @property
    def covariance(self) -> Array:
        """The covariance of the samples, (d, d), divided by n."""
        return self.scatter / self.count

    def mean_with(self, x: Array) -> Array:
        """The mean of these samples and a batch (n, d) together, (d,)."""
        if not self.count:
            return x.mean(axis=0)
        return self.mean + (x.mean(axis=0) - self.mean) * (len(x) / (self.count + len(x)))

    def deviations(self, x: Array) -> Array:
        """Rows R such that adding a batch (n, d) adds ``R.T @ R`` to the scatter.

        One row per sample, its deviation from the batch's mean; and, unless these sums are
        empty, one for the distance between the two means.
        """
        batch_mean = x.mean(axis=0)
        centred: Array = x - batch_mean
        if not self.count:
            return centred
        weight = (self.count * len(x) / (self.count + len(x))) ** 0.5
        return np.concatenate([centred, weight * (batch_mean - self.mean)[None]])

    def add(self, x: Array) -> RunningSums:
        """The sums with a batch (n, d)."""
        rows = self.deviations(x)
        return RunningSums(self.count + len(x), self.mean_with(x), self.scatter + rows.T @ rows)

    def merge(self, other: RunningSums) -> RunningSums:
        """The sums of both sets of samples."""
        if not self.count or not other.count:
            return other if other.count else self
        total, apart = self.count + other.count, other.mean - self.mean
        between = np.outer(apart, apart) * (self.count * other.count / total)
        mean = self.mean + apart * (other.count / total)
        return RunningSums(total, mean, self.scatter + other.scatter + between)

    def subtract(self, part: RunningSums) -> RunningSums:
        """The sums without the samples of a part that was added before."""
        left = self.count - part.count
        if left < 0:
            raise InputError(f"cannot subtract {part.count} samples from {self.count}")
        if not left:
            return RunningSums()
        apart = (self.mean - part.mean) * (self.count / left)  # between what is left and the part
        between = np.outer(apart, apart) * (left * part.count / self.count)
        return RunningSums(left, part.mean + apart, self.scatter - part.scatter - between)
