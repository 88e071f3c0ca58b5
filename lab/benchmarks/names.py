"""What class names are worth: ``FRUGALVAE_DATA=folder python -m lab.benchmarks.names``.

Cars-196, whose feature file has the text feature of each class's name; three tables over seeds:

- ``few``: few samples per class in ten tasks, without names, with them, with names of other
  classes, and with noise;
- ``wrong``: the same, where only a part of the names is meaningless;
- ``alone``: a part of the classes is known by name alone, the others by up to 16 samples.

With ``--held-out``, a fifth of the training samples of each class is measured instead of the test
set: settings were chosen there.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frugalvae import FrugalClassifier, make_head
from frugalvae.images.feature_file import Features
from frugalvae_lab.bench.data_sources import find_data
from frugalvae_lab.bench.tasks import split_classes

Array = NDArray[Any]
Text = dict[Any, Array]
TASKS = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", nargs="+", default=["few", "wrong", "alone"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--held-out", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found, absent = find_data(["cars196"], {})
    for name, reason in absent.items():
        print(f"skipped: {name}: {reason}")
    for source in found.values():
        data = [
            source.data.held_out(0.2, seed) if options.held_out else source.data
            for seed in options.seeds
        ]
        for part in options.parts:
            {"few": few, "wrong": wrong, "alone": alone}[part](data, options.seeds)


def few(data: list[Features], seeds: list[int]) -> None:
    """All names are right, or all are wrong."""
    kinds = {"without names": None, "names": 0.0, "names of others": 1.0, "noise": 1.0}
    print("\n| samples | " + " | ".join(kinds) + " |\n|" + " --- |" * (1 + len(kinds)))
    for shots in (1, 2, 4, 8, 16):
        cells = [
            cell([right(one, shots, share, kind, s) for one, s in zip(data, seeds, strict=True)])
            for kind, share in kinds.items()
        ]
        print(f"| {shots} | " + " | ".join(cells) + " |", flush=True)


def wrong(data: list[Features], seeds: list[int]) -> None:
    """A part of the names is meaningless."""
    shares = (None, 0.25, 0.5, 0.75)
    print("\n| samples | names are | without | " + " | ".join(f"{s:.0%} wrong" for s in shares[1:]))
    print("|" + " --- |" * (2 + len(shares)))
    for shots in (1, 4, 16):
        for kind in ("names of others", "noise"):
            cells = [
                cell([right(one, shots, s, kind, k) for one, k in zip(data, seeds, strict=True)])
                for s in shares
            ]
            print(f"| {shots} | {kind} | " + " | ".join(cells) + " |", flush=True)


def alone(data: list[Features], seeds: list[int]) -> None:
    """Some classes have a name and no sample."""
    print("\n| classes by name alone | samples of others | all classes | with samples | by name |")
    print("|" + " --- |" * 5)
    for share in (0.2, 0.5, 1.0):
        for shots in (1, 4, 16) if share < 1 else (0,):
            found = [recalls(one, shots, share, s) for one, s in zip(data, seeds, strict=True)]
            cells = [cell(list(column)) for column in zip(*found, strict=True)]
            print(f"| {share:.0%} | {shots} | " + " | ".join(cells) + " |", flush=True)


def right(data: Features, shots: int, share: float | None, kind: str, seed: int) -> float:
    """Accuracy with so many samples per class; a share of names is wrong; None: without names."""
    rng = np.random.default_rng(seed)
    text = None if share is None else spoiled(data, share, kind, rng)
    clf = FrugalClassifier(head=make_head("bayes", names=text is not None))
    teach(clf, data, data.classes, shots, text, seed)
    return float(np.mean(clf.predict(data.x_test) == data.y_test))


def recalls(data: Features, shots: int, share: float, seed: int) -> tuple[float, float, float]:
    """Mean accuracy of all classes, of those with samples, and of those by name alone."""
    rng, text = np.random.default_rng(seed), names_of(data)
    named = rng.permutation(data.classes)[: round(share * len(data.classes))]
    seen = np.setdiff1d(data.classes, named)
    clf = FrugalClassifier()
    if len(seen):
        teach(clf, data, seen, shots, text, seed)
    clf.learn_names({label: text[label] for label in named.tolist()})
    hits = clf.predict(data.x_test) == data.y_test
    recall = np.array([hits[data.y_test == label].mean() for label in data.classes])
    by_name = np.isin(data.classes, named)
    return recall.mean(), recall[~by_name].mean() if len(seen) else np.nan, recall[by_name].mean()


def teach(
    clf: FrugalClassifier, data: Features, classes: Array, shots: int, text: Text | None, seed: int
) -> None:
    """Up to so many samples of each class, in ten tasks."""
    rng = np.random.default_rng(seed)
    kept = np.concatenate(
        [rng.permutation(np.flatnonzero(data.y_train == y))[:shots] for y in classes]
    )
    for task in split_classes(classes, TASKS, seed):
        rows = kept[np.isin(data.y_train[kept], task)]
        clf.partial_fit(data.x_train[rows], data.y_train[rows], text=text)


def names_of(data: Features) -> Text:
    assert data.text is not None
    return {label: np.asarray(data.text[label]) for label in data.classes.tolist()}


def spoiled(data: Features, share: float, kind: str, rng: np.random.Generator) -> Text:
    """Text features, of which a share is of other classes, or noise."""
    text = names_of(data)
    bad = rng.permutation(data.classes)[: round(share * len(data.classes))].tolist()
    other = {label: text[next_] for label, next_ in zip(bad, bad[1:] + bad[:1], strict=True)}
    noise = {label: rng.normal(size=len(text[label])) for label in bad}
    return text | (noise if kind == "noise" else other)


def cell(scores: list[float]) -> str:
    """Percent, over seeds."""
    if np.isnan(scores).any():
        return ""
    return f"{100 * np.mean(scores):.1f} ± {100 * np.std(scores):.1f}"


if __name__ == "__main__":
    main()
