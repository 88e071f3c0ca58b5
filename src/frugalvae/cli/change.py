"""What verbs that change a classifier's file have in common."""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frugalvae.cli.output import complain
from frugalvae.cli.summary import label_named
from frugalvae.formatting import printable
from frugalvae.storage.store import Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from frugalvae.model import Model

DIGEST = "digest"  # of the samples of an update, in its event of the history


@contextmanager
def change_class(options: argparse.Namespace) -> Iterator[tuple[Store, Model, Any]]:
    """The file, the model in it, and the class that was named; no one else changes the file."""
    store = Store(options.file, trust=options.trust)
    with store.changing(f"frugalvae {options.verb} {options.file}", options.wait):
        model = store.load()
        yield store, model, label_named(options.file, model.classes.tolist(), options.label)


def with_source(model: Model, source: Path) -> Model:
    """The model with a note in its history of where the last samples came from."""
    *before, last = model.history
    name = printable(source.resolve().name)  # a file holds UTF-8
    return replace(model, history=(*before, {**last, "source": name}))


def digest_of(label: Any, x: NDArray[np.float32]) -> str:
    """What tells an update from any other: a killed one that is repeated must not count twice."""
    return hashlib.sha256(repr((label, x.shape)).encode() + x.tobytes()).hexdigest()[:16]


def with_digest(model: Model, digest: str | None = None) -> Model:
    """With the digest in the last event of the history, and in no other."""
    history = [{k: v for k, v in event.items() if k != DIGEST} for event in model.history]
    if digest is not None:
        history[-1][DIGEST] = digest
    return replace(model, history=tuple(history))


def announce_model(taught: Model, asked: str | None, file: Path) -> None:
    """Say which model a head learns with, if only the file names it."""
    from frugalvae.encoders.remembered import findable, named_by

    model = getattr(taught.head, "model", None)
    if model is not None and (asked is None or model != findable(asked)):
        complain(named_by(file, model))
