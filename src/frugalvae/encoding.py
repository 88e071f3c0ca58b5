"""Encode all images of a data set, and go on where a killed command stopped."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frugalvae.engines import Encode, Engine, here
from frugalvae.errors import InputError, check_number
from frugalvae.files import check_place, json_digest, write_json
from frugalvae.formatting import plural
from frugalvae.images import BATCH_SIZE
from frugalvae.images.decode import File
from frugalvae.images.feature_file import Features, write_features
from frugalvae.images.npz import read_arrays, write_arrays
from frugalvae.images.photographs import THREADS, Encoded, Shard
from frugalvae.parts.protocols import Encoder
from frugalvae.samples import Samples, open_samples, refuse

SHARD = 64  # images that are lost at most when a command is killed
SHORT = 16  # letters of a digest that are kept
OWNER = "parts-of.json"  # in the folder of parts: what they are of

#: A feature of each class's name.
Text = dict[str, NDArray[np.float32]]

#: Encodes shards somewhere, and gives what comes of each in their order.
ShardRunner = Callable[[Sequence[Shard]], Iterator[Encoded]]


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
    """Encode the images of a folder or a zip archive into a feature file.

    Parameters
    ----------
    images
        A folder of images, or a zip archive of one; see :mod:`frugalvae.images.walk`.
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
    with open_samples(images, "both", depth=depth) as opened:
        return encode_images(opened, output, encoder, **how)


def encode_images(
    images: Samples,
    output: str | Path,
    encoder: Encoder,
    *,
    batch_size: int = BATCH_SIZE,
    threads: int | None = None,
    strict: bool = False,
    engine: Engine = here,
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
    engine
        Where images are encoded.
    say
        Is told when a killed call is continued or started over.
    """
    check_number("batch_size", batch_size, 1, whole=True)
    check_testable(images)
    threads = threads or THREADS
    if strict:
        refuse(images.unreadable() | images.skipped)
    text = describe(encoder, np.unique(images.labels).tolist())  # or refuse a name beforehand
    size = batch_size * max(SHARD // batch_size, 1)
    parts = Parts(Path(output), depends_on(images, encoder.identity, size))
    work = Encode(encoder, batch_size, threads)
    started = time.perf_counter()
    shards = cut(images.files or (), size)
    kept = resume(parts, shards, say)
    done = joined(shards, list(complete(parts, shards, lambda left: engine(work, left))))
    seconds = time.perf_counter() - started
    skipped = {images.names[number]: why for number, why in done.reasons.items()}
    if strict:
        refuse(skipped)
    features, missing = gather(images, done, text, encoder.identity)
    write_features(output, features)
    parts.remove()
    return Report(features, len(images) - kept, kept, seconds, skipped, missing)


def check_testable(images: Samples) -> None:
    """Refuse images of which none is left for a test."""
    if not images.test.any():
        raise InputError(
            f"{images.name}: no class has two images, so that there is nothing to test with; "
            "add images, or make folders train/ and test/"
        )


def cut(files: Sequence[File], size: int) -> list[Shard]:
    """All files in shards of that many."""
    starts = range(0, len(files), size)
    return [Shard(start // size, files[start : start + size]) for start in starts]


def resume(parts: Parts, shards: Sequence[Shard], say: Callable[[str], object]) -> int:
    """Get ready to encode; how many images were encoded by a command that was killed."""
    changed = parts.open()
    if changed:
        say(f"{parts.folder.name}: started over, as this is of other {' and '.join(changed)}")
    kept = sum(len(shard.files) for shard in shards if parts.load(shard.number) is not None)
    if kept:
        say(f"{parts.folder.name}: {plural(kept, 'image')} encoded before, going on from there")
    return kept


def complete(parts: Parts | None, shards: Sequence[Shard], run: ShardRunner) -> Iterator[Encoded]:
    """What comes of each shard, in their order; those that are missing are encoded and kept."""
    if parts is None:
        yield from run(shards)
        return
    missing = [shard for shard in shards if parts.load(shard.number) is None]
    numbers, fresh = {shard.number for shard in missing}, run(missing)
    for shard in shards:
        part = parts.load(shard.number) if shard.number not in numbers else None
        if part is None:
            part = next(fresh)
            parts.save(shard.number, part)
        yield part
    next(fresh, None)  # tells that all is done


def joined(shards: Sequence[Shard], done: Sequence[Encoded]) -> Encoded:
    """All shards as one: places count from the first image of all."""
    features, places, start = [], [], 0
    reasons: dict[int, str] = {}
    for shard, part in zip(shards, done, strict=True):
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
    images: Samples, done: Encoded, text: Text | None, identity: dict[str, Any]
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
            f"{images.names[min(done.reasons)]} ({done.reasons[min(done.reasons)]})"
        )
    x, kept = done.features, classes.tolist()
    text = None if text is None else {name: text[name] for name in kept}
    features = Features(images.name, x[train], labels[train], x[test], labels[test], text, identity)
    return features, missing


# ------------------------------------------------------------ what a killed command leaves


class Parts:
    """The folder ``FILE.parts``: a file for each shard, and one that says what they are of.

    Parameters
    ----------
    output
        The feature file that is being made.
    of
        What the parts depend on, each as a digest: other images, another encoder or
        another size of batches, and none of them is used.
    """

    def __init__(self, output: Path, of: dict[str, str]) -> None:
        self.folder = output.with_name(f"{output.name}.parts")
        self.of = of

    def open(self) -> list[str]:
        """Get ready; what is there of something else is removed, and its differences returned."""
        before = self._before()
        changed = [name for name in self.of if before and before.get(name) != self.of[name]]
        if changed:
            self.remove()
        self.folder.mkdir(exist_ok=True)
        write_json(self.folder / OWNER, self.of)
        return changed

    def there(self) -> bool:
        """Whether parts are there, be they all but removed."""
        try:
            self._before()
        except InputError:  # it is the folder of someone else
            return False
        return self.folder.is_dir()

    def are_of(self, what: str) -> bool:
        """Whether parts are there and agree in that; or are all but removed."""
        return self.there() and self._before().get(what, self.of[what]) == self.of[what]

    def _before(self) -> dict[str, Any]:
        """What the parts that are there are of; nothing if there are none."""
        if not self.folder.exists():
            return {}
        try:
            return json.loads((self.folder / OWNER).read_text())
        except (OSError, ValueError) as error:
            if self.folder.is_dir() and all(p.name.startswith(".") for p in self.folder.iterdir()):
                return {}  # killed before anything was written
            raise InputError(
                f"{self.folder} is in the way: no parts of a feature file are in it; move it, "
                "or choose another output"
            ) from error

    def load(self, number: int) -> Encoded | None:
        """A finished shard; None if it is missing or damaged."""
        try:
            part = read_arrays(self._path(number), ("features", "places", "reasons"))
            reasons = {int(place): why for place, why in json.loads(part["reasons"].item())}
            if any("pip install" in why for why in reasons.values()):
                return None  # what was missing may be installed by now
            return Encoded(part["features"], part["places"], reasons)
        except (InputError, KeyError, ValueError, TypeError, RecursionError):
            return None

    def save(self, number: int, encoded: Encoded) -> None:
        """Write a finished shard: complete, or not at all."""
        reasons = np.array(json.dumps(list(encoded.reasons.items())))
        arrays = {"features": encoded.features, "places": encoded.places, "reasons": reasons}
        write_arrays(self._path(number), arrays)

    def remove(self) -> None:
        """Remove all of it, last what says whose it is: a kill leaves no riddle."""
        for path in sorted(self.folder.iterdir(), key=lambda path: path.name == OWNER):
            path.unlink()
        self.folder.rmdir()

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:06}.npz"


def depends_on(
    images: Samples, identity: dict[str, Any], shard_size: int, **more: Any
) -> dict[str, str]:
    """What features depend on, and ``more``, by words that can be said when it has changed."""
    files = [
        [name, *file.stamp] for name, file in zip(images.names, images.files or (), strict=True)
    ]
    encoder = {key: told for key, told in identity.items() if key != "probe"}
    return {
        "images": json_digest(files)[:SHORT],
        "encoder": json_digest(encoder)[:SHORT],
        "batch size": str(shard_size),
        **{what: json_digest(content)[:SHORT] for what, content in more.items()},
    }
