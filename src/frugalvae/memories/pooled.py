"""The scatter that all classes share: kept whole, or by its leading directions."""

from __future__ import annotations

import torch
from torch import Tensor

from frugalvae.memories.densities import Whitener
from frugalvae.symmetric import add_ridge, pack, square_root


class PooledScatter:
    """Sums of outer products of samples around their class means, as they come.

    Kept whole, it is exactly what all samples together would give. Of a given ``rank`` it is
    a basis of as many leading directions, the sums along them, and a diagonal for the rest.
    Then its diagonal is always exact, and so is all of it when the rank is first lowered; when
    new samples turn the basis, what older samples have outside of the old one is known by
    its diagonal alone.

    Examples
    --------
    >>> whole, leading = PooledScatter(), PooledScatter()
    >>> rows = torch.tensor([[3.0, 3.0], [1.0, -1.0]])
    >>> whole.add(rows, 2)
    >>> leading.add(rows, 2, rank=1).abs()
    tensor([[0.7071],
            [0.7071]])
    >>> whole.matrix()
    tensor([[10.,  8.],
            [ 8., 10.]], dtype=torch.float64)
    >>> leading.matrix().round(decimals=3)
    tensor([[10.,  9.],
            [ 9., 10.]], dtype=torch.float64)
    """

    def __init__(self, rank: int | None = None) -> None:
        self.rank = rank
        self.count_ = 0
        self.whole_: Tensor | None = None  # (d, d)
        self.basis_: Tensor | None = None  # (d, rank), orthonormal columns
        self.inside_: Tensor | None = None  # (rank,), along the basis
        self.outside_: Tensor | None = None  # (d,), the diagonal of the rest
        self._root: Tensor | None = None  # of the whole; derived

    def add(self, rows: Tensor, count: int, rank: int | None = None) -> Tensor | None:
        """Take in rows (n, d) that stand for ``count`` samples, and keep so high a rank.

        What takes coordinates in the old basis to those in the new one, (old, new), unless
        both are the features themselves.
        """
        total = rows.double().T @ rows.double()
        if self.count_:
            total += self.matrix()
        before, self.rank = self.basis_, rank
        self.count_ += count
        self._keep((total + total.T) / 2)
        if before is None:
            return self.basis_
        return before.T if self.basis_ is None else before.T @ self.basis_

    def _keep(self, total: Tensor) -> None:
        """The whole, or its leading directions and a diagonal."""
        self.whole_ = self.basis_ = self.inside_ = self.outside_ = self._root = None
        if self.rank is None:
            self.whole_ = total
            return
        values, vectors = torch.linalg.eigh(total)
        self.basis_ = vectors[:, -self.rank :].flip(1).float().contiguous()
        self.inside_ = values[-self.rank :].flip(0).clamp(min=0)
        explained = self.basis_.double().square() @ self.inside_
        self.outside_ = (total.diagonal() - explained).clamp(min=0)

    def matrix(self) -> Tensor:
        """The scatter as far as it is known, (d, d)."""
        if self.whole_ is not None:
            return self.whole_
        basis, inside, outside = self._leading()
        return (basis.double() * inside) @ basis.T.double() + outside.diag()

    def _leading(self) -> tuple[Tensor, Tensor, Tensor]:
        """Basis, sums along it, and the diagonal of the rest."""
        assert self.basis_ is not None
        assert self.inside_ is not None
        assert self.outside_ is not None
        return self.basis_, self.inside_, self.outside_

    def coordinates(self, rows: Tensor) -> Tensor:
        """Rows (n, d) along the basis; as they are, if the scatter is whole."""
        return rows if self.basis_ is None else rows @ self.basis_.to(rows)

    def features(self, coordinates: Tensor) -> Tensor:
        """The features (n, d) that lie in the basis at these coordinates."""
        return coordinates if self.basis_ is None else coordinates @ self.basis_.T.to(coordinates)

    def sample(self, count: int, rng: torch.Generator) -> Tensor:
        """Draws (count, d) of the covariance."""
        if self.whole_ is not None:
            if self._root is None:
                self._root = square_root(self.whole_ / self.count_)
            noise = _normal((count, self._root.shape[1]), self._root.device, rng)
            return noise @ self._root.T
        inside, outside = ((part / self.count_).sqrt().float() for part in self._leading()[1:])
        along = _normal((count, len(inside)), inside.device, rng) * inside
        return self.features(along) + _normal((count, len(outside)), inside.device, rng) * outside

    def whitener(self, ridge: float) -> Whitener:
        """The map to coordinates in which the covariance is the identity.

        ``ridge`` times the mean variance is added to every variance first.
        """
        if self.whole_ is not None:
            return Whitener.of(add_ridge(self.whole_ / self.count_, ridge))
        basis, inside, outside = self._leading()
        inside, outside = inside / self.count_, outside / self.count_
        level = (inside.sum() + outside.sum()) / len(outside)
        level = level if level > 0 else torch.ones_like(level)
        return Whitener.of_leading(basis.double(), inside, outside + ridge * level)

    def tensors(self) -> dict[str, Tensor]:
        """The triangle of the whole; or the basis, and sums along and beside it."""
        count = torch.tensor([self.count_], dtype=torch.float64)
        if self.whole_ is not None:
            return {"pooled": pack(self.whole_), "count": count}
        basis, inside, outside = self._leading()
        return {"basis": basis, "inside": inside, "outside": outside, "count": count}


def _normal(shape: tuple[int, int], device: torch.device, rng: torch.Generator) -> Tensor:
    return torch.empty(shape, device=device).normal_(generator=rng)
