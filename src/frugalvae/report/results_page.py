"""The HTML page of a results folder: tables, figures, and every run on demand."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from frugalvae.report import figures, pareto, printing
from frugalvae.report.markdown import ticked
from frugalvae.report.page import render
from frugalvae.report.table import Entry, Line, Run, Table, unique_runs


@dataclass(frozen=True)
class Picture:
    """A figure, and what stands below it."""

    svg: str
    caption: str = ""


@dataclass(frozen=True)
class Frontier:
    """The plot of a data set, and its points in words."""

    title: str
    svg: str
    points: Sequence[pareto.Point]


def to_html(tables: Sequence[Table]) -> str:
    """One page that needs nothing but itself."""
    runs = unique_runs(list(tables))
    return render(
        "report.html",
        tables=tables,
        pictures={table.name: pictures(table) for table in tables},
        frontiers=frontiers(tables),
        runs=runs,
        finished=sum(run.record is not None for run in runs.values()),
        failures=[run for run in runs.values() if run.record is None and run.failure],
        records=for_script(tables, runs),
        **{
            function.__name__: function
            for function in (
                *(printing.ours, printing.papers, printing.signed, printing.millions),
                *(printing.standing, printing.about_row, printing.seeds_note, printing.sentence),
                ticked,
            )
        },
    )


def pictures(table: Table) -> list[Picture]:
    """The figures of a table, as far as there are runs for them."""
    kind = table.experiment.kind
    if kind == "courses":
        return _courses(table)
    known: dict[str, Callable[[Any], str]]
    known = {"placement": figures.placement, "tsne": figures.layouts}
    draw = known.get(kind)
    found = []
    for line, column, entry in _entries(table) if draw else ():
        run = next((run for run in entry.runs if run.record is not None), None)
        tasks = run.record["observed"].get("tasks") if run and run.record else None
        if draw and run and tasks:
            title = table.columns[column].title
            backbone = table.columns[column].backbone
            caption = f"{line.row.name} on {title}, {backbone}; seed {run.cell.seed}."
            found.append(Picture(draw(tasks), caption))
    return found


def _courses(table: Table) -> list[Picture]:
    found = []
    for number, column in enumerate(table.columns):
        series = {}
        for line in table.lines:
            seeds = [course(run) for run in line.entries[number].runs if run.record is not None]
            if seeds:
                series[line.row.name] = seeds
        if series:
            counts = ", ".join(f"{name} {len(seeds)}" for name, seeds in series.items())
            caption = f"{column.backbone}. Seeds: {counts}."
            found.append(Picture(figures.courses(series, column.heading), caption))
    return found


def course(run: Run) -> list[float]:
    """After each task, the mean accuracy on the tasks so far, in percent."""
    assert run.record is not None
    rows = np.array(run.record["accuracy"], float)  # null becomes NaN
    return [100 * float(np.nanmean(row)) for row in rows]


def frontiers(tables: Sequence[Table]) -> list[Frontier]:
    """One plot a data set."""
    found = []
    for data, title in pareto.data_sets(tables).items():
        points = pareto.points(tables, data)
        spots = [
            (p.name, p.entry.numbers("stored") or 0.0, p.entry.mean or 0.0, p.entry.std)
            for p in points
        ]
        front = [position for position, point in enumerate(points) if point.best]
        times = [point.seconds for point in points]
        found.append(Frontier(title, figures.frontier(spots, front, title, times), points))
    return found


def for_script(tables: Sequence[Table], runs: Mapping[str, Run]) -> str:
    """Records of all finished runs as JSON that may stand inside a page."""
    versions: list[Any] = []
    records = {}
    for name, run in runs.items():
        if run.record is not None:
            if run.record["versions"] not in versions:
                versions.append(run.record["versions"])
            records[name] = _compact(run.record, versions.index(run.record["versions"]))
    listed = {
        table.name: list(
            dict.fromkeys(
                (_title(table, line, column, run), run.cell.name)
                for line, column, entry in _entries(table)
                for run in entry.runs
                if run.record is not None
            )
        )
        for table in tables
    }
    content = {"versions": versions, "runs": records, "tables": listed}
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _compact(record: Mapping[str, Any], versions: int) -> dict[str, Any]:
    """What the page shows of a run, in few characters."""
    return {
        "settings": record["settings"],
        "versions": versions,
        "tasks": record["tasks"],
        "accuracy": [
            [None if share is None else round(share, 4) for share in row]
            for row in record["accuracy"]
        ],
        "metrics": {name: _rounded(score) for name, score in record["metrics"].items()},
        "confusion": record["confusion"],
        "memory": [[p["name"], p["paper"], p["stored"]] for p in record["memory"]["components"]],
        "seconds": [
            round(sum(task[part] for task in record["seconds"]), 1) for part in ("learn", "predict")
        ],
        "warnings": record.get("warnings", []),
    }


def _rounded(score: float | None) -> float | None:
    return None if score is None else round(score, 4)


def _title(table: Table, line: Line, column: int, run: Run) -> str:
    labels = ", ".join(f"{name} {text}" for name, text in line.row.labels.items() if text)
    where = table.columns[column]
    parts = [line.row.name, labels, f"{where.title} {where.protocol}".strip()]
    return " · ".join([*(part for part in parts if part), f"seed {run.cell.seed}"])


def _entries(table: Table) -> list[tuple[Line, int, Entry]]:
    return [
        (line, column, entry) for line in table.lines for column, entry in enumerate(line.entries)
    ]
