"""Images, folders of them and feature files, as rows of features."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frugalvae.checks import as_label
from frugalvae.cli.options import choice
from frugalvae.cli.output import complain
from frugalvae.encoders.remembered import Remembered, check_same, load_encoder
from frugalvae.errors import InputError
from frugalvae.formatting import plural, shortened
from frugalvae.images.decode import reading_images
from frugalvae.images.photographs import encode_files
from frugalvae.images.walk import File, Found, on_disk, walk

#: Features of a file, and the encoder that it names.
Rows = tuple[NDArray[np.float32], Remembered]

#: Is told what is in a folder, before any of it is read.
Look = Callable[[Path, Found], None]


@dataclass
class Gathered:
    """What came of the inputs of a command.

    Attributes
    ----------
    names, x
        A name and a row of features for each input that can be read.
    unreadable
        Why others cannot be read.
    skipped
        Why other files of folders were not taken for images.
    """

    names: list[str]
    x: NDArray[np.float32]
    unreadable: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)


def gather(
    options: argparse.Namespace,
    remembered: Remembered,
    read: Callable[[Path], Rows],
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
    read
        What reads a feature file.
    watching
        What shows how encoding goes.
    look
        What may refuse a folder.
    """
    names: list[str] = []
    rows: list[NDArray[np.float32]] = []
    tables = [path for path in options.inputs if path.suffix == ".npz"]
    for path in tables:
        x, encoder = read(path)
        check_same(remembered, encoder, options.file, path)
        names += [f"{path}[{row}]" for row in range(len(x))]
        rows.append(x)
    pictures = [path for path in options.inputs if path not in tables]
    if not pictures:
        return Gathered(names, np.concatenate(rows))
    with ExitStack() as opened, reading_images():
        files, skipped = find_images(pictures, opened, look)
        made, _ = load_encoder(remembered, choice(options), options.file, complain)
        with watching:
            found = [file for _, file in files]
            done = encode_files(found, made, options.batch_size, os.cpu_count() or 1)
    names += [files[place][0] for place in done.places.tolist()]
    unreadable = {files[place][0]: why for place, why in done.reasons.items()}
    return Gathered(names, np.concatenate([*rows, done.features]), unreadable, skipped)


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
        found = walk(path, opened)
        look(path, found)
        files += [(str(path / inside), file) for inside, file in found.files.items()]
        skipped |= {f"{path}/{name}": why for name, why in found.skipped.items()}
    if not files:
        raise InputError(f"no images in {', '.join(map(str, inputs))}; check the paths")
    return files, skipped


def is_folder(path: Path) -> bool:
    """Whether an input is a folder, or an archive of one."""
    return path.is_dir() or (path.suffix.lower() == ".zip" and path.exists())


def one_class(label: Any, classes: Sequence[Any], flat: bool, say: Callable[[str], object]) -> Look:
    """Refuses a folder in which there are folders of other classes than the one that is meant."""
    others = {as_label(str(other)) for other in classes} - {as_label(str(label))}

    def look(path: Path, found: Found) -> None:
        inner = {part for inside in found.files for part in inside.parts[:-1]}
        named = {*inner, path.resolve().name}
        own = {part for part in inner if as_label(part) == as_label(str(label))}
        beside = inner - own if own else set()
        wrong = sorted({part for part in named if as_label(part) in others} | beside)
        if wrong and not flat:
            raise InputError(
                f"{path} is or has folders of other classes: {shortened(wrong)}; give the folder "
                f"of {str(label)!r} alone, or --flat if all of it is {str(label)!r}"
            )
        if inner:
            folders = plural(len({inside.parent for inside in found.files}), "folder")
            say(f"{path}: {plural(len(found.files), 'image')} of {folders} are taken")

    return look
