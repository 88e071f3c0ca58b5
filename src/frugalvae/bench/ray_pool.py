"""Run jobs on Ray: in processes of this machine, or of a cluster."""

from __future__ import annotations

from typing import Any

from frugalvae.bench.pool import Job, Outcome, perform
from frugalvae.cluster import Cluster
from frugalvae.images.dataset import Images
from frugalvae.images.feature_file import Features


class RayPool:
    """Jobs as Ray tasks. Ray schedules them, moves the data, and repeats lost ones.

    Data goes into Ray's object store once, and records come back to this process: the machines
    of a cluster need this package, but share no files.

    Parameters
    ----------
    address, jobs, gpus
        As :class:`frugalvae.cluster.Cluster` has them; a job is a run.
    """

    def __init__(self, address: str | None, *, jobs: int, gpus: float = 0.0) -> None:
        self.cluster = Cluster(address, jobs=jobs, gpus=gpus)
        self.ray = self.cluster.ray
        self.shared: dict[str, Any] = {}
        self.running: dict[Any, Job] = {}
        self.task = self.cluster.task(_perform)

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


def _perform(job: Job, data: Any) -> tuple[Any, str | None, float]:
    """What a task does, in a process of Ray."""
    return perform(job, data)
