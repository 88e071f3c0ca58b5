"""Encode all images of a data set, and go on where a killed command stopped."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frugalvae.errors import InputError, check_number
from frugalvae.files import check_place
from frugalvae.formatting import plural
from frugalvae.images import BATCH_SIZE
from frugalvae.images.feature_file import Features, write_features
from frugalvae.images.left_out import refuse, unreadable
from frugalvae.images.listing import Listing, open_images
from frugalvae.images.resume import Parts, depends_on
from frugalvae.images.shards import Encoded, Shard, encode_here
from frugalvae.images.walk import File
from frugalvae.interfaces import Encoder

SHARD = 64  # images that are lost at most when a command is killed

#: A feature of each class's name.
Text = dict[str, NDArray[np.float32]]

#: Encodes shards somewhere, and gives each back with its features as it is done.
Runner = Callable[[Sequence[Shard]], Iterator[tuple[Shard, Encoded]]]


@dataclass(frozen=True)
class Report:
    """What was done.

    Attributes
    ----------
    features
        What was written.
    encoded, kept
        How many images were encoded now, and how many by a command that was killed.
    seconds
        How long encoding took.
    skipped
        Images that cannot be read, each with the reason.
    missing
        Classes of which no training image can be read; they are left out.
    """

    features: Features
    encoded: int
    kept: int
    seconds: float
    skipped: dict[str, str]
    missing: list[str]


def encode_folder(
    images: str | Path,
    output: str | Path,
    encoder: Encoder,
    *,
    depth: int | None = None,
    **how: Any,
) -> Report:
    """Encode the images of a folder, a zip archive or CIFAR-100 into a feature file.

    Parameters
    ----------
    images
        As :func:`frugalvae.images.dataset.load_images` takes them, one path.
    output
        The ``.npz`` to write. Until it is finished, parts of it are in a folder beside it;
        a call that was killed is continued by the same call.
    encoder
        Of :func:`frugalvae.encoders.make_frozen`.
    depth
        How deep the folders of classes are; see :mod:`frugalvae.images.classes`.
    how
        What :func:`encode_images` takes.

    Examples
    --------
    >>> encode_folder("absent", "features.npz", encoder=None)
    Traceback (most recent call last):
    ...
    frugalvae.errors.InputError: absent: there is no such file or folder; check the path
    """
    check_place(output)
    with open_images(images, "both", depth=depth) as opened:
        return encode_images(opened, output, encoder, **how)


def encode_images(
    images: Listing,
    output: str | Path,
    encoder: Encoder,
    *,
    batch_size: int = BATCH_SIZE,
    threads: int | None = None,
    strict: bool = False,
    runner: Runner | None = None,
    say: Callable[[str], object] = lambda _: None,
) -> Report:
    """The same for images that are open.

    Parameters
    ----------
    batch_size
        How many images the network takes at a time.
    threads
        How many images are decoded at a time; by default one a core.
    strict
        Decode all images beforehand, and refuse if a file cannot be read or is no image.
        Without it such files are left out, and named in the report.
    runner
        What encodes, in place of this process.
    say
        Is told when a killed call is continued or started over.
    """
    check_number("batch_size", batch_size, 1, whole=True)
    check_testable(images)
    threads = threads or os.cpu_count() or 1
    if strict:
        refuse(unreadable(images, threads) | images.skipped)
    text = describe(encoder, np.unique(images.labels).tolist())  # or refuse a name beforehand
    size = batch_size * max(SHARD // batch_size, 1)
    parts = Parts(Path(output), depends_on(images, encoder.identity, size))
    run = runner or (lambda shards: encode_here(shards, encoder, batch_size, threads))
    started = time.perf_counter()
    done, kept = finish(parts, cut(images.files, size), run, say)
    seconds = time.perf_counter() - started
    skipped = named_reasons(images, done)
    if strict:
        refuse(skipped)
    features, missing = gather(images, done, text, encoder.identity)
    write_features(output, features)
    parts.remove()
    return Report(features, len(images.paths) - kept, kept, seconds, skipped, missing)


def check_testable(images: Listing) -> None:
    """Refuse images of which none is left for a test."""
    if not images.test.any():
        raise InputError(
            f"{images.name}: no class has two images, so that there is nothing to test with; "
            "add images, or make folders train/ and test/"
        )


def named_reasons(images: Listing, done: Encoded) -> dict[str, str]:
    """Why images have no features, by their paths."""
    return {str(images.paths[number]): why for number, why in done.reasons.items()}


def cut(files: Sequence[File], size: int) -> list[Shard]:
    """All files in shards of that many."""
    starts = range(0, len(files), size)
    return [Shard(start // size, files[start : start + size]) for start in starts]


def finish(
    parts: Parts, shards: Sequence[Shard], run: Runner, say: Callable[[str], object]
) -> tuple[Encoded, int]:
    """Encode what is missing; all shards as one, and how many images were there already."""
    changed = parts.open()
    if changed:
        say(f"{parts.folder.name}: started over, as this is of other {' and '.join(changed)}")
    found = {shard.number: parts.load(shard.number) for shard in shards}
    done = {number: part for number, part in found.items() if part is not None}
    kept = sum(len(shard.files) for shard in shards if shard.number in done)
    if kept:
        say(f"{parts.folder.name}: {plural(kept, 'image')} encoded before, going on from there")
    for shard, encoded in run([shard for shard in shards if shard.number not in done]):
        parts.save(shard.number, encoded)
        done[shard.number] = encoded
    return joined(shards, done), kept


def joined(shards: Sequence[Shard], done: dict[int, Encoded]) -> Encoded:
    """All shards as one: places count from the first image of all."""
    features, places, start = [], [], 0
    reasons: dict[int, str] = {}
    for shard in shards:
        part = done[shard.number]
        features.append(part.features)
        places.append(part.places + start)
        reasons |= {place + start: why for place, why in part.reasons.items()}
        start += len(shard.files)
    return Encoded(np.concatenate(features), np.concatenate(places), reasons)


def describe(encoder: Encoder, names: list[str]) -> Text | None:
    """The text feature of each class, if the encoder can read."""
    features = encoder.text_features(names)
    return None if features is None else dict(zip(names, features, strict=True))


def gather(
    images: Listing, done: Encoded, text: Text | None, identity: dict[str, Any]
) -> tuple[Features, list[str]]:
    """All features with their labels; and classes that have none to learn from."""
    labels, test = images.labels[done.places], images.test[done.places]
    classes = np.unique(labels[~test])
    missing = np.setdiff1d(images.labels, classes).tolist()
    known = np.isin(labels, classes)
    train, test = known & ~test, known & test
    if not train.any() or not test.any():
        split = "test" if train.any() else "training"
        raise InputError(
            f"{images.name}: no {split} image of it can be read, such as "
            f"{images.paths[min(done.reasons)]} ({done.reasons[min(done.reasons)]})"
        )
    x, kept = done.features, classes.tolist()
    text = None if text is None else {name: text[name] for name in kept}
    features = Features(images.name, x[train], labels[train], x[test], labels[test], text, identity)
    return features, missing
