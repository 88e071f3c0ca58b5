"""``frugalvae report``: write the tables of a results folder as HTML, Markdown, LaTeX or CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from frugalvae.errors import InputError, check_choice
from frugalvae.files import check_place, write_text
from frugalvae.formatting import plural
from frugalvae.report.read_tables import read_tables
from frugalvae.report.render import render
from frugalvae.report.results_page import to_html
from frugalvae.report.results_table import Column, Entry, Line, Table, unique_runs

FIELDS = (
    *("table", "row", "labels", "quoted", "data", "backbone", "protocol", "metric"),
    *("mean", "std", "seeds", "missing", "failed"),
    *("paper_mean", "paper_std", "difference"),
    *("parameters_paper", "parameters_stored", "paper_millions"),
)


def to_markdown(tables: Sequence[Table]) -> str:
    """All tables, each with the command that made it."""
    return render("results.md", tables=tables)


def to_latex(tables: Sequence[Table]) -> str:
    """A document of all tables; each ``table`` can be copied into another document."""
    return render("results.tex", tables=tables)


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
        _fields(table, line, column, entry)
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


#: The function that writes each format.
FORMATS: dict[str, Callable[[Sequence[Table]], str]] = {
    "html": to_html,
    "md": to_markdown,
    "latex": to_latex,
    "csv": to_csv,
}
ENDINGS = {".html": "html", ".htm": "html", ".md": "md", ".tex": "latex", ".csv": "csv"}


def write_report(results: Path, output: Path, form: str | None = None) -> str:
    """Write a report; returns one line that says what is in it.

    Parameters
    ----------
    results
        A folder that ``frugalvae bench run`` wrote.
    output
        The file. Its ending decides the format unless ``form`` does.
    form
        One of :data:`FORMATS`.
    """
    form = form or format_of(output)
    check_choice("format", form, FORMATS)
    check_place(output)
    tables = read_tables(results)
    write_text(output, FORMATS[form](tables))
    runs = list(unique_runs(tables).values())
    done = sum(run.record is not None for run in runs)
    failed = sum(run.record is None and run.failure is not None for run in runs)
    return (
        f"{output}: {plural(len(tables), 'table')}, {done} of {len(runs)} runs, "
        f"{len(runs) - done - failed} missing, {failed} failed"
    )


def format_of(output: Path) -> str:
    """The format that a file's ending names.

    >>> format_of(Path("report.tex"))
    'latex'
    """
    ending = output.suffix.lower()
    if ending not in ENDINGS:
        raise InputError(
            f"{output}: the ending {ending!r} is of no known format; use one of "
            f"{', '.join(ENDINGS)}, or give --format"
        )
    return ENDINGS[ending]
