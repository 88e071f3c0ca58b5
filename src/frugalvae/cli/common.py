"""What verbs that work on a classifier's file have in common."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from frugalvae.cli.options import choice
from frugalvae.labels import label_named
from frugalvae.storage.store import Store

if TYPE_CHECKING:
    from frugalvae.model.model import Model


@contextmanager
def change_class(options: argparse.Namespace) -> Iterator[tuple[Store, Model, Any]]:
    """The file, the model in it, and the class that was named; no one else changes the file."""
    trust = choice(options).named if hasattr(options, "model") else options.trust
    store = Store(options.file, trust=trust)
    with store.changing(f"frugalvae {options.verb} {options.file}", options.wait):
        model = store.load()
        yield store, model, label_named(options.file, model.classes.tolist(), options.label)
