"""``frugalvae check``: look for mistakes in a folder of images before it is taught."""

from __future__ import annotations

import argparse
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frugalvae.cli.options import (
    add,
    add_encoder,
    check_output,
    check_source,
    choice,
    holds_features,
)
from frugalvae.cli.pages import add_page, page_of, write_page
from frugalvae.console import Display, complain, print_json
from frugalvae.errors import InputError
from frugalvae.files import check_place
from frugalvae.formatting import percent, plural, printable, shortened

if TYPE_CHECKING:
    from frugalvae.care.findings import Checked, Finding
    from frugalvae.model import Model

SHOWN = 5  # findings of a kind in the terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    parser.description = (
        "Look for mistakes before teaching: images that are nearly the same, that look like "
        "another class or like none, that are blank, tiny, blurred or unreadable; classes of too "
        "few images, and names that are nearly the same. With FILE.frugal, also beside what it was "
        "taught. Nothing is learned. A page shows the findings, the surest first, and a list "
        "names what is better left out: 'frugalvae learn FILE FOLDER --except LIST' takes it."
    )
    parser.add_argument(
        "file",
        type=Path,
        nargs="?",
        metavar="FILE.frugal",
        help="the classifier that is to learn them; without it, images are only compared with each "
        "other",
    )
    add(parser, "source")
    add_page(parser, "check")
    parser.add_argument(
        "--list",
        type=Path,
        default=Path("except.txt"),
        metavar="FILE",
        help="the list to write, for 'learn --except' (default: except.txt)",
    )
    add_encoder(parser)
    add(parser, "--depth", "--trust", "--json", "--quiet")


def run(options: argparse.Namespace) -> None:
    """Check, print a summary, and write the page and the list."""
    from frugalvae.care.except_list import write_list
    from frugalvae.images.listing import counted
    from frugalvae.model import Model
    from frugalvae.storage.store import Store

    refuse_wrong(options)
    model = Model()
    if options.file is not None:
        model = Store(options.file, trust=options.trust).load(empty=True)
    display = Display(options.quiet or options.json)
    with display.watching(), open_samples(model, options) as samples:
        checked = examine(model, samples)
        page = page_of("check", lambda: page_about(checked, samples, options))
    write_list(options.list, remarks(options), entries(checked, samples.names))
    if options.json and not options.quiet:
        print_json(report(checked, samples))
    display.say(*samples.notes, *counted(samples.skipped))
    show(checked, samples, display)
    beside = f"{options.list} for 'frugalvae learn --except'"
    write_page(page, options.output, display, beside)


def refuse_wrong(options: argparse.Namespace) -> None:
    """Refuse what would be overwritten, a source that is not there, an encoder for features."""
    check_source(options)
    for output in (options.output, options.list):
        for given in (options.file, options.source):
            if given is not None and output.resolve() == given.resolve():
                raise InputError(f"{output} is what is to be checked; give another name")
    check_output(options.output, ".html", ".htm")
    check_place(options.list)


# --------------------------------------------------------------------------- what is checked


@dataclass
class Samples:
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
def open_samples(model: Model, options: argparse.Namespace) -> Iterator[Samples]:
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
        encoder, _ = load_encoder(remembered, choice(options), options.file or path, complain)
        yield from_photographs(found, encoder, options)


def from_photographs(found: Any, encoder: Any, options: argparse.Namespace) -> Samples:
    """Photographs, each decoded once."""
    from frugalvae.care.findings import Finding
    from frugalvae.care.image_quality import poor_ones
    from frugalvae.care.photographs import see

    seen = see(found.files, encoder, options.batch_size)
    labels = found.labels.tolist()
    poor = [
        Finding("unreadable", 1.0, labels[row], f"it cannot be read: {why}", row)
        for row, why in seen.reasons.items()
    ]
    poor += [
        Finding(bad.kind, bad.sure, labels[row], bad.why, row)
        for row, bad in poor_ones(seen.qualities).items()
    ]
    return Samples(
        [str(path) for path in found.paths],
        found.labels,
        seen.features,
        seen.places,
        seen.digests,
        seen.patterns,
        poor,
        lambda row: bytes(found.files[row].read()),
        list(found.notes),
        found.skipped,
    )


def from_features(model: Model, options: argparse.Namespace) -> Samples:
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
    return Samples(
        [ROW.format(row) for row in rows.tolist()],
        features.y_train,
        features.x_train,
        rows,
        digests_of_rows(features.x_train, rows),
        notes=["features were given: whether photographs are blurred, tiny or blank is not known"],
    )


def examine(model: Model, samples: Samples) -> Checked:
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
    poor = {finding.row for finding in samples.poor}  # which is why they look unusual
    found = [finding for finding in found if finding.kind != "outlier" or finding.row not in poor]
    return Checked.of([*found, *samples.poor], checked.notes, typical)


# --------------------------------------------------------------------------- what is told


def show(checked: Checked, samples: Samples, display: Display) -> None:
    """What the terminal shows: how many of each kind, and the surest of them."""
    from frugalvae.care.findings import KINDS

    images = "image" if samples.read else "sample"
    names = sorted({str(label) for label in samples.labels.tolist()})
    classes = f"{plural(len(names), 'class')}: {shortened(names)}"
    display.say(f"{plural(len(samples.names), images)} of {classes}", *checked.notes)
    for kind, heading in KINDS.items():
        found = checked.of_kind(kind)
        if not found:
            continue
        display.say(f"{heading}: {len(found):,}")
        for finding in found[:SHOWN]:
            display.say(f"  {line(finding, samples.names)}")
        if len(found) > SHOWN:
            display.say(f"  and {len(found) - SHOWN:,} more")
    if not checked.findings:
        display.say("nothing found")
        return
    count = len(checked.rows_to_leave_out)
    if count:
        share = percent(count / len(samples.names))
        display.say(f"{plural(count, images)} better left out, {share}")


def line(finding: Finding, names: Sequence[str]) -> str:
    """A finding in one line."""
    if finding.row is None:
        return f"{finding.label}: {finding.why}"
    twin = "" if finding.twin is None else f": {names[finding.twin]}"
    return f"{names[finding.row]}: {finding.why}{twin}"


def report(checked: Checked, samples: Samples) -> dict[str, Any]:
    """What ``--json`` prints."""
    names = samples.names
    findings = []
    for finding in checked.findings:
        told = finding.to_json()
        row, twin = told.pop("row"), told.pop("twin")
        image = None if row is None else names[row]
        findings.append({"image": image, **told, "twin": None if twin is None else names[twin]})
    return {
        "images": len(names),
        "classes": len(set(samples.labels.tolist())),
        "found": dict(Counter(finding.kind for finding in checked.findings)),
        "findings": findings,
        "leave_out": [names[row] for row in checked.rows_to_leave_out],
        "notes": [*samples.notes, *checked.notes],
        "skipped": samples.skipped,
    }


def remarks(options: argparse.Namespace) -> list[str]:
    """What stands at the head of the list."""
    return [
        "what 'frugalvae check' would leave out; delete the line of an image to teach it after all",
        "lines with # are not taken: take the # away from an image to leave it out, too",
        learning(options),
    ]


def learning(options: argparse.Namespace) -> str:
    """The command that learns what is not on the list."""
    file = options.file or "FILE.frugal"
    words = map(str, (file, options.source, "--except", options.list))
    return printable(shlex.join(["frugalvae", "learn", *words]))


def entries(checked: Checked, names: Sequence[str]) -> list[tuple[str, str, bool]]:
    """A line of the list for each image, the surest first."""
    taken = set(checked.rows_to_leave_out)
    seen, lines = set[int](), []
    for finding in checked.findings:
        row = finding.row
        if row is None or row in seen or (row in taken and not finding.leave_out):
            continue
        seen.add(row)
        why = f"{percent(finding.sure)} {finding.label}: {finding.why}"
        lines.append((names[row], why, finding.leave_out))
    return lines


def page_about(checked: Checked, samples: Samples, options: argparse.Namespace) -> str:
    """The page, with thumbnails."""
    from frugalvae.report.care_pages import Gallery, check_page, pictured_findings
    from frugalvae.report.thumbnails import thumbnails

    names, notes = [printable(name) for name in samples.names], [*samples.notes, *checked.notes]
    pictures = thumbnails(pictured_findings(checked), samples.read)
    gallery = Gallery(str(options.source), names, notes, pictures)
    return check_page(checked, gallery, learning(options))
