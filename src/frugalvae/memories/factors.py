"""One covariance for all classes, and the directions in which each class differs from it.

The covariance of a class is W + F F^T: W is that of all samples around their class means, F a
few directions in which the class spreads more than W says. Both are found in closed form. It is
what a variational autoencoder becomes when its decoder is linear: probabilistic PCA by class.
"""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from frugalvae import accounting
from frugalvae.accounting import Component
from frugalvae.errors import check_choice, check_number
from frugalvae.memories.densities import SHRINKAGE, Gaussians, Shrinkage, Whitener
from frugalvae.memories.pooled import PooledScatter
from frugalvae.moments import merge
from frugalvae.normalise import stack
from frugalvae.tasks import Task

RIDGE = 0.2  # as a part of the mean variance, where directions of classes are looked for


class FactorMemory:
    """Means of classes, one covariance for all, and leading directions of each class.

    Nothing has to be known beforehand: as classes come, each gets as many directions as the
    budget has room for, and the least of the older ones' are dropped.

    Parameters
    ----------
    budget
        How many numbers to keep; by default half a million and 390 for each feature, which
        is 0.7 million for 512 features and one million for 1280. While the shared covariance
        fits, it is kept whole and exact; then by its leading directions and a diagonal, see
        :class:`~frugalvae.memories.pooled.PooledScatter`. Means are kept whatever they take.
    directions
        The most directions of a class.
    root
        Take features by their square roots, with their signs: the spread of activations that
        are never negative grows with their size, and that of their roots does not. By default
        it depends on whether the first task has negative features.

    Attributes
    ----------
    means_
        Mean of each class.
    pooled_
        The shared scatter.
    factors_
        Directions of each class in the coordinates of ``pooled_``, (m, rank), each as long as
        the standard deviation that it adds.
    scale_
        The variance of each class beside its directions, as a part of the shared one.

    Examples
    --------
    >>> rng = torch.Generator().manual_seed(0)
    >>> x = torch.randn(200, 4, generator=rng)
    >>> x[:100, 2] *= 5
    >>> memory = FactorMemory(directions=1)
    >>> memory.learn(Task(x, torch.arange(200) // 100), rng)
    >>> memory.factors_[0].abs().argmax()
    tensor(2)
    >>> memory.log_density(torch.tensor([[0.0, 0.0, 9.0, 0.0]])).argmax()
    tensor(0)
    """

    def __init__(
        self,
        budget: int | None = None,
        *,
        directions: int = 32,
        root: bool | None = None,
    ) -> None:
        if budget is not None:
            check_number("budget", budget, 1, whole=True)
        check_number("directions", directions, 0, whole=True)
        check_choice("root", root, (True, False, None))
        self.budget = budget
        self.directions = directions
        self.root = root
        self.rooted_ = False
        self.pooled_ = PooledScatter()
        self.means_: dict[int, Tensor] = {}
        self.factors_: dict[int, Tensor] = {}
        self.scale_: dict[int, Tensor] = {}
        self._densities: tuple[Shrinkage, Gaussians] | None = None  # derived

    @property
    def classes(self) -> list[int]:
        """The classes known so far."""
        return list(self.means_)

    def learn(self, task: Task, rng: torch.Generator) -> None:
        """Means, the shared covariance, and then the directions of each new class."""
        if not self.means_:
            self.rooted_ = bool((task.features >= 0).all()) if self.root is None else self.root
        rows = self._mapped(task.features)
        for label in task.classes:
            own = task.labels == label
            self.means_[label] = rows[own].mean(dim=0)
            rows[own] -= self.means_[label]
        self._pool(rows, len(rows))
        whitener = self.pooled_.whitener(RIDGE)
        for label in task.classes:
            self._find_directions(label, rows[task.labels == label], whitener)
        self._keep_within_budget()

    def _pool(self, rows: Tensor, count: int) -> None:
        """Add to the shared scatter, and express old directions in the basis that it has then."""
        rank = accounting.factor_rank(self._limit, self._dim, len(self.means_), self.directions)
        turn = self.pooled_.add(rows, count, rank)
        if turn is not None:
            self.factors_ = {label: factor @ turn for label, factor in self.factors_.items()}
        self._densities = None

    def _find_directions(self, label: int, rows: Tensor, whitener: Whitener) -> None:
        """Where the class spreads more than all do, from what its samples are off its mean."""
        white = self.pooled_.coordinates(rows.double()) @ whitener.inside
        if len(white) <= white.shape[1]:
            values, vectors = torch.linalg.eigh(white @ white.T / len(white))
            lengths = (values * len(white)).clamp(min=1e-12).sqrt()
            vectors = white.T @ vectors / lengths
        else:
            values, vectors = torch.linalg.eigh(white.T @ white / len(white))
        variance = white.square().sum() / max(len(white) - 1, 1)
        self._keep_directions(label, values.flip(0), vectors.flip(1), variance, whitener)

    def _keep_directions(
        self, label: int, values: Tensor, vectors: Tensor, variance: Tensor, whitener: Whitener
    ) -> None:
        """Of all directions in the order of their variances the leading ones above one."""
        most = min(self.directions, int((values > 1).sum()))
        values, vectors = values[:most], vectors[:, :most]
        factors = (vectors * (values - 1).sqrt()).T @ whitener.back
        rest = (variance - values.sum()) / max(len(whitener.back) - most, 1)
        self.factors_[label] = factors.float().contiguous()
        self.scale_[label] = rest.clamp(0, 4).float()

    def _keep_within_budget(self) -> None:
        """Drop the least directions until the rest fits; warn where means alone are too many."""
        wanted = [len(factors) for factors in self.factors_.values()]
        rank = self.pooled_.rank
        most = accounting.factor_directions(self._limit, self._dim, rank, wanted)
        self.factors_ = {label: f[:most].clone() for label, f in self.factors_.items()}
        self._densities = None
        stored = sum(part.stored for part in self.components())
        if stored > self._limit:
            warnings.warn(
                f"{len(self.means_)} classes of {self._dim} features take {stored:,} numbers "
                f"without any direction of their own: more than the budget of {self._limit:,}",
                stacklevel=2,
            )

    @property
    def _limit(self) -> int:
        return accounting.usual_budget(self._dim) if self.budget is None else self.budget

    @property
    def _dim(self) -> int:
        return len(next(iter(self.means_.values())))

    def update(self, task: Task, count: int, rng: torch.Generator) -> None:
        """Mean and shared covariance come out exactly; directions from old ones and samples."""
        (label,) = task.classes
        features = self._mapped(task.features)
        self.means_[label], rows = merge(self.means_[label], count, features)
        self._pool(rows, len(features))
        whitener, total = self.pooled_.whitener(RIDGE), count + len(features)
        old = self.factors_[label].double() @ whitener.inside
        new = self.pooled_.coordinates(rows.double()) @ whitener.inside
        spread = self.scale_[label].double() * torch.eye(old.shape[1]).to(old) + old.T @ old
        values, vectors = torch.linalg.eigh((count * spread + new.T @ new) / total)
        self._keep_directions(label, values.flip(0), vectors.flip(1), values.sum(), whitener)
        self._keep_within_budget()

    def forget(self, label: int) -> list[str]:
        """Drop the class's mean and directions."""
        del self.means_[label], self.factors_[label], self.scale_[label]
        self._densities = None
        return ["the covariance that all classes share still contains its samples' scatter"]

    def sample(self, label: int, count: int, rng: torch.Generator) -> Tensor:
        """Draw from the class's Gaussian, with all of its own directions."""
        shared = self.pooled_.sample(count, rng) * self.scale_[label].sqrt()
        factors = self.factors_[label]
        noise = torch.empty(count, len(factors), device=factors.device).normal_(generator=rng)
        rows = self.means_[label] + shared + self.pooled_.features(noise @ factors)
        return self._unmapped(rows)

    def log_density(self, features: Tensor, shrinkage: Shrinkage = SHRINKAGE) -> Tensor:
        """Logarithm of each class's density at each row, (n, k): of roots, if these are taken.

        A class's covariance is taken as W + ``own`` F F^T: sure directions count in samples,
        and fewer of them in comparisons.
        """
        if self._densities is None or self._densities[0] != shrinkage:
            self._densities = shrinkage, self._gaussians(shrinkage)
        return self._densities[1].log_density(self._mapped(features))

    def _gaussians(self, shrinkage: Shrinkage) -> Gaussians:
        whitener = self.pooled_.whitener(shrinkage.ridge)
        own = torch.nn.utils.rnn.pad_sequence(list(self.factors_.values()), batch_first=True)
        factors = self.pooled_.features(own)
        return Gaussians.of(whitener, stack(self.means_), factors, shrinkage.own)

    def _mapped(self, features: Tensor) -> Tensor:
        return features.sign() * features.abs().sqrt() if self.rooted_ else features.clone()

    def _unmapped(self, rows: Tensor) -> Tensor:
        """Back from roots, and without the signs that no real feature had."""
        if not self.rooted_:
            return rows
        return rows.clamp(min=0).square() if self.root is None else rows * rows.abs()

    def tensors(self) -> dict[str, Tensor]:
        """Means, scales, directions, and the shared scatter."""
        if not self.means_:
            return {}
        own = torch.cat(list(self.factors_.values()))
        kept = {"means": stack(self.means_), "scale": stack(self.scale_), "factors": own}
        return kept | self.pooled_.tensors()

    def components(self) -> list[Component]:
        """Means, the shared covariance, and directions of classes."""
        if not self.means_:
            return []
        directions = sum(len(factor) for factor in self.factors_.values())
        return accounting.factors(self._dim, len(self.means_), self.pooled_.rank, directions)
