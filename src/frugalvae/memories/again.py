"""A class that is learned a second time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from frugalvae.tasks import Task

if TYPE_CHECKING:
    from frugalvae.memories.base import Memory


def relearn(memory: Memory, task: Task, count: int, rng: torch.Generator) -> None:
    """Learn a known class anew: from as much replay as it had samples, and its new ones.

    Examples
    --------
    >>> from frugalvae.memories.mixture import MixtureMemory
    >>> memory, rng = MixtureMemory(parts=2), torch.Generator().manual_seed(0)
    >>> memory.learn(Task(torch.tensor([[1.0], [1.0]]), torch.tensor([5, 5])), rng)
    >>> relearn(memory, Task(torch.tensor([[9.0], [9.0]]), torch.tensor([5, 5])), 2, rng)
    >>> sorted(round(float(mean), 2) for mean in memory.mixtures_[5].means)
    [1.0, 9.0]
    """
    (label,) = task.classes
    both = torch.cat([memory.sample(label, count, rng), task.features])
    memory.forget(label)
    memory.learn(Task(both, task.labels.new_full((len(both),), label)), rng)
