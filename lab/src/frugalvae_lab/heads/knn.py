"""k nearest neighbours among all stored features."""

from __future__ import annotations

import numpy as np

from frugalvae.errors import check_number
from frugalvae.maths.arrays import Array, unit
from frugalvae.parts.defaults import HeadDefaults
from frugalvae.parts.protocols import Memory, Replay, Task

NONE = 1e-6  # the vote of a class that is not among the neighbours
TOGETHER = 512  # rows that are compared at once: more take memory, and no less time


class NearestNeighboursHead(HeadDefaults):
    """Weighted votes of the nearest stored features, by cosine: nothing to fit, nothing to keep.

    Parameters
    ----------
    neighbours
        How many vote.
    temperature
        A neighbour of cosine c counts exp(c / temperature).
    samples
        Draws per class, where the memory does not store all features.

    References
    ----------
    Wu et al., "Unsupervised Feature Learning via Non-Parametric Instance Discrimination", 2018.
    """

    seed_: int
    needs_every_task = False  # it reads the memory as it is

    def __init__(
        self, *, neighbours: int = 20, temperature: float = 0.03, samples: int = 256
    ) -> None:
        check_number("neighbours", neighbours, 1, 65_536, whole=True)
        check_number("temperature", temperature, 1e-3)
        check_number("samples", samples, 1, 65_536, whole=True)
        self.neighbours, self.temperature, self.samples = neighbours, temperature, samples
        self.classes_: list[int] = []
        self.memory_: Memory | None = None  # the classifier's: a file holds it once
        self._stored: tuple[Array, Array] | None = None  # derived; never stored

    @property
    def classes(self) -> list[int]:
        """The classes known so far."""
        return self.classes_

    def learn(self, task: Task, replay: Replay) -> None:
        """Keep a reference to the memory."""
        self.memory_, self.classes_ = replay.memory, list(replay.classes)
        self.seed_ = int(replay.rng.integers(2**31 - 1))
        self._stored = None

    def update(self, task: Task, count: int, replay: Replay) -> None:
        """The same with more samples of a class."""
        self.learn(task, replay)

    def forget(self, label: int) -> list[str]:
        """Drop the class: the memory drops its samples."""
        if label in self.classes_:
            self.classes_ = [known for known in self.classes_ if known != label]
            self._stored = None
        return []

    def logits(self, features: Array) -> Array:
        """Logarithms of the votes for each class, (n, k)."""
        x, starts = unit(features.astype(np.float32)), range(0, len(features), TOGETHER)
        votes = [self._votes(x[start : start + TOGETHER]) for start in starts]
        return np.concatenate([np.empty((0, len(self.classes_))), *votes])

    def _votes(self, x: Array) -> Array:
        """The same of rows (n, d) of length one."""
        stored, columns = self._neighbours()  # (N, d), (N,)
        similar = x @ stored.T  # (n, N)
        others = max(0, len(stored) - self.neighbours)
        nearest = np.argpartition(similar, others, axis=1)[:, others:]  # (n, count)
        closeness = np.take_along_axis(similar, nearest, axis=1).astype(np.float64)
        votes = np.exp((closeness - closeness.max(axis=1, keepdims=True)) / self.temperature)
        scores = np.full((len(x), len(self.classes_)), NONE)
        np.add.at(scores, (np.arange(len(x))[:, None], columns[nearest]), votes)
        logits: Array = np.log(scores)
        return logits

    def _neighbours(self) -> tuple[Array, Array]:
        """Stored features (N, d) of length one, and the column of each one's class."""
        if self._stored is None:
            assert self.memory_ is not None
            x, y = Replay(self.memory_, np.random.default_rng(self.seed_)).everything(self.samples)
            known = {label: column for column, label in enumerate(self.classes_)}
            columns = np.array([known.get(label, -1) for label in self.memory_.classes])[y]
            kept = columns >= 0
            self._stored = unit(x[kept].astype(np.float32)), columns[kept]
        return self._stored

    def arrays(self) -> dict[str, Array]:
        """Nothing but the seed of draws."""
        return {"seed": np.array([self.seed_], np.float64)}
