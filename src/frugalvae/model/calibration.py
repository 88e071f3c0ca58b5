"""Calibration: one temperature that makes probabilities match the observed accuracy.

Replayed samples are more typical than real ones, so classes of replay are too easy to tell
apart. The temperature is therefore fitted on real samples that are held out.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from frugalvae.errors import check_number
from frugalvae.maths.arrays import Array, columns_of, held_out_rows, logsumexp, softmax
from frugalvae.parts.protocols import Replay, Task

if TYPE_CHECKING:
    from frugalvae.parts.protocols import Head, Memory

HELD_OUT = 0.2  # share of a task on which the temperature is fitted


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
