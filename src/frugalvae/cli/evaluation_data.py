"""What a saved classifier is tested on: images or features of the classes that it knows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frugalvae.checks import as_label, folded, listing
from frugalvae.cli.output import complain
from frugalvae.encoders.remembered import Choice, check_same, described, load_encoder
from frugalvae.errors import InputError, suggestion
from frugalvae.formatting import printable
from frugalvae.images.feature_file import load_features
from frugalvae.images.listing import open_images, refuse
from frugalvae.images.photographs import encode_files
from frugalvae.model import Model

FEATURES = ".npz"


@dataclass(frozen=True)
class Samples:
    """Test samples of classes that a classifier knows.

    Attributes
    ----------
    features
        Shape (n, d).
    truth
        The class of each, as its number.
    names
        The file of each, or its row.
    encoder
        What made the features, in words.
    read
        The content of a sample's file; ``None`` if features were given.
    left_out, notes
        Files that were not read, with the reason; and what was assumed of folders.
    """

    features: NDArray[np.float32]
    truth: NDArray[np.int64]
    names: list[str]
    unknown: dict[str, int]
    skipped: dict[str, str]
    encoder: str
    read: Callable[[int], bytes] | None
    left_out: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@contextmanager
def open_samples(
    model: Model,
    file: Path,
    path: Path,
    choice: Choice,
    *,
    batch_size: int,
    depth: int | None = None,
    strict: bool = False,
) -> Iterator[Samples]:
    """Features of what is to be classified; files can be read inside the block."""
    if path.suffix == FEATURES and not path.is_dir():
        yield from_features(model, file, path)
        return
    classes = [str(label) for label in model.classes.tolist()]
    with open_images(path, "testing", depth=depth, known=classes) as found:
        if strict:
            refuse(found.skipped)
        numbers, unknown = known(model, found.labels, path)
        encoder, _ = load_encoder(model.encoder, choice, file, complain)
        check_width(model, encoder.dim, f"{described(encoder.identity)} gives features")
        numbers, images = numbers[numbers >= 0], found.of(found.labels[numbers >= 0].tolist())
        encoded = encode_files(images.files, encoder, batch_size, os.cpu_count() or 1)
        names = [printable(str(path)) for path in images.paths]  # a page is UTF-8
        unreadable = {names[place]: why for place, why in encoded.reasons.items()}
        if strict:
            refuse(unreadable)
        if not len(encoded.places):
            why = encoded.reasons[0]
            raise InputError(f"{path}: no image in it can be read, such as {names[0]} ({why})")
        yield Samples(
            encoded.features,
            numbers[encoded.places],
            [names[place] for place in encoded.places],
            unknown,
            unreadable,
            described(encoder.identity),
            lambda row: images.files[encoded.places[row]].read(),
            found.skipped,
            found.notes + alike(unknown, classes),
        )


def alike(unknown: Iterable[str], classes: Iterable[str]) -> list[str]:
    """Unknown classes whose names differ from a known one only in case or blanks, a line each."""
    known = {folded(name): name for name in classes}
    return [
        f"class {name!r} is not known; rename its folder if {known[folded(name)]!r} is meant"
        for name in unknown
        if folded(name) in known
    ]


def from_features(model: Model, file: Path, path: Path) -> Samples:
    """The test part of a feature file."""
    features = load_features(path)
    numbers, unknown = known(model, features.y_test, path)
    taught = model.encoder
    check_same(taught, features.encoder, file, path)
    check_width(model, features.x_test.shape[1], f"{path} has features")
    rows = np.flatnonzero(numbers >= 0)
    return Samples(
        features.x_test[rows],
        numbers[rows],
        [str(row) for row in rows.tolist()],
        unknown,
        {},
        described(features.encoder or taught or {}),
        None,
    )


def known(
    model: Model, labels: NDArray[Any], path: Path
) -> tuple[NDArray[np.int64], dict[str, int]]:
    """The class of each label as its number, -1 if it is unknown; and how many of which are.

    Labels are compared as text: a folder's name is text, and a label may be a number.
    """
    numbers = {as_label(str(label)): n for n, label in enumerate(model.classes.tolist())}
    written = [as_label(str(label)) for label in labels.tolist()]
    names, inverse, counts = np.unique(written, return_inverse=True, return_counts=True)
    found = np.array([numbers.get(name, -1) for name in names.tolist()], np.int64)
    if (found < 0).all():
        raise InputError(unknown_classes(names.tolist(), model, path))
    unknown = {str(n): int(c) for n, c, f in zip(names, counts, found, strict=True) if f < 0}
    return found[inverse], unknown


def unknown_classes(names: list[str], model: Model, path: Path) -> str:
    """That no class is known, and what may be the reason."""
    classes = {str(label) for label in model.classes.tolist()}
    inside = sorted({name.split("/")[0] for name in names if name.split("/", 1)[-1] in classes})
    if inside:
        apart = [name for name in inside if not name.lower().startswith("train")]
        hint = f" Its classes are in folders: give {path / (apart or inside)[0]}."
    else:
        hint = suggestion(names[0], classes)
    shown = ", ".join(map(repr, names[:3])) + (", ..." if len(names) > 3 else "")
    return (
        f"{path}: the classifier knows none of its {len(names)} classes, such as {shown}.{hint} "
        f"{listing(model.classes)}"
    )


def check_width(model: Model, width: int, what: str) -> None:
    """Refuse features of another width than those that were taught."""
    if width != model.n_features:
        raise InputError(
            f"{what} of {width} numbers, and the classifier learned from features of "
            f"{model.n_features}; use the encoder that it learned from"
        )
