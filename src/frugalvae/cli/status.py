"""``frugalvae status``: show what a classifier knows, its size, and warnings.

All of it is in the file. The classifier is not made: that might need PyTorch, or a module to
trust. ``--verify`` makes it, and runs the self-test that every file has passed when it was written.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from frugalvae.cli.options import add, flag
from frugalvae.console import Display, print_json
from frugalvae.formatting import plural, shortened, size
from frugalvae.model.answers import expectation
from frugalvae.model.history import MOST, named
from frugalvae.storage.summary import Summary, summarise


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    add(parser, "file")
    flag(parser, "--all", "list all classes, however many")
    about = (
        "also load the classifier, draw samples of its classes and classify them, as was done "
        "when the file was written"
    )
    flag(parser, "--verify", about)
    add(parser, "--trust", "--json")


def run(options: argparse.Namespace) -> None:
    """Show the classes by task, the encoder, the size of each component, and warnings.

    For the paper's VAEs, it also lists how much of each decoder layer's null space is left.
    """
    from frugalvae.storage.store import Store

    store = Store(options.file, trust=options.trust)
    summary = summarise(store)
    if options.verify:
        from frugalvae.storage.model_file import verify

        verify(store.load(empty=True), options.file)
    if options.json:
        print_json(summary.to_json() | ({"verified": True} if options.verify else {}))
        return
    show(summary, Display(), summary.classes if options.all else MOST)
    if options.verify:
        Display().say("verified: it loads, draws samples and classifies them as it should")


# --------------------------------------------------------------------------- what is shown


def show(summary: Summary, display: Display, most: int) -> None:
    """A screenful."""
    from frugalvae.encoders import described

    known = f"{plural(summary.classes, 'class')} in {plural(len(summary.tasks), 'task')}"
    taken = f"{size(summary.bytes)}, last changed {summary.changed}"
    encoder = described(summary.encoder) if summary.encoder else "not known"
    made_by = [f"encoder  {encoder}; feature dimension {summary.features}"]
    display.say(
        f"{summary.file}: {known}, {taken}",
        *(made_by if summary.classes else []),
        f"memory   {summary.memory}",
        f"head     {summary.head}",
        *(
            f"task {number}   {plural(len(classes), 'class')}: {named(classes, most)}"
            for number, classes in enumerate(summary.tasks, start=1)
            if classes
        ),
    )
    display.say(*other_names(summary.aliases, most))
    display.say(*expectation(summary.expected))
    if summary.classes:
        show_tables(summary, display)
    display.say(*(f"warning: {warning}" for warning in summary.warnings))
    if summary.undo:
        display.say(f"The last change can be undone: frugalvae undo {summary.file}")


def other_names(aliases: Mapping[str, Any], most: int) -> list[str]:
    """Lines about folders that 'learn' takes for another class, or leaves out.

    >>> other_names({"wren": "house wren", "cat": None}, most=2)
    ['renamed  wren is house wren now', "forgotten  cat; 'learn' leaves it out, but for --again"]
    """
    renamed = [f"{name} is {label}" for name, label in aliases.items() if label is not None]
    gone = [name for name, label in aliases.items() if label is None]
    lines = [f"renamed  {shortened(renamed, most)} now"] if renamed else []
    if gone:
        lines.append(f"forgotten  {shortened(gone, most)}; 'learn' leaves it out, but for --again")
    return lines


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
