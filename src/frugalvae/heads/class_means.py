"""What heads share that keep the mean of each class, taken from real features."""

from __future__ import annotations

import numpy as np

from frugalvae.heads.defaults import HeadDefaults
from frugalvae.interfaces import Replay, Task
from frugalvae.maths.arrays import Array
from frugalvae.maths.running_sums import RunningSums


class ClassMeans(HeadDefaults):
    """Keeps class means exactly, task by task; a subclass adds what else it keeps."""

    def __init__(self) -> None:
        self.means_: dict[int, Array] = {}

    @property
    def classes(self) -> list[int]:
        """The classes known so far."""
        return list(self.means_)

    def learn(self, task: Task, replay: Replay | None) -> None:
        """Add the samples of the task's classes."""
        for label in task.classes:
            self._add(label, RunningSums(), task.of(label).astype(np.float64))

    def update(self, task: Task, count: int, replay: Replay | None) -> None:
        """Give exactly what learning old and new samples together would have given."""
        (label,) = task.classes
        before = RunningSums(count, self.means_[label])
        self._add(label, before, task.features.astype(np.float64))

    def _add(self, label: int, before: RunningSums, x: Array) -> None:
        """Add samples x (n, d) of a class to what was there before."""
        self.means_[label] = before.mean_with(x).astype(np.float32)
