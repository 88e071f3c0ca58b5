"""The HTML page of a check: what may be wrong with photographs, the surest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from frugalvae.care.findings import KINDS, Checked, Finding
from frugalvae.formatting import plural
from frugalvae.report.render import render

MOST = 150  # findings of a kind that are shown

#: What to do about each kind of finding.
ADVICE = {
    "unreadable": "Learning leaves them out. Repair them, or take them away.",
    "taught-before": "Learning does not count them again, unless they come as another class.",
    "duplicate": "What is there twice counts twice. In two classes, one label is wrong.",
    "wrong-label": "Move the photograph to the folder of the class that it shows, or leave it out.",
    "blank": "There is nothing to learn from.",
    "tiny": "Encoders see little on them. They are only proposed in the list.",
    "blurred": "Keep them if those to be named will be as blurred. Only proposed in the list.",
    "outlier": "Another subject, a drawing, or an unusual view: look whether it is worth teaching. "
    "Only proposed in the list.",
    "few": "Add photographs: with five to ten a class is found much more often.",
    "names": "If they mean one class, rename the folder; each name becomes a class of its own.",
}


def check_page(
    checked: Checked,
    names: Sequence[str],
    pictures: Mapping[int, str],
    notes: Sequence[str],
    source: str,
) -> str:
    """One page that loads nothing from elsewhere.

    Parameters
    ----------
    checked
        The findings.
    names
        The file of each sample, or its row.
    pictures
        Thumbnails of rows as addresses, at least of those in :func:`pictured`; may be empty.
    notes
        What was assumed and what could not be checked.
    source
        What was checked.
    """
    return render(
        "check.html",
        groups=[group for group in map(checked.of_kind, KINDS) if group],
        headings=KINDS,
        advice=ADVICE,
        names=names,
        pictures=pictures,
        typical=checked.typical,
        notes=notes,
        source=source,
        leave_out=len(checked.rows_to_leave_out),
        most=MOST,
        summary=summary(checked, len(names)),
    )


def summary(checked: Checked, count: int) -> str:
    """What was found, in a sentence."""
    found = len({finding.row for finding in checked.findings if finding.row is not None})
    if not checked.findings:
        return f"Nothing was found in {plural(count, 'photograph')}."
    about = len([finding for finding in checked.findings if finding.row is None])
    classes = f", and {plural(about, 'finding')} about classes" if about else ""
    return f"{found:,} of {plural(count, 'photograph')} deserve a look{classes}."


def pictured(checked: Checked) -> list[int]:
    """Rows whose thumbnails the page shows."""
    rows: list[int | None] = []
    for kind in KINDS:
        for finding in checked.of_kind(kind)[:MOST]:
            rows += [finding.row, finding.twin, *_examples(finding, checked.typical)]
    return [row for row in rows if row is not None]


def _examples(finding: Finding, typical: Mapping[Any, int]) -> list[int | None]:
    """Typical photographs of the class that it is said to be of, and that it looks like."""
    if finding.kind != "wrong-label":
        return []
    return [typical.get(finding.label), typical.get(finding.other)]
