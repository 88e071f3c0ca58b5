"""Heads that need no gradient steps: nearest mean, ridge, streaming LDA."""

from __future__ import annotations

import torch
from torch import Tensor

from frugalvae.accounting import Component, component, triangle
from frugalvae.errors import check_number
from frugalvae.moments import merge
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

    def meet(self, task: Task) -> None:
        """Any task will do, and samples are all that it needs of one."""

    def learn(self, task: Task, replay: Replay | None) -> None:
        """Keep the mean of each new class."""
        self.means_ |= {label: task.of(label).mean(dim=0) for label in task.classes}

    def update(self, task: Task, count: int, replay: Replay | None) -> None:
        """Move the mean to that of all samples."""
        (label,) = task.classes
        self.means_[label], _ = merge(self.means_[label], count, task.features)

    def forget(self, label: int) -> list[str]:
        """Nothing remains."""
        del self.means_[label]
        return []

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

    def meet(self, task: Task) -> None:
        """Any task will do, and samples are all that it needs of one."""

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

    def update(self, task: Task, count: int, replay: Replay) -> None:
        """Solve for all classes anew."""
        self.learn(task, replay)

    def forget(self, label: int) -> list[str]:
        """Drop the class's weights."""
        if label not in self.classes_:
            return []
        keep = [column for column, known in enumerate(self.classes_) if known != label]
        self.weights_, self.bias_ = self.weights_[:, keep].contiguous(), self.bias_[keep]
        self.classes_ = [known for known in self.classes_ if known != label]
        return ["the head's other weights were fitted on replay of it beside the others"]

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

    def meet(self, task: Task) -> None:
        """Any task will do, and samples are all that it needs of one."""

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

    def update(self, task: Task, count: int, replay: Replay | None) -> None:
        """Exactly what learning old and new samples together would have given."""
        (label,) = task.classes
        mean, rows = merge(self.means_[label].double(), count, task.features.double())
        self.means_[label] = mean.float()
        assert self.scatter_ is not None
        self.scatter_ = self.scatter_ + rows.T @ rows
        self.count_ += len(task.features)
        self._rule = None

    def forget(self, label: int) -> list[str]:
        """Drop the class's mean."""
        del self.means_[label]
        self._rule = None
        return ["the head's shared covariance still contains its samples' scatter"]

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
