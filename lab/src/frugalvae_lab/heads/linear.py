"""Logistic regression and a linear support vector machine, tuned, on all stored features."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from frugalvae.errors import InputError, check_choice, check_number
from frugalvae.maths.arrays import Array
from frugalvae.maths.split import held_out_rows
from frugalvae.parts.defaults import Weights
from frugalvae.parts.protocols import Replay, Task
from frugalvae_lab.maths.linear import Loss, cross_entropy, fit_linear, squared_hinge

HELD_OUT = 0.2  # of each class, to choose a strength on
MOST_HELD_OUT = 0.25  # of all samples; of fewer per class, folds are held out in turn
FOLDS = 5


class TunedLinear(Weights):
    """A linear classifier, fitted anew on all that a memory stores, or on its replay.

    Features are centred and scaled to a mean square of one. The strength is the candidate with the
    best accuracy on a fifth of each class, or on five such parts in turn where classes have two or
    three samples; then all samples are fitted.
    """

    loss: Loss
    scale = 1.0

    def __init__(
        self, strengths: Sequence[float], samples: int, steps: int, balanced: bool
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
        loss = type(self).loss
        return fit_linear(x, y, start, loss, strength, self.steps, balanced=self.balanced)

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


class LogisticHead(TunedLinear):
    """Logistic regression on all stored features: what one would do who may keep everything.

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

    def __init__(
        self,
        *,
        strengths: Sequence[float] = (0.1, 1.0, 10.0, 100.0, 1000.0),
        samples: int = 256,
        steps: int = 100,
        balanced: bool = False,
    ) -> None:
        super().__init__(strengths, samples, steps, balanced)


class SVMHead(TunedLinear):
    """A linear support vector machine on all stored features, each class against all others.

    Parameters
    ----------
    strengths
        Candidates for the weight of the squared hinge loss against that of squared weights.
    samples
        Draws per class, where the memory does not store all features.
    steps
        Iterations of L-BFGS at most, for each fit.
    balanced
        Whether every class counts as much, whatever its number of samples.
    """

    loss = staticmethod(squared_hinge)
    scale = 5.0  # margins are small numbers

    def __init__(
        self,
        *,
        strengths: Sequence[float] = (0.01, 0.1, 1.0, 10.0, 100.0),
        samples: int = 256,
        steps: int = 100,
        balanced: bool = False,
    ) -> None:
        super().__init__(strengths, samples, steps, balanced)
