"""Heads that need no gradient steps: nearest mean, ridge, streaming LDA."""

from __future__ import annotations

import numpy as np

from frugalvae.cost import Component, component, triangle
from frugalvae.errors import check_number
from frugalvae.heads.defaults import HeadDefaults
from frugalvae.interfaces import Replay, Task
from frugalvae.maths.arrays import Array, one_hot, squared_distances, stack
from frugalvae.maths.moments import merge
from frugalvae.maths.symmetric import add_ridge, pack


class NearestMeanHead(HeadDefaults):
    """The class whose mean is nearest. Takes means from the task itself: no replay.

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
        """Keep the mean of each new class."""
        self.means_ |= {label: _mean(task.of(label)) for label in task.classes}

    def update(self, task: Task, count: int, replay: Replay | None) -> None:
        """Move the mean to that of all samples."""
        (label,) = task.classes
        mean, _ = merge(self.means_[label], count, task.features.astype(np.float64))
        self.means_[label] = mean.astype(np.float32)

    def logits(self, features: Array) -> Array:
        """Minus half the squared distance."""
        means = stack(self.means_).astype(np.float64)
        return -0.5 * squared_distances(features.astype(np.float64), means)

    def arrays(self) -> dict[str, Array]:
        """One vector a class."""
        return {"means": stack(self.means_)}

    def components(self) -> list[Component]:
        """One vector a class."""
        return [component("head: means", self.arrays()["means"].size)]


class RidgeHead(HeadDefaults):
    """Least squares on one-hot targets with a quadratic penalty, fitted on replay.

    ``penalty`` is relative to the mean variance of the features, so that it means
    the same whatever their scale. ``scale`` turns the fitted targets, which lie
    between 0 and 1, into logits.
    """

    needs_every_task = False  # it is fitted anew on replay

    def __init__(self, *, samples: int = 512, penalty: float = 1e-2, scale: float = 20.0) -> None:
        check_number("samples", samples, 1, whole=True)
        check_number("penalty", penalty, 1e-12)
        check_number("scale", scale, 1e-12)
        self.samples = samples
        self.penalty = penalty
        self.scale = scale
        self.classes_: list[int] = []

    @property
    def classes(self) -> list[int]:
        """The classes known so far."""
        return self.classes_

    def learn(self, task: Task, replay: Replay) -> None:
        """Solve for all classes anew."""
        self.classes_ = list(replay.classes)
        x, y = replay.draw(self.samples)
        targets, x = one_hot(y, len(self.classes_)), x.astype(np.float64)
        centre, prior = x.mean(axis=0), targets.mean(axis=0)
        centred = x - centre
        gram = add_ridge(centred.T @ centred, self.penalty)
        weights = np.linalg.solve(gram, centred.T @ (targets - prior))  # (d, k)
        self.weights_ = weights.astype(np.float32)
        self.bias_ = (prior - centre @ weights).astype(np.float32)

    def update(self, task: Task, count: int, replay: Replay) -> None:
        """Solve for all classes anew."""
        self.learn(task, replay)

    def forget(self, label: int) -> list[str]:
        """Drop the class's weights."""
        if label not in self.classes_:
            return []
        keep = [column for column, known in enumerate(self.classes_) if known != label]
        self.weights_, self.bias_ = self.weights_[:, keep].copy(), self.bias_[keep]
        self.classes_ = [known for known in self.classes_ if known != label]
        return ["the head's other weights were fitted on replay of it beside the others"]

    def logits(self, features: Array) -> Array:
        """The fitted targets, scaled."""
        targets: Array = features.astype(np.float64) @ self.weights_ + self.bias_
        return self.scale * targets

    def arrays(self) -> dict[str, Array]:
        """Weights and biases."""
        return {"weights": self.weights_, "bias": self.bias_}


class StreamingLDAHead(HeadDefaults):
    """Bayes rule with one shared covariance, kept up to date sample by sample; no replay.

    Learning task by task gives exactly what learning everything at once gives.

    Parameters
    ----------
    shrinkage
        Added to the diagonal of the covariance, as a part of its mean entry.

    References
    ----------
    Hayes and Kanan, "Lifelong Machine Learning with Deep Streaming Linear
    Discriminant Analysis", 2020.
    """

    def __init__(self, *, shrinkage: float = 0.05) -> None:
        check_number("shrinkage", shrinkage, 0)
        self.shrinkage = shrinkage
        self.means_: dict[int, Array] = {}
        self.scatter_: Array | None = None
        self.count_ = 0
        self._rule: tuple[Array, Array] | None = None  # derived; never stored

    @property
    def classes(self) -> list[int]:
        """The classes known so far."""
        return list(self.means_)

    def learn(self, task: Task, replay: Replay | None) -> None:
        """Add the task's means and scatter."""
        for label in task.classes:
            x = task.of(label).astype(np.float64)
            mean = x.mean(axis=0)
            self.means_[label] = mean.astype(np.float32)
            centred = x - mean
            scatter = centred.T @ centred
            self.scatter_ = scatter if self.scatter_ is None else self.scatter_ + scatter
            self.count_ += len(x)
        self._rule = None

    def update(self, task: Task, count: int, replay: Replay | None) -> None:
        """Exactly what learning old and new samples together would have given."""
        (label,) = task.classes
        mean, rows = merge(self.means_[label], count, task.features.astype(np.float64))
        self.means_[label] = mean.astype(np.float32)
        assert self.scatter_ is not None
        self.scatter_ = self.scatter_ + rows.T @ rows
        self.count_ += len(task.features)
        self._rule = None

    def forget(self, label: int) -> list[str]:
        """Drop the class's mean."""
        del self.means_[label]
        self._rule = None
        return ["the head's shared covariance still contains its samples' scatter"]

    def logits(self, features: Array) -> Array:
        """Log densities up to what all classes share."""
        rule = self._rule
        if rule is None:
            rule = self._rule = self._derive_rule()
        weights, bias = rule
        scores: Array = features.astype(np.float64) @ weights + bias
        return scores

    def _derive_rule(self) -> tuple[Array, Array]:
        assert self.scatter_ is not None
        means = stack(self.means_).astype(np.float64)  # (k, d)
        shrunk = add_ridge(self.scatter_ / self.count_, self.shrinkage)
        weights = np.linalg.solve(shrunk, means.T)  # (d, k)
        bias = -0.5 * (means * weights.T).sum(axis=1)
        return weights, bias

    def arrays(self) -> dict[str, Array]:
        """Means, scatter and how many samples it sums over."""
        assert self.scatter_ is not None
        return {
            "means": stack(self.means_),
            "scatter": pack(self.scatter_),
            "count": np.array([self.count_], np.float64),
        }

    def components(self) -> list[Component]:
        """Means, and a symmetric matrix of which half is kept."""
        dim = len(next(iter(self.means_.values())))
        return [
            component("head: means", len(self.means_) * dim),
            component("head: scatter", dim**2, triangle(dim) + 1, width=8),
        ]


def _mean(x: Array) -> Array:
    """Of rows (n, d), summed in float64."""
    mean: Array = x.mean(axis=0, dtype=np.float64).astype(np.float32)
    return mean
