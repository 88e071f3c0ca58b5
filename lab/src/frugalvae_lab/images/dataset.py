"""Data sets to compare with: images of folders, zip archives and CIFAR-100, and digits."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from frugalvae.console import track
from frugalvae.errors import InputError, check_number, needing
from frugalvae.images.classes import Found, walk
from frugalvae.images.decode import decode, reading_images
from frugalvae.images.feature_file import Features, Split
from frugalvae.samples import Samples, list_classes
from frugalvae_lab.images.cifar import is_cifar, read_cifar


@dataclass(frozen=True)
class Images(Split):
    """Training and test images of one data set.

    Attributes
    ----------
    x_train, x_test
        Red, green and blue from 0 to 255, shape (n, size, size, 3), uint8.
    y_train, y_test
        The label of each image: integers or names.
    """


def load_images(paths: str | Path | Sequence[str | Path], size: int = 32) -> Images:
    """Read a data set of images, and make all of them ``size`` x ``size`` pixels.

    Parameters
    ----------
    paths
        One of these, or several of the first two, which are merged; a file that two
        of them have is counted once.

        - A folder. Each folder in it that directly contains images is a class, named
          by its path: ``alphabet/character``; see :mod:`frugalvae.images.classes`. If these
          are in ``train/`` and ``test/``, these are the two sets; if not, a random quarter
          of each class, always the same, is the test set. An image is known by its
          content, if not by its name; files that are none, and hidden ones, are left out.
        - A zip archive of such a folder, which may be wrapped in one more folder.
          Nothing is unpacked to disk.
        - CIFAR-100 for Python, ``cifar-100-python.tar.gz`` or its unpacked folder.

    Examples
    --------
    >>> load_images("absent.zip")
    Traceback (most recent call last):
    ...
    frugalvae.errors.InputError: absent.zip: there is no such file or folder; check the path
    """
    check_number("size", size, 1, whole=True)
    roots = [Path(p) for p in ([paths] if isinstance(paths, str | Path) else paths)]
    if not roots:
        raise InputError("no paths were given; give at least one folder or archive of images")
    for root in filter(is_cifar, roots):
        if len(roots) > 1:
            raise InputError(f"{root}: a CIFAR archive cannot be merged; load it alone")
        return _load_cifar(root, size)
    with ExitStack() as opened, reading_images():
        images = list_classes(merged([walk(root, opened) for root in roots]), "both")
        reading = track(range(len(images)), "reading images")
        x = np.stack([_decoded(images, number, size) for number in reading])
    y, test = images.labels, images.test
    return Images(images.name, x[~test], y[~test], x[test], y[test])


def merged(parts: Sequence[Found]) -> Found:
    """What is in several folders or archives; files with the same path must be the same."""
    whole = Found("+".join(part.name for part in parts))
    for part in parts:
        for path in part.files.keys() & whole.files.keys():
            if part.files[path].read() != whole.files[path].read():
                raise InputError(
                    f"{path} is in two of the given data sets and not the same "
                    "image; rename it in one of them"
                )
        whole.files |= part.files
        whole.skipped |= part.skipped
    return whole


def _load_cifar(path: Path, size: int) -> Images:
    parts = read_cifar(path)
    (x_train, y_train), (x_test, y_test) = parts["train"], parts["test"]
    if size != x_train.shape[1]:
        x_train, x_test = (
            np.stack([_resized(Image.fromarray(image), size) for image in x])
            for x in (x_train, x_test)
        )
    return Images(path.name.split(".")[0], x_train, y_train, x_test, y_test)


def _decoded(images: Samples, number: int, size: int) -> NDArray[np.uint8]:
    try:
        return _resized(decode((images.files or [])[number].read()), size)
    except Exception as error:  # Pillow and zipfile fail in many ways
        raise InputError(
            f"{images.name}: {images.names[number]} cannot be read as an image ({error}); "
            "repair or remove it"
        ) from error


def _resized(image: Image.Image, size: int) -> NDArray[np.uint8]:
    return np.asarray(image.resize((size, size), Image.Resampling.BILINEAR))


# --------------------------------------------------------------------------- digits


def load_digits() -> Features:
    """1,797 digits of 8 x 8 pixels between 0 and 1, always split 70 to 30 alike.

    >>> digits = load_digits()
    >>> digits.x_train.shape, digits.x_test.shape
    ((1257, 64), (540, 64))
    """
    x_train, x_test, y_train, y_test = split_digits()
    scaled = [(x / 16).astype(np.float32) for x in (x_train, x_test)]
    return Features("digits", scaled[0], y_train, scaled[1], y_test)


def split_digits() -> list[NDArray[Any]]:
    """Pixels from 0 to 16 for training and for the test, (n, 64) each, then their labels."""
    with needing("the data set 'digits'"):
        from sklearn.datasets import load_digits as bundled
        from sklearn.model_selection import train_test_split

    pixels, labels = bundled(return_X_y=True)
    return train_test_split(pixels, labels, test_size=0.3, random_state=0, stratify=labels)


def digit_images() -> Images:
    """Scikit-learn's digits, 8 x 8 pixels, split as :func:`load_digits`.

    >>> digit_images().x_train.shape
    (1257, 8, 8, 3)
    """
    x_train, x_test, y_train, y_test = split_digits()
    grey = [(x * (255 / 16)).round().astype(np.uint8) for x in (x_train, x_test)]
    train, test = (x.reshape(-1, 8, 8, 1).repeat(3, axis=3) for x in grey)
    return Images("digits", train, y_train, test, y_test)
