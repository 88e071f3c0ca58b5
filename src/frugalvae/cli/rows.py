"""Rows of features of one class, from an ``.npz`` that any command wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frugalvae.checks import as_label
from frugalvae.encoders.remembered import Remembered
from frugalvae.errors import FeatureFileError
from frugalvae.images.feature_file import array_names, load_features, read_rows


def rows_of_class(path: Path, label: Any) -> tuple[NDArray[np.float32], Remembered]:
    """The array ``x`` of a file; or what its training part has of a class."""
    if "x" in array_names(path):
        return read_rows(path, ("x",))
    features = load_features(path)
    labels = [as_label(str(known)) for known in features.y_train.tolist()]
    x = features.x_train[np.array(labels) == as_label(str(label))]
    if not len(x):
        raise FeatureFileError(f"{path}: no row of x_train is of class {label!r}; check its labels")
    return x, features.encoder
