"""What the scatters of classes say besides W, the covariance that all of them share.

The covariance of a class is W with a share of the class's own scatter, at the scale of W: its
trace, where W is the identity, is that of W. Only the shape differs between classes. Their scale
does not tell them apart: in many coordinates small differences of scale would outweigh everything
else, such as those between a class of many kinds and a class of one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from frugalvae.maths.arrays import Array

WEIGHT, HALF_WEIGHT = 0.1, 25  # w = WEIGHT n / (n + HALF_WEIGHT)
MANY, LARGEST = 512, 6.0  # in fewer coordinates than so many, w is larger, by this at most


@dataclass(frozen=True)
class Scatters:
    """Principal axes of the scatters of k classes, in r whitened coordinates.

    Attributes
    ----------
    axes, sizes, owners
        Directions (m, r) of unit length, the scatter of their class along them (m,), and their
        class (m,), ascending.
    weights
        w / n of each class, (k,).
    """

    axes: Array
    sizes: Array
    owners: Array
    weights: Array

    @classmethod
    def of(cls, white: Array, owners: Array, weights: Array) -> Scatters:
        """Of whitened rows (m, r) whose outer products add up to the scatter of their class."""
        counts = np.bincount(owners) if len(owners) else np.zeros(0, np.int64)
        first, axes, sizes = np.cumsum(counts) - counts, np.empty_like(white), np.zeros(len(white))
        for size in set(counts.tolist()) - {0}:  # classes of as many rows together
            rows = first[counts == size][:, None] + np.arange(size)  # (classes, size)
            own = white[rows]  # (classes, size, r)
            values, vectors = np.linalg.eigh((own @ own.swapaxes(1, 2)).astype(np.float64))
            values = np.maximum(values, 1e-30)
            vectors = (vectors / np.sqrt(values)[:, None]).astype(np.float32)
            axes[rows] = vectors.swapaxes(1, 2) @ own
            sizes[rows] = values
        kept = sizes > 1e-6 * sizes.max(initial=0)
        if not kept.all():
            axes, sizes, owners = axes[kept], sizes[kept], owners[kept]
        return cls(axes, sizes, owners, weights)

    def __len__(self) -> int:
        return len(self.owners)

    def with_counts(self, before: Array, after: Array) -> Scatters:
        """The same scatters at the weights of other counts of samples, (k,) each."""
        weights = self.weights / (own_weight(before) / before) * (own_weight(after) / after)
        return replace(self, weights=weights)

    def offsets(self, means: Array) -> Array:
        """Class means (k, r) along the axes of their class, (m,)."""
        if not len(self):
            return np.zeros(0, np.float32)
        first = np.flatnonzero(np.diff(self.owners, prepend=-1))
        parts = zip(self.owners[first], np.split(self.axes, first[1:]), strict=True)
        return np.concatenate([axes @ means[own] for own, axes in parts]).astype(np.float32)

    def added(self, white: Array, means: Array, offsets: Array) -> Array:
        """What scatters add to log densities (n, k) of rows (n, r), of classes of means (k, r)."""
        if not len(self):
            return np.zeros((len(white), len(means)))
        shares = self.sizes * self.weights[self.owners]  # (m,)
        along = white.astype(np.float32) @ self.axes.T  # (n, m)
        along -= offsets
        along *= along
        along *= (shares / (1 + shares)).astype(np.float32)
        first = np.flatnonzero(np.diff(self.owners, prepend=-1))
        some = self.owners[first]  # the classes that have rows
        quadratic, around = np.add.reduceat(along, first, axis=1), means[some]
        distances = (white**2).sum(axis=1)[:, None] - 2 * white @ around.T + (around**2).sum(axis=1)
        volumes, traces = (np.add.reduceat(each, first) for each in (np.log1p(shares), shares))
        found = np.zeros((len(white), len(means)))
        found[:, some] = _log_ratio(self.rank, distances, quadratic, volumes, traces)
        return found

    @property
    def rank(self) -> int:
        """The number of coordinates."""
        return int(self.axes.shape[1])

    def added_by(self, axes: Array, sizes: Array, weight: float, away: Array) -> Array:
        """What a single scatter adds, (n,), to rows (n, r) around the mean of its class."""
        shares = weight * sizes
        quadratic = ((away @ axes.T) ** 2 * (shares / (1 + shares))).sum(axis=1)
        distances, volume = (away**2).sum(axis=1), np.log1p(shares).sum()
        return _log_ratio(self.rank, distances, quadratic, volume, shares.sum())

    def without(self, label: int, gone: Array) -> tuple[Array, Array]:
        """Axes and sizes of a class's scatter without the outer products of some rows (j, r)."""
        own = self.owners == label
        axes, sizes = self.axes[own].astype(np.float64), self.sizes[own]
        along = gone @ axes.T  # (j, q)
        left, vectors = np.linalg.eigh(np.diag(sizes) - along.T @ along)
        return vectors.T @ axes, np.maximum(left, 0.0)

    def added_without(self, label: int, count: float, gone: Array, away: Array) -> Array:
        """What the scatter of a class of ``count`` samples adds without each of some, (n,).

        ``gone`` and ``away`` (n, r) are the samples around their class mean, and around the class
        mean without them.
        """
        own, rest = self.owners == label, count / (count - 1)
        axes, sizes = self.axes[own], self.sizes[own]
        scale = own_weight(count - 1) * self.weights[label] / own_weight(count) * rest
        lost = scale * rest  # times the outer product of a row, is gone from w S / n
        all_rows = 1 + scale * sizes  # (q,)
        around, along = gone @ axes.T, away @ axes.T  # (n, q)
        left = np.maximum(1 - lost * (around**2 / all_rows).sum(axis=1), 1e-3)
        quadratic = ((1 - 1 / all_rows) * along**2).sum(axis=1)
        quadratic -= lost * (around * along / all_rows).sum(axis=1) ** 2 / left
        volume = np.log(all_rows).sum() + np.log(left)
        trace = np.maximum(scale * sizes.sum() - lost * (around**2).sum(axis=1), 0.0)
        return _log_ratio(self.rank, (away**2).sum(axis=1), quadratic, volume, trace)


def narrow(dim: int) -> float:
    """How much more scatters count in so many coordinates than in many.

    As many samples tell more of a scatter that has fewer coordinates.

    >>> narrow(1280), narrow(128), narrow(2)
    (1.0, 2.0, 6.0)
    """
    return min(max(1.0, (MANY / dim) ** 0.5), LARGEST)


def own_weight(counts: Any) -> Any:
    """The weight of a scatter of so many samples."""
    return WEIGHT * counts / (counts + HALF_WEIGHT)


def _log_ratio(rank: int, distances: Array, quadratic: Array, volume: Any, trace: Any) -> Array:
    """The log density under the covariance (1 + V) / (1 + trace(V) / r), less that under 1.

    ``distances`` are squared ones from the mean, ``quadratic`` is how much less they are under
    1 + V, and ``volume`` is the logarithm of its determinant.
    """
    excess = trace / rank
    ratio: Array = (1 + excess) * quadratic - excess * distances - volume + rank * np.log1p(excess)
    return ratio / 2
