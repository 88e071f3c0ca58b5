"""Runs that differ in their head alone: the network of their memory is trained once."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from frugalvae.files import json_digest
from frugalvae.parts.protocols import Memory, Task
from frugalvae_lab.bench.grid import Cell

MOST_BYTES = 2**30  # of all tasks together; a VAE per class takes more


def stream_of(cell: Cell) -> str:
    """A hash of what decides what a memory learns: all of a cell but its head.

    The generator that a memory is given depends on the seed and the number of the task, so a
    memory learns the same under every head.
    """
    return json_digest({key: value for key, value in cell.settings().items() if key != "head"})


def together(cells: Sequence[Cell]) -> list[Cell]:
    """The cells, those of one stream one after the other: a process keeps one stream only."""
    first: dict[str, int] = {}
    for cell in cells:
        first.setdefault(stream_of(cell), len(first))
    return sorted(cells, key=lambda cell: first[stream_of(cell)])


class LearnedTask(NamedTuple):
    """Attributes of a memory after a task, how long it took to learn, and its warnings."""

    state: dict[str, Any]
    seconds: float
    warnings: list[Warning]


@dataclass
class LearnedStream:
    """What a memory has learned from the last stream.

    Attributes
    ----------
    stream, heads
        Which stream that was, and the heads that have shared it.
    learned
        By the number of classes known before the task. A model never changes a memory that it
        holds, so what is kept is not copied.
    saved
        The seconds that recalling saved in this run, task by task.
    """

    stream: str = ""
    heads: list[dict[str, Any]] = field(default_factory=list)
    learned: dict[int, LearnedTask] = field(default_factory=dict)
    saved: list[float] = field(default_factory=list)

    def share(self, memory: Memory, cell: Cell) -> Memory:
        """The memory of a run; it recalls what its twin in the run before has learned."""
        self.saved = []
        if cell.observe or not getattr(memory, "holds_tensors", False):
            return memory  # an observer sees it learn; all others learn in no time
        stream = stream_of(cell)
        if stream != self.stream or cell.head.to_json() in self.heads:  # made again: learn again
            self.stream, self.learned, self.heads = stream, {}, []
        self.heads.append(cell.head.to_json())
        kind, learned = type(memory), self

        def learn(self: Memory, task: Task, rng: np.random.Generator) -> None:
            learned.learn(kind, self, task, rng)

        memory.__class__ = type(kind.__name__, (kind,), {"learn": learn})
        return memory

    def learn(self, kind: type, memory: Memory, task: Task, rng: np.random.Generator) -> None:
        """Recall a task, or learn and keep it; with the same warnings."""
        known = len(memory.classes)
        if known in self.learned:
            learned = self.learned[known]
            vars(memory).update(learned.state)
            self.saved.append(learned.seconds)
        else:
            learned = self._new(kind, memory, task, rng)
            self.saved.append(0.0)
            self.learned[known] = learned
            size = sum(array.nbytes for array in memory.arrays().values())
            if size * len(self.learned) > MOST_BYTES:
                self.stream, self.learned = "", {}
        for warning in learned.warnings:
            warnings.warn(warning, stacklevel=2)

    def _new(self, kind: type, memory: Memory, task: Task, rng: np.random.Generator) -> LearnedTask:
        started = time.process_time()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            kind.learn(memory, task, rng)  # type: ignore[attr-defined]
        messages = [warning.message for warning in caught if isinstance(warning.message, Warning)]
        return LearnedTask(dict(vars(memory)), time.process_time() - started, messages)
