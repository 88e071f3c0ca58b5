"""Objects as JSON and named arrays.

Only data is written: numbers, names, lists, arrays, and the states of objects, which
:mod:`~frugalvae.storage.state` defines. An object or array that is met again is written as a
reference to the first: what was shared is shared after reading. Every array is named by the
path that leads to it. Tensors of PyTorch are written as arrays; a class that needs them back
says ``holds_tensors``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from frugalvae.errors import InputError
from frugalvae.maths.arrays import Array
from frugalvae.maths.symmetric import pack, square_root
from frugalvae.storage.classes import name_of
from frugalvae.storage.state import settings_and_learned, state_of, states_itself


class Writer:
    """Turns objects into JSON, and gathers their arrays by name.

    Parameters
    ----------
    half
        Store float32 as float16, but for what a class names in ``exact``, and for
        symmetric matrices.

    Examples
    --------
    >>> writer = Writer()
    >>> writer.write({7: np.zeros(2), 8: np.ones(2)}, "means")
    {'rows': [7, 8], 'tensor': 'means'}
    >>> writer.arrays["means"].tolist()
    [[0.0, 0.0], [1.0, 1.0]]
    """

    def __init__(self, *, half: bool = False) -> None:
        self.arrays: dict[str, Array] = {}
        self._half = half
        self._seen: dict[int, tuple[str, object]] = {}  # holds the objects: ids stay theirs

    def write(self, value: Any, path: str, exact: bool = False) -> Any:
        """JSON for a value; its arrays are kept under names that begin with ``path``."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"number": repr(value)}
        if isinstance(value, list):
            return [self.write(item, f"{path}.{n}", exact) for n, item in enumerate(value)]
        if isinstance(value, tuple):
            return {"tuple": self.write(list(value), path, exact)}
        if isinstance(value, dict):
            return self._dict(value, path, exact)
        if id(value) in self._seen:
            return {"same": self._seen[id(value)][0]}
        numeric = isinstance(value, np.ndarray) or is_tensor(value)
        written = self._array(value, path, exact) if numeric else self._object(value, path)
        self._seen[id(value)] = path, value
        return written

    def _dict(self, value: dict[Any, Any], path: str, exact: bool) -> dict[str, Any]:
        """Vectors of classes become the rows of one array."""
        kinds = {type(key) for key in value}
        if kinds not in (set(), {int}, {str}):
            raise InputError(f"{path} has keys that are neither all names nor all whole numbers")
        items = list(value.values())
        numeric = all(type(item) is np.ndarray or is_tensor(item) for item in items)
        if kinds == {int} and numeric:
            rows = [as_array(item) for item in items]
            if len({(row.shape, row.dtype) for row in rows}) == 1:
                self._keep(np.stack(rows), path, exact)
                return {"rows": list(value), "tensor": path}
        return {"dict": [[k, self.write(item, f"{path}.{k}", exact)] for k, item in value.items()]}

    def _array(self, value: Any, path: str, exact: bool) -> dict[str, str]:
        array = as_array(value)
        if type(value).__name__ == "Parameter":
            self._keep(array, path, exact)
            return {"parameter": path}
        if array.ndim == 2 and np.array_equal(array, array.T):
            self._keep(pack(array), path, exact=True)
            return {"symmetric": path}
        self._keep(array, path, exact)
        return {"tensor": path}

    def _keep(self, array: Array, path: str, exact: bool) -> None:
        kept = np.array(array, order="C")
        if self._half and kept.dtype == np.float32 and not exact:
            with np.errstate(over="ignore"):
                kept = kept.astype(np.float16)
            if not np.isfinite(kept).all():
                raise InputError(
                    f"{path} holds {float(np.abs(array).max()):g}, and float16 ends at 65504; "
                    "save with dtype='float32', or scale the features to about 1"
                )
        self.arrays[path] = kept

    def _object(self, value: Any, path: str) -> dict[str, Any]:
        kind = type(value)
        written: dict[str, Any] = {"class": name_of(kind)}
        if states_itself(kind):
            return written | {"fields": self._state(value, path)}
        settings, learned = settings_and_learned(value)
        written["settings"] = self._named(settings, path)
        written["learned"] = self._named(learned, path, getattr(kind, "exact", ()))
        return written | ({"name": value.name} if hasattr(value, "name") else {})

    def _state(self, value: Any, path: str) -> dict[str, Any]:
        products = getattr(value, "products", ()) if self._half else ()
        return {
            name: (self._product if name in products else self.write)(kept, f"{path}.{name}")
            for name, kept in state_of(value).items()
        }

    def _product(self, value: Any, path: str) -> Any:
        """A sum of x x^T by its square root, in float32, where that is smaller.

        Of fewer x than dimensions it is, and the directions that no x has stay exactly empty:
        rounding the sum itself would fill them.
        """
        array = as_array(value)
        factor = square_root(array)
        if factor.nbytes >= pack(array).nbytes:
            return self.write(value, path)
        self._keep(factor, path, exact=True)
        return {"factor": path}

    def _named(
        self, values: dict[str, Any], path: str, exact: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        return {
            name: self.write(value, f"{path}.{name}", name in exact)
            for name, value in values.items()
        }


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor of PyTorch, which need not be installed to ask."""
    return type(value).__module__.startswith("torch") and hasattr(value, "detach")


def as_array(value: Any) -> Array:
    """An array, or a tensor as one."""
    array: Array = value.detach().cpu().numpy() if is_tensor(value) else value
    return array
