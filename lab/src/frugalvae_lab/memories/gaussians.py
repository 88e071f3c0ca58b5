"""Gaussians with a shared covariance and directions of each class."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from frugalvae.maths.arrays import Array
from frugalvae.maths.gaussians import Whitener


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
