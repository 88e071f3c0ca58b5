"""From a TOML file to an experiment, or to a list of all its mistakes."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from frugalvae.bench.spec import (
    FIGURES,
    KINDS,
    MEASURES,
    METRICS,
    OBSERVED,
    PARTS,
    Experiment,
    Part,
    Row,
)
from frugalvae.errors import FrugalError, InputError, suggestion
from frugalvae.memories import usual_head
from frugalvae.plugins import parameters_of

#: Every key of an experiment, and of a row, with the types that it may have.
KEYS: dict[str, tuple[type, ...]] = {
    "title": (str,),
    "about": (str,),
    "reference": (str,),
    "paper_backbone": (str,),
    "kind": (str,),
    "metric": (str,),
    "measure": (str,),
    "observe": (str,),
    "show_memory": (bool,),
    "data": (list,),
    "seeds": (list,),
    "tasks": (int, list, dict),
    "protocols": (dict,),
    "held_out": (float,),
    "memory": (dict,),
    "head": (dict,),
    "encoder": (dict,),
    "rows": (list,),
}
ROW_KEYS: dict[str, tuple[type, ...]] = {
    "name": (str,),
    "labels": (dict,),
    "memory": (str, dict),
    "head": (str, dict),
    "paper": (dict,),
    "backbone": (str,),
    "replay": (str,),
    "numbers": (float,),
    "quoted": (bool,),
}


def read_experiments(
    paths: Sequence[Path], changes: Sequence[tuple[str, str, Any]] = ()
) -> list[Experiment]:
    """All experiments of some files, or one error that tells every mistake in all of them.

    Parameters
    ----------
    changes
        Settings of the command line, such as ``("memory", "max_steps", 20)``, which take
        the place of those that the files give to all rows.
    """
    found, wrong = [], []
    unused = {change[:2] for change in changes}
    for path in paths:
        try:
            source = tomllib.loads(path.read_text("utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            wrong.append(f"{path}: {error}")
            continue
        for part, key, value in changes:
            if _takes(source, part, key):
                source[part] = {**source.get(part, {}), key: value}
                unused.discard((part, key))
        experiment, mistakes = parse(path.stem, source)
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


def _takes(source: Mapping[str, Any], part: str, key: str) -> bool:
    """Whether some row of a table has a part with this setting."""
    if part == "encoder":
        return "encoder" in source
    for row in map(_table, source.get("rows", ())):
        if "memory" in row and key in _settings(part, _name(row.get(part) or _usual_head(row))):
            return True
    return False


def _name(entry: object) -> object:
    """Of a part that is given by its name alone, or by name and settings."""
    return entry.get("name") if isinstance(entry, dict) else entry


def _usual_head(row: Mapping[str, Any]) -> str | None:
    """The head of a row that names none; ``None`` if its memory is wrong, which is told."""
    try:
        return usual_head(str(_name(row["memory"])))
    except FrugalError:
        return None


def _settings(kind: str, name: object) -> list[str]:
    """The settings of a part that can be changed; none if there is no such part."""
    registry, known = PARTS[kind], str(name)
    try:
        preset = registry[known]
        return [key for key in parameters_of(registry.part(known)) if key not in preset]
    except FrugalError:
        return []


def parse(name: str, source: Mapping[str, Any]) -> tuple[Experiment | None, list[str]]:
    """The experiment that a table describes; or ``None``, and every mistake in it."""
    wrong = _misfits(source, KEYS, "")
    wrong += [f"{key} is missing" for key in ("title", "rows") if key not in source]
    for key, choices in _CHOICES.items():
        value = source.get(key)
        if isinstance(value, str) and value not in choices:
            wrong.append(
                f"{key} is {value!r}.{suggestion(value, choices)} Choices: {', '.join(choices)}"
            )
    if "observe" in source and source.get("kind") in FIGURES:
        wrong.append(f"observe and kind = {source['kind']!r} are both given; keep one")
    if source.get("rows") == []:
        wrong.append("rows is empty; give a [[rows]] table for each line")
    wrong += _wrong_lists(source)
    if wrong and not isinstance(source.get("rows"), list):
        return None, wrong
    rows, common = [], _Common(source)
    for number, entry in enumerate(source["rows"], start=1):
        row, mistakes = _row(entry, common)
        wrong += [f"row {number}: {mistake}" for mistake in mistakes]
        if row is not None:
            rows.append(row)
    wrong += common.unused()
    encoder, mistakes = _encoder(source.get("encoder"))
    wrong += mistakes
    if wrong:
        return None, wrong
    taken_as_it_is = {
        key: source[key]
        for key in (
            *("title", "about", "reference", "paper_backbone", "kind", "metric", "measure"),
            *("observe", "show_memory", "held_out"),
        )
        if key in source
    }
    return (
        Experiment(
            name,
            rows=tuple(rows),
            data=tuple(source.get("data", ("digits",))),
            seeds=tuple(source.get("seeds", (0, 1, 2))),
            protocols=source.get("protocols", {"": source.get("tasks", 10)}),
            encoder=encoder,
            source=dict(source),
            **taken_as_it_is,
        ),
        [],
    )


def _misfits(
    source: Mapping[str, Any], keys: Mapping[str, tuple[type, ...]], where: str
) -> list[str]:
    """Unknown keys, and values of the wrong type."""
    wrong = []
    for key, value in source.items():
        if key not in keys:
            wrong.append(
                f"{where}unknown key {key!r}.{suggestion(key, keys)} Known: {', '.join(keys)}"
            )
        elif not isinstance(value, keys[key]) or (
            isinstance(value, bool) and bool not in keys[key]
        ):
            kinds = " or ".join(_KIND_NAMES[kind] for kind in keys[key])
            wrong.append(f"{where}{key} is {value!r}; expected {kinds}")
    return wrong


_CHOICES: dict[str, Sequence[str]] = {
    "kind": KINDS,
    "metric": list(METRICS),
    "measure": MEASURES,
    "observe": OBSERVED,
}
_KIND_NAMES: dict[type, str] = {
    str: "text in quotes",
    int: "a whole number",
    float: "a number with a point",
    bool: "true or false",
    list: "a list",
    dict: "a table",
}


def _wrong_lists(source: Mapping[str, Any]) -> list[str]:
    """Mistakes inside lists of seeds, data and tasks."""
    wrong = []
    seeds, data = source.get("seeds", []), source.get("data", [])
    if isinstance(seeds, list) and not all(_is_whole(seed, 0) for seed in seeds):
        wrong.append(f"seeds is {seeds!r}; expected whole numbers from 0")
    if isinstance(data, list) and not all(isinstance(entry, str) for entry in data):
        wrong.append(f"data is {data!r}; expected names in quotes")
    if "tasks" in source and "protocols" in source:
        wrong.append("tasks and protocols are both given; keep one")
    protocols = source.get("protocols", {"": source.get("tasks", 10)})
    for name, tasks in protocols.items() if isinstance(protocols, dict) else ():
        if not _is_tasks(tasks):
            where = f"protocols.{name!r}" if name else "tasks"
            wrong.append(
                f"{where} is {tasks!r}; expected a number of tasks, a list of their sizes, or "
                "{first = 0.5, later = 5}"
            )
    held_out = source.get("held_out", 0.5)
    if isinstance(held_out, float) and not 0 < held_out < 1:
        wrong.append(f"held_out is {held_out!r}; expected a share between 0 and 1")
    return wrong


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_tasks(tasks: object) -> bool:
    if isinstance(tasks, dict):
        first, later = tasks.get("first"), tasks.get("later")
        share = isinstance(first, float) and 0 < first < 1
        return set(tasks) == {"first", "later"} and (
            (share or _is_whole(first, 1)) and _is_whole(later, 1)
        )
    if isinstance(tasks, list):
        return bool(tasks) and all(_is_whole(size, 1) for size in tasks)
    return _is_whole(tasks, 1)


class _Common:
    """Settings for all rows: each goes to every memory or head that has one of that name."""

    def __init__(self, source: Mapping[str, Any]) -> None:
        self.settings = {kind: _table(source.get(kind)) for kind in ("memory", "head")}
        self.known: dict[str, set[str]] = {"memory": set(), "head": set()}

    def fitting(self, kind: str, known: Sequence[str]) -> dict[str, Any]:
        """Those that a part with these settings takes."""
        self.known[kind] |= set(known)
        return {key: value for key, value in self.settings[kind].items() if key in known}

    def unused(self) -> list[str]:
        """Settings that no row has."""
        return [
            f"[{kind}] {key}: no row's {kind} has this setting.{suggestion(key, self.known[kind])}"
            for kind, settings in self.settings.items()
            for key in settings
            if self.known[kind] and key not in self.known[kind]
        ]


def _row(entry: object, common: _Common) -> tuple[Row | None, list[str]]:
    if not isinstance(entry, dict):
        return None, [f"{entry!r}; expected a table"]
    wrong = _misfits(entry, ROW_KEYS, "")
    if "name" not in entry:
        wrong.append("name is missing")
    if "memory" not in entry and not entry.get("quoted"):
        wrong.append(
            "memory is missing; a row that is only quoted from the paper has quoted = true"
        )
    wrong += [
        f"paper.{column} is {figure!r}; expected [mean] or [mean, deviation]"
        for column, figure in _table(entry.get("paper")).items()
        if not isinstance(figure, list) or not 1 <= len(figure) <= 2 or not _numbers(figure)
    ]
    wrong += [
        f"labels.{column} is {label!r}; expected {_KIND_NAMES[str]}"
        for column, label in _table(entry.get("labels")).items()
        if not isinstance(label, str)
    ]
    parts: dict[str, Part | None] = {"memory": None, "head": None}
    if "memory" in entry:
        for kind in parts:
            parts[kind], mistakes = _part(kind, entry.get(kind, _usual_head(entry)), common)
            wrong += mistakes
    if wrong:
        return None, wrong
    kept = ("name", "labels", "paper", "backbone", "replay", "numbers")
    given: dict[str, Any] = {key: entry[key] for key in kept if key in entry}
    return Row(memory=parts["memory"], head=parts["head"], **given), []


def _table(value: object) -> dict[str, Any]:
    """The value if it is a table; what else it may be is told elsewhere."""
    return value if isinstance(value, dict) else {}


def _numbers(values: list[Any]) -> bool:
    return all(isinstance(value, float | int) and not isinstance(value, bool) for value in values)


def _part(kind: str, entry: Any, common: _Common | None = None) -> tuple[Part | None, list[str]]:
    """A memory or head with all its settings, or what is wrong with them, one by one."""
    if not isinstance(entry, str | dict):
        return None, []  # its type was told already
    given = {"name": entry} if isinstance(entry, str) else dict(entry)
    name = given.pop("name", None)
    try:
        PARTS[kind].part(name)
    except FrugalError as error:
        return None, [str(error)]
    shared = common.fitting(kind, _settings(kind, name)) if common else {}
    given = {**shared, **given}
    needed = {key: given[key] for key in PARTS[kind].needed(name) if key in given}
    wrong = []
    for settings in (*(needed | {key: value} for key, value in given.items()), given):
        try:  # each by itself, so that all are told, and then all together
            part = Part.of(kind, name, settings)
        except FrugalError as error:
            wrong.append(str(error))
    return (None, list(dict.fromkeys(wrong))) if wrong else (part, [])


def _encoder(entry: Any) -> tuple[Part | None, list[str]]:
    """The encoder that is trained on the first task, if any."""
    return _part("encoder", entry) if isinstance(entry, dict) else (None, [])
