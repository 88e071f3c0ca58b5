"""Confidence: how unlike all taught classes a sample looks, and how probable an answer is.

Replayed samples are more typical than real ones, so real samples look novel next to them, and
classes of replay are too easy to tell apart. Novelty is therefore measured on taught samples while
they are there, each as if its class had been taught without it; familiarity is its opposite. The
one temperature of probabilities is fitted on real samples that are held out.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from frugalvae.errors import InputError, check_choice, check_number
from frugalvae.maths.arrays import (
    Array,
    columns_of,
    held_out_rows,
    in_blocks,
    logsumexp,
    softmax,
    unit,
)
from frugalvae.parts.protocols import MeanMemory, Replay, Task, TypicalityMemory, VarianceMemory

if TYPE_CHECKING:
    from frugalvae.parts.protocols import Head, Memory

SCORES = ("distance", "fit")  # how novelty is measured; quantiles of one say nothing of the other
PER_CLASS = 25  # taught samples of a class that are compared, in one batch
REPLAYED = 128  # samples per class that represent it
REPLAYED_IF_MEAN_KNOWN = 8  # if the class mean is known, these only show distances from it,
CLASSES_REPLAYED = 100  # and about so many classes represent all
LEVELS = np.linspace(0, 1, 101)
MIN_SPREAD = 0.1  # share of the mean spread below which none is divided by
ROUNDING = 1e-9  # smaller distances count as zero
HELD_OUT = 0.2  # share of a task on which the temperature is fitted


@dataclass(frozen=True)
class TaughtNovelty:
    """How novel taught samples looked, as quantiles.

    Attributes
    ----------
    quantiles
        In ascending order; 101 of them, or none.
    count
        The number of samples they represent.
    score
        How novelty was measured: "fit", by what the memory itself says, or "distance".
    """

    quantiles: tuple[float, ...] = ()
    count: int = 0
    score: str = "distance"

    def __post_init__(self) -> None:
        object.__setattr__(self, "quantiles", tuple(self.quantiles))  # JSON has lists only
        check_number("count", self.count, 0, whole=True)
        check_choice("score", self.score, SCORES)
        for quantile in self.quantiles:
            check_number("quantiles", quantile, 0, 1e30)
        complete = len(self.quantiles) in (0, len(LEVELS))
        if not complete or list(self.quantiles) != sorted(self.quantiles):
            raise InputError(f"expected {len(LEVELS)} ascending quantiles, or none")

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self) | {"quantiles": list(self.quantiles)}

    def with_samples(self, novelty: Array, score: str = "distance") -> TaughtNovelty:
        """The quantiles with the novelty (n,) of more samples.

        If they were measured by another score, theirs replace the older ones.

        >>> one = TaughtNovelty().with_samples(np.array([1.0, 3.0]))
        >>> both = one.with_samples(np.array([2.0]))
        >>> both.count, both.quantiles[50]
        (3, 2.0)
        """
        if not len(novelty):
            return self
        before = self if self.score == score else TaughtNovelty(score=score)
        return before._with(novelty, np.ones(len(novelty)), len(novelty))

    def merge(self, other: TaughtNovelty) -> TaughtNovelty:
        """The quantiles of both sets of samples, up to interpolation.

        Of two scores, the one that more samples were measured by stays.
        """
        if self.score != other.score:
            return max(other, self, key=lambda taught: taught.count)
        if not other.quantiles:
            return self
        weights = np.full(len(LEVELS), other.count / len(LEVELS))
        return self._with(np.array(other.quantiles), weights, other.count)

    def _with(self, novelty: Array, weights: Array, count: int) -> TaughtNovelty:
        """The quantiles with values that stand for ``count`` samples."""
        mine = np.full(len(self.quantiles), self.count / len(LEVELS))
        values = np.concatenate([self.quantiles, novelty])
        weights = np.concatenate([mine, weights])
        order = np.argsort(values, kind="stable")
        middles = weights[order].cumsum() - weights[order] / 2
        places = (middles - middles[0]) / max(middles[-1] - middles[0], 1e-12)
        merged = np.interp(LEVELS, places, values[order])
        rounded = tuple(float(f"{value:.4g}") for value in merged)
        return TaughtNovelty(rounded, self.count + count, self.score)

    def familiarity(self, novelty: Array) -> Array:
        """The share of taught samples that looked at least as novel, (n,).

        The sample itself counts as one more, so that few taught samples refuse little. It falls
        off beyond the most novel of them, by e with each of their standard deviations.

        >>> taught = TaughtNovelty().with_samples(np.array([1.0, 2.0, 3.0]))
        >>> taught.familiarity(np.array([1.0, 3.0, 9.0])).round(2).tolist()
        [1.0, 0.25, 0.0]
        """
        quantiles = np.array(self.quantiles)
        ascending = -quantiles[::-1]  # among equal quantiles, all count
        share = np.interp(-novelty, ascending, LEVELS)
        beyond = np.maximum(novelty - quantiles[-1], 0) / max(float(quantiles.std()), ROUNDING)
        familiar: Array = (1 + self.count * share) / (1 + self.count) * np.exp(-beyond)
        return familiar


class FitReference:
    """Novelty as a memory tells it that knows how typical a sample is of its class.

    See :mod:`frugalvae.moments.held_out`. Novelty is its opposite.
    """

    score = "fit"

    def __init__(self, memory: TypicalityMemory, rng: np.random.Generator) -> None:
        self._memory, self._rng = memory, rng

    def novelty(self, features: Array) -> Array:
        """The novelty (n,) of features (n, d)."""
        return np.concatenate([_positive(self._memory.typicality(x)) for x in in_blocks(features)])

    def novelty_of_taught(self, task: Task, counts: dict[int, int]) -> Array:
        """The novelty (n,) of some taught samples, as if they had not been.

        ``counts`` is the number of taught samples per class. Classes of one are left out.
        """
        classes = [label for label in task.classes if counts[label] > 1]
        rows = [np.flatnonzero(task.labels == label)[:PER_CLASS] for label in classes]
        if not rows:
            return np.empty(0)
        chosen = np.concatenate(rows)
        return _positive(
            self._memory.held_out_typicality(Task(task.features[chosen], task.labels[chosen]))
        )

    @cached_property
    def of_replay(self) -> Array:
        """The novelty of replayed samples, (n,)."""
        classes = self._memory.classes[:: 1 + len(self._memory.classes) // CLASSES_REPLAYED]
        draws = [self._memory.sample(y, REPLAYED_IF_MEAN_KNOWN, self._rng) for y in classes]
        return self.novelty(np.concatenate(draws))


def _positive(typicality: Array) -> Array:
    """The opposite of typicality, above zero."""
    novelty: Array = np.logaddexp(0, -typicality)
    return novelty


class DistanceReference:
    """What the taught classes look like, drawn from a memory.

    The novelty of a sample is its cosine distance from the nearest class mean, relative to the
    mean distance of replayed samples of that class. Distances are measured around the mean of
    all classes, in units of the standard deviation within classes.
    """

    score = "distance"

    def __init__(self, memory: Memory, rng: np.random.Generator) -> None:
        self.classes, self._memory, self._rng = list(memory.classes), memory, rng
        if isinstance(memory, VarianceMemory):
            self._from_variances(memory)
        else:
            self._from_replay(self._replay)

    def _from_variances(self, memory: VarianceMemory) -> None:
        """Spreads and scales as the memory's means and variances give them."""
        variances, ratios = memory.mapped_variances()
        self.spread = _bounded(np.sqrt(variances))  # (d,)
        self._centre_on(memory.mapped_means().astype(np.float64))
        within = ratios * float((variances / self.spread**2).sum())  # (k,)
        away = (((self.means - self.centre) / self.spread) ** 2).sum(axis=1)
        self.scale = _bounded(1 - np.sqrt(away / np.maximum(away + within, ROUNDING)))  # (k,)

    def _from_replay(self, drawn: dict[int, Array]) -> None:
        """The same, as replayed samples show them."""
        variances = np.mean([x.var(axis=0) for x in drawn.values()], axis=0)  # (d,)
        self.spread = _bounded(np.sqrt(variances))  # (d,)
        if isinstance(self._memory, MeanMemory):
            self._centre_on(self._memory.mapped_means().astype(np.float64))
        else:
            self._centre_on(np.stack([x.mean(axis=0) for x in drawn.values()]))  # (k, d)
        direction = dict(zip(self.classes, self.directions, strict=True))
        scale = {y: float((1 - self._direction(x) @ direction[y]).mean()) for y, x in drawn.items()}
        mean_scale = float(np.mean(list(scale.values())))
        scales = np.array([scale.get(label, mean_scale) for label in self.classes])
        self.scale = _bounded(scales)  # (k,)

    def _centre_on(self, means: Array) -> None:
        self.means = means
        single = len(means) == 1  # centred on itself, it would have no direction
        self.centre = np.zeros(means.shape[1]) if single else means.mean(axis=0)
        self.directions = self._direction(means)  # (k, d)

    @cached_property
    def _replay(self) -> dict[int, Array]:
        """Replayed samples of each class, or of about a hundred whose means are known."""
        classes, each = self.classes, REPLAYED
        if isinstance(self._memory, MeanMemory):
            classes = classes[:: 1 + len(classes) // CLASSES_REPLAYED]
            each = REPLAYED_IF_MEAN_KNOWN
        return {y: self._mapped(self._memory.sample(y, each, self._rng)) for y in classes}

    @property
    def of_replay(self) -> Array:
        """The novelty of the replayed samples themselves, (n,)."""
        return np.concatenate([self._novelty(x) for x in self._replay.values()])

    def novelty(self, features: Array) -> Array:
        """The novelty (n,) of features (n, d)."""
        blocks = in_blocks(features)
        return np.concatenate([self._novelty(self._mapped(block)) for block in blocks])

    def novelty_of_taught(self, task: Task, counts: dict[int, int]) -> Array:
        """The novelty (n,) of taught samples, each as if its class had been taught without it.

        ``counts`` is the number of taught samples per class. Classes of one are left out.
        """
        found = [np.empty(0)]
        for label in task.classes:
            if counts[label] > 1:
                x, row = self._mapped(task.of(label)), self.classes.index(label)
                distances = 1 - self._direction(x) @ self.directions.T  # (n, k)
                without = self.means[row] + (self.means[row] - x) / (counts[label] - 1)  # (n, d)
                similarity = (self._direction(x) * self._direction(without)).sum(axis=1)
                distances[:, row] = 1 - similarity
                found.append(self._relative(distances))
        return np.concatenate(found)

    def _mapped(self, features: Array) -> Array:
        """Features as the memory sees them, if it maps them."""
        features = features.astype(np.float64)
        return self._memory.mapped(features) if isinstance(self._memory, MeanMemory) else features

    def _novelty(self, mapped: Array) -> Array:
        return self._relative(1 - self._direction(mapped) @ self.directions.T)

    def _direction(self, mapped: Array) -> Array:
        return unit((mapped - self.centre) / self.spread)

    def _relative(self, distances: Array) -> Array:
        """Distance (n,) from the nearest class, relative to that class's scale."""
        column = distances.argmin(axis=1)
        nearest = distances[np.arange(len(distances)), column]
        nearest = np.where(nearest > ROUNDING, nearest, 0.0)
        novelty: Array = np.clip(nearest / self.scale[column], 0, 1e30)
        return novelty


def novelty_reference(
    memory: Memory, rng: np.random.Generator, score: str | None = None
) -> FitReference | DistanceReference:
    """What a memory measures novelty by: ``score``, or the best one that it knows.

    How well a sample fits its class, against all classes, takes two of them.
    """
    wanted = score in (None, "fit") and len(memory.classes) > 1
    if wanted and isinstance(memory, TypicalityMemory):
        return FitReference(memory, rng)
    return DistanceReference(memory, rng)


def _bounded(spread: Array) -> Array:
    """Spreads, raised where they are much smaller than their mean."""
    level = float(spread.mean())
    return np.maximum(spread, MIN_SPREAD * level) if level > ROUNDING else np.ones_like(spread)


# ------------------------------------------------------------ probabilities that match the accuracy


@dataclass(frozen=True)
class Calibration:
    """The temperature that logits are divided by before they become probabilities.

    >>> Calibration(2.0).probabilities(np.array([[0.0, 0.0]])).tolist()
    [[0.5, 0.5]]
    """

    temperature: float = 1.0

    def __post_init__(self) -> None:
        check_number("temperature", self.temperature, 1e-6, 1e6)

    def probabilities(self, logits: Array) -> Array:
        """Class probabilities (n, k) of logits (n, k)."""
        return softmax(logits / self.temperature)

    def refitted(
        self, memory: Memory, head: Head, task: Task, rng: np.random.Generator
    ) -> Calibration:
        """The temperature that fits after learning a task without a fifth of it.

        Memory and head learn here and are of no use afterwards, so pass copies.
        """
        out = held_out_rows(task.labels, HELD_OUT, int(rng.integers(2**31 - 1)))
        if not out.any():
            return self
        rest = Task(task.features[~out], task.labels[~out], task.text, task.names)
        with warnings.catch_warnings():  # the real training will warn again
            warnings.simplefilter("ignore")
            memory.learn(rest, rng)
            head.learn(rest, Replay(memory, rng))
        columns = columns_of(task.labels[out], head.classes)
        logits = head.logits(task.features[out])
        return Calibration(fit_temperature(logits, columns, self.temperature))


def fit_temperature(logits: Array, columns: Array, before: float = 1.0) -> float:
    """The temperature at which the true classes have the highest likelihood.

    Parameters
    ----------
    logits, columns
        Logits (n, k), and the column of each sample's true class, (n,).
    before
        The previous temperature. A factor of e away from it counts as one standard deviation,
        or a few samples that are all classified correctly would drive the temperature to zero.

    Examples
    --------
    >>> logits = np.array([[9.0, 0.0], [9.0, 0.0], [9.0, 0.0], [0.0, 9.0]])
    >>> round(fit_temperature(np.tile(logits, (50, 1)), np.tile([0, 0, 1, 1], 50)), 1)
    7.8
    """
    true = logits[np.arange(len(logits)), columns]  # (n,)

    def loss(log_temperature: float) -> float:
        inverse = np.exp(-log_temperature)
        likelihood = float((true * inverse - logsumexp(logits * inverse)).sum())
        return -likelihood + (log_temperature - float(np.log(before))) ** 2 / 2

    return float(f"{np.exp(minimum(loss, -9.0, 9.0)):.5g}")


def minimum(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a unimodal function is smallest, to 1e-6, by golden-section search.

    >>> round(minimum(lambda x: (x - 0.3) ** 2, -9, 9), 5)
    0.3
    """
    ratio = (5**0.5 - 1) / 2
    inner = [high - ratio * (high - low), low + ratio * (high - low)]
    values = [function(x) for x in inner]
    while high - low > 1e-6:
        if values[0] < values[1]:
            high, inner = inner[1], [inner[1] - ratio * (inner[1] - low), inner[0]]
            values = [function(inner[0]), values[0]]
        else:
            low, inner = inner[0], [inner[1], inner[0] + ratio * (high - inner[0])]
            values = [values[1], function(inner[1])]
    return (low + high) / 2
