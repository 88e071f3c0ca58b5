"""Ridge regression from sums, and for many penalties at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from frugalvae.errors import InputError, check_number
from frugalvae.maths.arrays import Array
from frugalvae.maths.matrices import solve_positive

#: What heads may try, and what RanPAC tries.
PENALTIES = tuple(10.0**power for power in range(-8, 9))


def check_penalties(penalties: Sequence[float]) -> None:
    """Refuse candidates that are none, too many, or not positive."""
    if isinstance(penalties, str) or not penalties:
        raise InputError(f"penalties is {penalties!r}; expected numbers, such as (0.1, 1, 10)")
    check_number("number of penalties", len(penalties), 1, 100, whole=True)
    for penalty in penalties:
        check_number("penalties", penalty, 1e-12)


def solve_ridge(gram: Array, targets: Array, penalty: float) -> tuple[Array, float]:
    """W (m, k) with (gram + penalty I) W = targets, in float64, and the penalty that it took.

    A penalty that vanishes in the rounding of the Gram matrix (m, m) is raised tenfold until it
    does not.

    >>> weights, penalty = solve_ridge(np.array([[3.0]]), np.array([[8.0]]), 1.0)
    >>> weights.tolist(), penalty
    ([[2.0]], 1.0)
    """
    return _solve(gram, targets, penalty)


def solve_dual(hidden: Array, targets: Array, penalty: float) -> tuple[Array, float]:
    """The same from samples (n, m) and what they stand for (n, k): faster for n < m.

    >>> weights, penalty = solve_dual(np.array([[1.0, 1.0]]), np.array([[6.0]]), 1.0)
    >>> weights.round(6).tolist(), penalty
    ([[2.0], [2.0]], 1.0)
    """
    rows = hidden.astype(np.float64)
    weights, penalty = _solve(rows @ rows.T, targets, penalty)
    return rows.T @ weights, penalty


def _solve(square: Array, right: Array, penalty: float) -> tuple[Array, float]:
    """X with (square + penalty I) X = right, and the penalty that it took."""
    while True:
        check_number("penalty", penalty, 1e-12, 1e38)  # or the loop would not end
        ridged = square.astype(np.float64)
        ridged[np.diag_indices(len(ridged))] += penalty
        try:
            return solve_positive(ridged, right.astype(np.float64)), penalty
        except np.linalg.LinAlgError:
            penalty *= 10


@dataclass(frozen=True)
class RidgePath:
    """Ridge regression of some samples for every penalty, by one eigendecomposition.

    It is that of the smaller of two matrices, features by features or samples by samples.

    Attributes
    ----------
    hidden, targets
        The samples (n, m) and what they stand for (n, k).
    values, vectors
        Eigenvalues, none negative, and eigenvectors of the smaller matrix.

    Examples
    --------
    >>> x, y = np.array([[1.0], [2.0]]), np.array([[1.0], [2.0]])
    >>> RidgePath.of(x, y).predict(np.array([[7.0]]), [5.0]).round(6).tolist()  # 7 * 5 / (5 + 5)
    [[[3.5]]]
    """

    hidden: Array
    targets: Array
    values: Array
    vectors: Array

    @classmethod
    def of(cls, hidden: Array, targets: Array) -> RidgePath:
        """The path of samples (n, m) and targets (n, k)."""
        hidden = hidden.astype(np.float64)
        dual = len(hidden) <= hidden.shape[1]
        square = hidden @ hidden.T if dual else hidden.T @ hidden
        values, vectors = np.linalg.eigh(square)
        return cls(hidden, targets.astype(np.float64), np.maximum(values, 0), vectors)

    @property
    def _dual(self) -> bool:
        return bool(len(self.hidden) <= self.hidden.shape[1])

    def predict(self, rows: Array, penalties: Sequence[float]) -> Array:
        """What each penalty predicts for other samples (n, m): (penalties, n, k)."""
        if self._dual:
            along = rows.astype(np.float64) @ self.hidden.T @ self.vectors  # (n, r)
            right = self.vectors.T @ self.targets  # (r, k)
        else:
            along = rows.astype(np.float64) @ self.vectors
            right = self.vectors.T @ (self.hidden.T @ self.targets)
        return np.stack([along @ (right / (self.values + p)[:, None]) for p in penalties])

    def held_out_errors(self, rows: Array, targets: Array, penalties: Sequence[float]) -> Array:
        """The mean squared error of each penalty on other samples."""
        errors: Array = ((self.predict(rows, penalties) - targets) ** 2).mean(axis=(1, 2))
        return errors

    def cross_validation(self, penalties: Sequence[float]) -> Array:
        """Generalised cross-validation: the error that each penalty would have on samples left out.

        The squared residual per sample, divided by the square of the share of degrees of freedom
        that is left.
        """
        count = len(self.hidden)
        coordinates = self.vectors.T @ (
            self.targets if self._dual else self.hidden.T @ self.targets
        )
        energy = (coordinates**2).sum(axis=1)  # of targets along each direction
        if not self._dual:
            energy = energy / np.maximum(self.values, 1e-300)
        outside = max(0.0, float((self.targets**2).sum() - energy.sum()))  # no penalty reaches it
        scores = []
        for penalty in penalties:
            left = penalty / (self.values + penalty)  # what is left of each direction
            residual = (left**2 * energy).sum() + outside
            free = (left.sum() + count - len(left)) / count
            scores.append(residual / count / max(free, 1e-300) ** 2)
        return np.array(scores)
