"""Taught samples, each looked at as if its class had been taught without it: all in closed form."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from frugalvae.interfaces import Task
from frugalvae.maths.arrays import Array, in_blocks
from frugalvae.maths.posterior import Posterior
from frugalvae.memories.moments import MomentMemory

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
    owners = _columns(memory, task)
    parts, noise = [], max(rule.shared.noise, LEAST_NOISE)
    for rows in in_blocks(np.arange(len(owners)), BLOCK):
        white, own = memory.whitened(task.features[rows]), owners[rows]
        if single:  # centred on itself, it has no direction
            parts.append(_of_one_class(rule, white))
            continue
        scores, cosines = scores_without(rule, white, own)
        lengths = np.linalg.norm(white, axis=1) / noise**0.5
        parts.append(_likeliest(scores / noise, cosines, lengths, own))
    return LeftOut(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def as_new(memory: MomentMemory, task: Task) -> LeftOut:
    """The same of samples that ``memory`` was not taught, though it knows their classes."""
    rule, noise = memory.rule, max(memory.rule.shared.noise, LEAST_NOISE)
    white, owners = memory.whitened(task.features), _columns(memory, task)
    lengths = np.linalg.norm(white, axis=1)
    scale = lengths[:, None] * np.linalg.norm(rule.targets, axis=1)
    cosines = white @ rule.targets.T / np.maximum(scale, 1e-30)
    scores = rule.scores(white) / noise
    return LeftOut(*_likeliest(scores, cosines, lengths / noise**0.5, owners))


def scores_without(rule: Posterior, white: Array, owners: Array) -> tuple[Array, Array]:
    """Scores of whitened rows (n, d), and cosines with class means, both (n, k).

    The scores are those of :meth:`Posterior.left_out` where classes share one covariance, by
    products of whole matrices. ``owners`` (n,) are the classes that rows were taught as.
    """
    rank, dtype, each = rule.rank, white.dtype, np.arange(len(white))
    counts = rule.moments.counts[owners]
    means, targets = (array.astype(dtype) for array in (rule.deviations, rule.targets))
    squares, inside, mine = (rule.targets**2).sum(axis=1), white[:, :rank], means[owners]
    gone = inside - mine[:, :rank]  # the row around its class mean
    without = _targets_without(rule, white, mine, owners)  # (n, d)
    linear = white @ targets.T  # (n, k)
    along = gone @ targets[:, :rank].T
    linear[each, owners], along[each, owners] = _dots(white, without), _dots(gone, without)
    own_squares = (without.astype(np.float64) ** 2).sum(axis=1)
    freedom = max(1.0, rule.moments.counts.sum() - len(targets))
    part = counts / (counts - 1) / freedom
    extra = part / (1 - np.minimum(part * _dots(gone, gone), 0.9))  # of the inverse of W
    scores = linear + extra[:, None] * (_dots(inside, gone)[:, None] * along - along**2 / 2)
    scores += rule.constants
    scores[each, owners] += (squares[owners] - own_squares) / 2
    squares = np.broadcast_to(squares, linear.shape).copy()
    squares[each, owners] = own_squares
    lengths = np.linalg.norm(white, axis=1)[:, None]
    return scores, linear / np.maximum(lengths * np.sqrt(squares), 1e-30)


def _columns(memory: MomentMemory, task: Task) -> Array:
    """The class of each sample, as a number from 0, (n,)."""
    position = {label: column for column, label in enumerate(memory.classes)}
    return np.array([position[label] for label in task.labels.tolist()])


def _targets_without(rule: Posterior, white: Array, mine: Array, owners: Array) -> Array:
    """The mean of each row's class after the prior, without the row, (n, d)."""
    prior, dtype = rule.prior, white.dtype
    fewer = (rule.moments.counts[owners] - 1).astype(dtype)
    plain = prior.shrunk(rule.deviations, rule.moments.counts)
    lengths = np.sqrt((rule.targets**2).sum(axis=1) / np.maximum((plain**2).sum(axis=1), 1e-30))
    short = replace(prior, axes=prior.axes.astype(dtype), variances=prior.variances.astype(dtype))
    without: Array = short.shrunk(mine + (mine - white) / fewer[:, None], fewer)
    without *= lengths.astype(dtype)[owners, None]
    return without


def _dots(one: Array, two: Array) -> Array:
    """The products of rows, over the coordinates that both have, (n,)."""
    width = min(one.shape[1], two.shape[1])
    dots: Array = np.einsum("nd,nd->n", one[:, :width], two[:, :width])
    return dots


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
    count, rank = rule.moments.counts[0], rule.rank
    freedom, nothing = max(1.0, count - 1), np.zeros((len(white), 1))
    part = count / (count - 1) / freedom * _dots(white[:, :rank], white[:, :rank])
    lengths = np.linalg.norm(white, axis=1)
    away = lengths / np.sqrt(1 - np.minimum(part, 0.9))
    return nothing.astype(np.int64), nothing, lengths, 1 / np.maximum(away, 1e-6)
