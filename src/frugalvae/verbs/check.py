"""Check: what may be wrong with samples, before they are taught."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from frugalvae.care import findings
from frugalvae.care.findings import Checked, Finding
from frugalvae.care.photographs import measure, poor_ones
from frugalvae.formatting import most_sure
from frugalvae.images import BATCH_SIZE

if TYPE_CHECKING:
    from frugalvae.model.model import Model
    from frugalvae.parts.protocols import Encoder
    from frugalvae.samples import Samples

NO_PHOTOGRAPHS = "features were given: whether photographs are blurred, tiny or blank is not known"


@dataclass(kw_only=True)
class Check(Checked):
    """What was found; rows of findings are those of the samples."""

    samples: Samples

    @property
    def all_notes(self) -> list[str]:
        """What was assumed, and what could not be checked."""
        return [*self.samples.notes, *self.notes]

    def reason(self, finding: Finding) -> str:
        """Why a sample was found, what it is nearly the same as, and how sure that is."""
        twin = "" if finding.twin is None else f": {self.samples.names[finding.twin]}"
        judged = finding.sure < 1 or finding.kind == "wrong-label"
        sure = f" ({most_sure(finding.sure)} sure)" if judged else ""
        return f"{finding.why}{twin}{sure}"

    def line(self, finding: Finding) -> str:
        """A finding in one line."""
        if finding.row is None:
            return f"{finding.label}: {finding.why}"
        return f"{self.samples.names[finding.row]}: {self.reason(finding)}"

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        names, found = self.samples.names, []
        for finding in self.findings:
            values = finding.to_json()
            rows = values.pop("row"), values.pop("twin")
            image, twin = (None if row is None else names[row] for row in rows)
            found.append({"image": image, **values, "twin": twin})
        return {
            "images": len(names),
            "classes": len(self.samples.classes),
            "found": dict(Counter(finding.kind for finding in self.findings)),
            "findings": found,
            "leave_out": [names[row] for row in self.rows_to_leave_out],
            "taught_before": [names[row] for row in self.taught],
            "notes": self.all_notes,
            "skipped": self.samples.skipped,
        }


def check(
    model: Model, samples: Samples, encoder: Encoder | None = None, batch_size: int = BATCH_SIZE
) -> Check:
    """Look for mistakes among samples, and beside what a model was taught; nothing is learned.

    Parameters
    ----------
    samples
        With their labels, still open.
    encoder
        What makes features of photographs; each is decoded once.
    """
    poor, notes, patterns = list[Finding](), list[str](), None
    if samples.files is None or encoder is None:
        encoded = samples.encode(None)
        features, places, digests = encoded.features, encoded.places, samples.digests()
        notes.append(NO_PHOTOGRAPHS)
    else:
        measured, labels = measure(samples.files, encoder, batch_size), samples.labels.tolist()
        features, places, digests = measured.features, measured.places, measured.digests
        patterns = measured.patterns
        poor = [
            Finding("unreadable", 1.0, labels[row], f"it cannot be read: {why}", row)
            for row, why in measured.reasons.items()
        ] + [
            Finding(found.kind, found.sure, labels[row], found.why, row)
            for row, found in poor_ones(measured.qualities).items()
        ]
    if not len(places):
        return Check.of(poor, ["no image can be read"], samples=samples)
    checked = findings.check(
        model, features, samples.labels[places], digests=digests[places], patterns=patterns
    )
    of = [*places.tolist(), None]  # the row of each, and of what concerns a class
    moved = [
        replace(
            finding,
            row=of[-1 if finding.row is None else finding.row],
            twin=of[-1 if finding.twin is None else finding.twin],
        )
        for finding in checked.findings
    ]
    typical = {label: of[row] for label, row in checked.typical.items()}
    taught = {of[row] for row in checked.taught}
    poor = [finding for finding in poor if finding.row not in taught]
    found = without_explained([*moved, *poor])
    return Check.of(found, [*notes, *checked.notes], typical, taught, samples=samples)


def without_explained(found: list[Finding]) -> list[Finding]:
    """Findings without those that another one explains: blank images look like any class."""
    poor = {f.row for f in found if f.kind in ("blank", "tiny", "blurred", "duplicate")}
    blank = {f.row for f in found if f.kind == "blank"}
    explained = {"outlier": poor, "wrong-label": blank}
    return [f for f in found if f.row not in explained.get(f.kind, ())]
