"""``frugalvae status`` and ``frugalvae history``: what is in a file, and how it came there."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from frugalvae.cli.options import as_json, classifier_file
from frugalvae.formatting import local_time, plural, size, visible

if TYPE_CHECKING:
    from frugalvae.cli.summary import Summary
    from frugalvae.console import Display

MOST = 12  # classes of a task that are named, without --all


def add_status(verbs: Any) -> None:
    """The options of ``frugalvae status``."""
    status = verbs.add_parser(
        "status",
        help="what a classifier knows, what it costs, and warnings",
        description="Classes by task, the encoder, parameters and bytes by component, the null "
        "spaces of the decoder's layers (R of the paper, and free directions), and warnings.",
        parents=[classifier_file(), as_json()],
    )
    status.add_argument("--all", action="store_true", help="name all classes, however many")
    status.set_defaults(run=run_status)


def add_history(verbs: Any) -> None:
    """The options of ``frugalvae history``."""
    history = verbs.add_parser(
        "history",
        help="what was done to a classifier, and when",
        parents=[classifier_file(), as_json()],
    )
    history.set_defaults(run=run_history)


def run_status(options: argparse.Namespace) -> None:
    """``frugalvae status``."""
    from frugalvae.cli.summary import summarise
    from frugalvae.storage.store import Store

    summary = summarise(Store(options.file))
    if options.json:
        print(json.dumps(summary.to_json(), indent=1, ensure_ascii=False))
        return
    from frugalvae.console import Display

    show(summary, Display(), summary.classes if options.all else MOST)


def show(summary: Summary, display: Display, most: int) -> None:
    """A screenful."""
    from frugalvae.encoders.remembered import described

    known = f"{plural(summary.classes, 'class')} in {plural(len(summary.tasks), 'task')}"
    taken = f"{size(summary.bytes)}, last changed {summary.changed}"
    display.say(f"{summary.file}: {known}, {taken}")
    encoder = described(summary.encoder) if summary.encoder else "not known"
    display.say(f"encoder  {encoder}; feature dimension {summary.features}")
    display.say(f"memory   {summary.memory}")
    display.say(f"head     {summary.head}")
    for number, classes in enumerate(summary.tasks, start=1):
        display.say(f"task {number}   {plural(len(classes), 'class')}: {named(classes, most)}")
    show_tables(summary, display)
    for warning in summary.warnings:
        display.say(f"warning: {warning}")
    if summary.undo:
        display.say(f"The last change can be undone: frugalvae undo {summary.file}")


def show_tables(summary: Summary, display: Display) -> None:
    """Parameters and bytes by component, and null spaces."""
    rows = [(name, *both) for name, both in summary.components.items()]
    rows.append(("all", sum(row[1] for row in rows), sum(row[2] for row in rows)))
    shown = [[name, f"{count:,}", f"{taken:,}"] for name, count, taken in rows]
    display.table("", ["component", "parameters", "bytes"], shown)
    if summary.layers:
        layers = [
            [f"{layer.layer}", f"{layer.proportion:.4f}", f"{layer.free} of {layer.size}"]
            for layer in summary.layers
        ]
        display.table("", ["layer of the decoder", "R", "free directions"], layers)


def named(classes: dict[str, int | None], most: int) -> str:
    """Classes and how many samples each was taught.

    >>> named({"emu": 30, "dax": None, "cat": 2}, most=2)
    'emu (30), dax and 1 more'
    """
    shown = [name + (f" ({count})" if count else "") for name, count in classes.items()]
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    return ", ".join(shown[:most]) + more


def run_history(options: argparse.Namespace) -> None:
    """``frugalvae history``."""
    from frugalvae.storage.store import Store

    history = Store(options.file).read().document["history"]
    if options.json:
        print(json.dumps(history, indent=1, ensure_ascii=False))
        return
    for event in history:
        print(told(event))
    if not history:
        print(f"{options.file} has no history")


def told(event: dict[str, Any]) -> str:
    """An event in a line.

    >>> told({"action": "learn", "when": "2026-11-16T05:00:00+00:00", "classes": {"emu": 30}})
    '2026-11-16 05:00:00  learn   emu (30)'
    """
    classes = event.get("classes")
    shown = named(classes, MOST) if isinstance(classes, dict) else str(classes or "")
    if "from" in event and "to" in event:
        shown = f"{event['from']} to {event['to']}"
    when = local_time(str(event.get("when", "")))
    source = f", from {event['source']}" if "source" in event else ""
    return visible(f"{when}  {event.get('action', '?')!s:6}  {shown}{source}")
