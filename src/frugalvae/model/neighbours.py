"""Neighbours: which classes lie near each other, and which are taken for which."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from frugalvae.maths.arrays import Array
from frugalvae.model.confidence import DistanceReference

if TYPE_CHECKING:
    from frugalvae.model.model import Model

MAPPED = 1_000  # classes that a map can show
NEAREST = 3
BLOCK = 256  # classes that are compared with all at a time
CONFUSED = 0.02  # share of a class's samples from which on they are said to be taken for another's


@dataclass(frozen=True)
class Neighbour:
    """A class beside another one.

    Attributes
    ----------
    label
        The other class.
    share
        About how many samples of a class are taken for the other: its errors, divided among the
        nearest classes by how near they are.
    distance
        Between the directions in which the two lie, from 0 to 2.
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
        The accuracy to expect of each class, where samples were held out.
    nearest
        The nearest classes of each, nearest first.
    places
        Each class in two dimensions, from -1 to 1; none if there are too many.
    """

    expected: dict[Any, float]
    nearest: dict[Any, list[Neighbour]]
    places: dict[Any, list[float]]


def neighbours(model: Model) -> Neighbours:
    """How the classes of a model lie to each other, as its memory has them.

    >>> from frugalvae.model.model import Model
    >>> x = [[9, 0], [9, 1], [8, 3], [8, 4], [-9, 0], [-9, 1]]
    >>> found = neighbours(Model().learn(x, ["a", "a", "b", "b", "c", "c"]))
    >>> found.nearest["a"][0].label, found.nearest["b"][0].label
    ('b', 'a')
    """
    labels, directions = directions_of(model)
    expected = model.expected_accuracy()
    nearest = {}
    for start in range(0, len(labels), BLOCK):
        apart = 2 - 2 * directions[start : start + BLOCK] @ directions.T  # (block, k)
        for row, distances in enumerate(apart, start):
            nearest[labels[row]] = nearest_of(row, labels, distances, expected)
    few = 0 < len(labels) <= MAPPED
    drawn = places(2 - 2 * directions @ directions.T).tolist() if few else []
    return Neighbours(expected, nearest, dict(zip(labels, drawn, strict=False)))


def neighbours_of(model: Model, label: Any) -> list[Neighbour]:
    """The nearest classes of one."""
    labels, directions = directions_of(model)
    if label not in labels:
        return []
    row = labels.index(label)
    return nearest_of(row, labels, 2 - 2 * directions @ directions[row], model.expected_accuracy())


def directions_of(model: Model) -> tuple[list[Any], Array]:
    """Classes that have samples, and the direction (k, d) in which the mean of each lies.

    Seen from the mean of all classes, in standard deviations within classes.
    """
    memory = model.memory
    if memory is None or not memory.arrays():
        return [], np.empty((0, 0))
    label_of = {number: label for label, number in model.number_of.items()}
    reference = DistanceReference(memory, np.random.default_rng(0))
    return [label_of[number] for number in reference.classes], reference.directions


def nearest_of(
    own: int, labels: list[Any], apart: Array, expected: dict[Any, float]
) -> list[Neighbour]:
    """The nearest classes of one, by squared distances (k,); its errors are divided among them."""
    last = min(NEAREST, len(apart) - 1)
    some = np.flatnonzero(apart <= np.partition(apart, last)[last])  # itself among them
    others = [row for row in some[np.argsort(apart[some], kind="stable")].tolist() if row != own]
    apart = np.maximum(apart, 1e-9)
    near = apart[others[:NEAREST]]
    shares = (1 - expected.get(labels[own], 1.0)) * (1 / near) / (1 / near).sum()
    return [
        Neighbour(labels[place], share, float(np.sqrt(apart[place])))
        for place, share in zip(others[:NEAREST], shares.tolist(), strict=True)
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
