"""Put what was measured into the tables of README and docs: ``python -m benchmarks.docs_tables``.

Such a table stands between ``<!-- table: EXPERIMENT -->`` and ``<!-- end -->``. Its first column
names rows of ``results/tables/EXPERIMENT.json``, its heading names data sets. Cells below them
become mean ± standard deviation over seeds, and the best of a column is bold where one was
before. All other cells stay as they are. The table of a race is made anew: ours, the best three
rivals, and storing everything.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from frugalvae.report.race_report import summary
from frugalvae.report.read_tables import read_tables
from frugalvae.report.render import ours
from frugalvae.report.results_table import Entry, Table

ROOT = Path(__file__).parents[1]
PAGES = (
    ROOT / "README.md",
    *(ROOT / "docs" / f"{page}.md" for page in ("race", "frontier", "paper", "results")),
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
    columns = {
        place: number
        for place, name in enumerate(heading)
        for number, column in enumerate(table.columns)
        if name in (column.heading, "final average accuracy")
    }
    entries = [entries_of(row[0], table) for row in rows]
    for place, number in columns.items():
        best = max((row[number].mean or 0.0) for row in entries)
        bold = any("**" in row[place] for row in rows)
        for row, found in zip(rows, entries, strict=True):
            text = ours(found[number])
            row[place] = f"**{text}**" if bold and found[number].mean == best else text
    return "".join("|" + "".join(f" {cell} |".replace("  ", " ") for cell in row) + "\n"
                   for row in (heading, rule, *rows))  # fmt: skip


def entries_of(name: str, table: Table) -> tuple[Entry, ...]:
    """The entries of the row of that name."""
    wanted = ALIASES.get(name, name)
    (found,) = [line.entries for line in table.lines if line.row.name == wanted]
    return found


def cells_of(line: str) -> list[str]:
    """The cells of a row in Markdown.

    >>> cells_of("| a | b |")
    ['a', 'b']
    """
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def main() -> None:
    """Rewrite the pages, and say which have changed."""
    tables = {table.name: table for table in read_tables(ROOT / "results")}
    for page in PAGES:
        before = page.read_text("utf-8")
        after = updated(before, tables)
        page.write_text(after, "utf-8")
        sys.stdout.write(f"{page.name}: {'changed' if after != before else 'as it was'}\n")


if __name__ == "__main__":
    main()
