"""AnaCP head: an analytic contrastive projection, and a classifier fitted on its replay."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from frugalvae.errors import check_number, needing
from frugalvae.maths.arrays import Array, one_hot, pack, stack, unit
from frugalvae.maths.gaussians import RunningSums
from frugalvae.parts.defaults import HeadDefaults
from frugalvae.parts.protocols import Component, Replay, Task, component, triangle
from frugalvae_lab.heads.projection import normal_matrix
from frugalvae_lab.heads.ridge import SOLVING, LateRows, solve_dual, solve_ridge

JITTER = 1e-4  # added to variances, as the authors do


class Rule(NamedTuple):
    """Weights of each projection (width, d), and of the classifier (width, k)."""

    projections: list[Array]
    classifier: Array


class AnaCPHead(HeadDefaults):
    """Projects features to targets that are further apart than class means; no replay.

    Several random layers with ridge regression map features to one target per class: its mean,
    pushed away from the others in whitened coordinates. Then draws of each class, from a Gaussian
    with the shared covariance, are mapped so, and another random layer is fitted on them. All of it
    follows from sums, and is solved for at the first prediction after a change.

    Parameters
    ----------
    width
        Random features of each layer.
    layers
        How many projections there are, whose outputs are averaged.
    penalty
        The ridge of each regression.
    samples
        Draws per class.
    scale
        The factor from fitted targets, which lie between 0 and 1, to logits.

    References
    ----------
    Momeni, Xiao and Liu, "AnaCP: Toward Upper-Bound Continual Learning via Analytic Contrastive
    Projection", 2025.
    """

    seed_: int
    scatter_: Array

    def __init__(
        self,
        *,
        width: int = 5000,
        layers: int = 3,
        penalty: float = 100.0,
        samples: int = 100,
        scale: float = 20.0,
    ) -> None:
        check_number("width", width, 1, 16_384, whole=True)
        check_number("layers", layers, 1, 64, whole=True)
        check_number("penalty", penalty, 1e-12)
        check_number("samples", samples, 1, 65_536, whole=True)
        check_number("scale", scale, 1e-12)
        self.width, self.layers, self.penalty = width, layers, penalty
        self.samples, self.scale = samples, scale
        self.means_: dict[int, Array] = {}  # (d,) of each class
        self.sums_: dict[int, Array] = {}  # (layers, width) of each class
        self.grams_: list[Array] = []  # (width, width) of each layer
        self.counts_: dict[int, int] = {}
        self.count_ = 0
        self.solved_: list[Array] = []  # weights, where they cannot be derived any more
        self._layers: list[Array] = []  # derived, like the rule; never stored
        self._rule: Rule | None = None
        self._late = LateRows(width, layers, known=False)  # that grams_ may lack yet
        self._labels: list[Array] = []  # the class of each

    @property
    def classes(self) -> list[int]:
        """The classes known so far."""
        return list(self.means_)

    def learn(self, task: Task, replay: Replay) -> None:
        """Add the samples to all sums."""
        if not self.means_:
            self.seed_ = int(replay.rng.integers(2**31 - 2 - self.layers))
            dim = task.features.shape[1]
            self.scatter_ = np.zeros((dim, dim))
            self._late = LateRows(self.width, self.layers)
        x, rows = unit(task.features.astype(np.float64)), []
        for label in task.classes:
            own, count = x[task.labels == label], self.counts_.get(label, 0)
            before = RunningSums(count, self.means_[label]) if count else RunningSums()
            self.means_[label] = before.mean_with(own).astype(np.float32)
            self.counts_[label] = count + len(own)
            rows.append(before.deviations(own))
        deviations = np.concatenate(rows)
        self.scatter_ = self.scatter_ + deviations.T @ deviations
        self.count_ += len(x)
        self._add_hidden(x.astype(np.float32), task)
        self.solved_, self._rule = [], None

    def _add_hidden(self, x: Array, task: Task) -> None:
        """Add the random features of unit features (n, d) to the sums of each layer."""
        sums = one_hot(np.searchsorted(task.classes, task.labels), len(task.classes)).T
        added = np.empty((self.layers, len(task.classes), self.width), np.float32)
        hidden = [self._hidden(x, number) for number in range(self.layers)]  # (n, width) each
        for number, rows in enumerate(hidden):
            added[number] = sums.astype(np.float32) @ rows
        for row, label in enumerate(task.classes):
            self.sums_[label] = self.sums_.get(label, np.float32(0)) + added[:, row]
        self._late.add(hidden)
        self._labels.append(task.labels)
        if not self._late.known:
            self._sum_up()

    def _sum_up(self) -> None:
        """Bring the Gram matrices up to date; rows are let go."""
        with SOLVING:
            self.grams_ = self._late.summed(self.grams_, np.float32)
            self._labels = []

    def update(self, task: Task, count: int, replay: Replay) -> None:
        """Add the samples to all sums."""
        self.learn(task, replay)

    def forget(self, label: int) -> list[str]:
        """Drop the class's means. The others keep their weights until more is learned."""
        rule, column = self._solved(), self.classes.index(label)
        self._sum_up()
        for kept in (self.means_, self.sums_, self.counts_):
            del kept[label]
        left = [*rule.projections, np.delete(rule.classifier, column, axis=1)]
        self.solved_ = [np.ascontiguousarray(array) for array in left]  # as a file gives them
        self._rule = None
        return ["the head's Gram matrices, covariance and weights still contain its samples"]

    def logits(self, features: Array) -> Array:
        """The fitted targets times ``scale``, (n, k)."""
        with SOLVING:
            rule = self._solved()
        hidden = self._projected(unit(features.astype(np.float32)), rule.projections)
        return self.scale * (hidden @ rule.classifier).astype(np.float64)

    def _solved(self) -> Rule:
        if self._rule is None and self.solved_:
            self._rule = Rule(self.solved_[:-1], self.solved_[-1])
        if self._rule is None:
            self._rule = self._solve()
        return self._rule

    def _solve(self) -> Rule:
        """Project to the targets, draw, and fit the classifier on what is drawn."""
        means = stack(self.means_).astype(np.float64)  # (k, d)
        covariance = self.scatter_ / self.count_
        covariance[np.diag_indices(len(covariance))] += JITTER
        found = self._projections(spread(means, covariance))
        projections = [one.astype(np.float32) for one in found]  # (width, d) each
        noise = normal_matrix(self.seed_, (len(means) * self.samples, means.shape[1]))
        drawn = noise @ np.linalg.cholesky(covariance).T.astype(np.float32)
        drawn += np.repeat(means, self.samples, axis=0).astype(np.float32)
        hidden = self._projected(drawn, projections)
        labels = one_hot(np.arange(len(means)).repeat(self.samples), len(means))
        right = hidden.T @ labels.astype(np.float32)
        classifier = solve_ridge(hidden.T @ hidden, right, self.penalty)[0]
        return Rule(projections, classifier.astype(np.float32))

    def _projections(self, targets: Array) -> list[Array]:
        """Weights (width, d) of each layer that map classes to their targets (k, d)."""
        if not self._late.known:
            sums = stack(self.sums_).swapaxes(0, 1).astype(np.float64)  # (layers, k, width)
            both = zip(self.grams_, sums, strict=True)
            return [solve_ridge(gram, own.T @ targets, self.penalty)[0] for gram, own in both]
        row_of = {label: row for row, label in enumerate(self.means_)}
        rows = [row_of[label] for label in np.concatenate(self._labels).tolist()]
        hidden = (self._late.all(number) for number in range(self.layers))
        return [solve_dual(own, targets[rows], self.penalty)[0] for own in hidden]

    def _projected(self, x: Array, projections: list[Array]) -> Array:
        """Random features (n, width) of the averaged projections of unit features (n, d)."""
        outputs = [unit(self._hidden(x, row) @ one) for row, one in enumerate(projections)]
        return self._hidden(sum(outputs[1:], outputs[0]) / len(outputs), self.layers)

    def _hidden(self, x: Array, number: int) -> Array:
        """Random features (n, width) of one layer; the last is the classifier's."""
        if not self._layers:
            shape, first = (x.shape[1], self.width), self.seed_ + 1
            self._layers = [normal_matrix(first + n, shape) for n in range(self.layers + 1)]
        return gelu(x @ self._layers[number])

    def derived_bytes(self, dim: int) -> int:
        """What the layers take, in float32."""
        return 4 * dim * self.width * (self.layers + 1)

    def arrays(self) -> dict[str, Array]:
        """The sums; and the weights, if a class was forgotten since they were solved."""
        self._sum_up()
        weights = {f"weights {row}": array for row, array in enumerate(self.solved_)}
        numbers = [self.seed_, self.count_, *self.counts_.values()]
        return weights | {
            "means": stack(self.means_),
            "sums": stack(self.sums_),
            "grams": np.stack([pack(gram) for gram in self.grams_]),
            "scatter": pack(self.scatter_),
            "seed and counts": np.array(numbers, np.float64),
        }

    def changed_arrays(self) -> dict[str, Array]:
        """What tells whether the last lesson gave finite numbers."""
        grams = self._late.diagonals(self.grams_)
        return {"means": stack(self.means_), "sums": stack(self.sums_), "grams": grams}

    def components(self) -> list[Component]:
        """Half of each symmetric Gram matrix and of the scatter, and sums of each class."""
        if not self.means_:
            return []
        classes, dim, width = len(self.means_), len(self.scatter_), self.width
        weights = sum(array.size for array in self.solved_)
        parts = [
            component("head: means", classes * dim),
            component("head: sums", classes * self.layers * width),
            component("head: grams", self.layers * width**2, self.layers * triangle(width)),
            component("head: scatter", dim**2, triangle(dim), width=8),
            component("head: seed and counts", 0, 2 + classes, width=8),
        ]
        size = self.solved_[0].itemsize if weights else 0  # older files have float64
        return parts + ([component("head: weights", weights, width=size)] if weights else [])


def spread(means: Array, covariance: Array) -> Array:
    """Class targets (k, d) of length one: means (k, d) pushed apart where classes vary little.

    In whitened coordinates each singular value of the centred means grows by one, but for those
    that are zero: along them the means do not differ.
    """
    values, vectors = np.linalg.eigh(covariance)
    deviations = np.sqrt(np.maximum(values, 0) + 1e-8)
    centre = means.mean(axis=0)
    white = (means - centre) @ (vectors / deviations) @ vectors.T
    left, singular, right = np.linalg.svd(white, full_matrices=False)
    pushed = (left * (singular + (singular > 1e-6 * singular[0]))) @ right
    return unit(pushed @ (vectors / deviations) @ vectors.T + centre)


def gelu(x: Array) -> Array:
    """Each x times the chance that a normal variable is below x, in its precision.

    >>> gelu(np.array([-10.0, 0.0, 1.0])).round(4).tolist()
    [-0.0, 0.0, 0.8413]
    """
    with needing("head 'anacp'"):
        from scipy.special import ndtr

    activated: Array = x * ndtr(x)
    return activated
