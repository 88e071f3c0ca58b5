"""Conversion between NumPy arrays and PyTorch tensors, and what all parts that train need.

Memories that train networks, and heads that are fitted by gradient steps, compute with
PyTorch, on a GPU if there is one. Tasks come in and samples go out as arrays. Only parts that
need PyTorch import this module.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from frugalvae.maths.arrays import Array, find_device
from frugalvae.parts.protocols import Task


@dataclass(frozen=True)
class TensorTask:
    """A :class:`~frugalvae.parts.protocols.Task` in tensors.

    >>> task = TensorTask.of_arrays(Task(np.eye(3), np.array([5, 2, 5])), torch.device("cpu"))
    >>> task.classes
    [2, 5]
    >>> task.of(2)
    tensor([[0., 1., 0.]])
    """

    features: Tensor  # (n, d)
    labels: Tensor  # (n,)

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
        """The features of one class, (n, d)."""
        return self.features[self.labels == label]


def to_tensor(array: Array, device: torch.device) -> Tensor:
    """A copy of an array as a float32 tensor on a device."""
    return torch.from_numpy(np.array(array, np.float32, order="C")).to(device)


def to_array(tensor: Tensor) -> Array:
    """A tensor as an array, whatever its device."""
    return tensor.detach().cpu().numpy()


def to_generator(rng: np.random.Generator, device: torch.device) -> torch.Generator:
    """A generator of PyTorch on a device, seeded by one draw from ``rng``.

    >>> twins = [to_generator(np.random.default_rng(7), torch.device("cpu")) for _ in range(2)]
    >>> torch.equal(*(torch.rand(3, generator=twin) for twin in twins))
    True
    """
    return torch.Generator(device).manual_seed(int(rng.integers(2**63)))


def stack(rows: Mapping[int, Tensor]) -> Tensor:
    """The values of a per-class dictionary as one tensor, one row per class."""
    return torch.stack(list(rows.values())) if rows else torch.empty(0)


def device_of(learned: Mapping[int, Tensor]) -> torch.device:
    """The device of per-class tensors; without any, the one to compute on.

    >>> device_of({7: torch.zeros(2)})
    device(type='cpu')
    """
    return next(iter(learned.values())).device if learned else find_device()


def batch_count(count: int, size: int) -> int:
    """The number of batches of about ``size`` that cover ``count`` samples."""
    return max(1, round(count / size))


def batches(count: int, size: int, rng: torch.Generator) -> Iterator[Tensor]:
    """Random batches of nearly equal size that together cover ``range(count)`` once."""
    order = torch.randperm(count, generator=rng, device=rng.device)
    yield from order.tensor_split(batch_count(count, size))


def linear(n_in: int, n_out: int, rng: torch.Generator) -> nn.Linear:
    """A linear layer with PyTorch's default initialisation, drawn from ``rng``."""
    layer = nn.Linear(n_in, n_out, device="meta").to_empty(device=rng.device)
    bound = n_in**-0.5
    with torch.no_grad():
        layer.weight.uniform_(-bound, bound, generator=rng)
        layer.bias.uniform_(-bound, bound, generator=rng)
    return layer


def unit(vectors: Tensor) -> Tensor:
    """Rows scaled to length one, whatever their scale; a row of zeros stays zero."""
    return torch.nn.functional.normalize(vectors / power_of_two(vectors, 1))  # (n, .)


def power_of_two(values: Tensor, dim: int) -> Tensor:
    """As :func:`frugalvae.maths.arrays.power_of_two`, along a dimension that is kept."""
    largest = values.detach().abs().amax(dim=dim, keepdim=True)
    return torch.ldexp(torch.ones_like(largest), torch.frexp(largest).exponent - 1)
