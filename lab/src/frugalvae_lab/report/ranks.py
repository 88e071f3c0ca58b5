"""Which of several methods is better over many cells: ranks, and paired differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Matrix = NDArray[np.float64]

LEVEL = 0.05


def mean_ranks(scores: Matrix) -> Matrix:
    """The mean rank of each method, 1 for the best; equal scores share their ranks.

    Parameters
    ----------
    scores
        Shape (cells, methods); more is better.

    Examples
    --------
    >>> mean_ranks(np.array([[0.9, 0.5, 0.5], [0.8, 0.7, 0.6]]))
    array([1.  , 2.25, 2.75])
    """
    return stats.rankdata(-scores.round(9), axis=1).mean(axis=0)  # sums of the same in any order


def critical_difference(methods: int, cells: int, level: float = LEVEL) -> float:
    """How far apart mean ranks must be to differ by more than chance (Nemenyi's test).

    References
    ----------
    Demšar: "Statistical Comparisons of Classifiers over Multiple Data Sets", JMLR 2006, whose
    Table 5 has q = 2.343 for three methods.

    Examples
    --------
    >>> round(critical_difference(4, 14), 2)
    1.25
    """
    q = stats.studentized_range.ppf(1 - level, methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(methods * (methods + 1) / (6 * cells)))


def groups(ranks: Sequence[float], apart: float) -> list[tuple[int, int]]:
    """First and last of each group of methods that are not ``apart``; none is in another.

    >>> groups([1.0, 1.5, 2.4, 5.0], apart=1.0)
    [(0, 1), (1, 2)]
    """
    ordered = np.asarray(ranks, float)
    lasts = np.searchsorted(ordered, ordered + apart, side="right") - 1
    found = [(first, int(last)) for first, last in enumerate(lasts) if last > first]
    return [
        pair for pair in found if not any(one[0] < pair[0] and one[1] >= pair[1] for one in found)
    ]


@dataclass(frozen=True)
class Duel:
    """One method against another, over cells that both have.

    Attributes
    ----------
    rival
        The other one.
    differences
        Ours minus the rival's, one per cell, in points.
    p
        How often chance alone would make them differ as much (Wilcoxon's signed-rank test).
    holm
        The same, for the best of all duels that are looked at (Holm's correction).
    """

    rival: str
    differences: Matrix
    p: float
    holm: float = 1.0

    @property
    def wins(self) -> int:
        """Cells in which ours is better."""
        return int((self.differences > 0).sum())

    @property
    def losses(self) -> int:
        """Cells in which the rival is better."""
        return int((self.differences < 0).sum())

    @property
    def mean(self) -> float:
        """Mean difference over cells."""
        return float(self.differences.mean())

    @property
    def interval(self) -> tuple[float, float]:
        """Where the mean difference lies with 95 % confidence (Student's t over cells)."""
        if len(self.differences) < 2:
            return -np.inf, np.inf
        spread = stats.sem(self.differences)
        reach = float(spread * stats.t.ppf(1 - LEVEL / 2, len(self.differences) - 1))
        return self.mean - reach, self.mean + reach


def duel(rival: str, differences: Matrix) -> Duel:
    """A duel with its p-value, not yet corrected for others.

    >>> fought = duel("other", np.array([1.0, 2.0, -0.5, 1.5, 0.7, 0.4]))
    >>> fought.wins, fought.losses, round(fought.mean, 2)
    (5, 1, 0.85)
    """
    same = not np.any(differences)
    p = 1.0 if same else float(stats.wilcoxon(differences, zero_method="zsplit").pvalue)
    return Duel(rival, differences, p)


def holm(p: Sequence[float]) -> list[float]:
    """Holm's correction of several p-values.

    >>> [round(value, 3) for value in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p)
    scaled = np.asarray(p, float)[order] * np.arange(len(p), 0, -1)
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return [float(value) for value in corrected]
