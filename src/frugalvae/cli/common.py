"""What verbs that work on a classifier's file have in common."""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frugalvae.checks import as_label
from frugalvae.console import complain
from frugalvae.errors import UnknownClassError, suggestion
from frugalvae.formatting import printable, shortened
from frugalvae.storage.store import Store

if TYPE_CHECKING:
    from frugalvae.model import Model

DIGEST = "digest"  # of the samples of an update, in its event of the history
FEW = 3  # samples of a class below which it is often missed beside larger ones


@contextmanager
def change_class(options: argparse.Namespace) -> Iterator[tuple[Store, Model, Any]]:
    """The file, the model in it, and the class that was named; no one else changes the file."""
    store = Store(options.file, trust=options.trust)
    with store.changing(f"frugalvae {options.verb} {options.file}", options.wait):
        model = store.load()
        yield store, model, label_named(options.file, model.classes.tolist(), options.label)


def label_named(path: Path, labels: list[Any], typed: str) -> Any:
    """The label that was typed: a name, or a number where labels are numbers."""
    for label in labels:
        if as_label(str(label)) == as_label(typed):
            return label
    raise UnknownClassError(
        f"{path} knows no class {typed!r}.{suggestion(typed, map(str, labels))} "
        f"'frugalvae status {path}' lists all {len(labels)}"
    )


def like(label: Any, name: str) -> Any:
    """A new name as a label: a number if it is to stand beside numbers."""
    new: Any = as_label(name)
    return int(new) if not isinstance(label, str) and new.lstrip("-").isdecimal() else new


def checksum_of(path: Path) -> str:
    """SHA-256 of a file, as ``sha256sum`` prints it."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def with_source(model: Model, source: Path) -> Model:
    """The model with a note in its history of where the last samples came from."""
    *before, last = model.history
    name = printable(source.resolve().name)  # a file holds UTF-8
    return replace(model, history=(*before, {**last, "source": name}))


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


def few_samples(labels: Sequence[Any], counts: Sequence[int]) -> str:
    """A warning of classes that are often missed beside larger ones; empty if there are none.

    >>> few_samples(["hat", "shirt", "bag"], [1, 30, 0])
    "fewer than 3 samples, and so often missed: hat; 'frugalvae update' takes more"
    """
    few = [str(label) for label, count in zip(labels, counts, strict=False) if 0 < count < FEW]
    if not few or max(counts) < FEW:
        return ""
    names = shortened(few)
    return f"fewer than {FEW} samples, and so often missed: {names}; 'frugalvae update' takes more"
