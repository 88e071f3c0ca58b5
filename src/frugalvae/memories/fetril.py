"""FeTrIL: features of new classes, moved to where old classes stood."""

from __future__ import annotations

import torch
from torch import Tensor

from frugalvae import accounting
from frugalvae.accounting import Component
from frugalvae.equations import unit
from frugalvae.moments import merge
from frugalvae.normalise import stack
from frugalvae.tasks import Task


class FeTrILMemory:
    """Mean of every class, and the features of the last task alone.

    Classes of the last task replay their real features. An older class replays
    those of the last task's class whose mean is nearest to its own by cosine,
    moved from that mean to its own: ``x - mu_new + mu_old``.

    The features are needed only until the head is fitted, so FeTrIL counts the
    means alone. They are kept here until the next task replaces them, for a head
    draws from the memory, and so they are counted as stored.

    References
    ----------
    Petit, Popescu, Schindler, Picard, Delezoide: "FeTrIL: Feature Translation for
    Exemplar-Free Class-Incremental Learning", WACV 2023; there called FeTrIL^1.

    Examples
    --------
    >>> rng = torch.Generator().manual_seed(0)
    >>> memory = FeTrILMemory()
    >>> memory.learn(Task(torch.tensor([[5.0, 5.0]]), torch.tensor([0])), rng)
    >>> memory.learn(Task(torch.tensor([[1.0, 0.0], [1.0, 2.0]]), torch.tensor([1, 1])), rng)
    >>> memory.means_[1]
    tensor([1., 1.])
    >>> memory.sample(0, 50, rng).unique(dim=0)
    tensor([[5., 4.],
            [5., 6.]])
    """

    def __init__(self) -> None:
        self.means_: dict[int, Tensor] = {}
        self.features_: dict[int, Tensor] = {}  # of the last task's classes
        self._sources: dict[int, int] = {}  # whose features a class replays; derived, never stored

    @property
    def classes(self) -> list[int]:
        """The classes known so far."""
        return list(self.means_)

    def learn(self, task: Task, rng: torch.Generator) -> None:
        """Take the mean of each new class, and its features in place of the last task's."""
        self.features_ = {label: task.of(label) for label in task.classes}
        self.means_ = self.means_ | {label: x.mean(dim=0) for label, x in self.features_.items()}
        self._sources = {}

    def sample(self, label: int, count: int, rng: torch.Generator) -> Tensor:
        """Draw from the features of the last task, moved to the class if it is an older one."""
        if not self._sources:
            self._sources = self._find_sources()
        source = self._sources[label]
        features = self.features_[source]
        drawn = torch.randint(len(features), (count,), generator=rng, device=rng.device)
        if source == label:
            return features[drawn]
        return features[drawn] - self.means_[source] + self.means_[label]

    def _find_sources(self) -> dict[int, int]:
        new = {label: self.means_[label] for label in self.features_}
        old = {label: mean for label, mean in self.means_.items() if label not in new}
        sources = {label: label for label in new}
        if old:
            nearest = nearest_by_cosine(stack(old), stack(new)).tolist()
            sources |= {label: list(new)[row] for label, row in zip(old, nearest, strict=True)}
        return sources

    def update(self, task: Task, count: int, rng: torch.Generator) -> None:
        """Move the mean; keep the features too if the class is one of the last task's."""
        (label,) = task.classes
        self.means_[label], _ = merge(self.means_[label], count, task.features)
        if label in self.features_:
            self.features_[label] = torch.cat([self.features_[label], task.features])
        self._sources = {}

    def forget(self, label: int) -> list[str]:
        """Nothing remains. Without features of the last task, classes are no more than means."""
        del self.means_[label]
        self.features_.pop(label, None)
        if not self.features_ and self.means_:
            last = list(self.means_)[-1]
            self.features_ = {last: self.means_[last][None]}
        self._sources = {}
        return []

    def tensors(self) -> dict[str, Tensor]:
        """Means of all classes, and features of the last task's."""
        features = {f"features.{label}": kept for label, kept in self.features_.items()}
        return {"means": stack(self.means_)} | features

    def components(self) -> list[Component]:
        """Means, and features that the paper does not count."""
        if not self.means_:
            return []
        dim = len(next(iter(self.means_.values())))
        kept = sum(len(features) for features in self.features_.values())
        return accounting.fetril(dim, len(self.means_), kept)


def nearest_by_cosine(points: Tensor, candidates: Tensor) -> Tensor:
    """For each point (n, d) the row of the candidate (k, d) in the most similar direction.

    >>> nearest_by_cosine(torch.tensor([[9.0, 1.0]]), torch.tensor([[9.0, 9.0], [1.0, 0.0]]))
    tensor([1])
    """
    return (unit(points) @ unit(candidates).T).argmax(dim=1)
