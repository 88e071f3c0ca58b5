"""From a TOML file to an experiment, or to a list of all its mistakes."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from frugalvae.errors import FrugalError, InputError, MissingPackageError, suggestion
from frugalvae.files import read_plain
from frugalvae.parts import usual_head
from frugalvae.parts.registry import needed_settings, parameters_of
from frugalvae_lab.bench.schema import mistakes_in_experiment, mistakes_in_row
from frugalvae_lab.bench.spec import PARTS, Experiment, Part, Protocol, Row, defaults, is_ours

#: What is told of parts from outside; ``None`` if they may be imported.
Told = Sequence[Mapping[str, Any]] | None


def read_experiments(
    paths: Sequence[Path],
    changes: Sequence[tuple[str, str, Any]] = (),
    trust: tuple[str, ...] = (),
) -> list[Experiment]:
    """All experiments of some files, or one error that tells every mistake in all of them.

    Parameters
    ----------
    changes
        Settings of the command line, such as ``("memory", "max_steps", 20)``, which take
        the place of those that the files give to all rows.
    trust
        Modules and classes that the files may name: no other is imported.
    """
    found, wrong = [], []
    unused = {change[:2] for change in changes}
    for path in paths:
        try:
            source = read_source(path)
        except (OSError, ValueError) as error:  # of the file, or of TOML
            wrong.append(f"{path}: {error}")
            continue
        for part, key, value in changes:
            if _takes(source, part, key, trust):
                source[part] = {**source.get(part, {}), key: value}
                unused.discard((part, key))
        experiment, mistakes = parse(path.stem, source, trust=trust)
        wrong += [f"{path}: {mistake}" for mistake in mistakes]
        if experiment is not None:
            found.append(experiment)
    wrong += [f"--set {part}.{key}: no row has this setting" for part, key in sorted(unused)]
    if wrong:
        raise InputError(
            f"{len(wrong)} mistake{'s' * (len(wrong) > 1)}; nothing was started:\n  "
            + "\n  ".join(wrong)
        )
    return found


def read_source(path: Path, extending: tuple[Path, ...] = ()) -> dict[str, Any]:
    """The table of a file.

    A file that ``extends`` another has all that the other has: its own keys take the place of
    the other's, and its rows follow them. ``extending`` are files that extend this one.
    """
    if path.resolve() in extending:
        raise InputError(f"{path} extends itself, be it by way of others; name another file")
    try:
        source = tomllib.loads(read_plain(path).decode())
    except RecursionError:
        raise InputError(
            f"{path} has too many brackets in each other; nothing was started"
        ) from None
    if not isinstance(source.get("extends"), str):
        return source
    name = Path(source.pop("extends"))
    beside = path.parent / name
    if name.is_absolute() or ".." in name.parts or not beside.is_file():
        raise InputError(f"{path}: extends is '{name}'; expected a file in its folder or below")
    base = read_source(beside, (*extending, path.resolve()))
    rows = [*base.get("rows", ()), *source.pop("rows", ())]
    return base | source | {"rows": rows}


def _takes(source: Mapping[str, Any], part: str, key: str, trust: tuple[str, ...]) -> bool:
    """Whether some row of a table has a part with this setting."""
    if part == "encoder":
        return "encoder" in source
    for row in map(_table, source.get("rows", ())):
        name = _name(row.get(part) or _usual_head(row, None, trust)) if "memory" in row else None
        if key in _settings(part, name, trust):
            return True
    return False


def _name(entry: object) -> object:
    """Of a part that is given by its name alone, or by name and settings."""
    return entry.get("name") if isinstance(entry, dict) else entry


def _usual_head(row: Mapping[str, Any], told: Told, trust: tuple[str, ...]) -> str | None:
    """The head of a row that names none; ``None`` if its memory is wrong, which is told."""
    if told is not None and not is_ours("memory", _name(row["memory"])):
        found = (part for part in told if part["name"] == _name(row["memory"]))
        return next((part.get("usual_head") for part in found), None)
    try:
        return usual_head(PARTS["memory"].part(str(_name(row["memory"])), trust))
    except FrugalError:
        return None


def _settings(kind: str, name: object, trust: tuple[str, ...]) -> list[str]:
    """The settings of a part that can be changed; none if there is no such part."""
    registry, known = PARTS[kind], str(name)
    try:
        preset = registry[known]
        return [key for key in parameters_of(registry.part(known, trust)) if key not in preset]
    except FrugalError:
        return []


def parse(
    name: str, source: Mapping[str, Any], told: Told = None, trust: tuple[str, ...] = ()
) -> tuple[Experiment | None, list[str]]:
    """The experiment that a table describes; or ``None``, and every mistake in it.

    Parameters
    ----------
    told
        Parts from outside as :func:`foreign_parts` tells them. Then no other is known, and
        nothing that is not ours is imported.
    trust
        Modules and classes that the table may name: no other is imported.
    """
    wrong, common = mistakes_in_experiment(source), _Common(source, told, trust)
    given = source.get("rows")
    rows = [_row(entry, common) for entry in (given if isinstance(given, list) else ())]
    for number, (_, mistakes) in enumerate(rows, start=1):
        wrong += [f"row {number}: {mistake}" for mistake in mistakes]
    wrong += common.unused()
    encoder, mistakes = _part("encoder", source.get("encoder"), common)
    wrong += mistakes
    if wrong:
        return None, wrong
    made: dict[str, Any] = {
        "rows": tuple(row for row, _ in rows if row is not None),
        "protocols": {
            name: Protocol.of(entry)
            for name, entry in source.get("protocols", {"": source.get("tasks", 10)}).items()
        },
        "encoder": encoder,
        "source": dict(source),
    }
    plain: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in source.items()
        if key not in ("tasks", "memory", "head")
    }
    return Experiment(name, **(plain | made)), []


def foreign_parts(experiment: Experiment) -> list[dict[str, Any]]:
    """All that has to be known of parts from outside to read the experiment without them."""
    rows = [part for row in experiment.rows for part in (row.memory, row.head)]
    return [
        {key: value for key, value in asdict(part).items() if key != "trust"}
        | {"defaults": defaults(part.kind, part.name, part.trust)}
        | (
            {"usual_head": usual_head(PARTS["memory"].part(part.name, part.trust))}
            if part.kind == "memory"
            else {}
        )
        for part in (*rows, experiment.encoder)
        if part is not None and not is_ours(part.kind, part.name)
    ]


class _Common:
    """Settings for all rows: each goes to every memory or head that has one of that name."""

    def __init__(self, source: Mapping[str, Any], told: Told, trust: tuple[str, ...]) -> None:
        self.settings = {kind: _table(source.get(kind)) for kind in ("memory", "head")}
        self.known: dict[str, set[str]] = {kind: set() for kind in PARTS}
        self.told, self.trust = told, trust

    def fitting(self, kind: str, known: Collection[str]) -> dict[str, Any]:
        """Those that a part with these settings takes."""
        self.known[kind] |= set(known)
        given = self.settings.get(kind, {})
        return {key: value for key, value in given.items() if key in known}

    def recorded(
        self, kind: str, name: str, given: dict[str, Any]
    ) -> tuple[Part | None, list[str]]:
        """A part from outside as it was told."""
        named = [part for part in self.told or () if (part["kind"], part["name"]) == (kind, name)]
        for part in named:
            if self.fitting(kind, part["settings"]) | given == part["given"]:
                return Part(kind, name, part["given"], part["settings"], part["defaults"]), []
        return None, [f"{kind} {name!r} is not ours, and nothing is told of its settings"]

    def unused(self) -> list[str]:
        """Settings that no row has."""
        return [
            f"[{kind}] {key}: no row's {kind} has this setting.{suggestion(key, self.known[kind])}"
            for kind, settings in self.settings.items()
            for key in settings
            if self.known[kind] and key not in self.known[kind]
        ]


def _row(entry: object, common: _Common) -> tuple[Row | None, list[str]]:
    wrong, row = mistakes_in_row(entry), dict(_table(entry))
    row.pop("quoted", None)
    parts: dict[str, Part | None] = {"memory": None, "head": None}
    for kind in parts if "memory" in row else ():
        usual = _usual_head(row, common.told, common.trust)
        parts[kind], mistakes = _part(kind, row.get(kind, usual), common)
        wrong += mistakes
    return (None, wrong) if wrong else (Row(**(row | parts)), [])


def _table(value: object) -> dict[str, Any]:
    """The value if it is a table; what else it may be is told elsewhere."""
    return value if isinstance(value, dict) else {}


def _part(kind: str, entry: Any, common: _Common) -> tuple[Part | None, list[str]]:
    """A part with all its settings, or what is wrong with them, one by one."""
    if not isinstance(entry, str | dict) or (kind == "encoder" and isinstance(entry, str)):
        return None, []  # its type was told already
    given = {"name": entry} if isinstance(entry, str) else dict(entry)
    name = given.pop("name", None)
    if common.told is not None and not is_ours(kind, name):
        return common.recorded(kind, name, given)
    try:
        made_of = PARTS[kind].part(name, common.trust)
    except MissingPackageError:  # no mistake of the table
        raise
    except FrugalError as error:
        return None, [str(error)]
    given = common.fitting(kind, _settings(kind, name, common.trust)) | given
    needed = {
        key: given[key] for key in needed_settings(made_of, PARTS[kind][name]) if key in given
    }
    wrong = []
    for settings in (*(needed | {key: value} for key, value in given.items()), given):
        try:  # each by itself, so that all are told, and then all together
            part = Part.of(kind, name, settings, common.trust)
        except MissingPackageError:
            raise
        except FrugalError as error:
            wrong.append(str(error))
    return (None, list(dict.fromkeys(wrong))) if wrong else (part, [])
