"""All tables as one long CSV: a line an entry, for scripts and spreadsheets."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from frugalvae.report.table import Column, Entry, Line, Table

FIELDS = (
    *("table", "row", "labels", "quoted", "data", "backbone", "protocol", "metric"),
    *("mean", "std", "seeds", "missing", "failed"),
    *("paper_mean", "paper_std", "difference"),
    *("numbers_paper", "numbers_stored", "paper_millions"),
)


def to_csv(tables: Sequence[Table]) -> str:
    """Every entry of every table.

    ``mean``, ``std``, ``paper_mean``, ``paper_std`` and ``difference`` are percent, or R
    and distances as they are; ``seeds`` is how many runs have such a number. ``numbers_paper``
    and ``numbers_stored`` are what our memory keeps, counted both ways; ``paper_millions`` is
    what the paper prints.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, FIELDS, lineterminator="\n")
    writer.writeheader()
    for table in tables:
        if table.has_numbers:
            for line in table.lines:
                for column, entry in zip(table.columns, line.entries, strict=True):
                    if entry.runs or entry.paper:
                        writer.writerow(_fields(table, line, column, entry))
    return text.getvalue()


def _fields(table: Table, line: Line, column: Column, entry: Entry) -> dict[str, str | int]:
    row, paper = line.row, entry.paper
    quoted = row.quoted or column.quoted
    return {
        "table": table.name,
        "row": row.name,
        "labels": "; ".join(f"{name}={text}" for name, text in row.labels.items()),
        "quoted": "yes" if quoted else "no",
        "data": column.data,
        "backbone": row.backbone or table.experiment.paper_backbone if quoted else column.backbone,
        "protocol": column.protocol,
        "metric": column.metric,
        "mean": _number(entry.mean),
        "std": _number(entry.std),
        "seeds": len(entry.values),
        "missing": entry.missing,
        "failed": entry.failed,
        "paper_mean": _number(paper.mean if paper else None),
        "paper_std": _number(paper.std if paper else None),
        "difference": _number(entry.difference),
        "numbers_paper": _number(entry.numbers("paper")),
        "numbers_stored": _number(entry.numbers("stored")),
        "paper_millions": _number(row.numbers),
    }


def _number(number: float | None) -> str:
    return "" if number is None else f"{number:.10g}"
