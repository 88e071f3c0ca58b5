"""What is in a folder or a zip archive: the images, and why other files are left out.

All verbs look into folders with :func:`walk`, so that they find the same:

- Folders in folders are looked into, through links too, but no folder twice.
- What is hidden or a system's own (``@eaDir``, ``Thumbs.db``) is left out.
- An image is known by its ending, else by its first bytes.
- A zip archive is like the folder that it was made of. Nothing is unpacked to disk.
- Every file that is left out is named, with the reason.

Which class an image shows is said by :mod:`frugalvae.images.classes`.
"""

from __future__ import annotations

import os
import stat
import zipfile
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path, PurePosixPath

from frugalvae.errors import InputError
from frugalvae.formatting import printable, size
from frugalvae.images import UNPACKED
from frugalvae.images.classes import HOW, role_of
from frugalvae.images.decode import HEAD, MOST_BYTES, NO_FILE, File, format_of, on_disk, read_file

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
TOO_LARGE = "too large"
REPEATED = "the same folder again, by a link"
EMPTY = "a folder without images"
OUTSIDE = "a path that leads out of the archive"
TWICE = "there twice in the archive"
PACKED = "packed in a way that is not read here"


@dataclass
class Found:
    """What is in a folder or an archive.

    Attributes
    ----------
    name
        Of the folder, or of the archive without its ending.
    files
        The images, by their paths inside.
    skipped
        What is left out, by its path, with the reason.
    """

    name: str
    files: dict[PurePosixPath, File] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    def skip(self, path: PurePosixPath | str, why: str) -> None:
        """Leave a file out, or a folder, whose path ends in a slash."""
        self.skipped[str(path)] = why

    def add(self, path: PurePosixPath, file: File, head: Callable[[], bytes]) -> None:
        """Take a file if it is an image, by its ending, or else by its first bytes.

        What ends as an image and is none is found out when it is decoded.
        """
        ending = path.suffix.lower()
        if ending in RAW_ENDINGS:
            self.skip(path, RAW)
        elif ending in OTHER_ENDINGS:
            self.skip(path, OTHER)
        elif ending not in ENDINGS and not _begins_as_image(head):
            self.skip(path, NO_IMAGE)
        elif file.size > MOST_BYTES:
            self.skip(path, f"{TOO_LARGE} ({size(file.size)}, the most is {size(MOST_BYTES)})")
        else:
            self.files[path] = file


def _begins_as_image(head: Callable[[], bytes]) -> bool:
    try:
        return format_of(head()) is not None
    except Exception:  # zipfile fails in many ways
        return False


def walk(root: Path, opened: ExitStack) -> Found:
    """All images of a folder or a zip archive; archives stay open as ``opened``."""
    if not root.exists():
        raise InputError(f"{printable(str(root))}: there is no such file or folder; check the path")
    return _folder(root) if root.is_dir() else _archive(root, opened)


def is_hidden(name: str) -> bool:
    """Whether a file or a folder is one that people do not see, or did not make.

    >>> is_hidden(".thumbnails"), is_hidden("@eaDir"), is_hidden("cat")
    (True, True, False)
    """
    return name.startswith(".") or name.lower() in SYSTEM


# --------------------------------------------------------------------------- folders


def _folder(root: Path) -> Found:
    found = Found(Path(os.path.abspath(root)).name)  # "." has no name
    visited: set[tuple[int, int]] = set()
    folders, links = [PurePosixPath()], list[PurePosixPath]()
    while folders or links:
        inside = folders.pop() if folders else links.pop()  # links last: own names go first
        state = os.stat(root / inside)
        if (state.st_dev, state.st_ino) in visited:
            found.skip(f"{inside}/", REPEATED)
            continue
        visited.add((state.st_dev, state.st_ino))
        deeper, before = len(folders) + len(links), len(found.files)
        for entry in _entries(root / inside):
            path = inside / entry.name
            is_folder = Path(entry.path).is_dir() if entry.is_symlink() else entry.is_dir()
            if is_hidden(entry.name):
                found.skip(f"{path}/" if is_folder else path, HIDDEN)
            elif is_folder:
                (links if entry.is_symlink() else folders).append(path)
            else:
                _add(found, path, entry)
        nothing = len(found.files) == before and len(folders) + len(links) == deeper
        if nothing and inside.parts:
            found.skip(f"{inside}/", EMPTY)
    found.files = dict(sorted(found.files.items()))
    found.skipped = dict(sorted(found.skipped.items()))
    return found


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        return sorted(os.scandir(folder), key=lambda entry: entry.name, reverse=True)
    except OSError as error:
        raise InputError(
            f"{printable(str(folder))} cannot be looked into ({error.strerror}); change who may "
            "read it"
        ) from error


def _add(found: Found, path: PurePosixPath, entry: os.DirEntry[str]) -> None:
    """Take a file of a folder; a link that leads nowhere is told when it is read."""
    place = Path(entry.path)
    if place.is_file() if entry.is_symlink() else entry.is_file():  # it may be a link to itself
        found.add(path, on_disk(place), partial(read_file, place, HEAD))
    elif entry.is_symlink() and not place.exists():
        found.add(path, File(partial(read_file, place)), bytes)
    else:
        found.skip(path, NO_FILE)


# --------------------------------------------------------------------------- archives


def _archive(root: Path, opened: ExitStack) -> Found:
    try:
        if not root.is_file():
            raise OSError(f"it is {NO_FILE}")
        archive = opened.enter_context(zipfile.ZipFile(root))
    except (zipfile.BadZipFile, OSError, NotImplementedError) as error:
        raise InputError(
            f"{printable(str(root))}: neither a folder nor a readable zip archive ({error}); {HOW}"
        ) from error
    found = Found(root.stem)
    for position, entry in enumerate(archive.infolist()):
        name = entry.filename.replace("\\", "/")
        path = PurePosixPath(name)
        why = _why_not_unpacked(path, entry)
        if name.endswith("/"):
            continue
        if why is not None or path in found.files:
            found.skip(path, why or TWICE)
        else:
            read = Zipped(str(root), position, archive)
            file = File(read, (entry.file_size, entry.CRC), entry.file_size)
            found.add(path, file, partial(_head_zipped, archive, entry))
    found.files = dict(sorted(_unwrapped(found.files).items()))
    return found


class Zipped:
    """Reads a file of an archive; in another process, from an archive that is opened there."""

    def __init__(self, path: str, position: int, archive: zipfile.ZipFile | None = None) -> None:
        self.path, self.position, self.archive = path, position, archive

    def __call__(self) -> bytes:
        """The bytes of the file."""
        archive = self.archive or _opened(self.path)
        return archive.read(archive.infolist()[self.position])

    def __reduce__(self) -> tuple[type[Zipped], tuple[str, int]]:
        return Zipped, (self.path, self.position)


@cache
def _opened(path: str) -> zipfile.ZipFile:
    return zipfile.ZipFile(path)


def _why_not_unpacked(path: PurePosixPath, entry: zipfile.ZipInfo) -> str | None:
    if path.is_absolute() or ".." in path.parts:
        return OUTSIDE
    if any(map(is_hidden, path.parts)):
        return HIDDEN
    if not path.parts or stat.S_ISLNK(entry.external_attr >> 16):
        return NO_FILE
    return None if entry.compress_type in UNPACKED else PACKED


def _head_zipped(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    with archive.open(entry) as file:
        return file.read(HEAD)


def _unwrapped(files: dict[PurePosixPath, File]) -> dict[PurePosixPath, File]:
    """Without the one folder around everything that archives often have."""
    wrapper, depths = {path.parts[0] for path in files}, Counter(len(p.parts) for p in files)
    folders = {path.parts[1] for path in files if len(path.parts) > 2}
    few = not depths[2] or (2 * depths[2] <= len(files) and len(folders) > 1)  # beside folders
    if len(wrapper) != 1 or depths[1] or not few:
        return files
    if any(map(role_of, wrapper)):
        return files
    return {path.relative_to(*wrapper): file for path, file in files.items()}
