"""Groups of unknown samples that look like each other: perhaps new classes."""

from __future__ import annotations

import numpy as np

from frugalvae.maths.arrays import Array, unit
from frugalvae.maths.linkage import average_linkage
from frugalvae.moments.memory import MomentMemory

LEAST = 3  # samples that make a group
MOST = 3000  # samples that are grouped
ALIKE = 0.3  # similarity between samples of a class if none was taught
PART = 0.6  # of the usual similarity of samples of one class: above, groups become one


def group_unknown(directions: Array, rows: Array, memory: MomentMemory) -> list[list[int]]:
    """Rows of samples that look unknown, in groups; the largest first, single ones left out.

    Average linkage of cosines in whitened coordinates. Groups are joined while their samples are
    about as similar as those of a taught class.

    Parameters
    ----------
    directions
        All samples in whitened coordinates, of length one, (n, d).
    rows
        Which of them look unknown.
    memory
        What was taught, to tell how similar samples of one class are.
    """
    rows = rows[:MOST]
    if len(rows) < LEAST:
        return []
    around = unit(directions[rows] - directions.mean(axis=0))
    distances = np.maximum(1 - around @ around.T, 0)
    labels = average_linkage(distances, 1 - PART * usual_similarity(memory))
    groups = [rows[labels == label].tolist() for label in np.unique(labels)]
    return sorted((group for group in groups if len(group) >= LEAST), key=len, reverse=True)


def usual_similarity(memory: MomentMemory) -> float:
    """The cosine that two samples of a taught class have on average, in whitened coordinates.

    Of x = mean + noise it is the square of the mean, relative to that of x.
    """
    counts = np.array(list(memory.counts_.values()))
    if len(counts) < 2 or counts.sum() <= len(counts):
        return ALIKE
    means, noise = memory.whitened_means()
    squares = (means**2).sum(axis=1) - noise / counts
    share = np.maximum(squares, 0) / (np.maximum(squares, 0) + noise)
    return float(np.average(share, weights=counts))
