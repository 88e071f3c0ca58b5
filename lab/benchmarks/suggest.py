"""How many labels does ``suggest`` save? Run with ``python -m lab.benchmarks.suggest``.

    FRUGALVAE_DATA=folder python -m lab.benchmarks.suggest [--seeds 0 1 2] [--rules ...] [DATA ...]

Active learning with the default classifier: two random samples per class are labelled to begin
with; then, again and again, a rule chooses as many samples as there are classes, and these are
learned with their labels. For each rule: the share of 16 labels per class at which it first has
the accuracy that random choice has at the end, and the mean accuracy of all rounds, on the test
set. Training sets are cut to 100 samples per class. All rules see the same features and the same
classifier:

- margin and entropy of probabilities;
- k-centre: the sample that is farthest from all that are labelled, by the cosine;
- BADGE-like: k-means++ on (probabilities - one-hot answer) x feature;
- suggest: what ``frugalvae suggest`` does.

``--held-out`` measures on a quarter of the training samples instead: settings were chosen so, on
Aircraft-100, which is not among the data sets that are reported.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from frugalvae.care.suggestions import doubts, suggest
from frugalvae.maths.arrays import Array, unit
from frugalvae.model.model import Model
from frugalvae_lab.bench.data_sources import find_data

DATA = ("ucf101", "cub200", "cifar100")
START, END, MOST = 2, 16, 100


@dataclass(frozen=True)
class Round:
    """What a rule knows: a model, the pool, labelled samples, and how many to choose."""

    model: Model
    pool: Array
    labelled: Array
    count: int
    rng: np.random.Generator


#: Chooses rows of the pool.
Rule = Callable[[Round], Array]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", nargs="*", default=DATA, metavar="DATA")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--rules", nargs="+", choices=RULES, default=list(RULES))
    parser.add_argument("--end", type=int, default=END, help="samples per class of random choice")
    parser.add_argument("--held-out", action="store_true")
    options = parser.parse_args()
    found, absent = find_data(options.data, {})
    for name, reason in absent.items():
        print(f"skipped: {name}: {reason}")
    for name, source in found.items():
        compare(name, source.data, options)


def compare(name: str, data: object, options: argparse.Namespace) -> None:
    """A line for each rule; random choice comes first, and is what the others are compared with."""
    targets: dict[int, float] = {}
    for rule in ["random", *(rule for rule in options.rules if rule != "random")]:
        started, shares, means = time.process_time(), [], []
        for seed in options.seeds:
            samples = divided(data, seed, options.held_out)
            sizes, scores = curve(RULES[rule], *samples, seed, options.end)
            targets.setdefault(seed, scores[-1])
            shares.append(labels_needed(sizes, scores, targets[seed]) / sizes[-1])
            means.append(100 * scores.mean())
        print(
            f"| {name} | {rule} | {told(shares)} | {np.mean(means):.1f} ± {np.std(means):.1f} "
            f"| {(time.process_time() - started) / len(options.seeds):.0f} |",
            flush=True,
        )


def told(shares: list[float]) -> str:
    """Mean and deviation; or how many seeds never got there."""
    never = sum(not np.isfinite(share) for share in shares)
    if never:
        return f"more than 1.00 in {never} of {len(shares)}"
    return f"{np.mean(shares):.2f} ± {np.std(shares):.2f}"


def divided(data: object, seed: int, held_out: bool) -> tuple[Array, Array, Array, Array]:
    """Pool and test samples, with classes as numbers."""
    names, y = np.unique(data.y_train, return_inverse=True)
    rows = np.concatenate([np.flatnonzero(y == label)[:MOST] for label in range(len(names))])
    x, y = data.x_train[rows], y[rows]
    if not held_out:
        return x, y, data.x_test, np.searchsorted(names, data.y_test)
    rng = np.random.default_rng(seed + 500)
    test = np.zeros(len(y), bool)
    for label in range(len(names)):
        own = rng.permutation(np.flatnonzero(y == label))
        test[own[: len(own) // 4]] = True
    return x[~test], y[~test], x[test], y[test]


def curve(
    rule: Rule, x: Array, y: Array, x_test: Array, y_test: Array, seed: int, end: int
) -> tuple[Array, Array]:
    """The number of labels after each round, and the accuracy."""
    rng, classes = np.random.default_rng(seed), int(y.max()) + 1
    first = [rng.permutation(np.flatnonzero(y == label))[:START] for label in range(classes)]
    labelled = np.concatenate(first)
    model = Model().learn(x[labelled], y[labelled])
    sizes, scores = [len(labelled)], [float((model.predict(x_test) == y_test).mean())]
    while len(labelled) < end * classes:
        pool = np.setdiff1d(np.arange(len(y)), labelled)
        chosen = pool[rule(Round(model, x[pool], x[labelled], classes, rng))]
        model = model.learn(x[chosen], y[chosen])
        labelled = np.concatenate([labelled, chosen])
        sizes.append(len(labelled))
        scores.append(float((model.predict(x_test) == y_test).mean()))
    return np.array(sizes), np.array(scores)


def labels_needed(sizes: Array, scores: Array, target: float) -> float:
    """Where a curve first reaches a target, between rounds by interpolation."""
    above = np.flatnonzero(scores >= target)
    if not len(above):
        return float("inf")
    at = int(above[0])
    if at == 0:
        return float(sizes[0])
    return float(np.interp(target, scores[[at - 1, at]], sizes[[at - 1, at]]))


# --------------------------------------------------------------------------- rules


def at_random(at: Round) -> Array:
    return at.rng.permutation(len(at.pool))[: at.count]


def by_margin(at: Round) -> Array:
    return np.argsort(-doubts(at.model.predict_proba(at.pool)))[: at.count]


def by_entropy(at: Round) -> Array:
    chances = at.model.predict_proba(at.pool)
    return np.argsort((chances * np.log(chances + 1e-12)).sum(axis=1))[: at.count]


def k_centre(at: Round) -> Array:
    centre = np.concatenate([at.pool, at.labelled]).mean(axis=0)
    rows, known = unit(at.pool - centre), unit(at.labelled - centre)
    distances, chosen = 1 - (rows @ known.T).max(axis=1), []
    for _ in range(at.count):
        chosen.append(int(distances.argmax()))
        distances = np.minimum(distances, 1 - rows @ rows[chosen[-1]])
        distances[chosen] = -1
    return np.array(chosen)


def like_badge(at: Round) -> Array:
    pool, errors = at.pool, at.model.predict_proba(at.pool)
    errors[np.arange(len(pool)), errors.argmax(axis=1)] -= 1
    squares = (errors**2).sum(axis=1) * (pool**2).sum(axis=1)
    chosen, distances = [int(squares.argmax())], np.full(len(pool), np.inf)
    while len(chosen) < at.count:
        last = chosen[-1]
        shared = (errors @ errors[last]) * (pool @ pool[last])
        distances = np.minimum(distances, np.maximum(squares + squares[last] - 2 * shared, 0))
        distances[chosen] = 0
        chosen.append(int(at.rng.choice(len(pool), p=distances / distances.sum())))
    return np.array(chosen)


def by_suggest(at: Round) -> Array:
    return np.array([found.row for found in suggest(at.model, at.pool, at.count).suggestions])


RULES: dict[str, Rule] = {
    "random": at_random,
    "margin": by_margin,
    "entropy": by_entropy,
    "k-centre": k_centre,
    "BADGE-like": like_badge,
    "suggest": by_suggest,
}

if __name__ == "__main__":
    main()
