"""Between NumPy at the door and PyTorch inside.

Memories that train networks and heads that are fitted by gradient steps compute with PyTorch,
on a GPU if there is one. Tasks come in as arrays and samples go out as arrays: what converts
them is here. Only parts that need PyTorch import this module.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from frugalvae.interfaces import Task
from frugalvae.maths.arrays import Array


@dataclass(frozen=True)
class TensorTask:
    """A :class:`~frugalvae.interfaces.Task` in tensors.

    >>> task = TensorTask.of_arrays(Task(np.eye(3), np.array([5, 2, 5])), torch.device("cpu"))
    >>> task.classes
    [2, 5]
    >>> task.of(2)
    tensor([[0., 1., 0.]])
    """

    features: Tensor
    labels: Tensor

    @classmethod
    def of_arrays(cls, task: Task, device: torch.device) -> TensorTask:
        """The same task on a device."""
        return cls(
            to_tensor(task.features, device),
            torch.as_tensor(np.asarray(task.labels, np.int64), device=device),
        )

    @property
    def classes(self) -> list[int]:
        """The classes of the task in ascending order."""
        return sorted(set(self.labels.tolist()))

    def of(self, label: int) -> Tensor:
        """The rows of one class."""
        return self.features[self.labels == label]


def to_tensor(array: Array, device: torch.device) -> Tensor:
    """An array in float32 on a device; what is done to it does not reach the array."""
    return torch.from_numpy(np.array(array, np.float32, order="C")).to(device)


def to_array(tensor: Tensor) -> Array:
    """A tensor as an array, wherever it is."""
    array: Array = tensor.detach().cpu().numpy()
    return array


def to_generator(rng: np.random.Generator, device: torch.device) -> torch.Generator:
    """A generator of PyTorch on a device, seeded by one draw.

    >>> twins = [to_generator(np.random.default_rng(7), torch.device("cpu")) for _ in range(2)]
    >>> torch.equal(*(torch.rand(3, generator=twin) for twin in twins))
    True
    """
    return torch.Generator(device).manual_seed(int(rng.integers(2**63)))
