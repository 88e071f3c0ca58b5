"""What a classifier expects of itself, beside new samples. ``python -m lab.benchmarks.expected``.

Each feature file in FRUGALVAE_DATA is taught in ten tasks, without a fifth of its training samples.
These are new samples that are like the taught ones: of them the promises are made. Test sets may
differ from what was taught. ``--small`` teaches 12 samples of 50 classes; ``--more`` shows what ten
more samples per class bring.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from frugalvae.images.feature_file import load_features
from frugalvae.maths.arrays import Array, held_out_rows
from frugalvae.model.model import Model, Recipe
from frugalvae_lab.bench.data_sources import in_data_folder

FILES = {
    "UCF-101": "ucf101-clip_vit_b32",
    "Aircraft-100": "aircraft100-clip_vit_b32",
    "Cars-196": "cars196-clip_vit_b32",
    "CUB-200": "cub200-efficientnet_lite0",
    "CIFAR-100": "cifar100-efficientnet_lite0",
}
TASKS, CLASSES, SAMPLES, MORE = 10, 50, 12, 10
ERRORS, COVERAGES = (0.02, 0.05, 0.1), (0.9, 0.95)


@dataclass
class Split:
    """Samples to teach, the order of their classes, and new ones: like them, and a test set."""

    order: Array
    x: Array
    y: Array
    new: tuple[Array, Array]
    test: tuple[Array, Array]

    def taught(self, most: int | None = None) -> Model:
        """A model that was taught in ten tasks, at most so many samples of each class."""
        model = Model(Recipe(calibrate=True))
        for part in np.array_split(self.order, TASKS):
            rows = [np.flatnonzero(self.y == label)[:most] for label in part]
            model = model.learn(self.x[np.concatenate(rows)], self.y[np.concatenate(rows)])
        return model


def splits(names: list[str], seeds: list[int], small: bool) -> Iterator[tuple[str, int, Split]]:
    for name in names:
        for path in in_data_folder(f"{FILES[name]}.npz"):
            features = load_features(path)
            for seed in seeds:
                rng, y = np.random.default_rng(seed), features.y_train
                out = held_out_rows(y, 0.2, seed)
                order = rng.permutation(np.unique(y))[: CLASSES if small else None]
                kept = rng.permutation(np.flatnonzero(~out & np.isin(y, order)))
                new, test = out & np.isin(y, order), np.isin(features.y_test, order)
                yield (
                    name,
                    seed,
                    Split(
                        order,
                        features.x_train[kept],
                        y[kept],
                        (features.x_train[new], y[new]),
                        (features.x_test[test], features.y_test[test]),
                    ),
                )


def shares(model: Model, x: Array, y: Array) -> tuple[Array, Array]:
    """Whether each sample is classified correctly, and the share of each class."""
    right = model.predict(x) == y
    return right, np.array([right[y == label].mean() for label in model.classes])


def most_covered(model: Model, x: Array, right: Array, error: float) -> float:
    """The share of answers if a threshold of the probability was chosen by these very samples."""
    order = np.argsort(-model.predict_proba(x).max(axis=1), kind="stable")
    wrong = np.cumsum(~right[order]) / np.arange(1, len(order) + 1)
    kept = np.flatnonzero(wrong <= error)
    return float(kept[-1] + 1) / len(order) if len(kept) else 0.0


def accuracy_row(model: Model, split: Split) -> str:
    forecast = model.forecast
    assert forecast is not None
    new, of_classes = shares(model, *split.new)
    test, of_test = shares(model, *split.test)
    expected = np.array([model.expected_accuracy()[label] for label in model.classes.tolist()])
    low, high = forecast.interval
    agreements = [np.corrcoef(expected, found)[0, 1] for found in (of_classes, of_test)]
    return (
        f"{forecast.accuracy:.1%} ({100 * low:.0f} to {100 * high:.0f}) | {new.mean():.1%} | "
        f"{test.mean():.1%} | {agreements[0]:.2f} | {agreements[1]:.2f}"
    )


def promise_row(model: Model, split: Split) -> str:
    x, y = split.new
    right = model.predict(x) == y
    cells = []
    for error in ERRORS:
        sure = model.is_reliable(x, error)
        wrong = f"{(~right[sure]).mean():.1%}" if sure.any() else "none"
        best = most_covered(model, x, right, error)
        cells.append(f"{wrong} of {sure.mean():.0%} ({best:.0%})")
    for coverage in COVERAGES:
        sets = model.predict_set(x, coverage)
        held = np.mean([label in found for found, label in zip(sets, y.tolist(), strict=True)])
        cells.append(f"{held:.1%} with {np.mean([len(found) for found in sets]):.1f}")
    return " | ".join(cells)


def more_row(split: Split) -> str | None:
    """What ten more samples per class bring, and were expected to."""
    counts = np.unique(split.y, return_counts=True)[1]
    fewer = int(np.median(counts)) - MORE
    if fewer < 2:
        return None
    fewer = min(fewer, 2 * MORE)
    before, after = split.taught(fewer), split.taught(fewer + MORE)
    forecast = before.forecast
    assert forecast is not None
    real = shares(after, *split.new)[0].mean() - shares(before, *split.new)[0].mean()
    expected = forecast.with_more(MORE).accuracy - forecast.accuracy
    return f"{fewer} | {100 * expected:+.1f} | {100 * real:+.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(FILES)}")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--more", action="store_true")
    options = parser.parse_args()
    if strange := {*options.names} - {*FILES}:
        parser.error(f"there is no {min(strange)!r}; expected some of {', '.join(FILES)}")
    options.names = options.names or list(FILES)
    if options.more:
        print("| | seed | samples | expected | real |\n| --- | --- | --- | --- | --- |")
        for name, seed, split in splits(options.names, options.seeds, options.small):
            row = more_row(split)
            if row:
                print(f"| {name} | {seed} | {row} |", flush=True)
        return
    errors = " | ".join(f"{error:.0%} wrong" for error in ERRORS)
    sets = " | ".join(f"sets {coverage:.0%}" for coverage in COVERAGES)
    print(f"| | seed | expected | new | test | agreement | with test | {errors} | {sets} |")
    print("| --- " * (7 + len(ERRORS) + len(COVERAGES)) + "|")
    for name, seed, split in splits(options.names, options.seeds, options.small):
        model = split.taught(SAMPLES if options.small else None)
        print(
            f"| {name} | {seed} | {accuracy_row(model, split)} | {promise_row(model, split)} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
