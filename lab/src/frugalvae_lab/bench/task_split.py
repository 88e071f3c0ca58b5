"""Splitting a data set into tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frugalvae.errors import InputError


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
