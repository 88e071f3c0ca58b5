"""Parts and other values as JSON and named arrays, and back.

A part is its class and one state, ``{"class": "RidgeHead", "state": {...}}``: the arguments of its
constructor, and what it has learned, the attributes whose names end in ``_``. An attribute whose
name begins with ``_`` is derived from those: it is never written, the constructor sets it to
nothing, and it is made when it is first needed. A part may say it itself: ``state()`` gives a
dictionary, and the class method ``from_state(state)`` makes the part of such a dictionary.

An object or array that is met again is written as a reference to the first: what was shared is
shared after reading. Every array is named by the path that leads to it. Tensors of PyTorch are
written as arrays; a class that needs them back sets ``holds_tensors``.

Whoever wrote a file, reading it makes nothing but data. A class is one of ours, of an installed
plugin, or of a module that the caller trusts (:func:`frugalvae.parts.registry.check_trusted`); its
constructor checks its settings; no attribute can be set that a class does not have; and nothing
is allocated that is out of proportion to the file.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Any, cast

import numpy as np

from frugalvae.errors import LABORATORY_COMES_BY, InputError, MemoryFileError
from frugalvae.maths.arrays import Array, find_device, pack, unpack
from frugalvae.parts import HEADS, MEMORIES
from frugalvae.parts.registry import (
    LABORATORY,
    arguments_of,
    check_trusted,
    import_outside,
    parameters_of,
)
from frugalvae.storage.tables import as_array, check_record, is_tensor

ROOM, PER_BYTE = 2**27, 8  # bytes of arrays that a file may become: so many, and so many for each

#: What our memories and heads are made of, and where it is defined.
HELPERS = {
    "Decoder": "frugalvae.paper.nullspace",
    "LayerState": "frugalvae.paper.records",
    "PriorState": "frugalvae.paper.records",
    "MLP": "frugalvae.paper.networks",
    "ClasswiseNormaliser": "frugalvae.paper.normalise",
    "GlobalNormaliser": "frugalvae.paper.normalise",
    "LayerInputs": "frugalvae.paper.nullspace",
    "FixedPointPrior": "frugalvae.paper.priors",
    "NormalPrior": "frugalvae.paper.priors",
    "SinglePrior": "frugalvae.paper.priors",
    "UniformPrior": "frugalvae.paper.priors",
}


# --------------------------------------------------------------------------- writing


class Writer:
    """Turns values into JSON, and gathers their arrays by name.

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
        self._written: dict[int, tuple[str, object]] = {}  # holds the objects: ids stay theirs

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
        if id(value) in self._written:
            return {"same": self._written[id(value)][0]}
        numeric = isinstance(value, np.ndarray) or is_tensor(value)
        written = self._array(value, path) if numeric else self._part(value, path)
        self._written[id(value)] = path, value
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
        array, form = as_array(value), "tensor"
        if type(value).__name__ == "Parameter":
            form = "parameter"
        elif array.ndim == 2 and np.array_equal(array, array.T):
            array, form = pack(array), "symmetric"
        self._keep(array, path)
        return {form: path}

    def _keep(self, array: Array, path: str) -> None:
        self.arrays[path] = np.array(array, order="C")

    def _part(self, part: Any, path: str) -> dict[str, Any]:
        name = name_of(type(part))
        self.classes.add(name)
        state = {key: self.write(item, f"{path}.{key}") for key, item in state_of(part).items()}
        own = getattr(part, "name", None)  # what it was asked for by, which reports show
        return {"class": name, "state": state} | ({"name": own} if isinstance(own, str) else {})


def state_of(part: Any) -> dict[str, Any]:
    """What a file keeps of a part: what it says itself, or its settings and what it learned."""
    if hasattr(part, "state"):
        return cast("dict[str, Any]", part.state())
    learned = {name: value for name, value in vars(part).items() if is_learned(name)}
    try:
        return arguments_of(part) | learned
    except InputError as error:
        raise InputError(
            f"{type(part).__name__} cannot be saved: {error}, or give the class state() and "
            "from_state()"
        ) from error


def is_learned(attribute: str) -> bool:
    """Whether an attribute of that name is written, and may be read.

    >>> [is_learned(name) for name in ("means_", "means", "_rule", "__class__")]
    [True, False, False, False]
    """
    return attribute.isidentifier() and attribute.endswith("_") and not attribute.startswith("_")


# --------------------------------------------------------------------------- reading


class Reader:
    """Makes the values that a ``Writer`` wrote.

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
            case {"class": str(kind), "state": dict(state), **rest} if rest.keys() <= {"name"}:
                return self._part(class_to_make(kind, self.trust), state, rest.get("name"), path)
        raise MemoryFileError(
            f"{path} is {str(written)[:80]}, which is not a value this format allows"
        )

    def _part(self, kind: type, state: dict[str, Any], name: Any, path: str) -> Any:
        with self._making(kind):
            read = {key: self.read(item, f"{path}.{key}") for key, item in state.items()}
            part = from_state(kind, read)
        if isinstance(name, str):
            with suppress(AttributeError):
                part.name = name
        if hasattr(part, "named_by_file"):
            part.named_by_file(self.trust)
        return part

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


def from_state(kind: type, state: dict[str, Any]) -> Any:
    """The part whose state this is: the inverse of :func:`state_of`."""
    if hasattr(kind, "from_state"):
        return cast("Any", kind).from_state(state)
    settings = {name: state[name] for name in parameters_of(kind) if name in state}
    part = kind(**settings)
    restore_learned(part, {name: kept for name, kept in state.items() if name not in settings})
    if is_ours(kind):
        check_record(part)
    return part


def restore_learned(part: Any, learned: dict[str, Any]) -> None:
    """Give a part what it had learned; of ours, only attributes that the class speaks of.

    These are set by the constructor, or annotated in the class. A value must be of the kind
    that the constructor gave it. A part from outside is trusted.
    """
    kind, fresh, ours = type(part), vars(part), is_ours(type(part))
    annotated = {name for base in kind.__mro__ for name in vars(base).get("__annotations__", ())}
    for attribute, value in learned.items():
        known = attribute in fresh or attribute in annotated or not ours
        if not known or not is_learned(attribute) or hasattr(kind, attribute):
            raise MemoryFileError(f"a {kind.__name__} cannot learn {attribute!r}")
        if ours and attribute in fresh and not same_kind(fresh[attribute], value):
            raise MemoryFileError(f"{attribute} of a {kind.__name__} is {str(value)[:40]!r}")
    fresh.update(learned)


def same_kind(fresh: Any, value: Any) -> bool:
    """Whether a value is of the kind of another, which a constructor gave.

    >>> same_kind(0, 3), same_kind(0, -3), same_kind(0, "x"), same_kind(0.0, 3)
    (True, False, False, True)
    >>> same_kind(None, "x")
    True
    """
    if fresh is None or value is None:
        return fresh is None
    if isinstance(fresh, float):
        return type(value) in (int, float)
    if type(fresh) is int:
        return type(value) is int and 0 <= value < 2**63
    return type(value) is type(fresh)


# --------------------------------------------------------------------------- classes


def is_ours(kind: type) -> bool:
    """Whether a class is one that every installation knows by its name alone."""
    places = {**HELPERS, **MEMORIES.modules, **HEADS.modules}
    registered = places.get(kind.__name__) == kind.__module__
    return registered and kind.__module__.startswith("frugalvae.")


def name_of(kind: type) -> str:
    """What a class is called in a file: its name, and where it is defined if it is not ours.

    >>> from fractions import Fraction
    >>> name_of(Fraction)
    'fractions:Fraction'
    """
    if is_ours(kind):
        return kind.__name__
    module, name = kind.__module__, kind.__qualname__
    if module == "__main__" or getattr(sys.modules.get(module), name, None) is not kind:
        raise InputError(
            f"{module}.{name} cannot be saved: a file names a class by its module, and this one "
            "cannot be imported from there; define it at the top of a module of its own"
        )
    return f"{module}:{name}"


def class_named(name: str, trust: Collection[str] = ()) -> type:
    """The class that a file names, imported now: some need PyTorch.

    >>> class_named("MomentMemory")
    <class 'frugalvae.moments.memory.MomentMemory'>
    >>> class_named("os:system")
    Traceback (most recent call last):
    ...
    frugalvae.errors.UntrustedError: it holds a 'system' of the module 'os', ...
    """
    if ":" in name:
        module, _, attribute = name.partition(":")
        return _class_from_outside(module, attribute, trust)
    for registry in (MEMORIES, HEADS):
        if name in registry.modules:
            return registry.part_of_class(name)
    if name not in HELPERS:
        raise MemoryFileError(
            f"it holds a {name!r}, which this version does not know; "
            "load it with the version that wrote it, or a newer one"
        )
    return getattr(import_module(HELPERS[name]), name)


def _class_from_outside(module: str, name: str, trust: Collection[str]) -> type:
    """A class of a module that whoever calls has named, or that is installed as a plugin."""
    place, what = f"{module}:{name}", f"it holds a {name!r} of the module {module!r}"
    if not any(parts.offers(place) for parts in (MEMORIES, HEADS)):
        if module.startswith(f"{LABORATORY}.") and find_spec(LABORATORY) is None:
            raise MemoryFileError(
                f"{what}, of the laboratory, which is not installed; {LABORATORY_COMES_BY}"
            )
        check_trusted(place, trust, f"{what}, which is not part of frugalvae")
    try:
        kind = getattr(import_outside(module, f"the file's {name}"), name)
    except (ImportError, AttributeError, InputError) as error:
        raise MemoryFileError(
            f"{what}, which cannot be imported here ({error}); put the module where Python finds it"
        ) from error
    if not isinstance(kind, type):
        raise MemoryFileError(f"{what}, which is no class")
    return kind


def class_to_make(name: str, trust: Collection[str] = ()) -> type:
    """The same, to make one: its own name, not by way of a module that imports it.

    >>> class_to_make("frugalvae.parts.registry:FrugalError", trust=["frugalvae.parts.registry"])
    Traceback (most recent call last):
    ...
    frugalvae.errors.MemoryFileError: it holds a ...FrugalError', which is ...
    """
    kind = class_named(name, trust)
    if name_of(kind) != name:
        raise MemoryFileError(f"it holds a {name!r}, which is {name_of(kind)!r}; make it anew")
    return kind
