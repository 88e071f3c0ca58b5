"""Which images a data set has, of which class, and which of them are the test set."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frugalvae.errors import InputError
from frugalvae.images.decode import HEAD, format_of
from frugalvae.maths.split import held_out_rows

#: What claims to be an image; other files are images if their content is one.
ENDINGS = {".png", ".jpg", ".jpeg", ".jfif", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".avif"}
ENDINGS |= {".heic", ".heif", ".jp2", ".ppm", ".pgm"}
#: What cameras make beside photographs: a TIFF inside, of which no photograph can be made here.
RAW = {".nef", ".cr2", ".dng", ".arw", ".orf", ".rw2", ".pef", ".srw", ".3fr", ".iiq", ".nrw"}
KINDS = "JPEG, PNG, WebP, TIFF, BMP, GIF, AVIF, JPEG 2000, HEIC"
SPLITS = {"train", "test"}
TEST_PART = 0.25  # of each class, where there is no folder for the test
HOW = "expected one folder a class with its images in it, or train/ and test/ with such folders"


@dataclass(frozen=True)
class File:
    """A file of a data set: what reads it, and what changes when it is replaced."""

    read: Callable[[], bytes]
    stamp: tuple[int, ...]


#: Files by their path inside a data set.
Files = dict[PurePosixPath, File]


@dataclass(frozen=True)
class Listing:
    """The images of a data set, in the order of their paths.

    Attributes
    ----------
    labels
        The class of each image, named by its folder's path.
    test
        Whether it belongs to the test set.
    """

    name: str
    paths: list[PurePosixPath]
    files: list[File]
    labels: NDArray[np.str_]
    test: NDArray[np.bool_]


def list_images(roots: Sequence[Path], opened: ExitStack) -> Listing:
    """The images of folders and zip archives together; archives stay open as ``opened`` does.

    Classes and splits are as :func:`frugalvae.images.dataset.load_images` says.
    """
    files = _merge([_files(root, opened) for root in roots])
    return listing("+".join(root.stem for root in roots), files)


def list_test_images(root: Path, opened: ExitStack) -> Listing:
    """The images of a folder or a zip archive, all of them for the test, none for training."""
    files = _files(root, opened)
    _check_images(files, root.name)
    paths = sorted(files)
    labels = _labels(root.name, paths, [path.parent for path in paths])
    return Listing(
        root.name, paths, [files[path] for path in paths], labels, np.ones(len(paths), bool)
    )


def check_there(roots: Sequence[Path]) -> None:
    """Refuse paths that lead nowhere."""
    for root in roots:
        if not root.exists():
            raise InputError(f"{root}: there is no such file or folder; check the path")


def listing(name: str, files: Files) -> Listing:
    """Give each file its class, and split the files into training and test."""
    separate, paths = _has_splits(files, name), sorted(files)
    folders = [p.parent.relative_to(p.parts[0]) if separate else p.parent for p in paths]
    labels = _labels(name, paths, folders)
    if separate:
        test = np.array([path.parts[0] == "test" for path in paths])
    else:
        test = held_out_rows(labels, TEST_PART, seed=0)
    unknown = np.setdiff1d(labels[test], labels[~test])
    if len(unknown):
        raise InputError(f"{name}: test/ has classes that train/ lacks: {unknown[:5].tolist()}")
    return Listing(name, paths, [files[path] for path in paths], labels, test)


def _labels(
    name: str, paths: Sequence[PurePosixPath], folders: Sequence[PurePosixPath]
) -> NDArray[Any]:
    """Classes of images, named by their folders."""
    for path, folder in zip(paths, folders, strict=True):
        if not folder.parts:
            raise InputError(f"{name}: {path} is in no class's folder; {HOW}")
    return np.array([str(folder) for folder in folders])


def _files(root: Path, opened: ExitStack) -> Files:
    """All images of a folder or a zip archive, which stays open as long as ``opened``."""
    if root.is_dir():
        inside = {
            PurePosixPath(path.relative_to(root).as_posix()): path for path in root.rglob("*")
        }
        return {
            name: _on_disk(path)
            for name, path in inside.items()
            if not _hidden(name) and path.is_file() and is_image(name, partial(head_of, path))
        }
    try:
        archive = opened.enter_context(zipfile.ZipFile(root))
    except (zipfile.BadZipFile, OSError) as error:
        raise InputError(
            f"{root}: neither a folder nor a readable zip archive ({error}); {HOW}"
        ) from error
    entries = {PurePosixPath(e.filename): e for e in archive.infolist() if not e.is_dir()}
    files = {
        name: _zipped(archive, entry)
        for name, entry in entries.items()
        if not _hidden(name) and is_image(name, partial(_head_zipped, archive, entry))
    }
    wrapper = {path.parts[0] for path in files}
    if len(wrapper) > 1 or wrapper & SPLITS or any(len(path.parts) < 3 for path in files):
        return files
    return {path.relative_to(*wrapper): file for path, file in files.items()}


def _on_disk(path: Path) -> File:
    state = path.stat()
    return File(path.read_bytes, (state.st_size, state.st_mtime_ns))


def _zipped(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> File:
    return File(partial(archive.read, entry.filename), (entry.file_size, entry.CRC))


def is_image(name: PurePath, head: Callable[[], bytes]) -> bool:
    """Whether a file is an image, or claims to be one and is told when it is read.

    Parameters
    ----------
    name
        Of the file. Where its ending is that of an image, nothing is read.
    head
        What reads its first bytes.
    """
    ending = name.suffix.lower()
    if ending in ENDINGS or ending in RAW:
        return ending in ENDINGS
    try:
        return format_of(head()) is not None
    except Exception:  # zipfile fails in many ways
        return False


def head_of(path: Path) -> bytes:
    """The first bytes of a file."""
    with path.open("rb") as file:
        return file.read(HEAD)


def _head_zipped(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    with archive.open(entry) as file:
        return file.read(HEAD)


def _hidden(path: PurePosixPath) -> bool:
    return any(part.startswith(".") or part == "__MACOSX" for part in path.parts)


def _merge(parts: Sequence[Files]) -> Files:
    """All files together; those with the same path must be the same."""
    merged: Files = {}
    for files in parts:
        for path in files.keys() & merged.keys():
            if files[path].read() != merged[path].read():
                raise InputError(
                    f"{path} is in two of the given data sets and not the same image; "
                    "rename it in one of them"
                )
        merged |= files
    return merged


def _has_splits(files: Files, name: str) -> bool:
    """Whether there are folders for training and test; a class may be called so too."""
    _check_images(files, name)
    tops = {path.parts[0] for path in files if len(path.parts) > 2}
    if tops & SPLITS and tops != SPLITS:
        raise InputError(
            f"{name}: the folders are {', '.join(sorted(tops)[:5])}; train/ and test/ must be "
            "there both, and nothing beside them"
        )
    return tops == SPLITS


def _check_images(files: Files, name: str) -> None:
    if not files:
        raise InputError(f"{name}: no images in it ({KINDS}); {HOW}")
