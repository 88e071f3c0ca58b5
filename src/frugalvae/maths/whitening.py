"""Whitening: linear maps after which a covariance is the identity.

There are many such maps, which differ by a rotation. Two are used. The Cholesky factor is
fast to find and to apply; densities do not depend on the rotation. The principal axes cost an
eigendecomposition, and say how much of each coordinate's variance is the ridge's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from frugalvae.maths.arrays import Array
from frugalvae.maths.symmetric import add_ridge, solve_lower, solve_upper

if TYPE_CHECKING:
    from torch import Tensor


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


@dataclass(frozen=True)
class PrincipalWhitener:
    """Whitens along the principal axes of a covariance, in tensors.

    Attributes
    ----------
    matrix, inverse
        What rows of features, and rows of whitened coordinates, are multiplied by, (d, d).
    spread
        Standard deviation of each coordinate without the ridge, (d,): below 1, and small where
        most of the variance is the ridge's.
    log_det
        The logarithm of the determinant of the covariance with its ridge.
    """

    matrix: Tensor
    inverse: Tensor
    spread: Tensor
    log_det: Tensor

    @classmethod
    def of(cls, covariance: Tensor, ridge: float) -> PrincipalWhitener:
        """The whitener of a covariance (d, d) plus ``ridge`` times its mean variance.

        >>> import torch
        >>> whitener = PrincipalWhitener.of(torch.tensor([[6.0, 0.0], [0.0, 2.0]]), 0.5)
        >>> whitener.matrix.abs().sum(dim=1) ** -2  # variances, ridge included
        tensor([8.0000, 4.0000], dtype=torch.float64)
        >>> whitener.spread.square()
        tensor([0.5000, 0.7500])
        """
        from frugalvae.maths.equations import spectrum  # the rest must do without PyTorch

        variances, directions = spectrum(covariance)
        level = float(variances.mean())
        scales = (variances + (ridge * level if level > 0 else 1.0)).sqrt()
        return cls(
            directions / scales,
            (directions * scales).T,
            (variances.sqrt() / scales).float(),
            2 * scales.log().sum(),
        )

    def whiten(self, rows: Tensor) -> Tensor:
        """Whitened coordinates of rows (n, d), in their precision."""
        return rows @ self.matrix.to(rows.dtype)

    def unwhiten(self, white: Tensor) -> Tensor:
        """The rows whose whitened coordinates are ``white`` (n, d)."""
        return white @ self.inverse.to(white.dtype)
