"""How much the Bayes head's two settings matter. Run with ``python -m benchmarks.shrinkage``.

Ten tasks, the default memory, measured on a fifth of the training samples that it did not learn.
Data sets that are not in the folder that FRUGALVAE_DATA names (default: ``data``) are left out.
"""

from __future__ import annotations

import itertools
import statistics
from collections import defaultdict

import numpy as np

from frugalvae import FrugalClassifier
from frugalvae.data.catalogue import in_data_folder
from frugalvae.data.features import Features, load_features
from frugalvae.data.stream import split_classes
from frugalvae.heads.bayes import BayesHead
from frugalvae.tasks import Replay, Task

FILES = (
    "cifar100-efficientnet_lite0",
    "cub200-efficientnet_lite0",
    "aircraft100-clip_vit_b32",
    "ucf101-clip_vit_b32",
    "cars196-clip_vit_b32",
)
OWN, RIDGES, SEEDS = (0.05, 0.1, 0.2, 0.5), (0.03, 0.1, 0.2, 0.5), (0, 1, 2)


def main() -> None:
    found: dict[tuple[float, float], dict[str, float]] = defaultdict(dict)
    for name in FILES:
        path = next(iter(in_data_folder(f"{name}.npz")), None)
        if path is None:
            print(f"{name}: skipped, it is not in FRUGALVAE_DATA")
            continue
        scores = [accuracies(load_features(path).held_out(0.2, seed=seed), seed) for seed in SEEDS]
        for setting in itertools.product(OWN, RIDGES):
            found[setting][name] = statistics.mean(score[setting] for score in scores)
    for (own, ridge), by_name in found.items():
        line = "  ".join(f"{name.split('-')[0]} {100 * by_name[name]:.1f}" for name in by_name)
        mean = 100 * statistics.mean(by_name.values())
        print(f"own {own:<4}  ridge {ridge:<4}  {line}  mean {mean:.1f}", flush=True)


def accuracies(features: Features, seed: int) -> dict[tuple[float, float], float]:
    """Learn once, and look with all settings."""
    classifier = FrugalClassifier()
    for part in split_classes(features.classes, 10, seed):
        rows = np.isin(features.y_train, part)
        classifier.partial_fit(features.x_train[rows], features.y_train[rows])
    found = {}
    for own, ridge in itertools.product(OWN, RIDGES):
        head = BayesHead(own=own, ridge=ridge)
        replay = Replay(classifier.memory_, classifier._generator("head", 0))
        head.learn(Task.empty(features.x_train.shape[1]), replay)
        classifier.head_ = head
        found[own, ridge] = float(classifier.score(features.x_test, features.y_test))
    return found


if __name__ == "__main__":
    main()
