"""Sums: samples are encoded and summed a chunk at a time, wherever that is done.

Of a chunk only sums are kept, so that memory does not grow with the number of samples. Chunks
depend on the samples alone, and are added up in their order: the result is the same wherever
they were encoded. The features of the last chunk are kept until the end: taught to the sums of
all others, they show how sure answers may be.

Photographs are encoded a shard at a time by an :mod:`engine <frugalvae.engines>`, and summed here:
encoding takes nearly all of the time. Rows of features are summed by the engine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from frugalvae.encoding import Parts, complete, cut, describe, joined, resume
from frugalvae.engines import Encode, Engine, here
from frugalvae.errors import InputError
from frugalvae.images import BATCH_SIZE
from frugalvae.images.photographs import THREADS, Encoded
from frugalvae.model.model import Model, Sums
from frugalvae.parts.protocols import Task
from frugalvae.samples import Samples, named

if TYPE_CHECKING:
    from frugalvae.model.plan import Intake
    from frugalvae.parts.protocols import Encoder

LEAST, MOST = 1024, 8192  # photographs of a chunk,
MANY = 16  # of which there are about so many in between; of rows a chunk has the most


@dataclass(frozen=True)
class Chunk:
    """Some samples, and the class of each as a position in a list of labels.

    ``kept`` says whether their features are wanted, instead of their sums.
    """

    samples: Samples
    classes: NDArray[np.int64]
    kept: bool = False

    def __len__(self) -> int:
        return len(self.classes)


@dataclass(frozen=True)
class SumRows:
    """Work: the rows of a chunk become sums.

    Attributes
    ----------
    memory
        A memory of the kind whose sums are wanted.
    rooted
        Whether its features are roots, if that is decided.
    """

    memory: Any
    rooted: bool | None = None

    def __call__(self, chunk: Chunk) -> tuple[Any, Encoded]:
        """The sums of a chunk, or its features; and which samples could be read."""
        return self.sum(chunk, chunk.samples.encode(None))

    def sum(self, chunk: Chunk, done: Encoded) -> tuple[Any, Encoded]:
        """The same of a chunk that is encoded."""
        if chunk.kept or not len(done.places):
            return None, done
        task = Task(done.features, chunk.classes[done.places])
        return self.memory.summed(task, self.rooted), replace(done, features=done.features[:0])

    def stream(self, chunks: Sequence[Chunk]) -> Iterator[tuple[Any, Encoded]]:
        """Those of all chunks."""
        return map(self, chunks)

    def elsewhere(self) -> SumRows:
        """Itself: it needs nothing of this process."""
        return self

    arrived = elsewhere

    def sent(self, chunk: Chunk) -> Chunk:
        """A chunk with its rows."""
        return replace(chunk, samples=chunk.samples.loaded())


@dataclass(frozen=True)
class Taken:
    """What the samples of an intake came to.

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


def take(
    model: Model,
    samples: Samples,
    intake: Intake,
    encoder: Encoder | None,
    engine: Engine = here,
    *,
    batch_size: int = BATCH_SIZE,
    shard: int = BATCH_SIZE,
    threads: int = THREADS,
    parts: Parts | None = None,
    say: Callable[[str], object] = lambda _: None,
) -> Taken:
    """Encode and sum the samples of an intake, which counts unreadable ones no more.

    Parameters
    ----------
    batch_size, threads
        How many photographs the network takes at a time, and how many are decoded.
    shard
        How many are encoded and written at a time.
    parts
        Where finished shards are kept, if anywhere; ``say`` is told what is there already.
    """
    new = sorted(intake.new)
    text = samples.text if encoder is None else describe(encoder, new) if new else None
    photographs = samples.files is not None
    count = chunk_count(len(intake.rows), photographs)
    order = interleaved_order(len(intake.rows), count)
    chosen = samples.at(intake.rows[order])
    classes, positions = np.unique(intake.labels[order], return_inverse=True)
    chunks = chunks_of(chosen, positions, count, shard if photographs else 1)
    work = Encode(encoder, batch_size, threads) if encoder is not None else None
    found = add_up(model, chunks, engine, work, shard, parts, say)
    features, of_features, total, places, reasons = found
    intake.leave_out(intake.labels[order[list(reasons)]].tolist())
    rows = order[places]
    counts = dict(Counter(intake.labels[rows].tolist()))
    digests = intake.digests_of(rows)
    known = None if text is None else {y: text[y] for y in new if y in digests and y in text}
    lesson = {"X": features, "y": classes[of_features], "digests": digests, "text": known or None}
    lesson["sums"] = None if total is None else Sums(classes, total, total.counts_)
    unreadable = {chosen.names[place]: why for place, why in reasons.items()}
    return Taken(lesson, counts, unreadable, [label for label in new if label not in counts])


def chunk_count(samples: int, photographs: bool) -> int:
    """How many chunks there are; rows need no encoding, and come in fewer.

    >>> [chunk_count(n, photographs=True) for n in (1, 1_024, 10_000, 100_000, 1_000_000)]
    [1, 1, 10, 16, 123]
    >>> [chunk_count(n, photographs=False) for n in (1, 8_192, 100_000)]
    [1, 1, 13]
    """
    size = min(max(-(-samples // MANY), LEAST), MOST) if photographs else MOST
    return max(1, -(-samples // size))


def interleaved_order(samples: int, count: int) -> NDArray[np.int64]:
    """An order in which each chunk has samples of all classes, where these follow each other.

    >>> interleaved_order(5, 1).tolist(), interleaved_order(5, 2).tolist()
    ([0, 1, 2, 3, 4], [0, 2, 4, 1, 3])
    """
    return np.concatenate([np.arange(first, samples, count) for first in range(count)])


def chunks_of(
    samples: Samples, classes: NDArray[np.int64], count: int, shard: int = 1
) -> list[Chunk]:
    """So many chunks of whole shards."""
    shards = np.array_split(np.arange(-(-len(samples) // shard)), count)
    found = []
    for own in shards:
        if len(own):
            rows = np.arange(own[0] * shard, min((own[-1] + 1) * shard, len(samples)))
            found.append(Chunk(samples.at(rows), classes[rows]))
    return found


def add_up(
    model: Model,
    chunks: Sequence[Chunk],
    engine: Engine,
    encode: Encode | None,
    shard: int,
    parts: Parts | None,
    say: Callable[[str], object],
) -> tuple[NDArray[np.float32], NDArray[np.int64], Any, NDArray[np.int64], dict[int, str]]:
    """Features and classes of what is kept; sums of all else, or None; which could be read.

    The last two are where samples are that could be read, and why others cannot be.
    """
    adds = adds_up(model)
    last = len(chunks) - 1
    chunks = [replace(c, kept=not adds or place == last) for place, c in enumerate(chunks)]
    total: Any = model.recipe.parts()[0] if adds else None
    work = SumRows(total, getattr(model.memory, "rooted_", None))
    rooted = work.rooted

    def summed_here(encode: Encode) -> Iterator[tuple[Any, Encoded]]:
        encoded = _encoded(chunks, engine, encode, shard, parts, say)
        for chunk, done in zip(chunks, encoded, strict=True):
            yield replace(work, rooted=rooted).sum(chunk, done)

    outcomes = engine(work, chunks) if encode is None else summed_here(encode)
    kept: list[NDArray[np.float32]] = []
    classes, places = [np.empty(0, np.int64)], list[NDArray[np.int64]]()
    reasons: dict[int, str] = {}
    start = 0
    for chunk, (memory, done) in zip(chunks, outcomes, strict=True):
        if memory is not None:
            if rooted is not None and memory.rooted_ != rooted:  # it took features otherwise
                memory, _ = replace(work, rooted=rooted)(chunk)
            rooted = memory.rooted_ if rooted is None else rooted
            total.merge(memory, {number: number for number in memory.classes})
        elif len(done.places):
            kept.append(done.features)
            classes.append(chunk.classes[done.places])
        places.append(done.places + start)
        reasons |= {place + start: why for place, why in done.reasons.items()}
        start += len(chunk)
    total = total if total is not None and total.classes else None
    width = model.n_features or (0 if total is None else len(next(iter(total.means_.values()))))
    features = np.concatenate(kept) if kept else np.empty((0, width), np.float32)
    return features, np.concatenate(classes), total, np.concatenate(places), reasons


def _encoded(
    chunks: Sequence[Chunk],
    engine: Engine,
    work: Encode,
    size: int,
    parts: Parts | None,
    say: Callable[[str], object],
) -> Iterator[Encoded]:
    """The features of each chunk of photographs; finished shards are kept on disk."""
    shards = cut([file for chunk in chunks for file in chunk.samples.files or ()], size)
    if parts is not None:
        resume(parts, shards, say)
    done, start = complete(parts, shards, lambda left: engine(work, left)), 0
    for chunk in chunks:
        own = shards[start : start + -(-len(chunk) // size)]
        start += len(own)
        yield joined(own, [next(done) for _ in own])
    next(done, None)  # tells that all is done


def adds_up(model: Model) -> bool:
    """Whether a model can be taught sums alone."""
    parts = model.recipe.parts() if model.memory is None else (model.memory, model.head)
    return hasattr(parts[0], "summed") and getattr(parts[1], "needs_density", False)
