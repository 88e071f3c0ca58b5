"""What a head need not write itself."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from frugalvae.memories.defaults import Kept
from frugalvae.parts.cost import Component
from frugalvae.parts.protocols import Replay, Task

if TYPE_CHECKING:
    from frugalvae.parts.protocols import Head


class HeadDefaults(Kept):
    """Gives a head all but ``classes``, ``learn`` and ``logits``.

    A head that is fitted anew on replay says ``needs_every_task = False``: then it may be
    fitted once after several tasks.

    Examples
    --------
    >>> class Nearest(HeadDefaults):
    ...     def __init__(self):
    ...         self.means_ = {}
    ...     @property
    ...     def classes(self):
    ...         return list(self.means_)
    ...     def learn(self, task, replay):
    ...         self.means_ |= {label: task.of(label).mean(axis=0) for label in task.classes}
    ...     def logits(self, features):
    ...         means = np.stack(list(self.means_.values()))
    ...         return -((features[:, None] - means) ** 2).sum(axis=2)
    >>> head = Nearest()
    >>> head.learn(Task(np.eye(2), np.array([0, 1])), None)
    >>> head.logits(np.array([[0.9, 0.0]])).argmax(axis=1).tolist(), head.needs_every_task
    ([0], True)
    """

    needs_every_task = True

    def register(self, task: Task) -> None:
        """Nothing: samples are all that it needs of a class."""

    def update(self: Head, task: Task, count: int, replay: Replay) -> None:
        """Learn the class anew, from replay: the memory knows the new samples already."""
        (label,) = task.classes
        drawn = replay.memory.sample(label, count + len(task.features), replay.rng)
        self.forget(label)
        self.learn(Task(drawn, np.full(len(drawn), label)), replay)

    def components(self) -> list[Component]:
        """What it keeps. The paper counts what is kept for replay, not the classifier."""
        return [replace(part, name=f"head: {part.name}", paper=0) for part in super().components()]


class ReplayDefaults(HeadDefaults):
    """The same for a head that is fitted anew on replay and has its classes in ``classes_``."""

    classes_: list[int]
    needs_every_task = False

    @property
    def classes(self) -> list[int]:
        """The classes known so far."""
        return self.classes_

    def learn(self, task: Task, replay: Replay) -> None:
        """Fit all classes on replay."""
        raise NotImplementedError

    def update(self, task: Task, count: int, replay: Replay) -> None:
        """Fit all classes on replay."""
        self.learn(task, replay)
