"""Objects as JSON and named tensors.

Only data is written, and nothing but data is read: numbers, names, lists, tensors, and
objects of the classes that :mod:`~frugalvae.saving.classes` lists. An object is written as
what it is made of, by one of three rules:

- A dataclass: its fields.
- A class with ``stored()`` and ``restored()``: what these give and take.
- Any other (memories, heads, normalisers): the arguments of its constructor, and what it has
  learned, which are the attributes whose names end in ``_``. An attribute whose name begins
  with ``_`` is derived from those: it is never written. The constructor sets it to nothing,
  and it is made when it is first needed. A frozen model that a head uses belongs there.

An object or tensor that is met again is written as a reference to the first: what was shared
is shared after reading. Every tensor is named by the path that leads to it.
"""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from frugalvae.errors import InputError
from frugalvae.registry import arguments_of
from frugalvae.saving.classes import is_learned, name_of
from frugalvae.symmetric import pack, square_root


class Writer:
    """Turns objects into JSON, and gathers their tensors by name.

    Parameters
    ----------
    half
        Store float32 as float16, but for what a class names in ``exact``, and for
        symmetric matrices.

    Examples
    --------
    >>> writer = Writer()
    >>> writer.write({7: torch.zeros(2), 8: torch.ones(2)}, "means")
    {'rows': [7, 8], 'tensor': 'means'}
    >>> writer.tensors
    {'means': tensor([[0., 0.], [1., 1.]])}
    """

    def __init__(self, *, half: bool = False) -> None:
        self.tensors: dict[str, Tensor] = {}
        self._half = half
        self._seen: dict[int, tuple[str, object]] = {}  # holds the objects: ids stay theirs

    def write(self, value: Any, path: str, exact: bool = False) -> Any:
        """JSON for a value; its tensors are kept under names that begin with ``path``."""
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
        is_tensor = isinstance(value, Tensor)
        written = self._tensor(value, path, exact) if is_tensor else self._object(value, path)
        self._seen[id(value)] = path, value
        return written

    def _dict(self, value: dict[Any, Any], path: str, exact: bool) -> dict[str, Any]:
        """Vectors of classes become the rows of one tensor."""
        if not all(type(key) is int for key in value):
            raise InputError(f"{path} has keys that are no whole numbers; a file cannot hold them")
        items = list(value.values())
        if items and all(type(item) is Tensor for item in items):
            alike = {(item.shape, item.dtype) for item in items}
            if len(alike) == 1:
                self._keep(torch.stack(items), path, exact)
                return {"rows": list(value), "tensor": path}
        return {"dict": [[k, self.write(item, f"{path}.{k}", exact)] for k, item in value.items()]}

    def _tensor(self, value: Tensor, path: str, exact: bool) -> dict[str, str]:
        if isinstance(value, nn.Parameter):
            self._keep(value, path, exact)
            return {"parameter": path}
        if value.ndim == 2 and torch.equal(value, value.T):
            self._keep(pack(value), path, exact=True)
            return {"symmetric": path}
        self._keep(value, path, exact)
        return {"tensor": path}

    def _keep(self, value: Tensor, path: str, exact: bool) -> None:
        kept = value.detach().to("cpu", copy=True).contiguous()
        if self._half and kept.dtype == torch.float32 and not exact:
            largest, kept = kept, kept.half()
            if not kept.isfinite().all():
                raise InputError(
                    f"{path} holds {float(largest.abs().max()):g}, and float16 ends at 65504; "
                    "save with dtype='float32', or scale the features to about 1"
                )
        self.tensors[path] = kept

    def _object(self, value: Any, path: str) -> dict[str, Any]:
        kind = type(value)
        written: dict[str, Any] = {"class": name_of(kind)}
        if hasattr(kind, "stored"):
            return written | {"fields": self._stored(value, path)}
        if is_dataclass(value):
            made_of = {field.name: getattr(value, field.name) for field in fields(value)}
            return written | {"fields": self._named(made_of, path)}
        learned = {name: kept for name, kept in vars(value).items() if is_learned(name)}
        written["settings"] = self._named(arguments_of(value), path)
        written["learned"] = self._named(learned, path, getattr(kind, "exact", ()))
        return written | ({"name": value.name} if hasattr(value, "name") else {})

    def _stored(self, value: Any, path: str) -> dict[str, Any]:
        products = getattr(value, "products", ()) if self._half else ()
        return {
            name: (self._product if name in products else self.write)(kept, f"{path}.{name}")
            for name, kept in value.stored().items()
        }

    def _product(self, value: Tensor, path: str) -> Any:
        """A sum of x x^T by its square root, in float32, where that is smaller.

        Of fewer x than dimensions it is, and the directions that no x has stay exactly empty:
        rounding the sum itself would fill them.
        """
        factor = square_root(value)
        if factor.nbytes >= pack(value).nbytes:
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
