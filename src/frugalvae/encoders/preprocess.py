"""From an image to the array that a pretrained network expects, as its settings say it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from frugalvae.errors import InputError, check_choice, check_number

Size = tuple[int, int]  # height and width
THINNEST = 100  # how often the shorter side may go into the longer: more is no photograph
LARGEST_SIDE = 1_024  # that a setting or a model may ask for: a file may hold either
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


@dataclass(frozen=True)
class Preprocessing:
    """Resize, cut out the middle, scale, and normalise each colour.

    Parameters
    ----------
    resize
        Height and width; or one number for the shorter side, which keeps the shape;
        ``None`` leaves the image as it is.
    crop
        Height and width of the middle that is cut out; an image that is smaller gets black
        borders. ``None`` keeps all.
    mean, std
        Of each colour, after colours from 0 to 255 were multiplied by ``scale``.
    resample
        Pillow's number of the filter: 2 is bilinear, 3 bicubic.

    Examples
    --------
    >>> prepare = Preprocessing(resize=4, crop=(4, 4), mean=(0.5,) * 3, std=(0.5,) * 3)
    >>> np.unique(prepare(Image.new("RGB", (16, 8), "white")))
    array([1.], dtype=float32)
    """

    resize: int | Size | None
    crop: Size | None
    mean: tuple[float, ...] = (0.0, 0.0, 0.0)
    std: tuple[float, ...] = (1.0, 1.0, 1.0)
    scale: float = 1 / 255
    resample: int = 3

    def __post_init__(self) -> None:
        levels = np.arange(256) * self.scale  # what each of 256 shades becomes, once for all
        table = (levels - np.array(self.mean)[:, None]) / np.array(self.std)[:, None]
        object.__setattr__(self, "_table", table.astype(np.float32))  # (3, 256)

    def __call__(self, image: Image.Image) -> NDArray[np.float32]:
        """What the network takes of an image in red, green and blue, (3, height, width)."""
        if self.resize is not None:
            height, width = target_size(image.height, image.width, self.resize)
            image = image.resize((width, height), Image.Resampling(self.resample))
        if self.crop is not None:
            image = middle(image, *self.crop)
        pixels = np.asarray(image)  # (height, width, 3)
        table: Any = self._table  # type: ignore[attr-defined]
        return np.stack([table[c][pixels[:, :, c]] for c in range(3)])

    @property
    def shape(self) -> Size | None:
        """Height and width of what comes out, if all images come out alike."""
        if self.crop is None and isinstance(self.resize, int):
            return None
        return self.crop or self.resize  # type: ignore[return-value]

    @property
    def side(self) -> int | None:
        """What the shorter side of an image has to have; None if every pixel counts."""
        return max(self.resize) if isinstance(self.resize, tuple) else self.resize

    def to_json(self) -> dict[str, Any]:
        """All settings, as JSON can hold them."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }


def target_size(height: int, width: int, resize: int | Size) -> Size:
    """What an image becomes: the longer side is rounded down.

    >>> target_size(375, 500, 224), target_size(375, 500, (8, 9))
    ((224, 298), (8, 9))
    """
    if not isinstance(resize, int):
        return resize
    if max(height, width) > THINNEST * min(height, width):
        raise InputError(f"the image is {width} x {height} pixels, too thin to be resized")
    longer = int(resize * max(height, width) / min(height, width))
    return (longer, resize) if width <= height else (resize, longer)


def middle(image: Image.Image, height: int, width: int) -> Image.Image:
    """The middle of an image; black where it is smaller.

    >>> middle(Image.new("RGB", (5, 2)), 4, 4).size
    (4, 4)
    """
    left, top = (image.width - width) // 2, (image.height - height) // 2
    return image.crop((left, top, left + width, top + height))


def read_config(folder: Path) -> dict[str, Any] | None:
    """What a model's folder says of how images are prepared, if it does."""
    for name in CONFIGS:
        if (folder / name).is_file():
            return read_settings(folder / name, "image_processor")
    return None


def read_settings(path: Path, part: str = "") -> dict[str, Any]:
    """The table in a file of JSON, or that part of it if it has one of that name."""
    try:
        found = {**json.loads(path.read_text())}
        return {**found.get(part, found)}
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise InputError(f"{path}: no JSON of settings ({error}); copy it anew") from error


def from_config(config: Mapping[str, Any]) -> Preprocessing:
    """What a ``preprocessor_config.json`` describes.

    >>> from_config({"size": 224, "crop_size": 224, "do_normalize": False}).crop
    (224, 224)
    >>> from_config({"image_processor_type": "SiglipImageProcessor"}).crop is None
    True
    """
    kind = processor_kind(config)
    settings = DEFAULTS[kind] | {key: value for key, value in config.items() if value is not None}
    steps = ("do_resize", "do_center_crop", "do_rescale", "do_normalize")
    for step in steps:
        check_choice(step, settings.setdefault(step, True), (True, False))
    scale = settings.get("rescale_factor", 1 / 255)
    check_number("rescale_factor", scale, 1e-6, 1e6)
    check_number("resample", settings["resample"], 0, max(Image.Resampling), whole=True)
    resized, cropped, rescaled, normalised = (settings[step] for step in steps)
    return Preprocessing(
        _size("size", settings["size"], square=kind == "ViT") if resized else None,
        _size("crop_size", settings["crop_size"], square=True) if cropped else None,  # type: ignore[arg-type]
        _colours("image_mean", settings, -1e6) if normalised else (0.0,) * 3,
        _colours("image_std", settings, 1e-6) if normalised else (1.0,) * 3,
        scale if rescaled else 1.0,
        settings["resample"],
    )


def _colours(name: str, settings: Mapping[str, Any], least: float) -> tuple[float, ...]:
    """A number for each of three colours."""
    given = settings[name]
    if not isinstance(given, list | tuple | np.ndarray) or len(given) != 3:
        raise InputError(f"{name} is {given!r}; expected three numbers, one for each colour")
    for value in given:
        check_number(name, value, least, 1e6)
    return tuple(map(float, given))


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


def _size(name: str, given: Any, square: bool) -> int | Size:
    """Height and width; or a number for the shorter side, unless it is that of a square."""
    sides = given if isinstance(given, Mapping) else {"shortest_edge": given}
    sides = {key: side for key, side in sides.items() if side is not None}
    if sides.keys() in ({"shortest_edge"}, {"height", "width"}):
        for side in sides.values():
            check_number(name, side, 1, LARGEST_SIDE, whole=True)
        if "height" in sides:
            return sides["height"], sides["width"]
        side = sides["shortest_edge"]
        return (side, side) if square else side
    raise InputError(
        f"{name} is {given!r}; expected a number, 'shortest_edge', or 'height' and 'width'"
    )
