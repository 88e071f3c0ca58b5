"""Logistic regression and a linear support vector machine, tuned, on all stored features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from frugalvae.errors import InputError, check_choice, check_number, needing
from frugalvae.maths.arrays import Array, held_out_rows, one_hot, softmax
from frugalvae.parts.defaults import Weights
from frugalvae.parts.protocols import Replay, Task

#: Of scores (n, k) and one-hot targets (n, k): the loss of each row (n,), and its gradient (n, k).
Loss = Callable[[Array, Array], tuple[Array, Array]]
HELD_OUT = 0.2  # of each class, to choose a strength on
MOST_HELD_OUT = 0.25  # of all samples; of fewer per class, folds are held out in turn
FOLDS = 5


def cross_entropy(scores: Array, targets: Array) -> tuple[Array, Array]:
    """The loss of logistic regression over all classes at once.

    >>> loss, gradient = cross_entropy(np.zeros((1, 2)), np.array([[1.0, 0.0]]))
    >>> loss.round(4).tolist(), gradient.tolist()
    ([0.6931], [[-0.5, 0.5]])
    """
    chances = softmax(scores)
    loss: Array = -np.log(np.maximum((chances * targets).sum(axis=1), 1e-38))
    return loss, chances - targets


def squared_hinge(scores: Array, targets: Array) -> tuple[Array, Array]:
    """The loss of support vectors, each class against all others.

    >>> loss, gradient = squared_hinge(np.array([[2.0, 0.0]]), np.array([[1.0, 0.0]]))
    >>> loss.tolist(), gradient.tolist()
    ([1.0], [[0.0, 2.0]])
    """
    signs = 2 * targets - 1
    short = np.maximum(0, 1 - signs * scores)
    return (short**2).sum(axis=1), -2 * signs * short + 0.0


def fit_linear(
    x: Array,
    y: Array,
    start: Array,
    loss: Loss,
    strength: float,
    steps: int,
    *,
    balanced: bool = False,
) -> Array:
    """Weights (d + 1, k) that minimise ``strength`` times the loss plus half their squares.

    Parameters
    ----------
    x, y
        Features (n, d), and the column of each one's class (n,).
    start
        Weights to begin with; the last row are biases, whose squares do not count.
    steps
        Iterations of L-BFGS at most.
    balanced
        Whether every class counts as much, whatever its number of rows.
    """
    with needing("a classifier that is fitted on all samples"):
        from scipy.optimize import minimize

    targets = one_hot(y, start.shape[1]).astype(x.dtype)
    counts = np.bincount(y)[y]
    shares = (len(y) / len(np.unique(y)) / counts if balanced else counts / counts).astype(x.dtype)

    def objective(flat: Array) -> tuple[float, Array]:
        weights = flat.reshape(start.shape)
        scores = x @ weights[:-1].astype(x.dtype) + weights[-1].astype(x.dtype)
        values, slope = loss(scores, targets)
        value, slope = float((shares * values).sum()), shares[:, None] * slope
        gradient = np.concatenate([x.T @ slope, slope.sum(axis=0, keepdims=True)])
        gradient = strength * gradient.astype(np.float64)
        gradient[:-1] += weights[:-1]
        return strength * value + 0.5 * float((weights[:-1] ** 2).sum()), gradient.ravel()

    options = {"maxiter": steps, "maxfun": 2 * steps, "gtol": 1e-5, "ftol": 1e-9}
    found = minimize(objective, start.ravel(), jac=True, method="L-BFGS-B", options=options)
    return found.x.reshape(start.shape)


class LogisticHead(Weights):
    """Logistic regression on all stored features: what one would do who may keep everything.

    It is fitted anew on all that a memory stores, or on its replay. Features are centred and scaled
    to a mean square of one. The strength is the candidate with the best accuracy on a fifth of each
    class, or on five such parts in turn where classes have two or three samples; then all samples
    are fitted.

    Parameters
    ----------
    strengths
        Candidates for the weight of the loss against that of squared weights.
    samples
        Draws per class, where the memory does not store all features.
    steps
        Iterations of L-BFGS at most, for each fit.
    balanced
        Whether every class counts as much, whatever its number of samples.
    """

    loss = staticmethod(cross_entropy)
    scale = 1.0

    def __init__(
        self,
        *,
        strengths: Sequence[float] = (0.1, 1.0, 10.0, 100.0, 1000.0),
        samples: int = 256,
        steps: int = 100,
        balanced: bool = False,
    ) -> None:
        if isinstance(strengths, str) or not strengths:
            raise InputError(f"strengths is {strengths!r}; expected numbers, such as (0.1, 1, 10)")
        check_number("number of strengths", len(strengths), 1, 100, whole=True)
        for strength in strengths:
            check_number("strengths", strength, 1e-12)
        check_number("samples", samples, 1, 65_536, whole=True)
        check_number("steps", steps, 1, 100_000, whole=True)
        check_choice("balanced", balanced, (True, False))
        self.strengths, self.samples, self.steps = strengths, samples, steps
        self.balanced = balanced
        self.strength_ = 0.0  # the one that was chosen
        self.classes_: list[int] = []

    def learn(self, task: Task, replay: Replay) -> None:
        """Choose a strength and fit the weights of all classes."""
        self.classes_ = list(replay.classes)
        x, y = replay.everything(self.samples)  # (n, d), (n,)
        centre = x.mean(axis=0, dtype=np.float64)
        scale = float(np.sqrt(((x - centre) ** 2).sum(axis=1).mean())) or 1.0
        x = ((x - centre) / scale).astype(np.float32)
        start = np.zeros((x.shape[1] + 1, len(self.classes_)))
        self.strength_, start = self._choose(x, y, start)
        weights = self._fit(x, y, start, self.strength_)
        self.weights_ = (weights[:-1] / scale).astype(np.float32)
        self.bias_ = (weights[-1] - centre @ weights[:-1] / scale).astype(np.float32)

    def _fit(self, x: Array, y: Array, start: Array, strength: float) -> Array:
        return fit_linear(x, y, start, self.loss, strength, self.steps, balanced=self.balanced)

    def _choose(self, x: Array, y: Array, start: Array) -> tuple[float, Array]:
        """The best strength, and the weights that it had, each fitted from the one before."""
        strengths, parts = sorted(self.strengths), held_out_parts(y)
        if not parts or len(strengths) == 1:
            return float(strengths[len(strengths) // 2]), start
        weights, best = [start for _ in parts], (-1.0, strengths[0], start)
        for strength in strengths:
            right = 0.0
            for fold, out in enumerate(parts):
                weights[fold] = self._fit(x[~out], y[~out], weights[fold], strength)
                scores = x[out] @ weights[fold][:-1].astype(x.dtype) + weights[fold][-1]
                counts = np.bincount(y[out])[y[out]] if self.balanced else 1.0
                right += float(((scores.argmax(axis=1) == y[out]) / counts).sum())
            best = max(best, (right, strength, weights[0]), key=lambda found: found[0])
        return float(best[1]), best[2]


class SVMHead(LogisticHead):
    """A linear support vector machine, each class against all others, tuned in the same way."""

    loss = staticmethod(squared_hinge)
    scale = 5.0  # margins are small numbers

    def __init__(
        self, *, strengths: Sequence[float] = (0.01, 0.1, 1.0, 10.0, 100.0), **settings: Any
    ) -> None:
        super().__init__(strengths=strengths, **settings)


def held_out_parts(labels: Array) -> list[Array]:
    """Which rows to hold out, masks (n,) each: once, or in turn; never all rows of a class.

    A class of two or three samples would lose too many, and would need another strength.

    >>> [int(part.sum()) for part in held_out_parts(np.arange(100) % 10)]
    [20]
    >>> [int(part.sum()) for part in held_out_parts(np.arange(20) % 10)]
    [4, 4, 4, 4, 4]
    """
    out = held_out_rows(labels, HELD_OUT, seed=0)
    if out.mean() <= MOST_HELD_OUT:
        return [out] if out.any() else []
    rng, fold, next_one = np.random.default_rng(0), np.full(len(labels), -1), 0
    for label in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == label))
        if len(rows) > 1:
            fold[rows] = (next_one + np.arange(len(rows))) % FOLDS
            next_one += len(rows)
    return [fold == number for number in range(FOLDS)]
