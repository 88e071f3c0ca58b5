"""Parts by name, imported when they are first made: some need PyTorch."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import asdict, is_dataclass
from importlib import import_module
from typing import Any

from frugalvae.errors import InputError, UnknownNameError, suggestion
from frugalvae.extras import needing


def settings_of(part: Any) -> dict[str, Any]:
    """Every setting of a part as it stands, defaults included.

    Settings are the parameters of its constructor, looked up on the part itself or
    on the ``settings`` or ``training`` that it keeps them in.

    >>> settings_of(type("Part", (), {"__init__": lambda self, size=3: None, "size": 3})())
    {'size': 3}
    """
    found = arguments_of(part)
    for name, value in found.items():
        if is_dataclass(value) and not isinstance(value, type):
            found[name] = {type(value).__name__: asdict(value)}
    return found


def arguments_of(part: Any) -> dict[str, Any]:
    """The same as they were given: a part made with them has the same settings."""
    places = [part, getattr(part, "settings", None), getattr(part, "training", None)]
    found = {}
    for name in inspect.signature(type(part)).parameters:
        place = next(place for place in places if hasattr(place, name))
        found[name] = getattr(place, name)
    return found


class Registry(Mapping[str, Mapping[str, Any]]):
    """Names of parts, each with the settings that distinguish it.

    >>> parts = Registry("fraction", {"half": ("fractions:Fraction", {"denominator": 2})})
    >>> parts.make("half", {"numerator": 1})
    Fraction(1, 2)
    >>> parts["half"]
    {'denominator': 2}
    """

    def __init__(self, kind: str, entries: Mapping[str, tuple[str, Mapping[str, Any]]]) -> None:
        self.kind = kind
        self._entries = entries

    def make(self, name: str, settings: Mapping[str, Any]) -> Any:
        """The part of that name, with settings beside those that make it what it is."""
        preset, part = self[name], self.part(name)
        known = list(inspect.signature(part).parameters)
        for setting in settings:
            if setting not in known:
                raise InputError(
                    f"{self.kind} {name!r} has no setting {setting!r}.{suggestion(setting, known)} "
                    f"Known: {', '.join(known) or 'none'}"
                )
            if setting in preset and settings[setting] != preset[setting]:
                raise InputError(
                    f"{self.kind} {name!r} is made by {setting}={preset[setting]!r}, which cannot "
                    f"be changed to {settings[setting]!r}; start from another {self.kind}"
                )
        made = part(**{**preset, **settings})
        with contextlib.suppress(AttributeError):
            made.name = name  # what reports call it
        return made

    @property
    def modules(self) -> dict[str, str]:
        """The name of each part's class, and the module that defines it."""
        places = [place.split(":") for place, _ in self._entries.values()]
        return {attribute: module for module, attribute in places}

    def part_of_class(self, name: str) -> Any:
        """The part whose class has that name, imported now."""
        ends = (entry for entry, (place, _) in self._entries.items() if place.endswith(f":{name}"))
        return self.part(next(ends))

    def part(self, name: str) -> Any:
        """The class of that name, imported now."""
        _ = self[name]  # or say which there are
        module, attribute = self._entries[name][0].split(":")
        with needing(f"{self.kind} {name!r}", name):
            return getattr(import_module(module), attribute)

    def __getitem__(self, name: str) -> Mapping[str, Any]:
        """The settings that make the part of that name."""
        if name not in self._entries:
            raise UnknownNameError(
                f"there is no {self.kind} {name!r}.{suggestion(name, self._entries)} "
                f"Known: {', '.join(self._entries)}"
            )
        return self._entries[name][1]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)
