"""One run of a grid: everything that decides its result, and nothing else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from frugalvae.bench.spec import Part, Tasks
from frugalvae.bench.task_split import first_then_equal

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
        }

    @property
    def key(self) -> str:
        """A hash of the settings that are not the defaults: a new one leaves it as it was."""
        parts = {"memory": self.memory, "head": self.head, "encoder": self.encoder}
        changed = self.settings() | {kind: part and part.changed() for kind, part in parts.items()}
        return digest({name: value for name, value in changed.items() if value is not None})

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
        """The tasks as :func:`frugalvae.bench.task_split.split_classes` takes them."""
        if isinstance(self.tasks, dict):
            return first_then_equal(classes, self.tasks["first"], int(self.tasks["later"]))
        return self.tasks


def _same(value: Any, recorded: Any) -> bool:
    """Whether values are equal; of tables, whether those that both have are."""
    if isinstance(value, dict) and isinstance(recorded, dict):
        return all(value[key] == recorded[key] for key in value.keys() & recorded.keys())
    return bool(value == recorded)


def digest(content: Any) -> str:
    """A hash of plain JSON values that does not depend on the order of keys.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    True
    """
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
