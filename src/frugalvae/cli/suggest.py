"""``frugalvae suggest``: which unlabelled images to label next."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from frugalvae.cli.options import (
    add,
    add_encoder,
    check_output,
    check_source,
    encoder_of,
    positive,
    value,
)
from frugalvae.cli.pages import add_page, page_of, write_page
from frugalvae.console import Display, print_json
from frugalvae.errors import InputError
from frugalvae.formatting import plural, printable, shortened
from frugalvae.images import holds_features

if TYPE_CHECKING:
    from frugalvae.verbs.suggest import Suggestions

SHOWN = 20  # suggestions in the terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    add(parser, "file", "source")
    about = "how many images to suggest (default: %(default)s)"
    parser.add_argument("-n", "--number", type=positive, default=20, metavar="N", help=about)
    add_page(parser, "suggest")
    about = (
        "copy suggested images to folders in this new folder: 'perhaps NAME' for the most "
        "probable class, 'perhaps new class 1' for a group, 'perhaps unknown' for the rest; sort "
        "and rename them, then learn the folder"
    )
    value(parser, "--copy-to", "DIR", about, type=Path)
    add_encoder(parser, remembered=True)
    add(parser, "--trust", "--json", "--quiet")


def run(options: argparse.Namespace) -> None:
    """Suggest which unlabelled images to label next; nothing is learned.

    It suggests images that the classifier is unsure of, that differ from each other, and that
    resemble many others. Images that look like each other but like no taught class are grouped:
    perhaps a new class. Images in subfolders are included; names of folders are ignored.
    """
    from frugalvae.samples import counted, open_unlabelled
    from frugalvae.storage.store import Store
    from frugalvae.verbs.suggest import copy_suggestions, suggest

    store, folder = Store(options.file, trust=options.trust), options.copy_to
    store.check_there()
    check_source(options)
    check_output(options.output, ".html", ".htm")
    if folder is not None:
        check_new_folder(folder, options.source)
    model, display = store.load(), Display(options.quiet or options.json)
    with display.watching(), open_unlabelled([options.source], "x_train") as [samples]:
        encoder = encoder_of(samples, model.encoder, options)
        found = suggest(model, samples, encoder, options.number, options.batch_size)
        page = page_of("suggest", lambda: page_about(found, options.source))
        if folder is not None:
            copy_suggestions(folder, found)
    if options.json:
        print_json(found.to_json())
    display.say(*found.all_notes, *counted(samples.skipped))
    show(found, display)
    write_page(page, options.output, display, *([f"folders in {folder}"] if folder else []))
    if folder is not None:
        learn = shlex.join(["frugalvae", "learn", str(options.file), str(folder)])
        display.say(
            f"look at them, move what is wrong, give each folder the name of its class, then: "
            f"{printable(learn)}"
        )


def check_new_folder(folder: Path, source: Path) -> None:
    """Refuse to copy features, or into a folder that holds anything."""
    if holds_features(source):
        raise InputError(f"{source} holds features, no images; leave out --copy-to")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"--copy-to {folder} exists already; give a new folder")
    if not folder.resolve().parent.is_dir():
        raise InputError(f"--copy-to {folder}: its folder does not exist; make it first")


def page_about(found: Suggestions, source: Path) -> str:
    """The page, with thumbnails."""
    from frugalvae.pages.care import suggest_page

    return suggest_page(found, source)


def show(found: Suggestions, display: Display) -> None:
    """What the terminal shows."""
    suggestions, groups = found.suggestions, found.groups
    if not suggestions:
        display.say("nothing to label")
        return
    what, names = found.samples.what, found.samples.names
    display.say(
        f"{plural(len(suggestions), what)} of {len(names):,} to label:",
        *(f"  {names[one.row]}: {one.why}" for one in suggestions[:SHOWN]),
    )
    if len(suggestions) > SHOWN:
        display.say(f"  and {len(suggestions) - SHOWN:,} more")
    for rows in groups:
        alike = shortened([names[row] for row in rows])
        display.say(f"perhaps a new class, {plural(len(rows), what)} alike: {alike}")
