"""Weights of a network, named by what is in them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


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
