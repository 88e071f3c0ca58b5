"""Features as closed-form memories see them: perhaps their roots, and the first of rotated ones."""

from __future__ import annotations

import numpy as np

from frugalvae.maths.arrays import Array, rotate, rotate_back, signed_root, stack


class MappedFeatures:
    """What memories share that map features, and keep a covariance of the first coordinates.

    Attributes
    ----------
    root, rooted_
        Whether features are to be replaced by their signed square roots, and whether they are.
    means_
        The mean of each class's mapped samples, (d,).
    rank_
        The number of coordinates that have a covariance. If they are fewer than the features,
        these are rotated, always by the same rotation.
    """

    root: bool | None
    rooted_: bool
    means_: dict[int, Array]
    rank_: int

    @property
    def density_width(self) -> int:
        """The number of coordinates that have a covariance."""
        return self.rank_

    def mapped(self, features: Array) -> Array:
        """Features as the memory sees them: their square roots, or unchanged."""
        return signed_root(features) if self.rooted_ else features

    def mapped_means(self) -> Array:
        """Class means (k, d), exactly those of all samples."""
        return stack(self.means_)

    def _map_like(self, features: Array) -> None:
        """Map features as these first ones (n, d) ask for, and keep all coordinates."""
        self.rooted_ = bool((features >= 0).all()) if self.root is None else self.root
        self.rank_ = features.shape[1]

    def _unmapped(self, rows: Array) -> Array:
        """The inverse of :meth:`mapped`; no negative features if real ones had none."""
        if not self.rooted_:
            return rows
        return np.maximum(rows, 0) ** 2 if self.root is None else rows * np.abs(rows)

    @property
    def _dim(self) -> int:
        return len(next(iter(self.means_.values())))

    def _coordinates(self, rows: Array) -> Array:
        """The coordinates (n, rank) of mapped rows (n, d) that have a covariance."""
        return rows if self.rank_ == self._dim else rotate(rows, self.rank_)

    def _lowered(
        self, scatter: Array, rows: dict[int, Array], rank: int
    ) -> tuple[Array, dict[int, Array]]:
        """The first ``rank`` coordinates of a scatter (r, r) and of rows of classes, (., r)."""
        if self.rank_ == self._dim:  # coordinates were the features themselves so far
            lower = rotate(rotate(scatter, rank).T, rank)
            shorter = {label: rotate(own, rank) for label, own in rows.items()}
        else:
            lower = scatter[:rank, :rank]
            shorter = {label: own[:, :rank] for label, own in rows.items()}
        cut = {label: np.ascontiguousarray(own, np.float32) for label, own in shorter.items()}
        return (lower + lower.T) / 2, cut

    def _drawn(
        self,
        label: int,
        count: int,
        root: Array,
        directions: Array,
        scale: float,
        level: float,
        rng: np.random.Generator,
    ) -> Array:
        """Draws from a Gaussian around a class mean, as features (count, d).

        Its covariance is ``scale**2`` times that of ``root`` (rank, .), and the outer products of
        ``directions`` (., rank) besides. Coordinates without a covariance deviate by ``level``.
        """

        def noise(width: int) -> Array:
            return rng.standard_normal((count, width), np.float32)

        drawn = np.float32(scale) * noise(root.shape[1]) @ root.T
        drawn = drawn + noise(len(directions)) @ directions
        if self.rank_ < self._dim:
            residual = np.float32(scale * level) * noise(self._dim)
            drawn = residual + rotate_back(drawn - rotate(residual, self.rank_), self._dim)
        return self._unmapped((self.means_[label] + drawn).astype(np.float32))
