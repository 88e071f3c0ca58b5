"""What any model was taught, as moments, alone and together with more samples."""

from __future__ import annotations

import copy

import numpy as np

from frugalvae.maths.arrays import Array
from frugalvae.model.model import Model
from frugalvae.moments.memory import MomentMemory
from frugalvae.moments.sums import ClassSums
from frugalvae.parts.protocols import Task

REPLAYED = 64  # samples that stand for a class
ROOM = "1GB"  # so that nothing is cut


def moments_of(model: Model, rng: np.random.Generator) -> tuple[MomentMemory, list[str]]:
    """A memory of counts, means and scatters that may be changed; and what is to be said of it.

    >>> model = Model().learn([[0.0, 1.0], [0.1, 1.0], [1.0, 0.0]], ["cat", "cat", "emu"])
    >>> memory, notes = moments_of(model, np.random.default_rng(0))
    >>> memory.counts_, notes
    ({0: 2, 1: 1}, [])
    """
    if isinstance(model.memory, MomentMemory):
        return copy.deepcopy(model.memory), []
    memory, notes = MomentMemory(ROOM), []
    if model.memory is not None and model.memory.arrays():
        drawn = {y: model.memory.sample(y, REPLAYED, rng) for y in model.memory.classes}
        labels = np.repeat(list(drawn), REPLAYED)
        memory.learn(Task(np.concatenate(list(drawn.values())), labels), rng)
        notes.append("the file's classes are compared by samples drawn from its memory")
    elif len(model.classes):
        notes.append("the file keeps no densities: samples are only compared with each other")
    return memory, notes


def open_moments(
    model: Model, features: Array, rng: np.random.Generator
) -> tuple[MomentMemory, list[str]]:
    """A memory of what a model was taught, to which samples can be added by :func:`add_samples`.

    ``features`` (n, d) are theirs: they decide how features are mapped if nothing was taught. It
    keeps no rows of single classes: which ones were kept would depend on the very samples that
    are to be judged.
    """
    memory, notes = moments_of(model, rng)
    memory.budget, memory.directions = ROOM, 0
    if not memory.counts_:
        memory.sums_.rooted = bool((features >= 0).all())
    return memory, notes


def add_samples(memory: MomentMemory, task: Task) -> None:
    """Add samples to a memory that keeps no rows."""
    more = _without_rows(task, memory.sums_.rooted)
    memory.merge(more, {label: label for label in more.counts_})


def _without_rows(task: Task, rooted: bool) -> MomentMemory:
    """Counts, means, and one scatter of all samples around the means of their classes."""
    memory = MomentMemory(ROOM, directions=0)
    sums = memory.sums_ = ClassSums(rooted, task.features.shape[1])
    order = np.argsort(task.labels, kind="stable")
    rows = sums.mapped(task.features[order]).astype(np.float64)
    labels, first, counts = np.unique(task.labels[order], return_index=True, return_counts=True)
    means = np.add.reduceat(rows, first, axis=0) / counts[:, None]  # (k, d)
    rows -= means.repeat(counts, axis=0)
    squares = np.add.reduceat(np.einsum("nd,nd->n", rows, rows), first)
    sums.scatter = rows.T @ rows
    names = labels.tolist()
    sums.counts = dict(zip(names, counts.tolist(), strict=True))
    sums.means = dict(zip(names, means.astype(np.float32), strict=True))
    sums.squares = dict(zip(names, squares.tolist(), strict=True))
    sums.roots = dict.fromkeys(names, np.empty((0, sums.rank), np.float32))
    return memory
