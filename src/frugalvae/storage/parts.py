"""What a file keeps of a part, how the part is made of it again, and which classes it may name.

A part may say it itself: ``state()`` gives a dictionary of plain values, arrays and other parts,
and the class method ``from_state(state)`` makes the part of such a dictionary. Most need neither:

- The state of a dataclass are its fields.
- The state of any other part are the arguments of its constructor, ``settings``, and what it has
  ``learned``: its attributes whose names end in ``_``. An attribute whose name begins with ``_``
  is derived from those. It is never written: the constructor sets it to nothing, and it is made
  when it is first needed. A frozen model that a head uses belongs there.

A file may name classes of ours, of installed plugins, and of modules that the caller trusts.
Nothing else is imported because a file names it: see
:func:`frugalvae.parts.registry.check_trusted`.
"""

from __future__ import annotations

import sys
import types
import typing
from collections.abc import Collection
from dataclasses import fields, is_dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal, cast

import numpy as np

from frugalvae.errors import LABORATORY_COMES_BY, InputError, MemoryFileError
from frugalvae.parts import HEADS, MEMORIES
from frugalvae.parts.registry import LABORATORY, arguments_of, check_trusted, import_outside

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


# --------------------------------------------------------------------------- state


def states_itself(kind: type) -> bool:
    """Whether a part's state is one dictionary, and not settings and what was learned."""
    return hasattr(kind, "state") or is_dataclass(kind)


def state_of(part: Any) -> dict[str, Any]:
    """The state of a part that states itself, or of a dataclass."""
    if hasattr(part, "state"):
        return part.state()
    return {field.name: getattr(part, field.name) for field in fields(part)}


def settings_and_learned(part: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The state of any other part."""
    learned = {name: value for name, value in vars(part).items() if is_learned(name)}
    try:
        return arguments_of(part), learned
    except InputError as error:
        raise InputError(
            f"{type(part).__name__} cannot be saved: {error}, or give the class state() and "
            "from_state()"
        ) from error


def from_state(kind: type, state: dict[str, Any]) -> Any:
    """A part of a class that states itself, or a dataclass whose fields are what they should be."""
    if hasattr(kind, "from_state"):
        return cast("Any", kind).from_state(state)
    if not is_dataclass(kind):
        raise MemoryFileError(f"a {kind.__name__} is not made of fields")
    expected = {field.name for field in fields(kind)}
    if not state.keys() <= expected:  # an older file may lack what has a default
        raise MemoryFileError(f"a {kind.__name__} has the fields {', '.join(sorted(expected))}")
    if is_ours(kind):
        for name, hint in typing.get_type_hints(kind).items():
            if name in state and not fits(state[name], hint):
                raise MemoryFileError(f"{name} of a {kind.__name__} is {str(state[name])[:40]!r}")
    return kind(**state)


def teach(part: Any, learned: dict[str, Any]) -> None:
    """Give a part what it had learned; of ours, only attributes that the class speaks of.

    These are set by the constructor, or annotated in the class. A value must be of the kind
    that the constructor gave it. A part from outside is trusted. Older files lack what was added
    since: that stays as it is.
    """
    kind, fresh = type(part), vars(part)
    annotated = {name for base in kind.__mro__ for name in vars(base).get("__annotations__", ())}
    for attribute, value in learned.items():
        known = attribute in fresh or attribute in annotated or not is_ours(kind)
        if not known or not is_learned(attribute) or hasattr(kind, attribute):
            raise MemoryFileError(f"a {kind.__name__} cannot learn {attribute!r}")
        if is_ours(kind) and attribute in fresh and not alike(fresh[attribute], value):
            raise MemoryFileError(f"{attribute} of a {kind.__name__} is {str(value)[:40]!r}")
    fresh.update(learned)


def alike(fresh: Any, value: Any) -> bool:
    """Whether a value is of the kind of another, which a constructor gave.

    >>> alike(0, 3), alike(0, -3), alike(0, "x"), alike(0.0, 3), alike(None, "x")
    (True, False, False, True, True)
    """
    if fresh is None or value is None:
        return fresh is None
    if isinstance(fresh, float):
        return fits(value, float)
    if type(fresh) is int:
        return type(value) is int and 0 <= value < 2**63
    return type(value) is type(fresh)


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is what a type hint says, as far as fields of ours have such hints.

    >>> fits(3, int), fits(True, int), fits(3, float), fits([1, "x"], list[int])
    (True, False, True, False)
    """
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return value in inner
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, one) for one in inner)
    if origin is list:
        return isinstance(value, list) and all(fits(item, inner[0]) for item in value)
    if origin is np.ndarray:
        return isinstance(value, np.ndarray)
    if hint is float:
        return type(value) in (int, float)
    if hint is int:
        return type(value) is int and abs(value) < 2**63
    return isinstance(value, hint)


def is_learned(attribute: str) -> bool:
    """Whether an attribute of that name is written, and may be read.

    >>> [is_learned(name) for name in ("means_", "means", "_rule", "__class__")]
    [True, False, False, False]
    """
    return attribute.isidentifier() and attribute.endswith("_") and not attribute.startswith("_")
