"""Runners: where photographs are encoded and shares are summed, if not in this process."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from itertools import islice
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

from frugalvae.errors import FrugalError
from frugalvae.images.decode import File, reading_images
from frugalvae.images.encode import joined
from frugalvae.images.photographs import (
    AHEAD,
    DECODERS,
    Encoded,
    Shard,
    ahead,
    encode,
    prepare,
    reason,
)
from frugalvae.processes import TRIES, end_with_parent, starting
from frugalvae.progress import track
from frugalvae.shares import Photographs, Runner, Share, SummedShare, Work, here

if TYPE_CHECKING:
    from frugalvae.cluster import Cluster
    from frugalvae.interfaces import Encoder

WAITING = 2  # shares or shards that are at hand for processes that become free


def _counted(shares: Sequence[Share], outcomes: Iterator[SummedShare]) -> Iterator[SummedShare]:
    """What came of each share; a listener is told how many samples are done."""
    steps = track(range(sum(len(share.classes) for share in shares)), "encoding images")
    for share, outcome in zip(shares, outcomes, strict=True):
        list(islice(steps, len(share.classes)))
        yield outcome
    next(steps, None)  # tells that all is done


# --------------------------------------------------------------------------- in processes


def in_processes(jobs: int) -> Runner:
    """Shares in so many processes. If one dies, what it worked on is done again."""

    def run(shares: Sequence[Share], work: Work) -> Iterator[SummedShare]:
        if len(shares) == 1 or jobs == 1:
            return here(shares, work)
        return _counted(shares, _in_order(shares, work, jobs))

    return run


def _in_order(shares: Sequence[Share], work: Work, jobs: int) -> Iterator[SummedShare]:
    """What came of each share, in their order; a few are worked on in advance."""
    place, deaths, running = 0, 0, dict[int, Future[SummedShare]]()
    with starting():
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


_work: list[Work] = []  # of a process that works on shares


def _start(work: Work) -> None:
    """Get a process ready."""
    end_with_parent()
    _work[:] = [work]


def _perform(share: Share) -> SummedShare:
    with reading_images():
        return _work[0](share)


# --------------------------------------------------------------------------- on Ray


def on_ray(cluster: Cluster) -> Runner:
    """Shares on Ray. Features stay where they were made; only sums come to this process.

    Machines of a cluster need this package, but no files in common. What a dead process or
    machine has lost, Ray does again.
    """

    def run(shares: Sequence[Share], work: Work) -> Iterator[SummedShare]:
        refs = _sums_on_ray(cluster, shares, work)
        return _counted(shares, (_result(cluster.ray, ref) for ref in refs))

    return run


def _sums_on_ray(cluster: Cluster, shares: Sequence[Share], work: Work) -> Iterator[Any]:
    """References to what comes of each share; images are sent a few shards ahead."""
    ray, encoder = cluster.ray, work.encoder
    shared = [] if encoder is None else [ray.put(encoder.to("cpu"))]
    key = "" if encoder is None else json.dumps(encoder.identity)
    encoding, add = cluster.task(_encode_task), cluster.task(_sum_task)
    alone, busy, ready = replace(work, encoder=None), list[Any](), list[Any]()
    try:
        for share in shares:
            parts: list[Any] = []
            for shard in getattr(share.source, "shards", ()):
                if len(busy) >= cluster.slots + WAITING:
                    busy = ray.wait(busy, num_returns=1, fetch_local=False)[1]
                contents = [_content(file) for file in shard.files]
                assert isinstance(share.source, Photographs)
                parts.append(encoding.remote(shared, key, contents, share.source.batch_size))
                busy.append(parts[-1])
            light = Share(_Sizes(_sizes(share)), share.classes, share.kept)
            if not parts:
                parts = [ray.put(share.source.read(None))]
            ready.append(add.remote(alone, light, *parts))
            if len(ready) > WAITING:
                yield ready.pop(0)
        while ready:
            yield ready.pop(0)
    finally:
        for ref in [*busy, *ready]:
            ray.cancel(ref, force=True)


@dataclass(frozen=True)
class _Sizes:
    """In place of a source: how many samples each shard has."""

    sizes: tuple[int, ...]

    def read(self, encoder: object) -> Encoded:
        raise NotImplementedError


def _sizes(share: Share) -> tuple[int, ...]:
    shards = getattr(share.source, "shards", None)
    return (len(share.classes),) if shards is None else tuple(len(s.files) for s in shards)


def _sum_task(work: Work, share: Share, *parts: Encoded) -> SummedShare:
    """What a task does, in a process of Ray."""
    assert isinstance(share.source, _Sizes)
    shards = [Shard(n, range(size)) for n, size in enumerate(share.source.sizes)]  # type: ignore[arg-type]
    return work.sum(share, joined(shards, dict(enumerate(parts))))


_loaded: dict[str, Encoder] = {}  # of a process of Ray, which works on many shards


def encode_on_ray(
    shards: Sequence[Shard], encoder: Encoder, batch_size: int, cluster: Cluster
) -> Iterator[tuple[Shard, Encoded]]:
    """Encode shards in parallel, and give each back when it is done, in any order.

    The encoder goes into Ray's object store once, and only a few shards are in memory at
    a time: machines of a cluster need this package installed, but no files in common.
    """
    shared, key = [cluster.ray.put(encoder.to("cpu"))], json.dumps(encoder.identity)
    task = cluster.task(_encode_task)
    counter = track(range(sum(len(shard.files) for shard in shards)), "encoding images")
    left, running = iter(shards), dict[Any, Shard]()
    try:
        while True:
            for shard in islice(left, max(cluster.slots + WAITING - len(running), 0)):
                contents = [_content(file) for file in shard.files]
                running[task.remote(shared, key, contents, batch_size)] = shard
            if not running:
                return
            for ref in cluster.ray.wait(list(running), num_returns=1)[0]:
                shard = running.pop(ref)
                yield shard, _result(cluster.ray, ref)
                list(islice(counter, len(shard.files)))  # which tells the listener
    finally:
        for ref in running:
            cluster.ray.cancel(ref, force=True)


def _content(file: File) -> bytes | str:
    """The bytes of a file; or why it cannot be read."""
    try:
        return file.read()
    except Exception as error:  # zipfile fails in many ways
        return reason(error)


def _result(ray: Any, ref: Any) -> Any:
    """What a task gave, or an error that says why there is nothing."""
    try:
        return ray.get(ref)
    except ray.exceptions.RayError as error:
        raise FrugalError(
            f"Ray gave up encoding ({type(error).__name__}: {reason(error)}); a process that "
            "dies may be out of memory: try a smaller --batch-size or fewer --jobs. What is "
            "finished is kept, and the same command goes on"
        ) from error


def _encode_task(
    shared: list[Any], key: str, contents: list[bytes | str], batch_size: int
) -> Encoded:
    """What a task does, in a process of Ray."""
    import ray

    if key not in _loaded:
        _loaded.clear()
        _loaded[key] = ray.get(shared[0]).to(None)
    encoder = _loaded[key]

    def ready(content: bytes | str) -> Any:
        return content if isinstance(content, str) else prepare(encoder, File(lambda: content))

    with reading_images():
        images = ahead(ready, contents, DECODERS, AHEAD * batch_size)
        return encode(encoder, images, batch_size)
