"""Packages that not every installation has, and how to install them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from frugalvae.errors import MissingPackageError

#: The extra of this package that installs another one.
EXTRAS = {
    "torch": "vae",
    "transformers": "clip",
    "huggingface_hub": "onnx",
    "tokenizers": "onnx",
    "pillow_heif": "heif",
    "jinja2": "report",
    "matplotlib": "report",
    "ray": "ray",
    "starlette": "serve",
    "uvicorn": "serve",
}

#: Parts that need more than the first package that is found missing.
PARTS = {"clip": "clip", "transformers": "clip", "prompt": "clip"}


@contextmanager
def needing(what: str, part: str = "") -> Iterator[None]:
    """Say how to install a package that ``what`` needs, if importing it fails inside the block.

    >>> with needing("The moon"):
    ...     raise ModuleNotFoundError(name="torch")
    Traceback (most recent call last):
    ...
    frugalvae.errors.MissingPackageError: The moon needs 'torch', which is not installed; ...
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").split(".")[0]
        if package not in EXTRAS:
            raise
        raise MissingPackageError(
            f"{what} needs {package!r}, which is not installed; "
            f"pip install 'frugalvae[{PARTS.get(part) or EXTRAS[package]}]'"
        ) from error
