"""Seconds that each rival takes beside the products it cannot do without: ``make bench-rivals``.

Ten tasks are learned and the test set is predicted, on one thread, once, in process seconds. The
products are those of the rival's own shapes and types, on random numbers: random features, Gram
matrices of samples or of features, whichever are fewer, one factorisation for the prediction, one
decomposition to choose a penalty.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from frugalvae import FrugalClassifier, make_head
from frugalvae.images.feature_file import Features, load_features
from frugalvae_lab.bench.data_sources import in_data_folder

RIVALS = {
    **dict.fromkeys(["ranpac", "fly-cl", "acil", "gacl", "klda", "klda-e", "randumb"], "none"),
    **dict.fromkeys(["anacp", "lr-rgda", "fecam", "lda"], "none"),
    **dict.fromkeys(["logistic", "svm", "knn"], "store-all"),
    "bayes": "moments",
}
TASKS = 10
SIDES = {"ranpac": 10_000, "fly-cl": 10_000, "acil": 8192, "gacl": 5000, "randumb": 10_000}


def seconds(act: Callable[[], Any]) -> float:
    """Process seconds of an act."""
    start = time.process_time()
    act()
    return time.process_time() - start


def drawn(rows: int, columns: int, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(0).standard_normal((rows, columns), np.float32).astype(dtype)


def product(rows: int, inner: int, columns: int, dtype: Any = np.float32) -> float:
    """A product of (rows, inner) and (inner, columns)."""
    left, right = drawn(rows, inner, dtype), drawn(inner, columns, dtype)
    return seconds(lambda: left @ right)


def gram(rows: int, width: int, dtype: Any = np.float32) -> float:
    """H^T H of H (rows, width), or H H^T if that is smaller."""
    hidden = drawn(rows, width, dtype)
    return seconds(lambda: hidden @ hidden.T if rows < width else hidden.T @ hidden)


def solve(rows: int, width: int, dtype: Any = np.float32) -> float:
    """The smaller of both Gram matrices, and its factorisation."""
    return gram(rows, width, dtype) + factor(min(rows, width))


def factor(width: int) -> float:
    """A Cholesky factorisation in float64."""
    from scipy.linalg import cho_factor

    matrix = np.asfortranarray(np.eye(width) + 0.1 / width)
    return seconds(lambda: cho_factor(matrix, overwrite_a=True, check_finite=False))


def eigen(size: int, width: int) -> float:
    """The eigendecomposition of H H^T, of H (size, width)."""
    rows = drawn(size, width, np.float64)
    return seconds(lambda: np.linalg.eigh(rows @ rows.T))


def products(name: str, data: Features) -> tuple[float, float] | None:
    """Seconds of what learning and predicting cannot do without; ``None`` if it iterates."""
    (n, dim), tests, classes = data.x_train.shape, len(data.x_test), len(data.classes)
    if name in SIDES:
        width, last = SIDES[name], n // TASKS
        learn = product(n, dim, width, np.float64 if name in ("acil", "gacl") else np.float32)
        learn += solve(n, width, np.float32 if name == "randumb" else np.float64)
        learn += eigen(last * 4 // 5, width) if name == "ranpac" else 0
        learn += eigen(last, width) if name == "fly-cl" else 0
        return learn, product(tests, dim, width)
    if name in ("klda", "klda-e"):
        maps = 5 if name == "klda-e" else 1
        once = product(n, dim, 5000) + solve(n, 5000)
        return maps * once, maps * product(tests, dim, 5000)
    if name == "anacp":
        replay = 100 * classes
        layer = product(n, dim, 5000) + solve(n, 5000, np.float64)
        layer += product(replay, dim, 5000) + product(replay, 5000, dim)
        last = product(replay, dim, 5000) + solve(replay, 5000)
        return 3 * layer + last, 4 * product(tests, dim, 5000) + 3 * product(tests, 5000, dim)
    if name in ("lr-rgda", "fecam"):
        rows = min(64, n // classes) if name == "lr-rgda" else n // classes
        own = sum(eigen(n // classes, dim) for _ in range(classes))
        shared = gram(n, dim, np.float64) + factor(dim) if name == "lr-rgda" else own
        return own + shared, product(tests, dim, classes * (rows + 1), np.float64)
    if name == "lda":
        return gram(n, dim, np.float64) + factor(dim), product(tests, dim, classes, np.float64)
    return (0.0, product(tests, dim, n, np.float64)) if name == "knn" else None


def run(name: str, data: Features) -> tuple[float, float, float, float]:
    """Seconds to learn and to predict, accuracy, and megabytes."""
    classifier = FrugalClassifier(RIVALS[name], make_head(name))
    order = np.random.default_rng(0).permutation(data.classes)

    def learn() -> None:
        for number, classes in enumerate(np.array_split(order, TASKS), 1):
            rows = np.isin(data.y_train, classes)
            x, y = data.x_train[rows], data.y_train[rows]
            classifier.partial_fit(x, y, defer_head=number < TASKS)
        classifier.predict(data.x_test[:1])  # what is solved at the first prediction

    taught = seconds(learn)
    found: list[Any] = []
    asked = seconds(lambda: found.append(classifier.predict(data.x_test)))
    right = float((found[0] == data.y_test).mean())
    return taught, asked, right, classifier.memory_report().bytes / 1e6


def shown(taken: float, needed: float | None) -> str:
    return f"{taken:.1f} | " + ("" if needed is None else f"{needed:.1f}")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="ucf101")
    parser.add_argument("rivals", nargs="*", default=list(RIVALS))
    asked = parser.parse_args()
    data = load_features(in_data_folder(f"{asked.data}*.npz")[0])
    print(f"{asked.data}: {len(data.x_train)} samples of {data.x_train.shape[1]} features\n")
    print("| head | learn, s | products, s | predict, s | products, s | accuracy | MB |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in asked.rivals:
        taught, answered, right, megabytes = run(name, data)
        learn, predict = products(name, data) or (None, None)
        row = f"| `{name}` | {shown(taught, learn)} | {shown(answered, predict)}"
        print(f"{row} | {100 * right:.1f} | {megabytes:.1f} |", flush=True)


if __name__ == "__main__":
    main()
