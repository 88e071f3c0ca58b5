"""What heads share that keep the mean of each class, taken from real features."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from frugalvae.errors import InputError
from frugalvae.heads.defaults import HeadDefaults
from frugalvae.maths.arrays import Array
from frugalvae.maths.running_sums import RunningSums
from frugalvae.parts.protocols import Replay, Task

#: Samples of each class.
Counts = Mapping[int, int]


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

    def unlearn(self, task: Task, count: int) -> None:
        """Take samples of a class out again, exactly."""
        (label,) = task.classes
        x = task.features.astype(np.float64)
        if len(x) >= count:
            raise InputError(
                f"cannot take {len(x)} samples out of a class of {count}; to take out all of them, "
                "forget the class"
            )
        part, left = x.mean(axis=0), count - len(x)
        mean = part + (self.means_[label].astype(np.float64) - part) * (count / left)
        self._remove(label, RunningSums(left, mean), x)

    def forget_with(self, task: Task) -> list[str]:
        """Drop a class whose samples are given, and what they added."""
        (label,) = task.classes
        self._remove(label, RunningSums(), task.features.astype(np.float64))
        del self.means_[label]
        return []

    def merge(
        self, other: ClassMeans, labels: Mapping[int, int], counts: Counts, others: Counts
    ) -> None:
        """Add what another head was taught: its class ``label`` is ``labels[label]`` here."""
        for theirs, mean in other.means_.items():
            label, n = labels[theirs], others[theirs]
            before = RunningSums(counts[label], self.means_[label]) if label in counts else None
            self._join(label, before, RunningSums(n, mean.astype(np.float64)))

    def _join(self, label: int, before: RunningSums | None, more: RunningSums) -> None:
        """Add the mean of more samples of a class to what was there before, if there was any."""
        joined = more.mean
        if before is not None:
            share = more.count / (before.count + more.count)
            joined = before.mean + (more.mean - before.mean) * share
        self.means_[label] = joined.astype(np.float32)

    def _remove(self, label: int, left: RunningSums, x: Array) -> None:
        """Take samples x (n, d) of a class out of what is ``left`` without them."""
        self.means_[label] = np.asarray(left.mean, np.float32)

    def _add(self, label: int, before: RunningSums, x: Array) -> None:
        """Add samples x (n, d) of a class to what was there before."""
        self.means_[label] = before.mean_with(x).astype(np.float32)
