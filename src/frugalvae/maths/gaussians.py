"""Whitening: a linear map after which a covariance is the identity.

There are many such maps, which differ by a rotation. The Cholesky factor is fast to find and to
apply, and densities do not depend on the rotation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from frugalvae.errors import check_number
from frugalvae.maths.arrays import Array
from frugalvae.maths.matrices import add_ridge, mean_level, solve_lower, solve_upper


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


@dataclass(frozen=True)
class Gaussians:
    """Gaussians with a shared covariance plus class directions.

    Attributes
    ----------
    whitener
        Of the shared covariance.
    means
        Whitened class means, (k, d).
    directions
        Whitened class directions, (k, m, d), orthogonal within a class. The squared projection
        onto them is what they take off the squared distance.
    constants
        What is subtracted from minus half the squared distance, (k,).
    """

    whitener: Whitener
    means: Array
    directions: Array
    constants: Array

    @classmethod
    def of(cls, whitener: Whitener, means: Array, factors: Array, own: float = 1.0) -> Gaussians:
        """Gaussians of covariance W + ``own`` F F^T, by Woodbury: no (d, d) matrix per class.

        Parameters
        ----------
        whitener
            Of W.
        means
            Class means, (k, d).
        factors
            F^T of each class, (k, m, d); rows may be zero.
        """
        classes, most, dim = factors.shape
        both = whitener.whiten(np.concatenate([means, factors.reshape(classes * most, dim)]))
        means, white = both[:classes], both[classes:].reshape(factors.shape)
        values, vectors = np.linalg.eigh(white @ white.swapaxes(1, 2))  # of (k, m, m)
        values = own * np.maximum(values, 0)  # (k, m): variances that directions add
        lengths = np.sqrt(own / (1 + values))
        log_det = whitener.log_det + np.log1p(values).sum(axis=1)
        constants = (log_det + means.shape[1] * math.log(2 * math.pi)) / 2
        directions = lengths[..., None] * (vectors.swapaxes(1, 2) @ white)
        return cls(whitener, means, directions, constants)

    def log_density(self, rows: Array) -> Array:
        """Log density (n, k) of each class at each row (n, d)."""
        white = self.whitener.whiten(rows)
        common: Array = (white**2).sum(axis=1)[:, None] / 2
        return self._scores.of(white) - common

    def scores(self, rows: Array) -> Array:
        """Log densities (n, k) up to a term that all classes share."""
        return self._scores.of(self.whitener.whiten(rows))

    def is_worth_folding(self, dim: int) -> bool:
        """Whether folding saves multiplications for rows of ``dim`` features."""
        classes, most, rank = self.directions.shape
        vectors = classes * (1 + most)
        return bool(vectors * dim <= rank * rank + vectors * rank + classes * dim)

    def folded(self) -> Scores:
        """Scores with the whitening folded in: they take rows as they are."""
        return self._scores.mapped(self.whitener.pull_back)

    @cached_property
    def _scores(self) -> Scores:
        """Scores of whitened rows."""
        classes, most, dim = self.directions.shape
        at_mean = (self.directions @ self.means[..., None])[..., 0]
        constants = self.constants + (self.means**2).sum(axis=1) / 2
        vectors = np.concatenate([self.means, self.directions.reshape(classes * most, dim)])
        return Scores(vectors, constants, at_mean)


@dataclass(frozen=True)
class Scores:
    """Class scores: a linear function of a row, plus half the squares of m others.

    Attributes
    ----------
    vectors
        (k + k m, d): the slope of each class, then the m directions of each class.
    constants
        What is subtracted from each class's score, (k,).
    offsets
        What is subtracted from projections onto directions before they are squared, (k, m).
    """

    vectors: Array
    constants: Array
    offsets: Array

    def of(self, rows: Array) -> Array:
        """Score (n, k) of each class for each row (n, d)."""
        (classes, most), products = self.offsets.shape, rows @ self.vectors.T  # (n, k + k m)
        along = products[:, classes:].reshape(len(rows), classes, most) - self.offsets
        squares = np.einsum("nkm,nkm->nk", along, along)
        return products[:, :classes] - self.constants + squares / 2

    def mapped(self, adjoint: Callable[[Array], Array]) -> Scores:
        """Scores of rows before a linear map, given its adjoint, which maps the vectors."""
        return replace(self, vectors=adjoint(self.vectors))

    def plus(self, slopes: Array, constants: Array) -> Scores:
        """Scores with slopes (k, d) added and constants (k,) subtracted."""
        vectors = self.vectors.copy()
        vectors[: len(slopes)] += slopes
        return replace(self, vectors=vectors, constants=self.constants + constants)


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
