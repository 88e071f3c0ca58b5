"""A fixed rotation that spreads every feature over all coordinates.

The first coordinates after it are as good as any others, so that as many can be kept as there
is room for, and fewer later, without looking at any data. It is made of a cosine transform and
of signs and an order that are the same everywhere and for ever: a file need not hold it, and
no matrix is ever made.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from frugalvae.maths.arrays import Array


class Rotation(NamedTuple):
    """Signs (d,) of features, and the order (d,) and factors (d,) of cosines and of phases."""

    signs: Array
    order: Array
    scales: Array
    phases: Array


@functools.lru_cache(maxsize=4)
def rotation(dim: int) -> Rotation:
    """What the rotation of so many features is made of."""
    raw = np.random.PCG64(0).random_raw(2 * dim)  # a stream that no version changes
    scales = np.full(dim, (0.5 / dim) ** 0.5)
    scales[0] *= 0.5**0.5
    phases = np.exp(-0.5j * np.pi / dim * np.arange(dim))
    signs = 1.0 - 2.0 * (raw[:dim] >> np.uint64(63))
    return Rotation(signs, np.argsort(raw[dim:], kind="stable"), scales, phases)


def rotate(rows: Array, rank: int) -> Array:
    """The first ``rank`` coordinates of rows (n, d) after the rotation: (n, rank), float64.

    >>> x = np.random.default_rng(0).normal(size=(2, 5))
    >>> np.allclose(rotate(x, 5) @ rotate(x, 5).T, x @ x.T)  # lengths and angles stay
    True
    """
    dim = rows.shape[1]
    signs, order, scales, phases = rotation(dim)
    signed = rows * signs
    even = np.concatenate([signed, signed[:, ::-1]], axis=1)  # its transform is one of cosines
    kept = order[:rank]
    coordinates: Array = (np.fft.rfft(even)[:, kept] * phases[kept]).real * scales[kept]
    return coordinates


def rotate_back(coordinates: Array, dim: int) -> Array:
    """Rows (n, dim) whose first coordinates are these, (n, rank), and whose others are zero.

    >>> x = np.random.default_rng(0).normal(size=(2, 5))
    >>> np.allclose(rotate_back(rotate(x, 5), 5), x)
    True
    """
    signs, order, scales, phases = rotation(dim)
    kept = order[: coordinates.shape[1]]
    spectrum = np.zeros((len(coordinates), dim + 1), complex)
    spectrum[:, kept] = coordinates / scales[kept] * phases[kept].conj()
    rows: Array = np.fft.irfft(spectrum, 2 * dim)[:, :dim] * signs
    return rows
