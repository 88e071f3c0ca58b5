"""A mixture of diagonal Gaussians per class, as STAR-Prompt keeps it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from frugalvae import accounting
from frugalvae.accounting import Component
from frugalvae.errors import check_number
from frugalvae.memories.again import relearn
from frugalvae.memories.densities import SHRINKAGE, Shrinkage, diagonal_log_density
from frugalvae.progress import track
from frugalvae.tasks import Task


@dataclass(frozen=True)
class Mixture:
    """Weights (p,), means (p, d) and variances (p, d) of one class."""

    weights: Tensor
    means: Tensor
    variances: Tensor


class MixtureMemory:
    """Up to ``parts`` diagonal Gaussians per class, fitted by expectation-maximisation.

    A class with fewer distinct samples than parts gets as many parts as it has.

    Examples
    --------
    >>> rng = torch.Generator().manual_seed(0)
    >>> memory = MixtureMemory(parts=2)
    >>> x = torch.tensor([[0.0], [0.1], [9.0], [9.1]])
    >>> memory.learn(Task(x, torch.zeros(4, dtype=torch.long)), rng)
    >>> sorted(round(float(mean), 2) for mean in memory.mixtures_[0].means)
    [0.05, 9.05]
    """

    def __init__(self, parts: int = 5, *, regularisation: float = 1e-6) -> None:
        check_number("parts", parts, 1, whole=True)
        check_number("regularisation", regularisation, 0)
        self.parts = parts
        self.regularisation = regularisation
        self.mixtures_: dict[int, Mixture] = {}

    @property
    def classes(self) -> list[int]:
        """The classes known so far."""
        return list(self.mixtures_)

    def learn(self, task: Task, rng: torch.Generator) -> None:
        """Fit the mixture of each new class."""
        for label in track(task.classes, "fitting mixtures"):
            seed = int(torch.randint(2**31 - 1, (), generator=rng, device=rng.device))
            self.mixtures_[label] = self._fit(task.of(label), seed)

    def _fit(self, x: Tensor, seed: int) -> Mixture:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.mixture import GaussianMixture

        parts = min(self.parts, len(np.unique(x.cpu().numpy(), axis=0)))
        if parts == 1:
            variances = x.var(dim=0, correction=0)
            return Mixture(x.new_ones(1), x.mean(dim=0)[None], variances[None])
        model = GaussianMixture(
            parts, covariance_type="diag", reg_covar=self.regularisation, random_state=seed
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(x.double().cpu().numpy())

        def tensor(array: np.ndarray) -> Tensor:
            return torch.as_tensor(array, dtype=x.dtype, device=x.device)

        return Mixture(tensor(model.weights_), tensor(model.means_), tensor(model.covariances_))

    def sample(self, label: int, count: int, rng: torch.Generator) -> Tensor:
        """Choose a part for each sample, then draw from it."""
        mixture = self.mixtures_[label]
        chosen = torch.multinomial(mixture.weights, count, replacement=True, generator=rng)
        means, deviations = mixture.means[chosen], mixture.variances[chosen].sqrt()
        return means + deviations * torch.empty_like(means).normal_(generator=rng)

    def update(self, task: Task, count: int, rng: torch.Generator) -> None:
        """Fit the class's mixture anew, on replay and new samples."""
        relearn(self, task, count, rng)

    def forget(self, label: int) -> list[str]:
        """Nothing remains."""
        del self.mixtures_[label]
        return []

    @property
    def density_width(self) -> int:
        """All features."""
        return next(iter(self.mixtures_.values())).means.shape[1]

    def log_density(self, features: Tensor, shrinkage: Shrinkage = SHRINKAGE) -> Tensor:
        """Logarithm of each class's density at each row, (n, k)."""
        kept, sizes = self.tensors(), [len(mixture.weights) for mixture in self.mixtures_.values()]
        variances = shrinkage.variances(kept["variances"])
        parts = diagonal_log_density(features, kept["means"], variances)
        weighted = parts + kept["weights"].to(parts).log()
        of_class = torch.split(weighted, sizes, dim=1)
        return torch.stack([part.logsumexp(dim=1) for part in of_class], dim=1)

    def tensors(self) -> dict[str, Tensor]:
        """Weights, means and variances of all parts."""
        mixtures = list(self.mixtures_.values())
        if not mixtures:
            return {}
        return {
            "weights": torch.cat([mixture.weights for mixture in mixtures]),
            "means": torch.cat([mixture.means for mixture in mixtures]),
            "variances": torch.cat([mixture.variances for mixture in mixtures]),
        }

    def components(self) -> list[Component]:
        """Means, variances and weights."""
        if not self.mixtures_:
            return []
        sizes = [len(mixture.weights) for mixture in self.mixtures_.values()]
        return accounting.mixture(self.density_width, sizes)
