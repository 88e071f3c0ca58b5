"""RanPAC, Fly-CL, ACIL and GACL: ridge regression on random features, each with its own.

ACIL and GACL keep the inverse of the regularised Gram matrix, and update it by Woodbury's identity
with each batch. That is ridge regression on all samples so far. The heads here keep the Gram matrix
and the sums of features instead, which takes as much room, is exact for any batches, and costs
fewer products; a test compares it with the recursion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from frugalvae.errors import InputError, check_number
from frugalvae.maths.arrays import Array
from frugalvae.parts.protocols import Component, component
from frugalvae_lab.heads.projection import normal_matrix, sparse_normal_matrix, uniform_vector
from frugalvae_lab.heads.ridge import RunningRidge

MOST_ROWS = 16_384  # of the newest task, to choose a penalty on: more take too long
HELD_OUT = 5  # one of so many samples of the newest task is held out
#: What heads may try, and what RanPAC tries.
PENALTIES = tuple(10.0**power for power in range(-8, 9))


class ChosenPenalty(RunningRidge):
    """Ridge regression whose penalty is chosen on the newest task, when it is first needed.

    A task whose classes have one sample each cannot tell penalties apart: without its sample, a
    class is unknown. The penalty is then the middle one.
    """

    penalty_: float

    def __init__(self, width: int, penalties: Sequence[float], scale: float) -> None:
        super().__init__(width, scale)
        if isinstance(penalties, str) or not penalties:
            raise InputError(f"penalties is {penalties!r}; expected numbers, such as (0.1, 1, 10)")
        check_number("number of penalties", len(penalties), 1, 100, whole=True)
        for penalty in penalties:
            check_number("penalties", penalty, 1e-12)
        self.penalties = penalties
        self._pending: tuple[Array, Array] | None = None  # until a penalty is chosen on them

    def _look_at(self, hidden: Array, targets: Array, rng: np.random.Generator) -> None:
        chosen = self._pending is not None or hasattr(self, "penalty_")
        if chosen and targets.shape[1] == 1:
            return  # one class tells nothing of what tells classes apart
        order = rng.permutation(len(hidden))[:MOST_ROWS]
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


@dataclass(frozen=True)
class RidgePath:
    """Ridge regression of some samples for every penalty, by one eigendecomposition.

    Attributes
    ----------
    hidden, targets
        The samples (n, m) and what they stand for (n, k).
    values, vectors
        Eigenvalues, none negative, and eigenvectors of their products with each other (n, n).

    Examples
    --------
    >>> x, y = np.array([[1.0], [2.0]]), np.array([[1.0], [2.0]])
    >>> RidgePath.of(x, y).predict(np.array([[7.0]]), [5.0]).round(6).tolist()  # 7 * 5 / (5 + 5)
    [[[3.5]]]
    """

    hidden: Array
    targets: Array
    values: Array
    vectors: Array

    @classmethod
    def of(cls, hidden: Array, targets: Array) -> RidgePath:
        """The path of samples (n, m) and targets (n, k)."""
        hidden = hidden.astype(np.float64)
        values, vectors = np.linalg.eigh(hidden @ hidden.T)
        return cls(hidden, targets.astype(np.float64), np.maximum(values, 0), vectors)

    def predict(self, rows: Array, penalties: Sequence[float]) -> Array:
        """What each penalty predicts for other samples (n, m): (penalties, n, k)."""
        along = rows.astype(np.float64) @ self.hidden.T @ self.vectors  # (n, samples)
        right = self.vectors.T @ self.targets  # (samples, k)
        return np.stack([along @ (right / (self.values + p)[:, None]) for p in penalties])

    def held_out_errors(self, rows: Array, targets: Array, penalties: Sequence[float]) -> Array:
        """The mean squared error of each penalty on other samples."""
        errors: Array = ((self.predict(rows, penalties) - targets) ** 2).mean(axis=(1, 2))
        return errors

    def cross_validation(self, penalties: Sequence[float]) -> Array:
        """Generalised cross-validation: the error that each penalty would have on samples left out.

        The squared residual per sample, divided by the square of the share of degrees of freedom
        that is left.
        """
        energy = ((self.vectors.T @ self.targets) ** 2).sum(axis=1)  # of targets in each direction
        scores = []
        for penalty in penalties:
            left = penalty / (self.values + penalty)  # what is left of each direction
            scores.append((left**2 * energy).mean() / max(left.mean(), 1e-300) ** 2)
        return np.array(scores)


# --------------------------------------------------------------------------- ACIL and GACL


class ACILHead(RunningRidge):
    """Analytic class-incremental learning: recursive ridge regression; no replay.

    The sums are in float64, as its authors have them.

    Parameters
    ----------
    width
        Number of random ReLU features.
    penalty
        What is added to the diagonal of the Gram matrix.
    scale
        The factor from fitted targets, which lie between 0 and 1, to logits.

    References
    ----------
    Zhuang et al., "ACIL: Analytic Class-Incremental Learning with Absolute Memorization and
    Privacy Protection", 2022.
    """

    precision = np.float64

    def __init__(self, *, width: int = 8192, penalty: float = 0.1, scale: float = 20.0) -> None:
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


class GACLHead(ACILHead):
    """Generalised analytic continual learning: the same, with other widths and penalties.

    References
    ----------
    Zhuang et al., "GACL: Exemplar-Free Generalized Analytic Continual Learning", 2024.
    """

    def __init__(self, *, width: int = 5000, penalty: float = 100.0, **settings: Any) -> None:
        super().__init__(width=width, penalty=penalty, **settings)
