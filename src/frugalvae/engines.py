"""Engines: where pieces of work are done. One ``map``: here, in several processes, or on Ray.

Whatever the engine, results come in the order of the pieces, so that what is made of them is the
same. A few pieces are worked on in advance. If a process dies, its piece is done again.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, closing, contextmanager
from multiprocessing import connection, get_context, parent_process
from typing import Any, Protocol, Self

from frugalvae.console import track
from frugalvae.errors import FrugalError, InputError, how_to_install

AHEAD = 2  # pieces that are at hand for processes that become free
TRIES = 3  # how often a job is started whose process dies, as it does when memory runs out
ONE_THREAD = {"env_vars": {"OMP_NUM_THREADS": "1"}}  # of a task on Ray


class Piece(Protocol):
    """Some samples."""

    def __len__(self) -> int:
        """How many there are."""
        ...

    def loaded(self) -> Self:
        """The same with what is read of files, for a machine that has not these files."""
        ...


class Work(Protocol):
    """What is done with each piece, wherever it is."""

    def __call__(self, piece: Any, /) -> Any:
        """What comes of a piece."""
        ...

    def stream(self, pieces: Sequence[Any], /) -> Iterator[Any]:
        """What comes of all of them, one after the other, in this process."""
        ...

    def to(self, device: str | None, /) -> Self:
        """The same for another process, on a device; ``None`` takes a GPU if there is one."""
        ...


#: Does the work of all pieces, and gives what comes of each in their order.
Engine = Callable[[Work, Sequence[Any]], Iterator[Any]]


def run_in_process(work: Work, pieces: Sequence[Piece]) -> Iterator[Any]:
    """One piece after the other, in this process."""
    return work.stream(pieces)


@contextmanager
def engine(
    jobs: int = 1, *, ray: bool = False, address: str | None = None, gpus: float = 0.0
) -> Iterator[Engine]:
    """The engine that was asked for; Ray is stopped afterwards if it was started for it."""
    if not (ray or address):
        yield run_in_process if jobs == 1 else in_processes(jobs)
        return
    with ExitStack() as stack:

        def run(work: Work, pieces: Sequence[Piece]) -> Iterator[Any]:
            cluster = stack.enter_context(closing(Cluster(address, jobs=jobs, gpus=gpus)))
            return _counted(pieces, _on_ray(cluster, work, pieces))

        yield run  # Ray is started when there is work


def _counted(pieces: Sequence[Piece], results: Iterator[Any]) -> Iterator[Any]:
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

    def run(work: Work, pieces: Sequence[Piece]) -> Iterator[Any]:
        if len(pieces) < 2:
            return run_in_process(work, pieces)
        return _counted(pieces, _in_pool(work.to("cpu"), pieces, jobs))

    return run


def _in_pool(work: Work, pieces: Sequence[Piece], jobs: int) -> Iterator[Any]:
    place, deaths, running = 0, 0, dict[int, Future[Any]]()
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


def _pool(jobs: int, work: Work) -> ProcessPoolExecutor:
    context = get_context("spawn")  # a forked PyTorch may hang
    return ProcessPoolExecutor(jobs, context, _start, (work,))


def _stop(pool: ProcessPoolExecutor) -> None:
    """End all processes of a pool now: nobody waits for what they do."""
    for process in list((pool._processes or {}).values()):
        process.terminate()
    pool.shutdown(cancel_futures=True)


_work: list[Work] = []  # of a process that works on pieces


def _start(work: Work) -> None:
    """Get a process ready."""
    end_with_parent()
    _work[:] = [work]


def _perform(piece: Any) -> Any:
    return _work[0](piece)


# --------------------------------------------------------------------------- on Ray


def _on_ray(cluster: Cluster, work: Work, pieces: Sequence[Piece]) -> Iterator[Any]:
    """On Ray. Machines of a cluster need this package, but no files in common.

    The work goes into Ray's object store once, and pieces are sent a few ahead.
    """
    ray, task = cluster.ray, cluster.task(_ray_task)
    shared = [ray.put(work.to("cpu"))]
    running, left = deque[Any](), iter(pieces)
    try:
        for _ in pieces:
            while len(running) < cluster.slots + AHEAD:
                piece = next(left, None)
                if piece is None:
                    break
                running.append(task.remote(shared, piece.loaded()))
            try:
                result = ray.get(running[0])
            except ray.exceptions.RayError as error:
                reason = (str(error).strip().splitlines() or ["no reason is given"])[0]
                raise FrugalError(
                    f"Ray gave up ({type(error).__name__}: {reason}); a process that dies "
                    "may be out of memory: try a smaller --batch-size or fewer --jobs. What is "
                    "finished is kept, and the same command goes on"
                ) from error
            running.popleft()
            yield result
    finally:
        for ref in running:
            ray.cancel(ref, force=True)


_loaded: dict[str, Work] = {}  # of a process of Ray, which works on many pieces


def _ray_task(shared: list[Any], piece: Any) -> Any:
    """What a task does, in a process of Ray."""
    import ray

    key = shared[0].hex()
    if key not in _loaded:
        _loaded.clear()
        _loaded[key] = ray.get(shared[0]).to(None)
    return _loaded[key](piece)


# --------------------------------------------------------------------------- processes and Ray


@contextmanager
def starting(threads: int = 1) -> Iterator[None]:
    """Processes that are started inside the block compute on so many threads each.

    A process reads it when it loads its libraries. The number of threads changes last digits.
    """
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = str(threads)
    try:
        yield
    finally:
        os.environ.pop("OMP_NUM_THREADS")
        os.environ |= {} if before is None else {"OMP_NUM_THREADS": before}


def end_with_parent(tidy: Callable[[], object] = lambda: None) -> None:
    """End this process when its parent ends, even if that is killed; interrupts are the parent's.

    ``tidy`` is called before.
    """
    parent = parent_process()
    assert parent is not None

    def end() -> None:
        connection.wait([parent.sentinel])
        tidy()
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=end, daemon=True).start()


class Cluster:
    """A connection to Ray, which is started here, joined, or was there before.

    Parameters
    ----------
    address
        The address of an existing cluster, or ``"auto"``; it is left running. ``None`` starts
        Ray on this machine until :meth:`close`. If this process uses Ray already, that is used.
    jobs
        How many tasks run at a time on this machine; a cluster takes as many as fit.
    gpus
        GPUs per task, besides one CPU; with a fraction, several tasks share a GPU.
    """

    def __init__(self, address: str | None, *, jobs: int, gpus: float = 0.0) -> None:
        self.ray = import_ray()
        self.address, self.jobs, self.gpus = address, jobs, gpus
        self.joined = not self.ray.is_initialized()
        if self.joined:
            self._join()
        if address is None and gpus > self._resources().get("GPU", 0):
            self.close()
            raise InputError(f"--gpus {gpus:g}: Ray finds fewer GPUs on this machine; leave it out")

    def _join(self) -> None:
        quiet = {"logging_level": "ERROR", "log_to_driver": False}
        if self.address is None:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent anywhere
            self.ray.init("local", num_cpus=self.jobs, include_dashboard=False, **quiet)
            return
        try:
            _check_reachable(self.address)
            self.ray.init(self.address, **quiet)
        except (OSError, ValueError, RuntimeError) as error:
            raise InputError(
                f"--ray-address {self.address}: {error}; start a cluster with "
                "'ray start --head', or give --ray alone for this machine"
            ) from error

    def _resources(self) -> dict[str, float]:
        return self.ray.cluster_resources()

    @property
    def slots(self) -> int:
        """How many tasks fit now: a cluster may grow."""
        if self.address is None:
            return self.jobs
        there = self._resources()
        fit = there.get("CPU", 0)
        if self.gpus:
            fit = min(fit, there.get("GPU", 0) / self.gpus)
        return max(int(fit), 1)

    def task(self, function: Any) -> Any:
        """A function as a task of one CPU and one thread, which Ray repeats if its process dies."""
        return self.ray.remote(function).options(
            num_cpus=1, num_gpus=self.gpus, max_retries=TRIES - 1, runtime_env=ONE_THREAD
        )

    def close(self) -> None:
        """Stop what was started here; a cluster goes on."""
        if self.joined:
            self.ray.shutdown()


def _check_reachable(address: str) -> None:
    """Refuse an address that does not answer, for which Ray would wait for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host, int(port)), timeout=10).close()


def import_ray() -> Any:
    """Ray, or how to install it."""
    try:
        import ray
    except ImportError as error:
        raise InputError(f"Ray is not installed; {how_to_install('ray')}") from error
    return ray
