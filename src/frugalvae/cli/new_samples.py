"""What there is to learn in a folder or a feature file, as features of new classes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from frugalvae.checks import as_label, check_case
from frugalvae.cli.output import complain
from frugalvae.encoders.remembered import Remembered, check_same, load_encoder
from frugalvae.errors import InputError
from frugalvae.formatting import plural, shortened
from frugalvae.images.listing import Listing, named, refuse

if TYPE_CHECKING:
    from frugalvae.encoders.remembered import Choice
    from frugalvae.storage.store import Store


@dataclass
class NewSamples:
    """Features of new classes.

    Attributes
    ----------
    x, y
        A row an image, and the class of each.
    encoder
        What the classifier is to remember.
    text
        A text feature of each class, if the encoder can read.
    known
        Classes that were there too, but are known.
    skipped, missing
        Images that cannot be read, with the reason; and classes of which none can.
    left_out, notes
        Other files that were not read, with the reason; and what was assumed of folders.
    """

    x: NDArray[np.float32]
    y: NDArray[Any]
    encoder: Remembered
    text: dict[Any, NDArray[np.float32]] | None = None
    known: list[Any] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class KnownClasses:
    """What is known before: the file, its labels, and its encoder."""

    store: Store
    classes: list[Any]
    encoder: Remembered
    case_matters: bool = False

    def split(self, labels: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Which labels are new, and which are known."""
        known = {key(label) for label in self.classes}
        new = [label for label in labels if label not in known]
        if not self.case_matters:
            check_case(*([str(label) for label in group] for group in (new, self.classes)))
        return new, [label for label in labels if label in known]


def key(label: Any) -> Any:
    """A label as it is compared: names as all systems write them, numbers as they are."""
    return as_label(label) if isinstance(label, str) else label


def from_features(path: Path, taught: KnownClasses, say: Callable[[str], object]) -> NewSamples:
    """The training features of a feature file."""
    from frugalvae.images.feature_file import load_features

    features = load_features(path)
    check_same(taught.encoder, features.encoder, taught.store.given, path)
    labels: NDArray[Any] = np.array([key(label) for label in features.y_train.tolist()])
    new, known = taught.split(np.unique(labels).tolist())
    say_known(known, say)
    rows = np.isin(labels, np.array(new, labels.dtype)) if new else np.zeros(len(labels), bool)
    encoder = (
        features.encoder if taught.encoder == {} else taught.encoder
    )  # a new file has none yet
    told = {key(label): vector for label, vector in (features.text or {}).items()}
    text = {label: told[label] for label in new} if told else None
    return NewSamples(features.x_train[rows], labels[rows], encoder, text, known)


def from_folder(
    found: Listing,
    taught: KnownClasses,
    choice: Choice,
    *,
    batch_size: int,
    strict: bool,
    say: Callable[[str], object],
) -> NewSamples:
    """The images of new classes, encoded; after a kill, from where it stopped."""
    from frugalvae.images.encode import describe, named_reasons

    if strict:
        refuse(found.skipped)
    new, known = taught.split(found.classes)
    say_known(known, say)
    told: dict[str, Any] = {"left_out": found.skipped, "notes": found.notes}
    if not new:
        clear_parts(found, taught.store)
        nothing = np.empty((0, 0), np.float32)
        return NewSamples(nothing, np.array([]), taught.encoder, known=known, **told)
    images = found.of(new)
    say(
        f"{plural(len(images.files), 'image')} of {plural(len(new), 'new class')}: "
        f"{shortened(sorted(new))}"
    )
    encoder, remembered = load_encoder(taught.encoder, choice, taught.store.given, complain)
    text = describe(encoder, sorted(new))
    done = encode_parts(found, taught.store, encoder, new, batch_size, say)
    skipped = named_reasons(images, done)
    if strict:
        refuse(skipped)
    labels: NDArray[Any] = images.labels[done.places]
    missing = sorted(set(new) - set(labels.tolist()))
    if not len(labels):
        raise InputError(f"{found.name}: no image of a new class can be read:\n" + lines(skipped))
    kept = None if text is None else {name: text[name] for name in set(labels.tolist())}
    return NewSamples(done.features, labels, remembered, kept, known, skipped, missing, **told)


def encode_parts(
    found: Listing,
    store: Store,
    encoder: Any,
    new: list[str],
    batch_size: int,
    say: Callable[[str], object],
) -> Any:
    """Features of the images of new classes; finished shards are kept beside the file."""
    from frugalvae.images import encode as folder
    from frugalvae.images.encode import Parts, depends_on, digest
    from frugalvae.images.photographs import encode_here

    size = batch_size * max(folder.SHARD // batch_size, 1)
    of = depends_on(found, encoder.identity, size)
    parts = Parts(store.path, of | {"classes": digest(sorted(new))})
    threads = os.cpu_count() or 1
    done, _ = folder.finish(
        parts,
        folder.cut(found.of(new).files, size),
        lambda shards: encode_here(shards, encoder, batch_size, threads),
        say,
    )
    return done


def clear_parts(found: Listing, store: Store) -> None:
    """Remove what was encoded of this folder: all of it is learned."""
    from frugalvae.images.encode import Parts, depends_on

    parts = Parts(store.path, depends_on(found, {}, 0))
    if parts.are_of("images"):
        parts.remove()


def say_known(known: list[Any], say: Callable[[str], object]) -> None:
    """One line about what is not learned again."""
    if known:
        number = plural(len(known), "known class")
        say(f"{number} left alone: 'frugalvae update' takes more images of a known class")


def lines(skipped: dict[str, str]) -> str:
    """Unreadable images, a line each."""
    return "\n".join(named(skipped))
