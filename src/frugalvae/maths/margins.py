"""Margins: by how much held-out samples' own classes led, counted in bins.

The margin of a sample is the score of its own class minus that of the best other one. It is
positive if the sample is classified correctly. One histogram tells how often answers are right,
below which lead they should be withheld, and how many classes a set needs.
"""

from __future__ import annotations

import numpy as np

from frugalvae.maths.arrays import Array

BINS, SCALE, STEP = 32, 0.05, 0.25
EDGES = SCALE * np.sinh(STEP * (np.arange(BINS + 1) - BINS / 2))  # finest around zero, (33,)
DOUBT = 1.64  # standard deviations of the number of wrong answers that a promise allows for
GRID = np.concatenate([[0.0], np.geomspace(2e-3, EDGES[-1], 120)])  # leads that are tried


def margins_of(scores: Array, columns: Array) -> Array:
    """By how much the columns (n,) of scores (n, k) lead, (n,).

    >>> margins_of(np.array([[3.0, 1.0, 2.0], [3.0, 1.0, 2.0]]), np.array([0, 2])).tolist()
    [1.0, -1.0]
    """
    rows, others = np.arange(len(scores)), scores.copy()
    others[rows, columns] = -np.inf
    margins: Array = scores[rows, columns] - others.max(axis=1)
    return margins


def counted(margins: Array) -> Array:
    """How many margins (n,) are in each bin, (32,); the outermost bins are open.

    >>> counted(np.array([-9.0, -0.001, 0.001, 9.0])).nonzero()[0].tolist()
    [0, 15, 16, 31]
    """
    inside = np.clip(margins, EDGES[0], EDGES[-1])
    counts: Array = np.histogram(inside, EDGES)[0].astype(np.float32)
    return counts


def leads_of_wrong(scores: Array, columns: Array) -> Array:
    """By how much the best class leads over the second best where it is not the right one, (m,).

    >>> leads_of_wrong(np.array([[3.0, 1.0, 2.0], [3.0, 1.0, 2.0]]), np.array([0, 1])).tolist()
    [1.0]
    """
    wrong = scores[scores.argmax(axis=1) != columns]
    top = np.sort(wrong, axis=1)[:, -2:]
    leads: Array = top[:, 1] - top[:, 0]
    return leads


def share_above(bins: Array, limits: Array) -> Array:
    """The share of margins above limits: of histograms (k, 32) and limits (k,), (k,).

    >>> bins = counted(np.array([-0.5, 0.5, 0.5, 0.5]))[None]
    >>> share_above(bins, np.array([0.0])).tolist(), share_above(bins, np.array([2.0])).tolist()
    ([0.75], [0.0])
    """
    below = np.concatenate([np.zeros((len(bins), 1)), np.cumsum(bins, axis=1)], axis=1)  # (k, 33)
    below /= np.maximum(below[:, -1:], 1e-30)
    places = np.clip(np.arcsinh(limits / SCALE) / STEP + BINS / 2, 0, BINS)  # in bins
    whole = np.minimum(places.astype(int), BINS - 1)
    rows = np.arange(len(bins))
    low, high = below[rows, whole], below[rows, whole + 1]
    above: Array = 1 - (low + (places - whole) * (high - low))
    return above


def lead_for_error(wrong: Array, answered: Array, samples: float, error: float) -> float:
    """The lead from which on at most a share ``error`` of answers is wrong; or infinity.

    ``wrong`` and ``answered`` are shares of ``samples`` held-out samples, for each lead of GRID.
    What chance may hide is allowed for: the number of wrong ones may be larger by 1.64 of its
    standard deviations, and by one. The promise then fails about one time in twenty.
    """
    kept = np.flatnonzero(errors_at_most(wrong, answered, samples) <= error)
    return float(GRID[kept[0]]) if len(kept) else float("inf")


def errors_at_most(wrong: Array, answered: Array, samples: float) -> Array:
    """The share of answers that may be wrong, by :func:`lead_for_error`, for each lead of GRID."""
    most = wrong * samples + DOUBT * np.sqrt(wrong * samples + 1) + 1
    return most / np.maximum(answered * samples, 1e-30)


def gap_for_coverage(missed: Array, samples: float, coverage: float) -> float:
    """How far below the best class a set reaches to hold the right one so often.

    ``missed`` is the share of ``samples`` whose own class is further below, for each gap of GRID.
    """
    enough = np.flatnonzero(missed * samples + 1 <= (1 - coverage) * (samples + 1))
    return float(GRID[enough[0]]) if len(enough) else float("inf")
