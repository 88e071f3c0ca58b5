"""What a frozen encoder is: an image becomes a tensor, a batch of tensors becomes features."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn


class Encoder(Protocol):
    """A pretrained encoder that learns nothing more.

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

    def prepare(self, image: Image.Image) -> Tensor:
        """An image in red, green and blue as the network takes it, (3, height, width).

        May be called from several threads at once.
        """
        ...

    def encode(self, batch: Tensor) -> Tensor:
        """Features (n, dim) of prepared images (n, 3, height, width), without gradients."""
        ...

    def text_features(self, names: Sequence[str]) -> NDArray[np.float32] | None:
        """A feature (k, dim) of each class's name, if the encoder can read."""
        ...

    def to(self, device: str | None) -> Encoder:
        """Compute there from now on; ``None`` takes a GPU if there is one."""
        ...


def find_device(device: str | None) -> torch.device:
    """The device of that name; without one a GPU if there is one.

    >>> find_device("cpu")
    device(type='cpu')
    """
    return torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))


def weights_digest(network: nn.Module) -> str:
    """A short name of all weights together: other weights, another name.

    >>> weights_digest(nn.Identity())
    'e3b0c44298fc1c14'
    """
    digest = hashlib.sha256()
    for name, weight in sorted(network.state_dict().items()):
        digest.update(f"{name} {tuple(weight.shape)} {weight.dtype}".encode())
        digest.update(weight.detach().cpu().contiguous().numpy().data)
    return digest.hexdigest()[:16]
