"""Any image encoder in the format ONNX: CLIP, SigLIP, DINOv2 and v3, or one of your own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frugalvae.encoders.defaults import COMPARED, ModelEncoder
from frugalvae.encoders.hub import ENDINGS, Layout, find_layout
from frugalvae.encoders.identity import mark, picture
from frugalvae.encoders.onnx_file import read_model
from frugalvae.encoders.preprocess import (
    CONFIGS,
    LARGEST_SIDE,
    Preprocessing,
    from_config,
    read_config,
)
from frugalvae.encoders.session import Network
from frugalvae.encoders.text import TextNetwork
from frugalvae.errors import InputError, check_choice, check_number
from frugalvae.maths.arrays import unit

EMBEDDINGS = ("image_embeds", "pooler_output")  # what a feature is, by preference
TOKENS = "last_hidden_state"  # else its first, the token of the class


class OnnxEncoder(ModelEncoder):
    """Images to the features of a network that ONNX Runtime computes.

    A feature is what the graph calls ``image_embeds``, else its ``pooler_output``, else the
    first token of its ``last_hidden_state``, else its only output. Those of CLIP and SigLIP
    have length one: they are compared so with texts.

    Parameters
    ----------
    model
        A file, a folder, or a name on the Hugging Face hub such as
        ``"Xenova/clip-vit-base-patch32"``, which is downloaded once. In a folder the graph is
        ``vision_model.onnx`` or ``model.onnx``, there or in ``onnx/``. Where
        ``text_model.onnx`` and ``tokenizer.json`` are beside it, classes' names have features.
    precision
        ``"float32"``, ``"float16"`` or ``"int8"``: which of the files, where there are several.
    size, mean, std
        Side of the square that the network sees, mean and standard deviation of each colour
        between 0 and 1; in place of what ``preprocessor_config.json`` says.
    device
        Where to compute; ``None`` takes a GPU if there is one.
    threads
        How many may compute; by default ``OMP_NUM_THREADS`` of them, or one a core.

    Examples
    --------
    >>> OnnxEncoder("absent.onnx")
    Traceback (most recent call last):
    ...
    frugalvae.errors.InputError: absent.onnx: there is no such file; check the path
    """

    format = "onnx"

    def __init__(
        self,
        model: str | Path,
        precision: str = "float32",
        size: int | None = None,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
        device: str | None = None,
        threads: int | None = None,
    ) -> None:
        check_choice("precision", precision, ENDINGS)
        if size is not None:
            check_number("size", size, 1, LARGEST_SIDE, whole=True)
        layout = find_layout(model, precision)
        self.model = model
        self.prepared = _preprocessing(layout, size, mean, std)
        self.digest, self.network = _loaded(layout.graph, threads, device)
        self.text = layout.text and TextNetwork(layout, threads)
        self.input, self.output = _ends(self.network, layout.graph)
        self.unit = self.output == EMBEDDINGS[0] or _kind(layout).startswith(COMPARED)
        try:
            [feature] = self.encode(self.prepare(picture())[None])
        except InputError as error:
            raise InputError(f"{layout.graph}: {error}; is encoder.size right?") from error
        self.dim, self.probe = len(feature), mark(feature)

    def encode(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        """Features (n, dim)."""
        found = self.network.run(self.output, {self.input: batch})
        features = found[:, 0] if found.ndim == 3 else found  # of (n, tokens, dim) the first
        return unit(features) if self.unit else features

    def text_features(self, names: Sequence[str]) -> NDArray[np.float32] | None:
        """Features of "a photo of a NAME.", of length one; None without a text tower."""
        return unit(self.text.describe(names, self.dim)) if self.text else None

    def to(self, device: str | None) -> OnnxEncoder:
        """Compute there from now on; ``None`` takes a GPU if there is one."""
        self.network.to(device)
        return self


def _loaded(path: Path, threads: int | None, device: str | None) -> tuple[str, Network]:
    model = read_model(path)
    try:
        return model.digest, Network(model, threads, device, path)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _ends(network: Network, path: Path) -> tuple[str, str]:
    """The input that takes images, and the output that is a feature."""
    if list(network.inputs.values()) != [4]:
        raise InputError(
            f"{path}: its inputs are {', '.join(network.inputs)}; expected images alone, as "
            "vision_model.onnx takes them"
        )
    outputs = network.outputs
    for name in (*EMBEDDINGS, TOKENS):
        if name in outputs:
            return next(iter(network.inputs)), name
    if list(outputs.values()) == [2]:
        return next(iter(network.inputs)), next(iter(outputs))
    raise InputError(
        f"{path}: its outputs are {', '.join(outputs)}; expected {', '.join(EMBEDDINGS)} or "
        f"{TOKENS}, or one output of a row an image"
    )


def _preprocessing(
    layout: Layout, size: int | None, mean: Sequence[float] | None, std: Sequence[float] | None
) -> Preprocessing:
    told: Mapping[str, Any] | None = None
    for folder in layout.settings:
        told = told or read_config(folder)
    given = {"size": size, "crop_size": size, "image_mean": mean, "image_std": std}
    if told is None and None in given.values():
        raise InputError(
            f"{layout.graph}: {CONFIGS[0]} is missing, which says how images are prepared; copy "
            "it from where the model comes from, or set encoder.size, encoder.mean and encoder.std"
        )
    changed = {name: value for name, value in given.items() if value is not None}
    return from_config({**(told or {}), **changed})


def _kind(layout: Layout) -> str:
    """The kind of model that ``config.json`` names; an empty one if it does not."""
    path = layout.setting("config.json")
    try:
        return str(json.loads(path.read_text())["model_type"]) if path else ""
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return ""
