"""Random projections that follow from a seed, on every machine and in every version."""

from __future__ import annotations

import numpy as np

from frugalvae.maths.arrays import Array

BLOCK = 16  # values drawn together: eight radii and eight angles
TOGETHER = 2**16 * BLOCK  # values per pass: each takes ten times its size on the way


def normal_matrix(seed: int, shape: tuple[int, int]) -> Array:
    """A matrix of standard normal values that follows from a seed, (rows, columns), float32.

    A file holds the seed only, so the values must never change: Mersenne Twister, uniform
    values of 24 bits, Box-Muller transform. Files of the first versions were written with
    PyTorch's generator, which does the same; values differ by 2e-6 at most.

    Parameters
    ----------
    seed
        From 0 to 2**32 - 1.
    shape
        Rows and columns. For fewer than 16 values in all, PyTorch would give others.

    Examples
    --------
    >>> normal_matrix(0, (1000, 3)).std().round(2)
    np.float32(1.0)
    """
    count = shape[0] * shape[1]
    twister = np.random.MT19937()
    twister._legacy_seeding(seed)
    drawn = np.empty(max(count, BLOCK), np.float32)
    for start in range(0, len(drawn), TOGETHER):
        uniform = _uniform(twister, min(TOGETHER, len(drawn) - start))
        whole = len(uniform) - len(uniform) % BLOCK
        drawn[start : start + whole] = _box_muller(uniform[:whole])
    if len(drawn) % BLOCK:  # the last block overlaps the one before, and is drawn again
        drawn[-BLOCK:] = _box_muller(_uniform(twister, BLOCK))
    return drawn[:count].reshape(shape)


def _uniform(twister: np.random.MT19937, count: int) -> Array:
    """Uniform values in [0, 1) with 24 bits, which float32 holds exactly."""
    raw = twister.random_raw(count) & np.uint64(2**24 - 1)
    return (raw * 2.0**-24).astype(np.float32)


def _box_muller(uniform: Array) -> Array:
    """Normal values from uniform ones: in each block, eight make radii and eight angles."""
    first, second = np.moveaxis(uniform.astype(np.float64).reshape(-1, 2, BLOCK // 2), 1, 0)
    radius, angle = np.sqrt(-2 * np.log(1 - first)), 2 * np.pi * second
    both = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return both.reshape(-1).astype(np.float32)


def uniform_vector(seed: int, count: int) -> Array:
    """Uniform values in [0, 1) that follow from a seed, (count,), float32.

    >>> uniform_vector(0, 1000).mean().round(1)
    np.float32(0.5)
    """
    twister = np.random.MT19937()
    twister._legacy_seeding(seed)
    return _uniform(twister, count)


def sparse_normal_matrix(seed: int, shape: tuple[int, int], degree: int) -> Array:
    """A normal matrix in which only ``degree`` entries of each column are not zero, float32.

    >>> (sparse_normal_matrix(0, (5, 100), 2) != 0).sum(axis=0).tolist() == [2] * 100
    True
    """
    drawn = normal_matrix(seed, shape)
    order = uniform_vector(seed + 1, shape[0] * shape[1]).reshape(shape).argsort(axis=0)
    np.put_along_axis(drawn, order[degree:], 0, axis=0)
    return drawn
