"""What ``frugalvae check`` looks at, measured and compared."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from frugalvae.cli.options import choice

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from frugalvae.care.findings import Checked, Finding
    from frugalvae.model.model import Model
    from frugalvae.samples import Samples


@dataclass
class Measured:
    """What is to be checked, measured.

    Attributes
    ----------
    features, places
        Features (m, d) of those that can be read, and which samples these are, (m,).
    digests
        Of all samples, (n,).
    patterns
        Of those that can be read, (m, bits), if they are photographs.
    poor
        Findings about single photographs.
    notes
        What could not be checked.
    """

    features: NDArray[np.float32]
    places: NDArray[np.int64]
    digests: NDArray[np.bytes_]
    patterns: Any = None
    poor: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def measured(model: Model, samples: Samples, options: argparse.Namespace) -> Measured:
    """Features and quality; each photograph is decoded once."""
    from frugalvae.care.findings import Finding
    from frugalvae.care.image_quality import poor_ones
    from frugalvae.care.photographs import measure

    remembered = model.encoder if model.n_tasks else {}
    encoder, _ = samples.encoder(remembered, choice(options), options.file or options.source)
    if samples.files is None or encoder is None:
        encoded = samples.encode(None)
        notes = ["features were given: whether photographs are blurred, tiny or blank is not known"]
        return Measured(encoded.features, encoded.places, samples.digests(), notes=notes)
    found, labels = measure(samples.files, encoder, options.batch_size), samples.labels.tolist()
    poor = [
        Finding("unreadable", 1.0, labels[row], f"it cannot be read: {why}", row)
        for row, why in found.reasons.items()
    ]
    poor += [
        Finding(bad.kind, bad.sure, labels[row], bad.why, row)
        for row, bad in poor_ones(found.qualities).items()
    ]
    return Measured(found.features, found.places, found.digests, found.patterns, poor)


def examine(model: Model, samples: Samples, options: argparse.Namespace) -> Checked:
    """All findings; rows are those of the samples."""
    from frugalvae.care.check import check
    from frugalvae.care.findings import Checked

    found = measured(model, samples, options)
    if not len(found.places):
        return Checked.of(found.poor, ["no image can be read"])
    places, labels = found.places.tolist(), samples.labels[found.places]
    known = {"digests": found.digests[found.places], "patterns": found.patterns}
    checked = check(model, found.features, labels, **known)
    moved = [
        replace(
            finding,
            row=None if finding.row is None else places[finding.row],
            twin=None if finding.twin is None else places[finding.twin],
        )
        for finding in checked.findings
    ]
    typical = {label: places[row] for label, row in checked.typical.items()}
    taught = {places[row] for row in checked.taught}
    poor = [finding for finding in found.poor if finding.row not in taught]
    notes = [*found.notes, *checked.notes]
    return Checked.of(once([*moved, *poor]), notes, typical, taught)


def once(findings: list[Finding]) -> list[Finding]:
    """Findings without those that another one explains: blank images look like any class."""
    poor = {f.row for f in findings if f.kind in ("blank", "tiny", "blurred", "duplicate")}
    blank = {f.row for f in findings if f.kind == "blank"}
    explained = {"outlier": poor, "wrong-label": blank}
    return [f for f in findings if f.row not in explained.get(f.kind, ())]
