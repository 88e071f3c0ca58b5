"""A class that is learned a second time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from frugalvae.interfaces import Task

if TYPE_CHECKING:
    from frugalvae.interfaces import Memory

MOST = 2**16  # replayed samples; more would take memory and change nothing


def relearn(memory: Memory, task: Task, count: int, rng: np.random.Generator) -> None:
    """Learn a known class anew: from as much replay as it had samples, and its new ones.

    Examples
    --------
    >>> from frugalvae.memories.mixture import MixtureMemory
    >>> memory, rng = MixtureMemory(parts=2), np.random.default_rng(0)
    >>> memory.learn(Task(np.ones((2, 1)), np.array([5, 5])), rng)
    >>> relearn(memory, Task(np.full((2, 1), 9.0), np.array([5, 5])), 2, rng)
    >>> sorted(round(float(mean), 2) for mean in memory.mixtures_[5].means[:, 0])
    [1.0, 9.0]
    """
    (label,) = task.classes
    both = np.concatenate([memory.sample(label, min(count, MOST), rng), task.features])
    memory.forget(label)
    memory.learn(Task(both, np.full(len(both), label)), rng)
