"""The state of a part: what a file keeps of it, and what it is made of again.

A part may say it itself: ``state()`` gives a dictionary of plain values, arrays and other parts,
and the class method ``from_state(state)`` makes the part of such a dictionary. Most need neither:

- The state of a dataclass are its fields.
- The state of any other part are the arguments of its constructor, ``settings``, and what it has
  ``learned``: its attributes whose names end in ``_``. An attribute whose name begins with ``_``
  is derived from those. It is never written: the constructor sets it to nothing, and it is made
  when it is first needed. A frozen model that a head uses belongs there.
"""

from __future__ import annotations

import types
import typing
from dataclasses import fields, is_dataclass
from typing import Any, Literal, cast

import numpy as np

from frugalvae.errors import InputError, MemoryFileError
from frugalvae.plugins import arguments_of
from frugalvae.storage.classes import is_learned, is_ours


def states_itself(kind: type) -> bool:
    """Whether a part's state is one dictionary, and not settings and what was learned."""
    return hasattr(kind, "state") or is_dataclass(kind)


def state_of(part: Any) -> dict[str, Any]:
    """The state of a part that states itself, or of a dataclass."""
    if hasattr(part, "state"):
        state: dict[str, Any] = part.state()
        return state
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


def from_settings(kind: type, settings: dict[str, Any]) -> Any:
    """A part that knows nothing yet; its constructor checks the settings."""
    if states_itself(kind):
        raise MemoryFileError(f"a {kind.__name__} is not made from settings")
    return kind(**settings)


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
