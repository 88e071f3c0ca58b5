"""What a memory is."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from frugalvae.accounting import Component
from frugalvae.arrays import Array
from frugalvae.memories.densities import Shrinkage
from frugalvae.tasks import Task


class Memory(Protocol):
    """Learns classes task by task and gives back features of any of them.

    A memory is made with its settings alone and knows nothing beforehand: not
    how many classes or tasks will come, nor how wide features are. All
    randomness comes from the generator that is passed in. What goes in and what
    comes out are NumPy arrays, whatever it computes with.
    """

    @property
    def classes(self) -> list[int]:
        """The classes known so far, in the order in which they were learned."""
        ...

    def learn(self, task: Task, rng: np.random.Generator) -> None:
        """Take in a task's classes, none of which is known yet."""
        ...

    def sample(self, label: int, count: int, rng: np.random.Generator) -> Array:
        """Features of one class, shape (count, d), float32."""
        ...

    def update(self, task: Task, count: int, rng: np.random.Generator) -> None:
        """Take in more samples of one class, which is known and had ``count`` before."""
        ...

    def forget(self, label: int) -> list[str]:
        """Drop what is kept of a class. A sentence for each trace of it that remains."""
        ...

    def arrays(self) -> dict[str, Array]:
        """Every number that has to be kept to replay and to learn on."""
        ...

    def components(self) -> list[Component]:
        """The same numbers counted by purpose: as the paper counts, and as stored."""
        ...


class DensityMemory(Memory, Protocol):
    """A memory that says how probable a feature is under each class."""

    @property
    def density_width(self) -> int:
        """How many coordinates of a feature the density is of."""
        ...

    def log_density(self, features: Array, shrinkage: Shrinkage = ...) -> Array:
        """Logarithm of each class's density at each row, (n, k), classes in their order.

        Up to what is the same for all classes: differences between columns count.
        """
        ...


@runtime_checkable
class MeanMemory(Memory, Protocol):
    """A memory that knows the mean of each class without drawing samples."""

    def mapped(self, features: Array) -> Array:
        """Features in the terms in which it has means, such as their roots."""
        ...

    def mapped_means(self) -> Array:
        """The mean of each class's features in these terms, (k, d), classes in their order."""
        ...
