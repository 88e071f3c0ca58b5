"""What verbs that work on a classifier's file have in common."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frugalvae.console import complain
from frugalvae.labels import label_named
from frugalvae.storage.store import Store

if TYPE_CHECKING:
    from frugalvae.model import Model


@contextmanager
def change_class(options: argparse.Namespace) -> Iterator[tuple[Store, Model, Any]]:
    """The file, the model in it, and the class that was named; no one else changes the file."""
    store = Store(options.file, trust=options.trust)
    with store.changing(f"frugalvae {options.verb} {options.file}", options.wait):
        model = store.load()
        yield store, model, label_named(options.file, model.classes.tolist(), options.label)


def announce_model(taught: Model, asked: str | None, file: Path) -> None:
    """Say which model a head learns with, if only the file names it."""
    from frugalvae.encoders.remembered import findable, named_by

    model = getattr(taught.head, "model", None)
    if model is not None and (asked is None or model != findable(asked)):
        complain(named_by(file, model))
