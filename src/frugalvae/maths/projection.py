"""Random projections that come back from a seed, on every machine and for ever."""

from __future__ import annotations

import numpy as np

from frugalvae.maths.arrays import Array

BLOCK = 16  # numbers that are made together: eight radii and eight angles
TOGETHER = 2**16 * BLOCK  # numbers at a time: each takes ten times its size on the way


def normal_matrix(seed: int, shape: tuple[int, int]) -> Array:
    """Standard normal numbers of a seed, (rows, columns), float32.

    A file holds the seed alone, so the stream must never change: a Mersenne Twister, uniform
    numbers of 24 bits, and the Box-Muller transform. Files of the first versions were written
    with PyTorch's generator, which does the same: numbers differ by 2e-6 at most.

    Parameters
    ----------
    seed
        From 0 to 2**32 - 1.
    shape
        Rows and columns; below 16 numbers in all PyTorch would do something else.

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
    if len(drawn) % BLOCK:  # the last block overlaps the one before, and is drawn anew
        drawn[-BLOCK:] = _box_muller(_uniform(twister, BLOCK))
    return drawn[:count].reshape(shape)


def _uniform(twister: np.random.MT19937, count: int) -> Array:
    """Numbers from 0 to below 1, in steps that float32 can tell apart."""
    raw = twister.random_raw(count) & np.uint64(2**24 - 1)
    return (raw * 2.0**-24).astype(np.float32)


def _box_muller(uniform: Array) -> Array:
    """Normal numbers of uniform ones: in each block, eight make radii and eight angles."""
    first, second = np.moveaxis(uniform.astype(np.float64).reshape(-1, 2, BLOCK // 2), 1, 0)
    radius, angle = np.sqrt(-2 * np.log(1 - first)), 2 * np.pi * second
    both = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return both.reshape(-1).astype(np.float32)
