"""What several views of each photograph are worth: accuracy with few photographs, and seconds.

    python -m lab.benchmarks.views [--model lite0] [--size 224] [--seeds 20] [NAME=FOLDER ...]

A folder holds a folder per class; by default it is ``birds`` of FRUGALVAE_DATA, its training and
test photographs together. So many photographs of each class are drawn and taught, and all others
are asked. Differences are paired: the same photographs are taught and asked with each number of
views. Encoding is timed in turns, in one run, on one thread.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from frugalvae import FrugalClassifier
from frugalvae.encoders import VIEWS, make_encoder
from frugalvae.images.decode import reading_images
from frugalvae.images.photographs import encode_files
from frugalvae.maths.arrays import Array
from frugalvae.samples import Samples, open_samples
from frugalvae_lab.bench.data_sources import data_folder, in_data_folder

SHOTS = (1, 2, 3, 6, 12)
BATCH = 16


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", metavar="NAME=FOLDER")
    parser.add_argument("--model", default="lite0")
    parser.add_argument("--size", type=int)
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    given = dict(text.split("=", 1) for text in options.folders)
    folders = {name: Path(path) for name, path in given.items()} or birds()
    print("| | photographs per class | 1 view | 2 views | difference | 4 views | difference |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    lines = []
    for name, folder in folders.items():
        with open_samples(folder, "both") as images, reading_images():
            features, seconds = encoded(images, options.model, options.size)
        labels = images.labels
        for shots in SHOTS:
            if shots < np.unique(labels, return_counts=True)[1].min():
                row(name, shots, features, labels, options.seeds)
        times = ", ".join(f"{views}: {seconds[views] / seconds[1]:.1f}" for views in VIEWS[1:])
        lines.append(f"{name}: {len(labels):,} photographs; seconds against one view: {times}")
    print("", *lines, sep="\n")


def birds() -> dict[str, Path]:
    """The folder of birds, if it is there."""
    found = in_data_folder("birds")
    if not found:
        print(f"skipped: there are no birds in {data_folder()}; give NAME=FOLDER")
    return {"birds": found[0]} if found else {}


def encoded(
    images: Samples, model: str, size: int | None
) -> tuple[dict[int, Array], dict[int, float]]:
    """Features and seconds, by the number of views; a batch of each in turn."""
    encoders = {
        views: make_encoder("efficientnet", model=model, size=size, threads=1, views=views)
        for views in VIEWS
    }
    rows: dict[int, list[Array]] = {views: [] for views in VIEWS}
    seconds = dict.fromkeys(VIEWS, 0.0)
    for start in range(0, len(images.files), BATCH):
        for views, encoder in encoders.items():
            before = time.perf_counter()
            done = encode_files(encoder, images.files[start : start + BATCH], BATCH, 1)
            seconds[views] += time.perf_counter() - before
            rows[views].append(done.features)
    return {views: np.concatenate(found) for views, found in rows.items()}, seconds


def row(name: str, shots: int, features: dict[int, Array], labels: Array, seeds: int) -> None:
    """Print mean accuracy over draws, and differences from one view with their standard error."""
    right = np.array([drawn(shots, features, labels, seed) for seed in range(seeds)])
    more = right - right[:, :1]
    means, gains = right.mean(axis=0), more.mean(axis=0)
    errors = more.std(axis=0, ddof=1) / np.sqrt(seeds)
    cells = [f"{means[0]:.1f}"]
    for place in range(1, len(VIEWS)):
        cells += [f"{means[place]:.1f}", f"{gains[place]:+.1f} ± {errors[place]:.1f}"]
    print(f"| {name} | {shots} | {' | '.join(cells)} |", flush=True)


def drawn(shots: int, features: dict[int, Array], labels: Array, seed: int) -> list[float]:
    """Accuracy in percent, by the number of views, on what was not taught."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(labels))
    taught = np.concatenate([order[labels[order] == label][:shots] for label in np.unique(labels)])
    asked = np.setdiff1d(order, taught)
    found = []
    for x in features.values():
        clf = FrugalClassifier().fit(x[taught], labels[taught])
        found.append(100 * float(np.mean(clf.predict(x[asked]) == labels[asked])))
    return found


if __name__ == "__main__":
    main()
