"""What heads share that are a ridge regression on random features, from two running sums."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from frugalvae.errors import InputError, check_number
from frugalvae.maths.arrays import Array, one_hot, pack, solve_positive
from frugalvae.parts.defaults import HeadDefaults
from frugalvae.parts.protocols import Component, Replay, Task, component, triangle

SOLVING = threading.RLock()  # several threads may predict at once
LEAST_SIZE, MOST_SIZE = 1e-4, 1e4  # of features that penalties suit: these are absolute


def check_size(features: Array) -> None:
    """Refuse features (n, d) of which penalties that are absolute make nothing, or too much."""
    size = float(np.sqrt(np.mean(features.astype(np.float64) ** 2)))
    if size and not LEAST_SIZE <= size <= MOST_SIZE:
        raise InputError(
            f"the root mean square of the features is {size:.0e}; this head adds penalties that do "
            f"not depend on it, as its authors have them, and expects {LEAST_SIZE:g} to "
            f"{MOST_SIZE:g}: multiply all features by {10.0 ** -round(math.log10(size)):.0e}"
        )


class RunningRidge(HeadDefaults):
    """Keeps H^T H and H^T Y of random features H of all samples; no replay.

    Learning task by task, in any batches, gives what learning everything at once gives. Weights
    are solved for at the first prediction after a change: as long as no sum was loaded
    and there are fewer samples than features, from as many equations as samples, which is the same
    and much faster; H^T H is not even formed then, until it is saved. A subclass says
    what features are random, and what penalty is used.
    """

    seed_: int
    gram_: Array
    targets_: Array
    precision: type[np.floating[Any]] = np.float32  # of the sums

    def __init__(self, width: int, scale: float) -> None:
        check_number("width", width, 1, 16_384, whole=True)
        check_number("scale", scale, 1e-12)
        self.width = width
        self.scale = scale
        self.classes_: list[int] = []
        self._projection: Array | None = None  # derived, like the weights; never stored
        self._weights: Array | None = None
        self._late = LateRows(width, known=False)  # random features that gram_ may lack yet
        self._columns: list[Array] = []  # the class of each

    @property
    def classes(self) -> list[int]:
        """The classes known so far."""
        return self.classes_

    def learn(self, task: Task, replay: Replay) -> None:
        """Add the samples to the sums."""
        if not self.classes_:
            check_size(task.features)
            self.seed_ = int(replay.rng.integers(2**31 - 1))
            self.targets_ = np.zeros((self.width, 0), self.precision)
            self._late = LateRows(self.width)
        new = [label for label in task.classes if label not in self.classes_]
        grown = np.zeros((self.width, len(new)), self.precision)
        self.classes_ = self.classes_ + new
        hidden = self._hidden(task.features.astype(self.precision))  # (n, width)
        targets = one_hot(np.searchsorted(task.classes, task.labels), len(task.classes))
        targets = targets.astype(self.precision)  # (n, classes of the task)
        self.targets_ = np.concatenate([self.targets_, grown], axis=1)
        columns = [self.classes_.index(label) for label in task.classes]
        self.targets_[:, columns] += hidden.T @ targets
        self._late.add([hidden])
        self._columns.append(np.array(columns)[targets.argmax(axis=1)])
        if not self._late.known:
            self._sum_up()
        self._weights = None
        self._look_at(hidden, targets, replay.rng)

    def update(self, task: Task, count: int, replay: Replay) -> None:
        """Add the samples to the sums."""
        self.learn(task, replay)

    def forget(self, label: int) -> list[str]:
        """Drop the class's column."""
        self._settle()
        keep = [column for column, known in enumerate(self.classes_) if known != label]
        self.targets_ = self.targets_[:, keep].copy()
        self.classes_ = [known for known in self.classes_ if known != label]
        self._weights = None
        self._sum_up()
        return ["the head's Gram matrix still contains its samples"]

    def _sum_up(self) -> None:
        """Bring the Gram matrix up to date; rows are let go."""
        with SOLVING:
            (self.gram_,) = self._late.summed(self._grams, self.precision)
            self._columns = []

    @property
    def _grams(self) -> list[Array]:
        return [self.gram_] if hasattr(self, "gram_") else []

    def _solved(self, penalty: float) -> tuple[Array, float]:
        """The weights (width, k) of a penalty, in float64, and the penalty that it took."""
        if not self._late.known:
            return solve_ridge(self.gram_, self.targets_, penalty)
        targets = one_hot(np.concatenate(self._columns), len(self.classes_))
        return solve_dual(self._late.all(0), targets, penalty)

    def _look_at(self, hidden: Array, targets: Array, rng: np.random.Generator) -> None:
        """Keep what is needed of the newest samples to choose a penalty; here, nothing."""

    def _settle(self) -> None:
        """Choose a penalty, if one is to be chosen."""

    def _hidden(self, features: Array) -> Array:
        """Random features (n, width) of features (n, d), in their precision."""
        raise NotImplementedError

    def _solve(self) -> Array:
        """The weights (width, k), in float64."""
        raise NotImplementedError

    def logits(self, features: Array) -> Array:
        """The fitted targets times ``scale``, (n, k)."""
        with SOLVING:
            weights = self._weights
            if weights is None:
                self._settle()
                weights = self._weights = self._solve().astype(np.float32)
        targets: Array = self._hidden(features.astype(np.float32)) @ weights
        return self.scale * targets.astype(np.float64)

    def derived_bytes(self, dim: int) -> int:
        """What the projection of features of that dimension takes, in float32 and in float64."""
        return (4 + 8) * dim * self.width

    def arrays(self) -> dict[str, Array]:
        """The two sums. The projection follows from the seed, the weights from the sums."""
        self._settle()
        self._sum_up()
        return {"gram": pack(self.gram_), "targets": self.targets_, "seed": np.array([self.seed_])}

    def changed_arrays(self) -> dict[str, Array]:
        """What tells whether the last lesson gave finite numbers."""
        return {"targets": self.targets_, "gram": self._late.diagonals(self._grams)}

    def components(self) -> list[Component]:
        """Half of the symmetric Gram matrix, and one column per class."""
        width = np.dtype(self.precision).itemsize
        return [
            component("head: gram", self.width**2, triangle(self.width), width),
            component("head: targets", self.targets_.size, width=width),
            component("head: seed", 0, 1, width=8),
        ]


# --------------------------------------------------------------------------- sums and solutions


class LateRows:
    """Rows (n, size) that come in parts, on their way to the sum of their outer products.

    While there are fewer rows than columns, equations are solved faster from the rows than from
    their sum, and forming the sum takes longest of all. So rows wait, until they have become many
    or somebody asks for the sum; then they are let go. There may be several maps, each with rows
    and a sum of its own.

    Parameters
    ----------
    size
        The length of a row, and how many rows may wait.
    maps
        How many sums there are.
    known
        Whether all rows of the sums are here. Those of sums from a file are not.

    Examples
    --------
    >>> late = LateRows(2)
    >>> late.add([np.array([[1.0, 2.0]])])
    >>> late.known, late.all(0).tolist()
    (True, [[1.0, 2.0]])
    >>> late.summed([], np.float64)[0].tolist()
    [[1.0, 2.0], [2.0, 4.0]]
    """

    def __init__(self, size: int, maps: int = 1, known: bool = True) -> None:
        self.size, self.maps, self.known = size, maps, known
        self._waiting: list[Sequence[Array]] = []

    def __deepcopy__(self, memo: dict[int, object]) -> LateRows:
        """A copy with the same rows, which nobody changes."""
        twin = LateRows(self.size, self.maps, self.known)
        twin._waiting = list(self._waiting)
        return twin

    def all(self, number: int) -> Array:
        """Every row of a map that waits, (n, size); if they are known, every row that there was."""
        return np.concatenate([part[number] for part in self._waiting])

    def add(self, rows: Sequence[Array]) -> None:
        """Let more rows (n, size) of each map wait; ``known`` is false when these are too many."""
        self._waiting.append(rows)
        self.known = self.known and sum(len(part[0]) for part in self._waiting) <= self.size

    def summed(self, totals: Sequence[Array], dtype: Any) -> list[Array]:
        """The sums (size, size) with every row in them, given what they were: none at first.

        They are changed in place.
        """
        totals = totals or [np.zeros((self.size, self.size), dtype) for _ in range(self.maps)]
        for number, total in enumerate(totals if self._waiting else []):
            rows = self.all(number)
            total += rows.T @ rows
        self._waiting, self.known = [], False
        return list(totals)

    def diagonals(self, totals: Sequence[Array]) -> Array:
        """The diagonals of the sums, (maps, size): if these are finite, all of them is."""
        found = np.stack([total.diagonal() for total in totals]) if totals else np.zeros((1, 1))
        for part in self._waiting:
            found = found + np.stack([np.einsum("ns,ns->s", rows, rows) for rows in part])
        return found


def solve_ridge(gram: Array, targets: Array, penalty: float) -> tuple[Array, float]:
    """W (m, k) with (gram + penalty I) W = targets, in float64, and the penalty that it took.

    A penalty that vanishes in the rounding of the Gram matrix (m, m) is raised tenfold until it
    does not.

    >>> weights, penalty = solve_ridge(np.array([[3.0]]), np.array([[8.0]]), 1.0)
    >>> weights.tolist(), penalty
    ([[2.0]], 1.0)
    """
    return _solve(gram, targets, penalty)


def solve_dual(hidden: Array, targets: Array, penalty: float) -> tuple[Array, float]:
    """The same from samples (n, m) and what they stand for (n, k): faster for n < m.

    >>> weights, penalty = solve_dual(np.array([[1.0, 1.0]]), np.array([[6.0]]), 1.0)
    >>> weights.round(6).tolist(), penalty
    ([[2.0], [2.0]], 1.0)
    """
    rows = hidden.astype(np.float64)
    weights, penalty = _solve(rows @ rows.T, targets, penalty)
    return rows.T @ weights, penalty


def _solve(square: Array, right: Array, penalty: float) -> tuple[Array, float]:
    """X with (square + penalty I) X = right, and the penalty that it took."""
    while True:
        check_number("penalty", penalty, 1e-12, 1e38)  # or the loop would not end
        ridged = square.astype(np.float64)
        ridged[np.diag_indices(len(ridged))] += penalty
        try:
            return solve_positive(ridged, right.astype(np.float64)), penalty
        except np.linalg.LinAlgError:
            penalty *= 10
