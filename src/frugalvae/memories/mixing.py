"""A fixed rotation that spreads every feature over all coordinates.

The first coordinates after it are as good as any others, so that as many can be kept as there
is room for, and fewer later, without looking at any data. It is made of a cosine transform and
of signs and an order that are the same everywhere and for ever: a file need not hold it.
"""

from __future__ import annotations

import functools

import numpy as np
import torch
from torch import Tensor


@functools.lru_cache(maxsize=4)
def rotation(dim: int) -> Tensor:
    """An orthogonal matrix (dim, dim), float64: features are multiplied by it from the right.

    >>> mixed = rotation(5)
    >>> torch.allclose(mixed @ mixed.T, torch.eye(5, dtype=torch.float64))
    True
    """
    raw = np.random.PCG64(0).random_raw(2 * dim)  # a stream that no version changes
    signs = torch.from_numpy(1.0 - 2.0 * (raw[:dim] >> np.uint64(63)))
    order = torch.from_numpy(np.argsort(raw[dim:], kind="stable"))
    steps = torch.arange(dim, dtype=torch.float64)
    cosines = torch.cos(torch.pi / dim * (steps[:, None] + 0.5) * steps)
    cosines *= (2 / dim) ** 0.5
    cosines[:, 0] *= 0.5**0.5
    return signs[:, None] * cosines[:, order]


def leading(dim: int, rank: int, like: Tensor) -> Tensor | None:
    """The first ``rank`` columns of the rotation; None if features stay as they are."""
    return None if rank == dim else _leading(dim, rank, like.dtype, like.device)


@functools.lru_cache(maxsize=4)
def _leading(dim: int, rank: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    return rotation(dim)[:, :rank].to(device, dtype).contiguous()
