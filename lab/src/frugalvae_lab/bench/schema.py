"""The keys of an experiment file, what each may be, and how to say that it is not."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from frugalvae.errors import suggestion
from frugalvae_lab.bench.spec import FIGURES, KINDS, MEASURES, METRICS, OBSERVED

#: Every mistake in the value of a key.
Rule = Callable[[str, Any], list[str]]


def expected(what: str, fits: Callable[[Any], bool]) -> Rule:
    """A value that fits.

    >>> expected("a whole number", is_whole)("seed", "one")
    ["seed is 'one'; expected a whole number"]
    """
    return lambda key, value: [] if fits(value) else [f"{key} is {value!r}; expected {what}"]


def one_of(choices: Collection[str]) -> Rule:
    """One of several names.

    >>> one_of(["table", "courses"])("kind", "tabel")
    ["kind is 'tabel'. Did you mean 'table'? Choices: table, courses"]
    """
    listed = ", ".join(choices)
    return lambda key, value: (
        []
        if isinstance(value, str) and value in choices
        else [f"{key} is {value!r}.{suggestion(value, choices)} Choices: {listed}"]
    )


def table_of(rule: Rule) -> Rule:
    """A table of such values."""
    return lambda key, value: (
        [wrong for name, entry in value.items() for wrong in rule(f"{key}.{name}", entry)]
        if isinstance(value, dict)
        else TABLE(key, value)
    )


def is_whole(value: object, least: int = 0) -> bool:
    """Whether a value is a whole number, at least that; True and False are none."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def is_list(value: object, fits: Callable[[Any], bool]) -> bool:
    """Whether a value is a list of what fits."""
    return isinstance(value, list) and all(map(fits, value))


def is_share(value: object) -> bool:
    """Whether a value is a number between 0 and 1."""
    return isinstance(value, float) and 0 < value < 1


def is_tasks(value: object) -> bool:
    """A number of tasks, their sizes, or a first task and how many later ones."""
    if isinstance(value, dict):
        first, later = value.get("first"), value.get("later")
        fits = (is_share(first) or is_whole(first, 1)) and is_whole(later, 1)
        return fits and value.keys() == {"first", "later"}
    return is_whole(value, 1) or (bool(value) and is_list(value, lambda size: is_whole(size, 1)))


def is_protocol(value: object) -> bool:
    """Tasks, or a table of tasks, shots, long tail and data."""
    if not isinstance(value, dict) or "first" in value:
        return is_tasks(value)
    shots, tail = value.get("shots", 1), value.get("long_tail", 2)
    several = bool(shots) and is_list(shots, lambda one: is_whole(one, 1))
    return (
        value.keys() <= {"tasks", "shots", "long_tail", "data"}
        and not {"shots", "long_tail"} <= value.keys()
        and is_tasks(value.get("tasks", 10))
        and (is_whole(shots, 1) or several)
        and (is_whole(tail, 2) or (isinstance(tail, float) and tail > 1))
        and is_list(value.get("data", []), lambda name: isinstance(name, str))
    )


def is_figure(value: object) -> bool:
    """A mean, and perhaps a standard deviation."""
    numbers = is_list(value, lambda one: isinstance(one, float) or is_whole(one))
    return numbers and len(value) in (1, 2)  # type: ignore[arg-type]


TEXT = expected("text in quotes", lambda value: isinstance(value, str))
TABLE = expected("a table", lambda value: isinstance(value, dict))
SWITCH = expected("true or false", lambda value: isinstance(value, bool))
PART = expected("text in quotes or a table", lambda value: isinstance(value, str | dict))
TASKS = expected("a number of tasks, a list of their sizes, or {first = 0.5, later = 5}", is_tasks)
PROTOCOL = expected(
    "a number of tasks, a list of their sizes, {first = 0.5, later = 5}, or a table such as "
    '{tasks = 10, shots = 4, data = ["ucf101"]}, with shots or long_tail',
    is_protocol,
)
SEEDS = expected("a list of whole numbers from 0", lambda value: is_list(value, is_whole))

EXPERIMENT: dict[str, Rule] = {
    "title": TEXT,
    "about": TEXT,
    "reference": TEXT,
    "paper_backbone": TEXT,
    "kind": one_of(KINDS),
    "metric": one_of(METRICS),
    "measure": one_of(MEASURES),
    "observe": one_of(OBSERVED),
    "show_memory": SWITCH,
    "data": expected(
        "a list of names in quotes",
        lambda value: is_list(value, lambda name: isinstance(name, str)),
    ),
    "seeds": SEEDS,
    "tasks": TASKS,
    "protocols": table_of(PROTOCOL),
    "held_out": expected("a share between 0 and 1", is_share),
    "memory": TABLE,
    "head": TABLE,
    "encoder": TABLE,
    "rows": expected(
        "a [[rows]] table for each line", lambda value: bool(value) and isinstance(value, list)
    ),
}
ROW: dict[str, Rule] = {
    "name": TEXT,
    "labels": table_of(TEXT),
    "memory": PART,
    "head": PART,
    "paper": table_of(expected("[mean] or [mean, deviation]", is_figure)),
    "backbone": TEXT,
    "replay": TEXT,
    "parameters": expected("a number with a point", lambda value: isinstance(value, float)),
    "seeds": table_of(SEEDS),
    "quoted": SWITCH,
}


def mistakes_in_experiment(source: Mapping[str, Any]) -> list[str]:
    """Every mistake but those in rows."""
    wrong = _mistakes(source, EXPERIMENT, ("title", "rows"))
    if "observe" in source and source.get("kind") in FIGURES:
        wrong.append(f"observe and kind = {source['kind']!r} are both given; keep one")
    if "tasks" in source and "protocols" in source:
        wrong.append("tasks and protocols are both given; keep one")
    return wrong


def mistakes_in_row(row: object) -> list[str]:
    """Every mistake but those in its memory and head."""
    if not isinstance(row, dict):
        return [f"{row!r}; expected a table"]
    wrong = _mistakes(row, ROW, ("name",))
    if "memory" not in row and not row.get("quoted"):
        wrong.append(
            "memory is missing; a row that is only quoted from the paper has quoted = true"
        )
    return wrong


def _mistakes(
    source: Mapping[str, Any], rules: Mapping[str, Rule], needed: Collection[str]
) -> list[str]:
    wrong = [f"{key} is missing" for key in needed if key not in source]
    for key, value in source.items():
        if key in rules:
            wrong += rules[key](key, value)
        else:
            near = suggestion(key, rules)
            known = [*rules, *(["extends"] if rules is EXPERIMENT else [])]
            wrong.append(f"unknown key {key!r}.{near} Known: {', '.join(known)}")
    return wrong
