"""Scores of predictions: which classes are confused, and whether probabilities are right."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

CALIBRATION_BINS = 15


def confusion(
    truth: NDArray[Any], prediction: NDArray[Any], labels: NDArray[Any]
) -> NDArray[np.int64]:
    """Number of samples by true label (rows) and predicted one (columns), (k, k).

    >>> confusion(np.array(["a", "b", "b"]), np.array(["a", "a", "b"]), np.array(["b", "a"]))
    array([[1, 1],
           [0, 1]])
    """
    order = np.argsort(labels)
    rows, columns = (
        order[np.searchsorted(labels, values, sorter=order)] for values in (truth, prediction)
    )
    places = np.bincount(rows * len(labels) + columns, minlength=len(labels) ** 2)
    return places.reshape(len(labels), len(labels))


def wilson_interval(right: int, count: int, z: float = 1.959963984540054) -> tuple[float, float]:
    """Between which shares the true one lies, in 95 of 100 cases, if ``right`` of ``count`` were.

    Wilson's interval, which is never empty and never outside of 0 to 1.

    >>> low, high = wilson_interval(9, 10)
    >>> round(low, 3), round(high, 3)
    (0.596, 0.982)
    """
    share, spread = right / count, z * z / count
    centre = share + spread / 2
    reach = float(np.sqrt(spread * (share * (1 - share) + spread / 4)))
    low, high = (centre - reach) / (1 + spread), (centre + reach) / (1 + spread)
    return (low if right else 0.0), (high if right < count else 1.0)


def calibration_error(
    confidence: NDArray[np.float64], correct: NDArray[np.bool_], bins: int = CALIBRATION_BINS
) -> float:
    """Expected calibration error: mean distance between probability and accuracy of a bin.

    Bins have equal width and count by their size; a probability on a bound belongs to the bin
    below it.

    References
    ----------
    Guo, Pleiss, Sun, Weinberger: "On Calibration of Modern Neural Networks", ICML 2017.

    Examples
    --------
    >>> round(calibration_error(np.array([0.7, 0.9]), np.array([True, False])), 6)
    0.6
    """
    places = np.clip(np.ceil(confidence * bins).astype(int) - 1, 0, bins - 1)
    gaps = np.bincount(places, correct - confidence)
    return float(np.abs(gaps).sum() / len(confidence))
