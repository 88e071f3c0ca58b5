"""Add a head: the class of the nearest replayed sample.

Nothing of FrugalVAE has to be changed. In the folder of this file:

    python add_a_head.py                         # check it, and try it on digits
    frugalvae-lab run FEATURES.npz --head add_a_head:NeighbourHead --set head.samples=20

In an experiment file: ``head = { name = "add_a_head:NeighbourHead", samples = 20 }``.

``HeadDefaults`` gives ``update`` (by replay), ``forget``, and what it costs, from the
attributes whose names end in ``_``. A dictionary whose keys are classes holds what is kept
per class.
"""

from __future__ import annotations

import numpy as np

from frugalvae import FrugalClassifier
from frugalvae.maths.arrays import Array, squared_distances
from frugalvae.parts.defaults import HeadDefaults
from frugalvae.parts.protocols import Replay, Task
from frugalvae.testing import check_head


class NeighbourHead(HeadDefaults):
    """Minus the squared distance to the nearest of ``samples`` replayed samples per class."""

    needs_every_task = False  # fitted anew on replay: it may skip tasks

    def __init__(self, samples: int = 50) -> None:
        self.samples = samples
        self.replayed_: dict[int, Array] = {}  # (samples, d) per class

    @property
    def classes(self) -> list[int]:
        """The class of each column of :meth:`logits`."""
        return list(self.replayed_)

    def learn(self, task: Task, replay: Replay) -> None:
        """Draw samples of every class. ``task`` has the real ones of the new classes."""
        features, positions = replay.draw(self.samples)  # (k * samples, d)
        self.replayed_ = {
            label: features[positions == position] for position, label in enumerate(replay.classes)
        }

    def logits(self, features: Array) -> Array:
        """Scores (n, k) whose softmax are class probabilities."""
        rows = features.astype(np.float64)
        nearest = [squared_distances(rows, kept).min(axis=1) for kept in self.replayed_.values()]
        return -np.stack(nearest, axis=1)


if __name__ == "__main__":
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    check_head(NeighbourHead)
    x, x_test, y, y_test = train_test_split(*load_digits(return_X_y=True), random_state=0)
    for head in (NeighbourHead(samples=20), NeighbourHead(samples=200), "bayes"):
        classifier = FrugalClassifier("moments", head).fit(x, y)
        name = head if isinstance(head, str) else f"{head.samples} neighbours"
        print(f"{name}: {classifier.score(x_test, y_test):.1%} of test digits")
