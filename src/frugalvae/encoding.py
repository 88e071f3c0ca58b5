"""Many samples: encoded a part at a time, and summed a chunk at a time, wherever that is done.

Where a killed command stopped, the next one goes on. Of a chunk only sums are kept, so that memory
does not grow with the number of samples. Chunks depend on the samples alone, and are added up in
their order: the result is the same wherever they were encoded. The features of the last chunk are
kept until the end: taught to the sums of all others, they show how sure answers may be.

Photographs are encoded by an :mod:`engine <frugalvae.engines>`, a part of a chunk at a time, and
summed here: encoding takes nearly all of the time. Rows of features are summed by the engine.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from frugalvae.engines import Engine, run_in_process
from frugalvae.errors import InputError, check_number
from frugalvae.files import check_place, json_digest, json_object, read_plain, write_json
from frugalvae.formatting import plural
from frugalvae.images import BATCH_SIZE
from frugalvae.images.decode import reading_images
from frugalvae.images.feature_file import Features, read_arrays, write_arrays, write_features
from frugalvae.images.photographs import THREADS, Encoded, encode_groups
from frugalvae.model.model import Model, Sums
from frugalvae.parts.protocols import Encoder, Task
from frugalvae.samples import Samples, named, open_samples, refuse

if TYPE_CHECKING:
    from frugalvae.model.plan import TeachingPlan

PART = 64  # images that are encoded and written at a time: lost at most when a command is killed
DECODERS = 2  # threads of another process that decode; the network may be on a GPU there
SHORT = 16  # letters of a digest that are kept
OWNER = "parts-of.json"  # in the folder of parts: what they are of
OURS = re.compile(r"\d{6,}\.npz|parts-of\.json|\.frugalvae-unfinished-.*")  # names of files in it

#: A feature of each class's name.
Text = dict[str, NDArray[np.float32]]
LEAST, MOST = 1024, 8192  # photographs of a chunk,
USUAL_COUNT = 16  # of which there are about so many in between; of rows a chunk has the most


@dataclass(frozen=True)
class Encode:
    """Work: photographs become features."""

    encoder: Encoder
    batch_size: int = BATCH_SIZE
    threads: int = THREADS

    @property
    def part_size(self) -> int:
        """How many photographs are encoded and written at a time: whole batches."""
        return self.batch_size * max(PART // self.batch_size, 1)

    def __call__(self, samples: Samples) -> Encoded:
        """The features of some photographs."""
        with reading_images():
            return samples.encode(self.encoder, self.batch_size, self.threads)

    def stream(self, parts: Sequence[Samples]) -> Iterator[Encoded]:
        """Those of all parts; decoding does not stop between them."""
        files = [part.files or () for part in parts]
        return encode_groups(self.encoder, files, self.batch_size, self.threads)

    def to(self, device: str | None) -> Encode:
        """The same in another process, which shares the cores with others."""
        return replace(self, encoder=self.encoder.to(device), threads=DECODERS)


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
    images: str | Path, output: str | Path, encoder: Encoder, depth: int | None = None, **how: Any
) -> Report:
    """Encode the images of a folder or a zip archive into a feature file.

    Parameters
    ----------
    images
        A folder of images, or a zip archive of one; see :mod:`frugalvae.images.classes`.
    output
        The ``.npz`` to write. Until it is finished, parts of it are in a folder beside it;
        a call that was killed is continued by the same call.
    encoder
        Of :func:`frugalvae.make_encoder`.
    depth
        How deep the folders of classes are; see :mod:`frugalvae.images.classes`.
    how
        What :func:`encode_samples` takes.

    Examples
    --------
    >>> encode_folder("absent", "features.npz", encoder=None)
    Traceback (most recent call last):
    ...
    frugalvae.errors.InputError: absent: there is no such file or folder; check the path
    """
    check_place(output)
    with open_samples(images, "both", depth=depth) as samples:
        return encode_samples(samples, output, encoder, **how)


def encode_samples(
    samples: Samples,
    output: str | Path,
    encoder: Encoder,
    *,
    batch_size: int = BATCH_SIZE,
    threads: int | None = None,
    strict: bool = False,
    engine: Engine = run_in_process,
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
    check_testable(samples)
    if strict:
        refuse(samples.unreadable() | samples.skipped)
    text = describe(encoder, np.unique(samples.labels).tolist())  # or refuse a name beforehand
    work = Encode(encoder, batch_size, threads or THREADS)
    parts = Parts(Path(output), depends_on(samples, encoder.identity, work.part_size), say)
    started = time.perf_counter()
    pieces = parts_of(samples, work.part_size)
    done = joined(pieces, list(complete(parts, pieces, engine, work)))
    seconds = time.perf_counter() - started
    skipped = {samples.names[number]: why for number, why in done.reasons.items()}
    if strict:
        refuse(skipped)
    features, missing = with_labels(samples, done, text, encoder.identity)
    write_features(output, features)
    parts.remove()
    return Report(features, len(samples) - parts.kept, parts.kept, seconds, skipped, missing)


def check_testable(samples: Samples) -> None:
    """Refuse images of which none is left for a test."""
    if not samples.test.any():
        raise InputError(
            f"{samples.name}: no class has two images, so that there is nothing to test with; "
            "add images, or make folders train/ and test/"
        )


def parts_of(samples: Samples, size: int) -> list[Samples]:
    """All samples in parts of that many."""
    return samples.cut([*range(size, len(samples), size), len(samples)])


def complete(
    parts: Parts | None, pieces: Sequence[Samples], engine: Engine, work: Encode
) -> Iterator[Encoded]:
    """What comes of each piece, in their order; those that are missing are encoded and kept."""
    if parts is None:
        yield from engine(work, pieces)
        return
    parts.open()
    missing = {n: piece for n, piece in enumerate(pieces) if parts.load(n) is None}
    parts.resume(sum(map(len, pieces)) - sum(map(len, missing.values())))
    fresh = engine(work, list(missing.values()))
    for number in range(len(pieces)):
        part = None if number in missing else parts.load(number)
        if part is None:
            part = next(fresh)
            parts.save(number, part)
        yield part
    next(fresh, None)  # tells that all is done


def joined(pieces: Sequence[Samples], done: Sequence[Encoded]) -> Encoded:
    """All pieces as one: places count from the first image of all."""
    features, places, start = [], [], 0
    reasons: dict[int, str] = {}
    for piece, part in zip(pieces, done, strict=True):
        features.append(part.features)
        places.append(part.places + start)
        reasons |= {place + start: why for place, why in part.reasons.items()}
        start += len(piece)
    return Encoded(np.concatenate(features), np.concatenate(places), reasons)


def describe(encoder: Encoder, names: list[str]) -> Text | None:
    """The text feature of each class, if the encoder can read."""
    features = encoder.text_features(names)
    return None if features is None else dict(zip(names, features, strict=True))


def with_labels(
    samples: Samples, done: Encoded, text: Text | None, identity: dict[str, Any]
) -> tuple[Features, list[str]]:
    """All features with their labels; and classes that have none to learn from."""
    labels, test = samples.labels[done.places], samples.test[done.places]
    classes = np.unique(labels[~test])
    missing = np.setdiff1d(samples.labels, classes).tolist()
    known = np.isin(labels, classes)
    train, test = known & ~test, known & test
    if not train.any() or not test.any():
        place, why = min(done.reasons.items())
        raise InputError(
            f"{samples.name}: no {'test' if train.any() else 'training'} image of it can be read, "
            f"such as {samples.names[place]} ({why})"
        )
    x, kept = done.features, classes.tolist()
    text = None if text is None else {name: text[name] for name in kept}
    split = (x[train], labels[train], x[test], labels[test])
    return Features(samples.name, *split, text, identity), missing


# ------------------------------------------------------------ what a killed command leaves


class Parts:
    """The folder ``FILE.parts``: a file for each part, and one that says what they are of.

    Parameters
    ----------
    output
        The feature file that is being made.
    of
        What the parts depend on, each as a digest: other images, another encoder or
        another size of batches, and none of them is used.
    say
        Is told when parts are used, or removed because they are of something else.
    """

    def __init__(
        self, output: Path, of: dict[str, str], say: Callable[[str], object] = lambda _: None
    ) -> None:
        self.folder = output.with_name(f"{output.name}.parts")
        self.of, self.say, self.kept = of, say, 0

    def open(self) -> None:
        """Get ready; what is there of something else is removed."""
        before = self.before()
        changed = [name for name in self.of if before and before.get(name) != self.of[name]]
        if changed:
            self.remove()
            self.say(
                f"{self.folder.name}: started over, as this is of other {' and '.join(changed)}"
            )
        self.folder.mkdir(exist_ok=True)
        write_json(self.folder / OWNER, self.of)

    def resume(self, kept: int) -> None:
        """Go on where a killed command stopped, if it has encoded some images."""
        self.kept = kept
        if kept:
            images = plural(kept, "image")
            self.say(f"{self.folder.name}: {images} encoded before, going on from there")

    def there(self) -> bool:
        """Whether parts are there, be they all but removed."""
        try:
            self.before()
        except InputError:  # it is the folder of someone else
            return False
        return self.folder.is_dir()

    def before(self) -> dict[str, Any]:
        """What the parts that are there are of; nothing if there are none."""
        if not self.folder.exists():
            return {}
        found = None
        with suppress(OSError, InputError):
            found = json_object(read_plain(self.folder / OWNER))
        if found is None:
            if self.folder.is_dir() and all(p.name.startswith(".") for p in self.folder.iterdir()):
                return {}  # killed before anything was written
            raise InputError(
                f"{self.folder} is in the way: no parts of a feature file are in it; move it, "
                "or choose another output"
            )
        return found

    def load(self, number: int) -> Encoded | None:
        """A finished part; None if it is missing or damaged."""
        if not self._path(number).is_file():  # a pipe would be waited for
            return None
        try:
            part = read_arrays(self._path(number), ("features", "places", "reasons"))
            reasons = {int(place): why for place, why in json.loads(part["reasons"].item())}
            if any("pip install" in why for why in reasons.values()):
                return None  # what was missing may be installed by now
            return Encoded(part["features"], part["places"], reasons)
        except (InputError, KeyError, ValueError, TypeError, RecursionError):
            return None

    def save(self, number: int, encoded: Encoded) -> None:
        """Write a finished part: complete, or not at all."""
        reasons = np.array(json.dumps(list(encoded.reasons.items())))
        arrays = {"features": encoded.features, "places": encoded.places, "reasons": reasons}
        write_arrays(self._path(number), arrays)

    def remove(self) -> None:
        """Remove all of it, last what says whose it is: a kill leaves no riddle."""
        for path in sorted(self.folder.iterdir(), key=lambda path: path.name == OWNER):
            if OURS.fullmatch(path.name) and not path.is_dir():
                path.unlink()
        with suppress(OSError):  # somebody has put something else into it
            self.folder.rmdir()

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:06}.npz"


def depends_on(
    images: Samples, identity: dict[str, Any], part_size: int, **more: Any
) -> dict[str, str]:
    """What features depend on, and ``more``, by words that can be said when it has changed."""
    files = [
        [name, *file.stamp] for name, file in zip(images.names, images.files or (), strict=True)
    ]
    encoder = {key: value for key, value in identity.items() if key != "probe"}
    return {
        "images": json_digest(files)[:SHORT],
        "encoder": json_digest(encoder)[:SHORT],
        "batch size": str(part_size),
        **{what: json_digest(content)[:SHORT] for what, content in more.items()},
    }


# --------------------------------------------------------------------------- sums of chunks


@dataclass(frozen=True)
class SumRows:
    """Work: the rows of a chunk, whose labels are numbers, become sums.

    Attributes
    ----------
    memory
        A memory of the kind whose sums are wanted.
    rooted
        Whether its features are roots, if that is decided.
    """

    memory: Any
    rooted: bool | None = None

    def __call__(self, chunk: Samples) -> Any:
        """The sums of a chunk."""
        return self.sum(chunk, chunk.encode(None))

    def sum(self, chunk: Samples, done: Encoded) -> Any:
        """The same of a chunk that is encoded."""
        return self.memory.summed(Task(done.features, chunk.labels[done.places]), self.rooted)

    def stream(self, chunks: Sequence[Samples]) -> Iterator[Any]:
        """Those of all chunks."""
        return map(self, chunks)

    def to(self, device: str | None) -> SumRows:
        """Itself: it needs nothing of this process."""
        return self


@dataclass(frozen=True)
class Summed:
    """What the samples of an plan came to.

    Attributes
    ----------
    lesson
        What :meth:`frugalvae.model.model.Model.learn` takes.
    counts
        How many samples of each class could be read.
    unreadable
        Why others cannot be, by their names.
    missing
        New classes of which none can be read.
    """

    lesson: dict[str, Any]
    counts: dict[Any, int]
    unreadable: dict[str, str]
    missing: list[Any]

    def check_new(self, folder: str) -> None:
        """Refuse a folder of new classes if nothing at all can be read."""
        if self.missing and not self.counts:
            lines = "\n".join(named(self.unreadable))
            raise InputError(f"{folder}: no image of a new class can be read:\n{lines}")


def encode_and_sum(
    model: Model,
    samples: Samples,
    plan: TeachingPlan,
    encoder: Encoder | None,
    engine: Engine = run_in_process,
    *,
    batch_size: int = BATCH_SIZE,
    parts: Parts | None = None,
) -> Summed:
    """Encode and sum the samples of an plan, which counts unreadable ones no more.

    ``batch_size`` is how many photographs the network takes at a time; ``parts`` keep what is
    encoded, if anything does.
    """
    new = sorted(plan.new)
    text = samples.text if encoder is None else describe(encoder, new) if new else None
    count = chunk_count(len(plan.rows), photographs=samples.files is not None)
    order = interleaved_order(len(plan.rows), count)
    classes, positions = np.unique(plan.labels[order], return_inverse=True)
    chosen = replace(samples.at(plan.rows[order]), labels=positions)
    work = Encode(encoder, batch_size) if encoder is not None else None
    chunks = chunks_of(chosen, count, work.part_size if work else 1)
    features, of_features, total, places, reasons = add_up(model, chunks, engine, work, parts)
    plan.leave_out(plan.labels[order[list(reasons)]].tolist())
    rows = order[places]
    counts = dict(Counter(plan.labels[rows].tolist()))
    digests = plan.digests_of(rows)
    known = None if text is None else {y: text[y] for y in new if y in digests and y in text}
    lesson = {"X": features, "y": classes[of_features], "digests": digests, "text": known or None}
    lesson["sums"] = None if total is None else Sums(classes, total, total.counts_)
    unreadable = {chosen.names[place]: why for place, why in reasons.items()}
    return Summed(lesson, counts, unreadable, [label for label in new if label not in counts])


def chunk_count(samples: int, photographs: bool) -> int:
    """How many chunks there are; rows need no encoding, and come in fewer.

    >>> [chunk_count(n, photographs=True) for n in (1, 1_024, 10_000, 100_000, 1_000_000)]
    [1, 1, 10, 16, 123]
    >>> [chunk_count(n, photographs=False) for n in (1, 8_192, 100_000)]
    [1, 1, 13]
    """
    size = min(max(-(-samples // USUAL_COUNT), LEAST), MOST) if photographs else MOST
    return max(1, -(-samples // size))


def interleaved_order(samples: int, count: int) -> NDArray[np.int64]:
    """An order in which each chunk has samples of all classes, where these follow each other.

    >>> interleaved_order(5, 1).tolist(), interleaved_order(5, 2).tolist()
    ([0, 1, 2, 3, 4], [0, 2, 4, 1, 3])
    """
    return np.concatenate([np.arange(first, samples, count) for first in range(count)])


def chunks_of(samples: Samples, count: int, part_size: int = 1) -> list[Samples]:
    """So many chunks of whole parts."""
    parts = np.array_split(np.arange(-(-len(samples) // part_size)), count)
    ends = [min((own[-1] + 1) * part_size, len(samples)) for own in parts if len(own)]
    return samples.cut(ends)


def add_up(
    model: Model,
    chunks: Sequence[Samples],
    engine: Engine,
    encode: Encode | None,
    parts: Parts | None = None,
) -> tuple[NDArray[np.float32], NDArray[np.int64], Any, NDArray[np.int64], dict[int, str]]:
    """Features and classes of what is kept; sums of all else, or None; which could be read.

    The last two are where samples are that could be read, and why others cannot be.
    """
    adds = adds_up(model)
    total: Any = model.recipe.parts()[0] if adds else None
    work = SumRows(total, getattr(model.memory, "rooted_", None))
    last = len(chunks) - 1 if adds else 0
    encoded = _encoded(chunks, engine, encode, parts) if encode is not None else None
    summed = engine(work, chunks[:last]) if encode is None else iter(())
    kept, classes = [], [np.empty(0, np.int64)]
    places, reasons, start = list[NDArray[np.int64]](), dict[int, str](), 0
    for number, chunk in enumerate(chunks):
        sums, done = next(summed, None), None if encoded is None else next(encoded)
        if number < last:
            if sums is None and done is not None and len(done.places):
                sums = work.sum(chunk, done)
            elif sums is not None and work.rooted not in (None, sums.rooted_):
                sums = work(chunk)  # it took features otherwise
            if sums is not None:
                work = replace(work, rooted=sums.rooted_)
                total.merge(sums, {number: number for number in sums.classes})
        else:
            done = done or chunk.encode(None)
            if len(done.places):
                kept.append(done.features)
                classes.append(chunk.labels[done.places])
        places.append(start + (np.arange(len(chunk)) if done is None else done.places))
        reasons |= {} if done is None else {start + at: why for at, why in done.reasons.items()}
        start += len(chunk)
    if encoded is not None:
        next(encoded, None)  # tells that all is done
    total = total if total is not None and total.classes else None
    width = model.n_features or (0 if total is None else total.sums_.dim)
    features = np.concatenate(kept) if kept else np.empty((0, width), np.float32)
    return features, np.concatenate(classes), total, np.concatenate(places), reasons


def _encoded(
    chunks: Sequence[Samples], engine: Engine, work: Encode, parts: Parts | None
) -> Iterator[Encoded]:
    """The features of each chunk of photographs; finished parts are kept on disk."""
    of_chunk = [parts_of(chunk, work.part_size) for chunk in chunks]
    done = complete(parts, [part for own in of_chunk for part in own], engine, work)
    for own in of_chunk:
        yield joined(own, [next(done) for _ in own])
    next(done, None)  # tells that all is done


def adds_up(model: Model) -> bool:
    """Whether a model can be taught sums alone."""
    parts = model.recipe.parts() if model.memory is None else (model.memory, model.head)
    return hasattr(parts[0], "summed") and getattr(parts[1], "needs_density", False)
