"""From a data set to a stream: which classes make a task, and which samples of them are learned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frugalvae.errors import InputError
from frugalvae.images.feature_file import Features

Counts = NDArray[np.int64]


def split_classes(
    classes: NDArray[Any], tasks: int | Sequence[int], seed: int | None
) -> list[NDArray[Any]]:
    """Shuffle classes and cut them into tasks; no class is dropped.

    Parameters
    ----------
    tasks
        The number of tasks, with sizes from :func:`equal_sizes`; or the size of each task.
    seed
        Decides the order; ``None`` keeps the given order.

    Examples
    --------
    >>> split_classes(np.arange(5), 2, seed=None)
    [array([0, 1, 2]), array([3, 4])]
    >>> split_classes(np.arange(5), [1, 4], seed=None)
    [array([0]), array([1, 2, 3, 4])]
    """
    sizes = equal_sizes(len(classes), tasks) if isinstance(tasks, int) else list(tasks)
    if sum(sizes) != len(classes) or min(sizes) < 1:
        raise InputError(
            f"task sizes {sizes} add up to {sum(sizes)}, but there are {len(classes)} classes; "
            "every class must be in one task, and every task must have a class"
        )
    order = classes if seed is None else np.random.default_rng(seed).permutation(classes)
    return np.split(order, np.cumsum(sizes)[:-1])


def equal_sizes(classes: int, tasks: int) -> list[int]:
    """Task sizes as in the paper: all equal, except that the last may be smaller.

    If the last task would be less than half as large as the others, sizes differ by at most
    one instead.

    >>> equal_sizes(196, 10)
    [20, 20, 20, 20, 20, 20, 20, 20, 20, 16]
    >>> equal_sizes(101, 10)
    [11, 10, 10, 10, 10, 10, 10, 10, 10, 10]
    """
    if not 1 <= tasks <= classes:
        raise InputError(
            f"{classes} classes cannot be split into {tasks} tasks; give a number of tasks "
            f"from 1 to {classes}"
        )
    size = -(-classes // tasks)
    last = classes - size * (tasks - 1)
    if 2 * last >= size:
        return [size] * (tasks - 1) + [last]
    small, larger = divmod(classes, tasks)
    return [small + 1] * larger + [small] * (tasks - larger)


def first_then_equal(classes: int, first: int | float, later: int) -> list[int]:
    """Task sizes: a large first task, then ``later`` tasks of nearly equal size.

    ``first`` is a number of classes, or a share of them below 1. If fewer classes are left
    than tasks, each class gets its own task.

    >>> first_then_equal(100, 0.5, 5)
    [50, 10, 10, 10, 10, 10]
    >>> first_then_equal(10, 4, 60)
    [4, 1, 1, 1, 1, 1, 1]
    """
    count = max(1, round(first * classes)) if isinstance(first, float) else first
    if not 1 <= count < classes:
        raise InputError(
            f"a first task of {first} leaves no class of {classes} for later ones; "
            f"give a share between 0 and 1, or a number from 1 to {classes - 1}"
        )
    rest = classes - count
    small, larger = divmod(rest, min(later, rest))
    return [count] + [small + 1] * larger + [small] * (min(later, rest) - larger)


def drawn(
    features: Features, shots: int | Sequence[int] | None, long_tail: float | None, seed: int
) -> Features:
    """The same data with fewer training samples; the test set stays as it is.

    All methods learn the same samples with the same seed, and those of fewer shots are among
    those of more.

    Parameters
    ----------
    shots
        Samples of each class. Of several numbers, each class gets one by lot. A class with
        fewer samples keeps all of them.
    long_tail
        How many times as many samples the largest class has as the smallest.
    """
    if shots is None and long_tail is None:
        return features
    rng = np.random.default_rng([seed, 1])
    classes, labels, counts = np.unique(features.y_train, return_inverse=True, return_counts=True)
    places = places_in_class(labels, rng)
    if long_tail is not None:
        sizes = rng.permutation(tail_sizes(int(counts.max()), len(classes), long_tail))
    else:
        sizes = rng.choice(np.atleast_1d(np.asarray(shots)), len(classes))
    kept = places < sizes[labels]
    return replace(features, x_train=features.x_train[kept], y_train=features.y_train[kept])


def places_in_class(labels: NDArray[Any], rng: np.random.Generator) -> Counts:
    """The place of each sample in a random order of its class, (n,), from 0.

    >>> labels = np.array([1, 0, 1, 1])
    >>> places = places_in_class(labels, np.random.default_rng(0))
    >>> sorted(places[labels == 1].tolist()), int(places[1])
    ([0, 1, 2], 0)
    """
    order = np.lexsort((rng.random(len(labels)), labels))  # classes together, shuffled
    starts = np.flatnonzero(np.diff(labels[order], prepend=labels.min() - 1))
    sizes = np.diff(starts, append=len(labels))
    places = np.empty(len(labels), np.int64)
    places[order] = np.arange(len(labels)) - np.repeat(starts, sizes)
    return places


def tail_sizes(most: int, classes: int, ratio: float) -> Counts:
    """Sizes that fall exponentially from ``most`` to ``most / ratio``, and never below one.

    >>> tail_sizes(500, 3, 100)
    array([500,  50,   5])
    """
    shares = ratio ** -(np.arange(classes) / max(classes - 1, 1))
    return np.maximum(np.round(most * shares), 1).astype(np.int64)
