"""CLIP's image tower, in the format of ``transformers``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch.nn.functional import normalize

from frugalvae.encoders.base import weights_digest
from frugalvae.encoders.preprocess import Preprocessing, from_config
from frugalvae.errors import InputError
from frugalvae.hub import pretrained
from frugalvae.text import load_text_tower

WITH_IMAGES = ("clip", "clip_vision_model")  # kinds of models that have an image tower


class ClipEncoder:
    """Images to CLIP's shared space of images and texts.

    A feature is the projected embedding of an image, of length one: CLIP compares it so
    with texts. Images are prepared as the model's ``preprocessor_config.json`` says.

    Parameters
    ----------
    model
        A folder that ``save_pretrained`` wrote, or a name on the Hugging Face hub such as
        ``"openai/clip-vit-large-patch14"``, which is downloaded once.
    device
        Where to compute; ``None`` takes a GPU if there is one.

    References
    ----------
    Radford et al.: "Learning Transferable Visual Models From Natural Language Supervision",
    ICML 2021.

    Examples
    --------
    >>> ClipEncoder("./absent/")
    Traceback (most recent call last):
    ...
    frugalvae.errors.InputError: ./absent/: there is no such folder; check the path
    """

    def __init__(self, model: str | Path, device: str | None = None) -> None:
        self.kind = pretrained("AutoConfig", model).model_type
        if self.kind not in WITH_IMAGES:
            raise InputError(
                f"{model}: a model of the kind {self.kind!r}, which has no image tower of CLIP; "
                "expected a whole CLIP, such as 'openai/clip-vit-base-patch32'"
            )
        self.model = model
        self.prepared = _preprocessing(model)
        network = pretrained("CLIPVisionModelWithProjection", model)
        self.network = network.float().eval().requires_grad_(False)
        side = network.config.image_size
        if self.prepared.shape != (side, side):
            raise InputError(
                f"{model}: its preprocessing gives images of {self.prepared.shape}, "
                f"and its network takes {side} x {side}; correct preprocessor_config.json"
            )
        weights = self.network.state_dict()
        self.digest = weights_digest({name: weight.numpy() for name, weight in weights.items()})
        self.to(device)

    @property
    def dim(self) -> int:
        """Width of a feature: that of CLIP's projection."""
        return int(self.network.config.projection_dim)

    @property
    def identity(self) -> dict[str, Any]:
        """Which CLIP it is; of a folder only the name is told."""
        folder = Path(self.model)
        return {
            "encoder": "clip",
            "model": folder.resolve().name if folder.is_dir() else str(self.model),
            "preprocessing": self.prepared.to_json(),
            "weights": self.digest,
        }

    @property
    def side(self) -> int | None:
        """What the shorter side of an image is resized to."""
        return self.prepared.side

    def prepare(self, image: Image.Image) -> NDArray[np.float32]:
        """An image in red, green and blue as the network takes it, (3, height, width)."""
        return self.prepared(image)

    def encode(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        """Features (n, dim), of length one."""
        with torch.inference_mode():
            pixels = torch.from_numpy(batch).to(self.device)
            embeddings = self.network(pixel_values=pixels).image_embeds
            features: NDArray[np.float32] = normalize(embeddings, dim=1).cpu().numpy()
            return features

    def text_features(self, names: Sequence[str]) -> NDArray[np.float32] | None:
        """Features of "a photo of a NAME.", of length one; None without a text tower."""
        if self.kind != "clip":
            return None
        tower = load_text_tower(str(self.model)).to(self.device)
        return normalize(tower.describe(names), dim=1).cpu().numpy()

    def to(self, device: str | None) -> ClipEncoder:
        """Compute there from now on; ``None`` takes a GPU if there is one."""
        self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self.network.to(self.device)
        return self


def _preprocessing(model: str | Path) -> Preprocessing:
    names, folder = ("preprocessor_config.json", "processor_config.json"), Path(model)
    if folder.is_dir() and not any((folder / name).exists() for name in names):
        raise InputError(
            f"{model}: {names[0]} is missing, which says how images are prepared; copy it from "
            "where the model comes from"
        )
    return from_config(pretrained("CLIPImageProcessorPil", model).to_dict())
