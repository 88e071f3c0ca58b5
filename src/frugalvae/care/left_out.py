"""Taught samples, each looked at as if its class had been taught without it: all in closed form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from frugalvae.maths.arrays import Array, columns_of, in_blocks
from frugalvae.moments.held_out import LeftOutRows
from frugalvae.moments.memory import MomentMemory
from frugalvae.moments.rule import Posterior
from frugalvae.parts.protocols import Task

LIKELY = 20  # classes that a sample may be of, besides its own
BLOCK = 2048  # rows that are looked at at a time
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
    """Samples as if each had not been taught; ``memory`` was taught them, and keeps no rows.

    Every class must have two samples or more.

    >>> rng, y = np.random.default_rng(0), np.arange(40) % 2
    >>> x = rng.normal(size=(40, 4)) + 9 * y[:, None]
    >>> memory = MomentMemory(directions=0)
    >>> memory.learn(Task(x, y), rng)
    >>> left_out(memory, Task(x, y)).columns[:3].tolist()
    [[0, 1], [1, 0], [0, 1]]
    """
    rule, single = memory.rule, len(memory.classes) == 1
    owners = columns_of(task.labels, memory.classes)
    parts, noise = [], max(rule.shared.noise, LEAST_NOISE)
    for rows in in_blocks(np.arange(len(owners)), BLOCK):
        white, own = memory.whitened(task.features[rows]), owners[rows]
        if single:  # centred on itself, it has no direction
            parts.append(_of_one_class(rule, white))
            continue
        scores, cosines = LeftOutRows(rule, white, own).from_means
        lengths = np.linalg.norm(white, axis=1) / noise**0.5
        parts.append(_likeliest(scores / noise, cosines, lengths, own))
    return LeftOut(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def as_new(memory: MomentMemory, task: Task) -> LeftOut:
    """The same of samples that ``memory`` was not taught, though it knows their classes."""
    rule, noise = memory.rule, max(memory.rule.shared.noise, LEAST_NOISE)
    white, owners = memory.whitened(task.features), columns_of(task.labels, memory.classes)
    lengths = np.linalg.norm(white, axis=1)
    scale = lengths[:, None] * np.linalg.norm(rule.targets, axis=1)
    cosines = white @ rule.targets.T / np.maximum(scale, 1e-30)
    scores = rule.scores(white) / noise
    return LeftOut(*_likeliest(scores, cosines, lengths / noise**0.5, owners))


def _likeliest(scores: Array, cosines: Array, lengths: Array, own: Array) -> tuple[Array, ...]:
    """What :class:`LeftOut` has of some samples."""
    each, width = np.arange(len(own)), min(LIKELY, scores.shape[1] - 1)
    others = scores.copy()
    others[each, own] = -np.inf
    likeliest = np.argpartition(-others, width - 1, axis=1)[:, :width]
    columns = np.column_stack([own, likeliest])
    return columns, np.take_along_axis(scores, columns, axis=1), lengths, cosines.max(axis=1)


def _of_one_class(rule: Posterior, white: Array) -> tuple[Array, ...]:
    """The same of samples of the only class; rows are around its mean."""
    own = np.zeros(len(white), np.int64)
    further = np.linalg.norm(LeftOutRows(rule, white, own).rows, axis=1)
    lengths, nothing = np.linalg.norm(white, axis=1), np.zeros((len(white), 1))
    return own[:, None], nothing, lengths, 1 / np.maximum(further, 1e-6)
