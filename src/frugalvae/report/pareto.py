"""Accuracy against memory: every recipe that was measured, once, and which of them pay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from frugalvae.bench.cell import digest
from frugalvae.bench.spec import Row
from frugalvae.report.table import Entry, Table

METRIC, TASKS = "final_average_accuracy", 10


@dataclass(frozen=True, eq=False)
class Point:
    """One recipe on one data set."""

    name: str
    entry: Entry
    best: bool = False

    @property
    def seconds(self) -> float:
        """What learning all tasks took, on average over seeds."""
        learned = [
            sum(task["learn"] for task in run.record["seconds"])
            for run in self.entry.runs
            if run.record is not None
        ]
        return sum(learned) / len(learned) if learned else 0.0


@dataclass
class _Recipe:
    """An entry, and all rows that show it, those of tables about memory first."""

    entry: Entry
    rows: list[Row] = field(default_factory=list)


def data_sets(tables: Sequence[Table]) -> dict[str, str]:
    """Names and titles of all data sets with something to plot."""
    return {
        column.data: f"{column.title}, {column.backbone}"
        for table in tables
        for column in table.columns
        if not column.quoted and points(tables, column.data)
    }


def points(tables: Sequence[Table], data: str) -> list[Point]:
    """All recipes measured on a data set in ten tasks, from few numbers stored to many."""
    recipes: dict[str, _Recipe] = {}
    for table in sorted(tables, key=lambda table: not table.experiment.show_memory):
        for row, entry in _entries(table, data):
            settings = entry.runs[0].cell.settings() | {"seed": None, "observe": None}
            found = recipes.setdefault(digest(settings), _Recipe(entry))
            if len(entry.values) > len(found.entry.values):
                found.entry = entry
            found.rows.append(row)
    named = names([recipe.rows for recipe in recipes.values()])
    unsorted = [
        Point(name, recipe.entry) for name, recipe in zip(named, recipes.values(), strict=True)
    ]
    ordered = sorted(unsorted, key=lambda point: (_stored(point), -_accuracy(point)))
    front, highest = [], float("-inf")
    for point in ordered:
        front.append(_accuracy(point) > highest)
        highest = max(highest, _accuracy(point))
    return [
        Point(point.name, point.entry, best) for point, best in zip(ordered, front, strict=True)
    ]


def names(recipes: Sequence[Sequence[Row]]) -> list[str]:
    """A name for each recipe, of the rows that show it: row names, and labels that differ.

    A row called otherwise than others with the same memory says whose variant it is.
    What is ticked is added to the name; what is crossed out is not.
    """
    firsts = [rows[0] for rows in recipes]
    called: dict[str, str] = {}  # what the plain row of a memory is called
    for row in firsts:
        memory = row.memory.name if row.memory else ""
        if row.name.lower() == memory:
            called[memory] = row.name
    found = []
    for position, rows in enumerate(recipes):
        row = rows[0]
        labels = {key: text for shown in reversed(rows) for key, text in shown.labels.items()}
        others = [other for n, other in enumerate(recipes) if n != position]
        rivals = [other for other in others if other[0].name == row.name]
        differ = [
            (key, text)
            for key, text in labels.items()
            if any(_label(other, key) not in (None, text) for other in rivals)
        ]
        plain = called.get(row.memory.name if row.memory else "", row.name)
        name = row.name if plain == row.name else f"{plain}, {row.name}"
        added = [key if text == "✓" else f"{key} {text}" for key, text in differ if text != "✗"]
        found.append(" + ".join([name, *added]) + " alone" * bool(differ and not added))
    return found


def _label(rows: Sequence[Row], key: str) -> str | None:
    return next((row.labels[key] for row in rows if key in row.labels), None)


def _entries(table: Table, data: str) -> list[tuple[Row, Entry]]:
    experiment = table.experiment
    if not table.has_numbers or experiment.metric != METRIC or experiment.held_out is not None:
        return []
    return [
        (line.row, entry)
        for line in table.lines
        for column, entry in zip(table.columns, line.entries, strict=True)
        if column.data == data and entry.values and experiment.protocols[column.protocol] == TASKS
    ]


def _stored(point: Point) -> float:
    return point.entry.numbers("stored") or 0.0


def _accuracy(point: Point) -> float:
    return point.entry.mean or 0.0
