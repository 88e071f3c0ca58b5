"""KLDA, KLDA-E and RanDumb: linear discriminant analysis on random Fourier features."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from frugalvae.errors import check_number
from frugalvae.maths.arrays import Array, pack, solve_positive, stack
from frugalvae.maths.gaussians import RunningSums
from frugalvae.parts.defaults import HeadDefaults
from frugalvae.parts.protocols import Component, Replay, Task, component, triangle
from frugalvae_lab.heads.projection import normal_matrix, uniform_vector
from frugalvae_lab.heads.ridge import SOLVING, LateRows


class FourierLDA(HeadDefaults):
    """Keeps class means and one scatter of random Fourier features; no replay.

    The features sqrt(2 / m) cos(x W + b) approximate a Gaussian kernel. Its ``gamma`` is given
    relative to one over the variance of the first task's features, summed over them, so that it
    does not depend on their scale; of a single sample, half of its squared length stands for the
    variance. Learning task by task, in any batches, gives what learning
    everything at once gives. As long as no sum was loaded and there are fewer samples
    than features, it is solved for as many unknowns as samples, which is the same and much faster;
    the scatter is not even formed then, until it is saved. A subclass says how the
    covariance is regularised.
    """

    seed_: int
    gamma_: float

    def __init__(self, width: int, gamma: float, maps: int) -> None:
        check_number("width", width, 1, 16_384, whole=True)
        check_number("gamma", gamma, 1e-12)
        check_number("maps", maps, 1, 64, whole=True)
        self.width = width
        self.gamma = gamma
        self.maps = maps
        self.means_: dict[int, Array] = {}  # (maps, width) of each class
        self.scatters_: list[Array] = []  # (width, width) of each map
        self.count_ = 0
        self._projection: list[tuple[Array, Array]] = []  # derived, like the rule; never stored
        self._rule: list[tuple[Array, Array]] | None = None
        self._late = LateRows(width, maps, known=False)  # deviations that scatters_ may lack yet

    @property
    def classes(self) -> list[int]:
        """The classes known so far."""
        return list(self.means_)

    def learn(self, task: Task, replay: Replay) -> None:
        """Add the samples to means and scatter."""
        if not self.means_:
            self.seed_ = int(replay.rng.integers(2**31 - 1 - self.maps))
            x = task.features.astype(np.float64)
            spread = float(x.var(axis=0).sum()) or float((x**2).sum() / len(x) / 2)
            self.gamma_ = self.gamma / (spread or 1.0)
            self._late = LateRows(self.width, self.maps)
        self._add(task, {})

    def update(self, task: Task, count: int, replay: Replay) -> None:
        """Give exactly what learning old and new samples together would have given."""
        (label,) = task.classes
        self._add(task, {label: count})

    def _add(self, task: Task, counts: Mapping[int, int]) -> None:
        """Add samples of classes, of which some had samples before."""
        means = {label: np.empty((self.maps, self.width), np.float32) for label in task.classes}
        deviations: list[Array] = []
        for number in range(self.maps):
            hidden, rows = self._hidden(task.features, number), []  # (n, width)
            for label in task.classes:
                own, count = hidden[task.labels == label], counts.get(label, 0)
                before = RunningSums(count, self.means_[label][number]) if count else RunningSums()
                means[label][number] = before.mean_with(own)
                rows.append(before.deviations(own))
            deviations.append(np.concatenate(rows))
        self._late.add(deviations)
        self.means_ |= means
        self.count_ += len(task.features)
        self._rule = None
        if not self._late.known:
            self._sum_up()

    def _sum_up(self) -> None:
        """Bring the scatters up to date; rows are let go."""
        with SOLVING:
            self.scatters_ = self._late.summed(self.scatters_, np.float32)

    def forget(self, label: int) -> list[str]:
        """Drop the class's means."""
        del self.means_[label]
        self._rule = None
        return ["the head's shared covariance still contains its samples' scatter"]

    def logits(self, features: Array) -> Array:
        """Log densities (n, k), up to a term that all classes share; averaged over maps."""
        with SOLVING:
            if self._rule is None:
                self._rule = [self._derive(number) for number in range(self.maps)]
            rule = self._rule
        x, scores = features.astype(np.float32), np.zeros((len(features), len(self.means_)))
        for number, (weights, bias) in enumerate(rule):
            scores += (self._hidden(x, number) @ weights + bias) / self.maps
        return scores

    def _derive(self, number: int) -> tuple[Array, Array]:
        """Weights (width, k) and biases (k,) of one map."""
        means = stack(self.means_)[:, number].astype(np.float64)  # (k, width)
        solve = self._solve_rows if self._late.known else self._solve_sums
        weights = solve(number, means.T)
        return weights.astype(np.float32), -0.5 * (means * weights.T).sum(axis=1)

    def _solve_sums(self, number: int, right: Array) -> Array:
        """X (width, k) with covariance X = right, from the scatter of one map."""
        covariance = self.scatters_[number].astype(np.float64) / self.count_
        level = float(covariance.diagonal().mean())
        share, ridge = self._regularised(level, float(np.einsum("ij,ij->", covariance, covariance)))
        covariance *= share
        covariance[np.diag_indices(self.width)] += ridge
        return solve_positive(covariance, right)

    def _solve_rows(self, number: int, right: Array) -> Array:
        """The same from the deviations themselves, by Woodbury's identity."""
        rows = self._late.all(number)  # (n, width)
        square = (rows @ rows.T).astype(np.float64) / self.count_
        level = float(square.trace()) / self.width
        share, ridge = self._regularised(level, float((square**2).sum()))
        if not share:
            return right / ridge
        square[np.diag_indices(len(rows))] += ridge / share
        inner = solve_positive(square, rows @ right / self.count_)
        solved: Array = (right - rows.T @ inner) / ridge
        return solved

    def _regularised(self, level: float, squares: float) -> tuple[float, float]:
        """What the covariance is multiplied with, and what is added to its diagonal.

        It has this mean diagonal entry, and this sum of squares of all entries.
        """
        raise NotImplementedError

    def _hidden(self, features: Array, number: int) -> Array:
        """Random Fourier features (n, width) of one map, in the precision of features."""
        if not self._projection:
            seeds = range(self.seed_, self.seed_ + self.maps)
            self._projection = [self._map(seed, features.shape[1]) for seed in seeds]
        directions, phases = self._projection[number]
        hidden: Array = features @ directions
        hidden += phases
        np.cos(hidden, out=hidden)
        hidden *= (2 / self.width) ** 0.5
        return hidden

    def _map(self, seed: int, dim: int) -> tuple[Array, Array]:
        """Directions (d, width) and phases (width,) of one map."""
        directions = normal_matrix(seed, (dim, self.width)) * np.float32((2 * self.gamma_) ** 0.5)
        return directions, np.float32(2 * np.pi) * uniform_vector(seed + 1, self.width)

    def derived_bytes(self, dim: int) -> int:
        """What the projections of features of that dimension take, in float32."""
        return 4 * dim * self.width * self.maps

    def arrays(self) -> dict[str, Array]:
        """Means and half of the symmetric scatter. The projection follows from the seed."""
        self._sum_up()
        return {
            "means": stack(self.means_),
            "scatter": np.stack([pack(one) for one in self.scatters_]),
            "seed, gamma and count": np.array([self.seed_, self.gamma_, self.count_], np.float64),
        }

    def changed_arrays(self) -> dict[str, Array]:
        """What tells whether the last lesson gave finite numbers."""
        return {"means": stack(self.means_), "scatter": self._late.diagonals(self.scatters_)}

    def components(self) -> list[Component]:
        """Means, and half of the symmetric scatter."""
        if not self.means_:
            return []
        return [
            component("head: means", len(self.means_) * self.maps * self.width),
            component("head: scatter", self.maps * self.width**2, self.maps * triangle(self.width)),
            component("head: seed, gamma and count", 0, 3, width=8),
        ]


class KLDAHead(FourierLDA):
    """Linear discriminant analysis on random Fourier features; no replay.

    Parameters
    ----------
    width
        Random features of each map.
    gamma
        The width of the Gaussian kernel, relative to one over the variance of the first task's
        features.
    ridge
        What is added to each variance, as a share of the mean variance.
    maps
        How many maps there are, whose scores are averaged.

    References
    ----------
    Momeni, Mazumder and Liu, "Continual Learning Using a Kernel-Based Method Over Foundation
    Models", 2025.
    """

    def __init__(
        self, *, width: int = 5000, gamma: float = 0.1, ridge: float = 0.1, maps: int = 1
    ) -> None:
        super().__init__(width, gamma, maps)
        check_number("ridge", ridge, 1e-6)
        self.ridge = ridge

    def _regularised(self, level: float, squares: float) -> tuple[float, float]:
        return 1.0, self.ridge * (level or 1.0)


class KLDAEnsembleHead(KLDAHead):
    """The same with five maps."""

    def __init__(
        self, *, width: int = 5000, gamma: float = 0.1, ridge: float = 0.1, maps: int = 5
    ) -> None:
        super().__init__(width=width, gamma=gamma, ridge=ridge, maps=maps)


class RanDumbHead(FourierLDA):
    """Linear discriminant analysis on random Fourier features with OAS shrinkage; no replay.

    Parameters
    ----------
    width
        Number of random features.
    gamma
        The width of the Gaussian kernel, relative to one over the variance of the first task's
        features.
    shrinkage
        The share of the identity that is mixed into the shrunk covariance.

    References
    ----------
    Prabhu et al., "RanDumb: A Simple Approach that Questions the Efficacy of Continual
    Representation Learning", 2024. Chen et al., "Shrinkage Algorithms for MMSE Covariance
    Estimation", 2010.
    """

    def __init__(self, *, width: int = 10_000, gamma: float = 1.0, shrinkage: float = 1e-4) -> None:
        super().__init__(width, gamma, maps=1)
        check_number("shrinkage", shrinkage, 1e-12, 1)
        self.shrinkage = shrinkage

    def _regularised(self, level: float, squares: float) -> tuple[float, float]:
        share = oas_share(level, squares, self.width, self.count_)
        kept = 1 - self.shrinkage
        return kept * (1 - share), kept * share * level + self.shrinkage


def oas(covariance: Array, samples: int) -> Array:
    """A covariance (m, m) of so many samples, shrunk to a multiple of the identity.

    The oracle approximating shrinkage estimator.

    >>> oas(np.diag([3.0, 1.0]), 99).round(2).tolist()
    [[2.87, 0.0], [0.0, 1.13]]
    """
    size, level = len(covariance), float(covariance.diagonal().mean())
    squares = float(np.einsum("ij,ij->", covariance, covariance))
    share = oas_share(level, squares, size, samples)
    shrunk: Array = (1 - share) * covariance
    shrunk[np.diag_indices(size)] += share * level
    return shrunk


def oas_share(level: float, squares: float, size: int, samples: int) -> float:
    """How much of it becomes a multiple of the identity.

    Parameters
    ----------
    level, squares
        The mean of its diagonal entries, and the sum of squares of all its entries.
    size, samples
        Its number of rows, and of how many samples it is.
    """
    mean = squares / size**2
    apart = (samples + 1) * (mean - level**2 / size)
    return min(1.0, (mean + level**2) / apart) if apart > 0 else 1.0
