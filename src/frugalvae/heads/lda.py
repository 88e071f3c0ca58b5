"""Streaming linear discriminant analysis."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from frugalvae.errors import InputError, check_number
from frugalvae.heads.class_means import ClassMeans, Counts
from frugalvae.maths.arrays import Array, stack
from frugalvae.maths.running_sums import RunningSums
from frugalvae.maths.symmetric import add_ridge, pack
from frugalvae.parts.cost import Component, component, triangle


class StreamingLDAHead(ClassMeans):
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
        super().__init__()
        self.shrinkage = shrinkage
        self.scatter_: Array | None = None  # (d, d), of samples around their class means
        self.count_ = 0
        self._rule: tuple[Array, Array] | None = None  # derived; never stored

    def _add(self, label: int, before: RunningSums, x: Array) -> None:
        super()._add(label, before, x)
        rows = before.deviations(x)
        scatter = rows.T @ rows
        self.scatter_ = scatter if self.scatter_ is None else self.scatter_ + scatter
        self.count_ += len(x)
        self._rule = None

    def merge(
        self, other: ClassMeans, labels: Mapping[int, int], counts: Counts, others: Counts
    ) -> None:
        """Add means and scatter of another head."""
        assert isinstance(other, StreamingLDAHead)
        if other.scatter_ is not None:
            mine = np.zeros_like(other.scatter_) if self.scatter_ is None else self.scatter_
            self.scatter_ = mine + other.scatter_
        self.count_ += other.count_
        super().merge(other, labels, counts, others)

    def _join(self, label: int, before: RunningSums | None, more: RunningSums) -> None:
        if before is not None:
            assert self.scatter_ is not None
            apart, both = more.mean - before.mean, before.count + more.count
            between = np.outer(apart, apart) * (before.count * more.count / both)
            self.scatter_ = self.scatter_ + between
        super()._join(label, before, more)
        self._rule = None

    def _remove(self, label: int, left: RunningSums, x: Array) -> None:
        assert self.scatter_ is not None
        rows = left.deviations(x)
        scatter = self.scatter_ - rows.T @ rows
        if float(scatter.diagonal().min()) < -1e-6 * float(scatter.diagonal().max()):
            raise InputError(
                f"these {len(x)} samples were not all taught: without them a variance would be "
                "negative"
            )
        super()._remove(label, left, x)
        self.scatter_, self.count_, self._rule = scatter, self.count_ - len(x), None

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
        return features.astype(np.float64) @ weights + bias

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
