"""Tables as GitHub's Markdown: few columns, so that they fit on a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from frugalvae.report import printing
from frugalvae.report.table import Column, Entry, Table


def to_markdown(tables: Sequence[Table]) -> str:
    """All tables, each with the command that makes it."""
    return "\n\n".join(["# Results", *map(_section, tables)]) + "\n"


def _section(table: Table) -> str:
    experiment = table.experiment
    parts = [f"## {escape(experiment.title)}"]
    if experiment.reference:
        parts.append(f"In the paper: {escape(experiment.reference)}.")
    if experiment.about:
        parts.append(escape(" ".join(experiment.about.split())))
    if table.has_numbers:
        parts += [_legend(table), _grid(table)]
    else:
        parts.append("A figure; the HTML report shows it.")
    parts += [
        f"{printing.sentence(printing.standing(table))}. Made by:",
        "\n".join(["```sh", *table.commands, "```"]),
    ]
    return "\n\n".join(parts)


def _legend(table: Table) -> str:
    experiment = table.experiment
    text = printing.sentence(table.metric) + (", percent" if table.in_percent else "")
    text += ", mean ± standard deviation over seeds."
    if any(entry.paper for line in table.lines for entry in line.entries):
        backbone = f" ({experiment.paper_backbone})" if experiment.paper_backbone else ""
        text += f" In brackets the paper's figure{backbone} and ours minus the paper's."
    if experiment.show_memory:
        text += " Below, millions of numbers kept: as the paper counts / as stored."
    return text


def _grid(table: Table) -> str:
    labels = ["with"] if table.labels else []
    lines = [["method", *labels, *map(_heading, table.columns)]]
    lines.append(["---"] * (1 + len(labels)) + ["---:"] * len(table.columns))
    for position, line in enumerate(table.lines):
        note = printing.about_row(table, position)
        name = escape(line.row.name) + (f"<br>*{escape(note)}*" if note else "")
        cells = [name, escape(ticked(line.row.labels))] if labels else [name]
        cells += [entry_text(entry, table, column) for column, entry in enumerate(line.entries)]
        lines.append(cells)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _heading(column: Column) -> str:
    return f"{escape(column.heading)}<br>{'paper only' if column.quoted else escape(column.note)}"


def entry_text(entry: Entry, table: Table, column: int) -> str:
    """``66.5 ± 0.3 (83.7, +0.2)``, and below it the numbers kept."""
    metric = table.columns[column].metric
    paper = printing.papers(entry, metric)
    if not entry.runs:
        return f"({paper})" if paper else printing.DASH
    text = printing.ours(entry, metric)
    text = f"**{text}**" if table.is_best(entry, column) else text
    note = printing.seeds_note(entry)
    text += f" {note}" if note else ""
    if paper and entry.difference is not None:
        paper += f", {printing.signed(entry.difference, metric)}"
    text += f" ({paper})" if paper else ""
    counts = printing.both_counts(entry) if table.experiment.show_memory else ""
    return f"{text}<br>{counts}" if counts else text


def ticked(labels: Mapping[str, str]) -> str:
    """The labels of a row in one cell: names of what is ticked, and other values, or a dash.

    >>> ticked({"FPI": "✓", "frozen": "✗", "steps": "60"})
    'FPI, steps 60'
    """
    named = [
        name if text == "✓" else f"{name} {text}"
        for name, text in labels.items()
        if text not in ("", "✗")
    ]
    return ", ".join(named) or printing.DASH


def escape(text: str) -> str:
    r"""Text that Markdown takes as it is.

    >>> print(escape("a|b *c* <d>"))
    a\|b \*c\* &lt;d>
    """
    for mark in "\\`*_|[]":
        text = text.replace(mark, f"\\{mark}")
    return text.replace("<", "&lt;")
