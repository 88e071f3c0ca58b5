"""Objects from the JSON and the arrays that :mod:`~frugalvae.storage.writer` made of them.

Whoever wrote a file, reading it makes nothing but data: a class is looked up in a list, its
constructor checks its settings, and no attribute can be set that a class itself defines.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import is_dataclass
from typing import Any, cast

import numpy as np

from frugalvae.errors import MemoryFileError
from frugalvae.maths.arrays import Array
from frugalvae.maths.devices import find_device
from frugalvae.maths.symmetric import unpack
from frugalvae.storage.classes import class_named, is_learned

WIDEST = 16384  # side of a matrix that is made of its square root


class Reader:
    """Makes the objects that a ``Writer`` wrote.

    >>> from frugalvae.storage.writer import Writer
    >>> writer = Writer()
    >>> written = writer.write((1, np.ones((2, 2))), "it")
    >>> Reader(writer.arrays).read(written, "it")
    (1, array([[1., 1.],
           [1., 1.]]))
    """

    def __init__(self, arrays: dict[str, Array]) -> None:
        self.unused = dict(arrays)
        self._made: dict[str, Any] = {}
        self._tensors = False  # whether what is being made holds tensors

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
                rows = self._take(name)
                return {
                    _key(key): self._given(np.array(row))
                    for key, row in zip(keys, rows, strict=True)
                }
            case {"same": str(name)}:
                if name not in self._made:  # nor is what is not finished yet: no cycles
                    raise MemoryFileError(f"{path} refers to {name!r}, which is not there")
                return self._made[name]
        self._made[path] = made = self._make(written, path)
        return made

    def _make(self, written: Any, path: str) -> Any:
        match written:
            case {"tensor": str(name)}:
                return self._given(self._take(name))
            case {"symmetric": str(name)}:
                return self._given(unpack(self._take(name)))
            case {"factor": str(name)}:
                return self._given(_product(self._take(name)))
            case {"parameter": str(name)}:
                return _parameter(self._take(name))
            case {"class": str(name), "fields": dict(made_of)}:
                kind = class_named(name)
                with self._making(kind):
                    return _from_fields(kind, self._named(made_of, path))
            case {"class": str(name), "settings": dict(settings), "learned": dict(learned)}:
                kind = class_named(name)
                part = _from_settings(kind, self._named(settings, path))
                with self._making(kind):
                    return _taught(part, self._named(learned, path), written.get("name"))
        raise MemoryFileError(f"{path} is {str(written)[:80]}, which is nothing that can be made")

    @contextmanager
    def _making(self, kind: type) -> Iterator[None]:
        """Arrays that are read inside the block are what the class holds: arrays, or tensors."""
        before = self._tensors
        self._tensors = getattr(kind, "holds_tensors", False)
        yield
        self._tensors = before

    def _given(self, array: Array) -> Any:
        if not self._tensors:
            return array
        import torch

        return torch.from_numpy(array).to(find_device())

    def _named(self, values: dict[str, Any], path: str) -> dict[str, Any]:
        return {name: self.read(value, f"{path}.{name}") for name, value in values.items()}

    def _take(self, name: str) -> Array:
        """An array in memory of its own: each is used once, or a small file could grow at will."""
        if name not in self.unused:
            raise MemoryFileError(f"the tensor {name!r} is not there, or used twice")
        stored = self.unused.pop(name)
        return stored.astype(np.float32 if stored.dtype == np.float16 else stored.dtype)


def _parameter(array: Array) -> Any:
    """A parameter of a network."""
    import torch

    return torch.nn.Parameter(torch.from_numpy(array).to(find_device()))


def _key(key: Any) -> int:
    if type(key) is not int:
        raise MemoryFileError(f"{key!r} stands where the number of a class is expected")
    return key


def _product(factor: Array) -> Array:
    """F F^T in float64, exactly symmetric."""
    if factor.ndim != 2 or len(factor) > WIDEST:
        raise MemoryFileError(f"it holds a square root of shape {tuple(factor.shape)}")
    factor = factor.astype(np.float64)
    product = factor @ factor.T
    symmetric: Array = (product + product.T) / 2
    return symmetric


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
