"""ACIL and GACL heads: analytic learning, a ridge regression on random ReLU features.

Both papers keep the inverse of the regularised Gram matrix and the weights, and update them by
Woodbury's identity with each batch. That is ridge regression on all samples so far. The heads here
keep the Gram matrix and the sums of features instead, which takes as much room, is exact for any
batches, and costs fewer products; a test compares it with the recursion.
"""

from __future__ import annotations

import numpy as np

from frugalvae.errors import check_number
from frugalvae.maths.arrays import Array
from frugalvae_lab.heads.running_ridge import RunningRidge
from frugalvae_lab.maths.projection import uniform_vector


class ReluBuffer(RunningRidge):
    """Ridge regression with a fixed penalty on ReLU features, in float64 as its authors have it."""

    precision = np.float64

    def __init__(self, width: int, penalty: float, scale: float) -> None:
        super().__init__(width, scale)
        check_number("penalty", penalty, 1e-12)
        self.penalty = penalty

    def _solve(self) -> Array:
        return self._solved(self.penalty)[0]

    def _hidden(self, features: Array) -> Array:
        dim = features.shape[1]
        if self._projection is None:  # uniform within 1 / sqrt(d), as PyTorch begins a layer
            drawn = uniform_vector(self.seed_, dim * self.width).reshape(dim, self.width)
            self._projection = (2 * drawn - 1) / np.float32(dim**0.5)
        hidden: Array = np.maximum(features @ self._projection, 0)
        return hidden


class ACILHead(ReluBuffer):
    """Analytic class-incremental learning: recursive ridge regression; no replay.

    Parameters
    ----------
    width
        Number of random features.
    penalty
        What is added to the diagonal of the Gram matrix.
    scale
        The factor from fitted targets, which lie between 0 and 1, to logits.

    References
    ----------
    Zhuang et al., "ACIL: Analytic Class-Incremental Learning with Absolute Memorization and
    Privacy Protection", 2022.
    """

    def __init__(self, *, width: int = 8192, penalty: float = 0.1, scale: float = 20.0) -> None:
        super().__init__(width, penalty, scale)


class GACLHead(ReluBuffer):
    """Generalised analytic continual learning: known and new classes may come mixed; no replay.

    Parameters
    ----------
    width
        Number of random features.
    penalty
        What is added to the diagonal of the Gram matrix.
    scale
        The factor from fitted targets, which lie between 0 and 1, to logits.

    References
    ----------
    Zhuang et al., "GACL: Exemplar-Free Generalized Analytic Continual Learning", 2024.
    """

    def __init__(self, *, width: int = 5000, penalty: float = 100.0, scale: float = 20.0) -> None:
        super().__init__(width, penalty, scale)
