"""Fly-CL head: ridge regression on sparse random features, of which the largest are kept."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from frugalvae.errors import check_number
from frugalvae.maths.arrays import Array
from frugalvae_lab.heads.ranpac import ChosenPenalty
from frugalvae_lab.maths.projection import sparse_normal_matrix
from frugalvae_lab.maths.ridge import PENALTIES, RidgePath


class FlyCLHead(ChosenPenalty):
    """Ridge regression on the largest of many sparse random features; no replay.

    Parameters
    ----------
    width
        Number of random features.
    degree
        How many features each of them sees, or all if there are fewer.
    level
        The share of random features that are kept for each sample, the largest; others are zero.
    penalties
        Candidates, of which generalised cross-validation on the newest task chooses one.
    scale
        The factor from fitted targets, which lie between 0 and 1, to logits.

    References
    ----------
    Zou et al., "Fly-CL: A Fly-Inspired Framework for Enhancing Efficient Decorrelation and Reduced
    Training Time in Pre-trained Model-based Continual Representation Learning", 2026.
    """

    def __init__(
        self,
        *,
        width: int = 10_000,
        degree: int = 300,
        level: float = 0.3,
        penalties: Sequence[float] = PENALTIES,
        scale: float = 20.0,
    ) -> None:
        super().__init__(width, penalties, scale)
        check_number("degree", degree, 1, 65_536, whole=True)
        check_number("level", level, 1e-6, 1)
        self.degree = degree
        self.level = level

    def _best(self, hidden: Array, targets: Array) -> float:
        scores = RidgePath.of(hidden, targets).cross_validation(self.penalties)
        return self.penalties[int(scores.argmin())]

    def _hidden(self, features: Array) -> Array:
        if self._projection is None:
            shape = features.shape[1], self.width
            self._projection = sparse_normal_matrix(self.seed_, shape, self.degree)
        hidden: Array = features @ self._projection
        silent = self.width - max(1, int(self.width * self.level))
        if silent:
            least = np.partition(hidden, silent, axis=1)[:, silent]
            hidden[hidden < least[:, None]] = 0
        return hidden
