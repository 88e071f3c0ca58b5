"""Sums: samples are encoded and summed a chunk at a time, wherever that is done.

Of a chunk only sums are kept, so that memory does not grow with the number of samples. Chunks
depend on the samples alone, and are added up in their order: the result is the same wherever
they were encoded. The features of the last chunk are kept until the end: taught to the sums of
all others, they show how sure answers may be.

Photographs are encoded by an :mod:`engine <frugalvae.engines>`, a part of a chunk at a time, and
summed here: encoding takes nearly all of the time. Rows of features are summed by the engine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from frugalvae.encoding import Encode, Parts, complete, describe, joined, parts_of
from frugalvae.engines import Engine, run_in_process
from frugalvae.errors import InputError
from frugalvae.images import BATCH_SIZE
from frugalvae.images.photographs import Encoded
from frugalvae.model.model import Model, Sums
from frugalvae.parts.protocols import Task
from frugalvae.samples import Samples, named

if TYPE_CHECKING:
    from frugalvae.model.plan import TeachingPlan
    from frugalvae.parts.protocols import Encoder

LEAST, MOST = 1024, 8192  # photographs of a chunk,
USUAL_COUNT = 16  # of which there are about so many in between; of rows a chunk has the most


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
