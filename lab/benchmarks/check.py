"""How many planted mistakes does ``check`` find? Run with ``python -m lab.benchmarks.check``.

    FRUGALVAE_DATA=folder python -m lab.benchmarks.check [--cleanlab PYTHON] [--seeds 0] [DATA ...]

Labels of 5, 10 and 20 % of the training samples are made wrong: any other class ("any"), or the
class whose mean is nearest ("near"). Precision, recall and F1 are at the default threshold,
AUPRC is of the ranking. Beside it, cleanlab's ``find_label_issues`` with default settings, on
probabilities of a logistic regression in five folds, on the same features and labels, standardised;
its ranking is by self-confidence. It runs in the environment whose Python is given. With
``--as-they-are`` features are not standardised: faster, and worse on features of length one.
Seconds are of the processor, on one thread: for wrong labels alone, folds included, and for all
that ``check`` finds.

With ``--rates`` and nothing after it, copies are put in instead, changed a little, and samples of
another data set of the same encoder. Samples of CIFAR-100 are the first 100 of each class.
``--choose`` shows F1 at several thresholds on seeds that no table uses, for each data set as the
mean of all others. ``--small`` is about folders as people have them: six classes of ten samples, a
tenth of the labels wrong, twelve draws. ``--again`` mends the wrong labels that were found, and
checks again, on the same folders and on whole data sets: shares of wrong and of right labels that
three looks tell. ``--speed`` times ``check`` and ``suggest`` on 100 samples of each class.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.metrics import average_precision_score

from frugalvae.care.findings import SURE, check
from frugalvae.care.judge import add_samples, judge, open_moments
from frugalvae.care.suggestions import suggest
from frugalvae.maths.arrays import Array, unit
from frugalvae.model.model import Model
from frugalvae.parts.protocols import Task
from frugalvae_lab.bench.data_sources import find_data

DATA = ("cub200", "cifar100", "ucf101", "cars196", "aircraft100")
STRANGERS = {"cub200": "cifar100", "cifar100": "cub200"}  # of the same encoder
STRANGERS |= {"ucf101": "cars196", "cars196": "aircraft100", "aircraft100": "cars196"}
RATES, KINDS, MOST = (0.05, 0.1, 0.2), ("any", "near"), 100
SMALL_DRAWS = 12
CHOOSING, THRESHOLDS = (100, 101), (0.3, 0.4, 0.5, 0.6, 0.7)

CLEANLAB = """
import sys, time
import numpy as np
from cleanlab.filter import find_label_issues
from cleanlab.rank import get_label_quality_scores
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

data = np.load(sys.argv[1])
started = time.process_time()
folds = StratifiedKFold(5, shuffle=True, random_state=0)
model = LogisticRegression(max_iter=300)
model = make_pipeline(StandardScaler(), model) if "scaled" in sys.argv else model
given = cross_val_predict(model, data["x"], data["y"], cv=folds, method="predict_proba")
issues = find_label_issues(data["y"], given, n_jobs=1)
scores = 1 - get_label_quality_scores(data["y"], given)
np.savez(sys.argv[2], issues=issues, scores=scores, seconds=time.process_time() - started)
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", nargs="*", default=DATA, metavar="DATA")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--rates", nargs="*", type=float, default=RATES)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--cleanlab", type=Path, metavar="PYTHON")
    parser.add_argument("--as-they-are", action="store_true")
    parser.add_argument("--choose", action="store_true")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--speed", action="store_true")
    options = parser.parse_args()
    there, absent = find_data(options.data, {})
    for name, reason in absent.items():
        print(f"skipped: {name}: {reason}")
    if options.speed:
        speed(next(iter(there)))
        return
    if options.choose:
        choose(list(there))
        return
    if options.small or options.again:
        for name in there:
            (again if options.again else small)(name, options)
        return
    if options.cleanlab is None:
        print("cleanlab: skipped, --cleanlab names no Python that has it")
    for name in there:
        for kind in options.kinds:
            for rate in options.rates:
                compare(name, kind, rate, options)
    for name in there if not options.rates else ():
        planted(name, options.seeds)


def speed(name: str) -> None:
    """Seconds and the most memory that ``check`` and ``suggest`` take for 10,000 samples."""
    x, y = load(name, 100)
    model = Model().learn(x[::20], y[::20])
    for what, work in (
        ("check", lambda: check(Model(), x, y)),
        ("suggest", lambda: suggest(model, x)),
    ):
        started = time.process_time()
        work()
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(f"{what}, {len(x):,} samples: {time.process_time() - started:.1f} s, {most} MB")


def load(name: str, most: int = MOST) -> tuple[Array, Array]:
    """Training samples, and classes as numbers."""
    features = find_data([name], {})[0][name].data
    _, y = np.unique(features.y_train, return_inverse=True)
    rows = [np.flatnonzero(y == label) for label in range(y.max() + 1)]
    chosen = np.concatenate([own[:most] for own in rows])
    return features.x_train[chosen], y[chosen]


def wronged(x: Array, y: Array, rate: float, kind: str, seed: int) -> tuple[Array, Array]:
    """Labels of which a share is wrong, and which."""
    rng, classes = np.random.default_rng(seed), int(y.max()) + 1
    wrong = np.zeros(len(y), bool)
    wrong[rng.permutation(len(y))[: round(rate * len(y))]] = True
    if kind == "any":
        return np.where(wrong, (y + rng.integers(1, classes, len(y))) % classes, y), wrong
    means = np.stack([x[y == label].mean(axis=0) for label in range(classes)])
    similar = unit(means - means.mean(axis=0))
    similar = similar @ similar.T - 2 * np.eye(classes)
    return np.where(wrong, similar.argmax(axis=1)[y], y), wrong


def compare(name: str, kind: str, rate: float, options: argparse.Namespace) -> None:
    """One line for each of the two."""
    lines: dict[str, list[list[float]]] = {"check": [], "cleanlab": []}
    x, y = load(name)
    for seed in options.seeds:
        labels, wrong = wronged(x, y, rate, kind, seed)
        started = time.process_time()
        found = check(Model(), x, labels)
        everything = time.process_time()
        ranking = suspicion(x, labels)
        seconds = [time.process_time() - everything, everything - started]
        flagged = np.zeros(len(y), bool)
        flagged[[finding.row for finding in found.of_kind("wrong-label")]] = True
        lines["check"].append([*scores(flagged, ranking, wrong), *seconds])
        if options.cleanlab is not None:
            told = cleanlab(options.cleanlab, x, labels, scaled=not options.as_they_are)
            lines["cleanlab"].append(
                [*scores(told["issues"], told["scores"], wrong), float(told["seconds"])]
            )
    for who, values in lines.items():
        if values:
            show(f"{name} | {kind}, {rate:.0%} | {who}", np.mean(values, axis=0))


def small(name: str, options: argparse.Namespace) -> None:
    """Six classes of ten samples, twelve times; what was found is counted over all of them."""
    counts: dict[str, list[list[int]]] = {"check": [], "cleanlab": []}
    for seed, part, truth in small_folders(name):
        labels, wrong = wronged(part, truth, 0.1, "any", seed)
        flagged = {"check": suspicion(part, labels) >= SURE}
        if options.cleanlab is not None:
            told = cleanlab(options.cleanlab, part, labels, scaled=not options.as_they_are)
            flagged["cleanlab"] = told["issues"]
        for who, found in flagged.items():
            counts[who].append([(found & wrong).sum(), found.sum(), wrong.sum()])
    for who, values in counts.items():
        if values:
            right, found, planted = np.sum(values, axis=0)
            shares = right / max(1, found), right / planted, 2 * right / (found + planted)
            told = " | ".join(f"{share:.2f}" for share in shares)
            print(f"| {name} | 60 samples, 10% | {who} | {told} |", flush=True)


def small_folders(name: str) -> Iterator[tuple[int, Array, Array]]:
    """A seed, ten samples of each of six classes, and their labels; twelve times."""
    x, y = load(name)
    for seed in range(1000, 1000 + SMALL_DRAWS):
        rng = np.random.default_rng(seed)
        classes = np.sort(rng.permutation(y.max() + 1)[:6])
        rows = [rng.permutation(np.flatnonzero(y == label))[:10] for label in classes]
        yield seed, x[np.concatenate(rows)], np.arange(6).repeat(10)


def again(name: str, options: argparse.Namespace) -> None:
    """What a second and a third look find, once wrong labels that were found are mended."""
    x, y = load(name)
    folders = {
        "60 samples": list(small_folders(name)),
        "all samples": [(seed, x, y) for seed in options.seeds],
    }
    for what, drawn in folders.items():
        for kind in options.kinds:
            for rate in options.rates:
                looks = [
                    mended(part, truth, *wronged(part, truth, rate, kind, seed))
                    for seed, part, truth in drawn
                ]
                recall, alarms = np.sum(looks, axis=0) / np.sum(looks, axis=0)[:, -1:]
                told = [f"{share:.3f}" for share in (*recall[:-1], *alarms[:-1])]
                print(f"| {name} | {what}, {rate:.0%} {kind} | {' | '.join(told)} |", flush=True)


def mended(x: Array, truth: Array, labels: Array, wrong: Array) -> Array:
    """Wrong labels and right ones that were told so far, after each of three looks, and all."""
    told, counts = np.zeros(len(x), bool), []
    for _ in range(3):
        told |= suspicion(x, labels) >= SURE
        counts.append([(told & wrong).sum(), (told & ~wrong).sum()])
        labels = np.where(told, truth, labels)
    return np.array([*counts, [wrong.sum(), (~wrong).sum()]]).T


def suspicion(x: Array, labels: Array) -> Array:
    """What samples are ranked by."""
    task, rng = Task(x, labels), np.random.default_rng(0)
    memory, _ = open_moments(Model(), x, rng)
    add_samples(memory, task)
    return judge(memory, task).wrong


def cleanlab(python: Path, x: Array, labels: Array, scaled: bool) -> dict[str, Array]:
    with tempfile.TemporaryDirectory() as folder:
        given, told = f"{folder}/given.npz", f"{folder}/told.npz"
        np.savez(given, x=x, y=labels)
        words = [CLEANLAB, given, told, "scaled" if scaled else "as they are"]
        subprocess.run([python, "-W", "ignore", "-c", *words], check=True)
        return dict(np.load(told))


def scores(flagged: Array, ranking: Array, wrong: Array) -> list[float]:
    """Precision, recall, F1, and the area under the curve of precision over recall."""
    right = float((flagged & wrong).sum())
    precision, recall = right / max(1, flagged.sum()), right / wrong.sum()
    both = 2 * right / max(1, flagged.sum() + wrong.sum())
    return [precision, recall, both, float(average_precision_score(wrong, ranking))]


def show(what: str, values: Array) -> None:
    shares = " | ".join(f"{share:.3f}" for share in values[:4])
    seconds = ", all findings ".join(f"{taken:.2f}" for taken in values[4:])
    print(f"| {what} | {shares} | {seconds} |", flush=True)


def planted(name: str, seeds: list[int]) -> None:
    """Copies that were changed a little, and samples of another data set."""
    x, y = load(name)
    values: dict[str, list[list[float]]] = {"copies": [], "strangers": []}
    for seed in seeds:
        for what, (more, labels) in zip(values, additions(name, x, y, seed), strict=True):
            joined, told = np.concatenate([x, more]), np.concatenate([y, labels])
            added = np.arange(len(joined)) >= len(x)
            before = rows_of(check(Model(), x, y).findings, what)
            after = rows_of(check(Model(), joined, told).findings, what)
            found = [row for row in after if added[row]]
            values[what].append([len(found) / len(more), len(before)])
    for what, measured in values.items():
        recall, before = np.mean(measured, axis=0)
        print(
            f"| {name} | {what} | {recall:.3f} found | {before:.0f} of {len(x)} before |",
            flush=True,
        )


def additions(name: str, x: Array, y: Array, seed: int) -> Iterator[tuple[Array, Array]]:
    """2 % copies, in any class; and 2 % samples of another data set."""
    rng, count = np.random.default_rng(seed), len(x) // 50
    rows = rng.permutation(len(x))[:count]
    noise = 0.05 * x.std(axis=0) * rng.standard_normal((count, x.shape[1]))
    yield (x[rows] + noise).astype(np.float32), rng.permutation(y[rows])
    others = load(STRANGERS[name])[0]
    yield others[rng.permutation(len(others))[:count]], rng.permutation(y[rows])


def rows_of(findings: list, what: str) -> set[int]:
    kinds = ("duplicate",) if what == "copies" else ("outlier", "wrong-label")
    return {row for f in findings if f.kind in kinds for row in (f.row, f.twin) if row is not None}


def choose(names: list[str]) -> None:
    """F1 at several thresholds, on other seeds, as the mean over all other data sets."""
    found: dict[str, list[list[float]]] = {}
    for name in names:
        x, y = load(name)
        found[name] = []
        for kind in KINDS:
            for rate in RATES:
                for seed in CHOOSING:
                    labels, wrong = wronged(x, y, rate, kind, seed)
                    ranking = suspicion(x, labels)
                    found[name].append(
                        [scores(ranking >= limit, ranking, wrong)[2] for limit in THRESHOLDS]
                    )
    for name in names:
        means = np.mean([np.mean(found[other], axis=0) for other in names if other != name], axis=0)
        told = "  ".join(f"{t}: {f:.3f}" for t, f in zip(THRESHOLDS, means, strict=True))
        print(f"without {name}: {told}", flush=True)


if __name__ == "__main__":
    main()
