"""Outliers: which samples look like none of the classes."""

from __future__ import annotations

import numpy as np

from frugalvae.maths.arrays import Array

FAR = 2.0  # robust standard deviations above the median
LEAST = 10  # samples below which nothing is said
LEAST_LIKENESS = 1e-3
LEAST_DEVIATION = 0.1  # of logarithms: where classes are far apart, small differences are none


def outliers(likeness: Array) -> dict[int, float]:
    """Rows of samples that look like no class, and how sure that is.

    ``likeness`` (n,) is that to the class that a sample is most like, as if it had not been
    taught. Where its logarithm is far below those of others, as their median and the deviation
    of the less likely half say, the sample is an outlier.

    Examples
    --------
    >>> list(outliers(np.array([0.6, 0.7, 0.65, 0.7, 0.8, 0.01, 0.7, 0.75, 0.6, 0.7])))
    [5]
    """
    if len(likeness) < LEAST:
        return {}
    far = _robust_deviations(-np.log(np.maximum(likeness, LEAST_LIKENESS)))
    return {int(row): float(1 - 0.5 * np.exp(FAR - far[row])) for row in np.flatnonzero(far > FAR)}


def _robust_deviations(values: Array) -> Array:
    """How many standard deviations values are above the median, as the upper half says.

    The lower half tells nothing: samples that fit well do so by more or less in each data set.
    """
    above = values - np.median(values)
    usual = 1.4826 * float(np.median(above[above >= 0]))
    deviations: Array = above / max(usual, LEAST_DEVIATION)
    return deviations
