"""What is recorded of a run, and how it becomes JSON."""

from __future__ import annotations

import base64
import math
import os
import platform
import zlib
from dataclasses import asdict, dataclass, field
from importlib import metadata as installed
from typing import Any

import numpy as np
from numpy.typing import NDArray

import frugalvae


@dataclass
class Record:
    """What happened in a run.

    Attributes
    ----------
    settings
        Everything that decides the result: data, tasks, memory, head, seed.
    versions
        Versions of Python and packages, and the machine.
    tasks
        The classes of each task.
    accuracy
        Shape (tasks, tasks): row ``t`` after task ``t``, NaN above the diagonal.
    metrics
        Scores computed from that matrix.
    confusion
        Confusion matrix after the last task: number of test samples by true class (rows) and
        predicted class (columns), classes in the order of ``tasks``; see :func:`pack_counts`.
    layers
        For each task and layer of a null-space decoder, R, the free directions and the size.
    priors
        For each task, how its class means were placed.
    memory
        Parameters and bytes by component.
    seconds
        For each task, the time to learn it and to predict all test samples so far.
    observed
        What an observer recorded besides; see :mod:`frugalvae.bench.observe`.
    """

    settings: dict[str, Any]
    versions: dict[str, str]
    tasks: list[list[Any]]
    accuracy: list[list[float]] = field(default_factory=list)
    metrics: dict[str, float] = field(default_factory=dict)
    confusion: str = ""
    layers: list[dict[str, Any]] = field(default_factory=list)
    priors: list[dict[str, Any]] = field(default_factory=list)
    memory: dict[str, Any] = field(default_factory=dict)
    seconds: list[dict[str, float]] = field(default_factory=list)
    observed: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; NaN becomes null."""
        plain: dict[str, Any] = _plain(asdict(self))
        return plain


def pack_counts(counts: NDArray[np.int64]) -> str:
    """A matrix of counts as text: 16-bit integers, deflated, in base 64.

    >>> unpack_counts(pack_counts(np.eye(2, dtype=int)))
    array([[1, 0],
           [0, 1]])
    """
    packed = zlib.compress(counts.astype("<u2").tobytes(), 9)
    return base64.b64encode(packed).decode()


def unpack_counts(text: str) -> NDArray[np.int64]:
    """The square matrix that :func:`pack_counts` packed."""
    flat = np.frombuffer(zlib.decompress(base64.b64decode(text)), "<u2")
    return flat.reshape(math.isqrt(len(flat)), -1).astype(np.int64)


def versions() -> dict[str, str]:
    """Versions of Python and packages, and the machine."""
    threads = os.environ.get("OMP_NUM_THREADS") or os.cpu_count()
    return {
        "frugalvae": frugalvae.__version__,
        "python": platform.python_version(),
        **{name: _version(name) for name in ("numpy", "torch", "scikit-learn")},
        "machine": f"{platform.machine()}, {threads} threads",
    }


def _version(package: str) -> str:
    try:
        return installed.version(package)
    except installed.PackageNotFoundError:
        return "not installed"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value.item() if isinstance(value, np.generic) else value
