"""What was taught apart and joined beside what was taught at once; and classes forgotten.

``python -m lab.benchmarks.halves``, for each data set, with the default memory:

- *halves*: the training samples of every class are split in two. Two classifiers are taught a
  half each, in ten tasks of their own order, saved, loaded and merged. Its answers on the test
  set are compared with those of one that was taught all samples, in ten tasks.
- *forgetting*: a class is forgotten, and what is left is compared with a classifier that never
  saw it: the distance of their shared covariances, relative to the norm of the second, and
  their answers on test samples of all other classes. Mean over ten classes; *whole* with a
  budget that cuts nothing, *cut* with one that cuts most rows of each class. ``untouched`` is
  what memory ``factors`` does: the class goes, and its samples stay in the shared covariance.

Feature files are looked for in the folder that FRUGALVAE_DATA names (default: ``data``).
"""

from __future__ import annotations

import argparse
import copy
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frugalvae import FrugalClassifier, make_memory
from frugalvae.images.feature_file import Features, load_features
from frugalvae_lab.bench.data_sources import CATALOGUE, data_folder
from frugalvae_lab.bench.tasks import split_classes

DATA = ["cifar100", "cub200", "aircraft100", "ucf101", "cars196"]
CUT = {512: "1MB", 1280: None}  # by the number of features; None is the default
WHOLE = {512: None, 1280: "100MB"}
FORGOTTEN, TASKS = 10, 10
LARGEST = 20_000_000  # features of all samples, for a memory that cuts nothing


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--data", nargs="+", default=DATA, choices=DATA)
    options.add_argument("--parts", nargs="+", default=["halves", "cut", "whole"])
    chosen = options.parse_args()
    warnings.simplefilter("ignore")
    for name in chosen.data:
        path = data_folder() / CATALOGUE[name].file
        if not path.exists():
            print(f"{path} is not there; set FRUGALVAE_DATA to a folder of feature files")
            continue
        features = load_features(path)
        for part in chosen.parts:
            if part == "whole" and features.x_train.size > LARGEST:
                print(f"{name}, whole: skipped, as rows of all samples would take gigabytes")
                continue
            row = halves(features) if part == "halves" else forgetting(features, part)
            print(f"| {CATALOGUE[name].title} | {part} | {' | '.join(row)} |", flush=True)


def taught(
    features: Features, rows: NDArray[Any], order: int = 0, budget: str | None = None
) -> FrugalClassifier:
    """A classifier that was taught some training samples in ten tasks."""
    classifier = FrugalClassifier(make_memory("moments", budget=budget))
    x, y = features.x_train[rows], features.y_train[rows]
    for classes in split_classes(np.unique(y), TASKS, order):
        member = np.isin(y, classes)
        classifier.partial_fit(x[member], y[member])
    return classifier


def halves(features: Features) -> list[str]:
    """Agreement, in memory and by way of files; accuracies of a half, merged, at once."""
    shuffled = np.random.default_rng(0).permutation(len(features.y_train))
    place = np.empty(len(shuffled), int)  # of a sample among those of its class
    for label in features.classes:
        mine = shuffled[features.y_train[shuffled] == label]
        place[mine] = np.arange(len(mine))
    one = taught(features, np.flatnonzero(place % 2 == 0), 1)
    two = taught(features, np.flatnonzero(place % 2 == 1), 2)
    at_once = taught(features, np.arange(len(place)))
    half = right(one, features)
    with tempfile.TemporaryDirectory() as folder:
        for number, classifier in enumerate((one, two)):
            classifier.save(Path(folder, f"{number}.frugal"))
        files = [FrugalClassifier.load(Path(folder, f"{number}.frugal")) for number in range(2)]
    expected = at_once.predict(features.x_test)
    one.merge(two)
    merged = files[0].merge(files[1])
    agreement = [(c.predict(features.x_test) == expected).mean() for c in (one, merged)]
    whole = "whole" if at_once.memory_.sums_.is_whole else "cut"
    accuracies = half, right(merged, features), right(at_once, features)
    return [whole, *(f"{100 * share:.2f}" for share in (*agreement, *accuracies))]


def right(classifier: FrugalClassifier, features: Features) -> float:
    """The share of test samples of known classes that are classified correctly."""
    tested = np.isin(features.y_test, classifier.classes_)
    x, y = features.x_test[tested], features.y_test[tested]
    return float((classifier.predict(x) == y).mean())


def forgetting(features: Features, form: str) -> list[str]:
    """Distances of covariances, then accuracies less that of one that never saw the class."""
    budget = (CUT if form == "cut" else WHOLE)[features.x_train.shape[1]]
    everything = np.arange(len(features.y_train))
    chosen = features.classes[:: max(1, len(features.classes) // FORGOTTEN)][:FORGOTTEN]
    full = taught(features, everything, budget=budget)
    found = [compared(features, full, label, budget) for label in chosen]
    assert full.memory_.sums_.is_whole == (form == "whole")
    distances, accuracies, agreement = np.array(found).mean(axis=0).reshape(3, 4)[:, 1:]
    said = [f"{distance:.1e}" for distance in distances]
    said += [f"{100 * difference:+.2f}" for difference in accuracies]
    return said + [f"{100 * share:.2f}" for share in agreement]


def compared(
    features: Features, full: FrugalClassifier, label: Any, budget: str | None
) -> list[Any]:
    """One that never saw a class beside: untouched scatter, forgotten, forgotten by samples."""
    others = np.flatnonzero(features.y_train != label)
    never = taught(features, others, budget=budget)
    ways = [never, untouched(full, label), copy.deepcopy(full), copy.deepcopy(full)]
    ways[2].forget(label)
    ways[3].forget(label, features.x_train[features.y_train == label])
    asked = features.x_test[features.y_test != label]
    expected, shared = never.predict(asked), covariance(never)
    distances = [np.linalg.norm(covariance(c) - shared) / np.linalg.norm(shared) for c in ways]
    base = right(never, features)
    accuracies = [right(c, features) - base for c in ways]
    return distances + accuracies + [(c.predict(asked) == expected).mean() for c in ways]


def covariance(classifier: FrugalClassifier) -> NDArray[np.float64]:
    """The covariance within classes that all of them share."""
    memory = classifier.memory_
    rows = np.concatenate(list(memory.sums_.roots.values())).astype(np.float64)
    scatter = rows.T @ rows if memory.sums_.is_whole else memory.sums_.scatter
    shared: NDArray[np.float64] = scatter / (sum(memory.counts_.values()) - len(memory.counts_))
    return shared


def untouched(full: FrugalClassifier, label: Any) -> FrugalClassifier:
    """A class forgotten as before: the covariance that all classes share stays as it was."""
    classifier = copy.deepcopy(full)
    before = covariance(classifier)
    classifier.forget(label)
    memory = classifier.memory_
    freedom = sum(memory.counts_.values()) - len(memory.counts_)
    memory.sums_.scatter, memory._derived = before * freedom, {}
    return classifier


if __name__ == "__main__":
    main()
