"""From the bytes of an image file to upright red, green and blue."""

from __future__ import annotations

import contextlib
import io
import math
import re
import warnings
from collections.abc import Iterator

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

MOST_PIXELS = 250_000_000  # 750 MB of colours: the largest telephones make 200 million
OVERSAMPLED = 2  # pixels to one of what is needed: fewer change features, more take time
HEAD = 32  # bytes at the beginning of a file that tell its format

#: All formats that are read, by Pillow's names, and how files begin that have them. Others
#: are not opened: for some of them Pillow starts programs.
FORMATS = {
    "JPEG": rb"\xff\xd8\xff",
    "PNG": rb"\x89PNG\r\n\x1a\n",
    "WEBP": rb"RIFF....WEBP",
    "TIFF": rb"II[*+]\0|MM\0[*+]",
    "BMP": rb"BM.{12}[\x0c\x10\x28\x34\x38\x40\x6c\x7c]\0\0\0",  # lengths of what follows
    "GIF": rb"GIF8[79]a",
    "AVIF": rb"....ftyp(.{4})*?avi[fs]",
    "HEIF": rb"....ftyp(.{4})*?(hei[cxms]|hev[cxms]|mif1|msf1)",
    "JPEG2000": rb"\0\0\0\x0cjP  \r\n\x87\n|\xff\x4f\xff\x51",
    "PPM": rb"P[1-6]\s+[\d#]",
}
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
    known = format_of(content[:HEAD])
    if known is None:
        raise ValueError("it is in no known format of images")
    with opened(content, known) as image:
        width, height = image.size
        if width * height > MOST_PIXELS:
            raise ValueError(f"{width} x {height} are more than {MOST_PIXELS:,} pixels")
        return rgb(smaller(image, side) if side and known == "JPEG" else image)


def format_of(head: bytes) -> str | None:
    """The format of a file that begins so, of those in ``FORMATS``; None if it is no image.

    >>> format_of(b"GIF89a"), format_of(b"BMW")
    ('GIF', None)
    """
    found = (name for name, begin in FORMATS.items() if re.match(begin, head, re.DOTALL))
    return next(found, None)


def opened(content: bytes, known: str) -> Image.Image:
    """An image in that format and no other; its pixels are not decoded yet."""
    if known == "HEIF":
        return heic(content)
    try:
        return Image.open(io.BytesIO(content), formats=[known])
    except UnidentifiedImageError:  # whose message is about a place in memory
        raise ValueError(f"it begins as {known}, but is damaged") from None


def heic(content: bytes) -> Image.Image:
    """A photograph as telephones make them."""
    try:
        from pillow_heif import HeifImageFile
    except ImportError:
        raise ValueError("a HEIC photograph; pip install 'frugalvae[heif]' to read it") from None
    image: Image.Image = HeifImageFile(io.BytesIO(content))
    return image


def smaller(image: Image.Image, side: int) -> Image.Image:
    """A JPEG at a half, a quarter or an eighth of its size.

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
