"""Images, folders of them and feature files, as rows of features."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from frugalvae.cli.options import choice, holds_features
from frugalvae.encoders.remembered import Remembered, check_same, load_encoder
from frugalvae.errors import FeatureFileError, InputError
from frugalvae.images.decode import File, on_disk, reading_images
from frugalvae.images.photographs import digests_of, digests_of_rows, encode_files
from frugalvae.taught import DIGEST

if TYPE_CHECKING:
    from frugalvae.images.walk import Found

#: Is told what is in a folder, before any of it is read.
Look: TypeAlias = "Callable[[Path, Found], None]"


@dataclass
class Gathered:
    """What came of the inputs of a command.

    Attributes
    ----------
    x
        A row of features for each input that can be read.
    unreadable
        Why others cannot be read.
    skipped
        Why other files of folders were not taken for images.
    digests
        What tells each of the rows from others, if it was taught before.
    images
        The last of the rows are of these images; those before are of feature files.
    """

    x: NDArray[np.float32]
    unreadable: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    digests: NDArray[np.bytes_] = field(default_factory=lambda: np.empty(0, DIGEST))
    images: list[str] = field(default_factory=list)


def gather(
    options: argparse.Namespace,
    remembered: Remembered,
    label: Any,
    watching: AbstractContextManager[None],
    look: Look = lambda *_: None,
) -> Gathered:
    """Features of all inputs that can be read; why others cannot.

    Parameters
    ----------
    options
        ``inputs``, the classifier's ``file``, and the options of an encoder.
    remembered
        The encoder of the classifier.
    label
        The class whose rows are taken from feature files.
    watching
        What shows how encoding goes.
    look
        What may refuse a folder.
    """
    rows: list[NDArray[np.float32]] = []
    tables = [path for path in options.inputs if holds_features(path)]
    for path in tables:
        x, encoder = rows_of_class(path, label)
        check_same(remembered, encoder, options.file, path)
        rows.append(x)
    pictures = [path for path in options.inputs if path not in tables]
    told = [digests_of_rows(x, np.arange(len(x))) for x in rows]
    if not pictures:
        return Gathered(np.concatenate(rows), digests=np.concatenate(told))
    with ExitStack() as opened, reading_images():
        files, skipped = find_images(pictures, opened, look)
        made, _ = load_encoder(remembered, choice(options), options.file)
        with watching:
            found = [file for _, file in files]
            done = encode_files(found, made, options.batch_size, os.cpu_count() or 1)
            told.append(digests_of(found)[done.places])
    unreadable = {files[place][0]: why for place, why in done.reasons.items()}
    x, digests = np.concatenate([*rows, done.features]), np.concatenate(told)
    return Gathered(x, unreadable, skipped, digests, [files[place][0] for place in done.places])


def rows_of_class(path: Path, label: Any) -> tuple[NDArray[np.float32], Remembered]:
    """The array ``x`` of a file; or what its training part has of a class."""
    from frugalvae.images.feature_file import load_training, read_rows
    from frugalvae.images.npz import array_names

    if "x" in array_names(path):
        return read_rows(path, ("x",))
    features = load_training(path)
    x = features.x_train[features.y_train.astype(str) == str(label)]
    if not len(x):
        raise FeatureFileError(f"{path}: no row of x_train is of class {label!r}; check its labels")
    return x, features.encoder


def find_images(
    inputs: Sequence[Path], opened: ExitStack, look: Look = lambda *_: None
) -> tuple[list[tuple[str, File]], dict[str, str]]:
    """The images that were named, those of folders and archives, and what is left out there."""
    files: list[tuple[str, File]] = []
    skipped: dict[str, str] = {}
    for path in inputs:
        if not is_folder(path):
            files.append((str(path), on_disk(path)))
            continue
        from frugalvae.images.walk import EMPTY, walk  # zip, tar and CIFAR, for folders alone

        found = walk(path, opened)
        look(path, found)
        files += [(str(path / inside), file) for inside, file in found.files.items()]
        skipped |= {f"{path}/{name}": why for name, why in found.skipped.items()}
        if not found.files:
            skipped[str(path)] = EMPTY
    if not files:
        raise InputError(f"no images in {', '.join(map(str, inputs))}; check the paths")
    return files, skipped


def is_folder(path: Path) -> bool:
    """Whether an input is a folder, or an archive of one."""
    return path.is_dir() or (path.suffix.lower() == ".zip" and path.exists())
