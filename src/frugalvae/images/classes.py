"""Which images are in a folder, which of its folders are classes, and which are parts.

A part is for training, validation or test. A class is a folder, named by its path. One set of
rules holds for folders and zip archives, and for all verbs:

- ``--depth N`` says it: classes are N levels deep, and folders inside them belong to them.
- Else, a folder inside a known class belongs to that class.
- Else, a class is the outermost folder with images of its own; what is inside belongs to it.
  Where such folders are at different depths below one folder of the first level (as
  ``cat/cam 1/2024-05`` and ``cat/cam 2``), that folder is the class. Where classes would be of the
  first level here and deeper there, it is not plain which are meant: an error.
- A folder of images alone is one class, named as the folder.
- A few images beside folders of classes are left out. Where these are all in one more folder, it
  is not plain what that is: an error. Around a zip archive's it is left out, too.
- Parts for training, validation and test, in all their spellings, are around the classes
  (``train/cat``) or inside them (``cat/train``), and may be wrapped in one more folder. They
  never become classes in silence: what is not plain is an error.

What was assumed is told in ``Samples.notes``.
"""

from __future__ import annotations

import os
import stat
import zipfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path, PurePosixPath
from typing import Literal

from frugalvae.errors import InputError
from frugalvae.formatting import plural, printable, shortened, size
from frugalvae.images import UNPACKED
from frugalvae.images.decode import HEAD, MOST_BYTES, NO_FILE, File, format_of, on_disk, read_file
from frugalvae.labels import LONGEST, as_label, is_plain

HOW = "expected one folder per class with its images in it, or a zip archive of such folders"
LOOSE = "in no class's folder"
NEXT_TO_PARTS = "next to the folders for training and test"
TRAIN, VALIDATION, TEST = "training", "validation", "the test"
ROLES = {
    **dict.fromkeys(("train", "training", "trainset", "train_set"), TRAIN),
    **dict.fromkeys(("val", "valid", "validation", "validate", "dev"), VALIDATION),
    **dict.fromkeys(("test", "testing", "testset", "test_set"), TEST),
}
ASIDE = "aside"  # the role of folders beside those for training and test
DEPTH = "or give --depth 1 if they are classes"

#: What images are wanted for: to learn, to be tested with, or for both.
Wanted = Literal["learning", "testing", "both"]

#: The names of the folders that an image is in, from the outside.
Folder = tuple[str, ...]
#: What claims to be an image; other files are images if their content is one.
ENDINGS = {".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".bmp", ".gif", ".tif", ".tiff", ".webp"}


def assign_classes(
    name: str,
    paths: Iterable[PurePosixPath],
    wanted: Wanted,
    depth: int | None = None,
    known: Collection[str] = (),
) -> tuple[dict[PurePosixPath, tuple[str, str | None]], dict[str, str], list[str]]:
    """The class of each image that is wanted, and the role of its part of the data.

    With them come the images that are left out, each with the reason, and what was assumed.

    Parameters
    ----------
    name
        Of all of it.
    paths
        Of all images, inside it.
    depth, known
        How deep classes are, if that was said; and classes that are known.
    """
    try:
        folders = {path: tuple(map(as_label, path.parts[:-1])) for path in paths}
        places = divide(set(folders.values()), depth, known)
        chosen, notes = choose_parts(Counter(places[folder] for folder in folders.values()), wanted)
    except InputError as error:
        raise InputError(f"{name}: {error}") from error
    place_of = {path: places[folder] for path, folder in sorted(folders.items())}
    skipped = {str(path): NEXT_TO_PARTS for path, at in place_of.items() if at.role == ASIDE}
    place_of = {path: place for path, place in place_of.items() if place in chosen}
    counts = Counter(place.inside for place in place_of.values())
    classes, more = find_classes(name, counts, depth, known, {place.part for place in chosen})
    skipped |= {str(path): LOOSE for path, at in place_of.items() if at.inside not in classes}
    found: dict[PurePosixPath, tuple[str, str | None]] = {}
    written: dict[str, set[Folder]] = {}  # how the folders of each class are called
    for path, place in place_of.items():
        if place.inside in classes:
            label, start = "/".join(classes[place.inside]), place.start
            found[path] = label, place.role
            way = path.parent.parts[start : start + label.count("/") + 1]
            written.setdefault(label, set()).add(way)
    for label, ways in written.items():
        if len(label) > LONGEST or not all(map(is_plain, label.split("/"))):
            raise InputError(
                f"{name}: the folder '{printable(label)}' cannot be a class: its name is "
                "blank, has control characters, or is not UTF-8, or is longer than "
                f"{LONGEST} characters; rename it"
            )
        if len(ways) > 1:
            more.append(f"class {label!r}: several folders write it differently")
    return found, skipped, notes + more


def find_classes(
    name: str,
    counts: Counter[Folder],
    depth: int | None = None,
    known: Collection[str] = (),
    parts: Collection[str] = ("",),
) -> tuple[dict[Folder, Folder], list[str]]:
    """The class of each folder with images, and what was assumed; loose images have none.

    Parameters
    ----------
    name
        Of all of it, which is the class of images that are in no folder at all.
    counts
        How many images each folder has itself.
    depth, known
        How deep classes are, if that was said; and classes that are known.
    parts
        The folders for training or test that are around all of these, if there are any.

    Examples
    --------
    >>> find_classes("set", Counter({("cat", "may"): 2, ("cat",): 3, ("emu",): 4}))[0]
    {('cat', 'may'): ('cat',), ('cat',): ('cat',), ('emu',): ('emu',)}
    """
    folders = [folder for folder in counts if folder]
    if not folders:
        if {*parts} != {""}:
            raise InputError(
                f"{name}: the images of {', '.join(sorted(parts))}/ are {LOOSE}; {HOW}"
            )
        return {(): (as_label(name),)}, []
    if 2 * counts[()] > counts.total():
        raise InputError(
            f"{name}: {counts[()]:,} images are {LOOSE}, and {counts.total() - counts[()]:,} are "
            f"in folders; {HOW}"
        )
    if depth is not None:
        return {folder: folder[:depth] for folder in folders}, []
    within = {folder: _known(folder, known) for folder in folders}
    new = [folder for folder in folders if not within[folder]]
    _check_around(name, new, counts)
    within |= _outermost(name, new)
    return within, _assumed(within)


def _check_around(name: str, folders: Sequence[Folder], counts: Counter[Folder]) -> None:
    """Refuse a single folder that may be a class, or the one around all classes."""
    tops, inside = {folder[:1] for folder in folders}, {folder[:2] for folder in folders}
    for top in tops if len(tops) == 1 else ():
        within = sum(counts[folder] for folder in folders)
        if top in inside and len(inside) > 2 and 2 * counts[top] <= within:
            raise InputError(
                f"{name}: {plural(counts[top], 'image')} in {top[0]}/ itself, and "
                f"{within - counts[top]:,} in {len(inside) - 1} folders inside it. If these are "
                f"the classes, give {top[0]}/ itself; if {top[0]} is the class, give --depth 1"
            )


def _known(folder: Folder, known: Collection[str]) -> Folder:
    """The innermost known class around a folder; nothing if there is none."""
    around = (folder[:level] for level in range(len(folder), 0, -1))
    return next((outer for outer in around if "/".join(outer) in known), ())


def _outermost(name: str, folders: Sequence[Folder]) -> dict[Folder, Folder]:
    """Folders with images that are in no other such folder; of mixed depth, the first level."""
    there, depths = set(folders), dict[str, set[int]]()
    within = {}
    for folder in folders:
        around = (folder[:level] for level in range(1, len(folder) + 1))
        within[folder] = next(outer for outer in around if outer in there)
        depths.setdefault(folder[0], set()).add(len(within[folder]))
    mixed = {top for top, levels in depths.items() if len(levels) > 1}
    nested = [outer for outer in within.values() if len(outer) > 1 and outer[0] not in mixed]
    if mixed and nested:
        deepest = max(map(len, within.values()))
        raise InputError(
            f"{name}: folders with images are at different depths. If the first level is the "
            f"class, such as {min(mixed)}, give --depth 1; if every folder with images is one, "
            f"such as {'/'.join(min(nested))}, give --depth {deepest}"
        )
    return {f: f[:1] if f[0] in mixed else outer for f, outer in within.items()}


def _assumed(within: dict[Folder, Folder]) -> list[str]:
    """What a user may not have meant, a line each."""
    notes = []
    inner = sorted({folder for folder, outer in within.items() if folder != outer})
    if inner:
        names = shortened(["/".join(folder) for folder in inner])
        deepest = max(map(len, inner))
        notes.append(
            f"folders inside a class belong to it: {names}; --depth {deepest} makes classes of them"
        )
    nested = sorted({"/".join(outer) for outer in within.values() if len(outer) > 1})
    tops = {outer[0] for outer in within.values()}
    if nested:
        hint = "if the first level is the class, give --depth 1"
        if len(tops) == 1:
            hint = f"give the folder {nested[0].split('/')[0]} itself to leave its name out"
        notes.append(f"classes are named by the path of their folder, such as {nested[0]}; {hint}")
    parts = {outer[0] for outer in within.values() if len(outer) == 1 and role_of(outer[0])}
    if parts:
        notes.append(f"a class, though named as a part of a data set: {_shown(parts)}")
    return notes


# ------------------------------------------------------------ parts for training and test


@dataclass(frozen=True)
class Place:
    """Where a folder of images is.

    Attributes
    ----------
    role
        What its part of the data is for, if there are parts.
    inside
        The folder without the name of that part.
    part
        The folder of that part.
    start
        How many folders are around ``inside``.
    """

    role: str | None
    inside: Folder
    part: str = ""
    start: int = 0


def role_of(name: str) -> str | None:
    """What a folder of that name is for, if it is named as parts of data sets are.

    >>> role_of("Train"), role_of("valid"), role_of("cat")
    ('training', 'validation', None)
    """
    return ROLES.get(name.strip().lower())


def divide(
    folders: Collection[Folder], depth: int | None, known: Iterable[str] = ()
) -> dict[Folder, Place]:
    """The part of the data that each folder belongs to; ``None`` if there are no parts.

    Parameters
    ----------
    folders
        All folders with images in them.
    depth
        How deep classes are, if that was said: a lone ``train`` may then be a class.
    known
        Classes that are known: what is called as one of them is no part.
    """
    classes = {name.split("/")[0] for name in known}
    around = _around(folders, depth, classes)
    if around is not None:
        return around
    if _are_parts(folders):
        return {f: Place(role_of(f[-1]), f[:-1], f"*/{f[-1]}") for f in folders}
    if depth is None:
        _check_plain([folder for folder in folders if not classes & {*folder[:1]}])
    return {folder: Place(None, folder) for folder in folders}


def choose_parts(places: Counter[Place], wanted: Wanted) -> tuple[set[Place], list[str]]:
    """The parts that are wanted, and what to say of it."""
    there = {place.role for place in places} - {ASIDE}
    if there == {None}:
        return set(places), []
    train = {TRAIN} & there
    test = {TEST} & there or {VALIDATION} & there
    roles = {"learning": train, "testing": test, "both": train and train | test}[wanted]
    if not roles:
        others = {place.part for place in places if place.part}
        raise InputError(
            f"there is {_shown(others)} and no folder for "
            f"{'the test' if wanted == 'testing' else 'training'}; give the folder that is meant"
        )
    chosen = {place for place in places if place.role in roles}
    used, unused = (
        _counted(places, {place for place in places if (place in chosen) == is_used and place.part})
        for is_used in (True, False)
    )
    return chosen, [f"taken: {used}" + (f"; left alone: {unused}" if unused else "")]


def _counted(places: Counter[Place], some: Iterable[Place]) -> str:
    """``train/ (12 images, for training), val/ (3 images, for validation)``."""
    counts: Counter[tuple[str, str | None]] = Counter()
    for place in some:
        counts[place.part, place.role] += places[place]
    return ", ".join(
        f"{part}/ ({plural(count, 'image')} for {role})"
        for (part, role), count in sorted(counts.items())
    )


def _around(
    folders: Collection[Folder], depth: int | None, classes: set[str]
) -> dict[Folder, Place] | None:
    """Parts that have classes in them, be it in one more folder around all of them."""
    level, tops = 0, {folder[0] for folder in folders if folder}
    while len(tops) == 1 and all(len(f) > level + 1 for f in folders) and not _named(tops, classes):
        level += 1
        tops = {folder[level] for folder in folders}
    parts = _named(tops, classes)
    deep = {f[level] for f in folders if len(f) > level + 1} & parts
    roles = {role_of(name) for name in parts}
    if not deep or (len(roles) == 1 and depth is not None):
        if len(roles) > 1 and depth is None:
            raise InputError(
                f"{_shown(parts)} hold images and no folders of classes: put the images of each "
                f"class into a folder of its own, {DEPTH}"
            )
        return None
    if len(roles) == 1 and tops != parts:
        raise InputError(
            f"{_shown(parts)} is named as a part of a data set, and {_shown(tops - parts)} "
            f"next to it is not: give the one folder that is meant, {DEPTH}"
        )
    return {f: _place(f, level, parts) for f in folders}


def _place(folder: Folder, level: int, parts: Collection[str]) -> Place:
    if len(folder) <= level or folder[level] not in parts:
        return Place(ASIDE, folder)
    part = "/".join(folder[: level + 1])
    return Place(role_of(folder[level]), folder[level + 1 :], part, level + 1)


def _named(names: Collection[str], classes: Collection[str]) -> set[str]:
    """Those that are named as parts are."""
    return {name for name in names if role_of(name) and name not in classes}


def _are_parts(folders: Collection[Folder]) -> bool:
    """Whether all folders are parts of classes, as ``cat/train`` and ``cat/test`` are."""
    roles = {role_of(folder[-1]) if len(folder) > 1 else None for folder in folders}
    return None not in roles and len(roles) > 1


def _check_plain(folders: Collection[Folder]) -> None:
    """Refuse parts that are neither around all classes nor inside all of them."""
    inside: dict[Folder, set[str]] = {}
    for folder in folders:
        for level, name in enumerate(folder):
            if role_of(name):
                inside.setdefault(folder[:level], set()).add(name)
    for outer, names in inside.items():
        if len({role_of(name) for name in names}) > 1:
            raise InputError(
                f"{_shown('/'.join((*outer, name)) for name in names)} are named as parts of a "
                "data set, and other folders have no such parts: put train/ and test/ around "
                "all classes, or give --depth N, the depth of the classes"
            )


def _shown(names: Iterable[str]) -> str:
    return shortened([f"{name}/" for name in sorted(names)])


# --------------------------------------------------------------------------- what is in a folder


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
