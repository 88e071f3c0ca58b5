"""Gaussians: whitening, log densities, and the sums that give mean and covariance.

Whitening is a linear map after which a covariance is the identity. There are many such maps,
which differ by a rotation. The Cholesky factor is fast to find and to apply, and densities do not
depend on the rotation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from frugalvae.errors import InputError, check_number
from frugalvae.maths.arrays import Array, add_ridge, mean_level, solve_lower, solve_upper


@dataclass(frozen=True)
class Whitener:
    """Whitens by the Cholesky factor of a covariance.

    Attributes
    ----------
    root
        The lower Cholesky factor L of the covariance, (d, d).
    """

    root: Array

    @classmethod
    def of(cls, covariance: Array, ridge: float) -> Whitener:
        """The whitener of a covariance (d, d) plus ``ridge`` times its mean variance.

        >>> whitener = Whitener.of(np.array([[6.0, 0.0], [0.0, 2.0]]), ridge=0.5)
        >>> whitener.whiten(np.array([[2.0, 4.0]])).round(4).tolist()
        [[0.7071, 2.0]]
        """
        return cls(np.linalg.cholesky(add_ridge(covariance, ridge)))

    def whiten(self, rows: Array) -> Array:
        """Whitened coordinates of rows (n, d)."""
        return solve_lower(self.root, rows.astype(np.float64).T).T

    def unwhiten(self, white: Array) -> Array:
        """The rows whose whitened coordinates are ``white`` (n, d)."""
        return white @ self.root.T

    def pull_back(self, white: Array) -> Array:
        """Vectors v such that ``v @ row`` equals ``white @ whitened row``, (n, d)."""
        return solve_upper(self.root, white.T).T

    @property
    def log_det(self) -> float:
        """The logarithm of the covariance's determinant."""
        return 2 * float(np.log(self.root.diagonal()).sum())


# Gaussian log densities of many classes, for memories that classify by Bayes' rule.


OWN, LEAST_RIDGE, PLAIN_RIDGE = 0.1, 0.03, 0.1


@dataclass(frozen=True)
class Shrinkage:
    """How far class covariances are shrunk towards the shared one.

    Attributes
    ----------
    own
        The weight of a class's own covariance, from 0 to 1. By default 0.1, or what the memory
        derives from the number of samples.
    ridge
        What is added to each variance, as a share of the mean variance. By default it is the
        number of coordinates per sample for a covariance, and 0.1 for variances alone.
    """

    own: float | None = None
    ridge: float | None = None

    def __post_init__(self) -> None:
        if self.own is not None:
            check_number("own", self.own, 0, 1)
        if self.ridge is not None:
            check_number("ridge", self.ridge, 1e-6)

    def ridge_for(self, width: int, samples: int) -> float:
        """The ridge for a covariance of ``width`` coordinates, estimated from ``samples``.

        With few samples the small eigenvalues come out too small, and their inverses too large.

        >>> Shrinkage().ridge_for(512, 2048), Shrinkage(ridge=0.1).ridge_for(512, 2048)
        (0.25, 0.1)
        """
        return max(LEAST_RIDGE, width / max(1, samples)) if self.ridge is None else self.ridge

    @property
    def weight(self) -> float:
        """The weight of a class's own covariance, whatever the number of its samples."""
        return OWN if self.own is None else self.own

    @property
    def plain_ridge(self) -> float:
        """The ridge for variances without covariances."""
        return PLAIN_RIDGE if self.ridge is None else self.ridge

    def variances(self, own: Array) -> Array:
        """Class variances (k, d), shrunk towards their mean."""
        own = own.astype(np.float64)
        shared = own.mean(axis=0)  # (d,)
        ridge = self.plain_ridge * mean_level(shared)
        return self.weight * own + (1 - self.weight) * shared + ridge


SHRINKAGE = Shrinkage()


def diagonal_log_density(rows: Array, means: Array, variances: Array) -> Array:
    """Log density (n, k) of Gaussians with variances (k, d) at each row (n, d).

    >>> zeros, ones = np.zeros((1, 2)), np.ones((1, 2))
    >>> (np.exp(diagonal_log_density(zeros, zeros, ones)) * np.pi).round(9).tolist()
    [[0.5]]
    """
    rows, means, precisions = rows.astype(np.float64), means.astype(np.float64), 1 / variances
    centre = means.mean(axis=0)  # smaller values lose fewer digits
    rows, means = rows - centre, means - centre
    distances = rows**2 @ precisions.T - 2 * rows @ (means * precisions).T
    distances = distances + (means**2 * precisions).sum(axis=1)
    log_det = -np.log(precisions).sum(axis=1)
    return -(distances + log_det + rows.shape[1] * math.log(2 * math.pi)) / 2


# ------------------------------------------------------------------------- count, mean and scatter


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
