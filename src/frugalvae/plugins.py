"""Memories, heads and encoders by name: ours, an installed package's, or ``module:Class``.

A part is imported when it is made: some need PyTorch.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import asdict, is_dataclass
from importlib import import_module
from typing import Any

from frugalvae.errors import EXTRAS, FrugalError, InputError, UnknownNameError, needing, suggestion

#: Folders in which ``module:Class`` is also looked for; the command line adds the current one.
FOLDERS: list[str] = []

#: Parameters that stand for any number of others.
REST = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


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
    for name in parameters_of(type(part)):
        holders = [place for place in places if hasattr(place, name)]
        if not holders:
            kind = type(part).__name__
            raise InputError(
                f"{kind} takes {name!r} and has no attribute of that name; store it in the "
                f"constructor: self.{name} = {name}"
            )
        found[name] = getattr(holders[0], name)
    return found


def parameters_of(kind: type) -> dict[str, inspect.Parameter]:
    """The settings that a class takes. ``**kwargs`` stands for those of its base class.

    >>> class Base:
    ...     def __init__(self, size=3): ...
    >>> class Part(Base):
    ...     def __init__(self, depth=1, **kwargs): super().__init__(**kwargs)
    >>> list(parameters_of(Part))
    ['depth', 'size']
    """
    found: dict[str, inspect.Parameter] = {}
    open_ended = False
    for base in kind.__mro__[:-1]:  # object takes nothing
        if not {"__signature__", "__init__", "__new__"} & vars(base).keys():
            continue
        own = inspect.signature(base).parameters.values()
        found |= {one.name: one for one in own if one.name not in found and one.kind not in REST}
        open_ended = any(one.kind is one.VAR_KEYWORD for one in own)
        if not open_ended:
            break
    if open_ended:
        raise InputError(
            f"{kind.__name__} takes **kwargs, so its settings have no names to record; name each "
            "of them in the constructor"
        )
    return found


class Registry(Mapping[str, Mapping[str, Any]]):
    """Names of parts, each with the settings that distinguish it.

    Iterating gives our own names. Any other is looked up among the entry points
    ``frugalvae.memories``, ``.heads`` or ``.encoders`` of installed packages, or says itself
    where the part is: ``my_module:MyMemory``.

    Parameters
    ----------
    group
        The entry points to look at.
    methods, defaults
        What a part from outside must have, and the class that gives most of it.

    Examples
    --------
    >>> parts = Registry("fraction", {"half": ("fractions:Fraction", {"denominator": 2})})
    >>> parts.make("half", {"numerator": 1})
    Fraction(1, 2)
    >>> parts["half"]
    {'denominator': 2}
    >>> parts.make("decimal:Decimal", {"value": "0.5"})
    Decimal('0.5')
    """

    def __init__(
        self,
        kind: str,
        entries: Mapping[str, tuple[str, Mapping[str, Any]]],
        *,
        group: str = "",
        methods: tuple[str, ...] = (),
        defaults: str = "",
    ) -> None:
        self.kind = kind
        self.group = group
        self.methods = methods
        self.defaults = defaults
        self._entries = entries

    def make(self, name: str, settings: Mapping[str, Any]) -> Any:
        """The part of that name, with settings besides those that make it what it is."""
        preset, part = self[name], self.part(name)
        known = list(parameters_of(part))
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
        missing = [setting for setting in self.needed(name) if setting not in settings]
        if missing:
            raise InputError(
                f"{self.kind} {name!r} needs the setting {' and '.join(map(repr, missing))}"
            )
        try:
            made = part(**{**preset, **settings})
        except (TypeError, ValueError) as error:
            if self.is_ours(name) or isinstance(error, FrugalError):
                raise
            raise InputError(
                f"{self.kind} {name!r} cannot be made with {dict(settings)}: {error}"
            ) from error
        if not self.is_ours(name):
            self.check(made, name)
        with contextlib.suppress(AttributeError):
            made.name = name  # what reports call it
        return made

    def needed(self, name: str) -> list[str]:
        """Settings that have no default."""
        preset, known = self[name], parameters_of(self.part(name)).values()
        return [one.name for one in known if one.default is one.empty and one.name not in preset]

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
        place = self._place(name)
        with needing(f"{self.kind} {name!r}", name):
            if self.is_ours(name):
                module, attribute = place.split(":")
                return getattr(import_module(module), attribute)
            return self._from_outside(name, place)

    def is_ours(self, name: object) -> bool:
        """Whether a name is one of the package's own."""
        return isinstance(name, str) and name in self._entries

    def is_foreign(self, name: object) -> bool:
        """Whether a part is not ours, and the caller has not imported its module either."""
        if self.is_ours(name) or name not in self:
            return False
        return self._place(str(name)).partition(":")[0] not in sys.modules

    def _place(self, name: str) -> str:
        """Where a part is, as ``module:Class``."""
        if self.is_ours(name):
            return self._entries[name][0]
        if isinstance(name, str) and ":" in name:
            return name
        installed = self._installed()
        if name not in installed:
            known = [*self._entries, *installed]
            or_own = "; or one of your own as module:Class" if self.group else ""
            raise UnknownNameError(
                f"there is no {self.kind} {name!r}.{suggestion(name, known)} "
                f"Known: {', '.join(known)}{or_own}"
            )
        return installed[name]

    def offers(self, place: str) -> bool:
        """Whether an installed package offers a part at ``module:Class``."""
        return place in self._installed().values()

    def _installed(self) -> dict[str, str]:
        """Parts that installed packages offer."""
        if not self.group:
            return {}
        from importlib.metadata import entry_points  # slow: only for names that are not ours

        return {entry.name: entry.value for entry in entry_points(group=self.group)}

    def _from_outside(self, name: str, place: str) -> Any:
        """A class from anywhere, or an error that says what is wrong with its name."""
        module, _, attribute = place.partition(":")
        what = f"{self.kind} {name!r}"
        if not attribute.isidentifier() or not all(map(str.isidentifier, module.split("."))):
            raise InputError(f"{what} is not of the form module:Class, such as my_module:MyMemory")
        found = import_outside(module, what)
        part = getattr(found, attribute, None)
        if not isinstance(part, type):
            classes = [key for key, value in vars(found).items() if isinstance(value, type)]
            raise InputError(
                f"{what}: {module} has no class {attribute!r}.{suggestion(attribute, classes)}"
            )
        return part

    def check(self, part: Any, name: str) -> None:
        """Refuse a part that lacks a method."""
        missing = [method for method in self.methods if not hasattr(part, method)]
        if missing:
            raise InputError(
                f"{self.kind} {name!r} has no {', '.join(missing)}; write that, or inherit from "
                f"{self.defaults}, which gives most; see docs/extending.md"
            )

    def __getitem__(self, name: str) -> Mapping[str, Any]:
        """The settings that make the part of that name."""
        _ = self._place(name)  # or say which there are
        return self._entries[name][1] if self.is_ours(name) else {}

    def __contains__(self, name: object) -> bool:
        try:
            return isinstance(name, str) and bool(self._place(name))
        except UnknownNameError:
            return False

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def import_outside(module: str, what: str) -> Any:
    """A module from outside; what goes wrong in it is told with the line."""
    sys.path.extend(folder for folder in FOLDERS if folder not in sys.path)
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] in EXTRAS:
            raise  # something of ours that is not installed, which the caller tells
        if not f"{module}.".startswith(f"{error.name}."):
            raise _failed(what, module, error) from error
        raise InputError(
            f"{what}: there is no module {error.name!r}; run the command in its folder, install "
            "it, or add its folder to PYTHONPATH"
        ) from error
    except Exception as error:
        raise _failed(what, module, error) from error


def _failed(what: str, module: str, error: Exception) -> InputError:
    """An error in a module from outside, with the line where it happened."""
    last = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.lineno][-1]
    if isinstance(error, SyntaxError):
        last = traceback.FrameSummary(error.filename or module, error.lineno, "")
    return InputError(
        f"{what}: importing {module} failed in {last.filename}, line {last.lineno}: "
        f"{type(error).__name__}: {error}"
    )
