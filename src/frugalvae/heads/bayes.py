"""Bayes head: the class under whose density a feature is most probable."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, cast

from frugalvae.checks import check_together
from frugalvae.errors import check_number
from frugalvae.heads.defaults import HeadDefaults
from frugalvae.interfaces import Replay, Task, TemperedMemory
from frugalvae.maths.arrays import Array
from frugalvae.maths.gaussians import Shrinkage

if TYPE_CHECKING:
    from frugalvae.interfaces import DensityMemory

TEMPERING = 3.0  # where a memory does not know better


class BayesHead(HeadDefaults):
    """Classifies by the memory's densities: no replay, nothing to fit, nothing to keep.

    All classes have the same prior probability.

    Parameters
    ----------
    own, ridge
        How far class covariances are shrunk towards the shared one; see
        :class:`~frugalvae.maths.gaussians.Shrinkage`. By default as the memory sees fit.
    tempering
        Densities of d coordinates are raised to the power ``tempering / sqrt(d)``. Features are
        correlated in ways the Gaussian ignores, which makes it overconfident; the effect grows
        with d. By default 3, or what held-out samples tell the memory. Tempering changes no
        prediction; ``calibrate=True`` of the classifier fits the rest.

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
    needs_every_task = False  # it reads the memory as it is

    def __init__(
        self,
        *,
        own: float | None = None,
        ridge: float | None = None,
        tempering: float | None = None,
    ) -> None:
        if tempering is not None:
            check_number("tempering", tempering, 1e-6)
        self.own, self.ridge = own, ridge
        self._shrinkage = Shrinkage(own, ridge)
        self.tempering = tempering
        self.memory_: DensityMemory | None = None  # the classifier's: a file holds it once

    @property
    def classes(self) -> list[int]:
        """The classes that the memory knows."""
        return [] if self.memory_ is None else self.memory_.classes

    def learn(self, task: Task, replay: Replay) -> None:
        """Keep a reference to the memory."""
        check_together(replay.memory, self)
        self.memory_ = cast("DensityMemory", replay.memory)

    def update(self, task: Task, count: int, replay: Replay) -> None:
        """Keep a reference to the memory."""
        self.learn(task, replay)

    def logits(self, features: Array) -> Array:
        """Tempered log densities, (n, k)."""
        memory = self.memory_
        assert memory is not None
        if isinstance(memory, TemperedMemory):
            return memory.logits(features, self._shrinkage, self.tempering)
        tempering = TEMPERING if self.tempering is None else self.tempering
        power = min(1.0, tempering / math.sqrt(memory.density_width))
        return power * memory.log_density(features, self._shrinkage)

    def unlearn(self, task: Task, count: int) -> None:
        """Nothing: the memory takes samples out."""

    def forget_with(self, task: Task) -> list[str]:
        """Nothing: the memory takes samples out."""
        return []

    def arrays(self) -> dict[str, Array]:
        """None."""
        return {}
