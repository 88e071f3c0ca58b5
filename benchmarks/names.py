"""What class names are worth: ``FRUGALVAE_DATA=folder python -m benchmarks.names``.

Cars-196, whose feature file has the text feature of each class's name: few samples per class in
ten tasks, on the test set; without names, with them, with names of other classes, and with noise.
"""

from __future__ import annotations

import warnings

import numpy as np

from frugalvae import FrugalClassifier, make_head
from frugalvae.bench.data_sources import find_data
from frugalvae.bench.task_split import split_classes

SHOTS, SEEDS = (1, 2, 4, 8, 16), (0, 1, 2)


def main() -> None:
    found, absent = find_data(["cars196"], {})
    for name, reason in absent.items():
        print(f"skipped: {name}: {reason}")
    for source in found.values():
        data = source.data
        text = {label: np.asarray(data.text[label]) for label in data.classes.tolist()}
        rng, labels = np.random.default_rng(0), list(text)
        wrong = dict(zip(labels, [text[y] for y in rng.permutation(labels).tolist()], strict=True))
        noise = {label: rng.normal(size=len(text[label])) for label in labels}
        kinds = {"without": None, "names": text, "names of others": wrong, "noise": noise}
        print("| samples | " + " | ".join(kinds) + " |\n|" + " --- |" * (1 + len(kinds)))
        for shots in SHOTS:
            cells = [cell(data, shots, given) for given in kinds.values()]
            print(f"| {shots} | " + " | ".join(cells) + " |", flush=True)


def cell(data: object, shots: int, text: dict | None) -> str:
    """Accuracy in percent, over seeds."""
    scores = []
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        kept = np.concatenate(
            [rng.permutation(np.flatnonzero(data.y_train == y))[:shots] for y in data.classes]
        )
        clf = FrugalClassifier(head=make_head("bayes", names=text is not None))
        for task in split_classes(data.classes, 10, seed):
            rows = kept[np.isin(data.y_train[kept], task)]
            with warnings.catch_warnings(action="ignore"):
                clf.partial_fit(data.x_train[rows], data.y_train[rows], text=text)
        scores.append(100 * float(np.mean(clf.predict(data.x_test) == data.y_test)))
    return f"{np.mean(scores):.1f} ± {np.std(scores):.1f}"


if __name__ == "__main__":
    main()
