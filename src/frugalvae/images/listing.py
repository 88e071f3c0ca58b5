"""The images of a data set: the class of each, which are for the test, and what is left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from frugalvae.errors import InputError
from frugalvae.formatting import plural, printable, shortened
from frugalvae.images.classes import (
    ASIDE,
    HOW,
    LOOSE,
    TEST,
    VALIDATION,
    Folder,
    Place,
    Wanted,
    choose_parts,
    divide,
    find_classes,
)
from frugalvae.images.decode import reading_images
from frugalvae.images.walk import HIDDEN, KINDS, File, Found, walk
from frugalvae.labels import as_label, is_plain
from frugalvae.maths.split import held_out_rows

TEST_PART = 0.25  # of each class, where there is no folder for the test
BESIDE = "beside the folders for training and test"
SHOWN = 20  # lines about files, of as many as there may be
EACH = 3  # files of one reason that have a line each


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

    def at(self, rows: NDArray[np.int64]) -> Listing:
        """The images at some places."""
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
    """The images of a folder or a zip archive, which can be read inside the block.

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
        chosen, notes = choose_parts(Counter(places[folder] for folder in written.values()), wanted)
    except InputError as error:
        raise InputError(f"{found.name}: {error}") from error
    taken = {path: places[folder] for path, folder in written.items() if places[folder] in chosen}
    skipped = {
        str(path): BESIDE for path, folder in written.items() if places[folder].role == ASIDE
    }
    counts = Counter(place.inside for place in taken.values())
    classes, more = find_classes(found.name, counts, depth, known, {place.part for place in chosen})
    loose = [path for path, place in taken.items() if place.inside not in classes]
    skipped |= {str(path): LOOSE for path in loose}
    paths = sorted(taken.keys() - set(loose))
    labels = np.array(["/".join(classes[taken[path].inside]) for path in paths])
    for label in set(labels.tolist()):
        if not all(map(is_plain, label.split("/"))):
            raise InputError(
                f"{found.name}: the folder '{printable(label)}' cannot be a class: its name is "
                "blank, has control characters, or is not UTF-8; rename it"
            )
    notes += more + _differently(paths, labels, taken)
    roles = [taken[path].role for path in paths]
    files = [found.files[path] for path in paths]
    test = _test_rows(found.name, labels, roles, wanted)
    return Listing(found.name, paths, files, labels, test, found.skipped | skipped, notes)


def _differently(
    paths: Sequence[PurePosixPath], labels: NDArray[np.str_], taken: dict[PurePosixPath, Place]
) -> list[str]:
    """Classes of which several folders have the same name in different writings."""
    writings: dict[str, set[Folder]] = {}
    for path, label in zip(paths, labels.tolist(), strict=True):
        start, folder = taken[path].start, path.parent.parts
        writings.setdefault(label, set()).add(folder[start : start + label.count("/") + 1])
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


# ------------------------------------------------------------ files that are left out


def refuse(left_out: Mapping[str, str]) -> None:
    """Raise an error that names files that are not read, if there are any.

    What is hidden or a system's own is no error: nobody put it there.
    """
    wrong = {path: why for path, why in left_out.items() if why != HIDDEN}
    if wrong:
        lines = "\n".join(named(wrong))
        raise InputError(
            f"{plural(len(wrong), 'file')} cannot be read; nothing was written. Repair or "
            f"remove them, or leave out --strict to go on without them:\n{lines}"
        )


def named(left_out: Mapping[str, str]) -> list[str]:
    """A line for each file; one line for all where many have the same reason.

    >>> named({"cat/1.png": "the file is empty"})
    ['  cat/1.png: the file is empty']
    """
    lines = []
    for why, paths in grouped(left_out).items():
        if len(paths) > EACH:
            lines.append(f"  {shortened(paths)}: {why}")
        else:
            lines += [f"  {printable(path)}: {left_out[path]}" for path in paths]
    more = len(lines) - SHOWN
    return lines[:SHOWN] + ([f"  and {more:,} more"] if more > 0 else [])


def counted(left_out: Mapping[str, str]) -> list[str]:
    """One line per reason, with how many files have it.

    >>> counted({"cat/a.txt": "not an image", "b.pdf": "not an image"})
    ['left out, not an image: 2 (cat/a.txt, b.pdf)']
    """
    return [
        f"left out, {why}: {len(paths):,} ({shortened(paths)})"
        for why, paths in grouped(left_out).items()
    ]


def grouped(left_out: Mapping[str, str]) -> dict[str, list[str]]:
    """Files by reason; what a reason says in parentheses differs from file to file."""
    groups: dict[str, list[str]] = {}
    for path, why in left_out.items():
        groups.setdefault(why.partition(" (")[0], []).append(path)
    return groups
