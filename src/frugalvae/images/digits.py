"""Handwritten digits that come with scikit-learn: real images without a download."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from frugalvae.images.feature_file import Features


def load_digits() -> Features:
    """1,797 digits of 8 x 8 pixels between 0 and 1, always split 70 to 30 alike.

    >>> digits = load_digits()
    >>> digits.x_train.shape, digits.x_test.shape
    ((1257, 64), (540, 64))
    """
    x_train, x_test, y_train, y_test = split_digits()
    scaled = [(x / 16).astype(np.float32) for x in (x_train, x_test)]
    return Features("digits", scaled[0], y_train, scaled[1], y_test)


def split_digits() -> list[NDArray[Any]]:
    """Pixels from 0 to 16 for training and for the test, (n, 64) each, then their labels."""
    from sklearn.datasets import load_digits as bundled
    from sklearn.model_selection import train_test_split

    pixels, labels = bundled(return_X_y=True)
    split: list[NDArray[Any]] = train_test_split(
        pixels, labels, test_size=0.3, random_state=0, stratify=labels
    )
    return split
