"""``frugalvae-lab report``: write the tables of a results folder as HTML, Markdown or CSV.

HTML has figures and details of every run besides.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from frugalvae.errors import InputError, check_choice
from frugalvae.files import check_place, write_text
from frugalvae.formatting import as_cell, plural
from frugalvae_lab.bench.metrics import accuracy_by_task
from frugalvae_lab.report import pareto, plots
from frugalvae_lab.report.race_report import FORMATS as RACE_FORMATS
from frugalvae_lab.report.read_tables import read_tables
from frugalvae_lab.report.render import render
from frugalvae_lab.report.results_table import Column, Entry, Line, Run, Table, unique_runs

FIELDS = (
    *("table", "row", "labels", "quoted", "data", "backbone", "protocol", "metric"),
    *("mean", "std", "seeds", "missing", "failed"),
    *("paper_mean", "paper_std", "difference"),
    *("parameters_paper", "parameters_stored", "paper_millions"),
)


def to_markdown(tables: Sequence[Table]) -> str:
    """All tables, each with the command that made it."""
    return render("results.md", tables=tables)


def to_csv(tables: Sequence[Table]) -> str:
    """One line per entry of every table, for scripts and spreadsheets.

    ``mean``, ``std``, ``paper_mean``, ``paper_std`` and ``difference`` are percent, or ratios
    and distances as they are; ``seeds`` is how many runs have such a value.
    ``parameters_paper`` and ``parameters_stored`` are what our memory keeps, counted both ways;
    ``paper_millions`` is what the paper prints.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, FIELDS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {name: as_cell(value) for name, value in _fields(table, line, column, entry).items()}
        for table in tables
        if table.has_numbers
        for line, column, entry in table.entries
        if entry.runs or entry.paper
    )
    return text.getvalue()


def _fields(table: Table, line: Line, column: Column, entry: Entry) -> dict[str, Any]:
    row, paper = line.row, entry.paper
    quoted = row.quoted or column.quoted
    fields = {
        "table": table.name,
        "row": row.name,
        "labels": "; ".join(f"{name}={text}" for name, text in row.labels.items()),
        "quoted": "yes" if quoted else "no",
        "data": column.data,
        "backbone": row.backbone or table.experiment.paper_backbone if quoted else column.backbone,
        "protocol": column.protocol,
        "metric": column.metric,
        "mean": entry.mean,
        "std": entry.std,
        "seeds": len(entry.values),
        "missing": entry.missing,
        "failed": entry.failed,
        "paper_mean": paper and paper.mean,
        "paper_std": paper and paper.std,
        "difference": entry.difference,
        "parameters_paper": entry.parameters("paper"),
        "parameters_stored": entry.parameters("stored"),
        "paper_millions": row.parameters,
    }
    return {
        name: f"{field:.10g}" if isinstance(field, float) else field
        for name, field in fields.items()
    }


# --------------------------------------------------------------------------- HTML


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


# --------------------------------------------------------------------------- the report


#: The function that writes each format.
FORMATS: dict[str, Callable[[Sequence[Table]], str]] = {
    "html": to_html,
    "md": to_markdown,
    "csv": to_csv,
}
ENDINGS = {".html": "html", ".htm": "html", ".md": "md", ".csv": "csv"}


def write_report(
    results: Path, output: Path, form: str | None = None, name: str | None = None
) -> str:
    """Write a report; returns one line that says what is in it.

    Parameters
    ----------
    results
        A folder that ``frugalvae-lab bench run`` wrote.
    output
        The file. Its ending decides the format unless ``form`` does.
    form
        One of :data:`FORMATS`.
    name
        The table to write alone; by default all but races, which are pages of their own.
    """
    form = form or format_of(output)
    check_choice("format", form, FORMATS)
    check_place(output)
    tables = chosen(read_tables(results), name)
    race = tables[0].experiment.kind == "race"
    write_text(output, RACE_FORMATS[form](tables[0]) if race else FORMATS[form](tables))
    runs = list(unique_runs(tables).values())
    done = sum(run.record is not None for run in runs)
    failed = sum(run.record is None and run.failure is not None for run in runs)
    return (
        f"{output}: {plural(len(tables), 'table')}, {done} of {len(runs)} runs, "
        f"{len(runs) - done - failed} missing, {failed} failed"
    )


def chosen(tables: Sequence[Table], name: str | None) -> list[Table]:
    """The table of that name, or else all that are no races; if all are, the first."""
    if name is not None:
        check_choice("table", name, [table.name for table in tables])
        return [table for table in tables if table.name == name]
    return [table for table in tables if table.experiment.kind != "race"] or list(tables[:1])


def format_of(output: Path) -> str:
    """The format that a file's ending names.

    >>> format_of(Path("report.htm"))
    'html'
    """
    ending = output.suffix.lower()
    if ending not in ENDINGS:
        raise InputError(
            f"{output}: the ending {ending!r} is of no known format; use one of "
            f"{', '.join(ENDINGS)}, or give --format"
        )
    return ENDINGS[ending]
