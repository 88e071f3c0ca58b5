"""Judge samples, each as if it had not been taught: whether its label is wrong, or it is odd."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np

from frugalvae.maths.arrays import Array, columns_of, softmax
from frugalvae.model.model import Model
from frugalvae.moments.held_out import HeldOutRows
from frugalvae.moments.memory import MomentMemory
from frugalvae.moments.sums import ClassSums
from frugalvae.parts.protocols import Task

POWER = 4.0  # of densities, times the length of a whitened row
MISTAKE_PRIOR = 200.0  # samples that the prior of T is worth
MISTAKE_RATE = 0.05  # of wrong labels, to begin with
MISTAKE_STEPS = 6  # of expectation-maximisation
OUTLIER_DEVIATIONS = 2.0  # robust standard deviations above the median
FEWEST = 10  # samples below which none can be called an outlier
LEAST_LIKENESS = 1e-3
LEAST_DEVIATION = 0.1  # of logarithms: where classes are far apart, small differences are none
LIKELY = 20  # classes that a sample may be of, besides its own
LEAST_NOISE = 1e-4  # of a whitened coordinate, where all samples are the same
REPLAYED = 64  # samples that stand for a class
ROOM = "1GB"  # so that nothing is cut


@dataclass(frozen=True)
class Judged:
    """What is to be thought of samples.

    Attributes
    ----------
    wrong
        How probable it is that a label is wrong, (n,); 0 where that cannot be known.
    likelier
        The number of the class that a sample looks like most, besides its own, (n,).
    known
        Whether it can be known: a class of one sample cannot be taught without it, (n,).
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
    found = _left_out_or_new(memory, task, rows[taught[rows]], rows[~taught[rows]])
    if len(classes) > 1:
        logits = POWER / np.maximum(found.lengths, 1e-6)[:, None] * found.scores
        wrong[rows] = wrong_labels(found.columns, logits, len(classes))
        others = logits[:, 1:].argmax(axis=1)[:, None]
        likelier[rows] = classes[np.take_along_axis(found.columns[:, 1:], others, axis=1)[:, 0]]
    odd = {int(rows[place]): sure for place, sure in outliers(found.likeness).items()}
    return Judged(wrong, likelier, known & (len(classes) > 1), odd)


def _left_out_or_new(memory: MomentMemory, task: Task, taught: Array, new: Array) -> LeftOut:
    """Rows that were taught, each left out, then new ones."""
    parts = [
        score(memory, Task(task.features[rows], task.labels[rows]))
        for score, rows in ((left_out, taught), (as_new, new))
        if len(rows)
    ]
    columns = zip(*(vars(part).values() for part in parts), strict=True)
    return LeftOut(*map(np.concatenate, columns))


# --------------------------------------------------------------------------- wrong labels


def wrong_labels(classes: Array, logits: Array, count: int) -> Array:
    """The probability (n,) that samples do not belong to the class of their label.

    Samples of similar classes look like mistakes one by one. So a second question is asked of all
    together: how often is a photograph of class k given the label y? A few samples that look like
    k and are called y are no more than classes that look alike; many, or some that do not look
    like y at all, are mistakes. The answer, a matrix T, is found by expectation-maximisation, with
    a prior that mistakes are equally likely among all classes.

    Parameters
    ----------
    classes
        Classes that each sample may be of, as numbers from 0, (n, c); the first is that of its
        label.
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
    likely = softmax(logits)  # (n, c)
    labels = classes[:, :1]
    own = classes == labels
    _, cell = np.unique((labels * count + classes).ravel(), return_inverse=True)  # entries of T
    cell, rate = cell.reshape(classes.shape), MISTAKE_RATE
    given = np.where(own, 1 - rate, rate / max(1, count - 1))  # T at these entries
    for _ in range(MISTAKE_STEPS):
        is_of = likely * given
        is_of /= is_of.sum(axis=1, keepdims=True)
        rate = float(np.clip(1 - is_of[own].mean(), 1e-3, 0.5))
        prior = np.where(own, 1 - rate, rate / max(1, count - 1))
        times = np.bincount(cell.ravel(), is_of.ravel())[cell]
        of_class = np.bincount(classes.ravel(), is_of.ravel())[classes]
        given = (times + MISTAKE_PRIOR * prior) / (of_class + MISTAKE_PRIOR)
    is_of = likely * given
    wrong: Array = 1 - is_of[:, 0] / is_of.sum(axis=1)
    return wrong


# --------------------------------------------------------------------------- outliers


def outliers(likeness: Array) -> dict[int, float]:
    """Rows of samples that look like no class, and how sure that is.

    ``likeness`` (n,) is that to the class that a sample is most like, as if it had not been
    taught. Where its logarithm is far below those of others, as their median and the deviation
    of the less likely half say, the sample is an outlier.

    Examples
    --------
    >>> list(outliers(np.array([0.6, 0.7, 0.65, 0.7, 0.8, 0.01, 0.7, 0.75, 0.6, 0.7])))
    [5]
    """
    if len(likeness) < FEWEST:
        return {}
    far = _robust_deviations(-np.log(np.maximum(likeness, LEAST_LIKENESS)))
    return {
        int(row): float(1 - 0.5 * np.exp(OUTLIER_DEVIATIONS - far[row]))
        for row in np.flatnonzero(far > OUTLIER_DEVIATIONS)
    }


def _robust_deviations(values: Array) -> Array:
    """How many standard deviations values are above the median, as the upper half says.

    The lower half tells nothing: samples that fit well do so by more or less in each data set.
    """
    above = values - np.median(values)
    usual = 1.4826 * float(np.median(above[above >= 0]))
    deviations: Array = above / max(usual, LEAST_DEVIATION)
    return deviations


# ---------------------------------------- samples as they look to a memory that was not taught them


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


# -------------------------------------------------------------- what a model was taught, as moments


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
