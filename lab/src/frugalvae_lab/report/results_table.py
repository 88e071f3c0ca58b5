"""A table of results as plain data: each entry holds its runs and the paper's figure."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from frugalvae_lab.bench.grid import Cell
from frugalvae_lab.bench.spec import METRICS, SAMPLE_MEASURES, Experiment, Row

#: Metrics where less is better.
LESS_IS_BETTER = (
    "forgetting",
    "calibration_error",
    "proportion",
    "first_layer_proportion",
    "relative_frechet",
)
#: Metrics that are ratios or distances; all others are shares, shown in percent.
RATIOS = ("proportion", "first_layer_proportion", "relative_frechet", "drift", "drift_floor")
#: Metrics without a best value: each is read beside another one.
REFERENCES = ("sample_accuracy", "real_accuracy", "drift", "drift_floor")
#: The metric of a table with one column per measure of samples.
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
        The settings of the run.
    record, value
        What was recorded, and the value that the table shows. Both are ``None`` if the run has
        not finished; the value alone is ``None`` if there was nothing to measure.
    failure
        The traceback, if the run failed.
    """

    cell: Cell
    record: Mapping[str, Any] | None
    value: float | None
    failure: str | None


@dataclass(frozen=True)
class Column:
    """A data set under a protocol, and the metric shown there.

    A ``quoted`` column holds figures of the paper only; ``backbone`` is then the paper's.
    """

    data: str
    title: str
    protocol: str
    backbone: str
    metric: str
    quoted: bool = False

    @property
    def key(self) -> str:
        """The name of this column among the paper's figures."""
        return f"{self.data} {self.protocol}".strip()

    @property
    def heading(self) -> str:
        """The measure of samples, or else the data set and protocol."""
        if self.metric in SAMPLE_MEASURES:
            return SAMPLE_MEASURES[self.metric][0]
        return f"{self.title} {self.protocol}".strip()

    @property
    def note(self) -> str:
        """The line below the heading: how to read a measure of samples, or the backbone."""
        return SAMPLE_MEASURES[self.metric][1] if self.metric in SAMPLE_MEASURES else self.backbone


@dataclass(frozen=True, eq=False)
class Entry:
    """The runs of one row in one column, one per seed, and the paper's figure.

    >>> Entry("forgetting", (), Quoted(83.7)).mean is None
    True
    """

    metric: str
    runs: tuple[Run, ...]
    paper: Quoted | None = None

    @cached_property
    def values(self) -> list[float]:
        """What the finished runs measured."""
        return [run.value for run in self.runs if run.value is not None]

    @property
    def records(self) -> list[Mapping[str, Any]]:
        """The records of the finished runs."""
        return [run.record for run in self.runs if run.record is not None]

    @cached_property
    def mean(self) -> float | None:
        """Mean over seeds."""
        return statistics.fmean(self.values) if self.values else None

    @property
    def std(self) -> float | None:
        """Sample standard deviation over seeds; ``None`` for a single seed."""
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

    def parameters(self, counted: str) -> float | None:
        """Mean number of parameters, as the ``paper`` counts or as ``stored``; or ``bytes``."""
        found = [record["memory"][counted] for record in self.records]
        return statistics.fmean(found) if found else None


@dataclass(frozen=True, eq=False)
class Line:
    """A row of the experiment and its entries, one per column."""

    row: Row
    entries: tuple[Entry, ...]


@dataclass(frozen=True, eq=False)
class Table:
    """A table or figure.

    ``data`` has, for each data set, its title and backbone, the seeds that were asked for, and
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
        names = {**METRICS, SAMPLES: "quality of replayed samples"}
        return names[self.experiment.metric]

    @property
    def in_percent(self) -> bool:
        """Whether all its values are percent."""
        return self.experiment.metric not in (*RATIOS, SAMPLES)

    @property
    def commands(self) -> list[str]:
        """The commands that made it; each data set may have its own."""
        return list(dict.fromkeys(about["command"] for about in self.data.values()))

    @property
    def has_numbers(self) -> bool:
        """Whether it is a table of numbers, not just a figure."""
        return self.experiment.kind in ("table", "courses", "race")

    @property
    def labels(self) -> list[str]:
        """Names of the columns with check marks."""
        return list(dict.fromkeys(key for line in self.lines for key in line.row.labels))

    @property
    def entries(self) -> Iterator[tuple[Line, Column, Entry]]:
        """All entries, row by row."""
        for line in self.lines:
            for column, entry in zip(self.columns, line.entries, strict=True):
                yield line, column, entry

    @property
    def quotes(self) -> bool:
        """Whether any entry has a figure of the paper."""
        return any(entry.paper for _, _, entry in self.entries)

    @property
    def runs(self) -> list[Run]:
        """All runs, row by row; each once, even if several columns show measures of it."""
        shown = (run for _, _, entry in self.entries for run in entry.runs)
        return list({id(run.cell): run for run in shown}.values())

    @property
    def done(self) -> int:
        """How many runs have finished."""
        return sum(run.record is not None for run in self.runs)

    @property
    def failures(self) -> list[Run]:
        """The runs that failed."""
        return [run for run in self.runs if run.failure is not None]

    @cached_property
    def best(self) -> set[Entry]:
        """The best measured entries of each column, where entries differ."""
        found = set()
        for number, column in enumerate(self.columns):
            measured = {e: e.mean for line in self.lines if (e := line.entries[number]).values}
            if column.metric not in REFERENCES and len(set(measured.values())) > 1:
                choose = min if column.metric in LESS_IS_BETTER else max
                best = choose(mean for mean in measured.values() if mean is not None)
                found |= {entry for entry, mean in measured.items() if mean == best}
        return found


def unique_runs(tables: Sequence[Table]) -> dict[str, Run]:
    """All runs by name, each once; of a run that several tables share, one that finished."""
    found: dict[str, Run] = {}
    for table in tables:
        for run in table.runs:
            if run.cell.name not in found or run.record is not None:
                found[run.cell.name] = run
    return found
