"""What each constant of the default's rule buys: each set to its neutral value, one at a time.

    FRUGALVAE_DATA=folder python -m lab.benchmarks.constants [--seeds 0 1] [--samples 1 … tail]

A fifth of the training samples of each class is held out, and answered; test rows are never read.
Classes have as many samples, or a fifth of them has three (rare), or they fall from all to one
(tail); or there are only five classes, with all samples or with five (mean over 20 draws).
Accuracy is the mean over classes.
Cells (data set, samples per class, seed) are written to ``lab/results/constants.json`` as they
come, and skipped if they are there; ``--table`` writes ``lab/docs/constants.md`` from them. Sums
and what was held out when teaching are those of the rule as it is: a constant counts where
samples are answered. What bought nothing left the rule: the table still has it.
"""

from __future__ import annotations

import argparse
import inspect
import json
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from frugalvae.files import write_json
from frugalvae.maths.arrays import Array, columns_of, logsumexp
from frugalvae.moments import evidence, held_out, rule
from frugalvae.moments.memory import MomentMemory
from frugalvae.parts.protocols import Task
from frugalvae_lab.bench.data_sources import find_data, parse_data

RESULTS = Path("lab/results/constants.json")
TABLE = Path("lab/docs/constants.md")
DATA = ("ucf101", "aircraft100", "cars196", "cub200", "cifar100", "digits")
SAMPLES = ("1", "2", "4", "8", "16", "all", "rare", "tail", "five", "few of five")  # per class
MOST, MOST_ANSWERED, LESSONS = 80, 1500, 5  # per class; in all; of classes, one after another

#: A module and a constant there with its neutral value, or a function there and what to replace.
Change = tuple[ModuleType, str, Any] | tuple[ModuleType, str, str, str]

CHANGES: dict[str, Change] = {
    "LEAST_RIDGE": (rule, "LEAST_RIDGE", 1e-6),
    "GUESS": (rule, "GUESS", 0.0),
    "GUESSED": (rule, "GUESSED", 0.0),
    "LEAST_GUESSED": (rule, "LEAST_GUESSED", 0.0),
    "WEIGHT": (rule, "WEIGHT", 1e-9),
    "HALF_WEIGHT": (rule, "HALF_WEIGHT", 0.0),
    "MANY": (rule, "MANY", 1),
    "scale of W in scatters": (rule, "_log_ratio", "excess = trace / rank", "excess = 0.0"),
    "NOISE": (rule, "NOISE", 1.0),
    "LEAST_OFF": (rule, "LEAST_OFF", 0.0),
    "LEAST_VARIANCE": (rule, "LEAST_VARIANCE", 1e-12),
    "floor of B": (rule, "mean_prior", "floor = (1 - share) * spread", "floor = 1e-12"),
    "one spread in B": (rule, "mean_prior", "share = total /", "share = 0.0 * total /"),
    "drawn by classes per sample": (rule, "class_means", "len(counts) / float", "0 / float"),
    "CREDIT": (rule, "CREDIT", 0.0),
    "borrowed scatters": (rule, "LEAST_LACK", 2.0),
    "LEAST_LACK": (rule, "LEAST_LACK", 0.0),
    "LENDING_LACK": (rule, "LENDING_LACK", 1.0),
    "WORTH": (evidence, "WORTH", 0),
    "HALF_SURE": (evidence, "HALF_SURE", 0.0),
    "root of the lead": (evidence, "tempered", "np.sqrt(np.maximum(lead, LEAST_LEAD))", "4.0"),
    "LEAST_LEAD": (evidence, "LEAST_LEAD", 1e-12),
    "DAMPED": (held_out, "DAMPED", 1.0),
    "PRIOR": (held_out, "PRIOR", 1e-9),
    "POOLED": (held_out, "POOLED", 1e-9),
    "NEAR": (held_out, "NEAR", 1e-3),
    "LEAST_DENSITY": (held_out, "LEAST_DENSITY", 1e-9),
}


@contextmanager
def changed(change: Change | None) -> Iterator[None]:
    """With a constant at another value, or a function of other words."""
    if change is None:
        yield
    elif len(change) == 3:
        module, name, value = change
        before = getattr(module, name)
        setattr(module, name, value)
        try:
            yield
        finally:
            setattr(module, name, before)
    else:
        module, name, old, new = change
        function: Callable[..., Any] = getattr(module, name)
        source, before = textwrap.dedent(inspect.getsource(function)), function.__code__
        assert old in source, (name, old)
        found: dict[str, Any] = {}
        exec("from __future__ import annotations\n" + source.replace(old, new), vars(module), found)
        function.__code__ = found[name].__code__
        try:
            yield
        finally:
            function.__code__ = before


def cell(x: Array, y: Array, samples: str, seed: int) -> dict[str, list[float]]:
    """Of each change: accuracy, negative log likelihood, and the gap of the forecast."""
    rng, draws = np.random.default_rng(seed), []
    for _ in range(20 if samples.endswith("five") else 1):
        chosen = np.ones(len(y), bool)
        if samples.endswith("five"):
            chosen = np.isin(y, rng.permutation(np.unique(y))[:5])
        draws.append(_drawn(x[chosen], y[chosen], samples, rng))
    names = draws[0]
    return {name: np.mean([one[name] for one in draws], axis=0).round(5).tolist() for name in names}


def _drawn(
    x: Array, y: Array, samples: str, rng: np.random.Generator
) -> dict[str, tuple[float, float, float]]:
    kept, out, classes = [], [], np.unique(y)
    for number, label in enumerate(rng.permutation(classes)):
        own = rng.permutation(np.flatnonzero(y == label))[:MOST]
        fifth = max(1, len(own) // 5)
        left = len(own) - fifth
        wanted = {
            "all": left,
            "five": left,
            "few of five": 5,
            "rare": 3 if number < len(classes) // 5 else left,
            "tail": int(np.ceil(left ** (1 - number / (len(classes) - 1)))),
        }
        out.append(own[:fifth])
        kept.append(own[fifth:][: wanted[samples] if samples in wanted else int(samples)])
    rows, asked = np.concatenate(kept), rng.permutation(np.concatenate(out))[:MOST_ANSWERED]
    memory = MomentMemory()
    for labels in np.array_split(rng.permutation(classes), LESSONS):
        some = rows[np.isin(y[rows], labels)]
        memory.learn(Task(x[some], y[some]), rng)
    truth, found = columns_of(y[asked], memory.classes), {}
    for name, change in {"as it is": None, **CHANGES}.items():
        with changed(change):
            memory._derived = {}
            try:
                logits = memory.logits(x[asked])
            except np.linalg.LinAlgError:
                found[name] = 0.0, 99.0, 1.0
                continue
            right = _mean_over_classes(logits.argmax(axis=1) == truth, truth)
            sure = logits[np.arange(len(truth)), truth] - logsumexp(logits)
            expected = memory.forecast()
            gap = abs(expected.accuracy - right) if expected is not None else 0.0
            found[name] = right, -float(sure.mean()), gap
    return found


def _mean_over_classes(right: Array, truth: Array) -> float:
    asked = np.bincount(truth)
    return float((np.bincount(truth, right)[asked > 0] / asked[asked > 0]).mean())


def table(cells: dict[str, dict[str, list[float]]]) -> str:
    """Points that each constant buys: on average, at most and at least, and by samples."""
    lines = [
        "| neutral | points | most | least | " + " | ".join(SAMPLES)
        + " | log likelihood | forecast, points |",
        "| --- " * (6 + len(SAMPLES)) + "|",
    ]  # fmt: skip
    usual = {key: np.array(found["as it is"]) for key, found in cells.items()}
    for name in dict.fromkeys(name for found in cells.values() for name in found):
        if name == "as it is":
            continue
        bought = {
            key: (usual[key] - np.array(found[name])) * [100, -1, -100]
            for key, found in cells.items()
            if name in found
        }
        by_column: dict[str, list[Array]] = {}  # seeds of a column together
        for key, each in bought.items():
            by_column.setdefault(key.rsplit(" ", 1)[0], []).append(each)
        columns = {key: np.mean(each, axis=0) for key, each in by_column.items()}
        points = np.array([each[0] for each in columns.values()])
        mean = np.mean(list(columns.values()), axis=0)
        shots = []
        for n in SAMPLES:
            some = [each[0] for key, each in columns.items() if key.endswith(f" {n}")]
            shots.append(f"{np.mean(some):+.2f}" if some else "")
        row = [f"{mean[0]:+.2f}", f"{points.max():+.2f}", f"{points.min():+.2f}", *shots]
        row += [f"{mean[1]:+.3f}", f"{mean[2]:+.2f}"]
        lines.append(f"| {name} | " + " | ".join(row) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="*", default=DATA)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--samples", nargs="+", choices=SAMPLES, default=SAMPLES)
    parser.add_argument("--table", action="store_true", help="write the table, and nothing else")
    options = parser.parse_args()
    cells = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if options.table:
        before, mark, _ = TABLE.read_text("utf-8").partition("<!-- table -->\n")
        TABLE.write_text(f"{before}{mark}{table(cells)}\n", "utf-8")
        return
    given = parse_data(options.data)
    found, _ = find_data(list(given), {name: path for name, path in given.items() if path})
    for seed in options.seeds:
        for samples in options.samples:
            for name, source in found.items():
                key = f"{name} {samples} {seed}"
                if set(CHANGES) <= set(cells.get(key, {})):
                    continue
                data = source.data
                labels = np.unique(data.y_train, return_inverse=True)[1]
                cells[key] = cell(data.x_train.astype(np.float32), labels, samples, seed)
                write_json(RESULTS, cells)
                print(key, cells[key]["as it is"], flush=True)


if __name__ == "__main__":
    main()
