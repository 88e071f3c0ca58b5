"""Means and scatters of samples that come in two parts."""

from __future__ import annotations

import torch
from torch import Tensor


def merge(mean: Tensor, count: int, x: Tensor) -> tuple[Tensor, Tensor]:
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
    >>> mean, rows = merge(torch.tensor([1.0]), 2, torch.tensor([[4.0]]))
    >>> mean, rows.T @ rows  # of 1, 1, 4
    (tensor([2.]), tensor([[6.0000]]))
    """
    new, total = x.mean(dim=0), count + len(x)
    apart = new - mean
    rows = torch.cat([x - new, (count * len(x) / total) ** 0.5 * apart[None]])
    return mean + apart * (len(x) / total), rows
