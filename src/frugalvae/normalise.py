"""Class-wise normalisation: every class is brought to zero mean and unit variance.

The paper normalises by min-max and then by z-score. A z-score undoes whatever
affine map came before it, so the z-score alone gives the same numbers from half
the statistics.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from frugalvae.tasks import Task


class Normaliser(Protocol):
    """Maps features of a class to a common scale and back."""

    def learn(self, task: Task) -> None:
        """Take the statistics of new classes."""
        ...

    def normalise(self, label: int, features: Tensor) -> Tensor:
        """To the common scale."""
        ...

    def restore(self, label: int, features: Tensor) -> Tensor:
        """Back to the scale of the class."""
        ...

    def forget(self, label: int) -> list[str]:
        """Drop the statistics of a class. A sentence for each trace of it that remains."""
        ...

    def tensors(self) -> dict[str, Tensor]:
        """What is stored."""
        ...


class GlobalNormaliser:
    """Zero mean and unit variance over the first task, the same map for every class.

    What "no class-wise normalisation" means here: features of any scale must
    still be brought to the unit variance that the likelihood assumes. The first
    task decides the map for good, since old data is gone when new classes arrive.

    >>> normaliser = GlobalNormaliser()
    >>> normaliser.learn(Task(torch.tensor([[1.0], [3.0]]), torch.tensor([0, 1])))
    >>> normaliser.learn(Task(torch.tensor([[9.0]]), torch.tensor([2])))
    >>> normaliser.normalise(2, torch.tensor([[9.0]]))
    tensor([[7.]])
    """

    def __init__(self) -> None:
        self.mean_ = torch.empty(0)
        self.std_ = torch.empty(0)

    def learn(self, task: Task) -> None:
        """Take mean and standard deviation of the first task."""
        if not len(self.mean_):
            self.mean_, std = moments(task.features)
            self.std_ = torch.where(std > 0, std, 1.0)

    def normalise(self, label: int, features: Tensor) -> Tensor:
        """Subtract the mean, divide by the standard deviation."""
        return (features - self.mean_) / self.std_

    def restore(self, label: int, features: Tensor) -> Tensor:
        """Multiply by the standard deviation, add the mean."""
        return features * self.std_ + self.mean_

    def forget(self, label: int) -> list[str]:
        """The first task decides for good, whether the class was in it or not."""
        return ["all classes are normalised by the first task's samples, which may include its own"]

    def tensors(self) -> dict[str, Tensor]:
        """Two vectors."""
        return {"normaliser.mean": self.mean_, "normaliser.std": self.std_}


class ClasswiseNormaliser:
    """Zero mean and unit variance for every class by itself.

    A dimension that is constant in a class (every dimension is, in a class of
    one sample) becomes zero and is restored to exactly that constant.

    >>> normaliser = ClasswiseNormaliser()
    >>> x = torch.tensor([[1.0, 5.0], [3.0, 5.0]])
    >>> normaliser.learn(Task(x, torch.tensor([7, 7])))
    >>> normaliser.normalise(7, x)
    tensor([[-1.,  0.],
            [ 1.,  0.]])
    >>> normaliser.restore(7, torch.zeros(1, 2))
    tensor([[2., 5.]])
    """

    def __init__(self) -> None:
        self.mean_: dict[int, Tensor] = {}
        self.std_: dict[int, Tensor] = {}

    def learn(self, task: Task) -> None:
        """Take mean and standard deviation of each class."""
        for label in task.classes:
            self.mean_[label], self.std_[label] = moments(task.of(label))

    def normalise(self, label: int, features: Tensor) -> Tensor:
        """Subtract the mean, divide by the standard deviation."""
        std = self.std_[label]
        return torch.where(std > 0, (features - self.mean_[label]) / std, 0.0)

    def restore(self, label: int, features: Tensor) -> Tensor:
        """Multiply by the standard deviation, add the mean."""
        return features * self.std_[label] + self.mean_[label]

    def forget(self, label: int) -> list[str]:
        """Nothing remains."""
        del self.mean_[label], self.std_[label]
        return []

    def tensors(self) -> dict[str, Tensor]:
        """Two vectors a class."""
        return {
            "normaliser.mean": stack(self.mean_),
            "normaliser.std": stack(self.std_),
        }


def make_normaliser(classwise: bool) -> Normaliser:
    """The normaliser of a setting."""
    return ClasswiseNormaliser() if classwise else GlobalNormaliser()


def moments(features: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of each column, exact where a column is constant."""
    std = features.std(dim=0, correction=0)
    varies = std > 1e-6 * features.abs().amax(dim=0)  # less is only rounding
    mean = torch.where(varies, features.mean(dim=0), features[0])
    return mean, torch.where(varies, std, 0.0)


def stack(rows: dict[int, Tensor]) -> Tensor:
    """The values of a per-class dictionary as one tensor."""
    return torch.stack(list(rows.values())) if rows else torch.empty(0)
