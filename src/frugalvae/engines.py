"""Engines: where pieces of work are done. One ``map``: here, in several processes, or on Ray.

Whatever the engine, results come in the order of the pieces, so that what is made of them is the
same. A few pieces are worked on in advance. If a process dies, its piece is done again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence, Sized
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from frugalvae.errors import FrugalError
from frugalvae.images.decode import File, reading_images
from frugalvae.images.photographs import (
    DECODERS,
    THREADS,
    Encoded,
    Shard,
    encode_files,
    encode_here,
    reason,
)
from frugalvae.processes import TRIES, end_with_parent, starting
from frugalvae.progress import track

if TYPE_CHECKING:
    from frugalvae.parts.protocols import Encoder
    from frugalvae.processes import Cluster

AHEAD = 2  # pieces that are at hand for processes that become free

Piece = TypeVar("Piece", bound=Sized)
Result = TypeVar("Result")


class Work(Protocol[Piece, Result]):
    """What is done with each piece, wherever it is."""

    def __call__(self, piece: Piece, /) -> Result:
        """What comes of a piece."""
        ...

    def stream(self, pieces: Sequence[Piece], /) -> Iterator[Result]:
        """What comes of all of them, one after the other, in this process."""
        ...

    def elsewhere(self) -> Work[Piece, Result]:
        """The same work for another process."""
        ...

    def arrived(self) -> Work[Piece, Result]:
        """The same where it is done, on a GPU if there is one."""
        ...

    def sent(self, piece: Piece, /) -> Piece:
        """A piece for another machine, which has none of our files."""
        ...


#: Does the work of all pieces, and gives what comes of each in their order.
Engine = Callable[[Work[Any, Any], Sequence[Any]], Iterator[Any]]


def here(work: Work[Piece, Result], pieces: Sequence[Piece]) -> Iterator[Result]:
    """One piece after the other, in this process."""
    return work.stream(pieces)


@contextmanager
def engine(
    jobs: int = 1, *, ray: bool = False, address: str | None = None, gpus: float = 0.0
) -> Iterator[Engine]:
    """The engine that was asked for; Ray is stopped afterwards if it was started for it."""
    if not (ray or address):
        yield here if jobs == 1 else in_processes(jobs)
        return
    with ExitStack() as stack:

        def run(work: Work[Piece, Result], pieces: Sequence[Piece]) -> Iterator[Result]:
            from frugalvae.processes import Cluster

            cluster = Cluster(address, jobs=jobs, gpus=gpus)  # started when there is work
            return on_ray(stack.enter_context(closing(cluster)))(work, pieces)

        yield run


@dataclass(frozen=True)
class Encode:
    """Work: the photographs of a shard become features."""

    encoder: Encoder
    batch_size: int
    threads: int = THREADS

    def __call__(self, shard: Shard) -> Encoded:
        """The features of a shard."""
        with reading_images():
            return encode_files(shard.files, self.encoder, self.batch_size, self.threads)

    def stream(self, shards: Sequence[Shard]) -> Iterator[Encoded]:
        """Those of all shards; decoding does not stop between them."""
        found = encode_here(shards, self.encoder, self.batch_size, self.threads)
        return (encoded for _, encoded in found)

    def elsewhere(self) -> Encode:
        """The same in another process, which shares the cores with others."""
        return replace(self, encoder=self.encoder.to("cpu"), threads=DECODERS)

    def arrived(self) -> Encode:
        """The same on a GPU if there is one."""
        return replace(self, encoder=self.encoder.to(None))

    def sent(self, shard: Shard) -> Shard:
        """A shard with the bytes of its files; of one that cannot be read, with the reason."""
        return Shard(
            shard.number, [File(_Content.of(file), size=file.size) for file in shard.files]
        )


@dataclass(frozen=True)
class _Content:
    """What was read of a file."""

    content: bytes
    problem: str = ""

    @classmethod
    def of(cls, file: File) -> _Content:
        try:
            return cls(file.read())
        except Exception as error:  # zipfile fails in many ways
            return cls(b"", reason(error))

    def __call__(self) -> bytes:
        if self.problem:
            raise OSError(self.problem)
        return self.content


def _counted(pieces: Sequence[Piece], results: Iterator[Result]) -> Iterator[Result]:
    """Results; a listener is told how many samples are done."""
    steps = track(range(sum(map(len, pieces))), "encoding images")
    for piece, result in zip(pieces, results, strict=True):
        for _ in zip(range(len(piece)), steps, strict=False):
            pass
        yield result
    next(steps, None)  # tells that all is done


# --------------------------------------------------------------------------- in processes


def in_processes(jobs: int) -> Engine:
    """In so many processes."""

    def run(work: Work[Piece, Result], pieces: Sequence[Piece]) -> Iterator[Result]:
        if len(pieces) < 2:
            return here(work, pieces)
        return _counted(pieces, _pooled(work.elsewhere(), pieces, jobs))

    return run


def _pooled(work: Work[Piece, Result], pieces: Sequence[Piece], jobs: int) -> Iterator[Result]:
    place, deaths, running = 0, 0, dict[int, Future[Result]]()
    with starting():
        pool = _pool(jobs, work)
        try:
            while place < len(pieces):
                try:
                    for number in range(place, min(place + jobs + AHEAD, len(pieces))):
                        if number not in running:
                            running[number] = pool.submit(_perform, pieces[number])
                    result = running.pop(place).result()
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
                yield result
        finally:
            _stop(pool)


def _pool(jobs: int, work: Work[Any, Any]) -> ProcessPoolExecutor:
    context = get_context("spawn")  # a forked PyTorch may hang
    return ProcessPoolExecutor(jobs, context, _start, (work,))


def _stop(pool: ProcessPoolExecutor) -> None:
    """End all processes of a pool now: nobody waits for what they do."""
    for process in list((pool._processes or {}).values()):
        process.terminate()
    pool.shutdown(cancel_futures=True)


_work: list[Work[Any, Any]] = []  # of a process that works on pieces


def _start(work: Work[Any, Any]) -> None:
    """Get a process ready."""
    end_with_parent()
    _work[:] = [work]


def _perform(piece: Any) -> Any:
    return _work[0](piece)


# --------------------------------------------------------------------------- on Ray


def on_ray(cluster: Cluster) -> Engine:
    """On Ray. Machines of a cluster need this package, but no files in common."""

    def run(work: Work[Piece, Result], pieces: Sequence[Piece]) -> Iterator[Result]:
        return _counted(pieces, _remote(cluster, work, pieces))

    return run


def _remote(
    cluster: Cluster, work: Work[Piece, Result], pieces: Sequence[Piece]
) -> Iterator[Result]:
    """Results; the work goes into Ray's object store once, and pieces are sent a few ahead."""
    ray, task = cluster.ray, cluster.task(_ray_task)
    shared = [ray.put(work.elsewhere())]
    running, left = deque[Any](), iter(pieces)
    try:
        for _ in pieces:
            while len(running) < cluster.slots + AHEAD:
                piece = next(left, None)
                if piece is None:
                    break
                running.append(task.remote(shared, work.sent(piece)))
            try:
                result = ray.get(running[0])
            except ray.exceptions.RayError as error:
                raise FrugalError(
                    f"Ray gave up ({type(error).__name__}: {reason(error)}); a process that dies "
                    "may be out of memory: try a smaller --batch-size or fewer --jobs. What is "
                    "finished is kept, and the same command goes on"
                ) from error
            running.popleft()
            yield result
    finally:
        for ref in running:
            ray.cancel(ref, force=True)


_loaded: dict[str, Work[Any, Any]] = {}  # of a process of Ray, which works on many pieces


def _ray_task(shared: list[Any], piece: Any) -> Any:
    """What a task does, in a process of Ray."""
    import ray

    key = shared[0].hex()
    if key not in _loaded:
        _loaded.clear()
        _loaded[key] = ray.get(shared[0]).arrived()
    return _loaded[key](piece)
