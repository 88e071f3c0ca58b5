"""A table as plain data: rows, columns, and in each entry the runs and the paper's figure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from frugalvae.bench.cell import Cell
from frugalvae.bench.spec import METRICS, SAMPLE_MEASURES, Experiment, Row

#: Of these, less is better.
SMALL_IS_GOOD = (
    *("forgetting", "proportion", "first_layer_proportion"),
    "relative_frechet",
)
#: These are printed in scientific notation, all others as percent.
SCIENTIFIC = (
    *("proportion", "first_layer_proportion"),
    *("relative_frechet", "drift", "drift_floor"),
)
#: Of these, no value is the best: they are to be compared with another measure.
NO_CONTEST = ("sample_accuracy", "real_accuracy", "drift", "drift_floor")
#: The metric of a table that has a column for each measure of samples.
SAMPLES = "samples"


@dataclass(frozen=True)
class Quoted:
    """A figure of the paper."""

    mean: float
    std: float | None = None


@dataclass(frozen=True, eq=False)
class Run:
    """One run behind an entry.

    Attributes
    ----------
    cell
        What was to be run.
    record, value
        What happened, and the number that the table shows; ``None`` if it did not finish. A
        run that finished has no number where there was nothing to measure.
    failure
        The traceback, if it failed.
    """

    cell: Cell
    record: Mapping[str, Any] | None
    value: float | None
    failure: str | None


@dataclass(frozen=True)
class Column:
    """A data set under a protocol, and what is measured there.

    ``quoted`` columns are the paper's alone; ``backbone`` is then the paper's too.
    """

    data: str
    title: str
    protocol: str
    backbone: str
    metric: str
    quoted: bool = False

    @property
    def key(self) -> str:
        """What the paper's figures for this column are filed under."""
        return f"{self.data} {self.protocol}".strip()

    @property
    def heading(self) -> str:
        """What stands above it: the measure where each column has its own, else the data set."""
        if self.metric in SAMPLE_MEASURES:
            return SAMPLE_MEASURES[self.metric][0]
        return f"{self.title} {self.protocol}".strip()

    @property
    def note(self) -> str:
        """What stands below its heading: how to read the measure, or the backbone."""
        return SAMPLE_MEASURES[self.metric][1] if self.metric in SAMPLE_MEASURES else self.backbone


@dataclass(frozen=True, eq=False)
class Entry:
    """Runs with several seeds, and the paper's figure.

    >>> Entry((), Quoted(83.7)).mean is None
    True
    """

    runs: tuple[Run, ...]
    paper: Quoted | None

    @cached_property
    def values(self) -> list[float]:
        """What the finished runs measured."""
        return [run.value for run in self.runs if run.value is not None]

    @property
    def mean(self) -> float | None:
        """Over seeds."""
        return statistics.fmean(self.values) if self.values else None

    @property
    def std(self) -> float | None:
        """Sample standard deviation over seeds; one seed has none."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        if self.mean is None or self.paper is None:
            return None
        return self.mean - self.paper.mean

    @property
    def failed(self) -> int:
        """How many runs failed."""
        return sum(run.failure is not None for run in self.runs)

    @property
    def missing(self) -> int:
        """How many runs neither finished nor failed."""
        return sum(run.record is None and run.failure is None for run in self.runs)

    def numbers(self, counted: str) -> float | None:
        """Numbers kept, ``counted`` as the ``paper`` does or as ``stored``; mean over seeds."""
        found = [run.record["memory"][counted] for run in self.runs if run.record is not None]
        return statistics.fmean(found) if found else None


@dataclass(frozen=True, eq=False)
class Line:
    """A row and its entries, one a column."""

    row: Row
    entries: tuple[Entry, ...]


@dataclass(frozen=True, eq=False)
class Table:
    """A table or figure.

    ``data`` tells of each data set its title and backbone, the seeds that were asked for, and
    the command that asked last.
    """

    name: str
    experiment: Experiment
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    data: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def metric(self) -> str:
        """What is measured, in words."""
        names = {**METRICS, SAMPLES: "quality of the samples that are replayed"}
        return names[self.experiment.metric]

    @property
    def in_percent(self) -> bool:
        """Whether all its numbers are percent."""
        return self.experiment.metric not in (*SCIENTIFIC, SAMPLES)

    @property
    def commands(self) -> list[str]:
        """What to type to get these numbers; data sets may have come one by one."""
        return list(dict.fromkeys(about["command"] for about in self.data.values()))

    @property
    def has_numbers(self) -> bool:
        """Whether it is a table of numbers, not just a figure."""
        return self.experiment.kind in ("table", "courses")

    @property
    def labels(self) -> list[str]:
        """Names of the columns of ticks and crosses."""
        return list(dict.fromkeys(key for line in self.lines for key in line.row.labels))

    @property
    def runs(self) -> list[Run]:
        """All runs, row by row; once each, though several columns may show measures of it."""
        shown = (run for line in self.lines for entry in line.entries for run in entry.runs)
        return list({id(run.cell): run for run in shown}.values())

    @property
    def done(self) -> int:
        """How many runs have finished."""
        return sum(run.record is not None for run in self.runs)

    @property
    def failures(self) -> list[Run]:
        """The runs that failed."""
        return [run for run in self.runs if run.failure is not None]

    def is_best(self, entry: Entry, column: int) -> bool:
        """Whether no measured entry of its column is better, and some entry is worse."""
        metric = self.columns[column].metric
        means = [m for line in self.lines if (m := line.entries[column].mean) is not None]
        if entry.mean is None or len(set(means)) < 2 or metric in NO_CONTEST:
            return False
        best = min if metric in SMALL_IS_GOOD else max
        return entry.mean == best(means)


def unique_runs(tables: list[Table]) -> dict[str, Run]:
    """All runs by name, once each: tables share them, and one that finished counts first."""
    found: dict[str, Run] = {}
    for table in tables:
        for run in table.runs:
            if run.cell.name not in found or run.record is not None:
                found[run.cell.name] = run
    return found
