"""Where PyTorch computes: asked for once, found when something needs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from frugalvae.errors import DeviceError

if TYPE_CHECKING:
    import torch

_wanted: ContextVar[str | None] = ContextVar("frugalvae_device", default=None)


@contextmanager
def computing_on(device: str | None) -> Iterator[None]:
    """Parts that need PyTorch compute there inside the block; ``None`` takes a GPU if any."""
    token = _wanted.set(device)
    try:
        yield
    finally:
        _wanted.reset(token)


def find_device(device: str | None = None) -> torch.device:
    """The device of that name, or the one that is wanted; without one a GPU if there is any.

    >>> with computing_on("cpu"):
    ...     find_device()
    device(type='cpu')
    """
    import torch

    name = device or _wanted.get() or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:
        raise DeviceError(
            f"device is {name!r}, which cannot be used here ({error}); try device='cpu'"
        ) from error
