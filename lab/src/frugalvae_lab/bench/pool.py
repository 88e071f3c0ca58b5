"""Run jobs several at a time: in processes of this machine, or on Ray.

Runs take from a second to hours, so that each is written as it ends, in any order: unlike the
engines of :mod:`frugalvae.engines`, which keep the order of their pieces. Each process is a pool of
its own: if one dies, one run is lost, and is tried again.
"""

from __future__ import annotations

import shutil
import tempfile
import time
import traceback
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from frugalvae.engines import TRIES, Cluster, end_with_parent, starting
from frugalvae.images.feature_file import Features
from frugalvae_lab.bench.grid import Cell
from frugalvae_lab.bench.run import Encoding, encode_first_task, make_run
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


def perform(job: Job, data: Any) -> tuple[Any, str | None, float]:
    """The job's result, or the traceback of what it raised; and how long it took."""
    started, result, failure = time.perf_counter(), None, None
    try:
        result = encode_first_task(job, data) if isinstance(job, Encoding) else make_run(job, data)
    except Exception:
        failure = traceback.format_exc()
    return result, failure, time.perf_counter() - started


class ProcessPool:
    """Processes. After three deaths of its process, a job has failed."""

    def __init__(self, processes: int, threads: int = 1) -> None:
        self.slots, self.threads = processes, threads
        self.folder = Path(tempfile.mkdtemp(prefix="frugalvae-"))
        self.idle: list[ProcessPoolExecutor] = []
        self.running: dict[Future[Any], tuple[ProcessPoolExecutor, Job, str, int]] = {}

    def share(self, name: str, data: Features | Images) -> None:
        """Write the arrays to files that every process maps into its memory."""
        save_shared(self.folder / name, data)

    def start(self, job: Job, data: str, tries: int = 1) -> None:
        """Give the job to an idle process, or to a new one."""
        context = get_context("spawn")  # a forked PyTorch may hang
        while True:
            new = not self.idle
            process = (
                ProcessPoolExecutor(1, context, _start, (self.folder,)) if new else self.idle.pop()
            )
            try:
                with starting(self.threads):
                    future = process.submit(_perform, job, data)
            except BrokenProcessPool:  # it died while idle
                continue
            self.running[future] = process, job, data, tries
            return

    def wait(self, seconds: float) -> list[Outcome]:
        """Collect jobs that have ended; start again those whose process died."""
        ended = []
        for future in wait(self.running, seconds, FIRST_COMPLETED).done:
            process, job, data, tries = self.running.pop(future)
            try:
                ended.append(Outcome(job, *future.result()))
                self.idle.append(process)
            except BrokenProcessPool:
                if tries < TRIES:
                    self.start(job, data, tries + 1)
                else:
                    reason = f"the process died {TRIES} times: out of memory?"
                    ended.append(Outcome(job, traceback=reason))
        return ended

    def close(self) -> None:
        """Stop all processes, whatever they are doing."""
        for pool in [*self.idle, *(one[0] for one in self.running.values())]:
            for process in list((pool._processes or {}).values()):
                process.kill()
            pool.shutdown(cancel_futures=True)
        shutil.rmtree(self.folder, ignore_errors=True)


_folder: list[Path] = []  # of shared data, in a process of the pool
_loaded: dict[str, Any] = {}  # the data of the job before


def _start(folder: Path) -> None:
    """Get a process ready; when the parent is killed, the last to leave removes the folder."""
    end_with_parent(partial(shutil.rmtree, folder, ignore_errors=True))
    _folder[:] = [folder]


def _perform(job: Job, name: str) -> tuple[Any, str | None, float]:
    if name not in _loaded:
        _loaded.clear()
        _loaded[name] = load_shared(_folder[0] / name)
    return perform(job, _loaded[name])


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
        As :class:`frugalvae.engines.Cluster` has them; a job is a run.
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


Pool = ProcessPool | RayPool
