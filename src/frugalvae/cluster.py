"""Ray: on this machine for as long as it is needed, or a cluster that is there."""

from __future__ import annotations

import os
import socket
from typing import Any

from frugalvae.errors import InputError

TRIES = 3  # how often work is started whose process is lost, as it is when memory runs out

#: Read by a process when it loads its libraries: the number of threads decides last digits.
ONE_THREAD = {"env_vars": {"OMP_NUM_THREADS": "1"}}


class Cluster:
    """A Ray that was started or joined here, or that this process had already.

    Parameters
    ----------
    address
        Of a cluster that is there, or ``"auto"``, which is left running; ``None`` starts
        Ray on this machine until :meth:`close`. A Ray that this process has started or
        joined already is used as it is.
    jobs
        How many tasks at a time on this machine; a cluster takes as many as fit.
    gpus
        What each task asks for beside one CPU: several share a GPU by parts of it.
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
        found: dict[str, float] = self.ray.cluster_resources()
        return found

    @property
    def slots(self) -> int:
        """How many tasks fit, asked anew each time: a cluster may grow."""
        if self.address is None:
            return self.jobs
        there = self._resources()
        fit = there.get("CPU", 0)
        if self.gpus:
            fit = min(fit, there.get("GPU", 0) / self.gpus)
        return max(int(fit), 1)

    def task(self, function: Any) -> Any:
        """A function as a task of one CPU and one thread, which Ray repeats if it is lost."""
        return self.ray.remote(function).options(
            num_cpus=1, num_gpus=self.gpus, max_retries=TRIES - 1, runtime_env=ONE_THREAD
        )

    def close(self) -> None:
        """Stop what was started; a cluster is left alone."""
        if self.joined:
            self.ray.shutdown()


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
