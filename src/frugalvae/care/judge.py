"""Judge samples, each as if it had not been taught: whether its label is wrong, or it is odd."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from frugalvae.care.left_out import LeftOut, as_new, left_out
from frugalvae.care.outliers import outliers
from frugalvae.care.wrong_labels import wrong_labels
from frugalvae.maths.arrays import Array
from frugalvae.moments.memory import MomentMemory
from frugalvae.parts.protocols import Task

POWER = 4.5  # of densities, times the length of a whitened row


@dataclass(frozen=True)
class Judged:
    """What is to be thought of samples.

    Attributes
    ----------
    wrong
        How probable it is that a label is wrong, (n,); 0 where that cannot be said.
    likelier
        The number of the class that a sample looks like most, besides its own, (n,).
    known
        Whether it can be said: a class of one sample cannot be taught without it, (n,).
    outliers
        Rows of samples that look like no class, and how sure that is.
    """

    wrong: Array
    likelier: Array
    known: Array
    outliers: dict[int, float]


def judge(memory: MomentMemory, task: Task, taught: Array | None = None) -> Judged:
    """Judge samples; ``memory`` must keep no rows of single classes.

    ``taught`` (n,) says which of the samples it was taught; by default all.
    """
    taught = np.ones(len(task.labels), bool) if taught is None else taught
    counts = np.array([memory.counts_.get(label, 0) for label in task.labels.tolist()])
    rows, classes = np.flatnonzero(counts > taught), np.array(memory.classes)
    rows = rows[np.argsort(~taught[rows], kind="stable")]  # what was taught comes first
    wrong, likelier, known = np.zeros(len(counts)), task.labels.copy(), counts > taught
    if not len(rows):
        return Judged(wrong, likelier, known, {})
    found = _looked_at(memory, task, rows[taught[rows]], rows[~taught[rows]])
    if len(classes) > 1:
        logits = POWER / np.maximum(found.lengths, 1e-6)[:, None] * found.scores
        wrong[rows] = wrong_labels(found.columns, logits, len(classes))
        others = logits[:, 1:].argmax(axis=1)[:, None]
        likelier[rows] = classes[np.take_along_axis(found.columns[:, 1:], others, axis=1)[:, 0]]
    odd = {int(rows[place]): sure for place, sure in outliers(found.likeness).items()}
    return Judged(wrong, likelier, known & (len(classes) > 1), odd)


def _looked_at(memory: MomentMemory, task: Task, taught: Array, new: Array) -> LeftOut:
    """Rows that were taught, each left out, then new ones."""
    parts = [
        look(memory, Task(task.features[rows], task.labels[rows]))
        for look, rows in ((left_out, taught), (as_new, new))
        if len(rows)
    ]
    columns = zip(*(vars(part).values() for part in parts), strict=True)
    return LeftOut(*map(np.concatenate, columns))
