"""``frugalvae forget``: remove a class."""

from __future__ import annotations

import argparse

from frugalvae.cli.options import add_file, add_label, add_quiet, add_trust, add_wait
from frugalvae.formatting import plural


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    parser.description = "Remove a class from a classifier, and say what remains of it."
    add_file(parser)
    add_label(parser)
    parser.add_argument(
        "--scrub",
        action="store_true",
        help="also relearn the parts that all classes share, so that nothing that was trained on "
        "the class is left; this cannot be undone",
    )
    add_trust(parser)
    add_wait(parser)
    add_quiet(parser)


def run(options: argparse.Namespace) -> None:
    """Remove the class."""
    from frugalvae.cli.change import announce_model, change_class, with_digest
    from frugalvae.console import Display

    display = Display(options.quiet)
    with change_class(options) as (store, model, label):
        if options.scrub:  # which learns anew
            announce_model(model, None, options.file)
        with display.watching():
            model, remains = model.forget(label, scrub=options.scrub)
        store.save(with_digest(model), undoable=not options.scrub)
    left = plural(len(model.classes), "class")
    display.say(f"{options.file}: {label!r} is forgotten; {left} left")
    for sentence in remains:
        display.say(f"what remains of it: {sentence}")
    if options.scrub:
        display.say("this cannot be undone; copies of the file elsewhere are as they were")
    else:
        display.say(f"'frugalvae undo' brings it back, from {store.undo.name}, until you change "
                    "the file again")  # fmt: skip
    display.say("its name stays in the history")
