"""A fixed rotation that spreads every feature over all coordinates.

The first coordinates after it are as good as any others, so that as many can be kept as there
is room for, and fewer later, without looking at any data. It is made of a cosine transform and
of signs and an order that are the same everywhere and for ever: a file need not hold it.
"""

from __future__ import annotations

import functools

import numpy as np

from frugalvae.arrays import Array


@functools.lru_cache(maxsize=4)
def rotation(dim: int) -> Array:
    """An orthogonal matrix (dim, dim), float64: features are multiplied by it from the right.

    >>> mixed = rotation(5)
    >>> np.allclose(mixed @ mixed.T, np.eye(5))
    True
    """
    raw = np.random.PCG64(0).random_raw(2 * dim)  # a stream that no version changes
    signs = 1.0 - 2.0 * (raw[:dim] >> np.uint64(63))
    order = np.argsort(raw[dim:], kind="stable")
    steps = np.arange(dim, dtype=np.float64)
    cosines = np.cos(np.pi / dim * (steps[:, None] + 0.5) * steps)
    cosines *= (2 / dim) ** 0.5
    cosines[:, 0] *= 0.5**0.5
    mixed: Array = signs[:, None] * cosines[:, order]
    return mixed


@functools.lru_cache(maxsize=4)
def leading(dim: int, rank: int) -> Array:
    """The first ``rank`` columns of the rotation, (dim, rank), float64."""
    return np.ascontiguousarray(rotation(dim)[:, :rank])
