"""Networks that ONNX Runtime computes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frugalvae.encoders.onnx_file import OnnxModel, read_model
from frugalvae.errors import InputError, check_number

SPINNING = "session.intra_op.allow_spinning"
FORMAT = "session.load_model_format"
QUIET = 4  # of ONNX Runtime's levels, only what is fatal: other errors are exceptions as well
TYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
}


class Network:
    """A graph in the format ONNX, ready to compute; it can go to another process.

    Parameters
    ----------
    model
        The graph, and the files that it names.
    threads
        How many may compute; by default ``OMP_NUM_THREADS`` of them, or one a core.
    device
        ``"cpu"`` or ``"cuda"``; ``None`` takes a GPU if this ONNX Runtime can use one.
    path
        Where the model can be read again; without it, a copy is kept.
    """

    def __init__(
        self,
        model: OnnxModel,
        threads: int | None = None,
        device: str | None = None,
        path: Path | None = None,
    ) -> None:
        if threads is not None:
            check_number("threads", threads, 0, 1_024, whole=True)
        self.kept, self.threads = path or model, threads
        self.digest = model.digest if path else ""
        self._open(model, device)

    def to(self, device: str | None) -> None:
        """Compute there from now on."""
        self._open(self._model(), device)

    def _model(self) -> OnnxModel:
        if isinstance(self.kept, OnnxModel):
            return self.kept
        model = read_model(self.kept)
        if model.digest != self.digest:
            raise InputError(f"{self.kept}: it was changed since it was loaded; start again")
        return model

    def _open(self, model: OnnxModel, device: str | None) -> None:
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.log_severity_level = QUIET
        options.intra_op_num_threads = self.threads or threads_asked()
        options.add_session_config_entry(SPINNING, "0")  # who waits leaves the core to others
        options.add_session_config_entry(FORMAT, "ONNX")
        if model.files:
            sizes = [len(content) for content in model.files.values()]
            options.add_external_initializers_from_files_in_memory(
                list(model.files), list(model.files.values()), sizes
            )
        providers = _providers(device, ort.get_available_providers())
        try:  # its fallback prints
            self.session = ort.InferenceSession(
                model.content, options, providers, enable_fallback=0
            )
            self.session._model_bytes = None  # which it would keep for that
        except Exception as error:  # ONNX Runtime has ten kinds, with no base in common
            raise InputError(f"ONNX Runtime cannot load the network ({_line(error)})") from error

    @property
    def told(self) -> dict[str, str]:
        """What the file says of itself."""
        return self.session.get_modelmeta().custom_metadata_map

    @property
    def inputs(self) -> dict[str, int]:
        """How many axes each input has."""
        return {given.name: len(given.shape) for given in self.session.get_inputs()}

    @property
    def outputs(self) -> dict[str, int]:
        """How many axes each output has."""
        return {given.name: len(given.shape) for given in self.session.get_outputs()}

    def run(self, output: str, inputs: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
        """One output for some inputs, which are converted to what the network takes."""
        types = {given.name: TYPES.get(given.type) for given in self.session.get_inputs()}
        ready = {name: np.ascontiguousarray(x, types[name]) for name, x in inputs.items()}
        try:
            [found] = self.session.run([output], ready)
        except Exception as error:  # as above
            raise InputError(f"ONNX Runtime cannot compute the network ({_line(error)})") from error
        return np.asarray(found, np.float32)

    def __getstate__(self) -> tuple[OnnxModel, int | None]:
        return self._model(), self.threads

    def __setstate__(self, state: tuple[OnnxModel, int | None]) -> None:
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


def _line(error: Exception) -> str:
    """An error of ONNX Runtime without its number, in one line."""
    return str(error).strip().partition("\n")[0].rpartition(" : ")[2] or type(error).__name__
