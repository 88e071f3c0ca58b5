"""How large images may be, and how many large ones are worked on at a time.

Files may be made to do damage: a few bytes can claim billions of pixels. What a file claims is
checked before anything is decoded, and large images are decoded one at a time.
"""

from __future__ import annotations

import contextlib
import math
import threading

from PIL import Image

MOST_BYTES = 300_000_000  # of a file
MOST_PIXELS = 250_000_000  # the largest telephones make 200 million
MOST_MEMORY = 1_600_000_000  # bytes that decoding may take
LARGE_BYTES = 30_000_000  # of a file that is read and decoded alone
LARGE_MEMORY = 200_000_000  # of an image that is decoded alone
LARGE_PIXELS = 40_000_000  # above which an image is made smaller before it is converted
DRAFTED = 8  # times what is needed: the most that a JPEG may be decoded larger

#: Bytes per pixel that decoding takes at its peak. Pillow itself keeps colours in 4.
MEMORY = {"WEBP": 10, "AVIF": 8, "HEIF": 8, "JPEG2000": 16}
PILLOW = 4
PROGRESSIVE = 6  # more, for the coefficients of a progressive JPEG

_one_large = threading.RLock()


def alone(large: bool) -> contextlib.AbstractContextManager[object]:
    """Lets one thread at a time work on something large; others are not held up."""
    return _one_large if large else contextlib.nullcontext()


def check_size(size: tuple[int, int], known: str) -> None:
    """Refuse an image that would take too much memory to decode."""
    width, height = size
    if width * height > MOST_PIXELS:
        raise ValueError(f"{width} x {height} are more than {MOST_PIXELS:,} pixels")
    if width * height * MEMORY.get(known, PILLOW) > MOST_MEMORY:
        most = MOST_MEMORY // MEMORY[known]
        raise ValueError(f"{width} x {height} are more than the {most:,} pixels of a {known}")


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


def check_tiles(image: Image.Image) -> None:
    """Refuse a TIFF whose tiles are much larger than itself."""
    tags = getattr(image, "tag_v2", {})
    width, height = (int(tags.get(tag, 0)) for tag in (322, 323))
    if width * height > max(LARGE_PIXELS, 4 * math.prod(image.size)):
        raise ValueError(f"its tiles of {width} x {height} pixels are larger than the image")


def memory(image: Image.Image, known: str, side: int | None) -> int:
    """About how many bytes decoding takes."""
    pixels = math.prod(image.size)
    if known != "JPEG":
        return pixels * MEMORY.get(known, PILLOW)
    coefficients = PROGRESSIVE * pixels if image.info.get("progressive") else 0
    part = min(1.0, DRAFTED * (side or max(image.size)) / max(min(image.size), 1))
    return coefficients + int(PILLOW * pixels * part * part)
