"""Judge samples, each as if it had not been taught: whether its label is wrong, or it is odd."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from frugalvae.care.left_out import LeftOut, as_new, left_out
from frugalvae.maths.arrays import Array, softmax
from frugalvae.moments.memory import MomentMemory
from frugalvae.parts.protocols import Task

POWER = 4.0  # of densities, times the length of a whitened row
MISTAKE_PRIOR = 200.0  # samples that the prior of T is worth
MISTAKE_RATE = 0.05  # of wrong labels, to begin with
MISTAKE_STEPS = 6  # of expectation-maximisation
OUTLIER_DEVIATIONS = 2.0  # robust standard deviations above the median
FEWEST = 10  # samples below which none can be called an outlier
LEAST_LIKENESS = 1e-3
LEAST_DEVIATION = 0.1  # of logarithms: where classes are far apart, small differences are none


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
