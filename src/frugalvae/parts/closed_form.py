"""What heads share that keep the mean of each class, taken from real features."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from frugalvae.errors import InputError, check_number
from frugalvae.maths.arrays import Array, add_ridge, one_hot, pack, squared_distances, stack
from frugalvae.maths.gaussians import RunningSums
from frugalvae.parts.defaults import HeadDefaults, Weights
from frugalvae.parts.protocols import Component, Replay, Task, component, triangle

#: Samples of each class.
Counts = Mapping[int, int]


class ClassMeans(HeadDefaults):
    """Keeps class means exactly, task by task; a subclass adds what else it keeps."""

    def __init__(self) -> None:
        self.means_: dict[int, Array] = {}

    @property
    def classes(self) -> list[int]:
        """The classes known so far."""
        return list(self.means_)

    def learn(self, task: Task, replay: Replay | None) -> None:
        """Add the samples of the task's classes."""
        for label in task.classes:
            self._add(label, RunningSums(), task.of(label).astype(np.float64))

    def update(self, task: Task, count: int, replay: Replay | None) -> None:
        """Give exactly what learning old and new samples together would have given."""
        (label,) = task.classes
        before = RunningSums(count, self.means_[label])
        self._add(label, before, task.features.astype(np.float64))

    def unlearn(self, task: Task, count: int) -> None:
        """Take samples of a class out again, exactly."""
        (label,) = task.classes
        x = task.features.astype(np.float64)
        if len(x) >= count:
            raise InputError(
                f"cannot remove {len(x)} samples from a class of {count}; to remove all of them, "
                "forget the class"
            )
        part, left = x.mean(axis=0), count - len(x)
        mean = part + (self.means_[label].astype(np.float64) - part) * (count / left)
        self._remove(label, RunningSums(left, mean), x)

    def forget_with(self, task: Task) -> list[str]:
        """Drop a class whose samples are given, and what they added."""
        (label,) = task.classes
        self._remove(label, RunningSums(), task.features.astype(np.float64))
        del self.means_[label]
        return []

    def merge(
        self, other: ClassMeans, labels: Mapping[int, int], counts: Counts, others: Counts
    ) -> None:
        """Add what another head was taught: its class ``label`` is ``labels[label]`` here."""
        for theirs, mean in other.means_.items():
            label, n = labels[theirs], others[theirs]
            before = RunningSums(counts[label], self.means_[label]) if label in counts else None
            self._join(label, before, RunningSums(n, mean.astype(np.float64)))

    def _join(self, label: int, before: RunningSums | None, more: RunningSums) -> None:
        """Add the mean of more samples of a class to what was there before, if there was any."""
        joined = more.mean
        if before is not None:
            share = more.count / (before.count + more.count)
            joined = before.mean + (more.mean - before.mean) * share
        self.means_[label] = joined.astype(np.float32)

    def _remove(self, label: int, left: RunningSums, x: Array) -> None:
        """Take samples x (n, d) of a class out of what is ``left`` without them."""
        self.means_[label] = np.asarray(left.mean, np.float32)

    def _add(self, label: int, before: RunningSums, x: Array) -> None:
        """Add samples x (n, d) of a class to what was there before."""
        self.means_[label] = before.mean_with(x).astype(np.float32)


# Nearest mean: the class whose mean is closest to the feature.


class NearestMeanHead(ClassMeans):
    """Classifies by the nearest class mean, which it takes from the task itself: no replay.

    >>> from frugalvae.parts.protocols import Task
    >>> head = NearestMeanHead()
    >>> head.learn(Task(np.array([[0.0], [10.0]]), np.array([0, 1])), None)
    >>> int(head.logits(np.array([[7.0]])).argmax())
    1
    """

    def logits(self, features: Array) -> Array:
        """Minus half the squared distance to each mean, (n, k)."""
        means = stack(self.means_).astype(np.float64)  # (k, d)
        return -0.5 * squared_distances(features.astype(np.float64), means)

    def arrays(self) -> dict[str, Array]:
        """One vector per class."""
        return {"means": stack(self.means_)}

    def components(self) -> list[Component]:
        """One vector per class."""
        return [component("head: means", self.arrays()["means"].size)]


# Streaming linear discriminant analysis.


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


# Ridge regression on replay, in closed form.


class RidgeHead(Weights):
    """Least squares on one-hot targets with a quadratic penalty, fitted on replay.

    Parameters
    ----------
    samples
        Samples per class.
    penalty
        Relative to the mean variance of the features, so it does not depend on their scale.
    scale
        The factor from fitted targets, which lie between 0 and 1, to logits.
    """

    def __init__(self, *, samples: int = 512, penalty: float = 1e-2, scale: float = 20.0) -> None:
        check_number("samples", samples, 1, 65_536, whole=True)
        check_number("penalty", penalty, 1e-12)
        check_number("scale", scale, 1e-12)
        self.samples = samples
        self.penalty = penalty
        self.scale = scale
        self.classes_: list[int] = []

    def learn(self, task: Task, replay: Replay) -> None:
        """Solve for the weights of all classes."""
        self.classes_ = list(replay.classes)
        x, y = replay.draw(self.samples)  # (n, d), (n,)
        targets, x = one_hot(y, len(self.classes_)), x.astype(np.float64)  # (n, k), (n, d)
        centre, prior = x.mean(axis=0), targets.mean(axis=0)  # (d,), (k,)
        centred = x - centre
        gram = add_ridge(centred.T @ centred, self.penalty)  # (d, d)
        weights = np.linalg.solve(gram, centred.T @ (targets - prior))  # (d, k)
        self.weights_ = weights.astype(np.float32)
        self.bias_ = (prior - centre @ weights).astype(np.float32)  # (k,)
