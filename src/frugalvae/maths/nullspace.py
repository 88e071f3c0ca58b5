"""What a layer has been fed so far, and the directions that no old input used.

A weight may change in those directions alone: W + D with D x = 0 for every old
input x gives the old outputs, whatever D is.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from frugalvae.maths.equations import projector, proportion, spectrum


@dataclass(frozen=True)
class NullSpace:
    """The approximate null space of one layer's old inputs.

    Attributes
    ----------
    used, free
        Orthonormal columns: directions that old inputs use (U^A of Eq. 9), and the
        null space itself (U^B).
    proportion
        R of Eq. 10: the part of the old inputs' energy inside the null space.
    """

    used: Tensor
    free: Tensor
    proportion: float

    @property
    def rank(self) -> int:
        """How many directions are still free."""
        return self.free.shape[1]

    @property
    def size(self) -> int:
        """The layer's input dimension."""
        return len(self.free)

    @property
    def projection(self) -> Tensor:
        """Eq. 8 as a matrix, shape (in, in)."""
        return projector(self.free)

    def to(self, dtype: torch.dtype) -> NullSpace:
        """The same in another precision."""
        return NullSpace(self.used.to(dtype), self.free.to(dtype), self.proportion)

    def project(self, change: Tensor) -> Tensor:
        """Eq. 7 for a weight's change, shape (out, in), by way of the smaller basis.

        >>> inputs = LayerInputs(2)
        >>> inputs.add(torch.tensor([[1.0, 0.0]]))
        >>> inputs.null_space().to(torch.float32).project(torch.tensor([[3.0, 4.0]]))
        tensor([[0., 4.]])
        """
        if 2 * self.rank <= self.size:
            return (change @ self.free) @ self.free.T
        return change - (change @ self.used) @ self.used.T


class LayerInputs:
    """Sum of x x^T over all inputs x that a layer was ever fed, kept in float64.

    Fed task by task or all at once, the matrix is the same up to rounding. It is
    the (uncentred) covariance of Eq. 9 but for its scale, on which neither the
    eigenvectors nor R depend.

    >>> inputs = LayerInputs(3)
    >>> inputs.add(torch.tensor([[1.0, 0.0, 0.0], [2.0, 0.0, 0.0]]))
    >>> null = inputs.null_space()
    >>> null.rank, null.proportion
    (2, 0.0)
    """

    holds_tensors = True
    products = ("products",)  # a file of half the bits may hold a square root of it

    def __init__(self, size: int, device: torch.device | str = "cpu") -> None:
        self.sum_ = torch.zeros(size, size, dtype=torch.float64, device=device)

    def state(self) -> dict[str, Tensor]:
        """What a file holds of it."""
        return {"products": self.sum_}

    @classmethod
    def from_state(cls, state: dict[str, Tensor]) -> LayerInputs:
        """The one that was stored."""
        inputs = cls(0)
        inputs.sum_ = state["products"]
        return inputs

    def add(self, inputs: Tensor) -> None:
        """Count a batch of inputs, shape (n, in)."""
        inputs = inputs.double()
        self.sum_ += inputs.T @ inputs

    def null_space(self, ratio: float = 100.0, max_proportion: float | None = None) -> NullSpace:
        """Directions whose eigenvalue is at most ``ratio`` times the smallest.

        With fewer inputs than dimensions the smallest eigenvalue is rounding
        noise; every eigenvalue below rounding (size * eps * largest) is then
        null too. With ``max_proportion`` the null space is instead the largest
        one whose R (Eq. 10) stays within it.
        """
        eigen = spectrum(self.sum_)
        values = eigen.eigenvalues
        rounding = float(values[-1]) * len(values) * torch.finfo(torch.float64).eps
        if max_proportion is None:
            null_size = int((values <= max(ratio * float(values[0]), rounding)).sum())
        else:
            energy = values.cumsum(0)
            null = (energy <= max_proportion * float(energy[-1])) | (values <= rounding)
            null_size = int(null.sum())
        return NullSpace(
            used=eigen.eigenvectors[:, null_size:],
            free=eigen.null_basis(null_size),
            proportion=proportion(values, null_size),
        )
