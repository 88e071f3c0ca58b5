"""Objects from the JSON and the arrays that :mod:`~frugalvae.storage.writer` made of them.

Whoever wrote a file, reading it makes nothing but data: a class is one of ours or of a module
that the caller trusts, its constructor checks its settings, no attribute can be set that a class
does not have, and nothing is allocated that is out of proportion to the file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from frugalvae.errors import MemoryFileError
from frugalvae.maths.arrays import Array
from frugalvae.maths.devices import find_device
from frugalvae.maths.symmetric import unpack
from frugalvae.storage.classes import class_named
from frugalvae.storage.state import from_settings, from_state, teach

ROOM, PER_BYTE = 2**27, 8  # bytes of arrays that a file may become: so many, and so many for each


class Reader:
    """Makes the objects that a ``Writer`` wrote.

    Parameters
    ----------
    arrays
        By name. Each may be used once.
    trust
        Names of modules that classes may come from besides ours.

    Examples
    --------
    >>> from frugalvae.storage.writer import Writer
    >>> writer = Writer()
    >>> written = writer.write((1, np.ones((2, 2))), "it")
    >>> Reader(writer.arrays).read(written, "it")
    (1, array([[1., 1.],
           [1., 1.]]))
    """

    def __init__(self, arrays: dict[str, Array], trust: Collection[str] = ()) -> None:
        self.unused = dict(arrays)
        self.trust = trust
        self._room = ROOM + PER_BYTE * sum(array.nbytes for array in arrays.values())
        self._made: dict[str, Any] = {}
        self._tensors = False  # whether what is being made holds tensors

    def spend(self, taken: int) -> None:
        """Refuse to become larger than a file of this size should."""
        self._room -= taken
        if self._room < 0:
            raise MemoryFileError("it would take far more memory than a file of its size should")

    def read(self, written: Any, path: str) -> Any:
        """The value of some JSON that was written under the same path."""
        match written:
            case None | bool() | int() | float() | str():
                return written
            case list():
                return [self.read(item, f"{path}.{n}") for n, item in enumerate(written)]
        outline = set(written)
        match written:
            case {"number": ("inf" | "-inf" | "nan") as number} if len(outline) == 1:
                return float(number)
            case {"tuple": list(items)} if len(outline) == 1:
                return tuple(self.read(items, path))
            case {"dict": list(items)} if len(outline) == 1:
                pairs = _keyed(items, (int, str))
                return {key: self.read(item, f"{path}.{key}") for key, item in pairs}
            case {"rows": list(keys), "tensor": str(name)} if len(outline) == 2:
                rows = self._take(name)
                if len(keys) != len(rows):
                    raise MemoryFileError(f"{path} has {len(rows)} rows for {len(keys)} classes")
                pairs = _keyed([[key, row] for key, row in zip(keys, rows, strict=True)], (int,))
                return {key: self._given(np.array(row)) for key, row in pairs}
            case {"same": str(name)} if len(outline) == 1:
                if name not in self._made:  # nor is what is not finished yet: no cycles
                    raise MemoryFileError(f"{path} refers to {name!r}, which is not there")
                return self._made[name]
        self._made[path] = made = self._make(written, outline, path)
        return made

    def _make(self, written: Any, outline: set[str], path: str) -> Any:
        match written:
            case {"tensor": str(name)} if len(outline) == 1:
                return self._given(self._take(name))
            case {"symmetric": str(name)} if len(outline) == 1:
                return self._given(self._symmetric(self._take(name)))
            case {"factor": str(name)} if len(outline) == 1:
                return self._given(self._product(self._take(name)))
            case {"parameter": str(name)} if len(outline) == 1:
                return _parameter(self._take(name))
            case {"class": str(name), "fields": dict(state)} if len(outline) == 2:
                kind = class_named(name, self.trust)
                with self._making(kind):
                    return from_state(kind, self._named(state, path))
            case {"class": str(name), "settings": dict(settings), "learned": dict(learned)} if (
                outline <= {"class", "settings", "learned", "name"}
            ):
                kind = class_named(name, self.trust)
                part = from_settings(kind, self._named(settings, path))
                with self._making(kind):
                    teach(part, self._named(learned, path))
                if isinstance(written.get("name"), str):
                    part.name = written["name"]
                return part
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

    def _symmetric(self, triangle: Array) -> Array:
        self.spend(2 * triangle.nbytes)
        return unpack(triangle)

    def _product(self, factor: Array) -> Array:
        """F F^T in float64, exactly symmetric."""
        if factor.ndim != 2:
            raise MemoryFileError(f"it holds a square root of shape {tuple(factor.shape)}")
        self.spend(3 * 8 * len(factor) ** 2)
        factor = factor.astype(np.float64)
        product = factor @ factor.T
        symmetric: Array = (product + product.T) / 2
        return symmetric


def _parameter(array: Array) -> Any:
    """A parameter of a network."""
    import torch

    return torch.nn.Parameter(torch.from_numpy(array).to(find_device()))


def _keyed(pairs: list[Any], kinds: tuple[type, ...]) -> list[tuple[Any, Any]]:
    """Keys, which differ and are all of one kind, and their values."""
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2 or type(pair[0]) not in kinds:
            raise MemoryFileError(f"{str(pair)[:40]} stands where a key and its value are expected")
    if len({key for key, _ in pairs}) < len(pairs) or len({type(key) for key, _ in pairs}) > 1:
        raise MemoryFileError("it has two entries for one key, or keys of two kinds")
    return [(key, item) for key, item in pairs]
