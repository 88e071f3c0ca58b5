"""The pages of ``check`` and ``suggest``: photographs, the surest or most telling first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from frugalvae.care.findings import KINDS, Checked
from frugalvae.formatting import plural, printable
from frugalvae.pages.render import render, thumbnails
from frugalvae.verbs.check import Check
from frugalvae.verbs.suggest import Suggestions

MOST = 150  # findings of a kind that are shown
MOST_ALIKE = 60  # photographs of a group that are shown

#: What to do about each kind of finding.
ADVICE = {
    "names": "If they mean one class, rename the folder and check again before all else: each name "
    "becomes a class of its own, and photographs of one look like mistakes of the other.",
    "unreadable": "Learning leaves them out. Repair them, or take them away.",
    "taught-before": "One of the two is wrong. If it is the first, take it out of that class: "
    "frugalvae unlearn FILE CLASS PHOTOGRAPH.",
    "duplicate": "What is there twice counts twice. In two classes, one label is wrong.",
    "wrong-label": "Move the photograph to the folder of the class that it shows, or leave it out. "
    "Unusual ones of the right class are here, too: look at each.",
    "blank": "There is nothing to learn from.",
    "tiny": "Encoders see little on them. They are only proposed in the list.",
    "blurred": "Keep them if those to be named will be as blurred. Only proposed in the list.",
    "outlier": "Another subject, a drawing, or an unusual view: look whether it is worth teaching. "
    "Only proposed in the list.",
    "few": "Add photographs: with five to ten a class is found much more often.",
}


@dataclass(frozen=True)
class Gallery:
    """The samples that a page is about.

    Attributes
    ----------
    source
        Where they are.
    names
        The file of each sample, or its row.
    notes
        What was assumed, and what could not be done.
    pictures
        Thumbnails of the rows that the page shows as addresses; none of features.
    """

    source: str
    names: Sequence[str]
    notes: Sequence[str]
    pictures: Mapping[int, str]


def check_page(found: Check, source: object, learning: str) -> str:
    """What may be wrong with samples, on one page that loads nothing from elsewhere.

    ``learning`` is the command that learns all but what is better left out.
    """
    shown = gallery(found, source, pictured_findings(found))
    what = "photograph" if shown.pictures else "sample"
    return render(
        "check.html",
        groups=[group for kind in KINDS if (group := found.of_kind(kind))],
        headings=KINDS,
        advice=ADVICE,
        typical=found.typical,
        gallery=shown,
        learning=learning,
        most=MOST,
        summary=summary(found, len(shown.names), what),
    )


def suggest_page(found: Suggestions, source: object) -> str:
    """Which samples to label, on one page that loads nothing from elsewhere."""
    rows = [suggestion.row for suggestion in found.suggestions]
    rows += [row for group in found.groups for row in group[:MOST_ALIKE]]
    return render("suggest.html", s=found, gallery=gallery(found, source, rows), most=MOST_ALIKE)


def gallery(found: Check | Suggestions, source: object, rows: Sequence[int]) -> Gallery:
    """The samples of a result, with thumbnails of some rows."""
    names = [printable(name) for name in found.samples.names]
    return Gallery(str(source), names, found.all_notes, thumbnails(rows, found.samples.reader))


def summary(checked: Checked, count: int, what: str) -> str:
    """What was found, in a sentence."""
    found = len({finding.row for finding in checked.findings if finding.row is not None})
    if not checked.findings:
        return f"Nothing was found in {plural(count, what)}."
    about = len([finding for finding in checked.findings if finding.row is None])
    taken = len(checked.rows_to_leave_out)
    text = f"{found:,} of {plural(count, what)} {'deserves' if found == 1 else 'deserve'} a look"
    if taken:
        text += f"; {taken:,} {'is' if taken == 1 else 'are'} better left out"
    return f"{text}. {plural(about, 'finding')} about classes." if about else f"{text}."


def pictured_findings(checked: Checked) -> list[int]:
    """Rows whose thumbnails :func:`check_page` shows; of what looks wrong also typical ones."""
    rows: list[int | None] = []
    for kind in KINDS:
        for finding in checked.of_kind(kind)[:MOST]:
            rows += [finding.row, finding.twin]
            if kind == "wrong-label":
                rows += [checked.typical.get(label) for label in (finding.label, finding.other)]
    return [row for row in rows if row is not None]
