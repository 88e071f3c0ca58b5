"""What an encoder need not write itself: preparation, identity, and several views of an image.

The identity tells the features of one encoder from another's. The same network in ONNX and in
PyTorch has other files, and other digests. Its features of one image that never changes agree,
and so do a few numbers of them: the mark.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from math import ceil
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from frugalvae.encoders import VIEWS
from frugalvae.errors import InputError, check_choice, check_number
from frugalvae.maths.arrays import unit
from frugalvae.parts.protocols import Encoder
from frugalvae.parts.registry import settings_of

COMPARED = ("clip", "siglip")  # models that compare features with texts, at length one
MARK_LENGTH = 16  # numbers of a mark
MARK_TOLERANCE = 0.04  # of their length, two marks may differ: cosines of 0.999, equal lengths
NEARER = 0.8  # of each side, which the view of the middle shows
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


class EncoderDefaults:
    """Gives an encoder all but ``dim`` and ``encode``.

    Attributes
    ----------
    size
        Side of the square that :meth:`prepare` makes of an image.
    mean, std
        Of each colour, from 0 to 1; :meth:`prepare` subtracts and divides.

    Examples
    --------
    >>> class MeanColour(EncoderDefaults):
    ...     dim, size = 3, 8
    ...     def encode(self, batch):
    ...         return batch.mean(axis=(2, 3))
    >>> encoder = MeanColour()
    >>> encoder.encode(encoder.prepare(Image.new("RGB", (20, 9), "red"))[None]).tolist()
    [[1.0, 0.0, 0.0]]
    """

    name: str = ""  # the one it was made by
    size: int = 224
    mean: tuple[float, ...] = (0.0, 0.0, 0.0)
    std: tuple[float, ...] = (1.0, 1.0, 1.0)

    @cached_property
    def prepared(self) -> Preprocessing:
        """How images are prepared; an encoder may set its own."""
        return Preprocessing(self.size, (self.size, self.size), self.mean, self.std)

    @property
    def side(self) -> int | None:
        """What the shorter side of an image is resized to."""
        return self.prepared.side

    @property
    def identity(self) -> dict[str, Any]:
        """What tells its features from others': class, preprocessing, settings and arrays.

        An encoder whose weights are not in attributes that are arrays gives an identity of
        its own, with a digest of its weights.
        """
        settings = json.dumps(settings_of(self), sort_keys=True)
        arrays = {name: value for name, value in vars(self).items() if type(value) is np.ndarray}
        return self._identity(settings, weights_digest({settings: np.empty(0), **arrays}))

    def _identity(self, model: str, digest: str, **more: Any) -> dict[str, Any]:
        kind = type(self)
        return {
            "encoder": self.name or f"{kind.__module__}:{kind.__qualname__}",
            "model": model,
            "preprocessing": self.prepared.to_json(),
            "weights": digest,
            **more,
        }

    def prepare(self, image: Image.Image) -> NDArray[np.float32]:
        """An image in red, green and blue as the network takes it, (3, height, width)."""
        return self.prepared(image)

    def text_features(self, names: Sequence[str]) -> NDArray[np.float32] | None:
        """None: it cannot read."""
        return None

    def to(self, device: str | None) -> Self:
        """Itself: it computes where it is."""
        return self


class ModelEncoder(EncoderDefaults):
    """Gives an encoder of a model, from a file, a folder or the hub, its identity.

    Attributes
    ----------
    model
        The path or the name on the hub; of a path only the last part is in the identity.
    digest, probe
        Of the weights, and the mark of its features.
    """

    model: str | Path
    digest: str
    probe: list[float]

    @property
    def identity(self) -> dict[str, Any]:
        """Which network it is."""
        path = Path(self.model)
        model = path.resolve().name if path.exists() else str(self.model)
        return self._identity(model, self.digest, probe=self.probe)


# --------------------------------------------------------------------------- identity


def weights_digest(weights: Mapping[str, NDArray[Any]]) -> str:
    """A short name of all weights together: other weights, another name.

    Types are called as PyTorch calls them, as in the first files.

    >>> weights_digest({})
    'e3b0c44298fc1c14'
    """
    digest = hashlib.sha256()
    for name, weight in sorted(weights.items()):
        digest.update(f"{name} {weight.shape} torch.{weight.dtype}".encode())
        digest.update(np.ascontiguousarray(weight).data)
    return digest.hexdigest()[:16]


def drawn_image(side: int = 256) -> Image.Image:
    """Waves of three colours with hard edges, the same on every machine."""
    down, right = np.mgrid[:side, :side]
    colours = [
        down * right // 64,
        (down * down + 3 * right) // 16,
        5 * (down // 32) * (right // 32),
    ]
    return Image.fromarray(np.stack([colour % 256 for colour in colours], axis=2).astype(np.uint8))


def mark(feature: NDArray[np.float32]) -> list[float]:
    """A few numbers of a feature (d,): sums with pseudorandom signs."""
    rows = np.arange(1, MARK_LENGTH + 1)[:, None] * np.arange(1, len(feature) + 1)
    sums = np.cos(rows.astype(np.float64) ** 1.5) @ feature.astype(np.float64)  # (MARK_LENGTH,)
    return [float(f"{value:.4g}") for value in sums]


def marks_agree(one: object, other: object) -> bool:
    """Whether two marks are of the same features; not if one of them is none.

    >>> marks_agree([1.0, 2.0], [1.001, 2.0]), marks_agree([1.0, 2.0], [2.0, 4.0])
    (True, False)
    >>> marks_agree(None, [1.0])
    False
    """
    try:
        a, b = np.array(one, np.float64), np.array(other, np.float64)
    except (TypeError, ValueError):  # a file may hold anything
        return False
    if a.shape != b.shape or a.ndim != 1 or not b.any():
        return False
    return bool(np.linalg.norm(a - b) <= MARK_TOLERANCE * np.linalg.norm(b))


# --------------------------------------------------------------------------- names


def sentence(name: str) -> str:
    """A class's name as CLIP and SigLIP like to read it.

    >>> sentence("001.Black_footed_Albatross")
    'a photo of a Black footed Albatross.'
    """
    return f"a photo of a {spoken(name)}."


def spoken(name: str) -> str:
    """A class's name as people say it: folders often carry numbers and underscores.

    >>> spoken("birds/001.Black_footed_Albatross"), spoken("707-320")
    ('Black footed Albatross', '707-320')
    """
    last = name.rsplit("/", maxsplit=1)[-1]
    return re.sub(r"^\d+\.", "", last).replace("_", " ").strip() or name


# --------------------------------------------------------------------------- several views


class Views:
    """An encoder of two or four views of each photograph, whose features are averaged.

    The feature of one photograph depends on how large the object is and on where it faces. The
    average depends on that less, which is worth most where a class has few photographs. Encoding
    takes two or four times as long; the file does not grow. Features have length one: those of
    every view, so that all count the same, and their average.

    Parameters
    ----------
    encoder
        What encodes a view.
    views
        2: the photograph, and its middle (80 % of each side) mirrored. 4: both of them, and
        both mirrored.

    Examples
    --------
    >>> class LeftAndRight(EncoderDefaults):
    ...     dim, size = 2, 10
    ...     def encode(self, batch):
    ...         return batch[:, 0, 0, [0, -1]]
    >>> half = Image.new("RGB", (10, 10))
    >>> half.paste("white", (0, 0, 5, 10))
    >>> for encoder in (LeftAndRight(), Views(LeftAndRight(), 4)):
    ...     encoder.encode(encoder.prepare(half)[None]).astype(float).round(2).tolist()
    [[1.0, 0.0]]
    [[0.71, 0.71]]
    """

    def __init__(self, encoder: Encoder, views: int = 2) -> None:
        check_choice("views", views, VIEWS[1:])
        self.encoder, self.views = encoder, views
        self.dim, self.text_features = encoder.dim, encoder.text_features
        self.side = encoder.side and ceil(encoder.side / NEARER)  # the middle is to be sharp, too

    @property
    def identity(self) -> dict[str, Any]:
        """The encoder's own, and how many views."""
        return {**self.encoder.identity, "views": self.views}

    def prepare(self, image: Image.Image) -> NDArray[np.float32]:
        """The views one below the other, (3, views * height, width)."""
        width, height = image.size
        border = (1 - NEARER) / 2
        box = (width * border, height * border, width * (1 - border), height * (1 - border))
        middle = image.resize(image.size, Image.Resampling.BICUBIC, box=box)
        views = [image, ImageOps.mirror(middle), ImageOps.mirror(image), middle][: self.views]
        return np.concatenate([self.encoder.prepare(view) for view in views], axis=1)

    def encode(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        """Features (n, dim) of length one, averaged over views."""
        views = map(np.ascontiguousarray, np.split(batch, self.views, axis=2))
        return unit(np.mean([unit(self.encoder.encode(view)) for view in views], axis=0))

    def to(self, device: str | None) -> Self:
        """Compute there from now on; ``None`` takes a GPU if there is one."""
        self.encoder.to(device)
        return self


# ------------------------------------------------------------------------ from an image to an array


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
