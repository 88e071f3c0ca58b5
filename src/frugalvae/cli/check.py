"""``frugalvae check``: look for mistakes in a folder of images before learning it."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from frugalvae.cli.options import add, add_encoder, check_output, check_source, encoder_of, value
from frugalvae.cli.pages import add_page, page_of, write_page
from frugalvae.console import Display, print_json
from frugalvae.errors import InputError
from frugalvae.files import check_place
from frugalvae.formatting import percent, plural, printable, shortened

if TYPE_CHECKING:
    from frugalvae.care.lists import ListEntry
    from frugalvae.verbs.check import Check

SHOWN = 10  # findings of a kind in the terminal

#: What is better mended than left out.
MEND = {
    "names": "rename folders that mean the same class",
    "wrong-label": "move images to the folder of the class that they show",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    about = "the classifier that will learn the images; without it, they are compared with each "
    add(parser, "file", nargs="?", help=f"{about}other only")
    add(parser, "source")
    add_page(parser, "check")
    about = "the list to write, for 'learn --except'; your decisions in it are kept (default: "
    value(parser, "--list", "FILE", f"{about}except.txt)", type=Path, default=Path("except.txt"))
    add_encoder(parser)
    add(parser, "--depth", "--trust", "--json", "--quiet")


def run(options: argparse.Namespace) -> None:
    """Look for mistakes in a folder before learning it; nothing is learned.

    It finds images that are nearly the same, that look like another class or like none, or that
    are blank, tiny, blurred or unreadable; classes with too few images; and class names that are
    nearly the same. With FILE.frugal, images are also compared with what that file has learned. A
    page shows the findings, the surest first. A list has the images that are better left out:
    'frugalvae learn FILE FOLDER --except LIST' skips them. Move images that are in the wrong
    folder, and check again: one mistake can hide another.
    """
    from frugalvae.care.lists import read_decisions, with_decisions, write_list
    from frugalvae.model.model import Model
    from frugalvae.samples import counted, open_samples
    from frugalvae.storage.store import Store
    from frugalvae.verbs.check import check

    refuse_wrong(options)
    decisions = read_decisions(options.list, folder(options))
    model = Model()
    if options.file is not None:
        model = Store(options.file, trust=options.trust).load(empty=True)
    display = Display(options.quiet or options.json)
    known = [*map(str, model.classes.tolist()), *model.aliases]
    opened = open_samples(options.source, "learning", depth=options.depth, known=known)
    with display.watching(), opened as samples:
        encoder = encoder_of(samples, model.encoder if model.n_tasks else {}, options)
        found = check(model, samples, encoder, options.batch_size)
        page = page_of("check", lambda: page_about(found, options))
    listed = with_decisions(entries(found), decisions, samples.names)
    remarks = [
        f"what is not to be taught, by: {learning(options)}",
        "put a # before an image to teach it after all; take the # away to leave it out, too",
        "'frugalvae check' keeps what you decide so",
        folder(options),
    ]
    write_list(options.list, remarks, listed)
    if options.json:
        print_json(found.to_json())
    display.say(*samples.notes, *counted(samples.skipped))
    show(found, display, options.output if isinstance(page, str) else options.list)
    display.say(*counts_of(listed, found, options.list))
    write_page(page, options.output, display, str(options.list))
    display.say(*next_steps(found, learning(options)))


def page_about(found: Check, options: argparse.Namespace) -> str:
    """The page, with thumbnails."""
    from frugalvae.pages.care import check_page

    return check_page(found, options.source, learning(options))


def refuse_wrong(options: argparse.Namespace) -> None:
    """Refuse what would be overwritten, a source that is not there, an encoder for features."""
    from frugalvae.care.lists import folder_of, read_decisions

    check_source(options)
    for output in (options.output, options.list):
        for given in (options.file, options.source):
            if given is not None and output.resolve() == given.resolve():
                raise InputError(f"{output} is what is to be checked; give another name")
    check_output(options.output, ".html", ".htm")
    check_place(options.list)
    other = folder_of(options.list)
    if other is None or other == folder(options):
        return
    decided = len(read_decisions(options.list, other))
    if decided:
        raise InputError(
            f"{options.list} holds {plural(decided, 'decision')} about another folder, "
            f"{other.removeprefix('of ')}; name another list with --list, or remove this one"
        )


# --------------------------------------------------------------------------- what is shown


def show(found: Check, display: Display, place: Path) -> None:
    """What the terminal shows: how many of each kind, and the surest of them."""
    from frugalvae.care.findings import KINDS

    samples = found.samples
    names = sorted(map(str, samples.classes))
    classes = f"{plural(len(names), 'class')}: {shortened(names)}"
    display.say(f"{plural(len(samples), samples.what)} of {classes}", *found.notes)
    for kind, heading in KINDS.items():
        of_kind = found.of_kind(kind)
        if of_kind:
            more = len(of_kind) - SHOWN
            display.say(
                f"{heading}: {len(of_kind):,}",
                *(f"  {found.line(finding)}" for finding in of_kind[:SHOWN]),
                *([f"  and {more:,} more, in {place}"] if more > 0 else []),
            )
    if not found.findings:
        display.say("nothing found")


def counts_of(listed: Sequence[ListEntry], found: Check, path: Path) -> list[str]:
    """How many images the list leaves out, how many it proposes, and how many were decided."""
    images = found.samples.what
    taken = sum(entry.taken for entry in listed)
    proposed = sum(not (entry.taken or entry.decided) for entry in listed)
    decided = sum(entry.decided for entry in listed)
    share = percent(taken / len(found.samples))
    lines = {
        f"{plural(taken, images)} better left out, {share}": taken,
        f"{plural(proposed, images)} to look at, behind # in {path}": proposed,
        f"{plural(decided, images)} as you decided in {path}": decided,
    }
    return [line for line, count in lines.items() if count]


def next_steps(found: Check, learning: str) -> list[str]:
    """What to do about the findings."""
    if not found.findings:
        return []
    mend = [what for kind, what in MEND.items() if found.of_kind(kind)]
    steps = [f"{', '.join(mend)}, and check again: mistakes hide each other"] if mend else []
    return [*steps, f"{'then' if mend else 'next'}: {learning}"]


# --------------------------------------------------------------------------- the list


def folder(options: argparse.Namespace) -> str:
    """The line of a list that says what it is about."""
    return printable(f"of {options.source.resolve()}")


def learning(options: argparse.Namespace) -> str:
    """The command that learns what is not on the list."""
    words = (options.file or "FILE.frugal", options.source, "--except", options.list)
    return printable(shlex.join(["frugalvae", "learn", *map(str, words)]))


def entries(found: Check) -> list[ListEntry]:
    """A line of the list for each image, the surest first."""
    from frugalvae.care.lists import ListEntry

    taken, lines = set(found.rows_to_leave_out), dict[int, ListEntry]()
    for finding in found.findings:
        row = finding.row
        if row is None or row in lines or (row in taken and not finding.leave_out):
            continue
        why = f"of {finding.label}: {found.reason(finding)}"
        lines[row] = ListEntry(found.samples.names[row], why, finding.leave_out)
    return list(lines.values())
