"""How well predicted probabilities match observed accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

BINS = 15


@dataclass(frozen=True)
class Bin:
    """Predictions whose probability lies between two bounds, and how many are right."""

    low: float
    high: float
    count: int
    confidence: float
    accuracy: float


def reliability_bins(
    confidence: NDArray[np.float64], correct: NDArray[np.bool_], bins: int = BINS
) -> list[Bin]:
    """Predictions by their probability, in bins of equal width; empty bins are left out.

    A probability on a bound belongs to the bin below it.

    >>> reliability_bins(np.array([0.3, 0.5, 0.9]), np.array([False, True, True]), bins=2)[0]
    Bin(low=0.0, high=0.5, count=2, confidence=0.4, accuracy=0.5)
    """
    places = np.clip(np.ceil(confidence * bins).astype(int) - 1, 0, bins - 1)
    found = []
    for place in np.unique(places).tolist():
        inside = places == place
        means = float(confidence[inside].mean()), float(correct[inside].mean())
        found.append(Bin(place / bins, (place + 1) / bins, int(inside.sum()), *means))
    return found


def expected_calibration_error(bins: Sequence[Bin]) -> float:
    """Mean distance between the accuracy and the probability of a bin, weighted by its size.

    References
    ----------
    Guo et al.: "On Calibration of Modern Neural Networks", ICML 2017.
    """
    gaps = [part.count * abs(part.accuracy - part.confidence) for part in bins]
    return sum(gaps) / sum(part.count for part in bins)
