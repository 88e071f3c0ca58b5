"""The HTML page of a results folder: tables, figures, and details of every run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from frugalvae.bench.metrics import accuracy_by_task
from frugalvae.report import pareto, plots
from frugalvae.report.render import render
from frugalvae.report.results_table import Column, Line, Run, Table, unique_runs


def to_html(tables: Sequence[Table]) -> str:
    """One page that loads nothing from elsewhere."""
    runs = unique_runs(tables)
    return render(
        "results.html",
        tables=tables,
        pictures={table.name: pictures(table) for table in tables},
        frontiers=[
            (plots.frontier(points, title), points) for title, points in pareto.by_data_set(tables)
        ],
        runs=runs,
        finished=sum(run.record is not None for run in runs.values()),
        failures=[run for run in runs.values() if run.record is None and run.failure],
        records=for_script(tables, runs),
    )


def pictures(table: Table) -> list[tuple[str, str]]:
    """SVG and caption of each figure of a table that has finished runs."""
    kind = table.experiment.kind
    if kind == "courses":
        return _courses(table)
    known: dict[str, Callable[[Any], str]]
    known = {"placement": plots.placement, "tsne": plots.layouts}
    found = []
    for line, column, entry in table.entries if kind in known else ():
        run = next((run for run in entry.runs if run.record is not None), None)
        tasks = run.record["observed"].get("tasks") if run and run.record else None
        if run and tasks:
            caption = f"{line.row.name} on {column.title}, {column.backbone}; seed {run.cell.seed}."
            found.append((known[kind](tasks), caption))
    return found


def _courses(table: Table) -> list[tuple[str, str]]:
    """Accuracy by task: one figure per column, one line per row."""
    found = []
    for number, column in enumerate(table.columns):
        series = {}
        for line in table.lines:
            seeds = [
                accuracy_by_task(record["accuracy"]) for record in line.entries[number].records
            ]
            if seeds:
                series[line.row.name] = seeds
        if series:
            counts = ", ".join(f"{name} {len(seeds)}" for name, seeds in series.items())
            caption = f"{column.backbone}. Seeds: {counts}."
            found.append((plots.accuracy_by_task(series, column.heading), caption))
    return found


def for_script(tables: Sequence[Table], runs: Mapping[str, Run]) -> str:
    """Records of all finished runs, as JSON that is safe inside a page."""
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
                (_title(line, column, run), run.cell.name)
                for line, column, entry in table.entries
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
        "accuracy": [[_rounded(share) for share in row] for row in record["accuracy"]],
        "metrics": {name: _rounded(score) for name, score in record["metrics"].items()},
        "confusion": record["confusion"],
        "memory": [[p["name"], p["paper"], p["stored"]] for p in record["memory"]["components"]],
        "seconds": [
            round(sum(task[part] for task in record["seconds"]), 1) for part in ("learn", "predict")
        ],
        "warnings": record.get("warnings", []),
    }


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 4)


def _title(line: Line, column: Column, run: Run) -> str:
    labels = ", ".join(f"{name} {text}" for name, text in line.row.labels.items() if text)
    parts = [line.row.name, labels, f"{column.title} {column.protocol}".strip()]
    return " · ".join([*filter(None, parts), f"seed {run.cell.seed}"])
