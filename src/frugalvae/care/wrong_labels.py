"""Wrong labels: which samples look like another class than the one they are said to be of.

Each sample is classified as if its class had been taught without it, in closed form. That alone
takes many a sample of similar classes for a mistake. So a second question is asked of all samples
together: how often is a photograph of class k given the label y? A few samples that look like k
and are called y are no more than classes that look alike; many, or some that do not look like y at
all, are mistakes. The answer, a matrix T, is found by expectation-maximisation, with a prior that
mistakes are equally likely among all classes.
"""

from __future__ import annotations

import numpy as np

from frugalvae.maths.arrays import Array, softmax

PRIOR = 200.0  # samples that the prior of T is worth
RATE = 0.05  # of wrong labels, to begin with
STEPS = 6  # of expectation-maximisation


def wrong_labels(classes: Array, logits: Array, count: int) -> Array:
    """The probability (n,) that samples are not of the class they are said to be of.

    Parameters
    ----------
    classes
        Classes that each sample may be of, as numbers from 0, (n, c); the first is the one it is
        said to be of.
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
    _, cell = np.unique((said * count + classes).ravel(), return_inverse=True)  # entries of T
    cell, rate = cell.reshape(classes.shape), RATE
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
