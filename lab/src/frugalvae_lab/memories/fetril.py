"""FeTrIL: features of new classes, moved to where old classes stood."""

from __future__ import annotations

import numpy as np

from frugalvae.maths.arrays import Array, stack, unit
from frugalvae.maths.gaussians import RunningSums
from frugalvae.parts.defaults import MemoryDefaults, check_samples
from frugalvae.parts.protocols import Component, Task, component


class FeTrILMemory(MemoryDefaults):
    """Mean of every class, and the features of the last task alone.

    Classes of the last task replay their real features. An older class replays
    those of the last task's class whose mean is nearest to its own by cosine,
    moved from that mean to its own: ``x - mu_new + mu_old``.

    The features are needed only until the head is fitted, so FeTrIL counts the
    means alone. They are kept here until the next task replaces them, for a head
    draws from the memory, and so they are counted as stored.

    References
    ----------
    Petit, Popescu, Schindler, Picard, Delezoide: "FeTrIL: Feature Translation for
    Exemplar-Free Class-Incremental Learning", WACV 2023; there called FeTrIL^1.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> memory = FeTrILMemory()
    >>> memory.learn(Task(np.array([[5.0, 5.0]]), np.array([0])), rng)
    >>> memory.learn(Task(np.array([[1.0, 0.0], [1.0, 2.0]]), np.array([1, 1])), rng)
    >>> memory.means_[1].tolist()
    [1.0, 1.0]
    >>> np.unique(memory.sample(0, 50, rng), axis=0).tolist()
    [[5.0, 4.0], [5.0, 6.0]]
    """

    def __init__(self) -> None:
        self.means_: dict[int, Array] = {}
        self.features_: dict[int, Array] = {}  # of the last task's classes
        self._sources: dict[int, int] = {}  # whose features a class replays; derived, never stored

    @property
    def classes(self) -> list[int]:
        """The classes known so far."""
        return list(self.means_)

    def learn(self, task: Task, rng: np.random.Generator) -> None:
        """Take the mean of each new class, and its features in place of the last task's."""
        self.features_ = {label: task.of(label) for label in task.classes}
        self.means_ = self.means_ | {label: x.mean(axis=0) for label, x in self.features_.items()}
        self._sources = {}

    def sample(self, label: int, count: int, rng: np.random.Generator) -> Array:
        """Draw from the features of the last task, moved to the class if it is an older one."""
        if not self._sources:
            self._sources = self._find_sources()
        source = self._sources[label]
        features = self.features_[source]
        drawn = rng.integers(len(features), size=count)
        if source == label:
            return features[drawn]
        return features[drawn] - self.means_[source] + self.means_[label]

    def _find_sources(self) -> dict[int, int]:
        new = {label: self.means_[label] for label in self.features_}
        old = {label: mean for label, mean in self.means_.items() if label not in new}
        sources = {label: label for label in new}
        if old:
            nearest = nearest_by_cosine(stack(old), stack(new)).tolist()
            sources |= {label: list(new)[row] for label, row in zip(old, nearest, strict=True)}
        return sources

    def update(self, task: Task, count: int, rng: np.random.Generator) -> None:
        """Move the mean; keep the features too if the class is one of the last task's."""
        (label,) = task.classes
        self.means_[label] = RunningSums(count, self.means_[label]).mean_with(task.features)
        if label in self.features_:
            self.features_[label] = np.concatenate([self.features_[label], task.features])
        self._sources = {}

    def forget(self, label: int) -> list[str]:
        """Nothing remains. Without features of the last task, classes are no more than means."""
        del self.means_[label]
        self.features_.pop(label, None)
        if not self.features_ and self.means_:
            last = list(self.means_)[-1]
            self.features_ = {last: self.means_[last][None]}
        self._sources = {}
        return []

    def components(self) -> list[Component]:
        """Means, and features that the paper does not count."""
        if not self.means_:
            return []
        dim = len(next(iter(self.means_.values())))
        kept = sum(len(features) for features in self.features_.values())
        return self.cost(dim, len(self.means_), samples=kept)

    def cost(
        self, dim: int, classes: int, tasks: int = 1, samples: int | None = None
    ) -> list[Component]:
        """What it will cost after tasks of equally many samples."""
        last = round(check_samples("fetril", samples) / tasks)
        return [
            component("class means", classes * dim),
            component("features of the last task", 0, last * dim),
        ]


def nearest_by_cosine(points: Array, candidates: Array) -> Array:
    """For each point (n, d) the row of the candidate (k, d) in the most similar direction.

    >>> nearest_by_cosine(np.array([[9.0, 1.0]]), np.array([[9.0, 9.0], [1.0, 0.0]])).tolist()
    [1]
    """
    return (unit(points) @ unit(candidates).T).argmax(axis=1)
