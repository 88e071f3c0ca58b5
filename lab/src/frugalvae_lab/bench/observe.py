"""Observers: what a run records besides accuracy, for figures and about samples."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from frugalvae.classifier import FrugalClassifier
from frugalvae.errors import InputError
from frugalvae_lab.bench.metrics import (
    NEIGHBOURS,
    precision_and_recall,
    relative_frechet_distance,
)
from frugalvae_lab.bench.specification import SAMPLE_MEASURES, Part

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from frugalvae.images.feature_file import Features
    from frugalvae.paper.placement import Placement, Prior
    from frugalvae.parts.protocols import Memory
    from frugalvae_lab.bench.run import Record

Samples = NDArray[np.float32]


class Observer:
    """Records nothing.

    Parameters
    ----------
    features
        What the run learns and tests.
    """

    def __init__(self, features: Features) -> None:
        self.features = features
        self.observed: dict[str, Any] = {}

    def memory(self, part: Part) -> Memory:
        """Make the memory to observe."""
        made: Memory = part.make()
        return made

    def after_task(self, classifier: FrugalClassifier, record: Record) -> None:
        """Observe the classifier after a task."""


class LayoutObserver(Observer):
    """Samples of the prior of each class so far, laid out on a plane by t-SNE after each task.

    ``observed["tasks"]`` has, for each task, the points of each class so far.
    """

    draws, most_tasks = 20, 6

    def after_task(self, classifier: FrugalClassifier, record: Record) -> None:
        """Lay out the classes so far."""
        from sklearn.manifold import TSNE

        panels = self.observed.setdefault("tasks", [])
        if len(panels) == self.most_tasks:
            return
        means = classifier.memory_.arrays()["means"]  # (k, latent)
        shape = len(means), self.draws, means.shape[1]
        noise = np.random.default_rng(0).standard_normal(shape, np.float32)
        points = (means[:, None] + noise).reshape(-1, means.shape[1])
        layout = TSNE(
            init="pca", perplexity=min(15, len(points) / 3), random_state=0
        ).fit_transform(points)
        panels.append(
            [
                {"task": int(task), "points": [[round(float(v), 2) for v in p] for p in part]}
                for task, part in zip(
                    classifier.model_.task_of_class,
                    layout.reshape(len(means), self.draws, 2),
                    strict=True,
                )
            ]
        )


@dataclass(frozen=True)
class WatchedPrior:
    """A prior that records where means started and where it placed them."""

    prior: Prior
    placements: list[dict[str, Any]] = field(default_factory=list, compare=False)

    def place(self, latent_means: Tensor, fixed: Tensor, rng: torch.Generator) -> Placement:
        """Place means as the prior does, and record it."""
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
        return self  # copies of the memory report to the same observer


class PlacementObserver(Observer):
    """Where the Gaussians of each task are before and after the fixed-point iteration."""

    def memory(self, part: Part) -> Memory:
        """Make the memory with a prior that records."""
        from frugalvae.paper.priors import make_prior

        watched = WatchedPrior(make_prior(part.given.get("prior", "fpi")))
        self.observed["tasks"] = watched.placements
        made: Memory = part.make(prior=watched)
        return made


class SampleObserver(Observer):
    """The quality of the samples that a memory replays, and whether they drift.

    After the last task, each class is sampled as often as it has test features, and both are
    compared: ``relative_frechet``, ``precision`` and ``recall``. A classifier trained on the
    real training features of all classes recognises a share of the samples
    (``sample_accuracy``) and of the test features (``real_accuracy``). ``drift`` is the
    relative Fréchet distance between samples of the first task's classes, drawn after the
    first and after the last task. ``drift_floor`` is that distance between two sets drawn
    after the first task, where nothing has drifted.

    ``observed["samples"]`` has the means over classes, ``observed["classes"]`` the measures
    per class, ``observed["left_out"]`` the classes with too few test features. For a memory
    that cannot be sampled, there is only ``observed["skipped"]``, the reason.
    """

    draws = 256

    def after_task(self, classifier: FrugalClassifier, record: Record) -> None:
        """Sample after the first task, and measure after the last."""
        if len(record.accuracy) == 1:
            self._start(classifier)
        if len(record.accuracy) == len(record.tasks) and "skipped" not in self.observed:
            self._measure(classifier)

    def _start(self, classifier: FrugalClassifier) -> None:
        try:
            self.early, self.early_twin = (self._first_classes(classifier, turn) for turn in (0, 1))
        except InputError as error:
            self.observed["skipped"] = str(error)

    def _first_classes(self, classifier: FrugalClassifier, turn: int) -> dict[Any, Samples]:
        labels = classifier.classes_[classifier.task_of_class_ == 0]
        return {label: _draw(classifier, label, self.draws, turn) for label in labels}

    def _measure(self, classifier: FrugalClassifier) -> None:
        x, y = self.features.x_test, self.features.y_test
        judge = FrugalClassifier("store-all", "cosine")
        judge.fit(self.features.x_train, self.features.y_train)
        classes: dict[Any, dict[str, float]] = {}
        for label in classifier.classes_:
            real, classes[label] = x[y == label], {}
            if len(real) > NEIGHBOURS:
                samples = _draw(classifier, label, len(real), turn=2)
                classes[label] = _quality(real, samples, label, judge)
        left_out = [label for label, found in classes.items() if not found]
        for label, later in self._first_classes(classifier, turn=3).items():
            for name, other in (("drift", later), ("drift_floor", self.early_twin[label])):
                classes[label][name] = relative_frechet_distance(self.early[label], other)
        means = _means(list(classes.values()))
        self.observed |= {"samples": means, "classes": classes, "left_out": left_out}


def _draw(classifier: FrugalClassifier, label: Any, count: int, turn: int) -> Samples:
    """Samples with a seed that no other turn of any run uses."""
    return classifier.sample(
        label, count, random_state=4 * classifier.model_.recipe.random_state + turn
    )


def _quality(
    real: Samples, samples: Samples, label: Any, judge: FrugalClassifier
) -> dict[str, float]:
    """The measures of one class; ``judge`` was trained on real features."""
    precision, recall = precision_and_recall(real, samples)
    return {
        "relative_frechet": relative_frechet_distance(real, samples),
        "precision": precision,
        "recall": recall,
        "sample_accuracy": float(np.mean(judge.predict(samples) == label)),
        "real_accuracy": float(np.mean(judge.predict(real) == label)),
    }


def _means(classes: list[dict[str, float]]) -> dict[str, float]:
    """Each measure's mean over the classes that have it."""
    found = {
        name: [measures[name] for measures in classes if name in measures]
        for name in SAMPLE_MEASURES
    }
    return {name: float(np.mean(values)) for name, values in found.items() if values}


OBSERVERS = {"tsne": LayoutObserver, "placement": PlacementObserver, "samples": SampleObserver}


def make_observer(name: str | None, features: Features) -> Observer:
    """The observer of a kind of figure, or of samples; by default one that records nothing."""
    return OBSERVERS.get(name or "", Observer)(features)
