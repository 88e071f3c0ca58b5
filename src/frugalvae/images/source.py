"""The images that are to be encoded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frugalvae.errors import InputError
from frugalvae.images.cifar import is_cifar, read_cifar
from frugalvae.images.decode import reading_images
from frugalvae.images.listing import (
    File,
    Files,
    Listing,
    check_there,
    list_images,
    list_test_images,
    listing,
)


@contextmanager
def open_images(path: str | Path) -> Iterator[Listing]:
    """The images of a folder, a zip archive or CIFAR-100, which can be read inside the block.

    Classes, training and test are as :func:`frugalvae.images.dataset.load_images` says.
    """
    path = Path(path)
    check_there([path])
    with ExitStack() as opened, reading_images():
        images = _cifar(path) if is_cifar(path) else list_images([path], opened)
        if not images.test.any():
            raise InputError(
                f"{images.name}: no class has two images, so that there is nothing to test with; "
                "add images, or make folders train/ and test/"
            )
        yield images


@contextmanager
def open_test_images(path: str | Path) -> Iterator[Listing]:
    """The images of a folder or a zip archive, all of which are for the test.

    Each folder in it that directly contains images is a class, named by its path.
    """
    path = Path(path)
    check_there([path])
    with ExitStack() as opened, reading_images():
        yield list_test_images(path, opened)


def _cifar(path: Path) -> Listing:
    files: Files = {}
    stamp = path.stat().st_size, path.stat().st_mtime_ns
    for split, (images, labels) in read_cifar(path).items():
        for number, (image, label) in enumerate(zip(images, labels, strict=True)):
            where = PurePosixPath(split, str(label), f"{number:05}.ppm")
            files[where] = File(partial(_as_ppm, image), stamp)
    return listing(path.name.split(".")[0], files)


def _as_ppm(pixels: NDArray[Any]) -> bytes:
    """An image as the simplest of all formats, of which nothing is lost."""
    height, width, _ = pixels.shape
    return b"P6 %d %d 255\n" % (width, height) + np.ascontiguousarray(pixels).tobytes()
