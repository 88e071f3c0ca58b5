"""Are probabilities right, and are unknown classes noticed? Measured on real features.

``python -m lab.benchmarks.confidence``: half of the classes are taught in five tasks; test samples
of the other half are unknown. For each data set and memory, over seeds:

- AUROC of known against unknown test samples, by ``familiarity``, by the distance to the nearest
  class mean (the familiarity of other memories, and of earlier versions), and by the largest
  probability;
- the part of known and of unknown test samples that ``knows`` refuses at 0.05, and of
  known ones if quantiles were those of replayed samples;
- expected calibration error in 15 bins, at temperature 1, at one fitted on replay, and
  at the one that ``calibrate=True`` fits.

Feature files are looked for in the folder that FRUGALVAE_DATA names (default: ``data``). With
``--held-out`` nothing of the test set is used: classes and samples of the training set are held
out instead, as was done to choose among scores.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from frugalvae import FrugalClassifier, make_head, make_memory
from frugalvae.images.feature_file import Features, load_features
from frugalvae.model.confidence import (
    Calibration,
    DistanceReference,
    TaughtNovelty,
    fit_temperature,
)
from frugalvae.model.model import Model
from frugalvae.parts.protocols import Replay
from frugalvae_lab.bench.data_sources import data_folder

DATA = [
    "ucf101-clip_vit_b32",
    "cars196-clip_vit_b32",
    "aircraft100-clip_vit_b32",
    "cub200-efficientnet_lite0",
    "cifar100-efficientnet_lite0",
]
PARTS: dict[str, tuple[Any, str]] = {
    "moments": ("moments", "bayes"),
    "factors": ("factors", "bayes"),
    "gaussian-shared": ("gaussian-shared", "cosine"),
    "vae-fo": (make_memory("vae-fo", max_steps=120), "cosine"),
    "lda": ("none", "lda"),
    "nearest-mean": ("gaussian-diagonal", "nearest-mean"),
}
BINS, THRESHOLD, TASKS = 15, 0.05, 5


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--data", nargs="+", default=DATA)
    options.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    options.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    options.add_argument("--held-out", action="store_true")
    chosen = options.parse_args()
    warnings.simplefilter("ignore")
    for name in chosen.data:
        path = data_folder() / f"{name}.npz"
        if not path.exists():
            print(f"{path} is not there; set FRUGALVAE_DATA to a folder of feature files")
            continue
        features = load_features(path)
        for parts in chosen.parts:
            runs = [measure(features, parts, seed, chosen.held_out) for seed in chosen.seeds]
            print(f"{name}, {parts}: {table(runs)}", flush=True)


def table(runs: list[dict[str, float]]) -> str:
    values = {key: np.array([run[key] for run in runs]) for key in runs[0]}
    return "; ".join(f"{key} {v.mean():.3f} ± {v.std():.3f}" for key, v in values.items())


def measure(features: Features, parts: str, seed: int, held_out: bool) -> dict[str, float]:
    order = np.random.default_rng(seed).permutation(features.classes)
    known, unknown = np.array_split(order, 2)
    if held_out:
        features = features.held_out(0.25, seed)
        known, unknown = np.array_split(known, 2)
    classifier = taught(features, parts, known, seed)
    of_known, of_unknown = (np.isin(features.y_test, half) for half in (known, unknown))
    x, y = features.x_test[of_known], features.y_test[of_known]
    found = {"accuracy": float(np.mean(classifier.predict(x) == y))}
    if classifier.memory_.arrays():
        found |= dict(noticed(classifier, x, features.x_test[of_unknown]))
    return found | dict(calibrated(classifier, x, y))


def taught(features: Features, parts: str, classes: NDArray[Any], seed: int) -> FrugalClassifier:
    """After five tasks, of which only the last needs a head and a temperature."""
    memory, head = PARTS[parts]
    classifier = FrugalClassifier(memory, make_head(head), random_state=seed)
    *earlier, last = (np.isin(features.y_train, part) for part in np.array_split(classes, TASKS))
    for rows in earlier:
        classifier.partial_fit(features.x_train[rows], features.y_train[rows], defer_head=True)
    classifier.calibrate = True
    return classifier.partial_fit(features.x_train[last], features.y_train[last])


def noticed(
    classifier: FrugalClassifier, known: NDArray[Any], unknown: NDArray[Any]
) -> Iterator[tuple[str, float]]:
    by_distance = DistanceReference(classifier.memory_, np.random.default_rng(0))
    scores = {
        "familiarity": classifier.familiarity,
        "distance": lambda x: -by_distance.novelty(x),
        "probability": lambda x: classifier.predict_proba(x).max(axis=1),
    }
    truth = np.repeat([1, 0], [len(known), len(unknown)])
    for name, score in scores.items():
        yield f"AUROC {name}", float(roc_auc_score(truth, score(np.concatenate([known, unknown]))))
    yield "known refused", 1 - float(classifier.is_known(known, THRESHOLD).mean())
    yield "unknown refused", 1 - float(classifier.is_known(unknown, THRESHOLD).mean())
    by_replay = replace(classifier.model_, taught_novelty=TaughtNovelty())
    yield "known refused by replay", float(np.mean(by_replay.familiarity(known) < THRESHOLD))


def calibrated(
    classifier: FrugalClassifier, x: NDArray[Any], y: NDArray[Any]
) -> Iterator[tuple[str, float]]:
    model, fitted = classifier.model_, classifier.calibration_
    temperatures = {"1": 1.0}
    if classifier.memory_.arrays():
        replay, columns = Replay(classifier.memory_, np.random.default_rng(0)).draw(64)
        order = np.argsort(np.argsort(classifier.memory_.classes))
        temperatures["of replay"] = fit_temperature(model.logits(replay), order[columns])
    temperatures["calibrated"] = fitted.temperature
    for name, temperature in temperatures.items():
        asked = replace(model, calibration=Calibration(temperature))
        yield f"ECE {name}", calibration_error(asked, x, y)
    yield "temperature", fitted.temperature


def calibration_error(model: Model, x: NDArray[Any], y: NDArray[Any]) -> float:
    """Mean distance of confidence and accuracy, over bins of equal width."""
    probabilities = model.predict_proba(x)
    right = model.classes[probabilities.argmax(axis=1)] == y
    sure = probabilities.max(axis=1)
    bins = np.minimum((sure * BINS).astype(int), BINS - 1)
    gaps = [abs((right[bins == b] - sure[bins == b]).sum()) for b in range(BINS)]
    return float(sum(gaps) / len(y))


if __name__ == "__main__":
    main()
