"""Heads that need no gradient steps: nearest mean, ridge, streaming LDA, RanPAC."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from frugalvae.accounting import Component, component, triangle
from frugalvae.errors import InputError, check_number
from frugalvae.symmetric import add_ridge, pack
from frugalvae.tasks import Replay, Task


class NearestMeanHead:
    """The class whose mean is nearest. Takes means from the task itself: no replay.

    >>> head = NearestMeanHead()
    >>> task = Task(torch.tensor([[0.0], [10.0]]), torch.tensor([0, 1]))
    >>> head.learn(task, None)
    >>> head.logits(torch.tensor([[7.0]])).argmax()
    tensor(1)
    """

    def __init__(self) -> None:
        self.means_: dict[int, Tensor] = {}

    @property
    def classes(self) -> list[int]:
        """The classes known so far."""
        return list(self.means_)

    @property
    def needs_every_task(self) -> bool:
        """It keeps sums of real features."""
        return True

    def check(self, task: Task) -> None:
        """Any task will do."""

    def learn(self, task: Task, replay: Replay | None) -> None:
        """Keep the mean of each new class."""
        self.means_ |= {label: task.of(label).mean(dim=0) for label in task.classes}

    def logits(self, features: Tensor) -> Tensor:
        """Minus half the squared distance."""
        means = torch.stack(list(self.means_.values())).to(features)
        return -0.5 * torch.cdist(features, means).square()

    def tensors(self) -> dict[str, Tensor]:
        """One vector a class."""
        return {"means": torch.stack(list(self.means_.values()))}

    def components(self) -> list[Component]:
        """One vector a class."""
        return [component("head: means", self.tensors()["means"].numel())]


class RidgeHead:
    """Least squares on one-hot targets with a quadratic penalty, fitted on replay.

    ``penalty`` is relative to the mean variance of the features, so that it means
    the same whatever their scale. ``scale`` turns the fitted targets, which lie
    between 0 and 1, into logits.
    """

    def __init__(self, *, samples: int = 512, penalty: float = 1e-2, scale: float = 20.0) -> None:
        check_number("samples", samples, 1, whole=True)
        check_number("penalty", penalty, 1e-12)
        check_number("scale", scale, 1e-12)
        self.samples = samples
        self.penalty = penalty
        self.scale = scale
        self.classes_: list[int] = []

    @property
    def classes(self) -> list[int]:
        """The classes known so far."""
        return self.classes_

    @property
    def needs_every_task(self) -> bool:
        """It is fitted anew on replay."""
        return False

    def check(self, task: Task) -> None:
        """Any task will do."""

    def learn(self, task: Task, replay: Replay) -> None:
        """Solve for all classes anew."""
        self.classes_ = list(replay.classes)
        x, y = replay.draw(self.samples)
        targets = torch.nn.functional.one_hot(y, len(self.classes_)).double()
        x = x.double()
        centre, prior = x.mean(dim=0), targets.mean(dim=0)
        centred = x - centre
        gram = add_ridge(centred.T @ centred, self.penalty)
        weights = torch.linalg.solve(gram, centred.T @ (targets - prior))
        self.weights_ = weights.float().contiguous()
        self.bias_ = (prior - centre @ weights).float()

    def logits(self, features: Tensor) -> Tensor:
        """The fitted targets, scaled."""
        targets: Tensor = features @ self.weights_.to(features) + self.bias_.to(features)
        return self.scale * targets

    def tensors(self) -> dict[str, Tensor]:
        """Weights and biases."""
        return {"weights": self.weights_, "bias": self.bias_}

    def components(self) -> list[Component]:
        """The paper counts what is kept for replay, not the classifier."""
        return [
            component(f"head: {name}", 0, kept.numel()) for name, kept in self.tensors().items()
        ]


class StreamingLDAHead:
    """Bayes rule with one shared covariance, kept up to date sample by sample; no replay.

    Learning task by task gives exactly what learning everything at once gives.

    Parameters
    ----------
    shrinkage
        Added to the diagonal of the covariance, as a part of its mean entry.

    References
    ----------
    Hayes and Kanan, "Lifelong Machine Learning with Deep Streaming Linear
    Discriminant Analysis", 2020.
    """

    def __init__(self, *, shrinkage: float = 0.05) -> None:
        check_number("shrinkage", shrinkage, 0)
        self.shrinkage = shrinkage
        self.means_: dict[int, Tensor] = {}
        self.scatter_: Tensor | None = None
        self.count_ = 0
        self._rule: tuple[Tensor, Tensor] | None = None  # derived; never stored

    @property
    def classes(self) -> list[int]:
        """The classes known so far."""
        return list(self.means_)

    @property
    def needs_every_task(self) -> bool:
        """It keeps sums of real features."""
        return True

    def check(self, task: Task) -> None:
        """Any task will do."""

    def learn(self, task: Task, replay: Replay | None) -> None:
        """Add the task's means and scatter."""
        for label in task.classes:
            x = task.of(label).double()
            mean = x.mean(dim=0)
            self.means_[label] = mean.float()
            centred = x - mean
            scatter = centred.T @ centred
            self.scatter_ = scatter if self.scatter_ is None else self.scatter_ + scatter
            self.count_ += len(x)
        self._rule = None

    def logits(self, features: Tensor) -> Tensor:
        """Log densities up to what all classes share."""
        if self._rule is None:
            self._rule = self._derive_rule()
        weights, bias = self._rule
        return features @ weights.to(features) + bias.to(features)

    def _derive_rule(self) -> tuple[Tensor, Tensor]:
        assert self.scatter_ is not None
        means = torch.stack(list(self.means_.values())).double()  # (k, d)
        covariance = self.scatter_ / self.count_
        shrunk = add_ridge(covariance, self.shrinkage)
        weights = torch.linalg.solve(shrunk, means.T)  # (d, k)
        bias = -0.5 * (means * weights.T).sum(dim=1)
        return weights, bias

    def tensors(self) -> dict[str, Tensor]:
        """Means, scatter and how many samples it sums over."""
        assert self.scatter_ is not None
        return {
            "means": torch.stack(list(self.means_.values())),
            "scatter": pack(self.scatter_),
            "count": torch.tensor([self.count_], dtype=torch.float64),
        }

    def components(self) -> list[Component]:
        """Means, and a symmetric matrix of which half is kept."""
        dim = len(next(iter(self.means_.values())))
        return [
            component("head: means", len(self.means_) * dim),
            component("head: scatter", dim**2, triangle(dim) + 1, width=8),
        ]


class RanPACHead:
    """Ridge regression on many random ReLU features, from running sums; no replay.

    Parameters
    ----------
    width
        Number of random features.
    penalties
        Tried on a fifth of the newest task's samples; the best is used.

    References
    ----------
    McDonnell et al., "RanPAC: Random Projections and Pre-trained Models for
    Continual Learning", 2023.
    """

    exact = ("gram_", "targets_")  # sums: never rounded to float16 in a file

    def __init__(
        self,
        *,
        width: int = 5000,
        penalties: Sequence[float] = (1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7),
        scale: float = 20.0,
    ) -> None:
        check_number("width", width, 1, whole=True)
        check_number("scale", scale, 1e-12)
        if isinstance(penalties, str) or not penalties:
            raise InputError(f"penalties is {penalties!r}; expected numbers, such as (0.1, 1, 10)")
        for penalty in penalties:
            check_number("penalties", penalty, 1e-12)
        self.width = width
        self.penalties = penalties
        self.scale = scale
        self.classes_: list[int] = []
        self._projection: Tensor | None = None  # derived, like the weights; never stored
        self._weights: Tensor | None = None
        self._pending: tuple[Tensor, Tensor] | None = None  # until a penalty is chosen on them

    @property
    def classes(self) -> list[int]:
        """The classes known so far."""
        return self.classes_

    @property
    def needs_every_task(self) -> bool:
        """It keeps sums of real features."""
        return True

    def check(self, task: Task) -> None:
        """Any task will do."""

    def learn(self, task: Task, replay: Replay) -> None:
        """Add the task to the sums, but for a fifth, on which a penalty can be chosen."""
        if not self.classes_:
            rng = replay.rng
            self.seed_ = int(torch.randint(2**31 - 1, (), generator=rng, device=rng.device))
            self.gram_ = torch.zeros(self.width, self.width, device=rng.device)
            self.targets_ = torch.zeros(self.width, 0, device=rng.device)
        self._add_pending()
        new = task.classes
        self.classes_ = self.classes_ + new
        grown = self.targets_.new_zeros(self.width, len(new))
        self.targets_ = torch.cat([self.targets_, grown], dim=1)
        column = {label: position for position, label in enumerate(self.classes_)}
        positions = torch.tensor([column[int(label)] for label in task.labels])
        hidden = self._hidden(task.features)
        one_hot = torch.nn.functional.one_hot(positions, len(self.classes_)).to(hidden)

        order = torch.randperm(len(hidden), generator=replay.rng, device=replay.rng.device)
        held_out, fitted = order[: len(order) // 5], order[len(order) // 5 :]
        self._add(hidden[fitted], one_hot[fitted])
        self._pending = hidden[held_out], one_hot[held_out]

    def _add(self, hidden: Tensor, one_hot: Tensor) -> None:
        self.gram_ += hidden.T @ hidden
        self.targets_ += hidden.T @ one_hot

    def _add_pending(self) -> None:
        """Samples on which no penalty needs to be chosen any more."""
        if self._pending is not None:
            self._add(*self._pending)
            self._pending = None

    def _settle(self) -> Tensor:
        """Choose a penalty and solve, when that is first needed: it takes far the longest."""
        if self._pending is not None:
            self.penalty_ = self._best_penalty(*self._pending)
            self._add_pending()
            self._weights = None
        while self._weights is None:
            check_number("penalty", self.penalty_, 1e-12, 1e38)  # or no penalty would ever do
            self._weights = self._solve(self.penalty_)
            self.penalty_ *= 10 if self._weights is None else 1
        return self._weights

    def _best_penalty(self, hidden: Tensor, one_hot: Tensor) -> float:
        """The penalty with the smallest error on samples that are not in the sums."""
        if not len(hidden):
            return self.penalties[len(self.penalties) // 2]
        errors = {}
        for penalty in self.penalties:
            weights = self._solve(penalty)
            if weights is not None:
                errors[penalty] = float((hidden @ weights - one_hot).square().mean())
        return min(errors, key=errors.__getitem__, default=max(self.penalties))

    def _solve(self, penalty: float) -> Tensor | None:
        """Weights for a penalty; none if it drowns in the Gram matrix's rounding."""
        identity = torch.eye(self.width, device=self.gram_.device)
        factor, failed = torch.linalg.cholesky_ex(self.gram_ + penalty * identity)
        return None if failed else torch.cholesky_solve(self.targets_, factor)

    def _hidden(self, features: Tensor) -> Tensor:
        if self._projection is None:  # drawn on the CPU: the same wherever it is used
            rng = torch.Generator().manual_seed(self.seed_)
            drawn = torch.empty(features.shape[1], self.width).normal_(generator=rng)
            self._projection = drawn.to(features.device)
        return (features @ self._projection.to(features)).relu()

    def logits(self, features: Tensor) -> Tensor:
        """The fitted targets, scaled."""
        weights = self._settle()
        return self.scale * (self._hidden(features) @ weights.to(features))

    def tensors(self) -> dict[str, Tensor]:
        """The two sums; the projection comes back from its seed, the weights from the sums."""
        self._settle()
        again = torch.tensor([self.seed_, self.penalty_], dtype=torch.float64)
        return {"gram": pack(self.gram_), "targets": self.targets_, "seed and penalty": again}

    def components(self) -> list[Component]:
        """A symmetric matrix of which half is kept, and one column a class."""
        return [
            component("head: gram", self.width**2, triangle(self.width)),
            component("head: targets", self.targets_.numel()),
            component("head: seed and penalty", 0, 2, width=8),
        ]
