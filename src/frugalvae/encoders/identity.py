"""What tells the features of one encoder from another's: a digest of weights, and a mark.

The same network in ONNX and in PyTorch has other files, and other digests. Its features of one
image that never changes agree, and so do a few numbers of them: the mark.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image


def weights_digest(weights: Mapping[str, NDArray[Any]]) -> str:
    """A short name of all weights together: other weights, another name.

    Types are called as PyTorch calls them, as in the first files that say it.

    >>> weights_digest({})
    'e3b0c44298fc1c14'
    """
    digest = hashlib.sha256()
    for name, weight in sorted(weights.items()):
        digest.update(f"{name} {weight.shape} torch.{weight.dtype}".encode())
        digest.update(np.ascontiguousarray(weight).data)
    return digest.hexdigest()[:16]


COUNT = 16  # numbers that are kept
AGREE = 0.04  # of their length, two marks may differ: cosines of 0.999, and equal lengths


def picture(side: int = 256) -> Image.Image:
    """Waves of three colours with hard edges, as they are on every machine."""
    down, right = np.mgrid[:side, :side]
    colours = [
        down * right // 64,
        (down * down + 3 * right) // 16,
        5 * (down // 32) * (right // 32),
    ]
    return Image.fromarray(np.stack([colour % 256 for colour in colours], axis=2).astype(np.uint8))


def mark(feature: NDArray[np.float32]) -> list[float]:
    """A few numbers of a feature (d,): sums with signs that look like chance."""
    rows = np.arange(1, COUNT + 1)[:, None] * np.arange(1, len(feature) + 1)
    sums = np.cos(rows.astype(np.float64) ** 1.5) @ feature.astype(np.float64)  # (COUNT,)
    return [float(f"{value:.4g}") for value in sums]


def agree(one: object, other: object) -> bool:
    """Whether two marks are of the same features; not if one of them is none.

    >>> agree([1.0, 2.0], [1.001, 2.0]), agree([1.0, 2.0], [2.0, 4.0]), agree(None, [1.0])
    (True, False, False)
    """
    try:
        a, b = np.array(one, np.float64), np.array(other, np.float64)
    except (TypeError, ValueError):  # a file may say anything
        return False
    if a.shape != b.shape or a.ndim != 1 or not b.any():
        return False
    return bool(np.linalg.norm(a - b) <= AGREE * np.linalg.norm(b))
