"""Near-duplicates: which samples are nearly the same photograph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from frugalvae.maths.arrays import Array, unit
from frugalvae.progress import track

NEAR = 0.35  # of the usual distance to the nearest other sample: below, two are one photograph
OTHER_BITS = 0.1  # of a pattern: fewer differ between two copies of a photograph
SAME = 1e-5  # a cosine distance that rounding explains
COARSE = 128  # directions in which most pairs are told apart
BLOCK = 1024  # rows whose distances are computed at a time
MOST = 50  # duplicates that are followed for each sample


class Twin(NamedTuple):
    """A sample that is nearly the same as an earlier one, and how sure that is."""

    row: int
    of: int
    sure: float


def near_duplicates(features: Array, near: float = NEAR) -> list[Twin]:
    """Samples (n, d) that are nearly the same as an earlier one, each with the first of them.

    Distances are cosines around the mean of all. The limit is relative to how far samples usually
    are from their nearest neighbour, so it depends neither on the encoder nor on its scale.
    A photograph that was made brighter, mirrored or cut a little is found; one that was compressed
    or cut a lot often is not.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(20, 8))
    >>> x[7] = 1.01 * x[3]
    >>> [(twin.row, twin.of) for twin in near_duplicates(x)]
    [(7, 3)]
    """
    if len(features) < 2:
        return []
    rows = np.asarray(features, np.float32)
    around = rows - (rows.mean(axis=0) if len(rows) > 2 else 0)
    centre = np.linalg.norm(around, axis=1) <= SAME * np.linalg.norm(rows, axis=1)  # no direction
    directions = np.column_stack([np.where(centre[:, None], 0, unit(around)), centre])
    directions = directions.astype(np.float32)
    return _twins(directions, max(SAME, near * _usual_distance(directions)))


def same_pixels(patterns: Array) -> list[Twin]:
    """The same of patterns (n, bits) that ``image_quality.pattern_of`` gives.

    They find what was scaled or compressed, where features see a difference; features find what
    was mirrored or cut. A photograph without a pattern has nothing but False.
    """
    known = np.flatnonzero(patterns.any(axis=1))
    if len(known) < 2:
        return []
    signs = unit(np.where(patterns[known], 1, -1).astype(np.float32))
    places = known.tolist()
    return [Twin(places[row], places[of], sure) for row, of, sure in _twins(signs, 2 * OTHER_BITS)]


def _twins(directions: Array, limit: float) -> list[Twin]:
    """Rows of length one (n, d) that are nearer than a limit to an earlier one."""
    first, sure = np.arange(len(directions)), np.ones(len(directions))
    for rows, others in _candidates(directions, limit):
        distances = 1 - np.einsum("pd,pd->p", directions[rows], directions[others])
        near = np.flatnonzero(distances < limit)
        for place in near[np.unique(rows[near], return_index=True)[1]].tolist():
            row = rows[place]
            first[row] = first[others[place]]
            sure[row] = 1 - max(0.0, float(distances[place])) / limit / 2
    found = np.flatnonzero(first < np.arange(len(directions)))
    return [Twin(int(row), int(first[row]), float(sure[row])) for row in found]


def _candidates(directions: Array, limit: float) -> Iterator[tuple[Array, Array]]:
    """Pairs of rows and earlier ones that may be nearer than a limit, both (p,), in order.

    In a few directions, two rows are at most as far apart as they are in all. So most pairs are
    ruled out there, with a fraction of the work.
    """
    step = max(1, len(directions) // COARSE)
    axes = np.linalg.qr(directions[::step][:COARSE].T)[0]  # (d, m)
    coarse = directions @ axes  # (n, m)
    halves, ones = (coarse**2).sum(axis=1) / 2, np.ones(len(coarse), np.float32)
    left, right = np.column_stack([coarse, halves, ones]), np.column_stack([-coarse, ones, halves])
    for start in track(range(0, len(left), BLOCK), "looking for duplicates"):
        stop = min(start + BLOCK, len(left))
        apart = left[start:stop] @ right[:stop].T  # (block, earlier): bounds of distances
        rows, others = np.divmod(np.flatnonzero(apart < limit + SAME), stop)
        earlier = others < start + rows
        rows, others = rows[earlier], others[earlier]
        followed = np.arange(len(rows)) - np.searchsorted(rows, rows) < MOST
        yield start + rows[followed], others[followed]


def _usual_distance(directions: Array, most: int = 256) -> float:
    """The median distance from a sample to the nearest one that is not the same."""
    step = max(1, len(directions) // most)
    distances = 1 - directions[::step] @ directions.T  # (some, n)
    distances[distances < SAME] = np.inf
    nearest = distances.min(axis=1)
    known = nearest[np.isfinite(nearest)]
    return float(np.median(known)) if len(known) else 0.0
