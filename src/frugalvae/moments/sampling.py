"""Samples of a class, drawn from its sums."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from frugalvae.maths.arrays import Array, add_ridge, outer, rotate, rotate_back, sum_of_squares
from frugalvae.moments.rule import SharedCovariance
from frugalvae.moments.sums import ClassSums

ROUNDING = 1e-6  # of the mean variance: few samples leave most variances at zero
DRAWN = 32  # directions of a class that samples vary along, besides what all classes share


@dataclass(frozen=True)
class Sampler:
    """Draws from Gaussians around class means.

    Attributes
    ----------
    shared
        W, which says in which directions a class varies more.
    root
        Its product with itself is the covariance within classes, (rank, .).
    level
        The deviation of coordinates that have no covariance.
    """

    shared: SharedCovariance
    root: Array
    level: float

    @classmethod
    def of(cls, sums: ClassSums, shared: SharedCovariance) -> Sampler:
        """For the classes of some sums."""
        if sums.is_whole:
            rows = np.concatenate(list(sums.roots.values()))
        if sums.is_whole and len(rows) <= sums.rank:
            root = (rows / sums.freedom**0.5).T.astype(np.float32)  # (rank, rows)
        else:
            scatter = outer(rows) if sums.is_whole else sums.scatter
            covariance = add_ridge(scatter / sums.freedom, ROUNDING)
            root = np.linalg.cholesky(covariance).astype(np.float32)
        level = (sums.other_squares / sums.freedom / max(1, sums.dim - sums.rank)) ** 0.5
        return cls(shared, root, level)

    def draw(self, sums: ClassSums, label: int, count: int, rng: np.random.Generator) -> Array:
        """Mapped samples (count, d) of a class.

        Their covariance is that within classes at the scale of the class, and the outer products
        of the directions in which it varies more.
        """
        directions = self._directions(sums, label)
        scale = np.float32(_residual(sums, label, directions) ** 0.5)

        def noise(width: int) -> Array:
            return rng.standard_normal((count, width), np.float32)

        drawn = scale * noise(self.root.shape[1]) @ self.root.T
        drawn = drawn + noise(len(directions)) @ directions
        if sums.rank < sums.dim:
            residual = np.float32(scale * self.level) * noise(sums.dim)
            drawn = residual + rotate_back(drawn - rotate(residual, sums.rank), sums.dim)
        return (sums.means[label] + drawn).astype(np.float32)

    def _directions(self, sums: ClassSums, label: int) -> Array:
        """Directions (m, rank) in which a class varies more than W, as long as they add to it."""
        rows = sums.roots[label] / np.float32(max(1, sums.counts[label] - 1) ** 0.5)
        white = self.shared.whiten(rows)
        values, vectors = np.linalg.eigh((white @ white.T).astype(np.float64))
        values, vectors = values[::-1][:DRAWN], vectors[:, ::-1][:, :DRAWN]
        longer = np.sqrt(np.maximum(1 - 1 / np.maximum(values, 1), 0))  # beyond W
        found: Array = ((vectors * longer).T @ rows).astype(np.float32)[longer > 0]
        return found


def _residual(sums: ClassSums, label: int, directions: Array) -> float:
    """The variance of a class beyond its directions, relative to that within classes."""
    total = sum(sums.squares.values()) / sums.freedom
    if sums.counts[label] < 2 or not total:
        return 1.0 if total else 0.0
    own = sums.squares[label] / (sums.counts[label] - 1)
    return max(0.0, own - sum_of_squares(directions)) / total
