"""Tables of what memories replay: one for each data set, a column for each measure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from frugalvae.bench.spec import SAMPLE_MEASURES
from frugalvae.report.table import SAMPLES, SCIENTIFIC, Entry, Line, Table

ABOUT = """
After the last task, each class is sampled as often as it has test features, and compared with
these: relative Fréchet distance (1 is the variance of the test features), precision (samples
that look real) and recall (test features that samples cover), means over classes. Samples and
test features are recognised by a classifier that was trained on all real training features.
Drift is the relative Fréchet distance of samples of the first task's classes, drawn after the
last task, from samples drawn after the first; without any, two draws differ by chance. A dash
where there is nothing to sample from.
"""


def sample_tables(table: Table) -> list[Table]:
    """For a table that observes samples, one of their quality for each measured column."""
    if table.experiment.observe != "samples":
        return []
    measured = [number for number, column in enumerate(table.columns) if not column.quoted]
    return [_sample_table(table, number) for number in measured]


def _sample_table(table: Table, number: int) -> Table:
    column = table.columns[number]
    experiment = replace(
        table.experiment,
        title=f"{table.experiment.title}: what is replayed of {column.heading}, {column.backbone}",
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
    """The same runs, showing another number."""
    runs = (replace(run, value=_value(run.record, measure)) for run in entry.runs)
    return Entry(tuple(runs), paper=None)


def _value(record: Mapping[str, Any] | None, measure: str) -> float | None:
    """Percent for shares, distances as they are; nothing where samples were not measured."""
    found = record["observed"].get("samples", {}).get(measure) if record else None
    return found if found is None or measure in SCIENTIFIC else 100.0 * found
