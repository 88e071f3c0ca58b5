"""Handwritten digits that come with scikit-learn: real images without a download."""

from __future__ import annotations

import numpy as np

from frugalvae.data.features import Features


def load_digits() -> Features:
    """1,797 digits of 8 x 8 pixels between 0 and 1, always split 70 to 30 alike.

    >>> digits = load_digits()
    >>> digits.x_train.shape, digits.x_test.shape
    ((1257, 64), (540, 64))
    """
    from sklearn.datasets import load_digits as bundled
    from sklearn.model_selection import train_test_split

    pixels, labels = bundled(return_X_y=True)
    x_train, x_test, y_train, y_test = train_test_split(
        (pixels / 16).astype(np.float32), labels, test_size=0.3, random_state=0, stratify=labels
    )
    return Features("digits", x_train, y_train, x_test, y_test)
