"""Few, many and unequal samples per class: the default and simpler rules, on held-out samples.

    FRUGALVAE_DATA=folder python -m lab.benchmarks.shots [--test] [--seeds 0 1] [NAME[=FILE] ...]

Without ``--test``, a fifth of the training samples of each class is held out and nothing else is
looked at: settings were chosen there. With it, the test sets are measured. Four tables: every
class has as many samples; a fifth of the classes has few and the others all; all samples, but
classes that are alike are joined until few are left, broad ones and narrow ones (mean over
classes, and over samples); CIFAR-100 with a long tail, of 500 samples down to 5. Each cell is
taught at once.

Calibration error is the gap between stated probability and accuracy in 15 bins, without
``calibrate``; in brackets, the gap that exact probabilities would show with as few samples. That of
rare classes is measured on samples of these alone, and on answers that name one. In the long tail,
the fifth of the classes with the fewest samples is rare.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping

import numpy as np
from sklearn.cluster import AgglomerativeClustering

from frugalvae import FrugalClassifier
from frugalvae.maths.arrays import Array, signed_root, unit
from frugalvae.maths.gaussians import RunningSums
from frugalvae.moments.rule import Moments, SharedCovariance
from frugalvae_lab.bench.data_sources import find_data, parse_data

DATA = ("ucf101", "aircraft100", "cars196", "cub200", "cifar100")
SHOTS = (1, 2, 4, 8, 16, 32, None)
RARE = (1, 2, 3, 5, 10)
COARSE = (2, 5, 10, 20)
#: Of the mean over samples and over classes, rare and other ones.
SHOWN = {"equal": "{0:.1f}", "coarse": "{1:.1f} ({0:.1f})"}
TABLES = {"equal": SHOTS, "rare": RARE, "coarse": COARSE, "tail": (100,)}

#: Probabilities (n, k) of test rows, from training samples.
Rule = Callable[[Array, Array, Array], Array]


def taught(memory: str, head: str) -> Rule:
    def rule(x: Array, y: Array, test: Array) -> Array:
        return FrugalClassifier(memory, head).fit(x, y).predict_proba(test)

    return rule


def centred_cosine(x: Array, y: Array, test: Array) -> Array:
    """Nearest class mean by the cosine around the mean of all classes."""
    x, test = _mapped(x, test)
    means = np.stack([x[y == label].mean(axis=0) for label in np.unique(y)])
    centre = means.mean(axis=0)
    similar = unit(test - centre) @ unit(means - centre).T
    return np.exp(similar) / np.exp(similar).sum(axis=1, keepdims=True)


def corrected(x: Array, y: Array, test: Array) -> Array:
    """Shared covariance; the squared distance of a class is less by what its mean is off."""
    x, test = _mapped(x, test)
    labels, counts = np.unique(y, return_counts=True)
    sums = [RunningSums.of(x[y == label].astype(np.float64)) for label in labels]
    means = np.stack([part.mean for part in sums])
    scatter = sum(part.scatter for part in sums)
    none = np.empty((0, x.shape[1])), np.empty(0, int)
    known = Moments(counts, means, scatter, *none, other_means=np.empty((len(labels), 0)))
    shared = SharedCovariance.of(known, ridge=max(0.03, x.shape[1] / len(x)))
    white, test = shared.whiten(means), shared.whiten(test.astype(np.float64))
    distances = (test**2).sum(1)[:, None] - 2 * test @ white.T + (white**2).sum(1)
    scores = -(distances - shared.noise * x.shape[1] / counts) / 2
    scores = 3 / x.shape[1] ** 0.5 * (scores - scores.max(axis=1, keepdims=True))
    return np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)


RULES: Mapping[str, Rule] = {
    "shared covariance": taught("gaussian-shared", "bayes"),
    "streaming LDA": taught("none", "lda"),
    "factors": taught("factors", "bayes"),
    "centred cosine": centred_cosine,
    "corrected distance": corrected,
    "**default**": taught("moments", "bayes"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="*", default=DATA)
    parser.add_argument("--test", action="store_true", help="measure on the test sets")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--only", choices=list(TABLES))
    parser.add_argument("--rules", nargs="+", choices=list(RULES), default=list(RULES))
    options = parser.parse_args()
    given = parse_data(options.data)
    found, absent = find_data(list(given), {name: path for name, path in given.items() if path})
    for name, reason in absent.items():
        print(f"skipped: {name}: {reason}")
    for name, source in found.items():
        data = source.data
        for kind in TABLES:
            if options.only in (None, kind) and (kind != "tail" or name == "cifar100"):
                parts = {title: RULES[title] for title in options.rules}
                cells(name, data, kind, parts, options.seeds, options.test)


def cells(
    name: str,
    data: object,
    kind: str,
    rules: Mapping[str, Rule],
    seeds: list[int],
    test: bool,
) -> None:
    """One line per number of samples."""
    print(f"\n### {name}, {kind}\n", flush=True)
    errs: tuple[str, ...] = ("ECE",)
    if kind in ("rare", "tail"):
        errs += ("ECE of rare classes", "ECE of answers that name one")
    judged = [title for title in ("**default**", "factors") if title in rules]
    head = ["classes" if kind == "coarse" else "samples", *rules]
    head += [f"{err}, {title}, %" for title in judged for err in errs]
    print("| " + " | ".join(head) + " |\n|" + " --- |" * len(head), flush=True)
    for setting in TABLES[kind]:
        parts = [split(data, kind, setting, seed, test) for seed in seeds]
        if any(part is None for part in parts):
            continue
        row, errors = [], {}
        for title, rule in rules.items():
            found = []
            for x, y, test_x, test_y, rare in parts:
                probabilities = rule(x, y, test_x)
                labels = np.unique(y)
                right = labels[probabilities.argmax(axis=1)] == test_y
                recalls = np.array([right[test_y == label].mean() for label in labels])
                few = np.isin(labels, rare)
                sure, answers = probabilities.max(axis=1), labels[probabilities.argmax(axis=1)]
                of_few, named = np.isin(test_y, rare), np.isin(answers, rare)
                found.append(
                    [
                        right.mean(),
                        recalls.mean(),
                        *([recalls[few].mean(), recalls[~few].mean()] if few.any() else [0, 0]),
                        calibration_error(sure, right),
                        calibration_error(sure[of_few], right[of_few]),
                        calibration_error(sure[named], right[named]),
                        by_chance(sure),
                        by_chance(sure[of_few]),
                        by_chance(sure[named]),
                    ]
                )
            mean = 100 * np.mean(found, axis=0)
            shown = SHOWN.get(kind, "{1:.1f} ({2:.1f} / {3:.1f})")
            row.append(shown.format(*mean))
            gaps = zip(mean[4 : 4 + len(errs)], mean[7:], strict=False)
            errors[title] = [f"{error:.1f} ({chance:.1f})" for error, chance in gaps]
        more = [error for title in judged for error in errors[title]]
        print("| " + " | ".join([str(setting or "all"), *row, *more]) + " |", flush=True)


def split(data: object, kind: str, setting: int | None, seed: int, test: bool) -> tuple | None:
    """Training and measuring samples, and the classes that are rare; None if there are too few."""
    x, y = data.x_train.astype(np.float32), data.y_train
    rng = np.random.default_rng(seed)
    if test:
        test_x, test_y = data.x_test.astype(np.float32), data.y_test
    else:
        out = np.zeros(len(y), bool)
        for label in np.unique(y):
            own = rng.permutation(np.flatnonzero(y == label))
            out[own[: min(max(1, len(own) // 5), 25)]] = True
        x, y, test_x, test_y = x[~out], y[~out], x[out], y[out]
    if kind == "coarse":
        groups = alike(x, y, setting)
        joined, test_joined = (np.vectorize(groups.get)(each) for each in (y, test_y))
        return x, joined, test_x, test_joined, np.empty(0, int)
    labels, counts = np.unique(y, return_counts=True)
    rare, wanted = np.empty(0, y.dtype), dict.fromkeys(labels.tolist(), setting)
    if kind == "equal" and setting is not None and setting > np.median(counts):
        return None
    if kind == "rare":
        rare = rng.permutation(labels)[: len(labels) // 5]
        wanted = {label: setting if label in rare else None for label in labels.tolist()}
    if kind == "tail":  # from all samples down to a hundredth of them
        falling = np.linspace(0, 1, len(labels))
        wanted = {
            label: max(1, int(counts.max() * setting**-share))
            for label, share in zip(rng.permutation(labels).tolist(), falling, strict=True)
        }
        rare = np.array(sorted(wanted, key=lambda label: wanted[label])[: len(labels) // 5])
    kept = np.concatenate(
        [rng.permutation(np.flatnonzero(y == label))[: wanted[label]] for label in labels.tolist()]
    )
    return x[kept], y[kept], test_x, test_y, rare


def alike(x: Array, y: Array, groups: int) -> dict[object, int]:
    """The group of each class: classes whose means point the same way are joined."""
    labels = np.unique(y)
    means = unit(np.stack([x[y == label].mean(axis=0) for label in labels]))
    found = AgglomerativeClustering(groups).fit_predict(means)
    return dict(zip(labels.tolist(), found.tolist(), strict=True))


def calibration_error(sure: Array, right: Array, bins: int = 15) -> float:
    """The average gap between stated probability and observed accuracy."""
    place = np.minimum((sure * bins).astype(int), bins - 1)
    gaps = [
        abs(sure[place == one].mean() - right[place == one].mean()) * (place == one).mean()
        for one in np.unique(place)
    ]
    return float(sum(gaps))


def by_chance(sure: Array, draws: int = 100) -> float:
    """The gap that is expected where every stated probability is exact: few samples fill a bin."""
    if not len(sure):
        return 0.0
    rng = np.random.default_rng(0)
    right = rng.random((draws, len(sure))) < sure
    return float(np.mean([calibration_error(sure, each) for each in right]))


def _mapped(*parts: Array) -> list[Array]:
    """Square roots, where no feature is negative, as the default takes them."""
    return [signed_root(part) if (parts[0] >= 0).all() else part for part in parts]


if __name__ == "__main__":
    main()
