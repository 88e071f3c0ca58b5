"""RanPAC head: ridge regression on random features, from running sums."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

import numpy as np

from frugalvae.cost import Component, component, triangle
from frugalvae.errors import InputError, check_number
from frugalvae.heads.defaults import HeadDefaults
from frugalvae.interfaces import Replay, Task
from frugalvae.maths.arrays import Array, one_hot
from frugalvae.maths.projection import normal_matrix
from frugalvae.maths.symmetric import pack

SOLVING = threading.Lock()  # several threads may predict at once


class RanPACHead(HeadDefaults):
    """Ridge regression on many random ReLU features, from running sums; no replay.

    Parameters
    ----------
    width
        Number of random features.
    penalties
        Candidates, of which the best on a fifth of the newest task's samples is used.
    scale
        The factor from fitted targets, which lie between 0 and 1, to logits.

    References
    ----------
    McDonnell et al., "RanPAC: Random Projections and Pre-trained Models for
    Continual Learning", 2023.
    """

    seed_: int
    penalty_: float
    gram_: Array
    targets_: Array
    exact = ("gram_", "targets_")  # sums: never rounded to float16 in a file

    def __init__(
        self,
        *,
        width: int = 5000,
        penalties: Sequence[float] = (1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7),
        scale: float = 20.0,
    ) -> None:
        check_number("width", width, 1, whole=True)
        check_number("scale", scale, 1e-12)
        if isinstance(penalties, str) or not penalties:
            raise InputError(f"penalties is {penalties!r}; expected numbers, such as (0.1, 1, 10)")
        for penalty in penalties:
            check_number("penalties", penalty, 1e-12)
        self.width = width
        self.penalties = penalties
        self.scale = scale
        self.classes_: list[int] = []
        self._projection: Array | None = None  # derived, like the weights; never stored
        self._weights: Array | None = None
        self._pending: tuple[Array, Array] | None = None  # until a penalty is chosen on them

    @property
    def classes(self) -> list[int]:
        """The classes known so far."""
        return self.classes_

    def learn(self, task: Task, replay: Replay) -> None:
        """Add four fifths of the task to the sums; the rest is for choosing a penalty."""
        if not self.classes_:
            self.seed_ = int(replay.rng.integers(2**31 - 1))
            self.gram_ = np.zeros((self.width, self.width), np.float32)
            self.targets_ = np.zeros((self.width, 0), np.float32)
        self._add_pending()
        new = [label for label in task.classes if label not in self.classes_]
        self.classes_ = self.classes_ + new
        grown = np.zeros((self.width, len(new)), np.float32)
        self.targets_ = np.concatenate([self.targets_, grown], axis=1)
        column = {label: position for position, label in enumerate(self.classes_)}
        positions = np.array([column[label] for label in task.labels.tolist()])
        hidden = self._hidden(task.features)
        targets = one_hot(positions, len(self.classes_)).astype(np.float32)

        order = replay.rng.permutation(len(hidden))
        held_out, fitted = order[: len(order) // 5], order[len(order) // 5 :]
        self._add(hidden[fitted], targets[fitted])
        self._pending = hidden[held_out], targets[held_out]

    def update(self, task: Task, count: int, replay: Replay) -> None:
        """Add the samples to the sums."""
        self.learn(task, replay)

    def merge(
        self, other: RanPACHead, labels: Mapping[int, int], counts: object, others: object
    ) -> None:
        """Add the sums of another head, if it projects features alike."""
        if (self.seed_, self.width) != (other.seed_, other.width):
            raise InputError(
                "the two heads project features differently; teach both with the same width and "
                "random_state"
            )
        for head in (self, other):
            head._add_pending()
        known = self.classes_ + [y for y in labels.values() if y not in self.classes_]
        targets = np.zeros((self.width, len(known)), np.float32)
        targets[:, : len(self.classes_)] = self.targets_
        targets[:, [known.index(labels[label]) for label in other.classes_]] += other.targets_
        self.classes_, self.targets_, self._weights = known, targets, None
        self.gram_ = self.gram_ + other.gram_

    def forget(self, label: int) -> list[str]:
        """Drop the class's column."""
        self._solved_weights()
        keep = [column for column, known in enumerate(self.classes_) if known != label]
        self.targets_ = self.targets_[:, keep].copy()
        self.classes_ = [known for known in self.classes_ if known != label]
        self._weights = None
        return ["the head's Gram matrix still contains its samples"]

    def _add(self, hidden: Array, targets: Array) -> None:
        self.gram_ = self.gram_ + hidden.T @ hidden
        self.targets_ = self.targets_ + hidden.T @ targets

    def _add_pending(self) -> None:
        """Samples on which no penalty needs to be chosen any more."""
        if self._pending is not None:
            self._add(*self._pending)
            self._pending = None

    def _solved_weights(self) -> Array:
        """Weights (width, k), solved when first needed: choosing a penalty and solving are slow."""
        with SOLVING:
            if self._pending is not None:
                self.penalty_ = self._best_penalty(*self._pending)
                self._add_pending()
                self._weights = None
            while self._weights is None:
                check_number("penalty", self.penalty_, 1e-12, 1e38)  # or the loop would not end
                self._weights = self._solve(self.penalty_, np.float64)
                self.penalty_ *= 10 if self._weights is None else 1
            return self._weights

    def _best_penalty(self, hidden: Array, targets: Array) -> float:
        """The penalty with the smallest error on held-out samples."""
        if not len(hidden):
            return self.penalties[len(self.penalties) // 2]
        errors = {}
        for penalty in self.penalties:
            weights = self._solve(penalty)
            if weights is not None:
                errors[penalty] = float(((hidden @ weights - targets) ** 2).mean())
        return min(errors, key=errors.__getitem__, default=max(self.penalties))

    def _solve(self, penalty: float, precision: type[np.floating] = np.float32) -> Array | None:
        """Weights (width, k) for a penalty; None if it vanishes in the Gram matrix's rounding.

        In float64 the weights of a class do not depend on the other classes. Choosing a
        penalty needs float32 only.
        """
        from scipy.linalg import LinAlgError, cho_factor, cho_solve

        ridged = self.gram_.astype(precision)
        ridged[np.diag_indices(self.width)] += precision(penalty)
        try:
            return np.asarray(cho_solve(cho_factor(ridged, overwrite_a=True), self.targets_))
        except LinAlgError:
            return None

    def _hidden(self, features: Array) -> Array:
        if self._projection is None:
            self._projection = normal_matrix(self.seed_, (features.shape[1], self.width))
        hidden: Array = np.maximum(features @ self._projection, 0)
        return hidden

    def logits(self, features: Array) -> Array:
        """The fitted targets times ``scale``, (n, k)."""
        weights = self._solved_weights()
        return self.scale * (self._hidden(features.astype(np.float64)) @ weights)

    def derived_bytes(self, dim: int) -> int:
        """What the projection of features of that dimension takes, in float32 and in float64."""
        return (4 + 8) * dim * self.width

    def arrays(self) -> dict[str, Array]:
        """The two sums. The projection follows from the seed, the weights from the sums."""
        self._solved_weights()
        settings = np.array([self.seed_, self.penalty_], np.float64)
        return {"gram": pack(self.gram_), "targets": self.targets_, "seed and penalty": settings}

    def components(self) -> list[Component]:
        """Half of the symmetric Gram matrix, and one column per class."""
        return [
            component("head: gram", self.width**2, triangle(self.width)),
            component("head: targets", self.targets_.size),
            component("head: seed and penalty", 0, 2, width=8),
        ]
