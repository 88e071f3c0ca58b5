"""Processes of our own, and Ray: how often they are started, on how many threads, when they end."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import connection, parent_process
from typing import Any

from frugalvae.errors import InputError, how_to_install

TRIES = 3  # how often a job is started whose process dies, as it does when memory runs out
ONE_THREAD = {"env_vars": {"OMP_NUM_THREADS": "1"}}  # of a task on Ray


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
