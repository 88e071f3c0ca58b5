"""Files that are made once on a machine and found again: networks as ONNX Runtime takes them."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from frugalvae.errors import InputError
from frugalvae.files import write_bytes


def cache_folder() -> Path:
    """``$FRUGALVAE_CACHE``, or the user's folder for what can be made again."""
    if given := os.environ.get("FRUGALVAE_CACHE"):
        return Path(given)
    usual = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(usual) / "frugalvae"


def cached(name: str, make: Callable[[], bytes]) -> bytes:
    """What ``make`` gives, from the cache if it is there.

    A file's name ends with the digest of its content: one that is damaged, or of something
    else, is made anew. Where nothing can be written, it is made each time.
    """
    folder = cache_folder()
    for path in folder.glob(f"{name}-*.onnx"):
        with suppress(OSError):
            content = path.read_bytes()
            if path.name == _file_name(name, content):
                return content
    content = make()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_bytes(folder / _file_name(name, content), content)
    except (InputError, OSError) as error:
        logging.getLogger(__name__).warning(
            "%s is made anew each time: it cannot be kept (%s); set FRUGALVAE_CACHE to a folder "
            "that can be written",
            name,
            error,
        )
    return content


def _file_name(name: str, content: bytes) -> str:
    return f"{name}-{hashlib.blake2b(content, digest_size=8).hexdigest()}.onnx"
