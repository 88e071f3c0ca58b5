"""Tables about the samples that memories replay: one per data set, one column per measure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from frugalvae.bench.spec import SAMPLE_MEASURES
from frugalvae.report.results_table import RATIOS, SAMPLES, Entry, Line, Table

ABOUT = """
After the last task, each class is sampled as often as it has test features. The samples are
compared with the test features by their relative Fréchet distance (1 is the variance of the test
features), precision (share of samples that look real) and recall (share of test features that
samples cover), averaged over classes. A classifier trained on all real training features
classifies samples and test features. Drift is the relative Fréchet distance between samples of
the first task's classes drawn after the first task and after the last. Even without drift, two
sets of samples differ by chance. A dash means that there is nothing to sample from.
"""


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
        about=" ".join(ABOUT.split()),
        reference="",
        kind="table",
        metric=SAMPLES,
        show_memory=False,
    )
    columns = tuple(replace(column, metric=measure) for measure in SAMPLE_MEASURES)
    lines = [
        Line(line.row, tuple(_entry(line.entries[number], name) for name in SAMPLE_MEASURES))
        for line in table.lines
        if not line.row.quoted
    ]
    data = {column.data: table.data[column.data]}
    return Table(f"{table.name}-samples-{number + 1}", experiment, columns, tuple(lines), data)


def _entry(entry: Entry, measure: str) -> Entry:
    """The same runs, showing another measure."""
    runs = (replace(run, value=_value(run.record, measure)) for run in entry.runs)
    return Entry(measure, tuple(runs))


def _value(record: Mapping[str, Any] | None, measure: str) -> float | None:
    """Percent for shares, distances as they are; ``None`` if samples were not measured."""
    found = record["observed"].get("samples", {}).get(measure) if record else None
    return found if found is None or measure in RATIOS else 100.0 * found
