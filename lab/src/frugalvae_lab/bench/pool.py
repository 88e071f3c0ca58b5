"""Run jobs several at a time: in processes of this machine, or on Ray.

Why not joblib or loky for the first: there, a worker that dies fails all jobs under way, which
may have run for hours, and workers outlive a parent that is killed. Here one job is lost and
tried again.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
import traceback
from dataclasses import dataclass
from functools import partial
from multiprocessing import connection, get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from frugalvae.images.feature_file import Features
from frugalvae.processes import TRIES, Cluster, end_with_parent, starting
from frugalvae_lab.bench.execute import Encoding, encode_first_task, make_run
from frugalvae_lab.bench.grid import Cell
from frugalvae_lab.images.dataset import Images

ARRAYS = ("x_train", "y_train", "x_test", "y_test")  # of a data set

Job = Cell | Encoding


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of a job, a record or features; or the traceback of its failure."""

    job: Job
    result: Any = None
    traceback: str | None = None
    seconds: float = 0.0


class Pool(Protocol):
    """What runs jobs, several at a time."""

    @property
    def slots(self) -> int:
        """How many jobs it can run at once."""
        ...

    def share(self, name: str, data: Features | Images) -> None:
        """Give all jobs access to data by a name."""
        ...

    def start(self, job: Job, data: str) -> None:
        """Start a job on shared data; there must be a free slot."""
        ...

    def wait(self, seconds: float) -> list[Outcome]:
        """The jobs that have ended, after at most that time."""
        ...

    def close(self) -> None:
        """Stop everything."""
        ...


def perform(job: Job, data: Any) -> tuple[Any, str | None, float]:
    """The job's result, or the traceback of what it raised; and how long it took."""
    started = time.perf_counter()
    try:
        result: Any = (
            encode_first_task(job, data) if isinstance(job, Encoding) else make_run(job, data)
        )
        return result, None, time.perf_counter() - started
    except Exception:
        return None, traceback.format_exc(), time.perf_counter() - started


class ProcessPool:
    """Processes that each run one job after the other.

    If a process dies, its job is tried again in a new one. After three deaths the job has
    failed.
    """

    def __init__(self, processes: int, threads: int = 1) -> None:
        self.slots = processes
        self.threads = threads
        self.folder = Path(tempfile.mkdtemp(prefix="frugalvae-"))
        self.workers: list[_Worker] = []

    def share(self, name: str, data: Features | Images) -> None:
        """Write the arrays to files that every process maps into its memory."""
        save_shared(self.folder / name, data)

    def start(self, job: Job, data: str) -> None:
        """Give the job to an idle process, or to a new one."""
        idle = next((worker for worker in self.workers if worker.job is None), None)
        if idle is None:
            idle = _Worker(self.folder, self.threads)
            self.workers.append(idle)
        self._give(idle, job, data, tries=1)

    def _give(self, worker: _Worker, job: Job, data: str, tries: int) -> None:
        worker.job, worker.data, worker.tries = job, data, tries
        with contextlib.suppress(OSError):  # it died while idle; wait() will notice
            worker.pipe.send((job, data))

    def wait(self, seconds: float) -> list[Outcome]:
        """Collect jobs that have ended; start again those whose process died."""
        busy = {worker.pipe: worker for worker in self.workers if worker.job is not None}
        ended = []
        for pipe in connection.wait(list(busy), seconds):
            worker = busy[pipe]  # type: ignore[index]
            assert worker.job is not None
            try:
                ended.append(Outcome(worker.job, *worker.pipe.recv()))
                worker.job = None
            except (EOFError, OSError):
                ended += self._replace(worker)
        return ended

    def _replace(self, worker: _Worker) -> list[Outcome]:
        """Try a lost job again in a new process, or give it up."""
        worker.process.join()
        self.workers.remove(worker)
        assert worker.job is not None
        if worker.tries == TRIES:
            code = worker.process.exitcode
            reason = f"the process died {TRIES} times (exit code {code}): out of memory?"
            return [Outcome(worker.job, traceback=reason)]
        fresh = _Worker(self.folder, self.threads)
        self.workers.append(fresh)
        self._give(fresh, worker.job, worker.data, worker.tries + 1)
        return []

    def close(self) -> None:
        """Stop all processes, whatever they are doing."""
        for worker in self.workers:
            worker.process.kill()
            worker.process.join()
        shutil.rmtree(self.folder, ignore_errors=True)


class _Worker:
    """A process, the pipe to it, and its job."""

    def __init__(self, folder: Path, threads: int) -> None:
        context = get_context("spawn")  # a forked PyTorch may hang
        self.pipe, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(
            target=_serve, args=(theirs, folder), daemon=True
        )
        with starting(threads):
            self.process.start()
        theirs.close()
        self.job: Job | None = None
        self.data, self.tries = "", 0


def _serve(pipe: Connection, folder: Path) -> None:
    """Perform jobs until the parent ends, even if the parent is killed."""
    remove = partial(shutil.rmtree, folder, ignore_errors=True)  # several workers may do so at once
    end_with_parent(remove)
    loaded: dict[str, Any] = {}
    try:
        while True:
            job, name = pipe.recv()
            if name not in loaded:
                loaded = {name: load_shared(folder / name)}  # the data before is released
            pipe.send(perform(job, loaded[name]))
    except (EOFError, BrokenPipeError):
        remove()
        os._exit(1)


def save_shared(folder: Path, data: Features | Images) -> None:
    """Write each array to a file of its own, which can be mapped instead of read."""
    folder.mkdir()
    for name in ARRAYS:
        np.save(folder / f"{name}.npy", getattr(data, name))
    text = getattr(data, "text", None)
    if text is not None:
        np.save(folder / "text_keys.npy", np.array(list(text)))
        np.save(folder / "text.npy", np.stack(list(text.values())))
    (folder / type(data).__name__).touch()


def load_shared(folder: Path) -> Features | Images:
    """Map what :func:`save_shared` wrote: all processes use the same memory."""
    arrays = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in ARRAYS}
    if (folder / "Images").exists():
        return Images(folder.name, **arrays)
    text = None
    if (folder / "text.npy").exists():
        keys = np.load(folder / "text_keys.npy").tolist()
        text = dict(zip(keys, np.load(folder / "text.npy"), strict=True))
    return Features(folder.name, **arrays, text=text)


class RayPool:
    """Jobs as Ray tasks. Ray schedules them, moves the data, and repeats lost ones.

    Data goes into Ray's object store once, and records come back to this process: the machines
    of a cluster need this package, but share no files.

    Parameters
    ----------
    address, jobs, gpus
        As :class:`frugalvae.processes.Cluster` has them; a job is a run.
    """

    def __init__(self, address: str | None, *, jobs: int, gpus: float = 0.0) -> None:
        self.cluster = Cluster(address, jobs=jobs, gpus=gpus)
        self.ray = self.cluster.ray
        self.shared: dict[str, Any] = {}
        self.running: dict[Any, Job] = {}
        self.task = self.cluster.task(perform)

    @property
    def slots(self) -> int:
        """How many runs fit now: a cluster may grow."""
        return self.cluster.slots

    def share(self, name: str, data: Features | Images) -> None:
        """Put the arrays into the object store, which every task maps into its memory."""
        self.shared[name] = self.ray.put(data)

    def start(self, job: Job, data: str) -> None:
        """Hand the job to Ray."""
        self.running[self.task.remote(job, self.shared[data])] = job

    def wait(self, seconds: float) -> list[Outcome]:
        """Collect jobs that have ended; Ray itself starts lost ones again."""
        refs = list(self.running)
        ended, _ = self.ray.wait(refs, num_returns=1, timeout=seconds)
        return [self._outcome(ref) for ref in ended]

    def _outcome(self, ref: Any) -> Outcome:
        job = self.running.pop(ref)
        try:
            return Outcome(job, *self.ray.get(ref))
        except self.ray.exceptions.RayError as error:
            kind = type(error).__name__
            reason = f"Ray gave up this run ({kind}); if its process died, memory may have run out"
            return Outcome(job, traceback=f"{error}\n{reason}")

    def close(self) -> None:
        """Stop all runs, and what was started for them."""
        for ref in self.running:
            self.ray.cancel(ref, force=True)
        self.running.clear()
        self.shared.clear()
        self.cluster.close()
