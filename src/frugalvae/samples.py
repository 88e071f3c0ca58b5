"""Samples: photographs, or rows of features, from wherever they are.

"Is it a folder, an archive or a feature file?" is asked here and nowhere else. Every verb takes
:class:`Samples`, and all that they hold goes the same way to its features: :meth:`Samples.encode`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from frugalvae.encoders import (
    Choice,
    Remembered,
    check_carried,
    check_same,
    load_encoder,
)
from frugalvae.errors import FeatureFileError, InputError
from frugalvae.formatting import plural, printable, shortened
from frugalvae.images import BATCH_SIZE, holds_features
from frugalvae.images.decode import File, on_disk, reading_images
from frugalvae.images.photographs import (
    THREADS,
    Encoded,
    digests_of,
    digests_of_rows,
    encode_files,
    encode_groups,
    unreadable,
)
from frugalvae.maths.arrays import held_out_rows
from frugalvae.parts.checks import check_finite

if TYPE_CHECKING:
    from frugalvae.images.classes import Found, Wanted
    from frugalvae.images.feature_file import StoredRows
    from frugalvae.parts.protocols import Encoder

ROW = "{}[{}]"  # what a row of a feature file is called
TEST_PART = 0.25  # of each class, where there is no folder for the test
SHOWN = 20  # lines about files, of as many as there may be
EACH = 3  # files of one reason that have a line each


@dataclass(frozen=True)
class Samples:
    """Photographs in the order of their paths, or rows of features.

    Attributes
    ----------
    name
        What messages call all of it.
    names
        What each is called: its path inside, or its row.
    files
        Where each photograph is; ``None`` of features.
    rows
        The features (n, d), where these were given; of a large file they are read when needed.
    labels, test
        The class of each, if classes are wanted; and whether it belongs to the test set.
    made_by, text
        What a feature file says of the encoder, and its text feature of each class.
    skipped
        What is left out, by its path, with the reason.
    notes
        What was assumed, a line each.
    """

    name: str
    names: list[str]
    files: list[File] | None = None
    rows: Rows | None = None
    labels: NDArray[Any] = field(default_factory=lambda: np.empty(0, "U1"))
    test: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, bool))
    made_by: Remembered = None
    text: Mapping[Any, NDArray[np.float32]] | None = None
    skipped: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def what(self) -> str:
        """What lines call one of them."""
        return "sample" if self.files is None else "image"

    @property
    def classes(self) -> list[Any]:
        """All labels, in ascending order."""
        return sorted(set(self.labels.tolist()))

    def at(self, places: NDArray[np.int64]) -> Samples:
        """Those at some places."""
        where = places.tolist()
        return replace(
            self,
            names=[self.names[place] for place in where],
            files=None if self.files is None else [self.files[place] for place in where],
            rows=None if self.rows is None else self.rows.at(places),
            labels=self.labels[places] if len(self.labels) else self.labels,
            test=self.test[places] if len(self.test) else self.test,
        )

    def digests(self, doing: str = "looking for new images") -> NDArray[np.bytes_]:
        """What tells each from others, if it was taught before."""
        if self.files is not None:
            return digests_of(self.files, doing)
        assert self.rows is not None
        return digests_of_rows(self.rows, np.arange(len(self)))

    def cut(self, ends: Sequence[int]) -> list[Samples]:
        """Consecutive pieces up to each of some places, without what concerns all of them."""
        bare, starts = replace(self, text=None, skipped={}, notes=[]), [0, *ends[:-1]]
        return [bare.at(np.arange(*bounds)) for bounds in zip(starts, ends, strict=True)]

    def loaded(self) -> Samples:
        """The same with contents in memory, for a machine that has not their files."""
        if self.files is not None:
            return replace(self, files=[file.loaded() for file in self.files])
        assert self.rows is not None
        places = np.arange(len(self))
        return replace(self, rows=Rows(self.rows[places], places))

    def encoder(
        self,
        remembered: Remembered,
        choice: Choice,
        file: Path | str,
        load: Callable[[Remembered, Choice, Path | str], tuple[Encoder, Remembered]] = load_encoder,
    ) -> tuple[Encoder | None, Remembered]:
        """What makes features of photographs; of features only whether they fit what is remembered.

        With it comes what a file is to remember of the encoder.
        """
        if self.files is not None:
            return load(remembered, choice, file)
        check_same(remembered, self.made_by, file, self.name)
        if remembered != {}:
            return None, remembered
        check_carried(self.made_by, choice.named, self.name)  # a new file takes it over
        return None, self.made_by

    def encode(
        self, encoder: Encoder | None, batch_size: int = BATCH_SIZE, threads: int = THREADS
    ) -> Encoded:
        """Features of those that can be read, and why others cannot."""
        if self.files is not None:
            assert encoder is not None
            return encode_files(encoder, self.files, batch_size, threads)
        assert self.rows is not None
        places = np.arange(len(self))
        return Encoded(check_finite(self.rows[places], self.rows.places), places, {})

    def batches(
        self, encoder: Encoder | None, batch_size: int = BATCH_SIZE
    ) -> Iterator[tuple[list[str], Encoded]]:
        """The same a batch of photographs at a time, as soon as it is done, with its names."""
        if self.files is None:
            yield self.names, self.encode(None)
            return
        assert encoder is not None
        starts = range(0, len(self), batch_size)
        groups = [self.files[start : start + batch_size] for start in starts]
        done = encode_groups(encoder, groups, batch_size, THREADS)
        for start, encoded in zip(starts, done, strict=True):
            yield self.names[start : start + batch_size], encoded

    @property
    def reader(self) -> Callable[[int], bytes] | None:
        """What reads the file of a photograph; ``None`` of features."""
        files = self.files
        return None if files is None else lambda place: files[place].read()

    def unreadable(self) -> dict[str, str]:
        """Which photographs cannot be read, and why; all of them are decoded."""
        return {} if self.files is None else unreadable(self.names, self.files, THREADS)

    def refuse_unreadable(self) -> None:
        """Refuse files that are no images, if there are any; the error names unreadable ones, too.

        Where there are none nothing is decoded: who encodes finds out which can be read.
        """
        from frugalvae.images.classes import HIDDEN

        if any(why != HIDDEN for why in self.skipped.values()):
            refuse(self.skipped | self.unreadable())


@dataclass(frozen=True)
class Rows:
    """Some rows of a table, which is read when they are asked for."""

    table: NDArray[np.float32] | StoredRows
    places: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        return self.table[self.places[rows]]

    def at(self, rows: NDArray[np.int64]) -> Rows:
        """Some of them."""
        return Rows(self.table, self.places[rows])


# --------------------------------------------------------------------------- with classes


@contextmanager
def open_samples(
    path: str | Path, wanted: Wanted, *, depth: int | None = None, known: Collection[str] = ()
) -> Iterator[Samples]:
    """The samples of a folder, a zip archive or a feature file, which can be read in the block.

    Parameters
    ----------
    wanted
        What for, where there are parts for training and test.
    depth
        How deep the folders of classes are; found out if it is not given.
    known
        Classes that are known.
    """
    path = Path(path)
    if holds_features(path):
        yield features_of(path, wanted)
        return
    from frugalvae.images.classes import walk

    with ExitStack() as opened, reading_images():
        yield list_classes(walk(path, opened), wanted, depth, known)


def features_of(path: Path, wanted: Wanted) -> Samples:
    """The training or the test part of a feature file."""
    from frugalvae.images.feature_file import load_features, open_training

    table: Any
    if wanted == "testing":
        found, part = load_features(path, "test"), "x_test"
        table, labels = found.x_test, found.y_test
    else:
        (found, table), part = open_training(path), "x_train"
        labels = found.y_train
    names = [ROW.format(part, row) for row in range(len(labels))]
    rows, text = Rows(table, np.arange(len(labels))), found.text or None
    return Samples(str(path), names, None, rows, labels, made_by=found.encoder, text=text)


def list_classes(
    found: Found, wanted: Wanted, depth: int | None = None, known: Collection[str] = ()
) -> Samples:
    """Give each image its class, and choose the parts that are wanted."""
    from frugalvae.images.classes import HOW, KINDS, assign_classes

    if not found.files:
        raise InputError(f"{found.name}: no images in it ({KINDS}); {HOW}")
    assigned, skipped, notes = assign_classes(found.name, found.files, wanted, depth, known)
    labels = np.array([label for label, _ in assigned.values()])
    return Samples(
        found.name,
        list(map(str, assigned)),
        [found.files[path] for path in assigned],
        labels=labels,
        test=_test_rows(found.name, labels, [role for _, role in assigned.values()], wanted),
        skipped=found.skipped | skipped,
        notes=notes,
    )


def _test_rows(
    name: str, labels: NDArray[np.str_], roles: Sequence[str | None], wanted: Wanted
) -> NDArray[np.bool_]:
    """Which images are the test set."""
    from frugalvae.images.classes import TEST, VALIDATION

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


# --------------------------------------------------------------------------- without classes


@contextmanager
def open_unlabelled(
    paths: Sequence[Path], part: Literal["x_train", "x_test"] = "x_test", label: Any = None
) -> Iterator[list[Samples]]:
    """Images, folders, archives and feature files in their order, whatever folders are called.

    Images that follow each other are taken together. Of a feature file it is the array ``x``, or
    else a part of it; with a ``label``, the rows of that class alone.
    """
    with ExitStack() as opened, reading_images():
        groups = groupby(paths, holds_features)
        yield [
            samples
            for is_table, group in groups
            for samples in (
                [_rows_of(path, part, label) for path in group]
                if is_table
                else [_photographs(list(group), opened)]
            )
        ]


def _rows_of(path: Path, part: str, label: Any) -> Samples:
    from frugalvae.images.feature_file import array_names, read_rows

    if label is None or "x" in array_names(path):
        x, made_by = read_rows(path, ("x", part) if label is None else ("x",))
        names = [ROW.format(path, row) for row in range(len(x))]
        return Samples(str(path), names, None, Rows(x, np.arange(len(x))), made_by=made_by)
    found = features_of(path, "learning")
    own = found.labels.astype(str) == str(label)
    if not own.any():
        raise FeatureFileError(f"{path}: no row of x_train is of class {label!r}; check its labels")
    return found.at(np.flatnonzero(own))


def _photographs(paths: Sequence[Path], opened: ExitStack) -> Samples:
    """The images that were named, those of folders and archives, and what is left out there."""
    files: list[tuple[str, File]] = []
    skipped: dict[str, str] = {}
    for path in paths:
        if not is_folder(path):
            files.append((str(path), on_disk(path)))
            continue
        from frugalvae.images.classes import EMPTY, walk  # zip archives, for folders alone

        found = walk(path, opened)
        files += [(str(path / inside), file) for inside, file in found.files.items()]
        skipped |= {f"{path}/{name}": why for name, why in found.skipped.items()}
        if not found.files:
            skipped[str(path)] = EMPTY
    shown = ", ".join(map(str, paths))
    if not files:
        raise InputError(f"no images in {shown}; check the paths")
    names = [name for name, _ in files]
    return Samples(shown, names, [file for _, file in files], skipped=skipped)


def is_folder(path: Path) -> bool:
    """Whether an input is a folder, or an archive of one."""
    return path.is_dir() or (path.suffix.lower() == ".zip" and path.exists())


# --------------------------------------------------------------------------- what is left out


def refuse(left_out: Mapping[str, str]) -> None:
    """Raise an error that names files that are not read, if there are any.

    What is hidden or a system's own is no error: nobody put it there.
    """
    from frugalvae.images.classes import HIDDEN

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
