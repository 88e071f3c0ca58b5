"""Networks that ONNX Runtime computes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frugalvae.errors import InputError

SPINNING = "session.intra_op.allow_spinning"
QUIET = 4  # of ONNX Runtime's levels, only what is fatal: other errors are exceptions as well


class Network:
    """A graph in the format ONNX, ready to compute; it can go to another process.

    Parameters
    ----------
    content
        The file.
    threads
        How many may compute; by default ``OMP_NUM_THREADS`` of them, or one a core.
    device
        ``"cpu"`` or ``"cuda"``; ``None`` takes a GPU if this ONNX Runtime can use one.
    """

    def __init__(
        self, content: bytes, threads: int | None = None, device: str | None = None
    ) -> None:
        self.content, self.threads = content, threads
        self.to(device)

    def to(self, device: str | None) -> None:
        """Compute there from now on."""
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.log_severity_level = QUIET
        options.intra_op_num_threads = self.threads or threads_asked()
        options.add_session_config_entry(SPINNING, "0")  # who waits leaves the core to others
        providers = _providers(device, ort.get_available_providers())
        try:
            self.session = ort.InferenceSession(self.content, options, providers=providers)
        except Exception as error:  # ONNX Runtime has ten kinds, with no base in common
            raise InputError(f"ONNX Runtime cannot load the network ({error})") from error

    @property
    def told(self) -> dict[str, str]:
        """What the file says of itself."""
        told: dict[str, str] = self.session.get_modelmeta().custom_metadata_map
        return told

    def __call__(self, batch: NDArray[Any], outputs: Sequence[str] | None = None) -> list[Any]:
        """What the network gives for its first input."""
        [given, *_] = self.session.get_inputs()
        found: list[Any] = self.session.run(outputs, {given.name: np.ascontiguousarray(batch)})
        return found

    def __getstate__(self) -> tuple[bytes, int | None]:
        return self.content, self.threads

    def __setstate__(self, state: tuple[bytes, int | None]) -> None:
        self.__init__(*state, device="cpu")  # type: ignore[misc]


def threads_asked() -> int:
    """How many threads ``OMP_NUM_THREADS`` allows; 0 if it says nothing."""
    first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(first) if first.isdecimal() else 0


def _providers(device: str | None, available: Sequence[str]) -> list[str]:
    """What computes, by preference.

    >>> _providers(None, ["CPUExecutionProvider"])
    ['CPUExecutionProvider']
    """
    gpu, cpu = "CUDAExecutionProvider", "CPUExecutionProvider"
    wanted = device is None or device.startswith("cuda")
    if device is not None and wanted and gpu not in available:
        raise InputError(
            f"device {device!r}: this ONNX Runtime computes on the processor alone; "
            "pip install onnxruntime-gpu, or leave the device out"
        )
    return [gpu, cpu] if wanted and gpu in available else [cpu]
