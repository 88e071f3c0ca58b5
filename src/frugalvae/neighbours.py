"""Neighbours: which classes lie near each other, and which are taken for which."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from frugalvae.maths.arrays import Array

if TYPE_CHECKING:
    from frugalvae.model import Model

ROWS = 4_000  # drawn of all classes together, at most
FEWEST, MOST = 4, 64  # drawn of each class
MAPPED = 1_000  # classes that a map can show
NEAREST = 3


@dataclass(frozen=True)
class Neighbour:
    """A class beside another one.

    Attributes
    ----------
    label
        The other class.
    share
        Of the samples that are drawn of a class, how many are taken for the other.
    distance
        Between the two, in standard deviations within classes.
    """

    label: Any
    share: float
    distance: float


@dataclass(frozen=True)
class Neighbours:
    """How classes lie to each other, by label; classes that are known by name alone do not.

    Attributes
    ----------
    expected
        The share of each class's drawn samples that are recognised. Draws are more typical than
        photographs, so that this is a bound from above.
    nearest
        The nearest classes of each, nearest first.
    places
        Each class in two dimensions, from -1 to 1; none if there are too many.
    """

    expected: dict[Any, float]
    nearest: dict[Any, list[Neighbour]]
    places: dict[Any, list[float]]


def neighbours(model: Model) -> Neighbours:
    """How the classes of a model lie to each other, as samples of its memory show it.

    >>> from frugalvae.model import Model
    >>> x = [[0, 0], [0, 1], [9, 0], [9, 1], [0, 90], [1, 90]]
    >>> found = neighbours(Model().learn(x, ["a", "a", "b", "b", "c", "c"]))
    >>> {label: near[0].label for label, near in found.nearest.items()}
    {'a': 'b', 'b': 'a', 'c': 'a'}
    """
    labels = [label for label in model.classes.tolist() if label not in model.by_name]
    columns = np.flatnonzero(np.isin(model.classes, labels))
    count = min(max(ROWS // max(len(labels), 1), FEWEST), MOST)
    means: list[Array] = []
    taken: list[Array] = []
    for label in labels:
        logits = model.logits(model.sample(label, count, seed=0))[:, columns]  # (count, k)
        means.append(logits.mean(axis=0))
        taken.append(np.bincount(logits.argmax(axis=1), minlength=len(labels)) / count)
    if not labels:
        return Neighbours({}, {}, {})
    scores, shares = np.stack(means), np.stack(taken)  # (k, k)
    apart = squared_distances(scores)
    drawn = places(apart).tolist() if len(labels) <= MAPPED else []
    return Neighbours(
        dict(zip(labels, np.diag(shares).tolist(), strict=True)),
        {
            label: nearest_of(row, labels, shares[row], apart[row])
            for row, label in enumerate(labels)
        },
        dict(zip(labels, drawn, strict=False)),
    )


def neighbours_of(model: Model, place: int) -> list[Neighbour]:
    """The classes that one is taken for, most often first; only that one is drawn."""
    labels = model.classes.tolist()
    if labels[place] in model.by_name:
        return []
    logits = model.logits(model.sample(labels[place], MOST, seed=0))  # (MOST, k)
    shares = np.bincount(logits.argmax(axis=1), minlength=len(labels)) / len(logits)
    behind = logits[:, [place]] - logits
    return nearest_of(place, labels, shares, np.maximum(behind.mean(axis=0), 0))


def squared_distances(scores: Array) -> Array:
    """Squared distances (k, k) between classes, from mean scores of one under the other.

    Where all classes have one covariance, the score of class j at x is minus half the squared
    Mahalanobis distance of x from the mean of j, up to what is the same for all: the differences
    add up to the squared distance between the means.
    """
    own = np.diag(scores)
    apart: Array = np.maximum(own[:, None] - scores + own[None, :] - scores.T, 0)
    return apart


def nearest_of(own: int, labels: list[Any], shares: Array, apart: Array) -> list[Neighbour]:
    """The classes that a class is taken for, most often first, and then the nearest."""
    order = np.lexsort([apart, -shares])  # both (k,)
    others = [place for place in order.tolist() if place != own][:NEAREST]
    return [
        Neighbour(labels[place], float(shares[place]), float(np.sqrt(apart[place])))
        for place in others
    ]


def places(apart: Array) -> Array:
    """Points in a plane (k, 2) with about these squared distances: classical scaling.

    >>> found = places(np.array([[0.0, 4, 1], [4, 0, 1], [1, 1, 0]]))
    >>> np.abs(found[:, 0]).round(2).tolist()
    [1.0, 1.0, 0.0]
    """
    count = len(apart)
    centring = np.eye(count) - 1 / count
    values, vectors = np.linalg.eigh(-0.5 * centring @ apart @ centring)
    top = np.zeros((count, 2))
    for axis, place in enumerate(range(count - 1, max(count - 3, -1), -1)):
        column = vectors[:, place] * np.sqrt(max(values[place], 0))
        top[:, axis] = column * (np.sign(column[np.abs(column).argmax()]) or 1)  # not of chance
    return top / max(float(np.abs(top).max()), 1e-12)
