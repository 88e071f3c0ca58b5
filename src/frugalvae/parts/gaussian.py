"""One Gaussian per class, with three kinds of covariance."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from frugalvae.errors import InputError, check_choice
from frugalvae.maths.arrays import Array, compact, mean_level, pack, square_root, stack, unpack
from frugalvae.maths.gaussians import (
    SHRINKAGE,
    RunningSums,
    Shrinkage,
    Whitener,
    diagonal_log_density,
)
from frugalvae.parts.defaults import MemoryDefaults
from frugalvae.parts.protocols import Component, Task, component, triangle

Covariance = Literal["diagonal", "shared", "full"]


class GaussianMemory(MemoryDefaults):
    """Mean of each class, and a covariance: diagonal or full per class, or one for all.

    The shared covariance is that of all samples around their class means. Its sums are kept, so
    that learning task by task gives the same as learning everything at once.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> memory = GaussianMemory("diagonal")
    >>> memory.learn(Task(np.array([[0.0, 1.0], [2.0, 1.0]]), np.array([0, 0])), rng)
    >>> memory.means_[0].tolist()
    [1.0, 1.0]
    >>> memory.sample(0, 2, rng)[:, 1].tolist()
    [1.0, 1.0]
    """

    def __init__(self, covariance: Covariance = "diagonal") -> None:
        check_choice("covariance", covariance, get_args(Covariance))
        self.covariance = covariance
        self.means_: dict[int, Array] = {}
        self.covariances_: dict[int, Array] = {}  # a vector, or the packed triangle
        self.pooled_: Array | None = None  # sum of outer products around class means
        self.count_ = 0
        self._factors: dict[int | None, Array] = {}  # derived; never stored

    @property
    def classes(self) -> list[int]:
        """The classes known so far."""
        return list(self.means_)

    def learn(self, task: Task, rng: np.random.Generator) -> None:
        """Take mean and covariance of each new class."""
        for label in task.classes:
            self._add(label, RunningSums(), task.of(label))

    def update(self, task: Task, count: int, rng: np.random.Generator) -> None:
        """Exactly what learning old and new samples together would have given."""
        (label,) = task.classes
        self._add(label, RunningSums(count, self.means_[label]), task.features)

    def _add(self, label: int, before: RunningSums, features: Array) -> None:
        """Add samples (n, d) of a class to its mean, and to its covariance or the shared one."""
        x = features.astype(np.float64)
        self.means_[label] = before.mean_with(x).astype(np.float32)
        rows = before.deviations(x)
        if self.covariance == "shared":
            scatter = rows.T @ rows
            self.pooled_ = scatter if self.pooled_ is None else self.pooled_ + scatter
            self.count_ += len(x)
            self._factors.clear()
            return
        scatter = (rows**2).sum(axis=0) if self.covariance == "diagonal" else pack(rows.T @ rows)
        if before.count:
            scatter += before.count * self.covariances_[label].astype(np.float64)
        self.covariances_[label] = compact(scatter / (before.count + len(x)))
        self._factors.pop(label, None)

    def merge(
        self,
        other: GaussianMemory,
        labels: Mapping[int, int],
        counts: Mapping[int, int],
        others: Mapping[int, int],
    ) -> None:
        """Add what another memory was taught: its class ``label`` is ``labels[label]`` here."""
        if self.covariance != other.covariance:
            raise InputError(
                f"one memory has {self.covariance} covariances, the other {other.covariance} ones"
            )
        if other.pooled_ is not None:
            mine = np.zeros_like(other.pooled_) if self.pooled_ is None else self.pooled_
            self.pooled_ = mine + other.pooled_
        self.count_ += other.count_
        for theirs, mean in other.means_.items():
            label, more = labels[theirs], RunningSums(others[theirs], mean.astype(np.float64))
            covariance = other.covariances_.get(theirs)
            if label not in counts:
                self.means_[label] = mean
                if covariance is not None:
                    self.covariances_[label] = covariance
            else:
                before = RunningSums(counts[label], self.means_[label].astype(np.float64))
                self._join(label, before, more, covariance)
        self._factors.clear()

    def _join(
        self, label: int, before: RunningSums, more: RunningSums, covariance: Array | None
    ) -> None:
        """Join a class that both know."""
        both, apart = before.count + more.count, more.mean - before.mean
        weight = before.count * more.count / both
        self.means_[label] = (before.mean + apart * (more.count / both)).astype(np.float32)
        if self.covariance == "shared":
            assert self.pooled_ is not None
            self.pooled_ = self.pooled_ + weight * np.outer(apart, apart)
            return
        assert covariance is not None
        diagonal = self.covariance == "diagonal"
        between = apart**2 if diagonal else pack(np.outer(apart, apart))
        sums = before.count * self.covariances_[label].astype(np.float64) + weight * between
        sums += more.count * covariance.astype(np.float64)
        self.covariances_[label] = compact(sums / both)

    def forget(self, label: int) -> list[str]:
        """Nothing remains, except in a covariance that all classes share."""
        del self.means_[label]
        self.covariances_.pop(label, None)
        self._factors.pop(label, None)
        if self.covariance == "shared":
            return ["the covariance that all classes share still contains its samples' scatter"]
        return []

    def sample(self, label: int, count: int, rng: np.random.Generator) -> Array:
        """Draw from the class's Gaussian."""
        mean = self.means_[label]
        if self.covariance == "diagonal":
            noise = rng.standard_normal((count, len(mean)), np.float32)
            return mean + noise * np.sqrt(self.covariances_[label]).astype(np.float32)
        factor = self._factor(label if self.covariance == "full" else None)
        return mean + rng.standard_normal((count, factor.shape[1]), np.float32) @ factor.T

    def _factor(self, label: int | None) -> Array:
        """F with F F^T the covariance of the class, or the shared one; kept for the next call."""
        if label not in self._factors:
            if label is not None:
                covariance = unpack(self.covariances_[label])
            else:
                assert self.pooled_ is not None
                covariance = self.pooled_ / self.count_
            self._factors[label] = square_root(covariance)
        return self._factors[label]

    @property
    def density_width(self) -> int:
        """All features."""
        return len(next(iter(self.means_.values())))

    def log_density(self, features: Array, shrinkage: Shrinkage = SHRINKAGE) -> Array:
        """Logarithm of each class's density at each row, (n, k)."""
        means = stack(self.means_)
        if self.covariance == "diagonal":
            variances = shrinkage.variances(stack(self.covariances_))
            return diagonal_log_density(features, means, variances)
        if self.covariance == "shared":
            assert self.pooled_ is not None
            ridge = shrinkage.ridge_for(self.density_width, self.count_)
            whitener = Whitener.of(self.pooled_ / self.count_, ridge)
            white, centres = whitener.whiten(features), whitener.whiten(means)  # (n, d), (k, d)
            scores: Array = white @ centres.T - (centres**2).sum(axis=1) / 2
            return scores
        return self._full_log_density(features, shrinkage)

    def _full_log_density(self, features: Array, shrinkage: Shrinkage) -> Array:
        """One covariance after the other: all at once would take too much memory."""
        shared = np.zeros_like(next(iter(self.covariances_.values())), np.float64)
        for packed in self.covariances_.values():
            shared += packed / len(self.covariances_)
        ridge = shrinkage.plain_ridge * mean_level(unpack(shared).diagonal())
        columns = []
        for label, mean in self.means_.items():
            own = shrinkage.weight * self.covariances_[label].astype(np.float64)
            mixed = unpack(own + (1 - shrinkage.weight) * shared)
            mixed[np.diag_indices(len(mixed))] += ridge
            whitener = Whitener.of(mixed, 0.0)
            squares = (whitener.whiten(features.astype(np.float64) - mean) ** 2).sum(axis=1)
            columns.append(-(squares + whitener.log_det + len(mean) * math.log(2 * math.pi)) / 2)
        return np.stack(columns, axis=1)

    def arrays(self) -> dict[str, Array]:
        """Means, and covariances as triangles."""
        kept = {"means": stack(self.means_)}
        if self.covariance == "shared" and self.pooled_ is not None:
            return kept | {
                "pooled": pack(self.pooled_),
                "count": np.array([self.count_], np.float64),
            }
        return kept | {"covariances": stack(self.covariances_)}

    def components(self) -> list[Component]:
        """Means and covariances."""
        if not self.means_:
            return []
        means, kept = self.cost(self.density_width, len(self.means_))
        kept = (
            kept
            if self.covariance == "shared"
            else replace(kept, bytes=stack(self.covariances_).nbytes)
        )
        return [means, kept]

    def cost(
        self, dim: int, classes: int, tasks: int = 1, samples: int | None = None
    ) -> list[Component]:
        """What it will cost: means, and covariances of which a triangle is kept."""
        means = component("means", classes * dim)
        if self.covariance == "diagonal":
            return [means, component("variances", classes * dim)]
        if self.covariance == "full":
            return [means, component("covariances", classes * dim**2, classes * triangle(dim))]
        return [means, component("shared covariance", dim**2, triangle(dim) + 1, width=8)]
