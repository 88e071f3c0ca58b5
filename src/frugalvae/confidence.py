"""How far to trust an answer: a temperature for probabilities, and how familiar a sample looks.

Replay is more typical than real samples: classes of replay are told apart too easily, and real
samples look strange beside it. So both are measured on real samples while they are there, and
on samples that had no part in what they are measured against.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from frugalvae.errors import InputError, check_number
from frugalvae.interfaces import MeanMemory, Replay, Task
from frugalvae.maths.arrays import Array, in_blocks, logsumexp, unit
from frugalvae.maths.split import held_out_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from frugalvae.interfaces import Head, Memory

REPLAYED = 128  # samples of each class that stand for it;
FEWER = 8  # if its mean is known, these show how far from it they are,
SHOWN = 100  # and so many classes show it for others
LEVELS = np.linspace(0, 1, 101)
HELD_OUT = 0.2  # part of a task on which a temperature is fitted
SMALLEST = 0.1  # of a spread, as a part of the mean one: what is divided by must not vanish

ROUNDING = 1e-9  # distances below are none


@dataclass(frozen=True)
class Confidence:
    """What is kept to judge answers.

    Attributes
    ----------
    temperature
        What logits are divided by before they become probabilities.
    quantiles
        Of how strange taught samples looked, from the least to the most; 101 of them, or none.
    count
        How many samples they stand for.
    """

    temperature: float = 1.0
    quantiles: tuple[float, ...] = ()
    count: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "quantiles", tuple(self.quantiles))  # JSON has lists alone
        check_number("temperature", self.temperature, 1e-6, 1e6)
        check_number("count", self.count, 0, whole=True)
        for quantile in self.quantiles:
            check_number("quantiles", quantile, 0, 1e30)
        right = len(self.quantiles) in (0, len(LEVELS))
        if not right or list(self.quantiles) != sorted(self.quantiles):
            raise InputError(f"expected {len(LEVELS)} ascending quantiles, or none")

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self) | {"quantiles": list(self.quantiles)}

    def with_samples(self, strangeness: NDArray[np.float64]) -> Confidence:
        """Count more samples in the quantiles.

        >>> one = Confidence().with_samples(np.array([1.0, 3.0]))
        >>> both = one.with_samples(np.array([2.0]))
        >>> both.count, both.quantiles[50]
        (3, 2.0)
        """
        if not len(strangeness):
            return self
        share = self.count / len(LEVELS) if self.quantiles else 0.0
        values = np.concatenate([self.quantiles, strangeness])
        weights = np.concatenate([np.full(len(self.quantiles), share), np.ones(len(strangeness))])
        order = np.argsort(values, kind="stable")
        middles = weights[order].cumsum() - weights[order] / 2
        places = (middles - middles[0]) / max(middles[-1] - middles[0], 1e-12)
        merged = np.interp(LEVELS, places, values[order])
        short = tuple(float(f"{value:.5g}") for value in merged)
        return Confidence(self.temperature, short, self.count + len(strangeness))

    def rehearsed(
        self, memory: Memory, head: Head, task: Task, rng: np.random.Generator
    ) -> Confidence:
        """With the temperature that fits when the parts learn a task without a fifth of it.

        The parts learn, and are of no use afterwards: give copies.
        """
        out = held_out_rows(task.labels, HELD_OUT, int(rng.integers(2**31 - 1)))
        if not out.any():
            return self
        rest = Task(task.features[~out], task.labels[~out], task.text, task.names)
        with warnings.catch_warnings():  # what there is to warn of comes again in earnest
            warnings.simplefilter("ignore")
            memory.learn(rest, rng)
            head.learn(rest, Replay(memory, rng))
        column = {label: position for position, label in enumerate(head.classes)}
        columns = np.array([column[label] for label in task.labels[out].tolist()])
        logits = head.logits(task.features[out])
        return replace(self, temperature=fit_temperature(logits, columns, self.temperature))

    def familiarity(self, strangeness: NDArray[np.float64]) -> NDArray[np.float64]:
        """The share of taught samples that looked as strange or stranger."""
        familiar = -np.array(self.quantiles)[::-1]  # ascending; where some are equal, all count
        return np.interp(-strangeness, familiar, LEVELS)


class Reference:
    """What the classes look like, drawn from a memory.

    A sample is as strange as it is far from the nearest class mean, by cosine, around the mean
    of all classes and in units of the spread that features have within classes; relative to how
    far replayed samples of that class are.
    """

    def __init__(self, memory: Memory, rng: np.random.Generator) -> None:
        self.classes = list(memory.classes)
        self._memory, shown, each = memory, self.classes, REPLAYED
        if isinstance(memory, MeanMemory):
            shown, each = shown[:: 1 + len(shown) // SHOWN], FEWER
        drawn = {label: self._mapped(memory.sample(label, each, rng)) for label in shown}
        variances = np.mean([x.var(axis=0) for x in drawn.values()], axis=0)  # (d,)
        self.spread = _bounded(np.sqrt(variances))
        if isinstance(memory, MeanMemory):
            self.means = memory.mapped_means().astype(np.float64)
        else:
            self.means = np.stack([x.mean(axis=0) for x in drawn.values()])  # (k, d)
        alone = len(self.means) == 1  # around itself it would have no direction
        self.centre = np.zeros(self.means.shape[1]) if alone else self.means.mean(axis=0)
        self.directions = self._direction(self.means)
        own = dict(zip(self.classes, self.directions, strict=True))
        scale = {y: float((1 - self._direction(x) @ own[y]).mean()) for y, x in drawn.items()}
        usual = float(np.mean(list(scale.values())))
        self.scale = _bounded(np.array([scale.get(label, usual) for label in self.classes]))
        self._drawn = list(drawn.values())

    @property
    def of_replay(self) -> Array:
        """How strange the drawn samples look themselves."""
        return np.concatenate([self._strangeness(x) for x in self._drawn])

    def strangeness(self, features: Array) -> Array:
        """How strange each row looks, (n,)."""
        blocks = in_blocks(features)
        return np.concatenate([self._strangeness(self._mapped(block)) for block in blocks])

    def strangeness_of_taught(self, task: Task, counts: dict[int, int]) -> Array:
        """The same for samples that were taught, each as if its class had been taught without it.

        ``counts`` says how many samples each class was taught. Classes of one are left out.
        """
        found = [np.empty(0)]
        for label in task.classes:
            if counts[label] > 1:
                x, own = self._mapped(task.of(label)), self.classes.index(label)
                far = 1 - self._direction(x) @ self.directions.T
                without = self.means[own] + (self.means[own] - x) / (counts[label] - 1)
                far[:, own] = 1 - (self._direction(x) * self._direction(without)).sum(axis=1)
                found.append(self._relative(far))
        return np.concatenate(found)

    def _mapped(self, features: Array) -> Array:
        """In the terms of the memory, if it has any of its own."""
        features = features.astype(np.float64)
        return self._memory.mapped(features) if isinstance(self._memory, MeanMemory) else features

    def _strangeness(self, mapped: Array) -> Array:
        return self._relative(1 - self._direction(mapped) @ self.directions.T)

    def _direction(self, mapped: Array) -> Array:
        return unit((mapped - self.centre) / self.spread)

    def _relative(self, far: Array) -> Array:
        column = far.argmin(axis=1)
        nearest = far[np.arange(len(far)), column]
        nearest = np.where(nearest > ROUNDING, nearest, 0.0)
        strangeness: Array = np.clip(nearest / self.scale[column], 0, 1e30)
        return strangeness


def _bounded(spread: Array) -> Array:
    """Spreads, none of which is much smaller than their mean, nor zero."""
    level = float(spread.mean())
    return np.maximum(spread, SMALLEST * level) if level > ROUNDING else np.ones_like(spread)


def fit_temperature(logits: Array, columns: Array, before: float = 1.0) -> float:
    """What to divide logits by, so that they give the right columns the highest likelihood.

    A factor of e away from ``before`` counts as one standard deviation: a few samples that are
    all classified right must not make it vanish.

    >>> logits = np.array([[9.0, 0.0], [9.0, 0.0], [9.0, 0.0], [0.0, 9.0]])
    >>> round(fit_temperature(np.tile(logits, (50, 1)), np.tile([0, 0, 1, 1], 50)), 1)
    7.8
    """
    right = logits[np.arange(len(logits)), columns]

    def loss(log_temperature: float) -> float:
        colder = np.exp(-log_temperature)
        likelihood = float((right * colder - logsumexp(logits * colder)).sum())
        return -likelihood + (log_temperature - float(np.log(before))) ** 2 / 2

    return float(f"{np.exp(smallest(loss, -9.0, 9.0)):.5g}")


def smallest(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function with one valley is smallest, to 1e-6, by golden sections.

    >>> round(smallest(lambda x: (x - 0.3) ** 2, -9, 9), 5)
    0.3
    """
    shorter = (5**0.5 - 1) / 2
    inner = [high - shorter * (high - low), low + shorter * (high - low)]
    values = [function(x) for x in inner]
    while high - low > 1e-6:
        if values[0] < values[1]:
            high, inner = inner[1], [inner[1] - shorter * (inner[1] - low), inner[0]]
            values = [function(inner[0]), values[0]]
        else:
            low, inner = inner[0], [inner[1], inner[0] + shorter * (high - inner[0])]
            values = [values[1], function(inner[1])]
    return (low + high) / 2
