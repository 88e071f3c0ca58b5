"""Unknown samples, noticed by one threshold for all classes or by one for each.

    FRUGALVAE_DATA=folder python -m lab.benchmarks.thresholds [--seeds 0 1] [DATA ...]

Only training sets are looked at. Half of the classes are taught, with three fifths of their samples
(at most 60 per class). A fifth tells how novel samples look that are taken for each class; their
mean, drawn towards that of all classes by ``n / (n + prior)``, is taken off. The last fifth is
known, samples of the other classes are unknown: the area under the ROC curve, in percent. What a
class leads to expect is taken off already, in closed form (:mod:`frugalvae.moments.held_out`).
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.metrics import roc_auc_score

from frugalvae import FrugalClassifier
from frugalvae.images.feature_file import Features
from frugalvae.maths.arrays import Array
from frugalvae.model.confidence import novelty_reference
from frugalvae_lab.bench.data_sources import find_data
from lab.benchmarks.shots import DATA

PRIORS = (2, 5, 20)  # samples that the mean of all classes counts as
MOST = 100  # samples per class that are split


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", nargs="*", default=DATA)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    options = parser.parse_args()
    found, absent = find_data(options.data, {})
    for name, reason in absent.items():
        print(f"skipped: {name}: {reason}")
    head = ["", "one for all", *(f"per class, prior {prior}" for prior in PRIORS)]
    print("| " + " | ".join(head) + " |\n|" + " --- |" * len(head), flush=True)
    for name, source in found.items():
        runs = [areas(source.data, seed) for seed in options.seeds]
        cells = [f"{100 * area:.1f}" for area in np.mean(runs, axis=0)]
        print("| " + " | ".join([name, *cells]) + " |", flush=True)


def areas(data: Features, seed: int) -> list[float]:
    """The area with one threshold for all, and with thresholds per class by each prior."""
    rng = np.random.default_rng(seed)
    known, unknown = np.array_split(rng.permutation(data.classes), 2)
    rows = [rng.permutation(np.flatnonzero(data.y_train == label))[:MOST] for label in known]
    split = [np.split(own, [len(own) * 3 // 5, len(own) * 4 // 5]) for own in rows]
    taught, measured, asked = (np.concatenate(part) for part in zip(*split, strict=True))
    others = rng.permutation(np.flatnonzero(np.isin(data.y_train, unknown)))[: 2 * len(asked)]
    classifier = FrugalClassifier().fit(data.x_train[taught], data.y_train[taught])
    reference = novelty_reference(classifier.memory_, rng)
    found = {}
    for part, chosen in {"measured": measured, "known": asked, "unknown": others}.items():
        x = data.x_train[chosen]
        columns = classifier.predict_proba(x).argmax(axis=1)
        found[part] = reference.novelty(x), columns
    return [area(found, prior, len(known)) for prior in (np.inf, *PRIORS)]


def area(found: dict[str, tuple[Array, Array]], prior: float, classes: int) -> float:
    """Unknown samples against known ones, by novelty less what is usual of the class, drawn."""
    novelty, columns = found["measured"]
    sums = np.bincount(columns, novelty - novelty.mean(), classes)
    usual = sums / (np.bincount(columns, minlength=classes) + prior)  # (k,)
    known, unknown = (values - usual[at] for values, at in (found["known"], found["unknown"]))
    truth = np.repeat([0, 1], [len(known), len(unknown)])
    return float(roc_auc_score(truth, np.concatenate([known, unknown])))


if __name__ == "__main__":
    main()
