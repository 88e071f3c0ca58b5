"""``frugalvae rename``: give a class another name."""

from __future__ import annotations

import argparse
from typing import Any

from frugalvae.cli.options import add
from frugalvae.console import Display
from frugalvae.labels import FOLDERS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    parser.description = "Give a class another name. What was learned about it stays."
    add(parser, "file", "label")
    parser.add_argument("name", metavar="NEW_NAME", help="its new name")
    add(parser, "--case-matters", "--trust", "--wait", "--quiet")


def run(options: argparse.Namespace) -> None:
    """Rename the class, unless the new name is taken."""
    from frugalvae.cli.common import change_class
    from frugalvae.verbs.changes import rename

    how: dict[str, Any] = {"case_matters": options.case_matters, "advice": FOLDERS}
    with change_class(options) as (store, model, label):
        renamed = rename(model, label, options.name, **how)
        store.save(renamed.model)
    Display(options.quiet).say(f"{options.file}: {label!r} is called {renamed.label!r} now")
