"""Gaussian densities of many classes at many rows, for memories that classify by them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from frugalvae.errors import check_number
from frugalvae.maths.arrays import Array
from frugalvae.maths.symmetric import add_ridge, solve_lower, solve_upper

LEAST_RIDGE, PLAIN_RIDGE = 0.03, 0.1


@dataclass(frozen=True)
class Shrinkage:
    """How much of a class's own covariance counts beside what all classes share.

    Attributes
    ----------
    own
        The share of the class's own covariance, from 0 to 1.
    ridge
        What is added to each variance, as a part of the mean variance. By default a covariance
        gets as much as it has coordinates for each sample that it was found in, and variances
        alone get a tenth.
    """

    own: float = 0.1
    ridge: float | None = None

    def __post_init__(self) -> None:
        check_number("own", self.own, 0, 1)
        if self.ridge is not None:
            check_number("ridge", self.ridge, 1e-6)

    def ridge_for(self, width: int, samples: int) -> float:
        """For a covariance of so many coordinates, found in so many samples.

        Where samples are few, most of its small variances are too small, and what is divided by
        them too large.

        >>> Shrinkage().ridge_for(512, 2048), Shrinkage(ridge=0.1).ridge_for(512, 2048)
        (0.25, 0.1)
        """
        return max(LEAST_RIDGE, width / max(1, samples)) if self.ridge is None else self.ridge

    @property
    def plain_ridge(self) -> float:
        """For variances alone."""
        return PLAIN_RIDGE if self.ridge is None else self.ridge

    def variances(self, own: Array) -> Array:
        """Variances of classes (k, d), drawn towards their mean."""
        own = own.astype(np.float64)
        shared = own.mean(axis=0)
        level = float(shared.mean()) or 1.0
        drawn: Array = self.own * own + (1 - self.own) * shared + self.plain_ridge * level
        return drawn


SHRINKAGE = Shrinkage()


@dataclass(frozen=True)
class Whitener:
    """A linear map after which a covariance is the identity.

    Attributes
    ----------
    root
        The covariance's lower Cholesky factor, (d, d).
    """

    root: Array

    @classmethod
    def of(cls, covariance: Array, ridge: float) -> Whitener:
        """Of a covariance (d, d), with ``ridge`` times its mean variance on the diagonal.

        >>> whitener = Whitener.of(np.array([[6.0, 0.0], [0.0, 2.0]]), ridge=0.5)
        >>> whitener.whiten(np.array([[2.0, 4.0]])).round(4).tolist()
        [[0.7071, 2.0]]
        """
        return cls(np.linalg.cholesky(add_ridge(covariance, ridge)))

    def whiten(self, rows: Array) -> Array:
        """Rows (n, d) in coordinates in which the covariance is the identity."""
        return solve_lower(self.root, rows.astype(np.float64).T).T

    def back(self, white: Array) -> Array:
        """Rows of which these (n, d) are the coordinates."""
        rows: Array = white @ self.root.T
        return rows

    def pull_back(self, white: Array) -> Array:
        """Vectors whose products with rows are those of ``white`` (n, d) with whitened rows."""
        return solve_upper(self.root, white.T).T

    @property
    def log_det(self) -> float:
        """Logarithm of the covariance's determinant."""
        return 2 * float(np.log(self.root.diagonal()).sum())


@dataclass(frozen=True)
class Gaussians:
    """One covariance for all classes, and directions in which each has more of its own.

    Attributes
    ----------
    whitener
        Turns the shared covariance into the identity.
    means
        In those coordinates, (k, d).
    directions
        (k, m, d), orthogonal within a class; each as long as the root of what it takes off
        the squared distance of a point at distance one along it.
    constants
        What is subtracted from minus half the squared distance, (k,).
    """

    whitener: Whitener
    means: Array
    directions: Array
    constants: Array

    @classmethod
    def of(cls, whitener: Whitener, means: Array, factors: Array, own: float = 1.0) -> Gaussians:
        """Of covariances W + ``own`` F F^T, by Woodbury's identity: no d x d matrix a class.

        Parameters
        ----------
        whitener
            Of W.
        means
            (k, d).
        factors
            F^T of each class, (k, m, d); rows may be zero.
        """
        classes, most, dim = factors.shape
        both = whitener.whiten(np.concatenate([means, factors.reshape(classes * most, dim)]))
        means, white = both[:classes], both[classes:].reshape(factors.shape)
        values, vectors = np.linalg.eigh(white @ white.swapaxes(1, 2))  # m x m a class
        values = own * np.maximum(values, 0)  # variances that the class adds
        lengths = np.sqrt(own / (1 + values))
        log_det = whitener.log_det + np.log1p(values).sum(axis=1)
        constants = (log_det + means.shape[1] * math.log(2 * math.pi)) / 2
        directions = lengths[..., None] * (vectors.swapaxes(1, 2) @ white)
        return cls(whitener, means, directions, constants)

    def log_density(self, rows: Array) -> Array:
        """Of each class at each row (n, d): (n, k)."""
        white = self.whitener.whiten(rows)
        common: Array = (white**2).sum(axis=1)[:, None] / 2
        return self._scores.of(white) - common

    def scores(self, rows: Array) -> Array:
        """The same up to what all classes have in common, (n, k)."""
        return self._scores.of(self.whitener.whiten(rows))

    def is_worth_folding(self, dim: int) -> bool:
        """Whether fewer products score a row of ``dim`` features folded than step by step."""
        classes, most, rank = self.directions.shape
        vectors = classes * (1 + most)
        return bool(vectors * dim <= rank * rank + vectors * rank + classes * dim)

    def folded(self) -> Scores:
        """Scores of rows themselves, which need not be whitened then."""
        return self._scores.turned(self.whitener.pull_back)

    @cached_property
    def _scores(self) -> Scores:
        """Of whitened rows."""
        classes, most, dim = self.directions.shape
        at_mean = (self.directions @ self.means[..., None])[..., 0]
        constants = self.constants + (self.means**2).sum(axis=1) / 2
        vectors = np.concatenate([self.means, self.directions.reshape(classes * most, dim)])
        return Scores(vectors, constants, at_mean)


@dataclass(frozen=True)
class Scores:
    """Scores of classes: linear in a row, plus half the squares of some linear functions of it.

    Attributes
    ----------
    vectors
        (k + k m, d): the slope of each class, and then its m directions, class by class.
    constants
        What is subtracted, (k,).
    offsets
        What is subtracted from a row's products with directions before they are squared, (k, m).
    """

    vectors: Array
    constants: Array
    offsets: Array

    def of(self, rows: Array) -> Array:
        """Of each class for each row (n, d): (n, k)."""
        (classes, most), products = self.offsets.shape, rows @ self.vectors.T
        along = products[:, classes:].reshape(len(rows), classes, most) - self.offsets
        squares = np.einsum("nkm,nkm->nk", along, along)
        scores: Array = products[:, :classes] - self.constants + squares / 2
        return scores

    def turned(self, turn: Callable[[Array], Array]) -> Scores:
        """Scores of other rows: ``turn`` makes vectors (n, d) for them of these."""
        return replace(self, vectors=turn(self.vectors))

    def plus(self, slopes: Array, constants: Array) -> Scores:
        """With slopes (k, d) added, and constants (k,) subtracted."""
        vectors = self.vectors.copy()
        vectors[: len(slopes)] += slopes
        return replace(self, vectors=vectors, constants=self.constants + constants)


def diagonal_log_density(rows: Array, means: Array, variances: Array) -> Array:
    """Of Gaussians with variances (k, d) at each row (n, d): (n, k).

    >>> zeros, ones = np.zeros((1, 2)), np.ones((1, 2))
    >>> (np.exp(diagonal_log_density(zeros, zeros, ones)) * np.pi).round(9).tolist()
    [[0.5]]
    """
    rows, means, precisions = rows.astype(np.float64), means.astype(np.float64), 1 / variances
    centre = means.mean(axis=0)  # smaller numbers lose fewer digits
    rows, means = rows - centre, means - centre
    distances = rows**2 @ precisions.T - 2 * rows @ (means * precisions).T
    distances = distances + (means**2 * precisions).sum(axis=1)
    log_det = -np.log(precisions).sum(axis=1)
    density: Array = -(distances + log_det + rows.shape[1] * math.log(2 * math.pi)) / 2
    return density
