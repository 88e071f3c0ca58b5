"""How far numbers can be believed: probabilities of answers, and accuracy on few samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

BINS = 15
SURE = 1.96  # standard deviations on either side of a mean that hold 95% of a Gaussian


@dataclass(frozen=True)
class Bin:
    """Answers whose probability lies between two bounds, and how many of them are right."""

    low: float
    high: float
    count: int
    confidence: float
    accuracy: float


def reliability(
    confidence: NDArray[np.float64], correct: NDArray[np.bool_], bins: int = BINS
) -> list[Bin]:
    """Answers by their probability, in bins of the same width; empty ones are left out.

    A probability on a bound belongs to the bin below it.

    >>> reliability(np.array([0.3, 0.5, 0.9]), np.array([False, True, True]), bins=2)[0]
    Bin(low=0.0, high=0.5, count=2, confidence=0.4, accuracy=0.5)
    """
    places = np.clip(np.ceil(confidence * bins).astype(int) - 1, 0, bins - 1)
    found = []
    for place in np.unique(places).tolist():
        inside = places == place
        found.append(
            Bin(
                place / bins,
                (place + 1) / bins,
                int(inside.sum()),
                float(confidence[inside].mean()),
                float(correct[inside].mean()),
            )
        )
    return found


def expected_calibration_error(bins: Sequence[Bin]) -> float:
    """How far accuracy and probability of a bin are apart, on average over samples.

    References
    ----------
    Guo et al.: "On Calibration of Modern Neural Networks", ICML 2017.
    """
    gaps = [part.count * abs(part.accuracy - part.confidence) for part in bins]
    return sum(gaps) / sum(part.count for part in bins)


def wilson(share: float, n: int) -> tuple[float, float]:
    """Where a share of many more samples would lie, with 95% probability.

    Wilson's interval, which holds for few samples too.

    >>> [round(bound, 3) for bound in wilson(0.9, 10)]
    [0.596, 0.982]
    """
    centre = (share + SURE**2 / (2 * n)) / (1 + SURE**2 / n)
    inside = share * (1 - share) / n + SURE**2 / (4 * n**2)
    half = SURE * math.sqrt(inside) / (1 + SURE**2 / n)
    return max(centre - half, 0.0), min(centre + half, 1.0)
