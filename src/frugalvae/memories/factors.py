"""One covariance for all classes, and the directions in which each class differs from it.

The covariance of a class is W + F F^T: W is that of all samples around their class means, F a
few directions in which the class spreads more than W says. Both are found in closed form. It is
what a variational autoencoder becomes when its decoder is linear: probabilistic PCA by class.
"""

from __future__ import annotations

import copy
import warnings

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from frugalvae import accounting
from frugalvae.accounting import Component
from frugalvae.errors import check_choice, check_number
from frugalvae.memories.densities import SHRINKAGE, Gaussians, Shrinkage, Whitener
from frugalvae.memories.mixing import leading
from frugalvae.moments import merge
from frugalvae.normalise import signed_root, stack
from frugalvae.symmetric import pack, square_root
from frugalvae.tasks import Task

RIDGE = 0.1  # as a part of the mean variance, where directions of classes are looked for


class FactorMemory:
    """Means of classes, one covariance for all, and leading directions of each class.

    Nothing has to be known beforehand, neither classes nor their number. The shared covariance
    is one of sums: it is exactly what all samples together would give. As classes come, each
    gets as many directions as the budget has room for, and the least of the older ones' are
    dropped. Where not even the shared covariance of all features fits, features are rotated,
    by the same rotation everywhere, and only the first coordinates have a covariance: fewer as
    more classes come. Dropping coordinates of a Gaussian leaves the exact Gaussian of the others.
    The dropped ones count as independent and equally wide, the less the more samples there were.

    Parameters
    ----------
    budget
        How many numbers to keep; by default half a million and 390 for each feature, which
        is 0.7 million for 512 features and one million for 1280, and from 200 classes on three
        times the features for each more. Means are kept whatever they take.
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
    rank_
        How many coordinates have a covariance.
    scatter_, rest_, count_
        Sum of outer products of so many samples around their class means, (rank, rank); and
        the sum of squares of their other coordinates.
    factors_
        Directions of each class, (m, rank), each as long as the standard deviation it adds.
    spread_
        The variance of each class beside its directions, in all features together.

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

    usual_head = "bayes"

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
        self.means_: dict[int, Tensor] = {}
        self.rank_ = 0
        self.scatter_ = torch.empty(0, 0, dtype=torch.float64)
        self.rest_ = 0.0
        self.count_ = 0
        self.factors_: dict[int, Tensor] = {}
        self.spread_: dict[int, Tensor] = {}
        self._densities: tuple[Shrinkage, Gaussians] | None = None  # derived, as is the next
        self._root: Tensor | None = None

    def __deepcopy__(self, memo: dict[int, object]) -> FactorMemory:
        """A copy to learn on. Tensors are replaced and never changed: they may be shared."""
        twin = copy.copy(self)
        for name in ("means_", "factors_", "spread_"):
            setattr(twin, name, dict(getattr(self, name)))
        return twin

    @property
    def classes(self) -> list[int]:
        """The classes known so far."""
        return list(self.means_)

    def learn(self, task: Task, rng: torch.Generator) -> None:
        """Means, the shared covariance, and then the directions of each new class."""
        if not self.means_:
            self.rooted_ = bool((task.features >= 0).all()) if self.root is None else self.root
            self.rank_ = task.features.shape[1]
            self.scatter_ = task.features.new_zeros(self.rank_, self.rank_, dtype=torch.float64)
        rows = self.mapped(task.features)
        for label in task.classes:
            own = task.labels == label
            self.means_[label] = rows[own].mean(dim=0)
            rows[own] -= self.means_[label]
        coordinates = self._pool(rows, len(rows))
        whitener = Whitener.of(self.scatter_ / self.count_, RIDGE)
        for label in task.classes:
            own = task.labels == label
            values, vectors = _spectrum(coordinates[own] @ whitener.matrix)
            self.spread_[label] = rows[own].square().sum() / max(int(own.sum()) - 1, 1)
            self._keep_directions(label, values, vectors, whitener)
        self._keep_within_budget()

    def _pool(self, rows: Tensor, count: int) -> Tensor:
        """Add rows to the shared scatter; their coordinates, as many as there is room for."""
        most = accounting.factor_rank(self._limit, self._dim, len(self.means_))
        self._lower_rank(min(most, self.rank_))
        coordinates = self._coordinates(rows.double())
        self.scatter_ = self.scatter_ + coordinates.T @ coordinates
        self.rest_ += max(0.0, float(rows.double().square().sum() - coordinates.square().sum()))
        self.count_ += count
        self._densities = self._root = None
        return coordinates

    def _lower_rank(self, rank: int) -> None:
        """Of all that has coordinates, the first ones."""
        if rank == self.rank_:
            return
        if self.rank_ == self._dim:  # so far they were the features themselves
            turn = leading(self._dim, rank, self.scatter_)
        else:
            turn = torch.eye(self.rank_, rank).to(self.scatter_)
        assert turn is not None
        lower = turn.T @ self.scatter_ @ turn
        self.rest_ += float(self.scatter_.trace() - lower.trace())
        self.scatter_, self.rank_ = (lower + lower.T) / 2, rank
        for label, factors in self.factors_.items():
            self._replace(label, factors @ turn.to(factors))

    def _replace(self, label: int, factors: Tensor) -> None:
        """Keep other directions of a class; what variance they lack, it has beside them."""
        lost = self.factors_[label].square().sum() - factors.square().sum()
        self.spread_[label] = (self.spread_[label] + lost).clamp(min=0)
        self.factors_[label] = factors

    def _keep_directions(
        self, label: int, values: Tensor, vectors: Tensor, whitener: Whitener
    ) -> None:
        """Of all directions in the order of their variances the leading ones above one."""
        most = min(self.directions, int((values > 1).sum()))
        values, vectors = values[:most], vectors[:, :most]
        factors = (vectors * (values - 1).sqrt()).T @ whitener.back
        self.factors_[label] = factors[:0].float()
        self._replace(label, factors.float().contiguous())

    def _keep_within_budget(self) -> None:
        """Drop last directions; warn where means alone are too many."""
        room = accounting.factor_directions(self._limit, self._dim, len(self.means_), self.rank_)
        if sum(map(len, self.factors_.values())) > room:
            self._drop_directions(room)
        stored = sum(part.stored for part in self.components())
        if stored > self._limit:
            warnings.warn(
                f"{len(self.means_)} classes of {self._dim} features take {stored:,} numbers "
                f"without any direction of their own: more than the budget of {self._limit:,}",
                stacklevel=2,
            )

    def _drop_directions(self, room: int) -> None:
        """Keep so many: the first ones of each class, and the longest of those that come next."""
        sizes = torch.tensor([len(factors) for factors in self.factors_.values()])
        each = torch.arange(1, int(sizes.max()) + 1)
        taken = sizes.clamp(max=each[:, None]).sum(dim=1)  # if each class has at most so many
        first = int((taken <= room).sum())
        left = room - int(sizes.clamp(max=first).sum())
        last = {y: float(f[first].norm()) for y, f in self.factors_.items() if len(f) > first}
        more = set(sorted(last, key=lambda label: -last[label])[:left])
        for label, factors in self.factors_.items():
            if len(factors) > first:
                self._replace(label, factors[: first + (label in more)].clone())

    @property
    def _limit(self) -> int:
        if self.budget is None:
            return accounting.usual_budget(self._dim, len(self.means_))
        return self.budget

    @property
    def _dim(self) -> int:
        return len(next(iter(self.means_.values())))

    def update(self, task: Task, count: int, rng: torch.Generator) -> None:
        """Mean and shared covariance come out exactly; directions from old ones and samples."""
        (label,) = task.classes
        features = self.mapped(task.features)
        self.means_[label], rows = merge(self.means_[label], count, features)
        new = self._pool(rows, len(features))
        whitener, total = Whitener.of(self.scatter_ / self.count_, RIDGE), count + len(features)
        old, new = self.factors_[label].double() @ whitener.matrix, new @ whitener.matrix
        spread = self._scale(label).double() * torch.eye(self.rank_).to(old) + old.T @ old
        values, vectors = torch.linalg.eigh((count * spread + new.T @ new) / total)
        variance = self.spread_[label] + self.factors_[label].square().sum()
        self.spread_[label] = (count * variance + rows.square().sum()) / total
        self._keep_directions(label, values.flip(0), vectors.flip(1), whitener)
        self._keep_within_budget()

    def _scale(self, label: int) -> Tensor:
        """The variance of a class beside its directions, as a part of the shared one."""
        shared = (float(self.scatter_.trace()) + self.rest_) / self.count_
        return self.spread_[label] / (shared or 1.0)

    def forget(self, label: int) -> list[str]:
        """Drop the class's mean and directions."""
        del self.means_[label], self.factors_[label], self.spread_[label]
        self._densities = None
        return ["the covariance that all classes share still contains its samples' scatter"]

    def sample(self, label: int, count: int, rng: torch.Generator) -> Tensor:
        """Draw from the class's Gaussian; beside its coordinates all variances are alike."""
        if self._root is None:
            self._root = square_root(self.scatter_ / self.count_)
        mean, factors, scale = self.means_[label], self.factors_[label], self._scale(label).sqrt()

        def noise(width: int) -> Tensor:
            return torch.empty(count, width, device=mean.device).normal_(generator=rng)

        inside = scale * noise(self._root.shape[1]) @ self._root.T + noise(len(factors)) @ factors
        basis = leading(self._dim, self.rank_, mean)
        if basis is None:
            return self._unmapped(mean + inside)
        beside = (
            scale * noise(len(mean)) * (self.rest_ / self.count_ / (len(mean) - self.rank_)) ** 0.5
        )
        return self._unmapped(mean + beside + (inside - beside @ basis) @ basis.T)

    def mapped(self, features: Tensor) -> Tensor:
        """Features as the memory takes them: by their roots, or as they are."""
        return signed_root(features) if self.rooted_ else features.clone()

    def mapped_means(self) -> Tensor:
        """Means of classes, (k, d), exactly those of all samples."""
        return stack(self.means_)

    @property
    def density_width(self) -> int:
        """The coordinates that have a covariance."""
        return self.rank_

    def log_density(self, features: Tensor, shrinkage: Shrinkage = SHRINKAGE) -> Tensor:
        """Logarithm of each class's density at each row, (n, k), up to what all have in common.

        A class's covariance is taken as W + ``own`` F F^T: directions that were found in few
        samples stretch further than they should.
        """
        if self._densities is None or self._densities[0] != shrinkage:
            self._densities = shrinkage, self._gaussians(shrinkage)
        rows = self.mapped(features)
        inside = self._densities[1].log_density(self._coordinates(rows))
        return inside if self.rank_ == self._dim else inside - self._beside(rows, shrinkage)

    def _beside(self, rows: Tensor, shrinkage: Shrinkage) -> Tensor:
        """What coordinates without a covariance take off the logarithms, (n, k).

        They are not independent of the others, though how is not known: the more samples there
        were to know the others by, the less these count.
        """
        basis = leading(self._dim, self.rank_, rows)
        assert basis is not None
        part = min(1.0, self.rank_ / self.count_)
        means = stack(self.means_).to(rows)
        far = torch.cdist(rows - rows @ basis @ basis.T, means - means @ basis @ basis.T).square()
        level = self.rest_ / (self._dim - self.rank_)
        level += self._ridge(shrinkage) * float(self.scatter_.trace()) / self.rank_
        return part * far * (self.count_ / (level or 1.0)) / 2

    def _ridge(self, shrinkage: Shrinkage) -> float:
        return shrinkage.ridge_for(self.rank_, self.count_)

    def _gaussians(self, shrinkage: Shrinkage) -> Gaussians:
        whitener = Whitener.of(self.scatter_ / self.count_, self._ridge(shrinkage))
        own = pad_sequence(list(self.factors_.values()), batch_first=True)
        means = self._coordinates(stack(self.means_).double())
        return Gaussians.of(whitener, means, own, shrinkage.own)

    def _coordinates(self, rows: Tensor) -> Tensor:
        basis = leading(self._dim, self.rank_, rows)
        return rows if basis is None else rows @ basis

    def _unmapped(self, rows: Tensor) -> Tensor:
        """Back from roots, and without the signs that no real feature had."""
        if not self.rooted_:
            return rows
        return rows.clamp(min=0).square() if self.root is None else rows * rows.abs()

    def tensors(self) -> dict[str, Tensor]:
        """Means, spreads, directions, and the shared scatter."""
        if not self.means_:
            return {}
        return {
            "means": stack(self.means_),
            "spread": stack(self.spread_),
            "factors": torch.cat(list(self.factors_.values())),
            "scatter": pack(self.scatter_),
            "rest": torch.tensor([self.rest_, self.count_], dtype=torch.float64),
        }

    def components(self) -> list[Component]:
        """Means, the shared covariance, and directions of classes."""
        if not self.means_:
            return []
        directions = sum(len(factors) for factors in self.factors_.values())
        return accounting.factors(self._dim, len(self.means_), self.rank_, directions)


def _spectrum(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Variances of rows (n, d) around zero, the largest first, and their directions, (d, .)."""
    if len(rows) > rows.shape[1]:
        values, vectors = torch.linalg.eigh(rows.T @ rows / len(rows))
        return values.flip(0), vectors.flip(1)
    values, vectors = torch.linalg.eigh(rows @ rows.T / len(rows))
    lengths = (values * len(rows)).clamp(min=1e-12).sqrt()
    return values.flip(0), (rows.T @ vectors / lengths).flip(1)
