"""Wrong labels: which samples look like another class than the one they are said to be of.

Each sample is classified as if its class had been taught without it, in closed form. That alone
takes many a sample of similar classes for a mistake. So a second question is asked of all samples
together: how often is a photograph of class k given the label y? A few samples that look like k
and are called y are no more than classes that look alike; many, or some that do not look like y at
all, are mistakes. The answer, a matrix T, is found by expectation-maximisation, with a prior that
mistakes are equally likely among all classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from frugalvae.care.moments import moments_of
from frugalvae.interfaces import Task
from frugalvae.maths.arrays import Array, softmax
from frugalvae.memories.moments import MomentMemory

if TYPE_CHECKING:
    from frugalvae.model import Model

POWER = 6.0  # of densities, times the length of a whitened row
PRIOR = 200.0  # samples that the prior of T is worth
RATE = 0.05  # of wrong labels, to begin with
STEPS = 6  # of expectation-maximisation
LIKELY = 20  # classes that a sample may be of, besides its own
BLOCK = 2048  # rows that are classified at a time


@dataclass(frozen=True)
class Judged:
    """How probable it is that labels are wrong.

    Attributes
    ----------
    wrong
        Of each sample, (n,); 0 where that cannot be said.
    likelier
        The number of the class that it looks like most, besides its own, (n,).
    known
        Whether it can be said: a class of one sample cannot be taught without it, (n,).
    """

    wrong: Array
    likelier: Array
    known: Array


def rule_with(model: Model, task: Task, rng: np.random.Generator) -> tuple[MomentMemory, list[str]]:
    """A memory of what a model was taught and of more samples; and what is to be said of it.

    It keeps no rows of single classes: which ones were kept would depend on the very samples that
    are to be judged.
    """
    memory, notes = moments_of(model, rng)
    memory.directions = 0
    memory.learn(task, rng)
    return memory, notes


def judge(memory: MomentMemory, task: Task) -> Judged:
    """How probable it is that the labels of samples are wrong; ``memory`` was taught them."""
    counts = np.array([memory.counts_[label] for label in task.labels.tolist()])
    known = (counts > 1) & (len(memory.classes) > 1)
    wrong, likelier = np.zeros(len(counts)), np.zeros(len(counts), np.int64)
    if known.any():
        labels = task.labels[known]
        classes, logits = _likely_classes(memory, task.features[known], labels)
        wrong[known] = wrong_labels(classes, logits, len(memory.classes))
        others = classes[:, 1:]
        likelier[known] = np.take_along_axis(others, logits[:, 1:].argmax(1)[:, None], 1)[:, 0]
    return Judged(wrong, likelier, known)


def _likely_classes(memory: MomentMemory, features: Array, labels: Array) -> tuple[Array, Array]:
    """The own class of each sample and its likeliest others (n, c), and their logits."""
    numbers, place = np.array(memory.classes), np.arange(len(labels))
    position = {label: row for row, label in enumerate(memory.classes)}
    own = np.array([position[label] for label in labels.tolist()])
    width = min(LIKELY, len(numbers) - 1)
    found, logits = np.empty((len(own), 1 + width), int), np.empty((len(own), 1 + width))
    order = np.argsort(own, kind="stable")  # whole classes come together, which is faster
    for rows in np.array_split(order, 1 + len(own) // BLOCK):
        scores = memory.left_out(features[rows], labels[rows], POWER)
        mine = scores[place[: len(rows)], own[rows]]
        scores[place[: len(rows)], own[rows]] = -np.inf
        others = np.argpartition(-scores, width - 1, axis=1)[:, :width]
        found[rows] = np.column_stack([own[rows], others])
        logits[rows] = np.column_stack([mine, np.take_along_axis(scores, others, axis=1)])
    return numbers[found], logits


def wrong_labels(classes: Array, logits: Array, count: int) -> Array:
    """The probability (n,) that samples are not of the class they are said to be of.

    Parameters
    ----------
    classes
        Classes that each sample may be of, (n, c); the first is the one it is said to be of.
    logits
        Of these classes, as if the sample had not been taught, (n, c).
    count
        The number of all classes.

    Examples
    --------
    >>> classes = np.array([[0, 1]] * 9 + [[1, 0]] * 10)
    >>> logits = np.array([[9.0, 0.0]] * 18 + [[0.0, 30.0]])
    >>> (wrong_labels(classes, logits, 2) > 0.5).nonzero()[0].tolist()
    [18]
    """
    looks = softmax(logits)  # (n, c)
    said = classes[:, :1]
    own = classes == said
    _, cell = np.unique(np.stack([classes, np.broadcast_to(said, classes.shape)]).reshape(2, -1),
                        axis=1, return_inverse=True)  # fmt: skip
    cell, rate = cell.reshape(classes.shape), RATE  # which entry of T
    given = np.where(own, 1 - rate, rate / max(1, count - 1))  # T at these entries
    for _ in range(STEPS):
        is_of = looks * given
        is_of /= is_of.sum(axis=1, keepdims=True)
        rate = float(np.clip(1 - is_of[own].mean(), 1e-3, 0.5))
        prior = np.where(own, 1 - rate, rate / max(1, count - 1))
        times = np.bincount(cell.ravel(), is_of.ravel())[cell]
        of_class = np.bincount(classes.ravel(), is_of.ravel())[classes]
        given = (times + PRIOR * prior) / (of_class + PRIOR)
    is_of = looks * given
    wrong: Array = 1 - is_of[:, 0] / is_of.sum(axis=1)
    return wrong
