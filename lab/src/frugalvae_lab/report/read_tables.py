"""Read the tables of a results folder: what was measured, what the paper has, what is missing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from frugalvae.errors import InputError, MissingPackageError
from frugalvae_lab.bench.data_sources import CATALOGUE
from frugalvae_lab.bench.grid import Cell, places
from frugalvae_lab.bench.results import Results
from frugalvae_lab.bench.spec import SAMPLE_MEASURES, Experiment
from frugalvae_lab.bench.toml import parse
from frugalvae_lab.report.results_table import (
    RATIOS,
    SAMPLES,
    Column,
    Entry,
    Line,
    Quoted,
    Run,
    Table,
)

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


def read_tables(folder: Path) -> list[Table]:
    """All tables of a results folder: those of the paper first, in the paper's order.

    Tables about samples follow the table whose runs observed them.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; give the one that 'bench run' wrote")
    store = Results(folder)
    tables = [read_table(store, name, content) for name, content in store.tables()]
    if not tables:
        raise InputError(
            f"{folder} has no tables; run an experiment first: "
            "frugalvae-lab bench run FILE.toml --results FOLDER"
        )
    tables.sort(key=lambda table: place_in_paper(table.experiment.reference))
    return [shown for table in tables for shown in (table, *sample_tables(table))]


def read_table(store: Results, name: str, content: Mapping[str, Any]) -> Table:
    """One table with all its runs."""
    try:
        experiment, mistakes = parse(name, content["experiment"], content.get("parts", []))
        if experiment is None:
            raise ValueError("; ".join(mistakes))
        data = {name: _request(content, about) for name, about in content["data"].items()}
        found = _runs(store, experiment, data)
    except MissingPackageError as error:  # no fault of the table
        raise MissingPackageError(f"the table {name!r} cannot be shown: {error}") from error
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


def _request(content: Mapping[str, Any], about: Mapping[str, Any]) -> dict[str, Any]:
    """A data set with its seeds and command; early tables had one of each for all data."""
    own = {key: about[key] if key in about else content[key] for key in ("seeds", "command")}
    return {**about, **own}


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


def _runs(
    store: Results, experiment: Experiment, data: Mapping[str, Mapping[str, Any]]
) -> dict[tuple[int, str, str], list[Run]]:
    """All runs, by the identity of their row, data set and protocol."""
    found: dict[tuple[int, str, str], list[Run]] = {}
    for place, cell in places(experiment, data):
        key = (id(place.row), place.data, place.protocol)
        found.setdefault(key, []).append(_run(store, cell, experiment.metric))
    return found


def _run(store: Results, cell: Cell, metric: str) -> Run:
    record = store.load(cell)
    if record is None:
        return Run(cell, None, None, store.failure(cell))
    try:
        return Run(cell, record, measured(metric, record), None)
    except (KeyError, TypeError, ZeroDivisionError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise InputError(
            f"the run {cell.name} has no {metric} ({reason}); delete its file in "
            f"{store.folder / 'runs'} and run the experiment again"
        ) from error


# --------------------------------------------------------------------------- tables about samples


def sample_tables(table: Table) -> list[Table]:
    """For a table that observes samples, one table of their quality per measured column."""
    if table.experiment.observe != "samples":
        return []
    return [
        _sample_table(table, number)
        for number, column in enumerate(table.columns)
        if not column.quoted
    ]


def _sample_table(table: Table, number: int) -> Table:
    column = table.columns[number]
    experiment = replace(
        table.experiment,
        title=f"{table.experiment.title}: samples of {column.heading}, {column.backbone}",
        about=" ".join(ABOUT_SAMPLES.split()),
        reference="",
        kind="table",
        metric=SAMPLES,
        show_memory=False,
    )
    columns = tuple(replace(column, metric=measure) for measure in SAMPLE_MEASURES)
    lines = [
        Line(line.row, tuple(_sample_entry(line.entries[number], name) for name in SAMPLE_MEASURES))
        for line in table.lines
        if not line.row.quoted
    ]
    data = {column.data: table.data[column.data]}
    return Table(f"{table.name}-samples-{number + 1}", experiment, columns, tuple(lines), data)


def _sample_entry(entry: Entry, measure: str) -> Entry:
    """The same runs, showing another measure."""
    runs = (replace(run, value=_sample_value(run.record, measure)) for run in entry.runs)
    return Entry(measure, tuple(runs))


def _sample_value(record: Mapping[str, Any] | None, measure: str) -> float | None:
    """Percent for shares, distances as they are; ``None`` if samples were not measured."""
    found = record["observed"].get("samples", {}).get(measure) if record else None
    return found if found is None or measure in RATIOS else 100.0 * found
