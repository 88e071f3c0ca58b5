"""A mixture of diagonal Gaussians per class, as STAR-Prompt keeps it."""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from frugalvae.console import track
from frugalvae.errors import check_number, needing
from frugalvae.maths.arrays import Array, compact, logsumexp, power_of_two, within_shares
from frugalvae.maths.gaussians import SHRINKAGE, Shrinkage, diagonal_log_density
from frugalvae.parts.defaults import MemoryDefaults
from frugalvae.parts.protocols import Component, Task, component

LEAST, MOST = 1e-9, 1e-3  # the regularisation, as shares of the mean square of features


@dataclass(frozen=True)
class Mixture:
    """Weights (p,), means (p, d) and variances (p, d) of one class."""

    weights: Array
    means: Array
    variances: Array

    @classmethod
    def of(cls, scale: Array, weights: Array, means: Array, variances: Array) -> Mixture:
        """Of features that were divided by ``scale``, as it is kept."""
        means, variances = scale * means, np.float64(scale) ** 2 * variances.astype(np.float64)
        return cls(weights.astype(np.float32), means.astype(np.float32), compact(variances))


class MixtureMemory(MemoryDefaults):
    """Up to ``parts`` diagonal Gaussians per class, fitted by expectation-maximisation.

    A class with fewer distinct samples than parts gets as many parts as it has.

    Parameters
    ----------
    parts
        The most Gaussians of a class.
    regularisation
        What is added to each variance: at least a billionth and at most a thousandth of the mean
        square of the class's features, whatever their scale.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> memory = MixtureMemory(parts=2)
    >>> x = np.array([[0.0], [0.1], [9.0], [9.1]])
    >>> memory.learn(Task(x, np.zeros(4, int)), rng)
    >>> sorted(round(float(mean), 2) for mean in memory.mixtures_[0].means[:, 0])
    [0.05, 9.05]
    """

    name = "mixture"  # what reports call it, also where a file gives its state

    def __init__(self, parts: int = 5, *, regularisation: float = 1e-6) -> None:
        check_number("parts", parts, 1, 1_024, whole=True)
        check_number("regularisation", regularisation, 0)
        self.parts = parts
        self.regularisation = regularisation
        self.mixtures_: dict[int, Mixture] = {}

    @property
    def classes(self) -> list[int]:
        """The classes known so far."""
        return list(self.mixtures_)

    def learn(self, task: Task, rng: np.random.Generator) -> None:
        """Fit the mixture of each new class."""
        for label in track(task.classes, "fitting mixtures"):
            self.mixtures_[label] = self._fit(task.of(label), int(rng.integers(2**31 - 1)))

    def _fit(self, x: Array, seed: int) -> Mixture:
        with needing("memory 'mixture'"):
            from sklearn.exceptions import ConvergenceWarning
            from sklearn.mixture import GaussianMixture

        parts, scale = min(self.parts, len(np.unique(x, axis=0))), power_of_two(x)
        x = x / scale
        if parts == 1:
            return Mixture.of(scale, np.ones(1), x.mean(axis=0)[None], x.var(axis=0)[None])
        square = float((x.astype(np.float64) ** 2).mean())
        ridge = within_shares(self.regularisation / float(scale) ** 2, square, LEAST, MOST)
        model = GaussianMixture(parts, covariance_type="diag", reg_covar=ridge, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(x.astype(np.float64))
        return Mixture.of(scale, model.weights_, model.means_, model.covariances_)

    def sample(self, label: int, count: int, rng: np.random.Generator) -> Array:
        """Choose a part for each sample, then draw from it."""
        mixture = self.mixtures_[label]
        weights = mixture.weights.astype(np.float64)
        chosen = rng.choice(len(weights), count, p=weights / weights.sum())
        means = mixture.means[chosen]
        deviations = np.sqrt(mixture.variances[chosen]).astype(np.float32)
        return means + deviations * rng.standard_normal(means.shape, np.float32)

    @property
    def density_width(self) -> int:
        """All features."""
        return int(next(iter(self.mixtures_.values())).means.shape[1])

    def log_density(self, features: Array, shrinkage: Shrinkage = SHRINKAGE) -> Array:
        """Logarithm of each class's density at each row, (n, k)."""
        kept, sizes = self.arrays(), [len(mixture.weights) for mixture in self.mixtures_.values()]
        variances = shrinkage.variances(kept["variances"])
        parts = diagonal_log_density(features, kept["means"], variances)
        weighted = parts + np.log(kept["weights"].astype(np.float64))
        of_class = np.split(weighted, np.cumsum(sizes)[:-1], axis=1)
        return np.stack([logsumexp(part) for part in of_class], axis=1)

    def arrays(self) -> dict[str, Array]:
        """Weights, means and variances of all parts."""
        mixtures = list(self.mixtures_.values())
        if not mixtures:
            return {}
        return {
            "weights": np.concatenate([mixture.weights for mixture in mixtures]),
            "means": np.concatenate([mixture.means for mixture in mixtures]),
            "variances": np.concatenate([mixture.variances for mixture in mixtures]),
        }

    def state(self) -> dict[str, Any]:
        """What a file keeps."""
        kept = {label: asdict(mixture) for label, mixture in self.mixtures_.items()}
        return {"parts": self.parts, "regularisation": self.regularisation, "mixtures": kept}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> MixtureMemory:
        """The memory of which a file kept that."""
        memory = cls(state["parts"], regularisation=state["regularisation"])
        memory.mixtures_ = {label: Mixture(**kept) for label, kept in state["mixtures"].items()}
        return memory

    def components(self) -> list[Component]:
        """Means, variances and weights."""
        if not self.mixtures_:
            return []
        kept = self.arrays()
        means, variances, weights = _cost(self.density_width, len(kept["weights"]))
        return [means, replace(variances, bytes=kept["variances"].nbytes), weights]

    def cost(
        self, dim: int, classes: int, tasks: int = 1, samples: int | None = None
    ) -> list[Component]:
        """What it will cost, if every class has samples enough for all parts."""
        return _cost(dim, classes * self.parts)


def _cost(dim: int, parts: int) -> list[Component]:
    """Of so many diagonal Gaussians; the paper counts no weights."""
    return [
        component("means", parts * dim),
        component("variances", parts * dim),
        component("weights", 0, parts),
    ]
