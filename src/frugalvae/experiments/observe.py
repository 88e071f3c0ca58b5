"""What the paper's figures look at while a memory learns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from frugalvae.memories import make_memory
from frugalvae.priors import Placement, Prior, make_prior

if TYPE_CHECKING:
    from frugalvae.experiments.run import Record
    from frugalvae.learner import FrugalClassifier
    from frugalvae.memories.base import Memory


class Observer:
    """Looks at nothing."""

    def __init__(self) -> None:
        self.observed: dict[str, Any] = {}

    def memory(self, name: str, settings: dict[str, Any]) -> Memory:
        """The memory to observe."""
        return make_memory(name, **settings)

    def after_task(self, classifier: FrugalClassifier, record: Record) -> None:
        """Called after each task."""


class LayoutObserver(Observer):
    """Draws from the prior of every class so far, laid out on a plane after each task.

    ``observed["tasks"]`` has, for each task, the points of each class known by then.
    """

    draws, most_tasks = 20, 6

    def after_task(self, classifier: FrugalClassifier, record: Record) -> None:
        """Lay out the classes so far."""
        from sklearn.manifold import TSNE

        panels = self.observed.setdefault("tasks", [])
        if len(panels) == self.most_tasks:
            return
        means: dict[int, Tensor] = classifier.memory_.means_  # type: ignore[attr-defined]
        rng = torch.Generator().manual_seed(0)
        stacked = torch.stack(list(means.values())).cpu()
        noise = torch.empty(len(means), self.draws, stacked.shape[1]).normal_(generator=rng)
        points = (stacked[:, None] + noise).flatten(0, 1)
        layout = TSNE(
            init="pca", perplexity=min(15, len(points) / 3), random_state=0
        ).fit_transform(points.numpy())
        panels.append(
            [
                {"task": int(task), "points": [[round(float(v), 2) for v in p] for p in part]}
                for task, part in zip(
                    classifier.task_of_class_,
                    layout.reshape(len(means), self.draws, 2),
                    strict=True,
                )
            ]
        )


@dataclass(frozen=True)
class WatchedPrior:
    """A prior that notes where means started and where they came to stand."""

    prior: Prior
    placements: list[dict[str, Any]] = field(default_factory=list, compare=False)

    def place(self, latent_means: Tensor, fixed: Tensor, rng: torch.Generator) -> Placement:
        """As the prior itself does."""
        placement = self.prior.place(latent_means, fixed, rng)
        self.placements.append(
            {
                "old": fixed.tolist(),
                "start": latent_means.tolist(),
                "end": placement.means.tolist(),
            }
        )
        return placement

    def __deepcopy__(self, memo: dict[int, Any]) -> WatchedPrior:
        return self  # copies of the memory tell the same observer


class PlacementObserver(Observer):
    """Where the Gaussians of each task stand before and after the fixed-point iteration."""

    def memory(self, name: str, settings: dict[str, Any]) -> Memory:
        """The memory with its prior watched."""
        watched = WatchedPrior(make_prior(settings.get("prior", "fpi")))
        self.observed["tasks"] = watched.placements
        return make_memory(name, **{**settings, "prior": watched})


def make_observer(name: str | None) -> Observer:
    """The observer that a kind of figure needs."""
    return {"tsne": LayoutObserver, "placement": PlacementObserver}.get(name or "", Observer)()
