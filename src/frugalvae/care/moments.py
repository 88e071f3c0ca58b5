"""What any model was taught, as moments: in closed form, or by samples drawn from its memory."""

from __future__ import annotations

import copy

import numpy as np

from frugalvae.interfaces import Task
from frugalvae.memories.moments import MomentMemory
from frugalvae.model import Model

REPLAYED = 64  # samples that stand for a class


def moments_of(model: Model, rng: np.random.Generator) -> tuple[MomentMemory, list[str]]:
    """A memory of counts, means and scatters that may be changed; and what is to be said of it.

    >>> model = Model().learn([[0.0, 1.0], [0.1, 1.0], [1.0, 0.0]], ["cat", "cat", "emu"])
    >>> memory, notes = moments_of(model, np.random.default_rng(0))
    >>> memory.counts_, notes
    ({0: 2, 1: 1}, [])
    """
    if isinstance(model.memory, MomentMemory):
        return copy.deepcopy(model.memory), []
    memory, notes = MomentMemory("1GB"), []
    if model.memory is not None and model.memory.arrays():
        drawn = {y: model.memory.sample(y, REPLAYED, rng) for y in model.memory.classes}
        labels = np.repeat(list(drawn), REPLAYED)
        memory.learn(Task(np.concatenate(list(drawn.values())), labels), rng)
        notes.append("the file's classes are compared by samples drawn from its memory")
    elif len(model.classes):
        notes.append("the file keeps no densities: samples are only compared with each other")
    return memory, notes
