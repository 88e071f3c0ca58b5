"""Means and scatters of samples that come in two parts."""

from __future__ import annotations

import numpy as np

from frugalvae.maths.arrays import Array


def merge(mean: Array, count: int, x: Array) -> tuple[Array, Array]:
    """Mean of old and new samples together, and rows whose outer products the new ones add.

    Parameters
    ----------
    mean, count
        Of the old samples, (d,), and how many they were.
    x
        The new samples, (n, d).

    Returns
    -------
    mean
        Of all samples, (d,).
    rows
        R of shape (n + 1, d): the scatter of all samples around their mean is that of the
        old ones around theirs plus ``R.T @ R``. The last row is for how far apart the two
        means are.

    Examples
    --------
    >>> mean, rows = merge(np.array([1.0]), 2, np.array([[4.0]]))
    >>> mean.tolist(), (rows.T @ rows).round(9).tolist()  # of 1, 1, 4
    ([2.0], [[6.0]])
    """
    new, total = x.mean(axis=0), count + len(x)
    apart = new - mean
    rows = np.concatenate([x - new, (count * len(x) / total) ** 0.5 * apart[None]])
    return mean + apart * (len(x) / total), rows
