"""Arrays in fewer bytes: whole numbers of 8 or 16 bits, and a scale for each row.

Rounding what was rounded before changes nothing.
"""

from __future__ import annotations

import numpy as np

from frugalvae.maths.arrays import Array
from frugalvae.maths.symmetric import blocks

LIMITS = {1: 127, 2: 32767}  # the largest whole number, by bytes
TYPES = {1: np.int8, 2: np.int16}


def round_rows(rows: Array, size: int) -> tuple[Array, Array]:
    """Rows (n, d) as whole numbers of ``size`` bytes, and the scale (n,) of each row.

    >>> whole, scales = round_rows(np.array([[1.27, -0.5], [0.0, 0.0]]), 1)
    >>> whole.tolist()
    [[127, -50], [0, 0]]
    >>> bool(np.allclose(restore_rows(whole, scales), [[1.27, -0.5], [0.0, 0.0]], atol=0.005))
    True
    """
    limit = LIMITS[size]
    largest = np.abs(rows).max(axis=1, initial=0).astype(np.float64)
    for _ in range(2):  # rounded down, the largest may allow a smaller scale
        scales = _short(np.maximum(largest / limit, np.finfo(np.float32).tiny))
        largest = np.rint(largest / scales) * scales
    whole = np.rint(rows / scales[:, None].astype(np.float64))
    return np.clip(whole, -limit, limit).astype(TYPES[size]), scales


def restore_rows(whole: Array, scales: Array) -> Array:
    """The rows (n, d) that were rounded, float32."""
    rows = whole.astype(np.float32)
    rows *= scales[:, None]
    return rows


def round_symmetric(matrix: Array) -> tuple[Array, Array]:
    """The diagonal (d,) of a covariance or scatter, and its correlations in 16 bits, by rows.

    >>> diagonal, correlations = round_symmetric(np.array([[4.0, 1.0], [1.0, 1.0]]))
    >>> diagonal.tolist(), correlations.tolist()
    ([4.0, 1.0], [16384])
    """
    diagonal = np.maximum(matrix.diagonal(), 0).astype(np.float32)
    deviations = np.sqrt(diagonal.astype(np.float64))
    inverse = np.divide(LIMITS[2], deviations, out=np.zeros(len(matrix)), where=deviations > 0)
    rows = [
        np.rint(matrix[row, row + 1 :] * inverse[row] * inverse[row + 1 :] / LIMITS[2])
        for row in range(len(matrix) - 1)
    ]
    whole = np.concatenate(rows) if rows else np.zeros(0)
    return diagonal, np.clip(whole, -LIMITS[2], LIMITS[2]).astype(np.int16)


def restore_symmetric(diagonal: Array, correlations: Array) -> Array:
    """The matrix (d, d) that was rounded, float64."""
    size, used = len(diagonal), 0
    deviations = np.sqrt(diagonal.astype(np.float64))
    matrix = np.diag(diagonal.astype(np.float64))
    for row in range(size - 1):
        beside = matrix[row, row + 1 :]
        np.divide(correlations[used : used + len(beside)], LIMITS[2], out=beside)
        beside *= deviations[row]
        beside *= deviations[row + 1 :]
        used += len(beside)
    for _, here in blocks(size):  # the other half, without a copy of the whole
        corner = np.triu(matrix[here, here])
        matrix[here, here] = corner + np.triu(corner, 1).T
        matrix[here.stop :, here] = matrix[here, here.stop :].T
    return matrix


def _short(scales: Array) -> Array:
    """Scales rounded up to nine bits, float32: what they multiply is exact, and rounds again."""
    fractions, exponents = np.frexp(scales)
    return np.ldexp(np.ceil(fractions * 512) / 512, exponents).astype(np.float32)
