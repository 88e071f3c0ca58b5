"""``frugalvae status``: show what a classifier knows, its size, and warnings."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from frugalvae.cli.options import add_file, add_json
from frugalvae.cli.output import print_json
from frugalvae.formatting import plural, size

if TYPE_CHECKING:
    from frugalvae.cli.summary import Summary
    from frugalvae.console import Display

MOST = 12  # classes of a task that are named, without --all


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    parser.description = (
        "Show the classes by task, the encoder, the size of each component, how much room the "
        "layers of a decoder have left (R of the paper, and free directions), and warnings."
    )
    add_file(parser)
    parser.add_argument("--all", action="store_true", help="name all classes, however many")
    add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Print what the file says."""
    from frugalvae.cli.summary import summarise
    from frugalvae.storage.store import Store

    summary = summarise(Store(options.file))
    if options.json:
        print_json(summary.to_json())
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
