"""What an experiment is: rows, columns, and how both are measured."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from frugalvae.errors import FrugalError, InputError
from frugalvae.parts import HEADS, MEMORIES
from frugalvae.parts.registry import LABORATORY, Registry, parameters_of, settings_of
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
#: Figures that look at more than accuracy.
FIGURES = ("tsne", "placement")
KINDS = ("table", "courses", "race", *FIGURES)
MEASURES = ("every task", "last task")
#: What else an experiment can look at.
OBSERVED = ("samples",)
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

Tasks = int | list[int] | dict[str, int | float]
#: Samples per class: a number, or numbers of which each class gets one; ``None`` for all.
Shots = int | list[int] | None


@dataclass(frozen=True)
class Protocol:
    """How a data set becomes a stream.

    Attributes
    ----------
    tasks
        Number of tasks, their sizes, or a first task and how many later ones.
    shots, long_tail
        Which training samples are learned; see :mod:`frugalvae_lab.bench.draw`.
    data
        The data sets that it is for; ``None`` for all but joined ones, such as
        ``ucf101+cars196``, which are for protocols that name them.
    """

    tasks: Tasks = 10
    shots: Shots = None
    long_tail: int | float | None = None
    data: list[str] | None = None

    @classmethod
    def of(cls, entry: Any) -> Protocol:
        """As a file has it: a table of these, or tasks alone.

        >>> Protocol.of({"shots": 4})
        Protocol(tasks=10, shots=4, long_tail=None, data=None)
        >>> Protocol.of({"first": 0.5, "later": 5}).tasks
        {'first': 0.5, 'later': 5}
        """
        plain = not isinstance(entry, dict) or "first" in entry
        return cls(entry) if plain else cls(**entry)

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
    given
        The settings to make it with.
    settings
        All that it has then.
    defaults
        All that it has if none are given; ``None`` to look that up.
    trust
        Modules and classes that whoever calls has named: a worker makes it under these.
    """

    kind: str
    name: str
    given: dict[str, Any]
    settings: dict[str, Any]
    defaults: dict[str, Any] | None = None
    trust: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, kind: str, name: str, given: Mapping[str, Any], trust: tuple[str, ...] = ()
    ) -> Part:
        """A part with these settings, which is made once to see the others."""
        settings = plain_settings(PARTS[kind].make(name, given, trust))
        return cls(kind, name, dict(given), settings, trust=trust)

    def make(self, **changes: Any) -> Any:
        """The part, with any of its settings changed."""
        return PARTS[self.kind].make(self.name, {**self.given, **changes}, self.trust)

    def to_json(self) -> dict[str, Any]:
        """Name and settings in one table."""
        return {"name": self.name, **self.settings}

    def changed(self) -> dict[str, Any]:
        """Name, and the settings that are not the defaults."""
        usual = self.defaults
        if usual is None:
            usual = defaults(self.kind, self.name, self.trust)
        return {"name": self.name} | {
            key: value
            for key, value in self.settings.items()
            if key not in usual or usual[key] != value
        }


def is_ours(kind: str, name: object) -> bool:
    """Whether a part is the product's or the laboratory's: no record has to describe it.

    >>> is_ours("memory", "moments"), is_ours("memory", "factors"), is_ours("memory", "my:Own")
    (True, True, False)
    """
    known = isinstance(name, str) and name in PARTS[kind]
    place = PARTS[kind].place(str(name)) if known else ""
    return place.partition(".")[0] in ("frugalvae", LABORATORY)


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


@dataclass(frozen=True)
class Row:
    """One line of a table: what is run, and what the paper has in its place.

    Attributes
    ----------
    name, labels
        What the line is called, and its entries in columns of ticks and crosses.
    memory, head
        What is run; ``None`` for a line that is only quoted.
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
    memory: Part | None
    head: Part | None
    labels: dict[str, str] = field(default_factory=dict)
    paper: dict[str, list[float]] = field(default_factory=dict)
    backbone: str = ""
    replay: str = ""
    parameters: float | None = None
    seeds: dict[str, list[int]] = field(default_factory=dict)

    def seeds_of(self, data: str, protocol: str) -> list[int] | None:
        """The only seeds of a column, by the closest of its names; ``None`` for all.

        >>> row = Row("slow", None, None, seeds={"*": [0, 1], "digits": [0], "digits all": [2]})
        >>> row.seeds_of("digits", "all"), row.seeds_of("digits", "1"), row.seeds_of("birds", "1")
        ([2], [0], [0, 1])
        """
        names = (f"{data} {protocol}".strip(), data, "*")
        return next((self.seeds[name] for name in names if name in self.seeds), None)

    @property
    def quoted(self) -> bool:
        """Whether this line is the paper's alone."""
        return self.memory is None


@dataclass(frozen=True)
class Experiment:
    """A table or a figure: rows, columns, how both are measured, and what else is looked at."""

    name: str
    title: str
    rows: tuple[Row, ...]
    about: str = ""
    reference: str = ""
    paper_backbone: str = ""
    kind: str = "table"
    metric: str = "final_average_accuracy"
    measure: str = "every task"
    observe: str | None = None
    show_memory: bool = False
    data: tuple[str, ...] = ("digits",)
    seeds: tuple[int, ...] = (0, 1, 2)
    protocols: dict[str, Protocol] = field(default_factory=lambda: {"": Protocol()})
    held_out: float | None = None
    encoder: Part | None = None
    source: dict[str, Any] = field(default_factory=dict, compare=False)
