"""Parts of somebody else, as a file may name them: this package knows nothing of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from frugalvae.maths.arrays import Array
from frugalvae.parts.protocols import Component, Replay, Task, component


class MeanMemory:
    """Says nothing of files: constructor arguments, and attributes that end in ``_``."""

    def __init__(self, spread: float = 0.1) -> None:
        self.spread = spread
        self.means_: dict[int, Array] = {}

    @property
    def classes(self) -> list[int]:
        return list(self.means_)

    def learn(self, task: Task, rng: np.random.Generator) -> None:
        for label in task.classes:
            self.means_[label] = task.of(label).mean(axis=0)
        self.last_ = task.classes[-1]  # which no constructor sets

    def sample(self, label: int, count: int, rng: np.random.Generator) -> Array:
        mean = self.means_[label]
        drawn = mean + self.spread * rng.standard_normal((count, len(mean)))
        return drawn.astype(np.float32)

    def update(self, task: Task, count: int, rng: np.random.Generator) -> None:
        (label,) = task.classes
        total = count * self.means_[label] + task.features.sum(axis=0)
        self.means_[label] = total / (count + len(task.features))

    def forget(self, label: int) -> list[str]:
        del self.means_[label]
        return []

    def arrays(self) -> dict[str, Array]:
        return {f"means.{label}": mean for label, mean in self.means_.items()}

    def components(self) -> list[Component]:
        return [component("means", sum(mean.size for mean in self.means_.values()))]


class NearestHead:
    """Says itself what a file keeps of it."""

    needs_every_task = True

    def __init__(self) -> None:
        self.known: list[int] = []
        self.centres = np.empty((0, 0), np.float32)

    @property
    def classes(self) -> list[int]:
        return self.known

    def register(self, task: Task) -> None:
        pass

    def learn(self, task: Task, replay: Replay) -> None:
        self.known = self.known + task.classes
        new = np.stack([task.of(label).mean(axis=0) for label in task.classes])
        self.centres = np.concatenate([self.centres, new]) if self.centres.size else new

    def update(self, task: Task, count: int, replay: Replay) -> None:
        pass

    def forget(self, label: int) -> list[str]:
        row = self.known.index(label)
        self.known = [known for known in self.known if known != label]
        self.centres = np.delete(self.centres, row, axis=0)
        return []

    def logits(self, features: Array) -> Array:
        distances: Array = ((features[:, None] - self.centres) ** 2).sum(axis=2)
        return -distances.astype(np.float64)

    def arrays(self) -> dict[str, Array]:
        return {"centres": self.centres}

    def components(self) -> list[Component]:
        return [component("centres", self.centres.size)]

    def state(self) -> dict[str, Any]:
        return {"known": self.known, "centres": self.centres}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> NearestHead:
        head = cls()
        head.known, head.centres = state["known"], state["centres"]
        return head


class Forgetful(MeanMemory):
    """Its constructor does not keep what it is given."""

    def __init__(self, size: int = 3) -> None:
        super().__init__()


def function() -> None:
    """No class."""
