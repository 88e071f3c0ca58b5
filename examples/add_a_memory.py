"""Add a memory: keep a few real features of each class, and replay them with some noise.

Nothing of FrugalVAE has to be changed. In the folder of this file:

    python add_a_memory.py                       # check it, and try it on digits
    frugalvae-lab run FEATURES.npz --memory add_a_memory:ExemplarMemory --set memory.size=3
    frugalvae-lab bench run add_a_memory.toml --trust add_a_memory  # compare it with three others
    frugalvae-lab report results -o report.md

``MemoryDefaults`` gives ``forget``, what it costs, from the attributes whose names end in ``_``,
and an ``update`` by replay, which this memory replaces. Settings are the arguments of the
constructor, which stores each under its own name.
"""

from __future__ import annotations

import numpy as np

from frugalvae import FrugalClassifier
from frugalvae.maths.arrays import Array
from frugalvae.parts.defaults import MemoryDefaults
from frugalvae.parts.protocols import Component, Task, component
from frugalvae.testing import check_memory


class ExemplarMemory(MemoryDefaults):
    """``size`` features per class, chosen at random, and the spread of the class."""

    def __init__(self, size: int = 10, noise: float = 0.5) -> None:
        self.size = size
        self.noise = noise
        self.exemplars_: dict[int, Array] = {}  # (size, d) per class
        self.spread_: dict[int, Array] = {}  # (d,) per class

    @property
    def classes(self) -> list[int]:
        """The classes known so far, in the order in which they were learned."""
        return list(self.exemplars_)

    def learn(self, task: Task, rng: np.random.Generator) -> None:
        """Choose exemplars of each new class."""
        for label in task.classes:
            features = task.of(label)  # (n, d)
            chosen = rng.permutation(len(features))[: self.size]
            self.exemplars_[label] = features[chosen]
            self.spread_[label] = features.std(axis=0)

    def update(self, task: Task, count: int, rng: np.random.Generator) -> None:
        """Add samples to a class that had ``count``: each is as likely an exemplar as any other.

        The update of ``MemoryDefaults`` would learn from what :meth:`sample` gives, and add its
        noise to the exemplars once more with every batch.
        """
        (label,), new, old = task.classes, task.features, self.exemplars_[task.classes[0]]
        variance = (new - old.mean(axis=0)).var(axis=0)
        kept = min(self.size, count + len(new))
        from_new = rng.hypergeometric(len(new), count, kept)
        chosen = rng.permutation(old)[: kept - from_new], rng.permutation(new)[:from_new]
        self.exemplars_[label] = np.concatenate(chosen)
        pooled = count * self.spread_[label] ** 2 + len(new) * variance
        self.spread_[label] = np.sqrt(pooled / (count + len(new)))

    def sample(self, label: int, count: int, rng: np.random.Generator) -> Array:
        """Exemplars at random, each with noise: (count, d), float32."""
        exemplars = self.exemplars_[label]
        drawn = exemplars[rng.integers(len(exemplars), size=count)]
        noise = rng.standard_normal(drawn.shape, np.float32)
        return drawn + np.float32(self.noise) * self.spread_[label] * noise

    def cost(
        self, dim: int, classes: int, tasks: int = 1, samples: int | None = None
    ) -> list[Component]:
        """What it will cost; you may leave this out. ``frugalvae-lab memory`` asks for it."""
        return [
            component("exemplars", classes * self.size * dim),
            component("spread", classes * dim),
        ]


if __name__ == "__main__":
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    check_memory(ExemplarMemory)
    x, x_test, y, y_test = train_test_split(*load_digits(return_X_y=True), random_state=0)
    for memory in (ExemplarMemory(size=3), ExemplarMemory(size=10), "moments", "store-all"):
        classifier = FrugalClassifier(memory, "ridge")
        for first in range(0, 10, 2):  # five tasks of two digits
            rows = np.isin(y, [first, first + 1])
            classifier.partial_fit(x[rows], y[rows])
        report = classifier.memory_report()
        right = classifier.score(x_test, y_test)
        print(f"{report.memory}: {right:.1%} of test digits, {report.bytes:,} bytes")
    stream = FrugalClassifier(ExemplarMemory(size=10), "ridge")
    for rows in np.array_split(np.random.default_rng(0).permutation(len(y)), 20):
        stream.partial_fit(x[rows], y[rows])  # all digits mixed
    print(f"in 20 batches: {stream.score(x_test, y_test):.1%}")
