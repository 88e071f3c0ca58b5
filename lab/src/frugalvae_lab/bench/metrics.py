"""Scores of class-incremental learning, and of samples.

All scores of learning are computed from one matrix of accuracies. Row ``t`` of the matrix is
measured after task ``t``; column ``s`` is the accuracy on the test samples of task ``s``. Entries
above the diagonal (tasks not learned yet) are NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Matrix = NDArray[np.float64]

NEIGHBOURS = 3  # the radius of a ball is the distance to this nearest neighbour


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
    lost = [np.nanmax(rows[:-1, task]) - rows[-1, task] for task in _measured(rows)]
    return float(np.mean(lost)) if lost else 0.0


def backward_transfer(matrix: ArrayLike) -> float:
    """How each earlier task has changed since it was learned, on average; 0 for a single task.

    >>> round(backward_transfer([[1.0, float("nan")], [0.75, 0.9]]), 6)
    -0.25
    """
    rows = _matrix(matrix)
    changed = [rows[-1, task] - rows[task, task] for task in _measured(rows)]
    return float(np.mean(changed)) if changed else 0.0


def _measured(rows: Matrix) -> list[int]:
    """Earlier tasks that have test samples."""
    return np.flatnonzero(~np.isnan(rows[-1, :-1])).tolist()


def _matrix(values: ArrayLike) -> Matrix:
    matrix = np.asarray(values, float)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not len(matrix):
        raise ValueError(f"expected a matrix of shape (tasks, tasks), got {matrix.shape}")
    return matrix


def macro_accuracy(truth: NDArray[Any], prediction: NDArray[Any]) -> float:
    """Mean over classes of the share of their samples that are recognised.

    >>> macro_accuracy(np.array([0, 0, 0, 1]), np.array([0, 0, 0, 0]))
    0.5
    """
    _, labels = np.unique(truth, return_inverse=True)
    right = np.bincount(labels, prediction == truth)
    return float(np.mean(right / np.bincount(labels)))


def frechet_distance(one: ArrayLike, other: ArrayLike) -> float:
    r"""Squared Fréchet distance between two sets of rows, each seen as a Gaussian.

    .. math:: |m_1 - m_2|^2 + \mathrm{tr}(C_1 + C_2 - 2 (C_1 C_2)^{1/2})

    The trace of the root is the sum of the singular values of :math:`R_1 R_2^T`, where
    :math:`R_i^T R_i = C_i`. This needs no root of a d x d matrix, and works with fewer rows
    than columns.

    References
    ----------
    Heusel, Ramsauer, Unterthiner, Nessler, Hochreiter: "GANs Trained by a Two Time-Scale
    Update Rule Converge to a Local Nash Equilibrium", NeurIPS 2017.

    Examples
    --------
    >>> frechet_distance([[0.0, 0.0], [0.0, 2.0]], [[3.0, 0.0], [3.0, 2.0]])
    9.0
    >>> frechet_distance([[-1.0], [1.0]], [[-3.0], [3.0]])  # deviations 1 and 3
    4.0
    """
    first, second = _pair(one, other)
    shift = first.mean(axis=0) - second.mean(axis=0)
    roots = _root(first), _root(second)
    common = np.linalg.svd(roots[0] @ roots[1].T, compute_uv=False).sum()
    spreads = sum(float(np.square(root).sum()) for root in roots)
    return max(float(shift @ shift + spreads - 2 * common), 0.0)  # rounding may go below 0


def relative_frechet_distance(real: ArrayLike, samples: ArrayLike) -> float:
    """The Fréchet distance divided by the trace of the real covariance.

    It does not change if all features are scaled, so classes can be averaged. It is 1 if all
    samples equal the real mean. If real features do not vary, it is infinite, or 0 for equal
    sets.

    >>> relative_frechet_distance([[-2.0], [2.0]], [[0.0], [0.0]])
    1.0
    """
    distance, spread = frechet_distance(real, samples), np.square(_root(_rows(real))).sum()
    if spread:
        return distance / float(spread)
    return float("inf") if distance else 0.0


def precision_and_recall(
    real: ArrayLike, samples: ArrayLike, neighbours: int = NEIGHBOURS
) -> tuple[float, float]:
    """Share of samples that look real, and share of real features that samples cover.

    The ball around a row reaches to the ``neighbours``-th nearest row of its own set.
    Precision is the share of samples inside a ball of some real feature; recall is the share
    of real features inside a ball of some sample.

    References
    ----------
    Kynkäänniemi, Karras, Laine, Lehtinen, Aila: "Improved Precision and Recall Metric for
    Assessing Generative Models", NeurIPS 2019.

    Examples
    --------
    >>> real = [[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]]
    >>> precision_and_recall(real, [[0.5], [1.5], [1.0]], neighbours=1)
    (1.0, 0.5)
    """
    truth, drawn = _pair(real, samples)
    if min(len(truth), len(drawn)) <= neighbours:
        raise ValueError(
            f"{len(truth)} real features and {len(drawn)} samples; expected more than "
            f"{neighbours} of each, because balls reach to neighbour {neighbours}"
        )
    from scipy.spatial.distance import cdist

    def radii(rows: Matrix) -> Matrix:  # the distance to the n-th nearest other row
        ordered: Matrix = np.partition(cdist(rows, rows), neighbours, axis=1)
        return ordered[:, neighbours]  # 0 is the row itself

    between = cdist(truth, drawn)  # (real, samples)
    precision = (between <= radii(truth)[:, None]).any(axis=0).mean()
    return float(precision), float((between <= radii(drawn)).any(axis=1).mean())


def _root(rows: Matrix) -> Matrix:
    """R such that R^T R is the covariance: centred rows, or a triangle if there are many."""
    centred: Matrix = (rows - rows.mean(axis=0)) / np.sqrt(len(rows))
    return np.linalg.qr(centred).R if len(rows) > rows.shape[1] else centred


def _pair(one: ArrayLike, other: ArrayLike) -> tuple[Matrix, Matrix]:
    first, second = _rows(one), _rows(other)
    if first.shape[1] != second.shape[1]:
        raise ValueError(
            f"expected features of one dimension, got {first.shape[1]} and {second.shape[1]}"
        )
    return first, second


def _rows(values: ArrayLike) -> Matrix:
    rows = np.asarray(values, np.float64)
    if rows.ndim != 2 or not len(rows):
        raise ValueError(f"expected features, one row per sample, got shape {rows.shape}")
    return rows
