"""``frugalvae rename``: give a class another name."""

from __future__ import annotations

import argparse

from frugalvae.cli.options import add
from frugalvae.console import Display
from frugalvae.labels import check_case, like


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    parser.description = "Give a class another name. What was learned about it stays."
    add(parser, "file", "label")
    parser.add_argument("name", metavar="NEW_NAME", help="its new name")
    add(parser, "--case-matters", "--trust", "--wait", "--quiet")


def run(options: argparse.Namespace) -> None:
    """Rename the class, unless the new name is taken."""
    from frugalvae.cli.common import change_class

    with change_class(options) as (store, model, label):
        name = like(label, options.name)
        others = [str(known) for known in model.classes.tolist() if known != label]
        if not options.case_matters:
            check_case([str(name)], others)
        store.save(model.rename(label, name))
    Display(options.quiet).say(f"{options.file}: {label!r} is called {name!r} now")
