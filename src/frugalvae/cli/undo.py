"""``frugalvae undo``: take back the last change."""

from __future__ import annotations

import argparse
from typing import Any

from frugalvae.cli.options import add
from frugalvae.console import Display
from frugalvae.errors import MemoryFileError
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
    from frugalvae.storage.store import Store

    store = Store(options.file, trust=options.trust)
    with store.changing(f"frugalvae undo {options.file}", options.wait):
        before = store.read_undo().document
        try:
            lines = told(store.read().document, before)
        except MemoryFileError as error:
            lines = [f"undone, as it could not be read: {error}"]
        store.go_back()
    empty = "" if before["classes"]["values"] else ": it knows no class"
    Display(options.quiet).say(*lines, f"{options.file} is as it was before that{empty}")


def told(now: dict[str, Any], before: dict[str, Any]) -> list[str]:
    """What going back takes away, and what it brings back."""
    from frugalvae.cli.history import describe_event
    from frugalvae.storage.summary import difference

    event, gone, back = difference(now, before)
    lines = [f"undone: {describe_event(event)}"] if event else []
    for what, names in (("no longer known", gone), ("known again", back)):
        if names:
            lines.append(f"{what}: {shortened(names)}")
    return lines
