"""What decoding an image may take: a few bytes can claim billions of pixels, or hours of work.

What a file claims is checked in its bytes, before anything is decoded:

- :func:`check_size` and :func:`check_decoding`: how many pixels it has, how many bytes decoding
  them takes, and how often a JPEG goes over them, which :func:`jpeg_scans` counts.
- :class:`Counted` and :func:`check_strips`: of how many parts it consists.
"""

from __future__ import annotations

import io
import math
import re
import struct
from typing import NamedTuple

from PIL import Image

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
