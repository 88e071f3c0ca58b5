"""Optional packages, and how to install them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from frugalvae.errors import MissingPackageError

#: The extra that installs each optional package.
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

#: The extra of parts that need more than the package that is found missing first.
PARTS = {"clip": "clip", "transformers": "clip", "prompt": "clip"}


@contextmanager
def needing(what: str, part: str = "") -> Iterator[None]:
    """If an optional package is missing inside the block, say how to install it.

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
