"""Images with labels: from folders, zip archives and CIFAR-100."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from frugalvae.data.cifar import is_cifar, read_cifar
from frugalvae.data.digits import split_digits
from frugalvae.data.features import held_out_rows
from frugalvae.errors import InputError, check_number
from frugalvae.progress import track

ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm")
SPLITS = {"train", "test"}
TEST_PART = 0.25  # of each class, where there is no folder for the test
HOW = "expected one folder a class with its images in it, or train/ and test/ with such folders"

#: Files by their path inside a data set, each with what reads it.
Files = dict[PurePosixPath, Callable[[], bytes]]


@dataclass(frozen=True)
class Images:
    """Training and test images of one data set.

    Attributes
    ----------
    x_train, x_test
        Red, green and blue from 0 to 255, shape (n, size, size, 3), uint8.
    y_train, y_test
        The label of each image: integers or names.
    """

    name: str
    x_train: NDArray[np.uint8]
    y_train: NDArray[Any]
    x_test: NDArray[np.uint8]
    y_test: NDArray[Any]

    @property
    def classes(self) -> NDArray[Any]:
        """All labels of the training set, in ascending order."""
        return np.unique(self.y_train)

    def held_out(self, part: float, seed: int) -> Images:
        """The same with a part of each class's training images in place of the test set.

        For choosing settings: the test set is never looked at.
        """
        out = held_out_rows(self.y_train, part, seed)
        return replace(
            self,
            name=f"{self.name} (held out)",
            x_train=self.x_train[~out],
            y_train=self.y_train[~out],
            x_test=self.x_train[out],
            y_test=self.y_train[out],
        )


def digit_images() -> Images:
    """Scikit-learn's digits, 8 x 8 pixels, split as :func:`frugalvae.data.digits.load_digits`.

    >>> digit_images().x_train.shape
    (1257, 8, 8, 3)
    """
    x_train, x_test, y_train, y_test = split_digits()
    grey = [(x * (255 / 16)).round().astype(np.uint8) for x in (x_train, x_test)]
    train, test = (x.reshape(-1, 8, 8, 1).repeat(3, axis=3) for x in grey)
    return Images("digits", train, y_train, test, y_test)


def load_images(paths: str | Path | Sequence[str | Path], size: int = 32) -> Images:
    """Read a data set of images, and make all of them ``size`` x ``size`` pixels.

    Parameters
    ----------
    paths
        One of these, or several of the first two, which are merged; a file that two
        of them have is counted once.

        - A folder. Each folder in it that directly contains images is a class, named
          by its path: ``alphabet/character``. If all of these are in ``train/`` and
          ``test/``, these are the two sets; if not, a random quarter of each class,
          always the same, is the test set. Files that are no images, and hidden
          ones, are passed over.
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
    for root in roots:
        if not root.exists():
            raise InputError(f"{root}: there is no such file or folder; check the path")
        if is_cifar(root) and len(roots) > 1:
            raise InputError(f"{root}: a CIFAR archive cannot be merged; load it alone")
    if not roots:
        raise InputError("no paths were given; give at least one folder or archive of images")
    if is_cifar(roots[0]):
        return _load_cifar(roots[0], size)
    with ExitStack() as opened:
        files = _merge([_files(root, opened) for root in roots])
        return _read(files, "+".join(root.stem for root in roots), size)


def _load_cifar(path: Path, size: int) -> Images:
    parts = read_cifar(path)
    (x_train, y_train), (x_test, y_test) = parts["train"], parts["test"]
    if size != x_train.shape[1]:
        x_train, x_test = (
            np.stack([_resized(Image.fromarray(image), size) for image in x])
            for x in (x_train, x_test)
        )
    return Images(path.name.split(".")[0], x_train, y_train, x_test, y_test)


def _files(root: Path, opened: ExitStack) -> Files:
    """All images of a folder or a zip archive, which stays open as long as ``opened``."""
    if root.is_dir():
        found = [path for path in root.rglob("*") if path.is_file()]
        return _only_images(
            {PurePosixPath(path.relative_to(root).as_posix()): path.read_bytes for path in found}
        )
    try:
        archive = opened.enter_context(zipfile.ZipFile(root))
    except (zipfile.BadZipFile, OSError) as error:
        raise InputError(
            f"{root}: neither a folder nor a readable zip archive ({error}); {HOW}"
        ) from error
    entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    files = _only_images(
        {PurePosixPath(e.filename): partial(archive.read, e.filename) for e in entries}
    )
    wrapper = {path.parts[0] for path in files}
    if len(wrapper) > 1 or wrapper & SPLITS or any(len(path.parts) < 3 for path in files):
        return files
    return {path.relative_to(*wrapper): read for path, read in files.items()}


def _only_images(files: Files) -> Files:
    return {
        path: read
        for path, read in files.items()
        if path.suffix.lower() in ENDINGS
        and not any(part.startswith(".") or part == "__MACOSX" for part in path.parts)
    }


def _merge(parts: Sequence[Files]) -> Files:
    """All files together; those with the same path must be the same."""
    merged: Files = {}
    for files in parts:
        for path in files.keys() & merged.keys():
            if files[path]() != merged[path]():
                raise InputError(
                    f"{path} is in two of the given data sets and not the same image; "
                    "rename it in one of them"
                )
        merged |= files
    return merged


def _read(files: Files, name: str, size: int) -> Images:
    """Decode all files and split them into training and test."""
    separate, paths = _has_splits(files, name), sorted(files)
    folders = [p.parent.relative_to(p.parts[0]) if separate else p.parent for p in paths]
    for path, folder in zip(paths, folders, strict=True):
        if not folder.parts:
            raise InputError(f"{name}: {path} is in no class's folder; {HOW}")
    reading = track(paths, "reading images")
    x = np.stack([_decode(files[path], f"{name}: {path}", size) for path in reading])
    y = np.array([str(folder) for folder in folders])
    if separate:
        test = np.array([path.parts[0] == "test" for path in paths])
    else:
        test = held_out_rows(y, TEST_PART, seed=0)
    unknown = np.setdiff1d(y[test], y[~test])
    if len(unknown):
        raise InputError(f"{name}: test/ has classes that train/ lacks: {unknown[:5].tolist()}")
    return Images(name, x[~test], y[~test], x[test], y[test])


def _has_splits(files: Files, name: str) -> bool:
    """Whether there are folders for training and test; a class may be called so too."""
    if not files:
        raise InputError(f"{name}: no images in it (files that end in {', '.join(ENDINGS)}); {HOW}")
    tops = {path.parts[0] for path in files if len(path.parts) > 2}
    if tops & SPLITS and tops != SPLITS:
        raise InputError(
            f"{name}: the folders are {', '.join(sorted(tops)[:5])}; train/ and test/ must be "
            "there both, and nothing beside them"
        )
    return tops == SPLITS


def _decode(read: Callable[[], bytes], name: str, size: int) -> NDArray[np.uint8]:
    try:
        with Image.open(io.BytesIO(read())) as image:
            return _resized(image, size)
    except Exception as error:  # Pillow and zipfile fail in many ways
        raise InputError(
            f"{name} cannot be read as an image ({error}); repair or remove it"
        ) from error


def _resized(image: Image.Image, size: int) -> NDArray[np.uint8]:
    """Upright, in red, green and blue, transparent parts white, ``size`` x ``size``."""
    upright = ImageOps.exif_transpose(image)
    if upright.mode.startswith("I"):  # 16 bits of grey, which converting would clip
        grey = np.asarray(upright).clip(0, 65535) / 257
        upright = Image.fromarray(grey.round().astype(np.uint8))
    colours = upright.convert("RGBA")
    opaque = Image.alpha_composite(Image.new("RGBA", colours.size, "white"), colours)
    return np.asarray(opaque.convert("RGB").resize((size, size), Image.Resampling.BILINEAR))
