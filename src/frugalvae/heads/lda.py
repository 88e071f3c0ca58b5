"""Streaming linear discriminant analysis."""

from __future__ import annotations

import numpy as np

from frugalvae.cost import Component, component, triangle
from frugalvae.errors import check_number
from frugalvae.heads.defaults import HeadDefaults
from frugalvae.interfaces import Replay, Task
from frugalvae.maths.arrays import Array, stack
from frugalvae.maths.running_sums import RunningSums
from frugalvae.maths.symmetric import add_ridge, pack


class StreamingLDAHead(HeadDefaults):
    """Bayes' rule with one shared covariance, updated task by task; no replay.

    Learning task by task gives exactly what learning everything at once gives.

    Parameters
    ----------
    shrinkage
        What is added to each variance, as a share of the mean variance.

    References
    ----------
    Hayes and Kanan, "Lifelong Machine Learning with Deep Streaming Linear
    Discriminant Analysis", 2020.
    """

    def __init__(self, *, shrinkage: float = 0.05) -> None:
        check_number("shrinkage", shrinkage, 0)
        self.shrinkage = shrinkage
        self.means_: dict[int, Array] = {}
        self.scatter_: Array | None = None  # (d, d), of samples around their class means
        self.count_ = 0
        self._rule: tuple[Array, Array] | None = None  # derived; never stored

    @property
    def classes(self) -> list[int]:
        """The classes known so far."""
        return list(self.means_)

    def learn(self, task: Task, replay: Replay | None) -> None:
        """Add the means and the scatter of the task's classes."""
        for label in task.classes:
            self._add(label, RunningSums(), task.of(label))

    def update(self, task: Task, count: int, replay: Replay | None) -> None:
        """Give exactly what learning old and new samples together would have given."""
        (label,) = task.classes
        self._add(label, RunningSums(count, self.means_[label]), task.features)

    def _add(self, label: int, before: RunningSums, features: Array) -> None:
        gained = before.add(features.astype(np.float64))
        self.means_[label] = gained.mean.astype(np.float32)
        self.scatter_ = gained.scatter if self.scatter_ is None else self.scatter_ + gained.scatter
        self.count_ += len(features)
        self._rule = None

    def forget(self, label: int) -> list[str]:
        """Drop the class's mean."""
        del self.means_[label]
        self._rule = None
        return ["the head's shared covariance still contains its samples' scatter"]

    def logits(self, features: Array) -> Array:
        """Log densities (n, k), up to a term that all classes share."""
        rule = self._rule
        if rule is None:
            rule = self._rule = self._derive_rule()
        weights, bias = rule
        scores: Array = features.astype(np.float64) @ weights + bias
        return scores

    def _derive_rule(self) -> tuple[Array, Array]:
        assert self.scatter_ is not None
        means = stack(self.means_).astype(np.float64)  # (k, d)
        shrunk = add_ridge(self.scatter_ / self.count_, self.shrinkage)  # (d, d)
        weights = np.linalg.solve(shrunk, means.T)  # (d, k)
        bias = -0.5 * (means * weights.T).sum(axis=1)  # (k,)
        return weights, bias

    def arrays(self) -> dict[str, Array]:
        """Means, half of the symmetric scatter, and the number of samples in it."""
        assert self.scatter_ is not None
        return {
            "means": stack(self.means_),
            "scatter": pack(self.scatter_),
            "count": np.array([self.count_], np.float64),
        }

    def components(self) -> list[Component]:
        """Means, and half of the symmetric scatter."""
        dim = len(next(iter(self.means_.values())))
        return [
            component("head: means", len(self.means_) * dim),
            component("head: scatter", dim**2, triangle(dim) + 1, width=8),
        ]
