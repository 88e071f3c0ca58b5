"""Symmetric matrices: packing, square roots and ridges."""

from __future__ import annotations

import torch
from torch import Tensor


def pack(symmetric: Tensor) -> Tensor:
    """The upper triangle of a symmetric matrix as a vector.

    >>> pack(torch.tensor([[1.0, 2.0], [2.0, 3.0]]))
    tensor([1., 2., 3.])
    """
    rows, columns = torch.triu_indices(*symmetric.shape, device=symmetric.device)
    return symmetric[rows, columns]


def unpack(triangle: Tensor) -> Tensor:
    """The symmetric matrix of a packed triangle.

    >>> unpack(torch.tensor([1.0, 2.0, 3.0]))
    tensor([[1., 2.],
            [2., 3.]])
    """
    size = int((2 * len(triangle)) ** 0.5)
    rows, columns = torch.triu_indices(size, size, device=triangle.device)
    symmetric = triangle.new_zeros(size, size)
    symmetric[rows, columns] = triangle
    symmetric[columns, rows] = triangle
    return symmetric


def square_root(covariance: Tensor) -> Tensor:
    """F, as narrow as the rank allows, with F F^T = covariance; float32.

    >>> square_root(torch.tensor([[4.0, 0.0], [0.0, 0.0]])).abs()
    tensor([[2.],
            [0.]])
    """
    values, vectors = torch.linalg.eigh(covariance)
    rounding = len(values) * torch.finfo(values.dtype).eps * values[-1]
    kept = values > rounding
    factor: Tensor = vectors[:, kept] * values[kept].sqrt()
    return factor.float()


def add_ridge(matrix: Tensor, amount: float) -> Tensor:
    """The matrix plus ``amount`` times its mean diagonal entry on the diagonal.

    Relative to the matrix itself, so that the amount means the same at any scale.
    A matrix of zeros becomes ``amount`` times the identity.

    >>> add_ridge(torch.tensor([[3.0, 0.0], [0.0, 1.0]]), 0.5)
    tensor([[4., 0.],
            [0., 2.]])
    """
    level = matrix.diagonal().mean()
    level = torch.where(level > 0, level, torch.ones_like(level))
    ridge = amount * level * torch.eye(len(matrix), dtype=matrix.dtype, device=matrix.device)
    return matrix + ridge
