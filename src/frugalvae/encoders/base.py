"""What a frozen encoder is: an image becomes an array, a batch of arrays becomes features."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image


class Encoder(Protocol):
    """A pretrained encoder that learns nothing more; it can go to another process.

    One that has a ``side``, what it resizes the shorter side of an image to, is given
    photographs that were decoded no larger than needed for that.
    """

    @property
    def dim(self) -> int:
        """Width of a feature."""
        ...

    @property
    def identity(self) -> dict[str, Any]:
        """What tells features of this encoder from those of another, as JSON can hold it.

        Its name, the model's name, the preprocessing, and a digest of the weights.
        """
        ...

    def prepare(self, image: Image.Image) -> NDArray[np.float32]:
        """An image in red, green and blue as the network takes it, (3, height, width).

        May be called from several threads at once.
        """
        ...

    def encode(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        """Features (n, dim) of prepared images (n, 3, height, width)."""
        ...

    def text_features(self, names: Sequence[str]) -> NDArray[np.float32] | None:
        """A feature (k, dim) of each class's name, if the encoder can read."""
        ...

    def to(self, device: str | None) -> Encoder:
        """Compute there from now on; ``None`` takes a GPU if there is one."""
        ...


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
