"""Linear classifiers by L-BFGS: logistic regression, and support vectors one class against all."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from frugalvae.errors import needing
from frugalvae.maths.arrays import Array, one_hot, softmax

#: Of scores (n, k) and one-hot targets (n, k): the loss of each row (n,), and its gradient (n, k).
Loss = Callable[[Array, Array], tuple[Array, Array]]


def cross_entropy(scores: Array, targets: Array) -> tuple[Array, Array]:
    """The loss of logistic regression over all classes at once.

    >>> loss, gradient = cross_entropy(np.zeros((1, 2)), np.array([[1.0, 0.0]]))
    >>> loss.round(4).tolist(), gradient.tolist()
    ([0.6931], [[-0.5, 0.5]])
    """
    chances = softmax(scores)
    loss: Array = -np.log(np.maximum((chances * targets).sum(axis=1), 1e-38))
    return loss, chances - targets


def squared_hinge(scores: Array, targets: Array) -> tuple[Array, Array]:
    """The loss of support vectors, each class against all others.

    >>> loss, gradient = squared_hinge(np.array([[2.0, 0.0]]), np.array([[1.0, 0.0]]))
    >>> loss.tolist(), gradient.tolist()
    ([1.0], [[0.0, 2.0]])
    """
    signs = 2 * targets - 1
    short = np.maximum(0, 1 - signs * scores)
    return (short**2).sum(axis=1), -2 * signs * short + 0.0


def fit_linear(
    x: Array,
    y: Array,
    start: Array,
    loss: Loss,
    strength: float,
    steps: int,
    *,
    balanced: bool = False,
) -> Array:
    """Weights (d + 1, k) that minimise ``strength`` times the loss plus half their squares.

    Parameters
    ----------
    x, y
        Features (n, d), and the column of each one's class (n,).
    start
        Weights to begin with; the last row are biases, whose squares do not count.
    steps
        Iterations of L-BFGS at most.
    balanced
        Whether every class counts as much, whatever its number of rows.
    """
    with needing("a classifier that is fitted on all samples"):
        from scipy.optimize import minimize

    targets = one_hot(y, start.shape[1]).astype(x.dtype)
    counts = np.bincount(y)[y]
    shares = (len(y) / len(np.unique(y)) / counts if balanced else counts / counts).astype(x.dtype)

    def objective(flat: Array) -> tuple[float, Array]:
        weights = flat.reshape(start.shape)
        scores = x @ weights[:-1].astype(x.dtype) + weights[-1].astype(x.dtype)
        values, slope = loss(scores, targets)
        value, slope = float((shares * values).sum()), shares[:, None] * slope
        gradient = np.concatenate([x.T @ slope, slope.sum(axis=0, keepdims=True)])
        gradient = strength * gradient.astype(np.float64)
        gradient[:-1] += weights[:-1]
        return strength * value + 0.5 * float((weights[:-1] ** 2).sum()), gradient.ravel()

    options = {"maxiter": steps, "maxfun": 2 * steps, "gtol": 1e-5, "ftol": 1e-9}
    found = minimize(objective, start.ravel(), jac=True, method="L-BFGS-B", options=options)
    return found.x.reshape(start.shape)
