"""The images that a user points at: of classes to learn, or to be named.

Folders come from cameras, archives and other systems. Nothing in them is passed over in
silence: what is left out is counted or named.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath

import numpy as np

from frugalvae.errors import InputError
from frugalvae.formatting import shortened
from frugalvae.images.listing import KINDS, SPLITS, File, Listing, head_of, is_image

HOW = "expected a folder with a folder of images for each class"


@dataclass
class Found:
    """What is in a folder.

    Attributes
    ----------
    images
        Paths inside the folder, by class.
    empty
        Folders with no image in them.
    ignored
        Files that are no images, or no files.
    repeated
        Folders that are other folders again, by way of links.
    merged
        Classes of which several folders have the same name in different writings.
    aside
        Whether there is a folder ``test`` that is left alone.
    """

    root: Path
    images: dict[str, list[Path]] = field(default_factory=dict)
    empty: list[str] = field(default_factory=list)
    ignored: list[Path] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)
    merged: list[str] = field(default_factory=list)
    aside: bool = False

    def listing(self, classes: Iterable[str]) -> Listing:
        """The images of some classes, none of them for a test."""
        chosen = [(name, path) for name in sorted(classes) for path in self.images[name]]
        paths = [PurePosixPath(path.relative_to(self.root).as_posix()) for _, path in chosen]
        return Listing(
            self.root.name,
            paths,
            [on_disk(path) for _, path in chosen],
            np.array([name for name, _ in chosen], dtype=np.str_),
            np.zeros(len(chosen), bool),
        )

    def remarks(self) -> list[str]:
        """What a user may not have meant, a line each."""
        lines = []
        if self.aside:
            lines.append("test/ is left alone: only train/ is learned")
        if self.ignored:
            names = shortened([f"{path.parent.name}/{path.name}" for path in self.ignored])
            lines.append(f"ignored, as no images that can be read: {names}")
        if self.empty:
            lines.append(f"no images in {shortened(self.empty)}")
        lines += [f"{name} is another folder again, and left out" for name in self.repeated]
        lines += [f"class {name!r}: several folders write it differently" for name in self.merged]
        return lines


def find_classes(root: Path) -> Found:
    """Images by class, each class named by its folder's path.

    A folder of images alone is one class, named as the folder is. Where there are
    ``train`` and ``test``, ``train`` is looked into.
    """
    check_folder(root)
    found = Found(root)
    tops = {path.name for path in visible(root) if path.is_dir()}
    if tops == SPLITS:
        found.aside, found.root = True, root / "train"
    for folder, files in walk(found.root, found):
        pictures = list(filter(is_picture, files))
        found.ignored += sorted({*files}.difference(pictures))
        name = folder.relative_to(found.root).as_posix()
        if pictures:
            add(found, name, pictures)
        elif name != "." and not any(path.is_dir() for path in visible(folder)):
            found.empty.append(name)
    check_found(found)
    return found


def add(found: Found, name: str, pictures: list[Path]) -> None:
    """Count the images of a folder to its class."""
    label = as_label(name)
    if label in found.images:
        found.merged.append(label)
    found.images.setdefault(label, []).extend(pictures)


def check_found(found: Found) -> None:
    """Refuse a folder of which it is not plain what its classes are."""
    if not found.images:
        raise InputError(f"{found.root}: no images in it ({KINDS}); {HOW}")
    if "." in found.images:
        if len(found.images) > 1:
            raise InputError(
                f"{found.root}: {found.images['.'][0].name} is in no class's folder, and there are "
                f"folders of images beside it; {HOW}"
            )
        single = Path(os.path.abspath(found.root))  # "." has no name
        found.root = single.parent
        found.images = {as_label(single.name): [single / path.name for path in found.images["."]]}


def as_label(name: str) -> str:
    """A name as all systems would write it: accents are parts of their letters.

    >>> len(as_label("R" + chr(0x75) + chr(0x308) + "ppell"))  # u, and two dots above it
    7
    """
    return unicodedata.normalize("NFC", name)


def check_case(new: Iterable[str], known: Iterable[str]) -> None:
    """Refuse names that differ in nothing but upper and lower case."""
    seen = {name.casefold(): name for name in known}
    for name in new:
        other = seen.setdefault(name.casefold(), name)
        if other != name:
            raise InputError(
                f"classes {other!r} and {name!r} differ only in upper and lower case; rename the "
                "folder if they are one class, or give --case-matters if they are two"
            )


def find_images(root: Path) -> list[Path]:
    """All images of a folder and of the folders in it."""
    check_folder(root)
    return [path for _, files in walk(root, Found(root)) for path in files if is_picture(path)]


def walk(root: Path, found: Found) -> Iterator[tuple[Path, list[Path]]]:
    """Each folder with its files, in order; through links, but no folder twice."""
    seen: set[tuple[int, int]] = set()
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        state = folder.stat()
        if (state.st_dev, state.st_ino) in seen:
            found.repeated.append(folder.relative_to(root).as_posix())
            continue
        seen.add((state.st_dev, state.st_ino))
        inside = visible(folder)
        yield folder, [path for path in inside if not path.is_dir()]
        waiting += reversed([path for path in inside if path.is_dir()])


def visible(folder: Path) -> list[Path]:
    """What is in a folder, but for what systems hide there."""
    try:
        inside = sorted(folder.iterdir())
    except OSError as error:
        raise InputError(
            f"{folder} cannot be looked into ({error.strerror}); change who may read it"
        ) from error
    return [path for path in inside if not path.name.startswith(".") and path.name != "__MACOSX"]


def is_picture(path: Path) -> bool:
    """Whether a file is an image; a link that leads nowhere is told when it is read."""
    plain = path.is_file() or (path.is_symlink() and not path.exists())
    return plain and is_image(path, partial(head_of, path))


def on_disk(path: Path) -> File:
    """A file as encoding takes it."""
    try:
        state = os.stat(path)
    except OSError:  # a broken link: reading it says so
        return File(partial(read_file, path), (0, 0))
    return File(partial(read_file, path), (state.st_size, state.st_mtime_ns))


def read_file(path: Path) -> bytes:
    """The bytes of a file; an error that does not repeat its name."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(error.strerror or str(error)) from error


def check_folder(root: Path) -> None:
    """Refuse what is no folder."""
    if not root.exists():
        raise InputError(f"{root}: there is no such folder or file; check the path")
    if not root.is_dir():
        raise InputError(
            f"{root}: neither a folder nor a feature file (.npz), {HOW}; unpack archives"
        )
