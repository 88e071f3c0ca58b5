"""``frugalvae report``: a results folder as a page, or as tables for a document."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from frugalvae.errors import InputError, check_choice
from frugalvae.files import check_place, write_text
from frugalvae.report.collect import read_tables
from frugalvae.report.latex import to_latex
from frugalvae.report.markdown import to_markdown
from frugalvae.report.results_page import to_html
from frugalvae.report.table import Table, unique_runs
from frugalvae.report.tidy import to_csv

#: What writes each format.
FORMATS: dict[str, Callable[[Sequence[Table]], str]] = {
    "html": to_html,
    "md": to_markdown,
    "latex": to_latex,
    "csv": to_csv,
}
ENDINGS = {".html": "html", ".htm": "html", ".md": "md", ".tex": "latex", ".csv": "csv"}


def write_report(results: Path, output: Path, form: str | None = None) -> str:
    """Write a report; what it is made of, in words.

    Parameters
    ----------
    results
        A folder that ``frugalvae bench run`` wrote.
    output
        The file; its ending decides the format if ``form`` does not.
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
        f"{output}: {len(tables)} table{'s' * (len(tables) != 1)}, {done} of {len(runs)} runs, "
        f"{len(runs) - done - failed} missing, {failed} failed"
    )


def format_of(output: Path) -> str:
    """The format that a file's ending stands for.

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
