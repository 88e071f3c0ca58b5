"""Runs on Ray: the processes of one machine, or of a cluster of them."""

from __future__ import annotations

import os
import socket
from dataclasses import replace
from typing import Any

from frugalvae.data.features import Features
from frugalvae.data.images import Images
from frugalvae.errors import InputError
from frugalvae.experiments.pool import TRIES, Job, Outcome, perform

#: Read by a process when it loads its libraries: the number of threads decides last digits.
ONE_THREAD = {"env_vars": {"OMP_NUM_THREADS": "1"}}


class RayPool:
    """Tasks of Ray, which schedules them, moves the data, and repeats what is lost.

    Data goes into Ray's object store once, and records come back to this process: machines
    of a cluster need this package installed, but no files in common.

    Parameters
    ----------
    address
        Of a cluster that is there, or ``"auto"``, which is left running; ``None`` starts
        Ray on this machine for as long as the pool is open. A Ray that this process has
        started or joined already is used as it is.
    jobs
        How many runs at a time on this machine; a cluster takes as many as fit.
    gpus
        What each run asks for beside one CPU: several share a GPU by parts of it.
    """

    def __init__(self, address: str | None, *, jobs: int, gpus: float = 0.0) -> None:
        self.ray = import_ray()
        self.address, self.jobs, self.gpus = address, jobs, gpus
        self.shared: dict[str, Any] = {}
        self.running: dict[Any, Job] = {}
        self.joined = not self.ray.is_initialized()
        if self.joined:
            self._join()
        if address is None and gpus > self._resources().get("GPU", 0):
            self.close()
            raise InputError(f"--gpus {gpus:g}: Ray finds fewer GPUs on this machine; leave it out")
        self.task = self.ray.remote(_perform).options(
            num_cpus=1, num_gpus=gpus, max_retries=TRIES - 1, runtime_env=ONE_THREAD
        )

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
        found: dict[str, float] = self.ray.cluster_resources()
        return found

    @property
    def slots(self) -> int:
        """How many runs fit, asked anew each time: a cluster may grow."""
        if self.address is None:
            return self.jobs
        there = self._resources()
        fit = there.get("CPU", 0)
        if self.gpus:
            fit = min(fit, there.get("GPU", 0) / self.gpus)
        return max(int(fit), 1)

    def share(self, name: str, data: Features | Images) -> None:
        """Put the arrays where every task maps them into its memory."""
        self.shared[name] = self.ray.put(data)

    def start(self, job: Job, data: str) -> None:
        """Hand the job to Ray."""
        self.running[self.task.remote(job, self.shared[data])] = job

    def wait(self, seconds: float) -> list[Outcome]:
        """Collect what has ended; what Ray lost, it has started again by itself."""
        refs = list(self.running)
        ended, _ = self.ray.wait(refs, num_returns=1, timeout=seconds)
        return [self._outcome(ref) for ref in ended]

    def _outcome(self, ref: Any) -> Outcome:
        job = self.running.pop(ref)
        try:
            return Outcome(job, *self.ray.get(ref))
        except self.ray.exceptions.RayError as error:
            kind = type(error).__name__
            reason = f"Ray gave this run up ({kind}); a process that dies may be out of memory"
            return Outcome(job, traceback=f"{error}\n{reason}")

    def close(self) -> None:
        """Stop all runs, and what was started for them."""
        for ref in self.running:
            self.ray.cancel(ref, force=True)
        self.running.clear()
        self.shared.clear()
        if self.joined:
            self.ray.shutdown()  # of a cluster, this leaves it alone


def _perform(job: Job, data: Any) -> tuple[Any, str | None, float]:
    """What a task does, in a process of Ray."""
    import torch

    torch.set_num_threads(1)
    text = getattr(data, "text", None)
    if text is not None:  # arrays of the store cannot be written, which PyTorch warns about
        data = replace(data, text={label: vector.copy() for label, vector in text.items()})
    return perform(job, data)


def _check_reachable(address: str) -> None:
    """Knock at the door, where Ray itself would wait for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host, int(port)), timeout=10).close()


def import_ray() -> Any:
    """Ray, or how to install it."""
    try:
        import ray
    except ImportError as error:
        raise InputError("Ray is not installed; pip install 'frugalvae[ray]'") from error
    return ray
