"""``frugalvae check``: look for mistakes in a folder of images before it is taught."""

from __future__ import annotations

import argparse
import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frugalvae.cli.check_samples import examine
from frugalvae.cli.options import add, add_encoder, check_output, check_source
from frugalvae.cli.pages import add_page, page_of, write_page
from frugalvae.console import Display, print_json
from frugalvae.errors import InputError
from frugalvae.files import check_place
from frugalvae.formatting import most_sure, percent, plural, printable, shortened

if TYPE_CHECKING:
    from frugalvae.care.except_list import ListEntry
    from frugalvae.care.findings import Checked, Finding
    from frugalvae.samples import Samples

SHOWN = 10  # findings of a kind in the terminal

#: What is better mended than left out.
MEND = {
    "names": "rename folders that mean the same class",
    "wrong-label": "move images to the folder of the class that they show",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    parser.description = (
        "Look for mistakes before teaching: images that are nearly the same, that look like "
        "another class or like none, that are blank, tiny, blurred or unreadable; classes of too "
        "few images, and names that are nearly the same. With FILE.frugal, also beside what it was "
        "taught. Nothing is learned. A page shows the findings, the surest first, and a list "
        "names what is better left out: 'frugalvae learn FILE FOLDER --except LIST' takes it. Move "
        "what is in a wrong folder, and check again: a folder with fewer mistakes shows more."
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
        help="the list to write, for 'learn --except'; what you decided in it is kept (default: "
        "except.txt)",
    )
    add_encoder(parser)
    add(parser, "--depth", "--trust", "--json", "--quiet")


def run(options: argparse.Namespace) -> None:
    """Check, print a summary, and write the page and the list."""
    from frugalvae.care.except_list import read_decisions, with_decisions, write_list
    from frugalvae.model.model import Model
    from frugalvae.samples import counted, open_samples
    from frugalvae.storage.store import Store

    refuse_wrong(options)
    decisions = read_decisions(options.list, folder(options))
    model = Model()
    if options.file is not None:
        model = Store(options.file, trust=options.trust).load(empty=True)
    display = Display(options.quiet or options.json)
    known = [*map(str, model.classes.tolist()), *model.aliases]
    opened = open_samples(options.source, "learning", depth=options.depth, known=known)
    with display.watching(), opened as samples:
        checked = examine(model, samples, options)
        page = page_of("check", lambda: page_about(checked, samples, options))
    listed = with_decisions(entries(checked, samples.names), decisions, samples.names)
    write_list(options.list, remarks(options), listed)
    if options.json:
        print_json(report(checked, samples))
    display.say(*samples.notes, *counted(samples.skipped))
    show(checked, samples, display, options.output if isinstance(page, str) else options.list)
    display.say(*counts_of(listed, samples, options.list))
    write_page(page, options.output, display, str(options.list))
    display.say(*next_steps(checked, learning(options)))


def refuse_wrong(options: argparse.Namespace) -> None:
    """Refuse what would be overwritten, a source that is not there, an encoder for features."""
    check_source(options)
    for output in (options.output, options.list):
        for given in (options.file, options.source):
            if given is not None and output.resolve() == given.resolve():
                raise InputError(f"{output} is what is to be checked; give another name")
    check_output(options.output, ".html", ".htm")
    check_place(options.list)
    refuse_other_list(options)


def refuse_other_list(options: argparse.Namespace) -> None:
    """Refuse to replace a list in which a person decided about another folder."""
    from frugalvae.care.except_list import folder_of, read_decisions

    other = folder_of(options.list)
    if other is None or other == folder(options):
        return
    decided = len(read_decisions(options.list, other))
    if decided:
        raise InputError(
            f"{options.list} holds {plural(decided, 'decision')} about another folder, "
            f"{other.removeprefix('of ')}; name another list with --list, or remove this one"
        )


# --------------------------------------------------------------------------- what is told


def show(checked: Checked, samples: Samples, display: Display, place: Path) -> None:
    """What the terminal shows: how many of each kind, and the surest of them."""
    from frugalvae.care.findings import KINDS

    images = samples.what
    names = sorted({str(label) for label in samples.labels.tolist()})
    classes = f"{plural(len(names), 'class')}: {shortened(names)}"
    display.say(f"{plural(len(samples), images)} of {classes}", *checked.notes)
    for kind, heading in KINDS.items():
        found = checked.of_kind(kind)
        if not found:
            continue
        display.say(f"{heading}: {len(found):,}")
        for finding in found[:SHOWN]:
            display.say(f"  {line(finding, samples.names)}")
        if len(found) > SHOWN:
            display.say(f"  and {len(found) - SHOWN:,} more, in {place}")
    if not checked.findings:
        display.say("nothing found")


def counts_of(listed: Sequence[ListEntry], samples: Samples, path: Path) -> list[str]:
    """How many images the list leaves out, how many it proposes, and how many were decided."""
    images = samples.what
    taken = sum(entry.taken for entry in listed)
    proposed = sum(not (entry.taken or entry.decided) for entry in listed)
    decided = sum(entry.decided for entry in listed)
    lines = []
    if taken:
        lines.append(f"{plural(taken, images)} better left out, {percent(taken / len(samples))}")
    if proposed:
        lines.append(f"{plural(proposed, images)} to look at, behind # in {path}")
    if decided:
        lines.append(f"{plural(decided, images)} as you decided in {path}")
    return lines


def next_steps(checked: Checked, learning: str) -> list[str]:
    """What to do about the findings."""
    if not checked.findings:
        return []
    mend = [what for kind, what in MEND.items() if checked.of_kind(kind)]
    steps = [f"{', '.join(mend)}, and check again: mistakes hide each other"] if mend else []
    return [*steps, f"{'then' if mend else 'next'}: {learning}"]


def line(finding: Finding, names: Sequence[str]) -> str:
    """A finding in one line."""
    if finding.row is None:
        return f"{finding.label}: {finding.why}"
    return f"{names[finding.row]}: {reason(finding, names)}"


def reason(finding: Finding, names: Sequence[str]) -> str:
    """Why an image was found, what it is nearly the same as, and how sure that is."""
    twin = "" if finding.twin is None else f": {names[finding.twin]}"
    judged = finding.sure < 1 or finding.kind == "wrong-label"
    sure = f" ({most_sure(finding.sure)} sure)" if judged else ""
    return f"{finding.why}{twin}{sure}"


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
        "taught_before": [names[row] for row in checked.taught],
        "notes": [*samples.notes, *checked.notes],
        "skipped": samples.skipped,
    }


def remarks(options: argparse.Namespace) -> list[str]:
    """What stands at the head of the list."""
    return [
        "what is not to be taught, by: " + learning(options),
        "put a # before an image to teach it after all; take the # away to leave it out, too",
        "'frugalvae check' keeps what you decide so",
        folder(options),
    ]


def folder(options: argparse.Namespace) -> str:
    """The line of a list that says what it is about."""
    return printable(f"of {options.source.resolve()}")


def learning(options: argparse.Namespace) -> str:
    """The command that learns what is not on the list."""
    file = options.file or "FILE.frugal"
    words = map(str, (file, options.source, "--except", options.list))
    return printable(shlex.join(["frugalvae", "learn", *words]))


def entries(checked: Checked, names: Sequence[str]) -> list[ListEntry]:
    """A line of the list for each image, the surest first."""
    from frugalvae.care.except_list import ListEntry

    taken = set(checked.rows_to_leave_out)
    seen, lines = set[int](), []
    for finding in checked.findings:
        row = finding.row
        if row is None or row in seen or (row in taken and not finding.leave_out):
            continue
        seen.add(row)
        why = f"of {finding.label}: {reason(finding, names)}"
        lines.append(ListEntry(names[row], why, finding.leave_out))
    return lines


def page_about(checked: Checked, samples: Samples, options: argparse.Namespace) -> str:
    """The page, with thumbnails."""
    from frugalvae.report.care_pages import Gallery, check_page, pictured_findings
    from frugalvae.report.thumbnails import thumbnails

    names, notes = [printable(name) for name in samples.names], [*samples.notes, *checked.notes]
    pictures = thumbnails(pictured_findings(checked), samples.reader)
    gallery = Gallery(str(options.source), names, notes, pictures)
    return check_page(checked, gallery, learning(options))
