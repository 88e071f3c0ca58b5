"""What the defaults were chosen by. Run with ``python -m lab.benchmarks.choices``.

1. Whether a factor memory's usual budget should grow beyond 200 classes: data sets of equally
   many features are taken together, at most 100 samples of a class, in twenty tasks.
2. How much the Bayes head's two settings matter, with all samples and with five of each class:
   ten tasks, the default memory. Ridge None is the default, which depends on their number.
3. What densities have to be raised to for the highest likelihood, times the root of the number of
   their coordinates: that is nearly constant, whatever the data and however many there are.

All is measured on a fifth of the training samples that nothing was learned from. Data sets that
are not in the folder that FRUGALVAE_DATA names (default: ``data``) are left out.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from frugalvae import FrugalClassifier, make_head, make_memory
from frugalvae.images.feature_file import Features, load_features
from frugalvae.model.confidence import fit_temperature
from frugalvae.parts.protocols import Replay, Task
from frugalvae_lab.bench.data_sources import in_data_folder
from frugalvae_lab.bench.tasks import split_classes
from frugalvae_lab.memories.factors import usual_budget

TOGETHER = {
    "clip_vit_b32": ("aircraft100", "ucf101", "cars196"),
    "efficientnet_lite0": ("cifar100", "cub200"),
}
OWN, RIDGES, SEEDS = (0.05, 0.1, 0.2, 0.5), (0.03, 0.1, 0.2, 0.5, 1.0, None), (0, 1, 2)
MOST, FEW = 100, 5  # samples of a class where data sets are taken together, and where few
WIDTHS = (16, 64, 256)

Setting = tuple[float, float | None]  # own, and ridge


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    sets = {encoder: load(encoder, names) for encoder, names in TOGETHER.items()}
    for parts in sets.values():
        if len(parts) > 1:
            many_classes(parts)
    everything = [features for parts in sets.values() for features in parts]
    print("all samples")
    shrinkage(everything)
    print(f"{FEW} samples of each class")
    shrinkage(everything, FEW)
    for features in everything:
        tempering(features)


def load(encoder: str, names: Sequence[str]) -> list[Features]:
    found = []
    for name in names:
        path = next(iter(in_data_folder(f"{name}-{encoder}.npz")), None)
        if path is None:
            print(f"{name}: skipped, {name}-{encoder}.npz is not in FRUGALVAE_DATA")
        else:
            found.append(load_features(path))
    return found


def many_classes(parts: list[Features]) -> None:
    """A budget that stays, one that grows, and streaming LDA."""
    scores: dict[str, list[float]] = defaultdict(list)
    for seed in SEEDS:
        features = joined([part.held_out(0.2, seed) for part in parts], MOST)
        dim, classes = features.x_train.shape[1], len(features.classes)
        stays = make_memory("factors", budget=usual_budget(dim, 200))
        for what, classifier in (
            ("a budget for 200", FrugalClassifier(stays)),
            ("the usual budget", FrugalClassifier()),
            ("streaming LDA", FrugalClassifier("none", "lda")),
        ):
            teach(classifier, features, tasks=20, seed=seed)
            scores[what].append(100 * classifier.score(features.x_test, features.y_test))
    for what, found in scores.items():
        mean, spread = statistics.mean(found), statistics.stdev(found)
        print(f"{classes} classes of {dim} features, {what}: {mean:.1f} ± {spread:.1f}", flush=True)


def joined(parts: list[Features], most: int) -> Features:
    """All classes of all parts, with so many training samples of each."""
    xs, ys, xs_test, ys_test = [], [], [], []
    for part in parts:
        for label in part.classes:
            name, rows, tests = f"{part.name} {label}", part.y_train == label, part.y_test == label
            xs.append(part.x_train[rows][:most])
            xs_test.append(part.x_test[tests])
            ys += [name] * len(xs[-1])
            ys_test += [name] * len(xs_test[-1])
    arrays = np.concatenate(xs), np.array(ys), np.concatenate(xs_test), np.array(ys_test)
    return Features("together", *arrays)


def shrinkage(sets: list[Features], most: int | None = None) -> None:
    """Learn once, and look with all settings."""
    found: dict[Setting, dict[str, float]] = defaultdict(dict)
    for features in sets:
        scores = []
        for seed in SEEDS:
            part = features.held_out(0.2, seed)
            scores.append(with_all_settings(joined([part], most) if most else part, seed))
        for setting in itertools.product(OWN, RIDGES):
            found[setting][features.name] = statistics.mean(score[setting] for score in scores)
    for (own, ridge), by_name in found.items():
        line = "  ".join(f"{name.split('-')[0]} {100 * by_name[name]:.1f}" for name in by_name)
        mean = 100 * statistics.mean(by_name.values())
        print(f"own {own:<4}  ridge {ridge!s:<4}  {line}  mean {mean:.1f}", flush=True)


def with_all_settings(features: Features, seed: int) -> dict[Setting, float]:
    classifier, rng = FrugalClassifier(), np.random.default_rng(0)
    teach(classifier, features, tasks=10, seed=seed)
    found = {}
    for own, ridge in itertools.product(OWN, RIDGES):
        head = make_head("bayes", own=own, ridge=ridge)
        head.learn(Task.empty(features.x_train.shape[1]), Replay(classifier.memory_, rng))
        asked = replace(classifier.model_, head=head)
        found[own, ridge] = float(np.mean(asked.predict(features.x_test) == features.y_test))
    return found


def tempering(features: Features) -> None:
    """The features themselves, and random projections to fewer."""
    part, rng = features.held_out(0.2, seed=0), np.random.default_rng(0)
    found = []
    for width in (*WIDTHS, features.x_train.shape[1]):
        basis = np.linalg.qr(rng.normal(size=(features.x_train.shape[1], width)))[0]
        fewer = replace(part, x_train=part.x_train @ basis, x_test=part.x_test @ basis)
        classifier = FrugalClassifier(head=make_head("bayes", tempering=1.0))
        teach(classifier, fewer, tasks=10, seed=0)
        column = {label: number for number, label in enumerate(classifier.classes_.tolist())}
        right = [column[label] for label in fewer.y_test.tolist()]
        logits = np.log(np.maximum(classifier.predict_proba(fewer.x_test), 1e-300))
        fitted = 1 / fit_temperature(logits, np.array(right))
        found.append(f"{width} features {fitted:.1f}")
    print(f"{features.name.split('-')[0]}: {', '.join(found)}", flush=True)


def teach(classifier: FrugalClassifier, features: Features, *, tasks: int, seed: int) -> None:
    for part in split_classes(features.classes, tasks, seed):
        rows = np.isin(features.y_train, part)
        classifier.partial_fit(features.x_train[rows], features.y_train[rows])


if __name__ == "__main__":
    main()
