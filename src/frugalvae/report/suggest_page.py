"""The HTML page of suggestions: which photographs to label, and which may be of a new class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from frugalvae.care.suggest import Suggested
from frugalvae.report.render import render

MOST = 60  # photographs of a group that are shown


def suggest_page(
    suggested: Suggested,
    names: Sequence[str],
    pictures: Mapping[int, str],
    notes: Sequence[str],
    source: str,
) -> str:
    """One page that loads nothing from elsewhere.

    Parameters
    ----------
    suggested
        What to show.
    names
        The file of each sample, or its row.
    pictures
        Thumbnails of rows as addresses, at least of those in :func:`pictured`; may be empty.
    notes
        What was left out, and what is to be said.
    source
        What was chosen from.
    """
    return render(
        "suggest.html",
        s=suggested,
        names=names,
        pictures=pictures,
        notes=notes,
        source=source,
        most=MOST,
    )


def pictured(suggested: Suggested) -> list[int]:
    """Rows whose thumbnails the page shows."""
    rows = [found.row for found in suggested.suggestions]
    return rows + [row for group in suggested.groups for row in group[:MOST]]
