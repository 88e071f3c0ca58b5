"""Objects as JSON and named arrays, and back.

Only data is written: numbers, names, lists, arrays, and the states of objects, which
:mod:`~frugalvae.storage.parts` defines. An object or array that is met again is written as a
reference to the first: what was shared is shared after reading. Every array is named by the
path that leads to it. Tensors of PyTorch are written as arrays; a class that needs them back
says ``holds_tensors``.

Whoever wrote a file, reading it makes nothing but data: a class is one of ours or of a module
that the caller trusts, its constructor checks its settings, no attribute can be set that a class
does not have, and nothing is allocated that is out of proportion to the file.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from frugalvae.errors import InputError, MemoryFileError
from frugalvae.maths.arrays import Array
from frugalvae.maths.devices import find_device
from frugalvae.maths.matrices import pack, unpack
from frugalvae.storage.parts import (
    class_to_make,
    from_state,
    name_of,
    settings_and_learned,
    state_of,
    states_itself,
    teach,
)

ROOM, PER_BYTE = 2**27, 8  # bytes of arrays that a file may become: so many, and so many for each


class Writer:
    """Turns objects into JSON, and gathers their arrays by name.

    Examples
    --------
    >>> writer = Writer()
    >>> writer.write({7: np.zeros(2), 8: np.ones(2)}, "means")
    {'rows': [7, 8], 'tensor': 'means'}
    >>> writer.arrays["means"].tolist()
    [[0.0, 0.0], [1.0, 1.0]]
    """

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        self.classes: set[str] = set()  # names of the classes of all objects
        self._seen: dict[int, tuple[str, object]] = {}  # holds the objects: ids stay theirs

    def write(self, value: Any, path: str) -> Any:
        """JSON for a value; its arrays are kept under names that begin with ``path``."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"number": repr(value)}
        if isinstance(value, list):
            return [self.write(item, f"{path}.{n}") for n, item in enumerate(value)]
        if isinstance(value, tuple):
            return {"tuple": self.write(list(value), path)}
        if isinstance(value, dict):
            return self._dict(value, path)
        if id(value) in self._seen:
            return {"same": self._seen[id(value)][0]}
        numeric = isinstance(value, np.ndarray) or is_tensor(value)
        written = self._array(value, path) if numeric else self._object(value, path)
        self._seen[id(value)] = path, value
        return written

    def _dict(self, value: dict[Any, Any], path: str) -> dict[str, Any]:
        """Vectors of classes become the rows of one array."""
        kinds = {type(key) for key in value}
        if kinds not in (set(), {int}, {str}):
            raise InputError(f"{path} has keys that are neither all names nor all whole numbers")
        items = list(value.values())
        numeric = all(type(item) is np.ndarray or is_tensor(item) for item in items)
        if kinds == {int} and numeric:
            rows = [as_array(item) for item in items]
            if len({(row.shape, row.dtype) for row in rows}) == 1:
                self._keep(np.stack(rows), path)
                return {"rows": list(value), "tensor": path}
        return {"dict": [[k, self.write(item, f"{path}.{k}")] for k, item in value.items()]}

    def _array(self, value: Any, path: str) -> dict[str, str]:
        array = as_array(value)
        if type(value).__name__ == "Parameter":
            self._keep(array, path)
            return {"parameter": path}
        if array.ndim == 2 and np.array_equal(array, array.T):
            self._keep(pack(array), path)
            return {"symmetric": path}
        self._keep(array, path)
        return {"tensor": path}

    def _keep(self, array: Array, path: str) -> None:
        self.arrays[path] = np.array(array, order="C")

    def _object(self, value: Any, path: str) -> dict[str, Any]:
        kind = type(value)
        written: dict[str, Any] = {"class": name_of(kind)}
        self.classes.add(written["class"])
        if states_itself(kind):
            written["fields"] = self._named(state_of(value), path)
            return written
        settings, learned = settings_and_learned(value)
        written["settings"] = self._named(settings, path)
        written["learned"] = self._named(learned, path)
        return written | ({"name": value.name} if hasattr(value, "name") else {})

    def _named(self, values: dict[str, Any], path: str) -> dict[str, Any]:
        return {name: self.write(value, f"{path}.{name}") for name, value in values.items()}


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor of PyTorch, which need not be installed to ask."""
    return type(value).__module__.startswith("torch") and hasattr(value, "detach")


def as_array(value: Any) -> Array:
    """An array, or a tensor as one."""
    return value.detach().cpu().numpy() if is_tensor(value) else value


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
        match written:
            case {"number": ("inf" | "-inf" | "nan") as number} if len(written) == 1:
                return float(number)
            case {"tuple": list(items)} if len(written) == 1:
                return tuple(self.read(items, path))
            case {"dict": list(items)} if len(written) == 1:
                pairs = _keyed(items, (int, str))
                return {key: self.read(item, f"{path}.{key}") for key, item in pairs}
            case {"rows": list(keys), "tensor": str(name)} if len(written) == 2:
                rows = self._take(name)
                if len(keys) != len(rows):
                    raise MemoryFileError(f"{path} has {len(rows)} rows for {len(keys)} classes")
                pairs = _keyed([[key, row] for key, row in zip(keys, rows, strict=True)], (int,))
                return {key: self._given(np.array(row)) for key, row in pairs}
            case {"same": str(name)} if len(written) == 1:
                if name not in self._made:  # nor is what is not finished yet: no cycles
                    raise MemoryFileError(f"{path} refers to {name!r}, which is not there")
                return self._made[name]
        self._made[path] = made = self._make(written, path)
        return made

    def _make(self, written: Any, path: str) -> Any:
        match written:
            case {"tensor": str(name)} if len(written) == 1:
                return self._given(self._take(name))
            case {"symmetric": str(name)} if len(written) == 1:
                triangle = self._take(name)
                self.spend(2 * triangle.nbytes)
                return self._given(unpack(triangle))
            case {"parameter": str(name)} if len(written) == 1:
                import torch

                stored = torch.from_numpy(self._take(name))
                return torch.nn.Parameter(stored.to(find_device()))
            case {"class": str(name), "fields": dict(state)} if len(written) == 2:
                kind = class_to_make(name, self.trust)
                with self._making(kind):
                    return from_state(kind, self._named(state, path))
            case {"class": str(name), "settings": dict(settings), "learned": dict(learned)} if (
                written.keys() <= {"class", "settings", "learned", "name"}
            ):
                kind = class_to_make(name, self.trust)
                if states_itself(kind):
                    raise MemoryFileError(f"a {kind.__name__} is not made from settings")
                part = kind(**self._named(settings, path))
                with self._making(kind):
                    teach(part, self._named(learned, path))
                if isinstance(written.get("name"), str):
                    part.name = written["name"]
                if hasattr(part, "named_by_file"):
                    part.named_by_file(self.trust)
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
        return self.unused.pop(name).copy()


def _keyed(pairs: list[Any], kinds: tuple[type, ...]) -> list[tuple[Any, Any]]:
    """Keys, which differ and are all of one kind, and their values."""
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2 or type(pair[0]) not in kinds:
            raise MemoryFileError(f"{str(pair)[:40]} stands where a key and its value are expected")
    if len({key for key, _ in pairs}) < len(pairs) or len({type(key) for key, _ in pairs}) > 1:
        raise MemoryFileError("it has two entries for one key, or keys of two kinds")
    return [(key, item) for key, item in pairs]
