"""Which class each image shows, and which images are for training and for the test.

A class is a folder, named by its path. One set of rules holds for folders, zip archives and
CIFAR-100, and for all verbs:

- ``--depth N`` says it: classes are N levels deep, and folders inside them belong to them.
- Else, a folder inside a known class belongs to that class.
- Else, a class is the outermost folder with images of its own; what is inside belongs to it.
  Where such folders are at different depths below one folder of the first level (as
  ``cat/cam 1/2024-05`` and ``cat/cam 2``), that folder is the class.
- A folder of images alone is one class, named as the folder.
- A few images beside folders of classes are left out.
- Parts for training, validation and test are found as :mod:`frugalvae.images.splits` says.

What was assumed is told in ``Listing.notes``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from frugalvae.errors import InputError
from frugalvae.formatting import plural, printable, shortened
from frugalvae.images.decode import reading_images
from frugalvae.images.kinds import KINDS
from frugalvae.images.splits import ASIDE, TEST, TRAIN, VALIDATION, Folder, Place, divide
from frugalvae.images.walk import HOW, File, Found, walk
from frugalvae.maths.split import held_out_rows
from frugalvae.names import as_label

TEST_PART = 0.25  # of each class, where there is no folder for the test
LOOSE = "in no class's folder"
BESIDE = "beside the folders for training and test"

#: What images are wanted for: to learn, to be tested with, or for both.
Wanted = Literal["learning", "testing", "both"]


@dataclass(frozen=True)
class Listing:
    """The images of a data set, in the order of their paths.

    Attributes
    ----------
    labels
        The class of each image.
    test
        Whether it belongs to the test set.
    skipped
        What is left out, by its path, with the reason.
    notes
        What was assumed, a line each.
    """

    name: str
    paths: list[PurePosixPath]
    files: list[File]
    labels: NDArray[np.str_]
    test: NDArray[np.bool_]
    skipped: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def classes(self) -> list[str]:
        """All labels, in ascending order."""
        return sorted(set(self.labels.tolist()))

    def of(self, classes: Iterable[str]) -> Listing:
        """The images of some classes."""
        rows = np.flatnonzero(np.isin(self.labels, list(classes)))
        return replace(
            self,
            paths=[self.paths[row] for row in rows],
            files=[self.files[row] for row in rows],
            labels=self.labels[rows],
            test=self.test[rows],
        )


@contextmanager
def open_images(
    path: str | Path, wanted: Wanted, *, depth: int | None = None, known: Collection[str] = ()
) -> Iterator[Listing]:
    """The images of a folder, a zip archive or CIFAR-100, which can be read inside the block.

    Parameters
    ----------
    wanted
        What for, where there are parts for training and test.
    depth
        How deep the folders of classes are; found out if it is not given.
    known
        Classes that are known.
    """
    with ExitStack() as opened, reading_images():
        yield list_classes(walk(Path(path), opened), wanted, depth, known)


def list_classes(
    found: Found, wanted: Wanted, depth: int | None = None, known: Collection[str] = ()
) -> Listing:
    """Give each image its class, and choose the parts that are wanted."""
    if not found.files:
        raise InputError(f"{found.name}: no images in it ({KINDS}); {HOW}")
    known = {as_label(name) for name in known}
    written = {path: tuple(map(as_label, path.parts[:-1])) for path in found.files}
    try:
        places = divide(set(written.values()), depth, known)
        chosen, notes = _choose(Counter(places[folder] for folder in written.values()), wanted)
    except InputError as error:
        raise InputError(f"{found.name}: {error}") from error
    taken = {path: places[folder] for path, folder in written.items() if places[folder] in chosen}
    skipped = {
        str(path): BESIDE for path, folder in written.items() if places[folder].role == ASIDE
    }
    counts = Counter(place.inside for place in taken.values())
    classes, more = _classes(found.name, counts, depth, known, {place.part for place in chosen})
    loose = [path for path, place in taken.items() if place.inside not in classes]
    skipped |= {str(path): LOOSE for path in loose}
    paths = sorted(taken.keys() - set(loose))
    labels = np.array(["/".join(classes[taken[path].inside]) for path in paths])
    for label in set(labels.tolist()):
        _check_name(found.name, label)
    notes += more + _differently(paths, labels, taken)
    roles = [taken[path].role for path in paths]
    files = [found.files[path] for path in paths]
    test = _test_rows(found.name, labels, roles, wanted)
    return Listing(found.name, paths, files, labels, test, found.skipped | skipped, notes)


def _choose(places: Counter[Place], wanted: Wanted) -> tuple[set[Place], list[str]]:
    """The parts that are wanted, and what to say of it."""
    there = {place.role for place in places} - {ASIDE}
    if there == {None}:
        return set(places), []
    train = {TRAIN} & there
    test = {TEST} & there or {VALIDATION} & there
    roles = {"learning": train, "testing": test, "both": train and train | test}[wanted]
    if not roles:
        [*others] = sorted({place.part for place in places if place.part})
        raise InputError(
            f"there is {', '.join(f'{name}/' for name in others)} and no folder for "
            f"{'the test' if wanted == 'testing' else 'training'}; give the folder that is meant"
        )
    chosen = {place for place in places if place.role in roles}
    said = [
        _counted(places, {place for place in places if (place in chosen) == taken and place.part})
        for taken in (True, False)
    ]
    note = f"taken: {said[0]}" + (f"; left alone: {said[1]}" if said[1] else "")
    return chosen, [note]


def _counted(places: Counter[Place], some: Iterable[Place]) -> str:
    """``train/ (12 images, for training), val/ (3 images, for validation)``."""
    counts: Counter[tuple[str, str | None]] = Counter()
    for place in some:
        counts[place.part, place.role] += places[place]
    return ", ".join(
        f"{part}/ ({plural(count, 'image')} for {role})"
        for (part, role), count in sorted(counts.items())
    )


def _classes(
    name: str,
    counts: Counter[Folder],
    depth: int | None,
    known: Collection[str],
    parts: Collection[str],
) -> tuple[dict[Folder, Folder], list[str]]:
    """The class of each folder with images, and what was assumed; loose images have none."""
    folders = [folder for folder in counts if folder]
    if not folders:
        if parts != {""}:
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
    within |= _outermost(new)
    return within, _assumed(within)


def _known(folder: Folder, known: Collection[str]) -> Folder:
    """The innermost known class around a folder; nothing if there is none."""
    around = (folder[:level] for level in range(len(folder), 0, -1))
    return next((outer for outer in around if "/".join(outer) in known), ())


def _outermost(folders: Sequence[Folder]) -> dict[Folder, Folder]:
    """Folders with images that are in no other such folder; of mixed depth, the first level."""
    there, depths = set(folders), dict[str, set[int]]()
    within = {}
    for folder in folders:
        around = (folder[:level] for level in range(1, len(folder) + 1))
        within[folder] = next(outer for outer in around if outer in there)
        depths.setdefault(folder[0], set()).add(len(within[folder]))
    return {f: outer if len(depths[f[0]]) == 1 else f[:1] for f, outer in within.items()}


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
    if nested:
        notes.append(
            f"classes are named by the path of their folder, such as {nested[0]}; if the first "
            "level is the class, give --depth 1"
        )
    return notes


def _check_name(where: str, label: str) -> None:
    """Refuse a folder whose name cannot be a label."""
    if printable(label) != label or not all(label.split("/")):
        raise InputError(
            f"{where}: the folder '{printable(label)}' cannot be a class: its name is blank, has "
            "control characters, or is not UTF-8; rename it"
        )


def _differently(
    paths: Sequence[PurePosixPath], labels: NDArray[np.str_], taken: dict[PurePosixPath, Place]
) -> list[str]:
    """Classes of which several folders have the same name in different writings."""
    writings: dict[str, set[Folder]] = {}
    for path, label in zip(paths, labels.tolist(), strict=True):
        start = taken[path].start
        writings.setdefault(label, set()).add(path.parts[start : start + label.count("/") + 1])
    return [
        f"class {label!r}: several folders write it differently"
        for label, folders in writings.items()
        if len(folders) > 1
    ]


def _test_rows(
    name: str, labels: NDArray[np.str_], roles: Sequence[str | None], wanted: Wanted
) -> NDArray[np.bool_]:
    """Which images are the test set."""
    if wanted != "both":
        return np.full(len(labels), wanted == "testing")
    test = np.array([role in (TEST, VALIDATION) for role in roles])
    if not test.any():
        test = held_out_rows(labels, TEST_PART, seed=0)
    unknown = np.setdiff1d(labels[test], labels[~test])
    if len(unknown):
        raise InputError(
            f"{name}: the test has classes that training lacks: {unknown[:5].tolist()}"
        )
    return test
