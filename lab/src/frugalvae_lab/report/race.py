"""A race as plain data: who is first where, by how much, and at what cost.

The first row of the experiment is ours. Rows whose names begin with its name are ours in another
size. All others are rivals.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from frugalvae_lab.report.frontier import Point, ordered
from frugalvae_lab.report.tables import Column, Entry, Line, Table, seconds

Matrix = NDArray[np.float64]

ALL = "all"  # the protocol with all samples
LEVEL = 0.05  # of tests


class Gap(NamedTuple):
    """Ours minus the best rival's in a column, in points."""

    column: Column
    points: float
    rival: str


class Standing(NamedTuple):
    """One method over all columns.

    Attributes
    ----------
    name
        What it is called.
    rank
        Mean rank over the columns that all ranked methods have; ``None`` if it has too few.
    means
        For each protocol, the mean over the data sets that all ranked methods have, in percent.
    bytes
        Fewest and most bytes kept, over data sets with all samples.
    calibration
        Mean expected calibration error over all columns that it has, in percent.
    learn, answer
        Median seconds over those columns, to learn all tasks and to answer all test samples.
    """

    name: str
    rank: float | None
    means: dict[str, float | None]
    bytes: tuple[float, float] | None
    calibration: float | None
    learn: float | None
    answer: float | None


class Race:
    """What a race's table tells.

    Parameters
    ----------
    table
        A table whose experiment has ``kind = "race"``.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        self.names = [line.row.name for line in table.lines]
        self.ours = self.names[0]
        self.rivals = [line.row.name for line in table.lines if not _same(line, table.lines[0])]
        self.entries = {line.row.name: line.entries for line in table.lines}
        self.protocols = list(dict.fromkeys(column.protocol for column in table.columns))
        self.shots = [name for name in self.protocols if name.isdigit() or name == ALL]

    @cached_property
    def scores(self) -> list[dict[str, float]]:
        """For each column, the mean of each method over the seeds that all have there.

        Methods without runs are left out.
        """
        found = []
        for number in range(len(self.table.columns)):
            seeds = {name: entries[number].by_seed for name, entries in self.entries.items()}
            there = {name: values for name, values in seeds.items() if values}
            common = set.intersection(*map(set, there.values())) if there else set()
            found.append(
                {
                    name: statistics.fmean(values[seed] for seed in common)
                    for name, values in there.items()
                    if common
                }
            )
        return found

    @cached_property
    def ranked(self) -> list[str]:
        """The methods with at least half as many columns as the one with most."""
        counts = {name: sum(name in found for found in self.scores) for name in self.names}
        most = max(counts.values())
        return [name for name in self.names if most and 2 * counts[name] >= most]

    @cached_property
    def complete(self) -> list[int]:
        """The columns that every ranked method has."""
        if not self.ranked:
            return []
        return [n for n, found in enumerate(self.scores) if found.keys() >= set(self.ranked)]

    @cached_property
    def ranks(self) -> dict[str, float]:
        """Mean rank of each method over complete columns, best first."""
        if not self.complete:
            return {}
        table = [[self.scores[number][name] for name in self.ranked] for number in self.complete]
        found = mean_ranks(np.array(table)).tolist()
        return dict(sorted(zip(self.ranked, found, strict=True), key=lambda pair: pair[1]))

    @property
    def order(self) -> list[str]:
        """All methods, the best rank first; those without come last."""
        return [*self.ranks, *(name for name in self.names if name not in self.ranks)]

    @property
    def critical_difference(self) -> float:
        """How far apart mean ranks must be to differ by more than chance."""
        return critical_difference(len(self.ranks), len(self.complete))

    @property
    def chance(self) -> float:
        """Friedman's test: how often chance alone would make ranks differ as much."""
        columns = [[self.scores[n][name] for n in self.complete] for name in self.ranks]
        return float(stats.friedmanchisquare(*columns).pvalue)

    @cached_property
    def standings(self) -> list[Standing]:
        """All methods in their order."""
        return [self._standing(name) for name in self.order]

    def _standing(self, name: str) -> Standing:
        entries = self.entries[name]
        common = [entries[n] for n in self.complete] if name in self.ranks else entries
        records = [record for entry in common for record in entry.records]
        errors = [entry.score("calibration_error") for entry in common if entry.records]
        return Standing(
            name,
            self.ranks.get(name),
            {protocol: self._mean(name, protocol) for protocol in self.protocols},
            self.kept_bytes(name, "", ALL),
            statistics.fmean(errors) if errors else None,
            seconds(records, "learn") if records else None,
            seconds(records, "predict") if records else None,
        )

    def _mean(self, name: str, protocol: str) -> float | None:
        """Over the data sets that every method has."""
        found = [
            self.scores[number][name]
            for number in self.complete
            if name in self.ranks and self.table.columns[number].protocol == protocol
        ]
        return statistics.fmean(found) if found else None

    @cached_property
    def duels(self) -> list[Duel]:
        """Ours against each rival, in the order of their ranks."""
        rivals = [name for name in self.order if name in self.rivals]
        found = [duel(name, np.array(d)) for name in rivals if (d := self._differences(name))]
        corrected = holm([one.p for one in found])
        return [replace(one, holm=p) for one, p in zip(found, corrected, strict=True)]

    def _differences(self, rival: str) -> list[float]:
        """Ours minus the rival's in each column that both have: mean over seeds of both."""
        found = []
        for ours, theirs in zip(self.entries[self.ours], self.entries[rival], strict=True):
            one, other = ours.by_seed, theirs.by_seed
            both = one.keys() & other.keys()
            if both:
                found.append(statistics.fmean(one[seed] - other[seed] for seed in both))
        return found

    @cached_property
    def gaps(self) -> list[Gap]:
        """Ours against the best rival of each column that we have."""
        found = []
        for number, column in enumerate(self.table.columns):
            others = {n: score for n, score in self.scores[number].items() if n in self.rivals}
            if self.ours in self.scores[number] and others:
                best = max(others, key=lambda name: others[name])
                points = self.scores[number][self.ours] - others[best]
                found.append(Gap(column, points, best))
        return found

    def gap(self, data: str, protocol: str) -> Gap | None:
        """The one of a column; ``None`` if it is not complete or does not exist."""
        found = (g for g in self.gaps if (g.column.data, g.column.protocol) == (data, protocol))
        return next(found, None)

    def podium(self, rivals: int = 3) -> list[str]:
        """Ours and the rivals with the best ranks."""
        best = [name for name in self.order if name in self.rivals]
        return [self.ours, *best[:rivals]]

    def curve(self, data: str, name: str) -> list[float | None]:
        """Accuracy of a method by number of samples."""
        means = {
            column.protocol: found.get(name)
            for column, found in zip(self.table.columns, self.scores, strict=True)
            if column.data == data
        }
        return [means.get(protocol) for protocol in self.shots]

    def frontier(self, data: str) -> list[Point]:
        """Every method with all samples of a data set, ordered by bytes."""
        points = [
            Point(line.row.name, entry, counted="bytes")
            for line, column, entry in self.table.entries
            if (column.data, column.protocol) == (data, ALL) and entry.values
        ]
        return ordered(points)

    def entry(self, name: str, data: str, protocol: str) -> Entry:
        """The runs of a method in a column."""
        columns = [(column.data, column.protocol) for column in self.table.columns]
        return self.entries[name][columns.index((data, protocol))]

    def kept_bytes(self, name: str, data: str, protocol: str = "") -> tuple[float, float] | None:
        """Fewest and most bytes that a method keeps of a data set, or under a protocol."""
        kept = [
            entry.parameters("bytes") or 0.0
            for column, entry in zip(self.table.columns, self.entries[name], strict=True)
            if data in ("", column.data) and protocol in ("", column.protocol) and entry.values
        ]
        return (min(kept), max(kept)) if kept else None

    def results(self, data: str, protocol: str) -> list[tuple[str, Entry]]:
        """All methods that have a column, best first."""
        found = [
            (line.row.name, entry)
            for line, column, entry in self.table.entries
            if (column.data, column.protocol) == (data, protocol) and entry.values
        ]
        return sorted(found, key=lambda pair: -(pair[1].mean or 0.0))

    @property
    def data(self) -> dict[str, str]:
        """Titles of the data sets by name, in the order of the columns."""
        return {column.data: column.title for column in self.table.columns}


def _same(line: Line, other: Line) -> bool:
    """Whether two lines are one method, perhaps with other settings."""
    parts = [(row.memory, row.head) for row in (line.row, other.row)]
    one, two = [[part and part.name for part in pair] for pair in parts]
    return one == two


# --------------------------------------------------------------------------- statistics


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
