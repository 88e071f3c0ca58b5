"""``frugalvae undo``: take back the last change."""

from __future__ import annotations

import argparse

from frugalvae.cli.options import add
from frugalvae.console import Display
from frugalvae.formatting import shortened


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    parser.description = (
        "Put the file back as it was before the last change. One step is kept: undo cannot be "
        "undone."
    )
    add(parser, "file", "--trust", "--wait", "--quiet")


def run(options: argparse.Namespace) -> None:
    """Go back one step, and say what that changes."""
    from frugalvae.cli.history import describe_event
    from frugalvae.storage.store import Store
    from frugalvae.verbs.changes import undo

    store = Store(options.file, trust=options.trust)
    with store.changing(f"frugalvae undo {options.file}", options.wait):
        undone = undo(store)
    lines = [f"undone: {describe_event(undone.event)}"] if undone.event else []
    if undone.problem:
        lines = [f"undone, as it could not be read: {undone.problem}"]
    for what, names in (("no longer known", undone.gone), ("known again", undone.back)):
        if names:
            lines.append(f"{what}: {shortened(names)}")
    empty = ": it knows no class" if undone.empty else ""
    Display(options.quiet).say(*lines, f"{options.file} is as it was before that{empty}")
