"""One covariance for all classes, and the directions in which each class differs from it.

The covariance of a class is W + F F^T: W is that of all samples around their class means, F a
few directions in which the class spreads more than W says. Both are found in closed form. It is
what a variational autoencoder becomes when its decoder is linear: probabilistic PCA by class.
"""

from __future__ import annotations

import copy
import warnings

import numpy as np

from frugalvae import cost
from frugalvae.cost import Component
from frugalvae.errors import check_choice, check_number
from frugalvae.interfaces import Task
from frugalvae.maths.arrays import Array, signed_root, stack
from frugalvae.maths.gaussians import SHRINKAGE, Gaussians, Scores, Shrinkage, Whitener
from frugalvae.maths.moments import merge
from frugalvae.maths.rotation import rotate, rotate_back
from frugalvae.maths.symmetric import add_ridge, pack
from frugalvae.memories.defaults import MemoryDefaults

#: What scores rows, and the shrinkage that it was made with.
Derived = tuple[Shrinkage, Scores | tuple[Gaussians, Array, Array]]

RIDGE = 0.1  # as a part of the mean variance, where directions of classes are looked for
ROUNDING = 1e-6  # the same where samples are drawn: few samples leave most variances at zero


class FactorMemory(MemoryDefaults):
    """Means of classes, one covariance for all, and leading directions of each class.

    Nothing has to be known beforehand, neither classes nor their number. The shared covariance
    is one of sums: it is exactly what all samples together would give. As classes come, each
    gets as many directions as the budget has room for, and the least of the older ones' are
    dropped. Where not even the shared covariance of all features fits, features are rotated,
    by the same rotation everywhere, and only the first coordinates have a covariance: fewer as
    more classes come. Dropping coordinates of a Gaussian leaves the exact Gaussian of the others.
    The dropped ones count as independent and equally wide, the less the more samples there were.

    Parameters
    ----------
    budget
        How many numbers to keep; by default half a million and 390 for each feature, which
        is 0.7 million for 512 features and one million for 1280, and from 200 classes on three
        times the features for each more. Means are kept whatever they take.
    directions
        The most directions of a class.
    root
        Take features by their square roots, with their signs: the spread of activations that
        are never negative grows with their size, and that of their roots does not. By default
        it depends on whether the first task has negative features.

    Attributes
    ----------
    means_
        Mean of each class.
    rank_
        How many coordinates have a covariance.
    scatter_, rest_, count_
        Sum of outer products of so many samples around their class means, (rank, rank); and
        the sum of squares of their other coordinates.
    factors_
        Directions of each class, (m, rank), each as long as the standard deviation it adds.
    spread_
        The variance of each class beside its directions, in all features together.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(200, 4))
    >>> x[:100, 2] *= 5
    >>> memory = FactorMemory(directions=1)
    >>> memory.learn(Task(x, np.arange(200) // 100), rng)
    >>> int(np.abs(memory.factors_[0]).argmax())
    2
    >>> int(memory.log_density(np.array([[0.0, 0.0, 30.0, 0.0]])).argmax())
    0
    """

    usual_head = "bayes"

    def __init__(
        self,
        budget: int | None = None,
        *,
        directions: int = 32,
        root: bool | None = None,
    ) -> None:
        if budget is not None:
            check_number("budget", budget, 1, whole=True)
        check_number("directions", directions, 0, whole=True)
        check_choice("root", root, (True, False, None))
        self.budget = budget
        self.directions = directions
        self.root = root
        self.rooted_ = False
        self.means_: dict[int, Array] = {}
        self.rank_ = 0
        self.scatter_: Array = np.empty((0, 0))
        self.rest_ = 0.0
        self.count_ = 0
        self.factors_: dict[int, Array] = {}
        self.spread_: dict[int, Array] = {}
        self._scores: Derived | None = None  # as is the next
        self._root: Array | None = None

    def __deepcopy__(self, memo: dict[int, object]) -> FactorMemory:
        """A copy to learn on. Arrays are replaced and never changed: they may be shared."""
        twin = copy.copy(self)
        for name in ("means_", "factors_", "spread_"):
            setattr(twin, name, dict(getattr(self, name)))
        return twin

    @property
    def classes(self) -> list[int]:
        """The classes known so far."""
        return list(self.means_)

    def learn(self, task: Task, rng: np.random.Generator) -> None:
        """Means, the shared covariance, and then the directions of each new class."""
        if not self.means_:
            self.rooted_ = bool((task.features >= 0).all()) if self.root is None else self.root
            self.rank_ = task.features.shape[1]
            self.scatter_ = np.zeros((self.rank_, self.rank_))
        rows = self.mapped(task.features).astype(np.float64)
        for label in task.classes:
            own = task.labels == label
            mean = rows[own].mean(axis=0)
            self.means_[label] = mean.astype(np.float32)
            rows[own] -= mean
        coordinates = self._pool(rows, len(rows))
        whitener = Whitener.of(self.scatter_ / self.count_, RIDGE)
        white = whitener.whiten(coordinates)
        for label in task.classes:
            own = task.labels == label
            values, vectors = _spectrum(white[own])
            self.spread_[label] = _float32((rows[own] ** 2).sum() / max(int(own.sum()) - 1, 1))
            self._keep_directions(label, values, vectors, whitener)
        self._keep_within_budget()

    def _pool(self, rows: Array, count: int) -> Array:
        """Add rows to the shared scatter; their coordinates, as many as there is room for."""
        most = cost.factor_rank(self._limit, self._dim, len(self.means_))
        self._lower_rank(min(most, self.rank_))
        coordinates = self._coordinates(rows)
        self.scatter_ = self.scatter_ + coordinates.T @ coordinates
        if self.rank_ < self._dim:
            self.rest_ += max(0.0, float((rows**2).sum() - (coordinates**2).sum()))
        self.count_ += count
        self._scores = self._root = None
        return coordinates

    def _lower_rank(self, rank: int) -> None:
        """Of all that has coordinates, the first ones."""
        if rank == self.rank_:
            return
        if self.rank_ == self._dim:  # so far they were the features themselves
            lower = rotate(rotate(self.scatter_, rank).T, rank)
            shorter = {label: rotate(factors, rank) for label, factors in self.factors_.items()}
        else:
            lower = self.scatter_[:rank, :rank]
            shorter = {label: factors[:, :rank] for label, factors in self.factors_.items()}
        self.rest_ += float(self.scatter_.trace() - lower.trace())
        self.scatter_, self.rank_ = (lower + lower.T) / 2, rank
        for label, factors in shorter.items():
            self._replace(label, np.ascontiguousarray(factors, np.float32))

    def _replace(self, label: int, factors: Array) -> None:
        """Keep other directions of a class; what variance they lack, it has beside them."""
        lost = float((self.factors_[label] ** 2).sum() - (factors**2).sum())
        self.spread_[label] = _float32(max(0.0, float(self.spread_[label]) + lost))
        self.factors_[label] = factors

    def _keep_directions(
        self, label: int, values: Array, vectors: Array, whitener: Whitener
    ) -> None:
        """Of all directions in the order of their variances the leading ones above one."""
        most = min(self.directions, int((values > 1).sum()))
        values, vectors = values[:most], vectors[:, :most]
        factors = whitener.back((vectors * np.sqrt(values - 1)).T).astype(np.float32)
        self.factors_[label] = factors[:0]
        self._replace(label, factors)

    def _keep_within_budget(self) -> None:
        """Drop last directions; warn where means alone are too many."""
        room = cost.factor_directions(self._limit, self._dim, len(self.means_), self.rank_)
        if sum(map(len, self.factors_.values())) > room:
            self._drop_directions(room)
        stored = sum(part.stored for part in self.components())
        if stored > self._limit:
            warnings.warn(
                f"{len(self.means_)} classes of {self._dim} features take {stored:,} numbers "
                f"without any direction of their own: more than the budget of {self._limit:,}",
                stacklevel=2,
            )

    def _drop_directions(self, room: int) -> None:
        """Keep so many: the first ones of each class, and the longest of those that come next."""
        sizes = np.array([len(factors) for factors in self.factors_.values()])
        each = np.arange(1, int(sizes.max()) + 1)
        taken = np.minimum(sizes, each[:, None]).sum(axis=1)  # if each class has at most so many
        first = int((taken <= room).sum())
        left = room - int(np.minimum(sizes, first).sum())
        last = {
            label: float(np.linalg.norm(factors[first]))
            for label, factors in self.factors_.items()
            if len(factors) > first
        }
        more = set(sorted(last, key=lambda label: -last[label])[:left])
        for label, factors in self.factors_.items():
            if len(factors) > first:
                self._replace(label, factors[: first + (label in more)].copy())

    @property
    def _limit(self) -> int:
        if self.budget is None:
            return cost.usual_budget(self._dim, len(self.means_))
        return self.budget

    @property
    def _dim(self) -> int:
        return len(next(iter(self.means_.values())))

    def update(self, task: Task, count: int, rng: np.random.Generator) -> None:
        """Mean and shared covariance come out exactly; directions from old ones and samples."""
        (label,) = task.classes
        features = self.mapped(task.features).astype(np.float64)
        mean, rows = merge(self.means_[label], count, features)
        self.means_[label] = mean.astype(np.float32)
        new = self._pool(rows, len(features))
        whitener, total = Whitener.of(self.scatter_ / self.count_, RIDGE), count + len(features)
        old, new = whitener.whiten(self.factors_[label]), whitener.whiten(new)
        spread = self._scale(label) * np.eye(self.rank_) + old.T @ old
        values, vectors = np.linalg.eigh((count * spread + new.T @ new) / total)
        variance = float(self.spread_[label]) + float((self.factors_[label] ** 2).sum())
        self.spread_[label] = _float32((count * variance + (rows**2).sum()) / total)
        self._keep_directions(label, values[::-1], vectors[:, ::-1], whitener)
        self._keep_within_budget()

    def _scale(self, label: int) -> float:
        """The variance of a class beside its directions, as a part of the shared one."""
        shared = (float(self.scatter_.trace()) + self.rest_) / self.count_
        return float(self.spread_[label]) / (shared or 1.0)

    def forget(self, label: int) -> list[str]:
        """Drop the class's mean and directions."""
        del self.means_[label], self.factors_[label], self.spread_[label]
        self._scores = None
        return ["the covariance that all classes share still contains its samples' scatter"]

    def sample(self, label: int, count: int, rng: np.random.Generator) -> Array:
        """Draw from the class's Gaussian; beside its coordinates all variances are alike."""
        root = self._root
        if root is None:
            shared = add_ridge(self.scatter_ / self.count_, ROUNDING)
            root = self._root = np.linalg.cholesky(shared).astype(np.float32)
        mean, factors, scale = self.means_[label], self.factors_[label], self._scale(label) ** 0.5

        def noise(width: int) -> Array:
            return rng.standard_normal((count, width), np.float32)

        drawn = np.float32(scale) * noise(root.shape[1]) @ root.T + noise(len(factors)) @ factors
        if self.rank_ < self._dim:
            level = scale * (self.rest_ / self.count_ / (self._dim - self.rank_)) ** 0.5
            beside = level * noise(self._dim)
            drawn = beside + rotate_back(drawn - rotate(beside, self.rank_), self._dim)
        return self._unmapped((mean + drawn).astype(np.float32))

    def mapped(self, features: Array) -> Array:
        """Features as the memory takes them: by their roots, or as they are."""
        return signed_root(features) if self.rooted_ else features

    def mapped_means(self) -> Array:
        """Means of classes, (k, d), exactly those of all samples."""
        return stack(self.means_)

    @property
    def density_width(self) -> int:
        """The coordinates that have a covariance."""
        return self.rank_

    def log_density(self, features: Array, shrinkage: Shrinkage = SHRINKAGE) -> Array:
        """Logarithm of each class's density at each row, (n, k), up to what all have in common.

        A class's covariance is taken as W + ``own`` F F^T: directions that were found in few
        samples stretch further than they should.
        """
        kept = self._scores  # another thread may ask, too
        if kept is None or kept[0] != shrinkage:
            kept = self._scores = shrinkage, self._make_scores(shrinkage)
        rows, found = self.mapped(features).astype(np.float64), kept[1]
        if isinstance(found, Scores):
            return found.of(rows)
        gaussians, slopes, constants = found
        beside: Array = rows @ slopes.T - constants
        return gaussians.scores(self._coordinates(rows)) + beside

    def _make_scores(self, shrinkage: Shrinkage) -> Scores | tuple[Gaussians, Array, Array]:
        """What scores rows; of many classes in steps, as one matrix would be too large."""
        gaussians, beside = self._gaussians(shrinkage), self._beside(shrinkage)
        if not gaussians.is_worth_folding(self._dim):
            return gaussians, *beside
        scores = gaussians.folded()
        if self.rank_ < self._dim:
            scores = scores.turned(lambda vectors: rotate_back(vectors, self._dim))
        return scores.plus(*beside)

    def _beside(self, shrinkage: Shrinkage) -> tuple[Array, Array]:
        """What coordinates without a covariance add to the logarithms: slopes and constants.

        They are not independent of the others, though how is not known: the more samples there
        were to know the others by, the less these count.
        """
        means = stack(self.means_).astype(np.float64)
        if self.rank_ == self._dim:
            return np.zeros_like(means), np.zeros(len(means))
        level = self.rest_ / (self._dim - self.rank_)
        level += self._ridge(shrinkage) * float(self.scatter_.trace()) / self.rank_
        weight = min(1.0, self.rank_ / self.count_) * self.count_ / (level or 1.0)
        slopes = means - rotate_back(rotate(means, self.rank_), self._dim)  # (k, d)
        return weight * slopes, weight * (slopes**2).sum(axis=1) / 2

    def _ridge(self, shrinkage: Shrinkage) -> float:
        return shrinkage.ridge_for(self.rank_, self.count_)

    def _gaussians(self, shrinkage: Shrinkage) -> Gaussians:
        whitener = Whitener.of(self.scatter_ / self.count_, self._ridge(shrinkage))
        most = max(map(len, self.factors_.values()))
        own = np.zeros((len(self.factors_), most, self.rank_), np.float32)
        for row, factors in zip(own, self.factors_.values(), strict=True):
            row[: len(factors)] = factors
        means = self._coordinates(stack(self.means_))
        return Gaussians.of(whitener, means, own, shrinkage.own)

    def _coordinates(self, rows: Array) -> Array:
        return rows if self.rank_ == self._dim else rotate(rows, self.rank_)

    def _unmapped(self, rows: Array) -> Array:
        """Back from roots, and without the signs that no real feature had."""
        if not self.rooted_:
            return rows
        return np.maximum(rows, 0) ** 2 if self.root is None else rows * np.abs(rows)

    def arrays(self) -> dict[str, Array]:
        """Means, spreads, directions, and the shared scatter."""
        if not self.means_:
            return {}
        return {
            "means": stack(self.means_),
            "spread": stack(self.spread_),
            "factors": np.concatenate(list(self.factors_.values())),
            "scatter": pack(self.scatter_),
            "rest": np.array([self.rest_, self.count_]),
        }

    def components(self) -> list[Component]:
        """Means, the shared covariance, and directions of classes."""
        if not self.means_:
            return []
        directions = sum(len(factors) for factors in self.factors_.values())
        return cost.factors(self._dim, len(self.means_), self.rank_, directions)

    def cost(
        self, dim: int, classes: int, tasks: int = 1, samples: int | None = None
    ) -> list[Component]:
        """What it will cost, if every class has samples enough for its directions."""
        budget = cost.usual_budget(dim, classes) if self.budget is None else self.budget
        rank = cost.factor_rank(budget, dim, classes)
        room = cost.factor_directions(budget, dim, classes, rank)
        return cost.factors(dim, classes, rank, min(room, classes * self.directions))


def _float32(value: float) -> Array:
    """A number as a file holds it."""
    return np.array(value, np.float32)


def _spectrum(rows: Array) -> tuple[Array, Array]:
    """Variances of rows (n, d) around zero, the largest first, and their directions, (d, .)."""
    if len(rows) > rows.shape[1]:
        values, vectors = np.linalg.eigh(rows.T @ rows / len(rows))
        return values[::-1], vectors[:, ::-1]
    values, vectors = np.linalg.eigh(rows @ rows.T / len(rows))
    lengths = np.sqrt(np.maximum(values * len(rows), 1e-12))
    return values[::-1], (rows.T @ vectors / lengths)[:, ::-1]
