"""Put what was measured into tables of README and docs: ``python -m lab.benchmarks.docs_tables``.

Such a table stands between ``<!-- table: EXPERIMENT -->`` and ``<!-- end -->``. Its first column
names rows of ``results/tables/EXPERIMENT.json``, its heading names data sets. Where rows have the
same name, labels follow behind commas, be it in the row or in the heading: ``VAE-FO, null space``
and ``UCF-101, 500 steps``. Cells become mean ± standard deviation over seeds, and the best of a
column is bold where one was before. All other cells stay as they are. The table of a race is made
anew: ours, the best three rivals, and storing everything.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from frugalvae_lab.report.pages import summary
from frugalvae_lab.report.render import ours, seeds
from frugalvae_lab.report.tables import Line, Table, read_tables

LAB = Path(__file__).parents[1]
PAGES = (
    LAB.parent / "README.md",
    *(LAB / "docs" / f"{page}.md" for page in ("race", "frontier", "results", "decisions")),
)
MARKED = re.compile(r"(<!-- table: ([\w-]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)

#: Rows that README calls by another name than the experiment.
ALIASES = {
    "FrugalVAE's default, without class names": "moments, Bayes, without names",
    "the same in one megabyte": "moments 1 MB, Bayes, without names",
    "VAE-FO, cosine softmax": "VAE-FO, cosine",
    "store everything, cosine softmax": "store all, cosine",
    "RanPAC, 5,000 random features": "RanPAC",
}

#: What a row says of itself that is no label: the lack of one.
UNLABELLED = {"free decoder"}


def updated(text: str, tables: dict[str, Table]) -> str:
    """A page with the figures of today's results."""
    return MARKED.sub(
        lambda found: found[1] + table_of(tables[found[2]], found[3]) + found[4], text
    )


def table_of(table: Table, lines: str) -> str:
    """The lines of a table in Markdown as they are to be."""
    return summary(table) if table.experiment.kind == "race" else filled(lines, table)


def filled(lines: str, table: Table) -> str:
    """The lines of a table in Markdown, with its measured cells filled in."""
    heading, rule, *rows = [cells_of(line) for line in lines.strip().splitlines()]
    columns = {place: column for place, name in enumerate(heading) if (column := find(name, table))}
    spoken = set().union(*(labels for _, labels in columns.values()))
    for place, (number, labels) in columns.items():
        lines = [line_of(row[0], labels, spoken, table) for row in rows]
        entries = [line and line.entries[number] for line in lines]
        best = max(entry.mean or 0.0 for entry in entries if entry)
        bold = any("**" in row[place] for row in rows)
        for row, entry in zip(rows, entries, strict=True):
            if entry:  # else there is no such run, as VAE-FOD without class-wise normalisation
                text = " ".join(filter(None, (ours(entry), seeds(entry))))
                row[place] = f"**{text}**" if bold and entry.mean == best else text
    return "".join("|" + "".join(f" {cell} |".replace("  ", " ") for cell in row) + "\n"
                   for row in (heading, rule, *rows))  # fmt: skip


def find(heading: str, table: Table) -> tuple[int, set[str]] | None:
    """The column that a heading names, and the labels behind it; ``None`` if it names none."""
    for number, column in enumerate(table.columns):
        for name in (column.heading, "final average accuracy"):
            if f"{heading}, ".startswith(f"{name}, "):
                return number, behind(heading, name)
    return None


def line_of(name: str, labels: set[str], spoken: set[str], table: Table) -> Line | None:
    """The row of that name. Of several, the one whose labels are told, by it or by the heading.

    ``spoken`` are the labels in all headings: what has them is in no column that has not.
    """
    name = ALIASES.get(name, name)
    named = max(
        (line.row.name for line in table.lines if f"{name}, ".startswith(f"{line.row.name}, ")),
        key=len,
    )
    lines = [line for line in table.lines if line.row.name == named]
    told = (labels | behind(name, named)) - UNLABELLED
    untold = set.intersection(*map(labels_of, lines)) - spoken
    found: list[Line | None] = [
        line for line in lines if labels_of(line) - untold <= told <= labels_of(line)
    ]
    (line,) = found or [None]
    return line


def behind(text: str, name: str) -> set[str]:
    """The labels that follow a name.

    >>> sorted(behind("VAE-FO, null space, class-wise", "VAE-FO"))
    ['class-wise', 'null space']
    """
    return {*filter(None, text.removeprefix(name).split(", "))}


def labels_of(line: Line) -> set[str]:
    """What is checked, or how much of it there is."""
    labels = line.row.labels.items()
    return {
        name if text == "✓" else f"{text} {name}" for name, text in labels if text not in ("", "✗")
    }


def cells_of(line: str) -> list[str]:
    """The cells of a row in Markdown.

    >>> cells_of("| a | b |")
    ['a', 'b']
    """
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def main() -> None:
    """Rewrite the pages, and say which have changed."""
    tables = {table.name: table for table in read_tables(LAB / "results")}
    for page in PAGES:
        before = page.read_text("utf-8")
        after = updated(before, tables)
        page.write_text(after, "utf-8")
        sys.stdout.write(f"{page.name}: {'changed' if after != before else 'as it was'}\n")


if __name__ == "__main__":
    main()
