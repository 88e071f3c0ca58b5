"""One Gaussian per class, with three kinds of covariance."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

from frugalvae import accounting
from frugalvae.accounting import Component
from frugalvae.errors import check_choice
from frugalvae.memories.densities import (
    SHRINKAGE,
    Gaussians,
    Shrinkage,
    Whitener,
    diagonal_log_density,
)
from frugalvae.moments import merge
from frugalvae.normalise import stack
from frugalvae.symmetric import pack, square_root, unpack
from frugalvae.tasks import Task

Covariance = Literal["diagonal", "shared", "full"]


class GaussianMemory:
    """Mean of each class, and a covariance: its own diagonal, its own in full, or one for all.

    The shared covariance is that of all samples around their class means. Its
    sums are kept, so that learning task by task gives what learning everything
    at once would give.

    Examples
    --------
    >>> rng = torch.Generator().manual_seed(0)
    >>> memory = GaussianMemory("diagonal")
    >>> memory.learn(Task(torch.tensor([[0.0, 1.0], [2.0, 1.0]]), torch.tensor([0, 0])), rng)
    >>> memory.means_[0]
    tensor([1., 1.])
    >>> memory.sample(0, 2, rng)[:, 1]
    tensor([1., 1.])
    """

    exact = ("covariances_",)  # a full one that is rounded to float16 may not be one any more

    def __init__(self, covariance: Covariance = "diagonal") -> None:
        check_choice("covariance", covariance, get_args(Covariance))
        self.covariance = covariance
        self.means_: dict[int, Tensor] = {}
        self.covariances_: dict[int, Tensor] = {}  # a vector, or the packed triangle
        self.pooled_: Tensor | None = None  # sum of outer products around class means
        self.count_ = 0
        self._factors: dict[int | None, Tensor] = {}  # derived; never stored

    @property
    def classes(self) -> list[int]:
        """The classes known so far."""
        return list(self.means_)

    def learn(self, task: Task, rng: torch.Generator) -> None:
        """Take mean and covariance of each new class."""
        for label in task.classes:
            x = task.of(label)
            self.means_[label] = x.mean(dim=0)
            centred = x - self.means_[label]
            if self.covariance == "diagonal":
                self.covariances_[label] = centred.square().mean(dim=0)
            elif self.covariance == "full":
                self.covariances_[label] = pack(centred.T @ centred / len(x))
            else:
                self._pool(centred.double())

    def _pool(self, centred: Tensor) -> None:
        self._add_scatter(centred.T @ centred, len(centred))

    def _add_scatter(self, scatter: Tensor, count: int) -> None:
        self.pooled_ = scatter if self.pooled_ is None else self.pooled_ + scatter
        self.count_ += count
        self._factors.clear()

    def update(self, task: Task, count: int, rng: torch.Generator) -> None:
        """Exactly what learning old and new samples together would have given."""
        (label,) = task.classes
        self.means_[label], rows = merge(self.means_[label], count, task.features)
        total = count + len(task.features)
        if self.covariance == "shared":
            self._add_scatter(rows.double().T @ rows.double(), len(task.features))
            return
        full = self.covariance == "full"
        added = pack(rows.T @ rows) if full else rows.square().sum(dim=0)
        self.covariances_[label] = (count * self.covariances_[label] + added) / total
        self._factors.pop(label, None)

    def forget(self, label: int) -> list[str]:
        """Nothing remains, but in a covariance that all classes share."""
        del self.means_[label]
        self.covariances_.pop(label, None)
        self._factors.pop(label, None)
        if self.covariance == "shared":
            return ["the covariance that all classes share still contains its samples' scatter"]
        return []

    def sample(self, label: int, count: int, rng: torch.Generator) -> Tensor:
        """Draw from the class's Gaussian."""
        mean = self.means_[label]
        if self.covariance == "diagonal":
            noise = torch.empty(count, len(mean), device=mean.device).normal_(generator=rng)
            return mean + noise * self.covariances_[label].sqrt()
        factor = self._factor(label if self.covariance == "full" else None)
        noise = torch.empty(count, factor.shape[1], device=mean.device).normal_(generator=rng)
        return mean + noise @ factor.T

    def _factor(self, label: int | None) -> Tensor:
        """F with F F^T the covariance of the class, or the shared one; kept for the next call."""
        if label not in self._factors:
            if label is not None:
                covariance = unpack(self.covariances_[label])
            else:
                assert self.pooled_ is not None
                covariance = self.pooled_ / self.count_
            self._factors[label] = square_root(covariance)
        return self._factors[label]

    @property
    def density_width(self) -> int:
        """All features."""
        return len(next(iter(self.means_.values())))

    def log_density(self, features: Tensor, shrinkage: Shrinkage = SHRINKAGE) -> Tensor:
        """Logarithm of each class's density at each row, (n, k)."""
        means = stack(self.means_)
        if self.covariance == "diagonal":
            variances = shrinkage.variances(stack(self.covariances_))
            return diagonal_log_density(features, means, variances)
        if self.covariance == "shared":
            assert self.pooled_ is not None
            ridge = shrinkage.ridge_for(self.density_width, self.count_)
            whitener = Whitener.of(self.pooled_ / self.count_, ridge)
            return Gaussians.of(whitener, means, means[:, None] * 0).log_density(features)
        return self._full_log_density(features, shrinkage)

    def _full_log_density(self, features: Tensor, shrinkage: Shrinkage) -> Tensor:
        """One covariance after the other: all of them at once would take too much room."""
        shared = torch.zeros_like(next(iter(self.covariances_.values())), dtype=torch.float64)
        for triangle in self.covariances_.values():
            shared += triangle / len(self.covariances_)
        ridge = shrinkage.plain_ridge * (float(unpack(shared).diagonal().mean()) or 1.0)
        columns = []
        for label, mean in self.means_.items():
            own = shrinkage.own * self.covariances_[label].double()
            mixed = unpack(own + (1 - shrinkage.own) * shared)
            mixed = mixed + ridge * torch.eye(len(mixed)).to(mixed)
            one = Gaussians.of(Whitener.of(mixed, 0.0), mean[None], mean[None, None] * 0)
            columns.append(one.log_density(features))
        return torch.cat(columns, dim=1)

    def tensors(self) -> dict[str, Tensor]:
        """Means, and covariances as triangles."""
        kept = {"means": stack(self.means_)}
        if self.covariance == "shared" and self.pooled_ is not None:
            return kept | {
                "pooled": pack(self.pooled_),
                "count": torch.tensor([self.count_], dtype=torch.float64),
            }
        return kept | {"covariances": stack(self.covariances_)}

    def components(self) -> list[Component]:
        """Means and covariances."""
        if not self.means_:
            return []
        return accounting.gaussian(self.covariance, self.density_width, len(self.means_))
