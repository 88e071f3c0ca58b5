"""Agglomerative clustering by average linkage."""

from __future__ import annotations

import numpy as np

from frugalvae.maths.arrays import Array


def average_linkage(distances: Array, most: float) -> Array:
    """Group numbers (n,) of items with these distances (n, n), by average linkage.

    The two groups that are nearest to each other become one, as long as the mean distance of their
    items is at most ``most``.

    >>> average_linkage(np.abs(np.subtract.outer([0, 1, 9.0], [0, 1, 9.0])), 2.0).tolist()
    [0, 0, 2]
    """
    apart = distances.astype(np.float64)
    np.fill_diagonal(apart, np.inf)
    groups, sizes = np.arange(len(apart)), np.ones(len(apart))
    nearest = apart.argmin(axis=1)  # the nearest group of each
    near = apart[np.arange(len(apart)), nearest]
    while len(apart) > 1 and near.min() <= most:
        one = int(near.argmin())
        one, other = sorted((one, int(nearest[one])))
        share = sizes[one] / (sizes[one] + sizes[other])
        joined = share * apart[one] + (1 - share) * apart[other]
        joined[[one, other]] = np.inf
        apart[one] = apart[:, one] = joined
        apart[other] = apart[:, other] = np.inf
        sizes[one] += sizes[other]
        groups[groups == other] = one
        for row in [*np.flatnonzero(np.isin(nearest, (one, other))).tolist(), one, other]:
            nearest[row] = apart[row].argmin()
            near[row] = apart[row, nearest[row]]
        closer = joined < near
        nearest[closer], near[closer] = one, joined[closer]
    return groups
