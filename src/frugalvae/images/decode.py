"""From the bytes of an image file to upright red, green and blue.

Files may be made to do damage: a few bytes can claim billions of pixels, or hours of work. What a
file claims is checked in its bytes, before anything is decoded:

- :func:`check_size` and :func:`check_decoding`: how many pixels it has, how many bytes decoding
  them takes, and how often a JPEG goes over them, which :func:`jpeg_scans` counts.
- :class:`Counted` and :func:`check_strips`: of how many parts it consists.

Large images are decoded one at a time.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import re
import struct
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from frugalvae.errors import InputError, how_to_install
from frugalvae.files import read_plain

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
    "PPM": rb"P[4-6]\s+[\d#]",
}
MOST_BYTES = 300_000_000  # of a file
MOST_PIXELS = 250_000_000  # the largest telephones make 200 million
MOST_MEMORY = 1_600_000_000  # bytes that decoding one image may take
LARGE_MEMORY = 250_000_000  # of an image that is decoded alone
LARGE_PIXELS = 40_000_000  # above which an image is made smaller before it is converted
DRAFTED = 4  # times what is needed: the most that a JPEG is decoded larger
MOST_SCANNED = 4_000_000_000  # pixels times scans: some 5 s. A progressive JPEG has 6 to 18 scans
TIFF_SCANS = 100  # of a JPEG in a TIFF, after which libtiff stops
COEFFICIENT = 2  # bytes; a JPEG of several scans keeps one for each pixel and colour
MOST_MARKERS = 100_000  # of a JPEG
MOST_STRIPS = 50_000  # of a TIFF
TILE = 32  # pixels; to a multiple of them a JPEG is made wider and higher
STRIPS = {273, 279, 324, 325}  # tags of a TIFF: where its strips and tiles are, and their lengths
PACKINGS = {1, 2, 3, 4, 5, 6, 7, 8, 32773, 32946}  # of a TIFF; in others there may be anything
JPEGS = {6, 7}  # those that are JPEGs

#: A marker of a JPEG that is followed by something else than coded pixels.
MARKER = re.compile(rb"\xff([^\x00\xff\xd0-\xd7])")
SCAN, BEGIN, END, FRAME = 0xDA, 0xD8, 0xD9, 0xC0
ARITHMETIC_OR_LOSSLESS = {0xC3, *range(0xC5, 0xC8), *range(0xC9, 0xD0)}


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
    if re.match(rb"P[1-3]\s", content):
        raise ValueError("a PBM, PGM or PPM in plain text, which takes minutes; save it as PNG")
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


# --------------------------------------------------------------------------- limits


class Most(NamedTuple):
    """What an image of some format takes, and may have.

    Attributes
    ----------
    bytes
        Per pixel at the peak of decoding, as ``tests/test_limits.py`` measures it.
    reads
        Steps in which the file is read; each takes some microseconds.
    pixels
        Fewer than of other formats, where each takes longer.
    """

    bytes: int
    reads: int = 200_000
    pixels: int = MOST_MEMORY


#: All formats that are read, by Pillow's names.
MOST = {
    "JPEG": Most(4, reads=10_000),
    "PNG": Most(5),
    "WEBP": Most(20),
    "TIFF": Most(5),
    "BMP": Most(5),
    "GIF": Most(5),
    "AVIF": Most(12),
    "HEIF": Most(8),
    "JPEG2000": Most(25, pixels=20_000_000),
    "PPM": Most(5),
}
CONVERTING, CONVERTING_OTHERS = 4, 17  # bytes per pixel more, of plain colours and of others
PLAIN = {"1", "L", "RGB", "CMYK", "YCbCr"}  # without transparent parts, unless said beside them


# --------------------------------------------------------------------------- sizes


def check_size(size: tuple[int, int], known: str, most_pixels: int = MOST_PIXELS) -> None:
    """Refuse an image of too many pixels, or whose pixels take too much memory."""
    pixels, shown = math.prod(size), f"{size[0]} x {size[1]}"
    if pixels > most_pixels:
        raise ValueError(f"{shown} are more than {most_pixels:,} pixels")
    most = min(MOST[known].pixels, MOST_MEMORY // MOST[known].bytes)
    if pixels > most:
        raise ValueError(f"{shown} are more than the {most:,} pixels of a {known}")


def check_decoding(
    image: Image.Image, known: str, scans: int, side: int | None, most_pixels: int
) -> None:
    """Refuse an image, opened but not decoded, that would take too much time or memory."""
    check_size(image.size, known, most_pixels)
    if known == "TIFF":
        scans = check_tiles(image)
    scanned = scans * math.prod(whole_tiles(image.size))
    if scanned > MOST_SCANNED:
        raise ValueError(
            f"a JPEG of {scans} scans over {image.size[0]} x {image.size[1]} pixels; decoding it "
            f"may take minutes (the most is {MOST_SCANNED:,} pixels in all scans); save it anew"
        )
    if memory(image, known, side, scans) > MOST_MEMORY:
        raise ValueError(
            f"{image.size[0]} x {image.size[1]} pixels in {scans} scans take more than "
            f"{MOST_MEMORY:,} bytes of memory; save it as a JPEG that is not progressive"
        )


def memory(image: Image.Image, known: str, side: int | None, scans: int = 1) -> int:
    """How many bytes decoding an image takes at most, apart from its file.

    ``side`` is what the shorter side is going to be resized to, ``scans`` are those of a JPEG.
    """
    pixels, each = math.prod(image.size), MOST[known].bytes
    is_plain = image.mode in PLAIN and "transparency" not in image.info
    converting = CONVERTING if is_plain else CONVERTING_OTHERS
    if known != "JPEG" or side is None:
        whole = pixels * (each + converting * (pixels <= LARGE_PIXELS))
    else:
        part = min(1.0, max(DRAFTED * side / max(min(image.size), 1), 1 / 8))
        whole = int(pixels * part * part) * (each + converting)
    kept = COEFFICIENT * len(image.getbands()) * math.prod(whole_tiles(image.size))
    return whole + kept * (known == "JPEG" and scans > 1)


def whole_tiles(size: tuple[int, int]) -> tuple[int, int]:
    """What a JPEG of that size is made of.

    >>> whole_tiles((1, 64))
    (32, 64)
    """
    width, height = (-(-side // TILE) * TILE for side in size)
    return width, height


def webp_size(content: bytes) -> tuple[int, int]:
    """Width and height as the beginning of a WebP says."""
    kind, bits = content[12:16], int.from_bytes(content[21:25], "little")
    if kind == b"VP8X":
        sides = (content[24:27], content[27:30])
        width, height = (int.from_bytes(side, "little") + 1 for side in sides)
        return width, height
    if kind == b"VP8L":
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    sides = (content[26:28], content[28:30])
    width, height = (int.from_bytes(side, "little") & 0x3FFF for side in sides)
    return width, height


def check_tiles(image: Image.Image) -> int:
    """Refuse a TIFF whose tiles are much larger than itself; how many scans it may have."""
    tags = getattr(image, "tag_v2", {})
    width, height = (int(tags.get(tag, 0)) for tag in (322, 323))
    if width * height > max(LARGE_PIXELS, 4 * math.prod(image.size)):
        raise ValueError(f"its tiles of {width} x {height} pixels are larger than the image")
    packing = tags.get(259, 1)
    if packing not in PACKINGS:
        raise ValueError(f"a TIFF packed in way {packing}, which is not read; save it anew")
    return TIFF_SCANS if packing in JPEGS else 1


# --------------------------------------------------------------------------- work


class Counted(io.BytesIO):
    """A file that is read in a bounded number of steps.

    Pillow reads chunk by chunk and block by block, in Python: a file of very many tiny ones
    would take minutes. So this ends its reading, whatever the format.
    """

    def __init__(self, content: bytes, known: str) -> None:
        super().__init__(content)
        self.known, self.left = known, MOST[known].reads

    def read(self, size: int | None = -1, /) -> bytes:
        """Some bytes, or an error if that was asked too often."""
        self.left -= 1
        if self.left < 0:
            raise ValueError(
                f"it has too many parts: reading it takes more than {MOST[self.known].reads:,} "
                f"steps, the most for a {self.known}; save it anew"
            )
        return super().read(size)


def jpeg_scans(content: bytes) -> int:
    """How many scans a JPEG has up to its end: decoding goes over all pixels in each of them."""
    place, scans = 2, 0
    for _ in range(MOST_MARKERS):
        found = MARKER.search(content, place)
        if found is None or (kind := found[1][0]) == END:
            return scans
        if kind in ARITHMETIC_OR_LOSSLESS:
            raise ValueError("an arithmetic or lossless JPEG, which is not read; save it anew")
        scans += kind == SCAN
        place = found.end()
        if FRAME <= kind != BEGIN:  # others have no length
            place += int.from_bytes(content[place : place + 2], "big")
    raise ValueError(f"it has more than {MOST_MARKERS:,} segments; save it anew")


def check_strips(content: bytes) -> None:
    """Refuse a TIFF of very many strips or tiles."""
    order, is_big = "<" if content[:1] == b"I" else ">", 43 in content[2:4]
    place, count, entry = (8, "Q", "HHQ8x") if is_big else (4, "H", "HHI4x")
    try:
        [place] = struct.unpack_from(order + ("Q" if is_big else "I"), content, place)
        [tags] = struct.unpack_from(order + count, content, place)
        begin, size = place + struct.calcsize(order + count), struct.calcsize(order + entry)
        for number in range(min(tags, MOST_STRIPS)):
            tag, _, values = struct.unpack_from(order + entry, content, begin + number * size)
            if tag in STRIPS and values > MOST_STRIPS:
                raise ValueError(
                    f"its {values:,} strips or tiles are more than {MOST_STRIPS:,}; save it anew"
                )
    except struct.error:  # cut off, as who opens it says
        return
