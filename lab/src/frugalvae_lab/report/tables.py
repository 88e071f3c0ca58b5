"""Tables of results as plain data: each entry holds its runs and the paper's figure."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from frugalvae.errors import InputError, MissingPackageError, UntrustedError
from frugalvae_lab.bench.data_sources import CATALOGUE
from frugalvae_lab.bench.grid import Cell, places
from frugalvae_lab.bench.results import Results
from frugalvae_lab.bench.specification import (
    METRICS,
    SAMPLE_MEASURES,
    SAMPLES,
    Experiment,
    Row,
    parse,
)

#: Metrics where less is better.
LESS_IS_BETTER = (
    *("forgetting", "calibration_error"),
    *("proportion", "first_layer_proportion", "relative_frechet"),
)
#: Metrics that are ratios or distances; all others are shares, shown in percent.
RATIOS = ("proportion", "first_layer_proportion", "relative_frechet", "drift", "drift_floor")
#: Metrics without a best value: each is read beside another one.
REFERENCES = ("sample_accuracy", "real_accuracy", "drift", "drift_floor")
#: Data sets of the paper that our catalogue does not have.
TITLES = {"imagenet-r": "ImageNet-R"}

ABOUT_SAMPLES = """
After the last task, each class is sampled as often as it has test features. The samples are
compared with the test features by their relative Fréchet distance (1 is the variance of the test
features), precision (share of samples that look real) and recall (share of test features that
samples cover), averaged over classes. A classifier trained on all real training features
classifies samples and test features. Drift is the relative Fréchet distance between samples of
the first task's classes drawn after the first task and after the last. Even without drift, two
sets of samples differ by chance. A dash means that there is nothing to sample from.
"""


class Quoted(NamedTuple):
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

    def parameters(self, counted: str) -> float | None:
        """Mean number of parameters, as the ``paper`` counts or as ``stored``; or ``bytes``."""
        found = [record["memory"][counted] for record in self.records]
        return statistics.fmean(found) if found else None

    def score(self, metric: str) -> float:
        """Another score of the runs, mean over seeds, in percent."""
        return 100 * statistics.fmean(record["metrics"][metric] for record in self.records)

    def seconds(self, part: str) -> float:
        """Median time to ``learn`` all tasks, or to ``predict``."""
        return seconds(self.records, part)

    @property
    def by_seed(self) -> dict[int, float]:
        """What was measured with each seed."""
        return {run.cell.seed: run.value for run in self.runs if run.value is not None}


def seconds(records: Sequence[Mapping[str, Any]], part: str) -> float:
    """Median time of some runs to ``learn`` all tasks or to ``predict``."""
    return statistics.median(sum(task[part] for task in run["seconds"]) for run in records)


class Line(NamedTuple):
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
    data: Mapping[str, Mapping[str, Any]]

    @property
    def metric(self) -> str:
        """What is measured, in words."""
        return (METRICS | {SAMPLES: "quality of replayed samples"})[self.experiment.metric]

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


# --------------------------------------------------------------------------- from a folder


def read_tables(folder: Path, trust: tuple[str, ...] = ()) -> list[Table]:
    """All tables of a results folder: those of the paper first, in the paper's order.

    Tables about samples follow the table whose runs observed them. Parts from outside are those
    that ``trust`` names.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; give the one that 'bench run' wrote")
    store = Results(folder)
    tables = [read_table(store, name, content, trust) for name, content in store.tables()]
    if not tables:
        raise InputError(
            f"{folder} has no tables; run an experiment first: "
            "frugalvae-lab bench run FILE.toml --results FOLDER"
        )
    tables.sort(key=lambda table: place_in_paper(table.experiment.reference))
    return [shown for table in tables for shown in (table, *sample_tables(table))]


def read_table(
    store: Results, name: str, content: Mapping[str, Any], trust: tuple[str, ...] = ()
) -> Table:
    """One table with all its runs."""
    try:
        experiment, data = parse(name, content["experiment"], trust), content["data"]
        for about, field in product(data.values(), ("title", "backbone", "command")):
            if not isinstance(about[field], str | None):
                raise ValueError(f"{field} is {about[field]!r}; expected text")
        found: dict[tuple[int, str, str], list[Run]] = {}
        for place, cell in places(experiment, data):
            key = (id(place.row), place.data, place.protocol)
            found.setdefault(key, []).append(_run(store, cell, experiment.metric))
    except (MissingPackageError, UntrustedError) as error:  # no fault of the table
        raise InputError(f"the table {name!r} cannot be shown: {error}") from error
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        where = store.folder / "tables" / f"{name}.json"
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise InputError(f"{where} is damaged ({reason}); run the experiment again") from error
    columns = tuple(columns_of(experiment, data))
    lines = []
    for row in experiment.rows:
        entries = []
        for column in columns:
            runs = () if column.quoted else found.get((id(row), column.data, column.protocol), ())
            figure = row.paper.get(column.key)
            quoted = Quoted(*figure) if figure else None
            entries.append(Entry(experiment.metric, tuple(runs), quoted))
        lines.append(Line(row, tuple(entries)))
    return Table(name, experiment, columns, tuple(lines), data)


def columns_of(experiment: Experiment, data: Mapping[str, Mapping[str, Any]]) -> Iterator[Column]:
    """Measured columns in the experiment's order, then those that only the paper has."""
    order = [name for name in experiment.data if name in data]
    order += [name for name in data if name not in order]
    encoder, metric = experiment.encoder, experiment.metric
    trained = f"{encoder.name} trained on the first task" if encoder else ""
    known = set()
    for name in order:
        for protocol, stream in experiment.protocols.items():
            if not stream.takes(name):
                continue
            backbone = trained or data[name]["backbone"] or "images"
            column = Column(name, data[name]["title"], protocol, backbone, metric)
            known.add(column.key)
            yield column
    for key in dict.fromkeys(key for row in experiment.rows for key in row.paper):
        if key not in known:
            name, _, protocol = key.partition(" ")
            title = CATALOGUE[name].title if name in CATALOGUE else TITLES.get(name, name)
            yield Column(name, title, protocol, experiment.paper_backbone, metric, quoted=True)


def place_in_paper(reference: str) -> tuple[int, int]:
    """Sort key of a reference: the paper's tables by number, its figures, all others.

    >>> sorted(["", "Figure 1", "Table 9", "Table 3, and more", "Figures 4 to 7"],
    ...        key=place_in_paper)
    ['Table 3, and more', 'Table 9', 'Figure 1', 'Figures 4 to 7', '']
    """
    found = re.match(r"(Table|Figure)s? (\d+)", reference)
    return (("Table", "Figure").index(found[1]), int(found[2])) if found else (2, 0)


def measured(metric: str, record: Mapping[str, Any]) -> float:
    """The value of a run that a table shows: shares in percent, R as it is."""
    if metric in ("proportion", "first_layer_proportion"):
        layers = [
            layer["proportion"]
            for layer in record["layers"]
            if metric == "proportion" or layer["layer"] == 1
        ]
        return float(sum(layers) / len(layers))
    return 100.0 * float(record["metrics"][metric])


def _run(store: Results, cell: Cell, metric: str) -> Run:
    record = store.load(cell)
    if record is None:
        return Run(cell, None, None, store.failure(cell))
    try:
        return Run(cell, record, measured(metric, record), None)
    except (KeyError, TypeError, ZeroDivisionError) as error:
        raise InputError(
            f"the run {cell.name} has no {metric} ({type(error).__name__}: {error}); delete its "
            f"file in {store.folder / 'runs'} and run the experiment again"
        ) from error


def sample_tables(table: Table) -> list[Table]:
    """For a table that observes samples, one table of their quality per measured column."""
    if table.experiment.observe != SAMPLES:
        return []
    return [_sample_table(table, n) for n, column in enumerate(table.columns) if not column.quoted]


def _sample_table(table: Table, number: int) -> Table:
    column = table.columns[number]
    changes = {
        "title": f"{table.experiment.title}: samples of {column.heading}, {column.backbone}",
        "about": " ".join(ABOUT_SAMPLES.split()),
        "reference": "",
        "kind": "table",
        "metric": SAMPLES,
        "show_memory": False,
    }
    lines = [
        Line(line.row, tuple(_sample_entry(line.entries[number], name) for name in SAMPLE_MEASURES))
        for line in table.lines
        if not line.row.quoted
    ]
    return Table(
        f"{table.name}-samples-{number + 1}",
        table.experiment.model_copy(update=changes),
        tuple(replace(column, metric=measure) for measure in SAMPLE_MEASURES),
        tuple(lines),
        {column.data: table.data[column.data]},
    )


def _sample_entry(entry: Entry, measure: str) -> Entry:
    """The same runs, showing another measure: percent of shares, and distances as they are."""
    factor, runs = 1.0 if measure in RATIOS else 100.0, []
    for run in entry.runs:
        found = run.record["observed"].get("samples", {}).get(measure) if run.record else None
        runs.append(replace(run, value=None if found is None else factor * found))
    return Entry(measure, tuple(runs))
