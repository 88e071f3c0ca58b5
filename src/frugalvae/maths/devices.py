"""The device that PyTorch computes on: chosen here and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from frugalvae.errors import DeviceError

if TYPE_CHECKING:
    import torch

_requested: ContextVar[str | None] = ContextVar("frugalvae_device", default=None)


@contextmanager
def computing_on(device: str | None) -> Iterator[None]:
    """Use this device inside the block; ``None`` uses a GPU if there is one."""
    token = _requested.set(device)
    try:
        yield
    finally:
        _requested.reset(token)


def find_device(device: str | None = None) -> torch.device:
    """The named device; else that of :func:`computing_on`; else a GPU if there is one.

    >>> with computing_on("cpu"):
    ...     find_device()
    device(type='cpu')
    """
    import torch

    name = device or _requested.get() or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:
        raise DeviceError(
            f"device is {name!r}, which cannot be used here ({error}); try device='cpu'"
        ) from error
