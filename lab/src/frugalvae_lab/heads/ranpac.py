"""RanPAC head: ridge regression on random features, with a penalty that is chosen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from frugalvae.maths.arrays import Array
from frugalvae.parts.cost import Component, component
from frugalvae_lab.heads.running_ridge import RunningRidge
from frugalvae_lab.maths.projection import normal_matrix
from frugalvae_lab.maths.ridge import PENALTIES, RidgePath, check_penalties

HELD_OUT = 5  # one of so many samples of the newest task is held out


class ChosenPenalty(RunningRidge):
    """Ridge regression whose penalty is chosen on the newest task, when it is first needed.

    A task whose classes have one sample each cannot tell penalties apart: without its sample, a
    class is unknown. The penalty is then the middle one.
    """

    penalty_: float

    def __init__(self, width: int, penalties: Sequence[float], scale: float) -> None:
        super().__init__(width, scale)
        check_penalties(penalties)
        self.penalties = penalties
        self._pending: tuple[Array, Array] | None = None  # until a penalty is chosen on them

    def _look_at(self, hidden: Array, targets: Array, rng: np.random.Generator) -> None:
        chosen = self._pending is not None or hasattr(self, "penalty_")
        if chosen and targets.shape[1] == 1:
            return  # one class tells nothing of what tells classes apart
        order = rng.permutation(len(hidden))
        self._pending = hidden[order], targets[order]

    def _settle(self) -> None:
        if self._pending is not None:
            lone = self._pending[1].sum(axis=0).max() < 2  # no class has two samples
            middle = self.penalties[len(self.penalties) // 2]
            self.penalty_ = float(middle if lone else self._best(*self._pending))
            self._pending = None

    def _best(self, hidden: Array, targets: Array) -> float:
        """The penalty that suits samples in random order best."""
        raise NotImplementedError

    def _solve(self) -> Array:
        weights, self.penalty_ = self._solved(self.penalty_)
        return weights

    def arrays(self) -> dict[str, Array]:
        """The two sums, the seed and the penalty."""
        kept = super().arrays()
        kept["seed and penalty"] = np.array([kept.pop("seed")[0], self.penalty_], np.float64)
        return kept

    def components(self) -> list[Component]:
        """Half of the symmetric Gram matrix, and one column per class."""
        return [*super().components()[:2], component("head: seed and penalty", 0, 2, width=8)]


class RanPACHead(ChosenPenalty):
    """Ridge regression on many random ReLU features, from running sums; no replay.

    Parameters
    ----------
    width
        Number of random features.
    penalties
        Candidates, of which the best is used: fitted on four fifths of the newest task's samples,
        it has the smallest squared error on the rest.
    scale
        The factor from fitted targets, which lie between 0 and 1, to logits.

    References
    ----------
    McDonnell et al., "RanPAC: Random Projections and Pre-trained Models for
    Continual Learning", 2023.
    """

    def __init__(
        self,
        *,
        width: int = 10_000,
        penalties: Sequence[float] = PENALTIES,
        scale: float = 20.0,
    ) -> None:
        super().__init__(width, penalties, scale)

    def _best(self, hidden: Array, targets: Array) -> float:
        fitted = len(hidden) - len(hidden) // HELD_OUT
        if fitted == len(hidden):
            return self.penalties[len(self.penalties) // 2]
        path = RidgePath.of(hidden[:fitted], targets[:fitted])
        errors = path.held_out_errors(hidden[fitted:], targets[fitted:], self.penalties)
        return self.penalties[int(errors.argmin())]

    def _hidden(self, features: Array) -> Array:
        if self._projection is None:
            self._projection = normal_matrix(self.seed_, (features.shape[1], self.width))
        hidden: Array = np.maximum(features @ self._projection, 0)
        return hidden
