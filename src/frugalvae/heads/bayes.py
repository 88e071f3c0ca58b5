"""Bayes' rule: the class under whose density a feature is most probable."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, cast

from frugalvae.checks import check_together
from frugalvae.cost import Component
from frugalvae.errors import check_number
from frugalvae.interfaces import Replay, Task
from frugalvae.maths.arrays import Array
from frugalvae.maths.gaussians import Shrinkage

if TYPE_CHECKING:
    from frugalvae.interfaces import DensityMemory


class BayesHead:
    """Classifies by the memory's own densities: no replay, nothing to fit, nothing to keep.

    All classes count as equally probable beforehand.

    Parameters
    ----------
    own, ridge
        How far covariances are drawn towards what all classes share; see
        :class:`~frugalvae.maths.gaussians.Shrinkage`.
    tempering
        Densities of d coordinates are raised to this divided by the root of d: what coordinates
        have to do with each other in ways that a density does not know makes it too sure of
        itself, the more so the more they are. It changes no prediction; ``calibrate=True`` of
        the classifier fits what is left.

    Examples
    --------
    >>> import numpy as np
    >>> from frugalvae.memories.gaussian import GaussianMemory
    >>> memory, rng = GaussianMemory("diagonal"), np.random.default_rng(0)
    >>> x = np.array([[0.0], [1.0], [5.0], [9.0]])
    >>> memory.learn(Task(x, np.array([0, 0, 1, 1])), rng)
    >>> head = BayesHead(own=1.0)
    >>> head.learn(Task.empty(1), Replay(memory, rng))
    >>> int(head.logits(np.array([[-4.0]])).argmax())  # far from both, and the second is wider
    1
    """

    needs_density = True

    def __init__(
        self, *, own: float = 0.1, ridge: float | None = None, tempering: float = 3.0
    ) -> None:
        check_number("tempering", tempering, 1e-6)
        self.own, self.ridge = own, ridge
        self._shrinkage = Shrinkage(own, ridge)
        self.tempering = tempering
        self.memory_: DensityMemory | None = None  # the classifier's own: a file holds it once

    @property
    def classes(self) -> list[int]:
        """The classes that the memory knows."""
        return [] if self.memory_ is None else self.memory_.classes

    @property
    def needs_every_task(self) -> bool:
        """It looks at the memory as it is."""
        return False

    def register(self, task: Task) -> None:
        """Any task will do."""

    def learn(self, task: Task, replay: Replay) -> None:
        """Take the memory to look at."""
        check_together(replay.memory, self)
        self.memory_ = cast("DensityMemory", replay.memory)

    def update(self, task: Task, count: int, replay: Replay) -> None:
        """Take the memory to look at."""
        self.learn(task, replay)

    def forget(self, label: int) -> list[str]:
        """It keeps nothing of its own."""
        return []

    def logits(self, features: Array) -> Array:
        """Logarithms of tempered densities."""
        assert self.memory_ is not None
        power = min(1.0, self.tempering / math.sqrt(self.memory_.density_width))
        return power * self.memory_.log_density(features, self._shrinkage)

    def arrays(self) -> dict[str, Array]:
        """None."""
        return {}

    def components(self) -> list[Component]:
        """None."""
        return []
