"""``frugalvae history``: list what was done to a classifier, and when."""

from __future__ import annotations

import argparse
from typing import Any

from frugalvae.cli.options import add
from frugalvae.console import print_json
from frugalvae.formatting import local_time, printable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    parser.description = "List every change of a classifier: what was learned, when, and from what."
    add(parser, "file", "--json")


def run(options: argparse.Namespace) -> None:
    """Print a line for each change."""
    from frugalvae.storage.store import Store

    history = Store(options.file).read().document["history"]
    if options.json:
        print_json(history)
        return
    width = max((len(str(event.get("action", "?"))) for event in history), default=0)
    for event in history:
        print(printable(describe_event(event, width)))
    if not history:
        print(f"{options.file} has no history: it was written without one")


def describe_event(event: dict[str, Any], width: int = 6) -> str:
    """An event in a line, its action in so many letters.

    >>> describe_event({"action": "learn", "when": "2026-11-16 5:00", "classes": {"emu": 30}})
    '2026-11-16 5:00  learn   emu (30)'
    """
    from frugalvae.storage.summary import in_words

    when = local_time(str(event.get("when", "")))
    return f"{when}  {event.get('action', '?')!s:{width}}  {in_words(event)}"
