"""Accuracy against memory: every method that was measured, and which ones none other beats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from frugalvae.files import json_digest
from frugalvae_lab.bench.specification import Protocol, Row
from frugalvae_lab.report.tables import Entry, Table

METRIC, TASKS = "final_average_accuracy", Protocol()


@dataclass(frozen=True, eq=False)
class Point:
    """One method on one data set; ``best`` if none is as accurate with as little stored."""

    name: str
    entry: Entry
    best: bool = False
    counted: str = "stored"

    @property
    def stored(self) -> float:
        """Parameters stored, or what else is ``counted``, mean over seeds."""
        return self.entry.parameters(self.counted) or 0.0

    @property
    def accuracy(self) -> float:
        """Percent, mean over seeds."""
        return self.entry.mean or 0.0

    @property
    def seconds(self) -> float:
        """Time to learn all tasks, mean over seeds."""
        records = self.entry.records
        learned = [sum(task["learn"] for task in record["seconds"]) for record in records]
        return sum(learned) / len(learned) if learned else 0.0


def by_data_set(tables: Sequence[Table]) -> list[tuple[str, list[Point]]]:
    """Title and points of each data set with something to plot."""
    titles = {
        column.data: f"{column.title}, {column.backbone}"
        for table in tables
        for column in table.columns
        if not column.quoted
    }
    found = [(title, points(tables, data)) for data, title in titles.items()]
    return [(title, points) for title, points in found if points]


def points(tables: Sequence[Table], data: str) -> list[Point]:
    """All methods measured on a data set in ten tasks, ordered by parameters stored.

    Rows of tables about memory name a method first.
    """
    entries: dict[str, Entry] = {}
    rows: dict[str, list[Row]] = {}
    for table in sorted(tables, key=lambda table: not table.experiment.show_memory):
        for row, entry in _entries(table, data):
            settings = entry.runs[0].cell.settings() | {"seed": None, "observe": None}
            key = json_digest(settings)
            rows.setdefault(key, []).append(row)
            if key not in entries or len(entry.values) > len(entries[key].values):
                entries[key] = entry
    names = _names(list(rows.values()))
    return ordered([Point(name, entries[key]) for name, key in zip(names, rows, strict=True)])


def ordered(points: Sequence[Point]) -> list[Point]:
    """Points by what they store; those that none beats with as little are marked."""
    found, highest = [], float("-inf")
    for point in sorted(points, key=lambda point: (point.stored, -point.accuracy)):
        found.append(replace(point, best=point.accuracy > highest))
        highest = max(highest, point.accuracy)
    return found


def _entries(table: Table, data: str) -> list[tuple[Row, Entry]]:
    experiment = table.experiment
    if not table.has_numbers or experiment.metric != METRIC or experiment.held_out is not None:
        return []
    return [
        (line.row, entry)
        for line, column, entry in table.entries
        if column.data == data and entry.values and experiment.protocols[column.protocol] == TASKS
    ]


def _names(methods: Sequence[Sequence[Row]]) -> list[str]:
    """A name for each method: its first row's name, and the labels that tell it from others.

    A row whose name does not begin with that of its memory's plain row gets both names.
    Labels with a check mark are added to the name; those with a cross are not.
    """
    plain = {  # how the plain row of each memory is called
        row.memory.name: row.name
        for row, *_ in methods
        if row.memory and row.name.lower() == row.memory.name
    }
    labels = [
        {key: text for row in reversed(rows) for key, text in row.labels.items()}
        for rows in methods
    ]
    found = []
    for (row, *_), mine in zip(methods, labels, strict=True):
        rivals = [
            other
            for (first, *_), other in zip(methods, labels, strict=True)
            if first.name == row.name and other is not mine
        ]
        differ = {
            key: text
            for key, text in mine.items()
            if any(rival.get(key) not in (None, text) for rival in rivals)
        }
        usual = plain.get(row.memory.name if row.memory else "", row.name)
        name = row.name if row.name.startswith(usual) else f"{usual}, {row.name}"
        added = [
            key if text == "✓" else f"{key} {text}" for key, text in differ.items() if text != "✗"
        ]
        found.append(" + ".join([name, *added]) + " alone" * bool(differ and not added))
    return found
