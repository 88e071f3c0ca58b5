"""Nearest mean: the class whose mean is closest to the feature."""

from __future__ import annotations

import numpy as np

from frugalvae.heads.class_means import ClassMeans
from frugalvae.maths.arrays import Array, squared_distances, stack
from frugalvae.parts.cost import Component, component


class NearestMeanHead(ClassMeans):
    """Classifies by the nearest class mean, which it takes from the task itself: no replay.

    >>> from frugalvae.parts.protocols import Task
    >>> head = NearestMeanHead()
    >>> head.learn(Task(np.array([[0.0], [10.0]]), np.array([0, 1])), None)
    >>> int(head.logits(np.array([[7.0]])).argmax())
    1
    """

    def logits(self, features: Array) -> Array:
        """Minus half the squared distance to each mean, (n, k)."""
        means = stack(self.means_).astype(np.float64)  # (k, d)
        return -0.5 * squared_distances(features.astype(np.float64), means)

    def arrays(self) -> dict[str, Array]:
        """One vector per class."""
        return {"means": stack(self.means_)}

    def components(self) -> list[Component]:
        """One vector per class."""
        return [component("head: means", self.arrays()["means"].size)]
