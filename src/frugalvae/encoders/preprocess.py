"""From an image to the array that a pretrained network expects."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from frugalvae.errors import InputError

Size = tuple[int, int]  # height and width
THINNEST = 100  # how often the shorter side may go into the longer: more is no photograph


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
