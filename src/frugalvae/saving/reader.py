"""Objects from the JSON and the tensors that :mod:`~frugalvae.saving.writer` made of them.

Whoever wrote a file, reading it makes nothing but data: a class is looked up in a list, its
constructor checks its settings, and no attribute can be set that a class itself defines.
"""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from frugalvae.errors import MemoryFileError
from frugalvae.saving.classes import class_named, is_learned
from frugalvae.symmetric import unpack

WIDEST = 16384  # side of a matrix that is made of its square root


class Reader:
    """Makes the objects that a ``Writer`` wrote, on a device.

    >>> from frugalvae.saving.writer import Writer
    >>> writer = Writer()
    >>> written = writer.write((1, torch.ones(2, 2)), "it")
    >>> Reader(writer.tensors, torch.device("cpu")).read(written, "it")
    (1, tensor([[1., 1.],
            [1., 1.]]))
    """

    def __init__(self, tensors: dict[str, Tensor], device: torch.device) -> None:
        self.unused = dict(tensors)
        self._device = device
        self._made: dict[str, Any] = {}

    def read(self, written: Any, path: str) -> Any:
        """The value of some JSON that was written under the same path."""
        match written:
            case None | bool() | int() | float() | str():
                return written
            case list():
                return [self.read(item, f"{path}.{n}") for n, item in enumerate(written)]
            case {"number": ("inf" | "-inf" | "nan") as number}:
                return float(number)
            case {"tuple": list(items)}:
                return tuple(self.read(items, path))
            case {"dict": list(items)}:
                return {_key(key): self.read(item, f"{path}.{key}") for key, item in items}
            case {"rows": list(keys), "tensor": str(name)}:
                rows = self._take(name).unbind()
                return {_key(k): row.clone() for k, row in zip(keys, rows, strict=True)}
            case {"same": str(name)}:
                if name not in self._made:  # nor is what is not finished yet: no cycles
                    raise MemoryFileError(f"{path} refers to {name!r}, which is not there")
                return self._made[name]
        self._made[path] = made = self._make(written, path)
        return made

    def _make(self, written: Any, path: str) -> Any:
        match written:
            case {"tensor": str(name)}:
                return self._take(name)
            case {"symmetric": str(name)}:
                return unpack(self._take(name))
            case {"factor": str(name)}:
                return _product(self._take(name))
            case {"parameter": str(name)}:
                return nn.Parameter(self._take(name))
            case {"class": str(name), "fields": dict(made_of)}:
                return _from_fields(class_named(name), self._named(made_of, path))
            case {"class": str(name), "settings": dict(settings), "learned": dict(learned)}:
                part = _from_settings(class_named(name), self._named(settings, path))
                return _taught(part, self._named(learned, path), written.get("name"))
        raise MemoryFileError(f"{path} is {str(written)[:80]}, which is nothing that can be made")

    def _named(self, values: dict[str, Any], path: str) -> dict[str, Any]:
        return {name: self.read(value, f"{path}.{name}") for name, value in values.items()}

    def _take(self, name: str) -> Tensor:
        """A tensor in memory of its own: each is used once, or a small file could grow at will."""
        if name not in self.unused:
            raise MemoryFileError(f"the tensor {name!r} is not there, or used twice")
        stored = self.unused.pop(name)
        dtype = torch.float32 if stored.dtype == torch.float16 else stored.dtype
        return stored.to(self._device, dtype, copy=True)


def _key(key: Any) -> int:
    if type(key) is not int:
        raise MemoryFileError(f"{key!r} stands where the number of a class is expected")
    return key


def _product(factor: Tensor) -> Tensor:
    """F F^T in float64, exactly symmetric."""
    if factor.ndim != 2 or len(factor) > WIDEST:
        raise MemoryFileError(f"it holds a square root of shape {tuple(factor.shape)}")
    factor = factor.double()
    product = factor @ factor.T
    return (product + product.T) / 2


def _from_fields(kind: type, made_of: dict[str, Any]) -> Any:
    if hasattr(kind, "restored"):
        return cast("Any", kind).restored(**made_of)
    if not is_dataclass(kind):
        raise MemoryFileError(f"a {kind.__name__} is not made of fields")
    return kind(**made_of)


def _from_settings(kind: type, settings: dict[str, Any]) -> Any:
    if hasattr(kind, "restored") or is_dataclass(kind):
        raise MemoryFileError(f"a {kind.__name__} is not made from settings")
    return kind(**settings)


def _taught(part: Any, learned: dict[str, Any], name: Any) -> Any:
    for attribute, value in learned.items():
        if not is_learned(attribute) or hasattr(type(part), attribute):
            raise MemoryFileError(f"a {type(part).__name__} cannot learn {attribute!r}")
        setattr(part, attribute, value)
    if name is not None:
        part.name = str(name)
    return part
