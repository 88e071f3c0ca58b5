"""What an experiment is: from a TOML file to rows, columns and parts, or to all its mistakes."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from frugalvae.errors import (
    FrugalError,
    InputError,
    MissingPackageError,
    check_choice,
    suggestion,
)
from frugalvae.files import read_plain
from frugalvae.parts import HEADS, MEMORIES, usual_head
from frugalvae.parts.registry import Registry, parameters_of, settings_of
from frugalvae_lab.encoders import ENCODERS

#: What a run is made of, and where its names are looked up.
PARTS: dict[str, Registry] = {"memory": MEMORIES, "head": HEADS, "encoder": ENCODERS}

#: What a table can show, and how it is printed.
METRICS = {
    "final_average_accuracy": "final average accuracy",
    "accuracy": "accuracy",
    "macro_accuracy": "mean accuracy of a class",
    "calibration_error": "expected calibration error",
    "average_incremental_accuracy": "average incremental accuracy",
    "forgetting": "forgetting",
    "proportion": "mean R of all layers and tasks",
    "first_layer_proportion": "mean R of the first layer over all tasks",
}
SAMPLES = "samples"  # the metric of a table with one column per measure of samples
#: Figures that look at more than accuracy.
FIGURES = ("tsne", "placement")
KINDS = ("table", "courses", "race", *FIGURES)
MEASURES = ("every task", "last task")
#: What else an experiment can look at.
OBSERVED = (SAMPLES,)
#: What is measured of samples, how it is printed, and how it is to be read.
SAMPLE_MEASURES = {
    "relative_frechet": ("relative Fréchet distance", "less is better"),
    "precision": ("precision, %", "more is better"),
    "recall": ("recall, %", "more is better"),
    "sample_accuracy": ("samples recognised, %", "to compare with the next"),
    "real_accuracy": ("test features recognised, %", "for comparison"),
    "drift": ("drift", "to compare with the next"),
    "drift_floor": ("drift if nothing moved", "for comparison"),
}

# --------------------------------------------------------------------------- values


def expected(what: str, fits: Callable[[Any], bool]) -> AfterValidator:
    """A validator that refuses what does not fit."""

    def check(value: Any) -> Any:
        if not fits(value):
            raise ValueError(f"expected {what}")
        return value

    return AfterValidator(check)


def choice_of(name: str, choices: Sequence[str] | Mapping[str, str]) -> AfterValidator:
    """A validator that refuses what is none of these."""

    def check(value: str) -> str:
        check_choice(name, value, choices)
        return value

    return AfterValidator(check)


def is_whole(value: object, least: int = 0) -> bool:
    """Whether a value is a whole number, at least that; True and False are none."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def is_tasks(value: object) -> bool:
    """A number of tasks, their sizes, or a first task and how many later ones."""
    if isinstance(value, dict):
        first, share = value.get("first"), isinstance(value.get("first"), float)
        fits = 0 < first < 1 if share else is_whole(first, 1)  # type: ignore[operator]
        return fits and is_whole(value.get("later"), 1) and value.keys() == {"first", "later"}
    return is_whole(value, 1) or is_sizes(value)


def is_sizes(value: object) -> bool:
    """Whole numbers from one, one at least."""
    return isinstance(value, list) and bool(value) and all(is_whole(one, 1) for one in value)


TASKS = "a number of tasks, a list of their sizes, or {first = 0.5, later = 5}"

Tasks = Annotated[Any, expected(TASKS, is_tasks)]
#: Samples per class: a number, or numbers of which each class gets one; ``None`` for all.
Shots = Annotated[Any, expected("whole numbers", lambda v: is_whole(v, 1) or is_sizes(v))]
Seeds = list[Annotated[int, Field(ge=0)]]


class Specified(BaseModel):
    """A table of a file: an unknown key or a value of another type is a mistake."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, arbitrary_types_allowed=True
    )


class Protocol(Specified):
    """How a data set becomes a stream.

    Attributes
    ----------
    tasks
        Number of tasks, their sizes, or a first task and how many later ones.
    shots, long_tail
        Which training samples are learned; see :func:`frugalvae_lab.bench.tasks.drawn`.
    data
        The data sets that it is for; ``None`` for all but joined ones, such as
        ``ucf101+cars196``, which are for protocols that name them.
    """

    tasks: Tasks = 10
    shots: Shots | None = None
    long_tail: Annotated[int | float, Field(gt=1)] | None = None
    data: list[str] | None = None

    def model_post_init(self, context: object) -> None:
        """Refuse two ways to choose samples."""
        if self.shots is not None and self.long_tail is not None:
            raise ValueError("expected shots or long_tail, not both")

    def takes(self, data: str) -> bool:
        """Whether it is for a data set.

        >>> Protocol().takes("ucf101"), Protocol().takes("ucf101+cars196")
        (True, False)
        """
        return "+" not in data if self.data is None else data in self.data


@dataclass(frozen=True)
class Part:
    """A memory, head or encoder by name.

    Attributes
    ----------
    kind
        Which of the three.
    given, settings
        The settings to make it with, and all that it has then.
    trust
        Modules and classes that whoever calls has named: a worker makes it under these.
    """

    kind: str
    name: str
    given: dict[str, Any]
    settings: dict[str, Any]
    trust: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, kind: str, name: str, given: Mapping[str, Any], trust: tuple[str, ...] = ()
    ) -> Part:
        """A part with these settings, which is made once to see the others."""
        part = cls(kind, name, dict(given), {}, trust)
        return replace(part, settings=plain_settings(part.make()))

    def make(self, **changes: Any) -> Any:
        """The part, with any of its settings changed; of what it names, only what is trusted."""
        made = PARTS[self.kind].make(self.name, {**self.given, **changes}, self.trust)
        if hasattr(made, "named_by_file"):
            made.named_by_file(self.trust)
            made.check_model()
        return made

    def to_json(self) -> dict[str, Any]:
        """Name and settings in one table."""
        return {"name": self.name, **self.settings}

    def changed(self) -> dict[str, Any]:
        """Name, and the settings that are not the defaults."""
        usual = defaults(self.kind, self.name, self.trust)
        changed = {
            key: value
            for key, value in self.settings.items()
            if key not in usual or usual[key] != value
        }
        return {"name": self.name} | changed


@cache
def defaults(kind: str, name: str, trust: tuple[str, ...] = ()) -> dict[str, Any]:
    """The settings of a part that is made with none; without those that have to be given."""
    try:
        return plain_settings(PARTS[kind].make(name, {}, trust))
    except FrugalError:  # something has to be given
        known = parameters_of(PARTS[kind].part(name, trust)).values()
        return {one.name: one.default for one in known if one.default is not one.empty}


def plain_settings(part: Any) -> dict[str, Any]:
    """All settings of a part as they come back from a file."""
    settings = settings_of(part)
    try:
        plain: dict[str, Any] = json.loads(json.dumps(settings))
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the settings of {type(part).__name__} cannot be written as JSON ({error}): "
            f"{settings}; settings are numbers, text, and lists of them"
        ) from error
    return plain


class Row(Specified):
    """One line of a table: what is run, and what the paper has in its place.

    Attributes
    ----------
    name, labels
        What the line is called, and its entries in columns of ticks and crosses.
    memory, head
        What is run; ``None`` for a line that is only quoted from the paper.
    paper
        The paper's figure for each column, with its standard deviation if it has one.
    backbone, replay, parameters
        What the paper says of a method that it quotes: its encoder, what it replays, and
        millions of parameters stored.
    seeds
        The seeds of some columns, where the line is too expensive for all of them: by data set and
        protocol, by data set, or ``"*"`` for all columns.
    """

    name: str
    memory: Part | None = None
    head: Part | None = None
    labels: dict[str, str] = {}
    paper: dict[str, Annotated[list[float], Field(min_length=1, max_length=2)]] = {}
    backbone: str = ""
    replay: str = ""
    parameters: float | None = None
    seeds: dict[str, Seeds] = {}

    def seeds_of(self, data: str, protocol: str) -> list[int] | None:
        """The only seeds of a column, by the closest of its names; ``None`` for all.

        >>> row = Row(name="slow", seeds={"*": [0, 1], "digits": [0], "digits all": [2]})
        >>> row.seeds_of("digits", "all"), row.seeds_of("digits", "1"), row.seeds_of("birds", "1")
        ([2], [0], [0, 1])
        """
        names = (f"{data} {protocol}".strip(), data, "*")
        return next((self.seeds[name] for name in names if name in self.seeds), None)

    @property
    def quoted(self) -> bool:
        """Whether this line is the paper's alone."""
        return self.memory is None


class Experiment(Specified):
    """A table or a figure: rows, columns, how both are measured, and what else is looked at."""

    name: str
    title: str
    rows: Annotated[list[Row], Field(min_length=1)]
    about: str = ""
    reference: str = ""
    paper_backbone: str = ""
    kind: Annotated[str, choice_of("kind", KINDS)] = "table"
    metric: Annotated[str, choice_of("metric", METRICS)] = "final_average_accuracy"
    measure: Annotated[str, choice_of("measure", MEASURES)] = "every task"
    observe: Annotated[str, choice_of("observe", OBSERVED)] | None = None
    show_memory: bool = False
    data: list[str] = ["digits"]
    seeds: Seeds = [0, 1, 2]
    protocols: dict[str, Protocol] = {"": Protocol()}
    held_out: Annotated[float, Field(gt=0, lt=1)] | None = None
    encoder: Part | None = None
    source: dict[str, Any] = {}


# --------------------------------------------------------------------------- files


def read_experiments(
    paths: Sequence[Path],
    changes: Sequence[tuple[str, str, Any]] = (),
    trust: tuple[str, ...] = (),
) -> list[Experiment]:
    """All experiments of some files, or one error with every mistake in all of them.

    Parameters
    ----------
    changes
        Settings of the command line, such as ``("memory", "max_steps", 20)``, which take
        the place of those that the files give to all rows.
    trust
        Modules and classes that the files may name: no other is imported.
    """
    found, wrong, used = [], [], set[tuple[str, str]]()
    for path in paths:
        try:
            reader = Reader(read_source(path), trust, changes)
            experiment, mistakes = reader.experiment(path.stem)
        except MissingPackageError:  # no mistake of the file
            raise
        except (OSError, ValueError) as error:  # of the file, or of TOML
            wrong.append(f"{path}: {error}")
            continue
        used |= reader.used
        wrong += [f"{path}: {mistake}" for mistake in mistakes]
        found += [experiment] if experiment is not None else []
    unused = {change[:2] for change in changes} - used
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
        raise InputError("circular extends; name another file")
    try:
        source = tomllib.loads(read_plain(path).decode())
    except RecursionError:
        raise InputError("too many nested brackets; nothing was started") from None
    if not isinstance(source.get("extends"), str):
        return source
    name = Path(source.pop("extends"))
    base = path.parent / name
    if name.is_absolute() or ".." in name.parts or not base.is_file():
        raise InputError(f"extends is '{name}'; expected a file in its folder or below")
    found = read_source(base, (*extending, path.resolve()))
    rows = [*found.get("rows", ()), *source.pop("rows", ())]
    return found | source | {"rows": rows}


def parse(name: str, source: Mapping[str, Any], trust: tuple[str, ...] = ()) -> Experiment:
    """The experiment that a table describes; no module is imported that ``trust`` lacks."""
    experiment, mistakes = Reader(source, trust).experiment(name)
    if experiment is None:
        raise InputError("; ".join(mistakes))
    return experiment


class Reader:
    """Reads one table. Settings for all rows go to every part that has one of that name."""

    def __init__(
        self,
        source: Mapping[str, Any],
        trust: tuple[str, ...] = (),
        changes: Sequence[tuple[str, str, Any]] = (),
    ) -> None:
        self.source, self.trust = dict(source), trust
        self.common: dict[str, dict[str, Any]] = {
            kind: {key: value for part, key, value in changes if part == kind} for kind in PARTS
        }
        self.used: set[tuple[str, str]] = set()  # settings for all rows that some row has
        self.known: dict[str, set[str]] = {kind: set() for kind in PARTS}

    def experiment(self, name: str) -> tuple[Experiment | None, list[str]]:
        """The experiment; or ``None``, and every mistake in the table."""
        table, wrong = dict(self.source), []
        own = {kind: table.pop(kind, {}) for kind in ("memory", "head")}
        for kind, settings in own.items():
            if not isinstance(settings, dict):
                return None, [f"{kind} is {settings!r}; expected a table"]
            self.common[kind] = settings | self.common[kind]
        if {"tasks", "protocols"} <= table.keys():
            wrong.append("tasks and protocols are both given; keep one")
        if "observe" in table and table.get("kind") in FIGURES:
            wrong.append(f"observe and kind = {table['kind']!r} are both given; keep one")
        protocols = table.get("protocols", {"": table.pop("tasks", 10)})
        if isinstance(protocols, dict):
            table["protocols"] = {key: _protocol(value) for key, value in protocols.items()}
        if isinstance(table.get("rows"), list):
            table["rows"] = [self._row(row, n, wrong) for n, row in enumerate(table["rows"], 1)]
            for kind, settings in own.items():
                wrong += [
                    f"[{kind}] {key}: no row's {kind} has this setting."
                    f"{suggestion(key, self.known[kind])}"
                    for key in settings
                    if self.known[kind] and key not in self.known[kind]
                ]
        if "encoder" in table:
            table["encoder"] = self._part("encoder", table["encoder"], "", wrong)
        try:
            made = Experiment(**table | {"name": name, "source": dict(self.source)})
        except ValidationError as error:
            wrong += [_sentence(one) for one in error.errors()]
        return (None, list(dict.fromkeys(wrong))) if wrong else (made, [])

    def _row(self, row: Any, number: int, wrong: list[str]) -> Any:
        """A row with its parts in place of their names."""
        if not isinstance(row, dict):
            return row  # a mistake of its type
        row, where = dict(row), f"row {number}: "
        if row.pop("quoted", False) is not True and "memory" not in row:
            wrong.append(
                f"{where}memory is missing; a row that is only quoted from the paper has "
                "quoted = true"
            )
        if "memory" not in row:
            return row
        row["memory"] = memory = self._part("memory", row["memory"], where, wrong)
        if "head" not in row and memory is not None:
            row["head"] = usual_head(PARTS["memory"].part(memory.name, self.trust))
        row["head"] = self._part("head", row["head"], where, wrong) if "head" in row else None
        return row

    def _part(self, kind: str, entry: Any, where: str, wrong: list[str]) -> Part | None:
        """A part with all its settings; ``None`` after a mistake."""
        given = {"name": entry} if isinstance(entry, str) else entry
        if not isinstance(given, dict) or not isinstance(given.get("name"), str):
            wrong.append(f"{where}{kind} is {entry!r}; expected text in quotes or a table")
            return None
        name, given = given["name"], {key: v for key, v in given.items() if key != "name"}
        try:
            preset = PARTS[kind].get(name, {})
            takes = set(parameters_of(PARTS[kind].part(name, self.trust))) - set(preset)
            common = {k: v for k, v in self.common[kind].items() if k in takes}
            self.known[kind] |= takes
            self.used |= {(kind, key) for key in common}
            return Part.of(kind, name, common | given, self.trust)
        except MissingPackageError:  # no mistake of the table
            raise
        except FrugalError as error:
            wrong.append(f"{where}{error}")
            return None


def _protocol(entry: Any) -> Any:
    """A table of settings, of what may be tasks alone."""
    return entry if isinstance(entry, dict) and "first" not in entry else {"tasks": entry}


def _sentence(error: Any) -> str:
    """What pydantic found, as one sentence."""
    place = [part for part in error["loc"] if part != "nullable"]
    row = f"row {place[1] + 1}: " if place[:1] == ["rows"] and len(place) > 1 else ""
    place = place[2:] if row else place
    key, value = ".".join(map(str, place)).removeprefix("protocols.."), error["input"]
    if error["type"] == "missing":
        return f"{row}{key} is missing"
    if error["type"] == "extra_forbidden":
        kind: type[BaseModel] = Row if row else Protocol if len(place) > 1 else Experiment
        known = list(kind.model_fields)
        near = suggestion(place[-1], known)
        return f"{row}unknown key {place[-1]!r}.{near} Known: {', '.join(known)}"
    why = error["msg"].removeprefix("Value error, ").replace("Input should be", "expected")
    if why.startswith(f"{key} is "):
        return f"{row}{why}"
    return f"{row}{key} is {value!r}; {why}" if key else f"{row}{value!r}; expected a table"
