"""Taught samples as they look to a memory that was not taught them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from frugalvae.maths.arrays import Array, columns_of
from frugalvae.moments.held_out import HeldOutRows
from frugalvae.moments.memory import MomentMemory
from frugalvae.parts.protocols import Task

LIKELY = 20  # classes that a sample may be of, besides its own
LEAST_NOISE = 1e-4  # of a whitened coordinate, where all samples are the same


@dataclass(frozen=True)
class LeftOut:
    """What samples look like to a memory that was not taught them.

    Attributes
    ----------
    columns
        The own class of each sample, then its likeliest others, (n, c); as numbers from 0.
    scores
        Log densities of these classes, up to a term that all share, (n, c).
    lengths
        Of the whitened rows, (n,). Both are in units of how samples vary around class means: the
        shared covariance has a ridge, which makes that less than one where samples are few.
    likeness
        To the class that a sample is most like, (n,): the cosine with its mean in whitened
        coordinates; the inverse of the distance where there is one class only.
    """

    columns: Array
    scores: Array
    lengths: Array
    likeness: Array


def left_out(memory: MomentMemory, task: Task) -> LeftOut:
    """Samples as if they had not been taught; ``memory`` was taught them, and keeps no rows.

    Every class must have two samples or more.

    >>> rng, y = np.random.default_rng(0), np.arange(40) % 2
    >>> x = rng.normal(size=(40, 4)) + 9 * y[:, None]
    >>> memory = MomentMemory(directions=0)
    >>> memory.learn(Task(x, y), rng)
    >>> left_out(memory, Task(x, y)).columns[:3].tolist()
    [[0, 1], [1, 0], [0, 1]]
    """
    owners, found = columns_of(task.labels, memory.classes), []
    order = []
    for rows, held in memory.held_out(task):
        order.append(rows)
        found.append(_likeliest(held, memory.whitened(task.features[rows]), owners[rows]))
    back = np.argsort(np.concatenate(order))
    return LeftOut(*(np.concatenate(arrays)[back] for arrays in zip(*found, strict=True)))


def as_new(memory: MomentMemory, task: Task) -> LeftOut:
    """The same of samples that ``memory`` was not taught, though it knows their classes."""
    white = memory.whitened(task.features)
    held = HeldOutRows(memory.rule, white, memory.rule.scores(white))
    return LeftOut(*_likeliest(held, white, columns_of(task.labels, memory.classes)))


def _likeliest(held: HeldOutRows, white: Array, own: Array) -> tuple[Array, ...]:
    """What :class:`LeftOut` has of some samples, which the memory whitens to ``white``."""
    noise, each = max(held.rule.shared.noise, LEAST_NOISE), np.arange(len(own))
    lengths, further = (np.linalg.norm(rows, axis=1) for rows in (white, held.white))
    if held.scores.shape[1] == 1:  # centred on itself, it has no direction
        nothing = np.zeros((len(own), 1))
        return own[:, None], nothing, lengths, 1 / np.maximum(further, 1e-6)
    scale = further[:, None] * np.linalg.norm(held.rule.targets, axis=1)
    cosines = held.white @ held.rule.targets.T / np.maximum(scale, 1e-30)
    scores, width = held.scores / noise, min(LIKELY, held.scores.shape[1] - 1)
    others = scores.copy()
    others[each, own] = -np.inf
    likeliest = np.argpartition(-others, width - 1, axis=1)[:, :width]
    columns = np.column_stack([own, likeliest])
    best = np.take_along_axis(scores, columns, axis=1)
    return columns, best, further / noise**0.5, cosines.max(axis=1)
