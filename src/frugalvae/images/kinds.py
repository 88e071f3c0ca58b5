"""Which files are images that can be read here, and why others are left out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath

from frugalvae.formatting import size
from frugalvae.images.decode import format_of
from frugalvae.images.limits import MOST_BYTES

#: What claims to be an image; other files are images if their content is one.
ENDINGS = {".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".bmp", ".gif", ".tif", ".tiff", ".webp"}
ENDINGS |= {".avif", ".heic", ".heif", ".hif", ".jp2", ".j2k", ".ppm", ".pgm"}
#: What cameras write besides photographs: often a TIFF inside, with no finished picture.
RAW_ENDINGS = {".nef", ".cr2", ".cr3", ".dng", ".arw", ".orf", ".rw2", ".raf", ".pef", ".srw"}
RAW_ENDINGS |= {".3fr", ".iiq", ".nrw"}
OTHER_ENDINGS = {".ico", ".icns", ".svg", ".psd", ".xcf", ".eps", ".tga", ".jxl", ".exr", ".dds"}
KINDS = "JPEG, PNG, WebP, TIFF, BMP, GIF, AVIF, JPEG 2000, HEIC"

#: Names of files and folders that systems make for themselves, in lower case.
SYSTEM = {"__macosx", "@eadir", "@tmp", "#recycle", "@recycle", "$recycle.bin", "recycler"}
SYSTEM |= {"system volume information", "lost+found", "thumbs.db", "ehthumbs.db", "desktop.ini"}
SYSTEM |= {"icon\r"}

# Why a file is left out. What is in parentheses differs from file to file.
HIDDEN = "hidden, or a system's own"
NO_IMAGE = "not an image"
RAW = "a camera's raw file; convert it to JPEG"
OTHER = "an image of a kind that is not read here; convert it to JPEG or PNG"
NO_FILE = "not a regular file"
TOO_LARGE = "too large"


def is_hidden(name: str) -> bool:
    """Whether a file or a folder is one that people do not see, or did not make.

    >>> is_hidden(".thumbnails"), is_hidden("@eaDir"), is_hidden("cat")
    (True, True, False)
    """
    return name.startswith(".") or name.lower() in SYSTEM


def why_left_out(name: PurePath, taken: int, head: Callable[[], bytes]) -> str | None:
    """Why a file is not read as an image; None if it is one, or claims to be.

    What claims to be an image and is none is found out when it is decoded.

    Parameters
    ----------
    name
        Of the file. Where its ending tells what it is, nothing is read.
    taken
        Its size in bytes.
    head
        What reads its first bytes.
    """
    ending = name.suffix.lower()
    if ending in RAW_ENDINGS:
        return RAW
    if ending in OTHER_ENDINGS:
        return OTHER
    if ending not in ENDINGS:
        try:
            if format_of(head()) is None:
                return NO_IMAGE
        except Exception:  # zipfile fails in many ways
            return NO_IMAGE
    if taken > MOST_BYTES:
        return f"{TOO_LARGE} ({size(taken)}, the most is {size(MOST_BYTES)})"
    return None
