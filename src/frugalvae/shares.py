"""Shares: samples are encoded and summed a share at a time, here, in processes, or on Ray.

Of a share only sums are kept, so that memory does not grow with the number of samples. Shares
depend on the samples alone, and are added up in their order: the result is the same wherever they
were summed. The features of the last share are kept until the end: taught to the sums of all
others, they show how sure answers may be.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import connection, get_context, parent_process
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from frugalvae.checks import check_finite
from frugalvae.cluster import ONE_THREAD, TRIES
from frugalvae.errors import FrugalError
from frugalvae.images.encode import Parts, complete, cut, joined
from frugalvae.images.photographs import (
    WAITING,
    Encoded,
    Shard,
    _encode_task,
    content_of,
    encode_here,
    result_of,
)
from frugalvae.interfaces import Task
from frugalvae.model import Model, Sums
from frugalvae.progress import track

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from frugalvae.cluster import Cluster
    from frugalvae.images.feature_file import StoredRows
    from frugalvae.images.listing import Listing
    from frugalvae.interfaces import Encoder

LEAST, MOST = 1024, 8192  # images of a share,
MANY = 16  # of which there are about so many in between; of rows a share has the most


# --------------------------------------------------------------------------- what a share is


class Source(Protocol):
    """Where the samples of a share are."""

    def read(self, encoder: Encoder | None) -> Encoded:
        """Their features."""
        ...


@dataclass(frozen=True)
class Photographs:
    """Images to encode; with ``parts``, what is finished is kept on disk."""

    shards: Sequence[Shard]
    batch_size: int
    threads: int
    parts: Parts | None = None

    def read(self, encoder: Encoder | None) -> Encoded:
        """Features of those that can be read."""
        assert encoder is not None
        made: Encoder = encoder

        def run(shards: Sequence[Shard]) -> Iterator[tuple[Shard, Encoded]]:
            return encode_here(shards, made, self.batch_size, self.threads)

        if self.parts is not None:
            return complete(self.parts, self.shards, run)
        return joined(self.shards, {shard.number: done for shard, done in run(self.shards)})


@dataclass(frozen=True)
class Rows:
    """Some rows of features, in memory or in a feature file."""

    table: NDArray[np.float32] | StoredRows
    rows: NDArray[np.int64]

    def read(self, encoder: Encoder | None) -> Encoded:
        """These rows."""
        return Encoded(check_finite(self.table[self.rows]), np.arange(len(self.rows)), {})


@dataclass(frozen=True)
class Share:
    """Some samples.

    Attributes
    ----------
    source
        Where they are.
    classes
        The class of each, as a position in a list of labels.
    kept
        Whether their features are wanted, instead of their sums.
    """

    source: Source
    classes: NDArray[np.int64]
    kept: bool = False


@dataclass(frozen=True)
class Outcome:
    """What came of a share: sums, or features; and which samples could be read."""

    memory: Any
    encoded: Encoded


@dataclass(frozen=True)
class Work:
    """What is done with each share, wherever it is.

    Attributes
    ----------
    encoder
        What encodes images.
    memory
        A memory of the kind whose sums are wanted.
    rooted
        Whether its features are roots, if that is decided.
    """

    encoder: Encoder | None
    memory: Any
    rooted: bool | None = None

    def __call__(self, share: Share) -> Outcome:
        """Encode a share, and sum it."""
        return self.sum(share, share.source.read(self.encoder))

    def sum(self, share: Share, done: Encoded) -> Outcome:
        """Sum a share that is encoded."""
        if share.kept or not len(done.places):
            return Outcome(None, done)
        task = Task(check_finite(done.features), share.classes[done.places])
        return Outcome(
            self.memory.summed(task, self.rooted), replace(done, features=done.features[:0])
        )


#: Does the work of all shares, and gives what came of each in their order.
Runner = Callable[[Sequence[Share], Work], Iterator[Outcome]]


def share_count(samples: int) -> int:
    """How many shares of images there are.

    >>> [share_count(n) for n in (1, 1_024, 10_000, 100_000, 1_000_000)]
    [1, 1, 10, 16, 123]
    """
    return max(1, -(-samples // min(max(-(-samples // MANY), LEAST), MOST)))


def row_share_count(rows: int) -> int:
    """How many shares of rows there are, which need no encoding.

    >>> [row_share_count(n) for n in (1, 8_192, 100_000)]
    [1, 1, 13]
    """
    return max(1, -(-rows // MOST))


def mixed(samples: int, count: int) -> NDArray[np.int64]:
    """An order in which each share has samples of all classes, where these follow each other.

    >>> mixed(5, 1).tolist(), mixed(5, 2).tolist()
    ([0, 1, 2, 3, 4], [0, 2, 4, 1, 3])
    """
    return np.concatenate([np.arange(first, samples, count) for first in range(count)])


def photograph_shares(
    images: Listing, classes: NDArray[np.int64], shard: int, **how: Any
) -> list[Share]:
    """Shares of images that are in the order of :func:`mixed`; ``how`` as in Photographs."""
    shards, shares, start = cut(images.files, shard), [], 0
    for group in np.array_split(np.arange(len(shards)), share_count(len(images.files))):
        own = [shards[number] for number in group.tolist()]
        end = start + sum(len(shard.files) for shard in own)
        shares += [Share(Photographs(own, **how), classes[start:end])] if own else []
        start = end
    return shares


def row_shares(
    table: NDArray[np.float32] | StoredRows,
    rows: NDArray[np.int64],
    classes: NDArray[np.int64],
    count: int,
) -> list[Share]:
    """So many shares of rows that are in the order of :func:`mixed`."""
    groups = zip(np.array_split(rows, count), np.array_split(classes, count), strict=True)
    return [Share(Rows(table, some), of_them) for some, of_them in groups]


# --------------------------------------------------------------------------- all shares together


@dataclass(frozen=True)
class Taken:
    """What all shares came to.

    Attributes
    ----------
    features, classes
        Of the samples that were not summed, and the class of each.
    sums
        Of all others, by the same classes; None if there are none.
    places, reasons
        Where samples are that could be read; and why others cannot be.
    """

    features: NDArray[np.float32]
    classes: NDArray[np.int64]
    sums: Any
    places: NDArray[np.int64]
    reasons: dict[int, str]

    def of(self, labels: NDArray[Any]) -> dict[str, Any]:
        """What :meth:`frugalvae.model.Model.learn` takes, with these labels of classes."""
        sums = None if self.sums is None else Sums(labels, self.sums, self.sums.counts_)
        return {"X": self.features, "y": labels[self.classes], "sums": sums}


def adds_up(model: Model) -> bool:
    """Whether a model can be taught sums alone."""
    parts = model.recipe.parts() if model.memory is None else (model.memory, model.head)
    return hasattr(parts[0], "summed") and getattr(parts[1], "needs_density", False)


def take(shares: Sequence[Share], model: Model, encoder: Encoder | None, runner: Runner) -> Taken:
    """Encode and sum all shares; features are kept of the last one, or of all if need be."""
    adds = adds_up(model)
    shares = [replace(s, kept=not adds) for s in shares[:-1]] + [replace(shares[-1], kept=True)]
    total = model.recipe.parts()[0] if adds else None
    rooted = getattr(model.memory, "rooted_", None)
    work = Work(encoder, total, rooted)
    kept, classes, places, start = list[Any](), list[Any](), list[Any](), 0
    reasons: dict[int, str] = {}
    for share, outcome in zip(shares, runner(shares, work), strict=True):
        done = outcome.encoded
        if outcome.memory is not None:
            _add(total, outcome.memory, share, replace(work, rooted=rooted))
            rooted = outcome.memory.rooted_ if rooted is None else rooted
        elif len(done.places):
            kept.append(done.features)
            classes.append(share.classes[done.places])
        places.append(done.places + start)
        reasons |= {place + start: why for place, why in done.reasons.items()}
        start += len(share.classes)
    summed = total if adds and total is not None and total.classes else None
    return Taken(
        np.concatenate(kept) if kept else np.empty((0, _width(model, summed)), np.float32),
        np.concatenate([np.empty(0, np.int64), *classes]),
        summed,
        np.concatenate(places),
        reasons,
    )


def _add(total: Any, part: Any, share: Share, work: Work) -> None:
    """Add the sums of a share; one that took features for something else is summed again."""
    if work.rooted is not None and part.rooted_ != work.rooted:
        part = work(share).memory
    total.merge(part, {number: number for number in part.classes})


def _width(model: Model, summed: Any) -> int:
    if model.n_features or summed is None:
        return model.n_features
    return len(next(iter(summed.means_.values())))


def here(shares: Sequence[Share], work: Work) -> Iterator[Outcome]:
    """One share after the other, in this process."""
    return map(work, shares)


# --------------------------------------------------------------------------- in processes


def in_processes(jobs: int) -> Runner:
    """Shares in so many processes. If one dies, what it worked on is done again."""

    def run(shares: Sequence[Share], work: Work) -> Iterator[Outcome]:
        if len(shares) == 1 or jobs == 1:
            yield from here(shares, work)
            return
        steps = track(range(sum(len(share.classes) for share in shares)), "encoding images")
        for share, outcome in zip(shares, _in_order(shares, work, jobs), strict=True):
            for _ in share.classes:
                next(steps)
            yield outcome
        next(steps, None)  # tells that all is done

    return run


def _in_order(shares: Sequence[Share], work: Work, jobs: int) -> Iterator[Outcome]:
    """What came of each share, in their order; a few are worked on in advance."""
    place, deaths, running = 0, 0, dict[int, Future[Outcome]]()
    with _one_thread():
        pool = _pool(jobs, work)
        try:
            while place < len(shares):
                try:
                    for number in range(place, min(place + jobs + WAITING, len(shares))):
                        if number not in running:
                            running[number] = pool.submit(_perform, shares[number])
                    outcome = running.pop(place).result()
                except BrokenProcessPool as error:
                    deaths += 1
                    if deaths == TRIES:
                        raise FrugalError(
                            f"a process died {TRIES} times on the same images; it may be out of "
                            "memory: try fewer --jobs. What is finished is kept, and the same "
                            "command goes on"
                        ) from error
                    _stop(pool)
                    pool = _pool(jobs, work)
                    running = {n: f for n, f in running.items() if f.done() and not f.exception()}
                    continue
                place, deaths = place + 1, 0
                yield outcome
        finally:
            _stop(pool)


def _pool(jobs: int, work: Work) -> ProcessPoolExecutor:
    encoder = None if work.encoder is None else work.encoder.to("cpu")
    context = get_context("spawn")  # a forked PyTorch may hang
    return ProcessPoolExecutor(jobs, context, _start, (replace(work, encoder=encoder),))


def _stop(pool: ProcessPoolExecutor) -> None:
    """End all processes of a pool now: nobody waits for what they do."""
    for process in list((pool._processes or {}).values()):
        process.terminate()
    pool.shutdown(cancel_futures=True)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Processes that are started inside the block compute on one thread each."""
    before = {name: os.environ.get(name) for name in ONE_THREAD["env_vars"]}
    os.environ |= ONE_THREAD["env_vars"]
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            os.environ |= {} if value is None else {name: value}


_work: list[Work] = []  # of a process that works on shares


def _start(work: Work) -> None:
    """Get a process ready, which ends with its parent, even if that is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    threading.Thread(target=_die_with_parent, daemon=True).start()
    _work[:] = [work]


def _die_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os._exit(1)


def _perform(share: Share) -> Outcome:
    from frugalvae.images.decode import reading_images

    with reading_images():
        return _work[0](share)


# --------------------------------------------------------------------------- on Ray


def on_ray(cluster: Cluster) -> Runner:
    """Shares on Ray. Features stay where they were made; only sums come to this process.

    Machines of a cluster need this package, but no files in common. What a dead process or
    machine has lost, Ray does again.
    """

    def run(shares: Sequence[Share], work: Work) -> Iterator[Outcome]:
        steps = track(range(sum(len(share.classes) for share in shares)), "encoding images")
        for share, ref in zip(shares, _sums_on_ray(cluster, shares, work), strict=True):
            outcome = result_of(cluster.ray, ref)
            for _ in share.classes:
                next(steps)
            yield outcome
        next(steps, None)

    return run


def _sums_on_ray(cluster: Cluster, shares: Sequence[Share], work: Work) -> Iterator[Any]:
    """References to what comes of each share; images are sent a few shards ahead."""
    ray, encoder = cluster.ray, work.encoder
    shared = [] if encoder is None else [ray.put(encoder.to("cpu"))]
    key = "" if encoder is None else json.dumps(encoder.identity)
    encode, add = cluster.task(_encode_task), cluster.task(_sum_task)
    alone, busy, ready = replace(work, encoder=None), list[Any](), list[Any]()
    for share in shares:
        parts: list[Any] = []
        for shard in getattr(share.source, "shards", ()):
            if len(busy) >= cluster.slots + WAITING:
                busy = ray.wait(busy, num_returns=1, fetch_local=False)[1]
            contents = [content_of(file) for file in shard.files]
            parts.append(encode.remote(shared, key, contents, _batch(share)))
            busy.append(parts[-1])
        light = Share(_Sizes(_sizes(share)), share.classes, share.kept)
        if not parts:
            parts = [ray.put(share.source.read(None))]
        ready.append(add.remote(alone, light, *parts))
        if len(ready) > WAITING:
            yield ready.pop(0)
    yield from ready


@dataclass(frozen=True)
class _Sizes:
    """In place of a source: how many samples each shard has."""

    sizes: tuple[int, ...]

    def read(self, encoder: object) -> Encoded:
        raise NotImplementedError


def _batch(share: Share) -> int:
    assert isinstance(share.source, Photographs)
    return share.source.batch_size


def _sizes(share: Share) -> tuple[int, ...]:
    shards = getattr(share.source, "shards", None)
    return (len(share.classes),) if shards is None else tuple(len(s.files) for s in shards)


def _sum_task(work: Work, share: Share, *parts: Encoded) -> Outcome:
    """What a task does, in a process of Ray."""
    assert isinstance(share.source, _Sizes)
    shards = [Shard(n, range(size)) for n, size in enumerate(share.source.sizes)]  # type: ignore[arg-type]
    return work.sum(share, joined(shards, dict(enumerate(parts))))
