"""``frugalvae forget``: remove a class."""

from __future__ import annotations

import argparse

from frugalvae.cli.options import add
from frugalvae.console import Display
from frugalvae.formatting import plural, quoted


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    parser.description = "Remove a class from a classifier, and say what remains of it."
    add(parser, "file", "label")
    parser.add_argument(
        "--scrub",
        action="store_true",
        help="also relearn the parts that all classes share, so that nothing that was trained on "
        "the class is left; this cannot be undone",
    )
    add(parser, "--trust", "--wait", "--quiet")


def run(options: argparse.Namespace) -> None:
    """Remove the class."""
    from frugalvae.cli.common import announce_model, change_class, with_digest

    display = Display(options.quiet)
    with change_class(options) as (store, model, label):
        if options.scrub:  # which learns anew
            announce_model(model, None, options.file)
        with display.watching():
            model, remains = model.forget(label, scrub=options.scrub)
        store.save(with_digest(model), undoable=not options.scrub)
    left = plural(len(model.classes), "class")
    display.say(
        f"{options.file}: {label!r} is forgotten; {left} left",
        *(f"what remains of it: {sentence}" for sentence in remains),
        "this cannot be undone; copies of the file elsewhere are as they were"
        if options.scrub
        else f"'frugalvae undo' brings it back, from {store.undo.name}, until you change the file "
        "again",
        "its name stays in the history; 'frugalvae learn' leaves out folders of that name, but for "
        f"--again {quoted(str(label))}",
    )
