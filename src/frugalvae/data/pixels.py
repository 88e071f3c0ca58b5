"""From the bytes of an image file to upright red, green and blue."""

from __future__ import annotations

import contextlib
import io
import math
import warnings
from collections.abc import Iterator

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

MOST_PIXELS = 250_000_000  # 750 MB of colours: the largest telephones make 200 million
OVERSAMPLED = 2  # pixels to one of what is needed: fewer change features, more take time
#: All that is read, by Pillow's names; the usual ones first. Others may start programs.
FORMATS = ("JPEG", "PNG", "GIF", "BMP", "PPM", "WEBP", "TIFF", "AVIF", "JPEG2000")
PLAIN = {"1", "L", "RGB", "CMYK", "YCbCr"}  # without transparent parts, unless said beside them


@contextlib.contextmanager
def reading_images() -> Iterator[None]:
    """How Pillow is set while images are read, in all threads.

    Its own limit of size is lifted, since :func:`rgb` has one that does not depend on
    settings elsewhere. Its warnings are not shown: they do not name the file, and what
    cannot be read is an error.
    """
    before = Image.MAX_IMAGE_PIXELS
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="PIL")
        Image.MAX_IMAGE_PIXELS = None
        try:
            yield
        finally:
            Image.MAX_IMAGE_PIXELS = before


def decode(content: bytes, side: int | None = None) -> Image.Image:
    """The image that a file contains, as :func:`rgb` makes it; of an animation the first one.

    Pillow fails in many ways, so that this may raise any exception.

    Parameters
    ----------
    content
        Of the file.
    side
        What the shorter side is going to be resized to. A JPEG with many more pixels is
        decoded at a part of its size, which takes a part of the time.

    Examples
    --------
    >>> buffer = io.BytesIO()
    >>> Image.new("LA", (2, 1), (90, 0)).save(buffer, "png")
    >>> decode(buffer.getvalue()).getpixel((0, 0))
    (255, 255, 255)
    """
    if not content:
        raise ValueError("the file is empty")
    try:
        opened = Image.open(io.BytesIO(content), formats=FORMATS)
    except UnidentifiedImageError:  # whose message is about a place in memory
        raise ValueError("it is in no known format of images") from None
    with opened as image:
        width, height = image.size
        if width * height > MOST_PIXELS:
            raise ValueError(f"{width} x {height} are more than {MOST_PIXELS:,} pixels")
        return rgb(image if side is None else smaller(image, side))


def smaller(image: Image.Image, side: int) -> Image.Image:
    """A JPEG at a half, a quarter or an eighth of its size; other images as they are.

    Its shorter side stays at least twice as long as ``side``. Where a fraction of a pixel
    is left at an edge, pixels are made whole, and so many that the longer side is rounded
    as that of the large image would be: else the middle would be cut out elsewhere.
    """
    width, height = image.size
    drafted = image.draft(None, (OVERSAMPLED * side,) * 2)
    if drafted is None or drafted[1][2:] == image.size:
        return image
    short = side * math.ceil(min(drafted[1][2:]) / side)
    whole = (max(short, short * width // height), max(short, short * height // width))
    return image.resize(whole, Image.Resampling.BICUBIC, drafted[1])


def rgb(image: Image.Image) -> Image.Image:
    """Upright as the camera says, in red, green and blue, transparent parts white."""
    image.load()
    with contextlib.suppress(SyntaxError):  # notes of the camera that nobody can read
        image = ImageOps.exif_transpose(image)
    if image.mode.startswith("I"):  # 16 bits of grey, which converting would clip
        grey = np.asarray(image).clip(0, 65535) / 257
        image = Image.fromarray(grey.round().astype(np.uint8))
    if image.mode in PLAIN and "transparency" not in image.info:
        return image.convert("RGB")
    colours = image.convert("RGBA")
    opaque = Image.alpha_composite(Image.new("RGBA", colours.size, "white"), colours)
    return opaque.convert("RGB")
