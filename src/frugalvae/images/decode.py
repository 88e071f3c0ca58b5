"""From the bytes of an image file to upright red, green and blue.

Files may be made to do damage: what they claim is checked before anything is decoded
(:mod:`frugalvae.images.limits`), and large images are decoded one at a time.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from frugalvae.errors import InputError, how_to_install
from frugalvae.files import read_plain
from frugalvae.images.limits import (
    LARGE_MEMORY,
    LARGE_PIXELS,
    MOST_BYTES,
    MOST_PIXELS,
    PLAIN,
    Counted,
    check_decoding,
    check_size,
    check_strips,
    jpeg_scans,
    memory,
    webp_size,
)

LARGE_BYTES = 30_000_000  # of a file that is read and decoded alone
BLOCK = 1 << 26  # bytes that Pillow asks for at a time; less is kept by threads when it is freed
STRIP_PIXELS = 1_000_000  # that are converted at a time then
OVERSAMPLED = 2  # pixels to one of what is needed: fewer change features, more take time
SIDE = 1024  # what is needed of a large image if nothing else is said
NO_FILE = "not a regular file"
HEAD = 32  # bytes at the beginning of a file that tell its format
ORIENTATION = 0x0112

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


@dataclass(frozen=True)
class File:
    """A file: what reads it, what changes when it is replaced, and its size in bytes."""

    read: Callable[[], bytes]
    stamp: tuple[int, ...] = ()
    size: int = 0

    def loaded(self) -> File:
        """The same with its bytes, or with the reason why it cannot be read."""
        try:
            return File(partial(bytes, self.read()), size=self.size)
        except Exception as error:  # zipfile fails in many ways
            return File(partial(_fail, str(error) or type(error).__name__), size=self.size)


def _fail(why: str) -> bytes:
    raise OSError(why)


def on_disk(path: Path) -> File:
    """A file as encoding takes it."""
    try:
        state = os.stat(path)
    except OSError:  # reading it says why
        return File(partial(read_file, path))
    return File(partial(read_file, path), (state.st_size, state.st_mtime_ns), state.st_size)


def read_file(path: Path, most: int | None = None) -> bytes:
    """The bytes of a file, or the first of them; an error that does not repeat its name."""
    try:
        return read_plain(path, MOST_BYTES if most is None else most, first=most is not None)
    except OSError as error:
        raise InputError(error.strerror or str(error)) from error


_one_large = threading.RLock()
_readers, _pillow, _setting = list[object](), contextlib.ExitStack(), threading.Lock()


@contextlib.contextmanager
def reading_images() -> Iterator[None]:
    """How Pillow is set while images are read, in all threads; the last reader sets it back.

    Its own limit of size is lifted, since :func:`decode` has one that does not depend on
    settings elsewhere. Its warnings are not shown: they do not name the file, and what
    cannot be read is an error. Large images are kept in blocks that go back to the system.
    """
    with _setting:
        if not _readers:
            _pillow.enter_context(_pillow_set())
        _readers.append(None)
    try:
        yield
    finally:
        with _setting:
            _readers.pop()
            if not _readers:
                _pillow.close()


@contextlib.contextmanager
def _pillow_set() -> Iterator[None]:
    core = Image.core  # type: ignore[attr-defined]
    before, block = Image.MAX_IMAGE_PIXELS, core.get_block_size()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="PIL")
        Image.MAX_IMAGE_PIXELS = None
        core.set_block_size(BLOCK)
        try:
            yield
        finally:
            Image.MAX_IMAGE_PIXELS = before
            core.set_block_size(block)


def decode(content: bytes, side: int | None = None, most_pixels: int = MOST_PIXELS) -> Image.Image:
    """The image that a file contains, as :func:`rgb` makes it; of an animation the first one.

    Pillow fails in many ways, so that this may raise any exception.

    Parameters
    ----------
    content
        Of the file.
    side
        What the shorter side is going to be resized to. A JPEG with many more pixels is
        decoded at a part of its size, which takes a part of the time. Any image of more than
        ``LARGE_PIXELS`` is made smaller.
    most_pixels
        More of them are refused.

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
    if known == "WEBP":
        check_size(webp_size(content), known, most_pixels)  # opening it would take memory already
    if known == "TIFF":
        check_strips(content)
    scans = jpeg_scans(content) if known == "JPEG" else 1
    image = opened(content, known)
    check_decoding(image, known, scans, side, most_pixels)
    if image.mode == "F":
        raise ValueError("its shades are floating-point numbers, which have no known scale")
    with alone(memory(image, known, side, scans) > LARGE_MEMORY), contextlib.closing(image):
        if known == "JPEG" and side is not None:
            return rgb(smaller(image, side))
        return shrunk(image, side) if math.prod(image.size) > LARGE_PIXELS else rgb(image)


def format_of(head: bytes) -> str | None:
    """The format of a file that begins so, of those in ``FORMATS``; None if it is no image.

    >>> format_of(b"GIF89a"), format_of(b"BMW")
    ('GIF', None)
    """
    found = (name for name, begin in FORMATS.items() if re.match(begin, head, re.DOTALL))
    return next(found, None)


def alone(large: bool) -> contextlib.AbstractContextManager[object]:
    """Lets one thread at a time work on something large; others are not held up."""
    return _one_large if large else contextlib.nullcontext()


# --------------------------------------------------------------------------- opening


def opened(content: bytes, known: str) -> Image.Image:
    """An image in that format and no other; its pixels are not decoded yet."""
    if known == "HEIF":
        return heic(content)
    try:
        return Image.open(Counted(content, known), formats=[known])
    except UnidentifiedImageError:  # whose message is about a place in memory
        raise ValueError(f"it begins as {known}, but is damaged") from None


def heic(content: bytes) -> Image.Image:
    """A photograph as telephones make them."""
    try:
        from pillow_heif import HeifImageFile
    except ImportError:
        raise ValueError(f"a HEIC photograph; to read it, {how_to_install('heif')}") from None
    return HeifImageFile(io.BytesIO(content))


# --------------------------------------------------------------------------- pixels


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


def shrunk(image: Image.Image, side: int | None) -> Image.Image:
    """A very large image as :func:`rgb` makes it, but smaller.

    It is converted in strips, so that there is never a second copy of all pixels. Its shorter
    side stays at least twice as long as ``side``.
    """
    image.load()
    width, height = image.size
    factor = max(min(image.size) // (OVERSAMPLED * (side or SIDE)), 1)
    small = Image.new("RGB", (math.ceil(width / factor), math.ceil(height / factor)))
    rows = factor * max(STRIP_PIXELS // (width * factor), 1)
    for top in range(0, height, rows):
        strip = image.crop((0, top, width, min(top + rows, height)))
        small.paste(coloured(strip).reduce(factor), (0, top // factor))
    with contextlib.suppress(SyntaxError):
        small.getexif()[ORIENTATION] = image.getexif().get(ORIENTATION, 1)
    return ImageOps.exif_transpose(small)


def rgb(image: Image.Image) -> Image.Image:
    """Upright as the camera says, in red, green and blue, transparent parts white."""
    image.load()
    with contextlib.suppress(SyntaxError):  # notes of the camera that nobody can read
        ImageOps.exif_transpose(image, in_place=True)  # without a copy of all pixels
    return coloured(image)


def coloured(image: Image.Image) -> Image.Image:
    """In red, green and blue, transparent parts white."""
    if image.mode.startswith("I"):  # 16 bits of grey, which converting would clip
        grey = np.asarray(image).clip(0, 65535).astype(np.float32)
        grey /= 257
        image = Image.fromarray(grey.round(out=grey).astype(np.uint8))
    if image.mode in PLAIN and "transparency" not in image.info:
        return image.convert("RGB")
    colours = image.convert("RGBA")
    opaque = Image.alpha_composite(Image.new("RGBA", colours.size, "white"), colours)
    return opaque.convert("RGB")
