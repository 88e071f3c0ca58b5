"""Rows of features from an ``.npz``, whichever command wrote it."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frugalvae.encoders.remembered import Remembered
from frugalvae.errors import FeatureFileError


def read_rows(path: Path, names: tuple[str, ...]) -> tuple[NDArray[np.float32], Remembered]:
    """The first of some arrays that a file has, and the encoder that it names."""
    arrays = read_arrays(path)
    found = [arrays[name] for name in names if name in arrays]
    if not found or found[0].ndim != 2 or found[0].dtype.kind != "f" or not found[0].size:
        raise FeatureFileError(
            f"{path}: expected floats of shape (n, d) in {' or '.join(names)}, and it has "
            f"{', '.join(arrays) or 'nothing'}; make one with 'frugalvae encode', or "
            f"numpy.savez(path, {names[0]}=...)"
        )
    return found[0].astype(np.float32), encoder_of(arrays)


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """All arrays of a file."""
    if not path.exists():
        raise FeatureFileError(f"{path}: there is no such file; check the path")
    try:
        if not zipfile.is_zipfile(path):
            raise ValueError("it is no zip archive")
        with np.load(path, allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}
    except Exception as error:  # a damaged archive fails in zlib, tokenize and elsewhere
        raise FeatureFileError(
            f"{path}: not a readable .npz file of plain arrays ({error}); make it again"
        ) from error


def encoder_of(arrays: dict[str, NDArray[Any]]) -> Remembered:
    """What made the features, if the file says it."""
    if "encoder" not in arrays:
        return None
    try:
        told: dict[str, Any] = {**json.loads(arrays["encoder"].item())}
        return told
    except (ValueError, TypeError):
        return None


def rows_of_class(path: Path, label: Any) -> tuple[NDArray[np.float32], Remembered]:
    """The array ``x`` of a file; or what its training part has of a class."""
    if "x" in read_arrays(path):
        return read_rows(path, ("x",))
    from frugalvae.images.feature_file import load_features
    from frugalvae.images.folders import as_label

    features = load_features(path)
    labels = [as_label(str(known)) for known in features.y_train.tolist()]
    x = features.x_train[np.array(labels) == as_label(str(label))]
    if not len(x):
        raise FeatureFileError(f"{path}: no row of x_train is of class {label!r}; check its labels")
    return x, features.encoder
