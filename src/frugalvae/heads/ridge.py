"""Ridge regression on replay, in closed form."""

from __future__ import annotations

import numpy as np

from frugalvae.errors import check_number
from frugalvae.heads.weights import Weights
from frugalvae.maths.arrays import one_hot
from frugalvae.maths.symmetric import add_ridge
from frugalvae.parts.protocols import Replay, Task


class RidgeHead(Weights):
    """Least squares on one-hot targets with a quadratic penalty, fitted on replay.

    Parameters
    ----------
    samples
        Samples per class.
    penalty
        Relative to the mean variance of the features, so it does not depend on their scale.
    scale
        The factor from fitted targets, which lie between 0 and 1, to logits.
    """

    def __init__(self, *, samples: int = 512, penalty: float = 1e-2, scale: float = 20.0) -> None:
        check_number("samples", samples, 1, 65_536, whole=True)
        check_number("penalty", penalty, 1e-12)
        check_number("scale", scale, 1e-12)
        self.samples = samples
        self.penalty = penalty
        self.scale = scale
        self.classes_: list[int] = []

    def learn(self, task: Task, replay: Replay) -> None:
        """Solve for the weights of all classes."""
        self.classes_ = list(replay.classes)
        x, y = replay.draw(self.samples)  # (n, d), (n,)
        targets, x = one_hot(y, len(self.classes_)), x.astype(np.float64)  # (n, k), (n, d)
        centre, prior = x.mean(axis=0), targets.mean(axis=0)  # (d,), (k,)
        centred = x - centre
        gram = add_ridge(centred.T @ centred, self.penalty)  # (d, d)
        weights = np.linalg.solve(gram, centred.T @ (targets - prior))  # (d, k)
        self.weights_ = weights.astype(np.float32)
        self.bias_ = (prior - centre @ weights).astype(np.float32)  # (k,)
