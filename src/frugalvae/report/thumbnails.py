"""Thumbnails that a page holds itself."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable

from PIL import Image, ImageOps

from frugalvae.images.decode import decode
from frugalvae.progress import track
from frugalvae.report.render import data_uri

SIDE = 128  # pixels; more than are shown, for screens with high resolution
QUALITY = 72


def thumbnails(rows: Iterable[int], read: Callable[[int], bytes] | None) -> dict[int, str]:
    """A thumbnail for each row; images that can no longer be read are left out.

    Parameters
    ----------
    rows
        Which images, in any order; repeated rows count once.
    read
        Returns the content of an image file; None if there are no images.
    """
    if read is None:
        return {}
    found = {}
    for row in track(sorted(set(rows)), "making thumbnails"):
        try:
            found[row] = thumbnail(read(row))
        except Exception:  # Pillow and zipfile fail in many ways, and the file was read before
            continue
    return found


def thumbnail(content: bytes, side: int = SIDE) -> str:
    """The middle of an image, upright: roughly what encoders see.

    >>> buffer = io.BytesIO()
    >>> Image.new("RGB", (300, 200), "red").save(buffer, "png")
    >>> thumbnail(buffer.getvalue())[:30]
    'data:image/jpeg;base64,/9j/4AA'
    """
    square = ImageOps.fit(decode(content, side), (side, side), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    square.save(buffer, "JPEG", quality=QUALITY, optimize=True)
    return data_uri(buffer.getvalue(), "image/jpeg")
