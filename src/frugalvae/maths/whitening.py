"""Whitening: a linear map after which a covariance is the identity.

There are many such maps, which differ by a rotation. The Cholesky factor is fast to find and to
apply, and densities do not depend on the rotation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from frugalvae.maths.arrays import Array
from frugalvae.maths.symmetric import add_ridge, solve_lower, solve_upper


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
