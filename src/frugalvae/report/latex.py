"""Tables as a LaTeX document; each ``table`` can be copied into another."""

from __future__ import annotations

from collections.abc import Sequence

from frugalvae.report import printing
from frugalvae.report.table import Column, Entry, Table

HEAD = r"""\documentclass{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage{amssymb} % check marks
\usepackage{booktabs} % rules
\usepackage{adjustbox} % wide tables shrink to the page
\begin{document}
"""

#: What LaTeX reads otherwise than it looks, and what its fonts do not have.
_SPECIAL = {
    "\\": r"\textbackslash{}",
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "✓": r"$\checkmark$",
    "✗": r"$\times$",
    "\N{MULTIPLICATION SIGN}": r"$\times$",
    "é": r"\'e",
    "±": r"$\pm$",
    "\N{MINUS SIGN}": r"$-$",
    "\N{EN DASH}": "--",
    "\N{EM DASH}": "---",
}


def to_latex(tables: Sequence[Table]) -> str:
    """A document of all tables, each with the command that makes it."""
    parts = [_table(table) for table in tables if table.has_numbers]
    return HEAD + "\n" + "\n\n".join(parts) + "\n\n\\end{document}\n"


def escape(text: str) -> str:
    r"""Text that LaTeX prints as it is.

    >>> print(escape("50% of R_1 ✓"))
    50\% of R\_1 $\checkmark$
    """
    return "".join(_SPECIAL.get(mark, mark) for mark in text)


def _table(table: Table) -> str:
    memory = table.experiment.show_memory
    left = 1 + len(table.labels)
    columns = "l" + "c" * len(table.labels) + ("rr" if memory else "r") * len(table.columns)
    head = [["", *map(escape, table.labels)], ["method", *[""] * len(table.labels)]]
    for column in table.columns:
        for line, text in zip(head, _heading(column), strict=True):
            line.append(rf"\multicolumn{{{1 + memory}}}{{c}}{{{text}}}")
    width = 1 + memory
    rules = "".join(
        rf"\cmidrule(lr){{{start}-{start + memory}}}"
        for start in range(left + 1, left + 1 + width * len(table.columns), width)
    )
    body = [_line(table, position) for position in range(len(table.lines))]
    return "\n".join(
        [
            r"\begin{table}[htbp]",
            r"\centering",
            rf"\caption{{{_caption(table)}}}",
            rf"\label{{tab:{table.name}}}",
            r"\begin{adjustbox}{max width=\textwidth}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            " & ".join(head[0]) + r" \\",
            " & ".join(head[1]) + r" \\",
            rules,
            *(" & ".join(cells) + r" \\" for cells in body),
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{adjustbox}",
            *("% " + line.replace("\n", " ") for line in table.commands),
            r"\end{table}",
        ]
    )


def _caption(table: Table) -> str:
    experiment = table.experiment
    text = f"{experiment.title}{f' ({experiment.reference})' if experiment.reference else ''}: "
    text += f"{table.metric}, mean and standard deviation over seeds"
    if any(entry.paper for line in table.lines for entry in line.entries):
        backbone = f" with {experiment.paper_backbone}" if experiment.paper_backbone else ""
        text += f"; in brackets the paper's figure{backbone} and ours minus the paper's"
    text += "."
    if experiment.show_memory:
        text += " To the right, millions of numbers as the paper counts / as stored."
    text += f" {printing.sentence(printing.standing(table))}. Made by: "
    commands = [escape(line).replace("--", "-{}-") for line in table.commands]  # no dashes
    return escape(text) + "; ".join(rf"\texttt{{{line}}}" for line in commands)


def _heading(column: Column) -> tuple[str, str]:
    below = "paper only" if column.quoted else column.note
    return escape(column.heading), rf"\footnotesize {escape(below)}"


def _line(table: Table, position: int) -> list[str]:
    line = table.lines[position]
    note = printing.about_row(table, position)
    name = escape(line.row.name) + (rf" {{\footnotesize ({escape(note)})}}" if note else "")
    cells = [name, *(escape(line.row.labels.get(label, "")) for label in table.labels)]
    for column, entry in enumerate(line.entries):
        cells.append(_entry(entry, table, column))
        if table.experiment.show_memory:
            cells.append(escape(printing.both_counts(entry)))
    return cells


def _entry(entry: Entry, table: Table, column: int) -> str:
    metric = table.columns[column].metric
    paper = printing.papers(entry, metric)
    if not entry.runs:
        return rf"{{\footnotesize ({escape(paper)})}}" if paper else "--"
    text = escape(printing.ours(entry, metric))
    text = rf"\textbf{{{text}}}" if table.is_best(entry, column) else text
    note = printing.seeds_note(entry)
    text += rf" {{\footnotesize {escape(note)}}}" if note else ""
    if paper and entry.difference is not None:
        paper += f", {printing.signed(entry.difference, metric)}"
    return text + (rf" {{\footnotesize ({escape(paper)})}}" if paper else "")
