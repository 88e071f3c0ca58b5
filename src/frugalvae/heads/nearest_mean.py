"""Nearest mean: the class whose mean is closest to the feature."""

from __future__ import annotations

import numpy as np

from frugalvae.cost import Component, component
from frugalvae.heads.defaults import HeadDefaults
from frugalvae.interfaces import Replay, Task
from frugalvae.maths.arrays import Array, squared_distances, stack
from frugalvae.maths.running_sums import RunningSums


class NearestMeanHead(HeadDefaults):
    """Classifies by the nearest class mean, which it takes from the task itself: no replay.

    >>> head = NearestMeanHead()
    >>> head.learn(Task(np.array([[0.0], [10.0]]), np.array([0, 1])), None)
    >>> int(head.logits(np.array([[7.0]])).argmax())
    1
    """

    def __init__(self) -> None:
        self.means_: dict[int, Array] = {}

    @property
    def classes(self) -> list[int]:
        """The classes known so far."""
        return list(self.means_)

    def learn(self, task: Task, replay: Replay | None) -> None:
        """Store the mean of each new class."""
        for label in task.classes:
            self._add(label, RunningSums(), task.of(label))

    def update(self, task: Task, count: int, replay: Replay | None) -> None:
        """Store the mean of old and new samples together."""
        (label,) = task.classes
        self._add(label, RunningSums(count, self.means_[label]), task.features)

    def _add(self, label: int, before: RunningSums, features: Array) -> None:
        self.means_[label] = before.mean_with(features.astype(np.float64)).astype(np.float32)

    def logits(self, features: Array) -> Array:
        """Minus half the squared distance to each mean, (n, k)."""
        means = stack(self.means_).astype(np.float64)  # (k, d)
        return -0.5 * squared_distances(features.astype(np.float64), means)

    def arrays(self) -> dict[str, Array]:
        """One vector per class."""
        return {"means": stack(self.means_)}

    def components(self) -> list[Component]:
        """One vector per class."""
        return [component("head: means", self.arrays()["means"].size)]
