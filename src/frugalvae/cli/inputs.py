"""Images, folders of them and feature files, as rows of features."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from frugalvae.cli.options import choice
from frugalvae.cli.output import complain
from frugalvae.encoders.remembered import Remembered, check_same, load_encoder
from frugalvae.errors import InputError
from frugalvae.images.folders import find_images
from frugalvae.images.photographs import encode_paths

#: Features of a file, and the encoder that it names.
Rows = tuple[NDArray[np.float32], Remembered]


def gather(
    options: argparse.Namespace,
    remembered: Remembered,
    read: Callable[[Path], Rows],
    watching: AbstractContextManager[None],
) -> tuple[list[str], NDArray[np.float32], dict[str, str]]:
    """A name and a row of features for each input that can be read; why others cannot.

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
        return names, np.concatenate(rows), {}
    found = images_of(pictures)
    made, _ = load_encoder(remembered, choice(options), options.file, complain)
    with watching:
        done = encode_paths(made, found, options.batch_size)
    names += [str(found[place]) for place in done.places.tolist()]
    unreadable = {str(found[place]): why for place, why in done.reasons.items()}
    return names, np.concatenate([*rows, done.features]), unreadable


def images_of(inputs: list[Path]) -> list[Path]:
    """The images that were named, and those of folders."""
    found = [image for path in inputs for image in (find_images(path) if path.is_dir() else [path])]
    if not found:
        raise InputError(f"no images in {', '.join(map(str, inputs))}; check the paths")
    return found
