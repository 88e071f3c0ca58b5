"""The null space of a layer: directions in which no input of an old class has a component.

A weight W may change in those directions alone. If D x = 0 for every old input x, then W + D
gives the old outputs, whatever D is.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from frugalvae.maths.equations import (
    Spectrum,
    project_gradient,
    projector,
    proportion,
    spectrum,
)


@dataclass(frozen=True)
class NullSpace:
    """The approximate null space of one layer's old inputs.

    Attributes
    ----------
    null_basis, range_basis
        Orthonormal columns: the null space (U^B of Eq. 9), shape (in, rank), and the directions
        that old inputs use (U^A), shape (in, in - rank).
    proportion
        R of Eq. 10: the share of the old inputs' energy inside the null space.
    """

    null_basis: Tensor
    range_basis: Tensor
    proportion: float

    @property
    def rank(self) -> int:
        """The number of directions in which the weight may still change."""
        return self.null_basis.shape[1]

    @property
    def size(self) -> int:
        """The layer's input dimension."""
        return len(self.null_basis)

    @property
    def matrix(self) -> Tensor:
        """Eq. 8 as a matrix, shape (in, in)."""
        identity = torch.eye(self.size).to(self.null_basis)
        return projector(identity, self.null_basis, self.range_basis)

    def to(self, dtype: torch.dtype) -> NullSpace:
        """The same null space in another precision."""
        return NullSpace(self.null_basis.to(dtype), self.range_basis.to(dtype), self.proportion)

    def project(self, change: Tensor) -> Tensor:
        """Eq. 7 for the gradient or change of a weight, shape (out, in).

        >>> inputs = LayerInputs(2)
        >>> inputs.add(torch.tensor([[1.0, 0.0]]))
        >>> inputs.null_space().to(torch.float32).project(torch.tensor([[3.0, 4.0]]))
        tensor([[0., 4.]])
        """
        return project_gradient(change, self.null_basis, self.range_basis)


class LayerInputs:
    """The sum of x x^T over all inputs x of a layer, in float64.

    Adding inputs task by task or all at once gives the same sum, up to rounding. It is the
    uncentred covariance of Eq. 9 times the number of inputs. Neither the eigenvectors nor R
    depend on that factor.

    >>> inputs = LayerInputs(3)
    >>> inputs.add(torch.tensor([[1.0, 0.0, 0.0], [2.0, 0.0, 0.0]]))
    >>> null = inputs.null_space()
    >>> null.rank, null.proportion
    (2, 0.0)
    """

    holds_tensors = True
    products = ("products",)  # a float16 file may hold a square root of the sum instead

    def __init__(self, size: int, device: torch.device | str = "cpu") -> None:
        self.sum_ = torch.zeros(size, size, dtype=torch.float64, device=device)
        self._spectrum: Spectrum | None = None  # of the sum, until inputs are added

    def state(self) -> dict[str, Tensor]:
        """What a file holds."""
        return {"products": self.sum_}

    @classmethod
    def from_state(cls, state: dict[str, Tensor]) -> LayerInputs:
        """The object whose :meth:`state` this is."""
        inputs = cls(0)
        inputs.sum_ = state["products"]
        return inputs

    def add(self, inputs: Tensor) -> None:
        """Add a batch of inputs, shape (n, in)."""
        inputs = inputs.double()
        self.sum_ += inputs.T @ inputs  # (in, in)
        self._spectrum = None

    def null_space(self, ratio: float = 100.0, max_proportion: float | None = None) -> NullSpace:
        """The directions whose eigenvalue is at most ``ratio`` times the smallest.

        With fewer inputs than dimensions the smallest eigenvalue is rounding noise, so every
        eigenvalue below ``size * eps * largest`` counts as zero too. If ``max_proportion`` is
        given, the null space is instead the largest one whose R (Eq. 10) stays within it.
        """
        eigen = self._spectrum = self._spectrum or spectrum(self.sum_)
        values = eigen.eigenvalues
        rounding = float(values[-1]) * len(values) * torch.finfo(torch.float64).eps
        if max_proportion is None:
            null_size = int((values <= max(ratio * float(values[0]), rounding)).sum())
        else:
            energy = values.cumsum(0)
            null = (energy <= max_proportion * float(energy[-1])) | (values <= rounding)
            null_size = int(null.sum())
        return NullSpace(
            eigen.null_basis(null_size), eigen.range_basis(null_size), proportion(values, null_size)
        )
