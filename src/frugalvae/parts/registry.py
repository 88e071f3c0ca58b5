"""Memories, heads and encoders by name: ours, an installed package's, or ``module:Class``.

A part is imported when it is made: some need PyTorch.

:func:`check_trusted` is the one gate to anything that is not ours. What a file, an archive, a
request or another process names is data: it is imported, opened or fetched only if whoever calls
has named it on this very call. What happens to be imported says nothing.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, is_dataclass
from functools import cache
from importlib import import_module
from typing import Any, Self

from frugalvae.errors import (
    EXTRAS,
    LABORATORY_COMES_BY,
    FrugalError,
    InputError,
    UnknownNameError,
    UntrustedError,
    needing,
    suggestion,
)

#: Folders in which ``module:Class`` is also looked for; the command line adds the current one.
FOLDERS: list[str] = []

#: The distribution ``frugalvae-lab``, which offers parts of its own as any package may.
LABORATORY = "frugalvae_lab"

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
    ``frugalvae.parts``, ``.heads`` or ``.encoders`` of installed packages, or says itself
    where the part is: ``my_module:MyMemory``.

    Parameters
    ----------
    group
        The entry points to look at.
    laboratory
        Names that :data:`LABORATORY` offers, so that an error says what to install.
    methods, attributes, defaults
        What the class of a part from outside must have, what the part must have besides once it
        is made, and the class that gives most of it.

    Examples
    --------
    >>> parts = Registry("fraction", {"half": ("fractions:Fraction", {"denominator": 2})})
    >>> parts.make("half", {"numerator": 1})
    Fraction(1, 2)
    >>> parts["half"]
    {'denominator': 2}
    >>> parts.make("decimal:Decimal", {"value": "0.5"}, trust=["decimal"])
    Decimal('0.5')
    """

    def __init__(
        self,
        kind: str,
        entries: Mapping[str, tuple[str, Mapping[str, Any]]],
        *,
        group: str = "",
        laboratory: tuple[str, ...] = (),
        methods: tuple[str, ...] = (),
        attributes: tuple[str, ...] = (),
        defaults: str = "",
    ) -> None:
        self.kind = kind
        self.group, self.laboratory = group, laboratory
        self.methods, self.attributes = methods, attributes
        self.defaults = defaults
        self._entries = entries

    def make(self, name: str, settings: Mapping[str, Any], trust: Collection[str] = ()) -> Any:
        """The part of that name, with settings besides those that make it what it is.

        ``trust`` are modules and classes that whoever calls has named; see :meth:`part`.
        """
        preset, kind = self[name], self.part(name, trust)
        self._check_settings(name, kind, settings)
        try:
            made = kind(**{**preset, **settings})
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

    def _check_settings(self, name: str, kind: type, settings: Mapping[str, Any]) -> None:
        """Refuse settings that a part does not have or lets nobody change, and missing ones."""
        preset, what = self[name], f"{self.kind} {name!r}"
        known = list(parameters_of(kind))
        for setting in settings:
            if setting not in known:
                raise InputError(
                    f"{what} has no setting {setting!r}.{suggestion(setting, known)} "
                    f"Known: {', '.join(known) or 'none'}"
                )
            if setting in preset and settings[setting] != preset[setting]:
                raise InputError(
                    f"{what} is made by {setting}={preset[setting]!r}, which cannot "
                    f"be changed to {settings[setting]!r}; start from another {self.kind}"
                )
        missing = [setting for setting in needed_settings(kind, preset) if setting not in settings]
        if missing:
            raise InputError(f"{what} needs the setting {' and '.join(map(repr, missing))}")

    @property
    def modules(self) -> dict[str, str]:
        """The name of each part's class, and the module that defines it."""
        places = [place.split(":") for place, _ in self._entries.values()]
        return {attribute: module for module, attribute in places}

    def part_of_class(self, name: str) -> Any:
        """The part whose class has that name, imported now."""
        ends = (entry for entry, (place, _) in self._entries.items() if place.endswith(f":{name}"))
        return self.part(next(ends))

    @property
    def names(self) -> list[str]:
        """Our own names, and those that installed packages offer."""
        return list(dict.fromkeys([*self._entries, *self._installed()]))

    def part(self, name: str, trust: Collection[str] = ()) -> Any:
        """The class of that name, imported now, with all methods that a part must have.

        A ``module:Class`` is refused unless ``trust`` names it, or a package offers it.
        """
        place = self.place(name)
        with needing(f"{self.kind} {name!r}", name):
            if self.is_ours(name):
                module, attribute = place.split(":")
                return getattr(import_module(module), attribute)
            kind = self._from_outside(name, place, trust)
        self.check(kind, name)
        return kind

    def is_ours(self, name: object) -> bool:
        """Whether a name is one of the package's own."""
        return isinstance(name, str) and name in self._entries

    def place(self, name: str) -> str:
        """Where a part is, as ``module:Class``."""
        if self.is_ours(name):
            return self._entries[name][0]
        if isinstance(name, str) and ":" in name:
            return name
        installed = self._installed()
        if name not in installed:
            if name in self.laboratory:
                raise UnknownNameError(
                    f"{self.kind} {name!r} is part of the laboratory, which is not installed; "
                    + LABORATORY_COMES_BY
                )
            known = self.names
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
        return installed_parts(self.group, tuple(sys.path))

    def _from_outside(self, name: str, place: str, trust: Collection[str]) -> Any:
        """A class from anywhere, or an error that says what is wrong with its name."""
        module, _, attribute = place.partition(":")
        what = f"{self.kind} {name!r}"
        if not attribute.isidentifier() or not all(map(str.isidentifier, module.split("."))):
            raise InputError(f"{what} is not of the form module:Class, such as my_module:MyMemory")
        if not self.offers(place):
            check_trusted(place, trust, f"{what} is of the module {module!r}, which is not ours")
        found = import_outside(module, what)
        part = getattr(found, attribute, None)
        if not isinstance(part, type):
            classes = [key for key, value in vars(found).items() if isinstance(value, type)]
            raise InputError(
                f"{what}: {module} has no class {attribute!r}.{suggestion(attribute, classes)}"
            )
        return part

    def check(self, part: Any, name: str) -> None:
        """Refuse a part, or a class before it is made, that lacks a method."""
        attributes = () if isinstance(part, type) else self.attributes  # its constructor sets them
        missing = [name for name in (*attributes, *self.methods) if not hasattr(part, name)]
        if missing:
            raise InputError(
                f"{self.kind} {name!r} has no {', '.join(missing)}; write that, or inherit from "
                f"{self.defaults}, which gives most; see docs/extending.md"
            )

    def __getitem__(self, name: str) -> Mapping[str, Any]:
        """The settings that make the part of that name."""
        _ = self.place(name)  # or say which there are
        return self._entries[name][1] if self.is_ours(name) else {}

    def __contains__(self, name: object) -> bool:
        try:
            return isinstance(name, str) and bool(self.place(name))
        except UnknownNameError:
            return False

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


@cache
def installed_parts(group: str, path: tuple[str, ...]) -> dict[str, str]:  # noqa: ARG001
    """Where parts are that packages offer, by name, while ``sys.path`` is ``path``."""
    from importlib.metadata import entry_points  # slow: only for names that are not ours

    return {entry.name: entry.value for entry in entry_points(group=group)}


def needed_settings(kind: type, preset: Collection[str] = ()) -> list[str]:
    """Settings of a class that have no default, but for those that are set already."""
    known = parameters_of(kind).values()
    return [one.name for one in known if one.default is one.empty and one.name not in preset]


# --------------------------------------------------------------------------- trust


def is_trusted(name: str, trust: Collection[str]) -> bool:
    """Whether a name is among those that whoever calls has named.

    A module's name stands for all of it, a package's for all of its modules.

    >>> is_trusted("lab.parts:Memory", ["lab"]), is_trusted("lab.parts:Memory", ["la"])
    (True, False)
    >>> is_trusted("lab.parts:Memory", ["lab.parts:Memory"]), is_trusted("lab/dino", ["lab"])
    (True, False)
    """
    module, colon, _ = name.partition(":")
    inside = colon and any(f"{module}.".startswith(f"{known}.") for known in trust)
    return name in trust or bool(inside)


def check_trusted(
    name: str, trust: Collection[str], what: str, option: str = "", name_to_give: str = ""
) -> None:
    """The gate: refuse what is named by anything but the call itself, and say what to type.

    What to type is ``option`` with ``name_to_give``: by default ``--trust`` and the name's module.

    >>> check_trusted("os:system", [], "it holds a 'system'")
    Traceback (most recent call last):
    ...
    frugalvae.errors.UntrustedError: it holds a 'system'. Nothing that a file names is imported, ...
    """
    if is_trusted(name, trust):
        return
    import shlex

    name_to_give = name_to_give or name.partition(":")[0]
    raise UntrustedError(
        f"{what}. Nothing that a file names is imported, opened or fetched for that reason: if "
        f"you know it, give {option or '--trust'} {shlex.quote(name_to_give)}, or in Python "
        f"trust={[*trust, name_to_give]!r}"
    )


class NamedByFile(str):
    """A name that a file gave, with what was trusted when it was read.

    Copies, clones, and settings that are handed on stay what a file named; what somebody types
    takes its place.
    """

    trust: tuple[str, ...]

    def __new__(cls, name: str, trust: Collection[str] = ()) -> Self:
        """The name, not to be opened but under this trust."""
        made = super().__new__(cls, name)
        made.trust = tuple(trust)
        return made


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
    import traceback

    last = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.lineno][-1]
    if isinstance(error, SyntaxError):
        last = traceback.FrameSummary(error.filename or module, error.lineno, "")
    return InputError(
        f"{what}: importing {module} failed in {last.filename}, line {last.lineno}: "
        f"{type(error).__name__}: {error}"
    )
