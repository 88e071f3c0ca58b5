"""``frugalvae forget``: remove a class."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from frugalvae.cli.options import add, add_encoder
from frugalvae.console import Display, print_json
from frugalvae.errors import InputError
from frugalvae.formatting import local_time, plural, quoted
from frugalvae.model.history import with_digest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    parser.description = (
        "Remove a class from a classifier, and print a receipt: what was removed, what remains of "
        "it, and the checksum of the file before and after."
    )
    add(parser, "file", "label")
    parser.add_argument(
        "--with",
        dest="inputs",
        type=Path,
        nargs="+",
        metavar="IMAGES",
        help="all images that the class was taught, or FEATURES.npz of them: what they added to "
        "parts that all classes share is taken out exactly",
    )
    parser.add_argument(
        "--scrub",
        action="store_true",
        help="also relearn the parts that all classes share, so that nothing that was trained on "
        "the class is left; this cannot be undone",
    )
    parser.add_argument(
        "--flat",
        action="store_true",
        help="with --with: take all images of a folder, even if folders in it are named after "
        "other classes",
    )
    add_encoder(parser, remembered=True)
    add(parser, "--trust", "--wait", "--json", "--quiet")
    parser.set_defaults(strict=False)


def run(options: argparse.Namespace) -> None:
    """Remove the class."""
    from frugalvae.cli.common import change_class
    from frugalvae.cli.update import more_rows
    from frugalvae.model.forgetting import forget
    from frugalvae.storage.receipts import receipt, state

    if options.scrub and options.inputs:
        raise InputError("--with takes out exactly what --scrub would estimate; give one of them")
    display = Display(options.quiet or options.json)
    with change_class(options) as (store, model, label):
        x = more_rows(options, label, model, display).x if options.inputs else None
        before = state(store)
        with display.watching():
            model, remains = forget(model, label, x, scrub=options.scrub)
        store.save(with_digest(model), undoable=not options.scrub)
        written = receipt(model, label, remains, before, state(store))
    left = plural(len(model.classes), "class") if len(model.classes) else "no class"
    display.say(
        f"{options.file}: {label!r} is forgotten; {left} left",
        *in_lines(written),
        "this cannot be undone; copies of the file elsewhere are as they were"
        if options.scrub
        else f"'frugalvae undo' brings it back, from {store.undo.name}, until you change the file "
        "again",
        "its name stays in the history; 'frugalvae learn' leaves out folders of that name, but for "
        f"--again {quoted(str(label))}",
    )
    if options.json:
        print_json({"file": str(options.file), **written})


def in_lines(written: dict[str, Any]) -> list[str]:
    """A receipt as people read it."""
    samples, freed = plural(written["samples"], "sample"), f"{written['bytes']:,} bytes"
    states = [
        f"{name}: {written[name]['bytes']:,} bytes, sha256 {written[name]['sha256']}"
        for name in ("before", "after")
    ]
    return [
        f"removed: {samples}, {freed} of the file, {local_time(written['when'])}",
        *(f"what remains of it: {sentence}" for sentence in written["remains"]),
        *states,
    ]
