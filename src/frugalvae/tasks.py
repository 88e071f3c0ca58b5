"""What arrives at once, and what can be replayed of all that came before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from frugalvae.arrays import Array

if TYPE_CHECKING:
    from frugalvae.memories.base import Memory


@dataclass(frozen=True)
class Task:
    """New classes that arrive together.

    Attributes
    ----------
    features
        One row a sample, shape (n, d), float32.
    labels
        The class of each row, (n,): a number that this class keeps for ever.
    text
        Text features of class names, for heads that can start from them.
    names
        Class names, for heads that make prompts of them.

    Examples
    --------
    >>> task = Task(np.eye(3), np.array([5, 2, 5]))
    >>> task.classes
    [2, 5]
    >>> task.of(2).tolist()
    [[0.0, 1.0, 0.0]]
    """

    features: Array
    labels: Array
    text: Mapping[int, Array] = field(default_factory=dict)
    names: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def empty(cls, dim: int) -> Task:
        """A task without classes: nothing new."""
        return cls(np.empty((0, dim), np.float32), np.empty(0, np.int64))

    @property
    def classes(self) -> list[int]:
        """The classes of the task in ascending order."""
        return sorted(set(self.labels.tolist()))

    def of(self, label: int) -> Array:
        """The rows of one class."""
        rows: Array = self.features[self.labels == label]
        return rows


@dataclass(frozen=True)
class Replay:
    """Synthetic features of every class that a memory holds.

    Attributes
    ----------
    memory
        Where samples come from.
    rng
        What they are drawn with.
    """

    memory: Memory
    rng: np.random.Generator

    @property
    def classes(self) -> list[int]:
        """All classes that can be drawn, in the order in which they were learned."""
        return self.memory.classes

    def draw(self, per_class: int) -> tuple[Array, Array]:
        """Features (k * per_class, d), and for each the position of its class."""
        samples = [self.memory.sample(label, per_class, self.rng) for label in self.classes]
        return np.concatenate(samples), np.arange(len(samples)).repeat(per_class)
