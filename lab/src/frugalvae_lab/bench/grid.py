"""Which runs a table is made of, and what decides the result of each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from frugalvae.errors import check_choice
from frugalvae.files import json_digest
from frugalvae_lab.bench.specification import FIGURES, Experiment, Part, Row, Shots, Tasks
from frugalvae_lab.bench.tasks import first_then_equal

#: The version of all defaults together. Raise it when the same settings give other results than
#: before, so that what was measured until then no longer counts. A new setting does not need
#: that, if its default is what was done before; nor does a default that changes, because a
#: record tells what it was made with.
RESULTS = 1


@dataclass(frozen=True)
class Cell:
    """What is run.

    Attributes
    ----------
    data, fingerprint
        Name of the data set, and a hash of its content.
    tasks
        Number of tasks, their sizes, or a first task and how many later ones.
    memory, head, seed
        What learns, and the seed of everything random, the order of classes included.
    held_out
        Share of the training samples to measure on instead of the test set.
    encoder
        What is trained on the first task's images; ``None`` where the data are features.
    observe
        What else is looked at after each task: for a figure, or samples.
    every_task
        Whether accuracy is measured after every task, or after the last one only. The
        final accuracy does not depend on it, so neither does the key.
    shots, long_tail
        Which training samples are learned; see :mod:`frugalvae_lab.bench.tasks`.
    brief
        Whether only scores and cost are kept, as a race has thousands of runs; the key does
        not depend on it.
    """

    data: str
    fingerprint: str
    tasks: Tasks
    memory: Part
    head: Part
    seed: int
    held_out: float | None = None
    encoder: Part | None = None
    observe: str | None = None
    every_task: bool = True
    shots: Shots = None
    long_tail: int | float | None = None
    brief: bool = False

    def settings(self) -> dict[str, Any]:
        """Everything that decides the result, as plain JSON."""
        return {
            "results": RESULTS,
            "data": self.data,
            "fingerprint": self.fingerprint,
            "tasks": self.tasks,
            "memory": self.memory.to_json(),
            "head": self.head.to_json(),
            "seed": self.seed,
            "held_out": self.held_out,
            "encoder": self.encoder.to_json() if self.encoder else None,
            "observe": self.observe,
            "shots": self.shots,
            "long_tail": self.long_tail,
        }

    @property
    def key(self) -> str:
        """A hash of the settings that are not the defaults: a new one leaves it as it was."""
        parts = {"memory": self.memory, "head": self.head, "encoder": self.encoder}
        changed = self.settings() | {kind: part and part.changed() for kind, part in parts.items()}
        return json_digest({name: value for name, value in changed.items() if value is not None})

    def agrees(self, recorded: Mapping[str, Any]) -> bool:
        """Whether a run with these recorded settings is this one.

        A record may lack a setting that is newer, and may have one that is gone.
        """
        ours: dict[str, Any] = json.loads(json.dumps(self.settings()))
        return all(_same(value, recorded.get(name)) for name, value in ours.items())

    @property
    def name(self) -> str:
        """What a person calls the run, and its file: the key sets apart what this does not."""
        parts = [self.data, self.memory.name, self.head.name, f"seed{self.seed}", self.key[:10]]
        return "-".join(parts).replace(":", ".")  # of module:Class; no colon in a file's name

    def task_sizes(self, classes: int) -> int | list[int]:
        """The tasks as :func:`frugalvae_lab.bench.tasks.split_classes` takes them.

        Where there are fewer classes than tasks, each class is a task.
        """
        if isinstance(self.tasks, dict):
            return first_then_equal(classes, self.tasks["first"], int(self.tasks["later"]))
        return min(self.tasks, classes) if isinstance(self.tasks, int) else self.tasks


def _same(value: Any, recorded: Any) -> bool:
    """Whether values are equal; of tables, whether those that both have are."""
    if isinstance(value, dict) and isinstance(recorded, dict):
        return all(value[key] == recorded[key] for key in value.keys() & recorded.keys())
    return bool(value == recorded)


class TablePlace(NamedTuple):
    """Where in a table a run belongs."""

    row: Row
    data: str
    protocol: str
    seed: int


def selected(
    experiments: Sequence[Experiment], rows: Sequence[str], protocols: Sequence[str]
) -> list[Experiment]:
    """The same experiments with these rows and protocols alone; without names, with all."""
    known_rows = {row.name: row for experiment in experiments for row in experiment.rows}
    known = {name: 0 for experiment in experiments for name in experiment.protocols}
    for row in rows:
        check_choice("row", row, known_rows)
    for protocol in protocols:
        check_choice("protocol", protocol, known)
    found = []
    for one in experiments:
        kept = {name: p for name, p in one.protocols.items() if name in (protocols or known)}
        lines = [row for row in one.rows if row.name in (rows or known_rows)]
        found.append(one.model_copy(update={"rows": lines, "protocols": kept}))
    return found


def grid(experiments: Sequence[Experiment], data: Mapping[str, Mapping[str, Any]]) -> list[Cell]:
    """Every run that some tables need, once; all rows of the first seed come first.

    ``data`` has of each data set its ``fingerprint``, and its ``backbone`` if it has one.
    """
    found: dict[tuple[str, bool], Cell] = {}  # a race keeps its runs apart
    for position in range(max(len(experiment.seeds) for experiment in experiments)):
        for experiment in experiments:
            for seed in experiment.seeds[position : position + 1]:
                own = {name: data[name] for name in experiment.data if name in data}
                for _, cell in places(experiment, own, [seed]):
                    place_of = cell.key, cell.brief
                    if place_of not in found or cell.every_task:
                        found[place_of] = cell
    return list(found.values())


def places(
    experiment: Experiment,
    data: Mapping[str, Mapping[str, Any]],
    seeds: Sequence[int] | None = None,
) -> Iterator[tuple[TablePlace, Cell]]:
    """All entries of a table and the run behind each; lines that are only quoted have none.

    Without ``seeds``, those of each data set.
    """
    observe = experiment.kind if experiment.kind in FIGURES else experiment.observe
    for name, about in data.items():
        if not takes(experiment, about):
            continue
        for protocol, stream in experiment.protocols.items():
            for row in experiment.rows if stream.takes(name) else ():
                if row.memory is None or row.head is None:
                    continue
                few = row.seeds_of(name, protocol)
                for seed in about["seeds"] if seeds is None else seeds:
                    if few is not None and seed not in few:
                        continue
                    cell = Cell(
                        data=name,
                        fingerprint=about["fingerprint"],
                        tasks=stream.tasks,
                        memory=row.memory,
                        head=row.head,
                        seed=seed,
                        held_out=experiment.held_out,
                        encoder=experiment.encoder,
                        observe=observe,
                        every_task=experiment.measure == "every task",
                        shots=stream.shots,
                        long_tail=stream.long_tail,
                        brief=experiment.kind == "race",
                    )
                    yield TablePlace(row, name, protocol, seed), cell


def takes(experiment: Experiment, about: Mapping[str, Any]) -> bool:
    """Whether a table can be run on a data set.

    One with an encoder takes images; one with a head that starts from text features takes
    data that has them.
    """
    if (about["backbone"] is None) != (experiment.encoder is not None):
        return False
    starts = {row.head.settings.get("start") for row in experiment.rows if row.head}
    return "text" not in starts or about.get("text", False)
