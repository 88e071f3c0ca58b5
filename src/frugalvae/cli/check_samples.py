"""What ``frugalvae check`` looks at: the images of a folder, or the rows of a feature file."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from frugalvae.cli.options import choice, holds_features

if TYPE_CHECKING:
    from frugalvae.care.findings import Checked, Finding
    from frugalvae.model import Model


@dataclass
class SamplesToCheck:
    """What is to be checked.

    Attributes
    ----------
    names, labels
        Of each sample: its file or row, and its class.
    features, places
        Features (m, d) of those that can be read, and which samples these are, (m,).
    digests
        Of all samples, (n,).
    patterns
        Of those that can be read, (m, bits), if they are photographs.
    poor
        Findings about single photographs.
    read
        The content of a sample's file; None if features were given.
    notes, skipped
        What was assumed or could not be checked; and files that are no images.
    """

    names: list[str]
    labels: Any
    features: Any
    places: Any
    digests: Any
    patterns: Any = None
    poor: list[Finding] = field(default_factory=list)
    read: Callable[[int], bytes] | None = None
    notes: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)


@contextmanager
def open_samples(model: Model, options: argparse.Namespace) -> Iterator[SamplesToCheck]:
    """Features of a folder or a feature file; files can be read inside the block."""
    from frugalvae.encoders.remembered import load_encoder
    from frugalvae.images.listing import open_images

    path = options.source
    if holds_features(path):
        yield from_features(model, options)
        return
    known = [*map(str, model.classes.tolist()), *model.aliases]
    with open_images(path, "learning", depth=options.depth, known=known) as found:
        remembered = model.encoder if model.n_tasks else {}
        encoder, _ = load_encoder(remembered, choice(options), options.file or path)
        yield from_photographs(found, encoder, options)


def from_photographs(found: Any, encoder: Any, options: argparse.Namespace) -> SamplesToCheck:
    """Photographs, each decoded once."""
    from frugalvae.care.findings import Finding
    from frugalvae.care.image_quality import poor_ones
    from frugalvae.care.photographs import measure

    measured = measure(found.files, encoder, options.batch_size)
    labels = found.labels.tolist()
    poor = [
        Finding("unreadable", 1.0, labels[row], f"it cannot be read: {why}", row)
        for row, why in measured.reasons.items()
    ]
    poor += [
        Finding(bad.kind, bad.sure, labels[row], bad.why, row)
        for row, bad in poor_ones(measured.qualities).items()
    ]
    return SamplesToCheck(
        [str(path) for path in found.paths],
        found.labels,
        measured.features,
        measured.places,
        measured.digests,
        measured.patterns,
        poor,
        lambda row: bytes(found.files[row].read()),
        list(found.notes),
        found.skipped,
    )


def from_features(model: Model, options: argparse.Namespace) -> SamplesToCheck:
    """The training rows of a feature file."""
    import numpy as np

    from frugalvae.care.except_list import ROW
    from frugalvae.encoders.remembered import check_same
    from frugalvae.images.feature_file import load_training
    from frugalvae.images.photographs import digests_of_rows

    features = load_training(options.source)
    if options.file is not None:
        check_same(model.encoder, features.encoder, options.file, options.source)
    rows = np.arange(len(features.x_train))
    return SamplesToCheck(
        [ROW.format(row) for row in rows.tolist()],
        features.y_train,
        features.x_train,
        rows,
        digests_of_rows(features.x_train, rows),
        notes=["features were given: whether photographs are blurred, tiny or blank is not known"],
    )


def examine(model: Model, samples: SamplesToCheck) -> Checked:
    """All findings; rows are those of the samples."""
    from frugalvae.care.check import check
    from frugalvae.care.findings import Checked

    if not len(samples.places):
        return Checked.of(samples.poor, ["no image can be read"])
    places, labels = samples.places.tolist(), samples.labels[samples.places]
    known = {"digests": samples.digests[samples.places], "patterns": samples.patterns}
    checked = check(model, samples.features, labels, **known)
    found = [
        replace(
            finding,
            row=None if finding.row is None else places[finding.row],
            twin=None if finding.twin is None else places[finding.twin],
        )
        for finding in checked.findings
    ]
    typical = {label: places[row] for label, row in checked.typical.items()}
    taught = {places[row] for row in checked.taught}
    poor = [finding for finding in samples.poor if finding.row not in taught]
    return Checked.of(once([*found, *poor]), checked.notes, typical, taught)


def once(findings: list[Finding]) -> list[Finding]:
    """Findings without those that another one explains: blank images look like any class."""
    poor = {f.row for f in findings if f.kind in ("blank", "tiny", "blurred", "duplicate")}
    blank = {f.row for f in findings if f.kind == "blank"}
    explained = {"outlier": poor, "wrong-label": blank}
    return [f for f in findings if f.row not in explained.get(f.kind, ())]
