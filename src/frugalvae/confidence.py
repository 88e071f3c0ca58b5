"""How far to trust an answer: a temperature for probabilities, and how familiar a sample looks.

Replay is more typical than real samples: classes of replay are told apart too easily, and real
samples look strange beside it. So both are measured on real samples while they are there, and
on samples that had no part in what they are measured against.
"""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from frugalvae.data.split import held_out_rows
from frugalvae.equations import unit
from frugalvae.errors import InputError, check_number
from frugalvae.memories.base import MeanMemory
from frugalvae.tasks import Replay, Task

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from frugalvae.heads.base import Head
    from frugalvae.memories.base import Memory

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

    def rehearsed(self, memory: Memory, head: Head, task: Task, rng: torch.Generator) -> Confidence:
        """With the temperature that fits when the parts learn a task without a fifth of it.

        The parts learn, and are of no use afterwards: give copies.
        """
        seed = int(torch.randint(2**31 - 1, (), generator=rng, device=rng.device))
        out = torch.as_tensor(held_out_rows(task.labels.cpu().numpy(), HELD_OUT, seed))
        out = out.to(task.features.device)
        if not out.any():
            return self
        rest = Task(task.features[~out], task.labels[~out], task.text, task.names)
        with warnings.catch_warnings():  # what there is to warn of comes again in earnest
            warnings.simplefilter("ignore")
            memory.learn(rest, rng)
            head.learn(rest, Replay(memory, rng))
        column = {label: position for position, label in enumerate(head.classes)}
        columns = torch.tensor([column[label] for label in task.labels[out].tolist()])
        logits = head.logits(task.features[out].double()).cpu()
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

    def __init__(self, memory: Memory, rng: torch.Generator) -> None:
        self.classes = list(memory.classes)
        self._memory, shown, each = memory, self.classes, REPLAYED
        if isinstance(memory, MeanMemory):
            shown, each = shown[:: 1 + len(shown) // SHOWN], FEWER
        drawn = {label: self._mapped(memory.sample(label, each, rng)) for label in shown}
        variances = torch.stack([x.var(dim=0, correction=0) for x in drawn.values()])
        self.spread = _bounded(variances.mean(dim=0).sqrt())
        if isinstance(memory, MeanMemory):
            self.means = memory.mapped_means().double()
        else:
            self.means = torch.stack([x.mean(dim=0) for x in drawn.values()])  # (k, d)
        alone = len(self.means) == 1  # around itself it would have no direction
        self.centre = torch.zeros_like(self.means[0]) if alone else self.means.mean(dim=0)
        self.directions = self._direction(self.means)
        own = dict(zip(self.classes, self.directions, strict=True))
        scale = {y: (1 - self._direction(x) @ own[y]).mean() for y, x in drawn.items()}
        usual = torch.stack(list(scale.values())).mean()
        self.scale = _bounded(torch.stack([scale.get(label, usual) for label in self.classes]))
        self._drawn = list(drawn.values())

    @property
    def of_replay(self) -> NDArray[np.float64]:
        """How strange the drawn samples look themselves."""
        return np.concatenate([self._strangeness(x) for x in self._drawn])

    def strangeness(self, features: Tensor) -> NDArray[np.float64]:
        """How strange each row looks, (n,)."""
        return self._strangeness(self._mapped(features))

    def strangeness_of_taught(self, task: Task, counts: dict[int, int]) -> NDArray[np.float64]:
        """The same for samples that were taught, each as if its class had been taught without it.

        ``counts`` says how many samples each class was taught. Classes of one are left out.
        """
        found = [np.empty(0)]
        for label in task.classes:
            if counts[label] > 1:
                x, own = self._mapped(task.of(label)), self.classes.index(label)
                far = 1 - self._direction(x) @ self.directions.T
                without = self.means[own] + (self.means[own] - x) / (counts[label] - 1)
                far[:, own] = 1 - (self._direction(x) * self._direction(without)).sum(dim=1)
                found.append(self._relative(far))
        return np.concatenate(found)

    def _mapped(self, features: Tensor) -> Tensor:
        """In the terms of the memory, if it has any of its own."""
        features = features.double()
        return self._memory.mapped(features) if isinstance(self._memory, MeanMemory) else features

    def _strangeness(self, mapped: Tensor) -> NDArray[np.float64]:
        return self._relative(1 - self._direction(mapped) @ self.directions.T)

    def _direction(self, mapped: Tensor) -> Tensor:
        return unit((mapped - self.centre) / self.spread)

    def _relative(self, far: Tensor) -> NDArray[np.float64]:
        nearest, column = far.min(dim=1)
        nearest = torch.where(nearest > ROUNDING, nearest, 0.0)
        return (nearest / self.scale[column]).clamp(0, 1e30).cpu().numpy()


def _bounded(spread: Tensor) -> Tensor:
    """Spreads, none of which is much smaller than their mean, nor zero."""
    level = float(spread.mean())
    return spread.clamp(min=SMALLEST * level) if level > ROUNDING else torch.ones_like(spread)


def fit_temperature(logits: Tensor, columns: Tensor, before: float = 1.0) -> float:
    """What to divide logits by, so that they give the right columns the highest likelihood.

    A factor of e away from ``before`` counts as one standard deviation: a few samples that are
    all classified right must not make it vanish.

    >>> logits = torch.tensor([[9.0, 0.0], [9.0, 0.0], [9.0, 0.0], [0.0, 9.0]])
    >>> round(fit_temperature(logits.repeat(50, 1), torch.tensor([0, 0, 1, 1]).repeat(50)), 1)
    7.9
    """
    from scipy.optimize import minimize_scalar

    def loss(log_temperature: float) -> float:
        scaled = logits / float(np.exp(log_temperature))
        likelihood = -torch.nn.functional.cross_entropy(scaled, columns, reduction="sum")
        return float(-likelihood + (log_temperature - np.log(before)) ** 2 / 2)

    found = minimize_scalar(loss, bounds=(-9.0, 9.0), method="bounded")
    return float(f"{np.exp(found.x):.5g}")
