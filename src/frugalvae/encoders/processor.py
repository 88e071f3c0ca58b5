"""How a model wants its images prepared, as ``preprocessor_config.json`` says it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from frugalvae.encoders.preprocess import Preprocessing, Size
from frugalvae.errors import InputError

CONFIGS = ("preprocessor_config.json", "processor_config.json")
BILINEAR, BICUBIC = 2, 3  # Pillow's numbers of filters

_CUT = {
    "size": {"shortest_edge": 224},
    "do_center_crop": True,
    "crop_size": {"height": 224, "width": 224},
    "image_mean": (0.48145466, 0.4578275, 0.40821073),
    "image_std": (0.26862954, 0.26130258, 0.27577711),
    "resample": BICUBIC,
}
_WHOLE = {
    "size": {"height": 224, "width": 224},
    "do_center_crop": False,
    "crop_size": {"height": 224, "width": 224},
    "image_mean": (0.5,) * 3,
    "image_std": (0.5,) * 3,
    "resample": BILINEAR,
}
#: What ``transformers`` takes where a configuration is silent, by the kind of image processor.
DEFAULTS: dict[str, dict[str, Any]] = {
    "CLIP": _CUT,
    "Bit": _CUT,  # DINOv2's
    "Siglip": _WHOLE | {"resample": BICUBIC},
    "ViT": _WHOLE,
    "DINOv3ViT": _WHOLE | {"image_mean": (0.485, 0.456, 0.406), "image_std": (0.229, 0.224, 0.225)},
}


def read_config(folder: Path) -> dict[str, Any] | None:
    """What a model's folder says of how images are prepared, if it does."""
    for name in CONFIGS:
        path = folder / name
        if path.is_file():
            try:
                found = {**json.loads(path.read_text())}
                return {**found.get("image_processor", found)}
            except (OSError, ValueError, TypeError) as error:
                raise InputError(f"{path}: no JSON of settings ({error}); copy it anew") from error
    return None


def from_config(config: Mapping[str, Any]) -> Preprocessing:
    """What a ``preprocessor_config.json`` describes.

    >>> from_config({"size": 224, "crop_size": 224, "do_normalize": False}).crop
    (224, 224)
    >>> from_config({"image_processor_type": "SiglipImageProcessor"}).crop is None
    True
    """
    kind = processor_kind(config)
    told = DEFAULTS[kind] | {key: value for key, value in config.items() if value is not None}
    normalise = told.get("do_normalize", True)
    crop = _size(told["crop_size"], square=True) if told["do_center_crop"] else None
    return Preprocessing(
        _size(told["size"], square=kind == "ViT") if told.get("do_resize", True) else None,
        crop,  # type: ignore[arg-type]
        tuple(map(float, told["image_mean"])) if normalise else (0.0,) * 3,
        tuple(map(float, told["image_std"])) if normalise else (1.0,) * 3,
        told.get("rescale_factor", 1 / 255) if told.get("do_rescale", True) else 1.0,
        int(told["resample"]),
    )


def processor_kind(config: Mapping[str, Any]) -> str:
    """Which of the image processors it is, however it is spelled.

    >>> processor_kind({"image_processor_type": "BitImageProcessorFast"})
    'Bit'
    """
    named = config.get("image_processor_type") or config.get("feature_extractor_type") or "CLIP"
    kind = re.sub("(ImageProcessor|FeatureExtractor)(Fast|Pil)?$", "", str(named))
    if kind not in DEFAULTS:
        raise InputError(
            f"images are prepared by a {named} there, which is not known here; "
            f"known: {', '.join(DEFAULTS)}"
        )
    return kind


def _size(given: Any, square: bool) -> int | Size:
    """Height and width; or a number for the shorter side, unless it is that of a square."""
    if isinstance(given, int):
        return (given, given) if square else given
    if isinstance(given, Mapping):
        sides = {name: side for name, side in given.items() if side is not None}
        if sides.keys() == {"shortest_edge"}:
            return _size(int(sides["shortest_edge"]), square)
        if sides.keys() == {"height", "width"}:
            return int(sides["height"]), int(sides["width"])
    raise InputError(
        f"the preprocessing has the size {given!r}; expected a number, 'shortest_edge', or "
        "'height' and 'width'"
    )
