"""Image encoders in the format of ``transformers``, on PyTorch: CLIP, SigLIP, DINOv2 and v3."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import normalize

from frugalvae.encoders.defaults import (
    COMPARED,
    CONFIGS,
    ModelEncoder,
    Preprocessing,
    drawn_image,
    from_config,
    mark,
    read_config,
    sentence,
    weights_digest,
)
from frugalvae.encoders.hub import pretrained, snapshot
from frugalvae.errors import InputError
from frugalvae.maths.arrays import find_device

#: The class of ``transformers`` that is a model's image tower, by the kind of model.
TOWERS = {
    "clip": "CLIPVisionModelWithProjection",
    "clip_vision_model": "CLIPVisionModelWithProjection",
    "siglip": "SiglipVisionModel",
    "siglip_vision_model": "SiglipVisionModel",
    "dinov2": "Dinov2Model",
    "dinov2_with_registers": "Dinov2WithRegistersModel",
    "dinov3_vit": "DINOv3ViTModel",
}
TEXT_TOWERS = {"clip": "CLIPTextModelWithProjection", "siglip": "SiglipTextModel"}


class TransformersEncoder(ModelEncoder):
    """Images to the features of a pretrained network.

    A feature of CLIP is the projected embedding of an image; of others it is what their last
    layer pools, else the token of the class. Those of CLIP and SigLIP have length one: they are
    compared so with texts. Images are prepared as the model's ``preprocessor_config.json`` says.

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
    ICML 2021. Zhai et al.: "Sigmoid Loss for Language Image Pre-Training", ICCV 2023. Oquab et
    al.: "DINOv2: Learning Robust Visual Features without Supervision", TMLR 2024.

    Examples
    --------
    >>> TransformersEncoder("./absent/")
    Traceback (most recent call last):
    ...
    frugalvae.errors.InputError: ./absent/: there is no such folder; check the path
    """

    name = "transformers"

    def __init__(self, model: str | Path, device: str | None = None) -> None:
        self.kind = str(pretrained("AutoConfig", model).model_type)
        if self.kind not in TOWERS:
            raise InputError(
                f"{model}: a model of the kind {self.kind!r}, of which no image tower is known "
                f"here; known: {', '.join(TOWERS)}"
            )
        self.model = model
        self.prepared = _preprocessing(model)
        network = pretrained(TOWERS[self.kind], model)
        self.network = network.float().eval().requires_grad_(False)
        side = network.config.image_size  # of networks that compare, positions are fixed
        if self.kind.startswith(COMPARED) and self.prepared.shape != (side, side):
            raise InputError(
                f"{self.model}: its preprocessing gives images of {self.prepared.shape}, "
                f"and its network takes {side} x {side}; correct {CONFIGS[0]}"
            )
        weights = self.network.state_dict()
        self.digest = weights_digest({name: weight.numpy() for name, weight in weights.items()})
        self.to(device)
        [feature] = self.encode(self.prepare(drawn_image())[None])
        self.dim, self.probe = len(feature), mark(feature)

    def encode(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        """Features (n, dim)."""
        with torch.inference_mode():
            found = self.network(pixel_values=torch.from_numpy(batch).to(self.device))
            features = found.get("image_embeds", found.get("pooler_output"))
            if features is None:
                features = found.last_hidden_state[:, 0]
            if self.kind.startswith(COMPARED):
                features = normalize(features, dim=1)
            features = features.cpu().numpy()
        return np.asarray(features, np.float32)

    def text_features(self, names: Sequence[str]) -> NDArray[np.float32] | None:
        """Features of "a photo of a NAME.", of length one; None without a text tower.

        SigLIP reads the last position, so that all texts are padded to the context.
        """
        if self.kind not in TEXT_TOWERS:
            return None
        tower = pretrained(TEXT_TOWERS[self.kind], self.model).float().eval().to(self.device)
        tokenizer, context = self._tokenizer(tower), tower.config.max_position_embeddings
        texts = [sentence(name) for name in names]
        tokens = tokenizer(
            texts, padding="max_length", max_length=context, return_tensors="pt", verbose=False
        )["input_ids"]
        if tokens.shape[1] > context:
            raise InputError(
                f"a class's name makes more than {context} tokens; give it another one"
            )
        with torch.inference_mode():
            found = tower(input_ids=tokens.to(self.device))
            features = found.get("text_embeds", found.get("pooler_output"))
            return np.asarray(normalize(features, dim=1).cpu())

    def _tokenizer(self, tower: Any) -> Any:
        tokenizer = pretrained("AutoTokenizer", self.model)
        rows = tower.get_input_embeddings().num_embeddings
        if 2 * len(tokenizer) < rows:  # without its files, a tokenizer of three tokens is made up
            raise InputError(
                f"{self.model}: its tokenizer knows {len(tokenizer)} tokens, its text tower "
                f"{rows}; expected the tokenizer's files (tokenizer.json) next to the model's"
            )
        return tokenizer

    def to(self, device: str | None) -> TransformersEncoder:
        """Compute there from now on; ``None`` takes a GPU if there is one."""
        self.device = find_device(device)
        self.network.to(self.device)
        return self


def _preprocessing(model: str | Path) -> Preprocessing:
    """By our own hands: the processors of ``transformers`` may need torchvision."""

    def settings(names: list[str]) -> list[str]:
        found = [name for name in names if name in CONFIGS]
        if not found:
            raise InputError(
                f"{model}: {CONFIGS[0]} is missing, which defines how images are prepared; copy it "
                "from where the model comes from"
            )
        return found

    folder = Path(model)
    if not folder.is_dir():
        folder = snapshot(str(model), settings)
    settings([path.name for path in folder.iterdir()])
    return from_config(read_config(folder) or {})
