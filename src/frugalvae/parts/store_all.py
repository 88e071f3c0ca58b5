"""The two ends of the scale: keep everything, keep nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

import numpy as np

from frugalvae.errors import InputError
from frugalvae.maths.arrays import Array
from frugalvae.parts.defaults import MemoryDefaults, check_samples
from frugalvae.parts.protocols import Component, Task, component


class StoreAllMemory(MemoryDefaults):
    """Keeps every feature vector and replays them at random, with replacement.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> memory = StoreAllMemory()
    >>> memory.learn(Task(np.array([[3.0]]), np.array([0])), rng)
    >>> memory.sample(0, 2, rng).tolist()
    [[3.0], [3.0]]
    """

    def __init__(self) -> None:
        self.features_: dict[int, Array] = {}

    @property
    def classes(self) -> list[int]:
        """The classes known so far."""
        return list(self.features_)

    def learn(self, task: Task, rng: np.random.Generator) -> None:
        """Keep the features of each new class."""
        self.features_ |= {label: task.of(label) for label in task.classes}

    def sample(self, label: int, count: int, rng: np.random.Generator) -> Array:
        """Draw from what was kept."""
        features = self.features_[label]
        return features[rng.integers(len(features), size=count)]

    def stored(self, label: int) -> Array:
        """All features of a class, as they were taught."""
        return self.features_[label]

    def merge(
        self, other: StoreAllMemory, labels: Mapping[int, int], counts: object, others: object
    ) -> None:
        """Keep what another memory keeps, too."""
        for theirs, features in other.features_.items():
            mine = self.features_.get(labels[theirs], features[:0])
            self.features_[labels[theirs]] = np.concatenate([mine, features])

    def update(self, task: Task, count: int, rng: np.random.Generator) -> None:
        """Keep the new features too."""
        (label,) = task.classes
        self.features_[label] = np.concatenate([self.features_[label], task.features])

    def cost(
        self, dim: int, classes: int, tasks: int = 1, samples: int | None = None
    ) -> list[Component]:
        """What it will cost."""
        return [component("features", check_samples("store-all", samples) * dim)]


class NoMemory(MemoryDefaults):
    """Keeps nothing: for heads that take what they need from the task itself.

    >>> NoMemory().arrays()
    {}
    """

    def __init__(self) -> None:
        self.classes_: list[int] = []

    @property
    def classes(self) -> list[int]:
        """The classes that went by."""
        return self.classes_

    def learn(self, task: Task, rng: np.random.Generator) -> None:
        """Note the names and let everything go."""
        self.classes_ = self.classes_ + task.classes

    def merge(
        self, other: NoMemory, labels: Mapping[int, int], counts: object, others: object
    ) -> None:
        """Note the names."""
        new = [labels[label] for label in other.classes_ if labels[label] not in self.classes_]
        self.classes_ = self.classes_ + new

    def unlearn(self, task: Task, count: int) -> None:
        """Nothing was kept."""

    def forget_with(self, task: Task) -> list[str]:
        """Drop the name."""
        return self.forget(*task.classes)

    def sample(self, label: int, count: int, rng: np.random.Generator) -> NoReturn:
        """There is nothing to draw from."""
        raise InputError(
            "memory 'none' keeps nothing that could be sampled; choose a memory that does, "
            "such as memory='moments', or a head that needs no replay, such as head='lda'"
        )

    def update(self, task: Task, count: int, rng: np.random.Generator) -> None:
        """Let everything go."""

    def cost(
        self, dim: int, classes: int, tasks: int = 1, samples: int | None = None
    ) -> list[Component]:
        """Nothing."""
        return []
