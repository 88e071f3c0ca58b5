"""Normalisation of features before they reach the VAE: per class, or for all classes alike.

The paper counts four numbers per class and feature, which suggests min-max and then z-score. A
z-score undoes any affine map before it, so it alone gives the same from half the statistics.
"""

from __future__ import annotations

import torch
from torch import Tensor

from frugalvae.maths.arrays import Array
from frugalvae.parts.protocols import Component, component
from frugalvae.parts.tensors import TensorTask, stack, to_array


class ClasswiseNormaliser:
    """Zero mean and unit variance for each class separately.

    A dimension that is constant in a class becomes zero and is restored to exactly that
    constant. In a class of one sample, every dimension is constant.

    >>> normaliser = ClasswiseNormaliser()
    >>> x = torch.tensor([[1.0, 5.0], [3.0, 5.0]])
    >>> normaliser.learn(TensorTask(x, torch.tensor([7, 7])))
    >>> normaliser.normalise(7, x)
    tensor([[-1.,  0.],
            [ 1.,  0.]])
    >>> normaliser.restore(7, torch.zeros(1, 2))
    tensor([[2., 5.]])
    """

    holds_tensors = True

    def __init__(self) -> None:
        self.mean_: dict[int, Tensor] = {}
        self.std_: dict[int, Tensor] = {}

    def learn(self, task: TensorTask) -> None:
        """Take mean and standard deviation of each class."""
        for label in task.classes:
            self.mean_[label], self.std_[label] = mean_and_std(task.of(label))

    def normalise(self, label: int, features: Tensor) -> Tensor:
        """Subtract the mean, divide by the standard deviation."""
        std = self.std_[label]
        return torch.where(std > 0, (features - self.mean_[label]) / std, 0.0)

    def restore(self, label: int, normalised: Tensor) -> Tensor:
        """Multiply by the standard deviation, add the mean."""
        return normalised * self.std_[label] + self.mean_[label]

    def forget(self, label: int) -> list[str]:
        """Drop the class's statistics; nothing remains."""
        del self.mean_[label], self.std_[label]
        return []

    def arrays(self) -> dict[str, Array]:
        """Two vectors per class."""
        return {
            "normaliser.mean": to_array(stack(self.mean_)),
            "normaliser.std": to_array(stack(self.std_)),
        }


class GlobalNormaliser:
    """Zero mean and unit variance over the first task, the same map for every class.

    This is what "no class-wise normalisation" means: the likelihood still assumes unit
    variance, whatever the scale of the features. The first task decides the map for good,
    since old data is gone when new classes arrive.

    >>> normaliser = GlobalNormaliser()
    >>> normaliser.learn(TensorTask(torch.tensor([[1.0], [3.0]]), torch.tensor([0, 1])))
    >>> normaliser.learn(TensorTask(torch.tensor([[9.0]]), torch.tensor([2])))
    >>> normaliser.normalise(2, torch.tensor([[9.0]]))
    tensor([[7.]])
    """

    holds_tensors = True

    def __init__(self) -> None:
        self.mean_ = torch.empty(0)  # (d,)
        self.std_ = torch.empty(0)  # (d,)

    def learn(self, task: TensorTask) -> None:
        """Take mean and standard deviation of the first task."""
        if not len(self.mean_):
            self.mean_, std = mean_and_std(task.features)
            self.std_ = torch.where(std > 0, std, 1.0)

    def normalise(self, label: int, features: Tensor) -> Tensor:
        """Subtract the mean, divide by the standard deviation."""
        return (features - self.mean_) / self.std_

    def restore(self, label: int, normalised: Tensor) -> Tensor:
        """Multiply by the standard deviation, add the mean."""
        return normalised * self.std_ + self.mean_

    def forget(self, label: int) -> list[str]:
        """Keep the map: later classes depend on it."""
        return ["all classes are normalised by the first task's samples, which may include its own"]

    def arrays(self) -> dict[str, Array]:
        """Two vectors."""
        return {"normaliser.mean": to_array(self.mean_), "normaliser.std": to_array(self.std_)}


Normaliser = ClasswiseNormaliser | GlobalNormaliser


def mean_and_std(features: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of each column, (d,) each; exact for constant columns."""
    std = features.std(dim=0, correction=0)
    varies = std > 1e-6 * features.abs().amax(dim=0)  # anything less is rounding
    mean = torch.where(varies, features.mean(dim=0), features[0])
    return mean, torch.where(varies, std, 0.0)


def normalisation(dim: int, classes: int, classwise: bool) -> Component:
    """Mean and deviation of each class, where the paper counts min and max too; or of all."""
    if classwise:
        return component("normalisation", classes * 4 * dim, classes * 2 * dim)
    return component("normalisation", 0, 2 * dim)
