"""Streaming linear discriminant analysis."""

from __future__ import annotations

import numpy as np

from frugalvae.cost import Component, component, triangle
from frugalvae.errors import check_number
from frugalvae.heads.class_means import ClassMeans
from frugalvae.maths.arrays import Array, stack
from frugalvae.maths.running_sums import RunningSums
from frugalvae.maths.symmetric import add_ridge, pack


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
