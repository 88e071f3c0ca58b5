"""Small array functions that several modules share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

#: An array of any numeric type; its shape is noted where it is used.
Array: TypeAlias = NDArray[Any]

#: Of squares whose largest is below, the smaller ones would be zero in float32, or lose digits.
LEAST_FLOAT32 = 1e-28


def stack(rows: Mapping[int, Array]) -> Array:
    """The values of a per-class dictionary as one array, one row per class.

    >>> stack({7: np.zeros(2), 9: np.ones(2)}).tolist()
    [[0.0, 0.0], [1.0, 1.0]]
    """
    return np.stack(list(rows.values())) if rows else np.empty(0, np.float32)


def power_of_two(values: Array, axis: int | None = None) -> Array:
    """The largest power of two that is at most the largest magnitude; of zeros, one half.

    Dividing by it changes no digit. Afterwards squares neither vanish nor become infinite.

    >>> float(power_of_two(np.array([3.0, -5.0]))), float(power_of_two(np.zeros(2)))
    (4.0, 0.5)
    """
    largest = np.abs(values).max(axis=axis, keepdims=axis is not None, initial=0)
    return np.ldexp(np.ones_like(largest), np.frexp(largest)[1] - 1)


def compact(values: Array) -> Array:
    """Squares as a memory keeps them: float32, or float64 where that would lose them to zero.

    >>> compact(np.array([4.0, 0.0])).dtype, compact(np.array([1e-60, 0.0])).dtype
    (dtype('float32'), dtype('float64'))
    """
    largest = np.abs(values).max(initial=0)
    return values.astype(np.float64 if 0 < largest < LEAST_FLOAT32 else np.float32)


def sum_of_squares(values: Array) -> float:
    """In float64: squares of small float32 would vanish.

    >>> sum_of_squares(np.float32([1e-30, 0.0])) > 0
    True
    """
    return float((values.astype(np.float64) ** 2).sum())


def unit(vectors: Array) -> Array:
    """Rows scaled to length one, whatever their scale; a row of zeros stays zero.

    >>> unit(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    scaled = vectors / power_of_two(vectors, axis=-1)
    lengths = np.linalg.norm(scaled, axis=-1, keepdims=True)
    return scaled / np.where(lengths > 0, lengths, 1)


def signed_root(features: Array) -> Array:
    """The square root of each feature, with its sign.

    >>> signed_root(np.array([4.0, -9.0])).tolist()
    [2.0, -3.0]
    """
    return np.copysign(np.sqrt(np.abs(features)), features)


def squared_distances(points: Array, others: Array) -> Array:
    """Squared distance of each of ``points`` (n, d) from each of ``others`` (k, d): (n, k).

    >>> squared_distances(np.array([[1.0, 0.0]]), np.array([[1.0, 3.0], [1.0, 0.0]])).tolist()
    [[9.0, 0.0]]
    """
    centre = others.mean(axis=0)  # smaller values lose fewer digits
    points, others = points - centre, others - centre
    squares = (points**2).sum(axis=1)[:, None] + (others**2).sum(axis=1)
    return np.maximum(squares - 2 * points @ others.T, 0)


def softmax(logits: Array) -> Array:
    """Probabilities (n, k) of logits (n, k).

    >>> softmax(np.array([[0.0, 0.0, -1e9]])).tolist()
    [[0.5, 0.5, 0.0]]
    """
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def logsumexp(logits: Array) -> Array:
    """Logarithm (n,) of the summed exponentials of each row.

    >>> round(float(logsumexp(np.array([[1000.0, 1000.0]]))[0]), 3)
    1000.693
    """
    largest = logits.max(axis=1)
    return largest + np.log(np.exp(logits - largest[:, None]).sum(axis=1))


def one_hot(positions: Array, count: int) -> Array:
    """Rows (n, count) of zeros with a one at each position, float64.

    >>> one_hot(np.array([1, 0]), 2).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    return (np.asarray(positions)[:, None] == np.arange(count)).astype(np.float64)


def columns_of(labels: Array, classes: Iterable[int]) -> Array:
    """The column of each label, (n,), where columns are of these classes.

    >>> columns_of(np.array([9, 7, 9]), [7, 9]).tolist()
    [1, 0, 1]
    """
    column = {label: number for number, label in enumerate(classes)}
    return np.array([column[label] for label in labels.tolist()], np.int64)


def in_blocks(features: Array, rows: int = 8192) -> Iterable[Array]:
    """Features in blocks of rows, so that results of each block need less memory."""
    return (features[start : start + rows] for start in range(0, len(features), rows))


def side_by_side(rows: Array, others: Array) -> Array:
    """Rows (n, a) with others (n, b) behind them, (n, a + b); no copy if there are none.

    >>> side_by_side(np.array([[1, 2]]), np.array([[3]])).tolist()
    [[1, 2, 3]]
    """
    return np.concatenate([rows, others], axis=1) if others.shape[1] else rows
