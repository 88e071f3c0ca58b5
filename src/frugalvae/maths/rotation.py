"""A fixed rotation that spreads each feature over all coordinates.

After it, any coordinates are as good as any others. So the first ones can be kept, as many as
there is room for, and fewer later, without looking at data. The rotation is a cosine transform
with fixed signs and a fixed permutation. It never changes, so it is not stored in files, and
no matrix is needed.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from frugalvae.maths.arrays import Array


class Rotation(NamedTuple):
    """Signs of features, and the order, scales and phases of frequencies, (d,) each."""

    signs: Array
    order: Array
    scales: Array
    phases: Array


@functools.lru_cache(maxsize=4)
def rotation(dim: int) -> Rotation:
    """The rotation of ``dim`` features."""
    raw = np.random.PCG64(0).random_raw(2 * dim)  # raw bits: the same in every version of NumPy
    scales = np.full(dim, (0.5 / dim) ** 0.5)
    scales[0] *= 0.5**0.5
    phases = np.exp(-0.5j * np.pi / dim * np.arange(dim))
    signs = 1.0 - 2.0 * (raw[:dim] >> np.uint64(63))
    return Rotation(signs, np.argsort(raw[dim:], kind="stable"), scales, phases)


def rotate(rows: Array, rank: int) -> Array:
    """The first ``rank`` coordinates (n, rank) of rows (n, d) after the rotation, float64.

    >>> x = np.random.default_rng(0).normal(size=(2, 5))
    >>> np.allclose(rotate(x, 5) @ rotate(x, 5).T, x @ x.T)  # inner products stay
    True
    """
    dim = rows.shape[1]
    signs, order, scales, phases = rotation(dim)
    signed = rows * signs
    even = np.concatenate([signed, signed[:, ::-1]], axis=1)  # even: a cosine transform
    kept = order[:rank]
    return (np.fft.rfft(even)[:, kept] * phases[kept]).real * scales[kept]


def rotate_back(coordinates: Array, dim: int) -> Array:
    """Rows (n, dim) with the given first coordinates (n, rank), and zeros for the others.

    >>> x = np.random.default_rng(0).normal(size=(2, 5))
    >>> np.allclose(rotate_back(rotate(x, 5), 5), x)
    True
    """
    signs, order, scales, phases = rotation(dim)
    kept = order[: coordinates.shape[1]]
    spectrum = np.zeros((len(coordinates), dim + 1), complex)
    spectrum[:, kept] = coordinates / scales[kept] * phases[kept].conj()
    return np.fft.irfft(spectrum, 2 * dim)[:, :dim] * signs
