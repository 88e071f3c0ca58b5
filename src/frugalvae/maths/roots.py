"""Roots: rows whose outer products add up to a scatter."""

from __future__ import annotations

import numpy as np

from frugalvae.maths.arrays import Array
from frugalvae.maths.symmetric import principal_axes


def mixed(rows: Array) -> Array:
    """As few rows with the same outer products as there can be, float32; each mixes all."""
    values, axes = principal_axes(rows.astype(np.float64))
    return (np.sqrt(values)[:, None] * axes.T)[::-1].astype(np.float32)


def leading(rows: Array, count: int) -> Array:
    """The combinations (n, count) of rows (n, r) that are longest, the longest first, float32.

    >>> rows = np.array([[0.0, 1.0], [2.0, 0.0], [0.0, 3.0]])
    >>> np.abs(leading(rows, 1).T @ rows).round(3).tolist()
    [[0.0, 3.162]]
    """
    if len(rows) <= rows.shape[1]:
        vectors = np.linalg.eigh((rows @ rows.T).astype(np.float64))[1]
        return vectors[:, ::-1][:, :count].astype(np.float32)
    values, axes = np.linalg.eigh((rows.T @ rows).astype(np.float64))  # as (r, r) is smaller
    values, axes = values[::-1][:count], axes[:, ::-1][:, :count]
    combinations: Array = rows @ (axes / np.sqrt(np.maximum(values, 1e-30))).astype(np.float32)
    return combinations


def outer(rows: Array) -> Array:
    """The sum of outer products of rows (n, d), in float64."""
    rows = rows.astype(np.float64)
    return rows.T @ rows


def without(root: Array, rows: Array) -> tuple[Array, float]:
    """A root of what a root's outer products are without those of rows, and what was negative."""
    both = np.concatenate([root, rows]).astype(np.float64)
    signs = np.repeat([1.0, -1.0], [len(root), len(rows)])
    basis, triangle = np.linalg.qr(both.T)  # (r, q), (q, n)
    values, vectors = np.linalg.eigh((triangle * signs) @ triangle.T)
    kept = values > 1e-10 * max(values[-1], 1e-300)
    left = np.sqrt(values[kept])[:, None] * (basis @ vectors[:, kept]).T
    return left[::-1].astype(np.float32), float(-values[values < 0].sum())
