"""What each type costs and what it loses: accuracy against bytes for each part of a memory.

    FRUGALVAE_DATA=folder python -m lab.benchmarks.rounding [DATA ...]

The default memory is taught at once, without a fifth of the training samples, on which it is
measured. Then one part after the other is rounded: class means, the shared covariance, the rows of
all classes. The last line is what files keep: means and correlations in 16 bits, rows in 8.
"""

from __future__ import annotations

import argparse
import copy

import numpy as np

from frugalvae.maths.arrays import Array
from frugalvae.moments.memory import MomentMemory
from frugalvae.moments.sums import restore_rows, round_rows
from frugalvae.parts.protocols import Task
from frugalvae_lab.bench.data_sources import find_data
from lab.benchmarks.shots import DATA, split

TYPES = {"float64": 8, "float32": 4, "float16": 2, "16 bits": 2, "8 bits": 1, "4 bits": 0.5}
PARTS = ("means", "covariance", "rows")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="*", default=DATA)
    found, absent = find_data(parser.parse_args().data, {})
    for name, reason in absent.items():
        print(f"skipped: {name}: {reason}")
    titles = [f"{part}, {kind}" for part in PARTS for kind in TYPES if kind != "float64"]
    print("| | bytes of a parameter | " + " | ".join(found) + " |\n|" + " --- |" * (2 + len(found)))
    columns = [measure(source.data) for source in found.values()]
    for title in ["nothing rounded", *titles, "as files keep it"]:
        size = TYPES.get(title.split(", ")[-1], "")
        cells = [f"{100 * column[title]:.2f}" for column in columns]
        print(f"| {title} | {size} | " + " | ".join(cells) + " |", flush=True)


def measure(data: object) -> dict[str, float]:
    """Accuracy on held-out samples with each part rounded to each type."""
    x, y, test_x, test_y, _ = split(data, "equal", None, 0, test=False)
    names, labels = np.unique(y, return_inverse=True)
    test_y = np.searchsorted(names, test_y)
    memory = MomentMemory()
    memory.learn(Task(x, labels), np.random.default_rng(0))

    def accuracy(one: MomentMemory) -> float:
        found = np.array(one.classes)[one.log_density(test_x).argmax(axis=1)]
        return float((found == test_y).mean())

    scores = {"nothing rounded": accuracy(memory)}
    for part in PARTS:
        for kind in TYPES:
            if kind != "float64":
                scores[f"{part}, {kind}"] = accuracy(rounded(memory, part, kind))
    scores["as files keep it"] = accuracy(MomentMemory.from_state(memory.state()))
    return scores


def rounded(memory: MomentMemory, part: str, kind: str) -> MomentMemory:
    """A memory with one part in another type."""
    twin = copy.deepcopy(memory)
    if part == "means":
        twin.sums_.means = {
            label: as_type(mean[None], kind)[0] for label, mean in twin.sums_.means.items()
        }
    if part == "rows":
        twin.sums_.roots = {label: as_type(root, kind) for label, root in twin.sums_.roots.items()}
    if part == "covariance" and not twin.sums_.is_whole:
        deviations = np.sqrt(twin.sums_.scatter.diagonal())
        scales = np.outer(deviations, deviations)
        near = as_type(twin.sums_.scatter / scales, kind)
        np.fill_diagonal(near, 1)
        twin.sums_.scatter = (near + near.T) / 2 * scales
    twin._derived = {}
    return twin


def as_type(rows: Array, kind: str) -> Array:
    """Rows rounded to a type, with a scale for each row where they become whole numbers."""
    if kind.startswith("float"):
        return rows.astype(kind).astype(np.float64)
    if kind == "4 bits":
        scales = np.abs(rows).max(axis=1, keepdims=True) / 7 + 1e-30
        return np.rint(rows / scales) * scales
    return restore_rows(*round_rows(rows, 2 if kind == "16 bits" else 1)).astype(np.float64)


if __name__ == "__main__":
    main()
