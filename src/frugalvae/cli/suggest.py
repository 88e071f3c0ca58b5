"""``frugalvae suggest``: tell which unlabelled images would teach most."""

from __future__ import annotations

import argparse
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frugalvae.cli.options import (
    add,
    add_encoder,
    check_output,
    check_source,
    choice,
    positive,
)
from frugalvae.cli.pages import add_page, page_of, write_page
from frugalvae.console import Display, print_json
from frugalvae.errors import InputError
from frugalvae.formatting import plural, printable, shortened
from frugalvae.images import holds_features

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from frugalvae.care.suggest import Suggested
    from frugalvae.model.model import Model
    from frugalvae.samples import Samples

SHOWN = 20  # suggestions in the terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    parser.description = (
        "Tell which unlabelled images would teach a classifier most: those that it is unsure of, "
        "that are unlike each other, and that many others are like. Images that look like no "
        "taught class and like each other are grouped: perhaps a new class. Folders in the folder "
        "are looked into, and mean nothing. Nothing is learned."
    )
    add(parser, "file")
    add(parser, "source")
    parser.add_argument(
        "-n",
        "--number",
        type=positive,
        default=20,
        metavar="N",
        help="how many images to suggest (default: %(default)s)",
    )
    add_page(parser, "suggest")
    parser.add_argument(
        "--copy-to",
        type=Path,
        metavar="DIR",
        help="copy suggested images to folders in this new folder: 'perhaps NAME' for the most "
        "probable class, 'perhaps new class 1' for a group, 'perhaps unknown'; sort and rename "
        "them, then learn the folder",
    )
    add_encoder(parser, remembered=True)
    add(parser, "--trust", "--json", "--quiet")


def run(options: argparse.Namespace) -> None:
    """Choose, print, and write the page and the folders."""
    from frugalvae.care.suggest import Suggested, suggest
    from frugalvae.samples import counted, open_unlabelled
    from frugalvae.storage.store import Store

    store = Store(options.file, trust=options.trust)
    store.check_there()
    refuse_wrong(options)
    model, display = store.load(), Display(options.quiet or options.json)
    with display.watching(), open_unlabelled([options.source], "x_train") as [samples]:
        pool = not_taught(model, samples, options)
        suggested = Suggested()
        if len(pool.features):
            suggested = suggest(model, pool.features, options.number)
        page = page_of("suggest", lambda: page_about(suggested, pool, options.source))
        if options.copy_to is not None:
            copy_to(options.copy_to, suggested, pool)
    if options.json:
        print_json(report(suggested, pool))
    display.say(*pool.notes, *suggested.notes, *counted(samples.skipped))
    show(suggested, pool, display)
    copied = "" if options.copy_to is None else f"folders in {options.copy_to}"
    write_page(page, options.output, display, copied)
    if options.copy_to is not None:
        learn = shlex.join(["frugalvae", "learn", str(options.file), str(options.copy_to)])
        display.say(
            f"look at them, move what is wrong, give each folder the name of its class, then: "
            f"{printable(learn)}"
        )


def refuse_wrong(options: argparse.Namespace) -> None:
    """Refuse wrong paths, before anything heavy is imported."""
    check_source(options)
    check_output(options.output, ".html", ".htm")
    if options.copy_to is None:
        return
    if holds_features(options.source):
        raise InputError(f"{options.source} holds features, no images; leave out --copy-to")
    if options.copy_to.exists() and (
        not options.copy_to.is_dir() or any(options.copy_to.iterdir())
    ):
        raise InputError(f"--copy-to {options.copy_to} exists already; give a new folder")
    if not options.copy_to.resolve().parent.is_dir():
        raise InputError(f"--copy-to {options.copy_to}: its folder does not exist; make it first")


# --------------------------------------------------------------------------- what to choose from


@dataclass
class Pool:
    """What to choose from: samples that were not taught and can be read, and their features."""

    samples: Samples
    features: NDArray[np.float32]
    notes: list[str]


def not_taught(model: Model, samples: Samples, options: argparse.Namespace) -> Pool:
    """Those of some samples that the classifier was not taught."""
    import numpy as np

    from frugalvae.digests import DIGEST, NONE, among

    encoder, _ = samples.encoder(model.encoder, choice(options), options.file)
    taught = np.concatenate([np.empty(0, DIGEST), *model.digests.values()])
    digests = samples.digests()
    fresh = np.flatnonzero(~among(digests, taught) | (digests == NONE))
    notes = told_before(len(samples) - len(fresh), samples.what)
    samples = samples.at(fresh)
    encoded = samples.encode(encoder, options.batch_size)
    names = samples.names
    notes += [f"{names[place]} cannot be read: {why}" for place, why in encoded.reasons.items()]
    return Pool(samples.at(encoded.places), encoded.features, notes)


def told_before(count: int, what: str) -> list[str]:
    """How many were taught before, if any."""
    return [f"{plural(count, what)} taught before, and left out"] if count else []


# --------------------------------------------------------------------------- what is told


def show(suggested: Suggested, pool: Pool, display: Display) -> None:
    """What the terminal shows."""
    if not suggested.suggestions:
        display.say("nothing to label")
        return
    what, names = pool.samples.what, pool.samples.names
    display.say(f"{plural(len(suggested.suggestions), what)} of {len(names):,} to label:")
    for found in suggested.suggestions[:SHOWN]:
        display.say(f"  {names[found.row]}: {found.why}")
    if len(suggested.suggestions) > SHOWN:
        display.say(f"  and {len(suggested.suggestions) - SHOWN:,} more")
    for rows in suggested.groups:
        alike = shortened([names[row] for row in rows])
        display.say(f"perhaps a new class, {plural(len(rows), what)} alike: {alike}")


def report(suggested: Suggested, pool: Pool) -> dict[str, Any]:
    """What ``--json`` prints."""
    told = []
    for found in suggested.suggestions:
        plain = found.to_json()
        told.append({"image": pool.samples.names[plain.pop("row")], **plain})
    groups = [[pool.samples.names[row] for row in rows] for rows in suggested.groups]
    notes = [*pool.notes, *suggested.notes]
    return {
        "images": len(pool.samples),
        "suggestions": told,
        "groups": groups,
        "notes": notes,
        "skipped": pool.samples.skipped,
    }


def copy_to(folder: Path, suggested: Suggested, pool: Pool) -> None:
    """Copy suggestions to a folder for each probable class, and groups to folders of their own."""
    from frugalvae.care.guesses import guess

    read = pool.samples.reader
    assert read is not None
    grouped = {row for rows in suggested.groups for row in rows}
    places = [
        (guess(found.label if found.known else "unknown"), found.row)
        for found in suggested.suggestions
        if found.row not in grouped
    ]
    for number, rows in enumerate(suggested.groups, start=1):
        places += [(guess(f"new class {number}"), row) for row in rows]
    folder.mkdir(exist_ok=True)
    for name, row in places:
        inside = folder / name
        inside.mkdir(exist_ok=True)
        target = inside / Path(pool.samples.names[row]).name
        if target.exists():  # another folder has an image of this name
            target = inside / f"{row} {target.name}"
        target.write_bytes(read(row))


def page_about(suggested: Suggested, pool: Pool, source: Path) -> str:
    """The page, with thumbnails."""
    from frugalvae.report.care_pages import Gallery, pictured_suggestions, suggest_page
    from frugalvae.report.thumbnails import thumbnails

    names, notes = [printable(name) for name in pool.samples.names], [*pool.notes, *suggested.notes]
    pictures = thumbnails(pictured_suggestions(suggested), pool.samples.reader)
    return suggest_page(suggested, Gallery(str(source), names, notes, pictures))
