"""The former default memory: one shared covariance, and a few directions per class.

The covariance of a class is W + F F^T. W is the shared covariance, that of all samples around
their class means. F holds the class directions, in which the class varies more than W says.
Both are found in closed form. A VAE with a linear decoder would be this: probabilistic PCA per
class.
"""

from __future__ import annotations

import copy
import warnings
from dataclasses import replace

import numpy as np

from frugalvae.errors import check_choice, check_number
from frugalvae.maths.arrays import (
    Array,
    add_ridge,
    compact,
    pack,
    principal_axes,
    rotate,
    rotate_back,
    stack,
    sum_of_squares,
)
from frugalvae.maths.gaussians import SHRINKAGE, RunningSums, Shrinkage, Whitener
from frugalvae.parts.defaults import MemoryDefaults
from frugalvae.parts.protocols import Component, Task, component, triangle
from frugalvae_lab.memories.gaussians import Gaussians, Scores
from frugalvae_lab.memories.mapped import MappedFeatures

#: What scores rows, and the shrinkage that it was made for.
Derived = tuple[Shrinkage, Scores | tuple[Gaussians, Array, Array]]

RIDGE = 0.1  # share of the mean variance that is added to W to find class directions
ROUNDING = 1e-6  # the same to draw samples: few samples leave most variances at zero


class FactorMemory(MappedFeatures, MemoryDefaults):
    """Class means, a shared covariance, and class directions, within a budget.

    Neither the classes nor their number need be known in advance. The shared covariance is kept
    as sums, so it is exactly that of all samples together. As classes arrive, each gets as many
    directions as the budget allows, and the shortest directions of older classes are dropped.

    If the budget does not even allow the shared covariance of all features, features are
    rotated, always by the same rotation, and only the first coordinates keep a covariance; the
    more classes, the fewer coordinates. Dropping coordinates of a Gaussian is exact for the
    others. The dropped coordinates count as independent with equal variances, and weigh less
    the more samples there were.

    Parameters
    ----------
    budget
        The most parameters to keep. By default 500,000 plus 390 per feature (0.7 million for
        512 features, one million for 1280), and from 200 classes on three times the feature
        dimension per further class. Means are kept even if they exceed the budget.
    directions
        The most directions per class.
    root
        Replace features by their signed square roots: the variance of non-negative activations
        grows with their mean, and that of their roots does not. By default this is done if the
        first task has no negative features.

    Attributes
    ----------
    means_
        Mean of each class, (d,).
    rank_
        The number of coordinates that have a covariance.
    scatter_
        Scatter of all samples around their class means in these coordinates, (rank, rank).
    rest_
        The sum of squares in all other coordinates.
    count_
        The number of samples in both.
    factors_
        Directions of each class, (m, rank), each as long as the standard deviation it adds.
    spread_
        Residual variance of each class, outside its directions, summed over all features.

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
            check_number("budget", budget, 1, 1_000_000_000, whole=True)
        check_number("directions", directions, 0, 8_192, whole=True)
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
        self._scores: Derived | None = None  # derived, like the next; never stored
        self._root: Array | None = None

    def __deepcopy__(self, memo: dict[int, object]) -> FactorMemory:
        """A copy that shares arrays: they are replaced, never changed in place."""
        twin = copy.copy(self)
        for name in ("means_", "factors_", "spread_"):
            setattr(twin, name, dict(getattr(self, name)))
        return twin

    @property
    def classes(self) -> list[int]:
        """The classes known so far."""
        return list(self.means_)

    def learn(self, task: Task, rng: np.random.Generator) -> None:
        """Add the means and the scatter of new classes, then find their directions."""
        if not self.means_:
            self._map_like(task.features)
        rows = self.mapped(task.features).astype(np.float64)  # (n, d)
        members = {label: task.labels == label for label in task.classes}
        for label, member in members.items():
            x, empty = rows[member], RunningSums()
            self.means_[label] = empty.mean_with(x).astype(np.float32)
            rows[member] = empty.deviations(x)
        coordinates = self._add_scatter(rows, len(rows))  # (n, rank)
        whitener = Whitener.of(self.scatter_ / self.count_, RIDGE)
        white = whitener.whiten(coordinates)
        for label, member in members.items():
            squares, vectors = principal_axes(white[member])
            values, vectors = squares[::-1] / len(white[member]), vectors[:, ::-1]
            variance = (rows[member] ** 2).sum() / max(int(member.sum()) - 1, 1)
            self.spread_[label] = _float32(variance)
            self._keep_directions(label, values, vectors, whitener)
        self._keep_within_budget()

    def _add_scatter(self, rows: Array, count: int) -> Array:
        """Add deviations (., d) of ``count`` samples to the scatter; their coordinates."""
        limit = self._limit(self._dim, len(self.means_))
        rank = min(factor_rank(limit, self._dim, len(self.means_)), self.rank_)
        if self.count_:
            self._lower_rank(rank)
        else:  # a scatter of all features, before any are dropped, may be far too large
            self.rank_, self.scatter_ = rank, np.zeros((rank, rank))
        coordinates = self._coordinates(rows)
        self.scatter_ = self.scatter_ + coordinates.T @ coordinates
        if self.rank_ < self._dim:
            self.rest_ += max(0.0, float((rows**2).sum() - (coordinates**2).sum()))
        self.count_ += count
        self._scores = self._root = None
        return coordinates

    def _lower_rank(self, rank: int) -> None:
        """Keep the first ``rank`` coordinates of the scatter and of all directions."""
        if rank == self.rank_:
            return
        lower, shorter = self._lowered(self.scatter_, self.factors_, rank)
        self.rest_ += float(self.scatter_.trace() - lower.trace())
        self.scatter_, self.rank_ = lower, rank
        for label, factors in shorter.items():
            self._set_directions(label, factors)

    def _set_directions(self, label: int, factors: Array) -> None:
        """Replace a class's directions; variance that they lose becomes residual variance."""
        lost = sum_of_squares(self.factors_[label]) - sum_of_squares(factors)
        self.spread_[label] = _float32(max(0.0, float(self.spread_[label]) + lost))
        self.factors_[label] = factors

    def _keep_directions(
        self, label: int, values: Array, vectors: Array, whitener: Whitener
    ) -> None:
        """Keep the leading directions whose whitened variance is above one."""
        most = min(self.directions, int((values > 1).sum()))
        values, vectors = values[:most], vectors[:, :most]
        factors = whitener.unwhiten((vectors * np.sqrt(values - 1)).T).astype(np.float32)
        self.factors_[label] = factors[:0]
        self._set_directions(label, factors)

    def _keep_within_budget(self) -> None:
        """Drop directions that exceed the budget; warn if the means alone exceed it."""
        limit = self._limit(self._dim, len(self.means_))
        room = factor_directions(limit, self._dim, len(self.means_), self.rank_)
        if sum(map(len, self.factors_.values())) > room:
            self._drop_directions(room)
        stored = sum(part.stored for part in self.components())
        if stored > limit:
            warnings.warn(
                f"{len(self.means_)} classes of {self._dim} features take {stored:,} parameters "
                f"without any class direction: more than the budget of {limit:,}",
                stacklevel=2,
            )

    def _drop_directions(self, room: int) -> None:
        """Keep ``room`` directions: equally many per class, and the longest of the next ones."""
        sizes = np.array([len(factors) for factors in self.factors_.values()])
        limits = np.arange(1, int(sizes.max()) + 1)
        totals = np.minimum(sizes, limits[:, None]).sum(axis=1)  # if no class exceeds the limit
        limit = int((totals <= room).sum())
        left = room - int(np.minimum(sizes, limit).sum())
        lengths = {
            label: sum_of_squares(factors[limit])
            for label, factors in self.factors_.items()
            if len(factors) > limit
        }
        longest = set(sorted(lengths, key=lambda label: -lengths[label])[:left])
        for label, factors in self.factors_.items():
            if len(factors) > limit:
                self._set_directions(label, factors[: limit + (label in longest)].copy())

    def _limit(self, dim: int, classes: int) -> int:
        return usual_budget(dim, classes) if self.budget is None else self.budget

    def _scale(self, label: int) -> float:
        """The residual variance of a class relative to the shared variance."""
        shared = (float(self.scatter_.trace()) + self.rest_) / self.count_
        return float(self.spread_[label]) / (shared or 1.0)

    def forget(self, label: int) -> list[str]:
        """Drop the class's mean and directions."""
        del self.means_[label], self.factors_[label], self.spread_[label]
        self._scores = None
        return ["the covariance that all classes share still contains its samples' scatter"]

    def sample(self, label: int, count: int, rng: np.random.Generator) -> Array:
        """Draw from the class's Gaussian; coordinates without a covariance have equal variances."""
        root = self._root
        if root is None:
            shared = add_ridge(self.scatter_ / self.count_, ROUNDING)
            root = self._root = np.linalg.cholesky(shared).astype(np.float32)
        level = (self.rest_ / self.count_ / max(1, self._dim - self.rank_)) ** 0.5
        factors, scale = self.factors_[label], self._scale(label) ** 0.5
        return self._drawn(label, count, root, factors, scale, level, rng)

    def log_density(self, features: Array, shrinkage: Shrinkage = SHRINKAGE) -> Array:
        """Log density of each class at each row, (n, k), up to a term that all classes share.

        A class's covariance is taken to be W + ``own`` F F^T, since few samples overestimate
        the length of directions.
        """
        kept = self._scores  # another thread may replace it
        if kept is None or kept[0] != shrinkage:
            kept = self._scores = shrinkage, self._make_scores(shrinkage)
        rows, found = self.mapped(features).astype(np.float64), kept[1]
        if isinstance(found, Scores):
            return found.of(rows)
        gaussians, slopes, constants = found
        residual: Array = rows @ slopes.T - constants
        return gaussians.scores(self._coordinates(rows)) + residual

    def _make_scores(self, shrinkage: Shrinkage) -> Scores | tuple[Gaussians, Array, Array]:
        """What scores rows: one matrix, or, for many classes, steps that take less memory."""
        gaussians, residual = self._gaussians(shrinkage), self._residual_scores(shrinkage)
        if not gaussians.is_worth_folding(self._dim):
            return gaussians, *residual
        scores = gaussians.folded()
        if self.rank_ < self._dim:
            scores = scores.mapped(lambda vectors: rotate_back(vectors, self._dim))
        return scores.plus(*residual)

    def _residual_scores(self, shrinkage: Shrinkage) -> tuple[Array, Array]:
        """What coordinates without a covariance add to log densities: slopes and constants.

        They depend on the other coordinates in ways that are not known. The more samples there
        were to estimate the others, the less these weigh.
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
        padded = np.zeros((len(self.factors_), most, self.rank_), np.float32)  # (k, m, rank)
        for row, factors in zip(padded, self.factors_.values(), strict=True):
            row[: len(factors)] = factors
        means = self._coordinates(stack(self.means_))  # (k, rank)
        return Gaussians.of(whitener, means, padded, shrinkage.weight)

    def derived_bytes(self, dim: int) -> int:
        """About what densities take on the way: every class gets as many directions as any."""
        most = max(map(len, self.factors_.values()), default=0)
        return 40 * len(self.factors_) * most * (self.rank_ + most)

    def arrays(self) -> dict[str, Array]:
        """Means, residual variances, directions, and the shared scatter."""
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
        """Means, the shared covariance, and class directions."""
        if not self.means_:
            return []
        directions = sum(len(factors) for factors in self.factors_.values())
        *others, spread = factor_cost(self._dim, len(self.means_), self.rank_, directions)
        return [*others, replace(spread, bytes=stack(self.spread_).nbytes)]

    def cost(
        self, dim: int, classes: int, tasks: int = 1, samples: int | None = None
    ) -> list[Component]:
        """What it will cost, if every class has samples enough for its directions."""
        budget = self._limit(dim, classes)
        rank = factor_rank(budget, dim, classes)
        room = factor_directions(budget, dim, classes, rank)
        return factor_cost(dim, classes, rank, min(room, classes * self.directions))


def _float32(value: float) -> Array:
    """A number as a file stores it."""
    return compact(np.array(value))


def factor_cost(dim: int, classes: int, rank: int, directions: int) -> list[Component]:
    """Means, a covariance of ``rank`` coordinates, and ``directions`` of all classes together."""
    return [
        component("means", classes * dim),
        component(
            "shared covariance", rank**2, triangle(rank) + 2, width=8
        ),  # residual variance, count
        component("class directions", directions * rank),
        component("class variances", classes),
    ]


def usual_budget(dim: int, classes: int) -> int:
    """The default budget of a factor memory.

    Each class beyond 200 adds room for its mean and two directions.

    >>> usual_budget(512, 200), usual_budget(1280, 100), usual_budget(1280, 300)
    (699680, 999200, 1383200)
    """
    return 500_000 + 390 * dim + 3 * dim * max(0, classes - 200)


def factor_rank(budget: int, dim: int, classes: int) -> int:
    """How many coordinates the shared covariance of a factor memory may have within a budget.

    It gets two fifths of what the means leave; the class directions get the rest.

    >>> factor_rank(700_000, 512, classes=100), factor_rank(1_000_000, 1280, classes=100)
    (512, 835)
    """
    left = max(0, budget - classes * (dim + 1) - 2)
    return max(1, min(dim, int((0.8 * left) ** 0.5)))


def factor_directions(budget: int, dim: int, classes: int, rank: int) -> int:
    """How many directions all classes together may have.

    >>> factor_directions(1_000_000, 1280, classes=100, rank=835)
    626
    """
    fixed = sum(part.stored for part in factor_cost(dim, classes, rank, 0))
    return max(0, budget - fixed) // rank
