"""Find and load the data sets of experiments, and give each a fingerprint."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from frugalvae.bench.catalogue import CATALOGUE, data_folder, in_data_folder
from frugalvae.errors import InputError, suggestion
from frugalvae.images.dataset import Images, digit_images, load_digits, load_images
from frugalvae.images.feature_file import Features, load_features

BUNDLED: dict[str, Callable[[], Features | Images]] = {
    "digits": load_digits,
    "digit-images": digit_images,
}


@dataclass(frozen=True, eq=False)
class Source:
    """A data set that was found and loaded.

    Attributes
    ----------
    name, title, backbone
        Its name in commands, its usual name, and the encoder of its features (``None`` for
        images).
    path
        Its file; ``None`` for bundled data.
    data
        Features, or images.
    fingerprint
        A hash of all arrays, so that another encoder or split counts as another data set.
    """

    name: str
    title: str
    backbone: str | None
    path: str | None
    data: Features | Images
    fingerprint: str

    def to_json(self) -> dict[str, Any]:
        """What reports need to know."""
        x = self.data.x_train
        return {
            "title": self.title,
            "backbone": self.backbone,
            "file": self.path and Path(self.path).name,
            "fingerprint": self.fingerprint,
            "classes": len(self.data.classes),
            "train": len(x),
            "test": len(self.data.x_test),
            "shape": list(x.shape[1:]),
            "text": getattr(self.data, "text", None) is not None,
        }


def find_data(
    names: Sequence[str], given: Mapping[str, str], *, image_size: int = 32
) -> tuple[dict[str, Source], dict[str, str]]:
    """Data sets by name, and the reason for each one that is missing.

    Parameters
    ----------
    names
        Which data sets to find.
    given
        Files by name, from the command line; others are searched in the data folder.
    """
    found, absent = {}, {}
    for name in names:
        path = given.get(name) or _usual_place(name)
        if name in BUNDLED and name not in given:
            found[name] = make_source(name, None, BUNDLED[name]())
        elif path is None:
            folder = data_folder()
            known = CATALOGUE.get(name)
            absent[name] = (
                f"{folder / known.file} does not exist; get {known.title} from {known.source}, and "
                f"set FRUGALVAE_DATA to the folder of its file or give --data {name}=FILE"
                if known
                else f"no file was given for it.{suggestion(name, CATALOGUE)} Give --data "
                f"{name}=FILE"
            )
        else:
            found[name] = make_source(name, path, _load(path, image_size))
    return found, absent


def make_source(name: str, path: str | None, data: Features | Images) -> Source:
    """A loaded data set with its title, encoder and fingerprint."""
    known = CATALOGUE.get(name)
    features = isinstance(data, Features)
    backbone = (known.backbone if known else "features as given") if features else None
    return Source(name, known.title if known else name, backbone, path, data, fingerprint(data))


def parse_data(entries: Sequence[str]) -> dict[str, str]:
    """Parse ``NAME=FILE``, or just a known name, from the command line.

    >>> parse_data(["birds=birds.npz", "digits"])
    {'birds': 'birds.npz', 'digits': ''}
    """
    found: dict[str, str] = {}
    for entry in entries:
        name, _, path = entry.partition("=")
        if not re.fullmatch(r"[\w.-]+", name) or (not path and name not in CATALOGUE):
            raise InputError(
                f"--data {entry}: expected NAME=FILE, or one of {', '.join(CATALOGUE)}."
                f"{suggestion(name, CATALOGUE)}"
            )
        if name in found:
            raise InputError(f"--data {name} is given twice; give every data set its own name")
        found[name] = path
    return found


def fingerprint(data: Features | Images) -> str:
    """A hash of all samples and labels.

    >>> fingerprint(load_digits())[:8] == fingerprint(load_digits())[:8]
    True
    """
    hasher = hashlib.sha256()
    for array in (data.x_train, data.y_train, data.x_test, data.y_test):
        array = np.ascontiguousarray(array)
        if array.dtype.kind in "iu" and array.ndim == 1:  # widths do not matter
            array = array.astype(np.int64)
        hasher.update(f"{array.dtype.str}{array.shape}".encode())
        hasher.update(array.tobytes())
    return hasher.hexdigest()[:16]


def _usual_place(name: str) -> str | None:
    known = CATALOGUE.get(name)
    if known is None or not known.file:
        return None
    return ",".join(map(str, in_data_folder(known.file))) or None


def _load(path: str, size: int) -> Features | Images:
    """Load a feature file, or images: a folder, an archive, or several separated by commas."""
    if path.endswith(".npz"):
        return load_features(path)
    return load_images([Path(part) for part in path.split(",")], size=size)
