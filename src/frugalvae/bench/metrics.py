"""Scores of class-incremental learning, all computed from one matrix of accuracies.

Row ``t`` of the matrix is measured after task ``t``; column ``s`` is the accuracy on the test
samples of task ``s``. Entries above the diagonal (tasks not learned yet) are NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Matrix = NDArray[np.float64]


def accuracy_row(
    truth: NDArray[Any], prediction: NDArray[Any], tasks: Sequence[NDArray[Any]], width: int
) -> Matrix:
    """One row of the matrix: accuracy on each of the tasks learned so far, then NaN.

    >>> tasks = [np.array(["a", "b"]), np.array(["c"])]
    >>> truth = np.array(["a", "b", "c", "c"])
    >>> prediction = np.array(["a", "a", "c", "c"])
    >>> accuracy_row(truth, prediction, tasks, width=3)
    array([0.5, 1. , nan])
    """
    row = np.full(width, np.nan)
    for position, classes in enumerate(tasks):
        belongs = np.isin(truth, classes)
        if belongs.any():
            row[position] = np.mean(prediction[belongs] == truth[belongs])
    return row


def accuracy_by_task(matrix: ArrayLike) -> list[float]:
    """After each task, the mean accuracy on the tasks so far.

    >>> accuracy_by_task([[1.0, None], [0.5, 0.9]])
    [1.0, 0.7]
    """
    return [float(np.nanmean(row)) for row in _matrix(matrix)]


def final_average_accuracy(matrix: ArrayLike) -> float:
    """Mean over tasks of the accuracy after the last task: each task counts the same.

    >>> final_average_accuracy([[1.0, float("nan")], [0.5, 0.9]])
    0.7
    """
    return float(np.nanmean(_matrix(matrix)[-1]))


def average_incremental_accuracy(matrix: ArrayLike, test_counts: Sequence[int]) -> float:
    """Mean over time of the accuracy on all samples of the classes seen so far (iCaRL).

    >>> average_incremental_accuracy([[1.0, float("nan")], [0.5, 0.9]], [10, 30])
    0.9
    """
    rows, weights = _matrix(matrix), np.asarray(test_counts, float)
    seen = np.tri(len(rows)).dot(weights)  # test samples of the classes so far
    correct = np.nansum(rows * weights, axis=1)
    return float(np.mean(correct[seen > 0] / seen[seen > 0]))


def forgetting(matrix: ArrayLike) -> float:
    """How far each earlier task has fallen from its best, on average; 0 for a single task.

    >>> round(forgetting([[1.0, float("nan")], [0.75, 0.9]]), 6)
    0.25
    """
    rows = _matrix(matrix)
    measured = _measured(rows)
    if not len(measured):
        return 0.0
    best = np.nanmax(rows[:-1, measured], axis=0)
    return float(np.mean(best - rows[-1, measured]))


def backward_transfer(matrix: ArrayLike) -> float:
    """How each earlier task has changed since it was learned, on average; 0 for a single task.

    >>> round(backward_transfer([[1.0, float("nan")], [0.75, 0.9]]), 6)
    -0.25
    """
    rows = _matrix(matrix)
    measured = _measured(rows)
    if not len(measured):
        return 0.0
    return float(np.mean(rows[-1, measured] - np.diag(rows)[measured]))


def _measured(rows: Matrix) -> NDArray[np.intp]:
    """Earlier tasks that have test samples."""
    return np.flatnonzero(~np.isnan(rows[-1, :-1]))


def _matrix(values: ArrayLike) -> Matrix:
    matrix = np.asarray(values, float)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not len(matrix):
        raise ValueError(f"expected a matrix of shape (tasks, tasks), got {matrix.shape}")
    return matrix
