"""Symmetric matrices: packing, square roots, ridges, and triangular solves."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from frugalvae.maths.arrays import Array

SMALL = 64  # size up to which a triangular system is solved by LAPACK's general solver
BLOCK = 128  # rows or columns of a triangular matrix that are worked on at once


def pack(symmetric: Array) -> Array:
    """The upper triangle of a symmetric matrix as a vector.

    >>> pack(np.array([[1.0, 2.0], [2.0, 3.0]])).tolist()
    [1.0, 2.0, 3.0]
    """
    rows = [row[start:] for start, row in enumerate(symmetric)]
    return np.concatenate(rows) if rows else symmetric.ravel()


def unpack(triangle: Array) -> Array:
    """The symmetric matrix whose upper triangle was packed.

    >>> unpack(np.array([1.0, 2.0, 3.0])).tolist()
    [[1.0, 2.0], [2.0, 3.0]]
    """
    size, used = int((2 * len(triangle)) ** 0.5), 0
    if triangle.shape != (size * (size + 1) // 2,):
        raise ValueError(f"an array of shape {triangle.shape} is no packed triangle")
    symmetric = np.empty((size, size), triangle.dtype)
    for start in range(size):
        row = triangle[used : used + size - start]
        symmetric[start, start:] = symmetric[start:, start] = row
        used += size - start
    return symmetric


def square_root(covariance: Array) -> Array:
    """F (d, rank) with F F^T = covariance, float32.

    >>> np.abs(square_root(np.array([[4.0, 0.0], [0.0, 0.0]]))).tolist()
    [[2.0], [0.0]]
    """
    values, vectors = np.linalg.eigh(covariance)
    rounding = len(values) * np.finfo(values.dtype).eps * values[-1]
    kept = values > rounding
    return (vectors[:, kept] * np.sqrt(values[kept])).astype(np.float32)


def add_ridge(matrix: Array, amount: float) -> Array:
    """The matrix with ``amount`` times its mean diagonal entry added to the diagonal.

    The ridge is relative, so it does not depend on the scale of the matrix. A matrix of zeros
    becomes ``amount`` times the identity.

    >>> add_ridge(np.array([[3.0, 0.0], [0.0, 1.0]]), 0.5).tolist()
    [[4.0, 0.0], [0.0, 2.0]]
    """
    ridged: Array = matrix.copy()
    ridged[np.diag_indices(len(matrix))] += amount * mean_level(matrix.diagonal())
    return ridged


def mean_level(variances: Array) -> float:
    """The mean variance, which ridges are relative to; one where nothing varies.

    >>> mean_level(np.array([1.0, 3.0])), mean_level(np.zeros(2))
    (2.0, 1.0)
    """
    level = float(np.mean(variances, dtype=np.float64))
    return level if level > 0 else 1.0


def within_shares(amount: float, level: float, least: float, most: float) -> float:
    """An amount that suits data of about ``level``, kept within shares of the level.

    For constants from papers that are absolute: they stay what they are as long as they mean what
    they were meant to, and follow the scale of the data beyond.

    >>> within_shares(1e-6, 1.0, 1e-9, 1e-3), within_shares(1e-6, 1e-12, 1e-9, 1e-3)
    (1e-06, 1e-15)
    """
    return min(max(amount, least * level), most * level) if level > 0 else amount


def solve_lower(lower: Array, right: Array) -> Array:
    """X with ``lower @ X = right``, for a lower triangular matrix (d, d).

    Solved by halves, so that most of the work is matrix products.

    >>> solve_lower(np.array([[2.0, 0.0], [4.0, 1.0]]), np.array([[2.0], [5.0]])).tolist()
    [[1.0], [1.0]]
    """
    size = len(lower)
    if size <= SMALL:
        return np.linalg.solve(lower, right)
    half = size // 2
    first = solve_lower(lower[:half, :half], right[:half])
    second = solve_lower(lower[half:, half:], right[half:] - lower[half:, :half] @ first)
    return np.concatenate([first, second])


def solve_upper(lower: Array, right: Array) -> Array:
    """X with ``lower.T @ X = right``, for a lower triangular matrix (d, d).

    >>> solve_upper(np.array([[2.0, 0.0], [4.0, 1.0]]), np.array([[6.0], [1.0]])).tolist()
    [[1.0], [1.0]]
    """
    return solve_lower(lower.T[::-1, ::-1], right[::-1])[::-1]  # reversed, lower.T is lower


def solve_positive(matrix: Array, right: Array) -> Array:
    """X with ``matrix @ X = right``; a matrix that is not positive definite is an error.

    >>> solve_positive(np.array([[4.0, 2.0], [2.0, 2.0]]), np.array([[6.0], [4.0]])).tolist()
    [[1.0], [1.0]]
    """
    lower = np.linalg.cholesky(matrix)
    return solve_upper(lower, solve_lower(lower, right))


def inverse_root(matrix: Array) -> Array:
    """The lower triangular L^-1 (d, d), where ``matrix`` is L L^T; not positive is an error.

    By blocks, so that most of the work is matrix products, none of them with zeros.

    >>> inverse_root(np.array([[4.0, 2.0], [2.0, 2.0]])).tolist()
    [[0.5, 0.0], [-0.5, 1.0]]
    """
    size, root, inverse = len(matrix), matrix.copy(), np.zeros_like(matrix)
    for start, here in blocks(size):
        root[start:, here] -= root[start:, :start] @ root[here, :start].T
        corner = np.tril(np.linalg.inv(np.linalg.cholesky(root[here, here])))
        root[here.stop :, here] = root[here.stop :, here] @ corner.T
        inverse[here, here] = corner
        for first, column in blocks(start):
            inner = root[here, first:start] @ inverse[first:start, column]
            inverse[here, column] = -corner @ inner
    return inverse


def blocks(size: int) -> Iterator[tuple[int, slice]]:
    """Where each block of rows or columns starts, and its slice.

    >>> list(blocks(200))
    [(0, slice(0, 128, None)), (128, slice(128, 200, None))]
    """
    return ((start, slice(start, min(start + BLOCK, size))) for start in range(0, size, BLOCK))


def principal_axes(rows: Array) -> tuple[Array, Array]:
    """Eigenvalues (j,) of ``rows.T @ rows`` above rounding, and eigenvectors (d, j).

    >>> values, axes = principal_axes(np.array([[3.0, 0.0], [1.0, 0.0]]))
    >>> values.tolist(), np.abs(axes).tolist()
    ([10.0], [[1.0], [0.0]])
    """
    if len(rows) < rows.shape[1]:
        values, vectors = np.linalg.eigh(rows @ rows.T)
        kept = values > 1e-10 * values.max(initial=1e-300)
        return values[kept], rows.T @ vectors[:, kept] / np.sqrt(values[kept])
    values, vectors = np.linalg.eigh(rows.T @ rows)
    kept = values > 1e-10 * values.max(initial=1e-300)
    return values[kept], vectors[:, kept]
