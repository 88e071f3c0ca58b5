"""What the default classifier costs as classes come. Run with ``make bench-frontier``.

1. All of CIFAR-100 in ten tasks, and one class more, if its features are there
   (``cifar100-efficientnet_lite0.npz`` in the folder that FRUGALVAE_DATA names, default ``data``).
2. One more task of ten classes when 100, 1,000 and 10,000 are known. Classes are mixtures of two
   real ones, of 50 samples where they are timed; without CIFAR-100 the real ones are random.
3. Ten thousand features against two hundred classes.
4. Two classifiers of 1,000 classes of 768 features each, merged.
5. One more task, and one prediction, when 1,000, 10,000 and 100,000 classes of 512 features are
   known, with the most memory that the process had. These classes are random, of four samples.

Times are seconds of the process.
"""

from __future__ import annotations

import argparse
import copy
import os
import resource
import warnings
from collections.abc import Iterator
from time import process_time

import numpy as np
from numpy.typing import NDArray

from frugalvae import FrugalClassifier
from frugalvae.images.feature_file import Features, load_features
from frugalvae_lab.bench.data_sources import in_data_folder

Array = NDArray[np.float32]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=["real", "merge", "many"])
    parser.add_argument("--known", type=int, nargs="+", default=[1000, 10_000, 100_000])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{os.environ.get('OMP_NUM_THREADS', os.cpu_count())} threads, NumPy {np.__version__}")
    if options.only in (None, "real"):
        as_classes_come()
    if options.only in (None, "merge"):
        merging()
    if options.only in (None, "many"):
        many(options.known)


def as_classes_come() -> None:
    """Real features, or mixtures of them."""
    path = next(iter(in_data_folder("cifar100-efficientnet_lite0.npz")), None)
    if path is None:
        print("CIFAR-100: skipped, cifar100-efficientnet_lite0.npz is not in FRUGALVAE_DATA")
        real = random_classes(100)
    else:
        features = load_features(path)
        stream(features)
        real = [features.x_train[features.y_train == label][:50] for label in features.classes]
    growth(real)
    comparison(real)


def stream(features: Features) -> None:
    """All classes but one in ten tasks, then that one."""
    classifier, started = FrugalClassifier(), process_time()
    *most, last = features.classes
    for part in np.array_split(most, 10):
        rows = np.isin(features.y_train, part)
        classifier.partial_fit(features.x_train[rows], features.y_train[rows])
    print(f"CIFAR-100, 99 classes in ten tasks: {process_time() - started:.1f} s")
    rows, started = features.y_train == last, process_time()
    classifier.partial_fit(features.x_train[rows], features.y_train[rows])
    print(f"one more class of {rows.sum()} features: {process_time() - started:.2f} s")
    started = process_time()
    accuracy = classifier.score(features.x_test, features.y_test)
    seconds = process_time() - started
    print(f"accuracy {accuracy:.2%}; {len(features.x_test):,} features in {seconds:.1f} s")


def growth(real: list[Array]) -> None:
    """The time of one more task at different numbers of classes."""
    mixtures = mixed(real)
    classifier = FrugalClassifier()
    classifier.partial_fit(*task(mixtures, 0, 90))
    for known in (100, 1000, 10_000):
        start = len(classifier.classes_)
        while start < known - 10:  # not timed
            size = min(500, known - 10 - start)
            classifier.partial_fit(*task(mixtures, start, size, samples=5))
            start += size
        classifier.partial_fit(*task(mixtures, start, 10))
        lesson, started = task(mixtures, start + 10, 10), process_time()
        classifier.partial_fit(*lesson)
        print(f"ten classes more at {start + 10:,}: {process_time() - started:.2f} s")


def comparison(real: list[Array]) -> None:
    """How long densities take."""
    mixtures = mixed(real)
    classifier = FrugalClassifier().partial_fit(*task(mixtures, 0, 200))
    x = np.concatenate([next(mixtures) for _ in range(200)])
    for what in ("first", "then"):
        started = process_time()
        classifier.predict(x)
        seconds = process_time() - started
        print(f"{len(x):,} features against 200 classes, {what}: {seconds:.2f} s")


def merging(classes: int = 1000, dim: int = 768) -> None:
    """Two classifiers become one."""
    mixtures = mixed(random_classes(100, dim))
    one, other = (
        FrugalClassifier().partial_fit(*task(mixtures, start, classes, samples=5))
        for start in (0, classes)
    )
    same = copy.deepcopy(one)
    for what, added in (("of other classes", other), ("of the same classes", same)):
        target, started = copy.deepcopy(one), process_time()
        target.merge(added)
        seconds = process_time() - started
        print(f"merging {classes:,} and {classes:,} classes, {what}: {seconds:.2f} s", flush=True)


def many(sizes: list[int], dim: int = 512) -> None:
    """One more task and one prediction, however many classes there are."""
    rng = np.random.default_rng(0)

    def samples(start: int, size: int, each: int) -> tuple[Array, NDArray[np.int64]]:
        means = rng.standard_normal((size, dim), np.float32)
        noise = rng.standard_normal((size * each, dim), np.float32)
        return means.repeat(each, axis=0) + noise, np.arange(start, start + size).repeat(each)

    classifier = FrugalClassifier().partial_fit(*samples(0, 500, 4))
    for known in sizes:
        start = len(classifier.classes_)
        while start < known - 10:
            size = min(5000, known - 10 - start)
            classifier.partial_fit(*samples(start, size, 4))
            start += size
        lesson, started = samples(start, 10, 50), process_time()
        classifier.partial_fit(*lesson)
        print(
            f"ten more of 512 features at {start:,}: {process_time() - started:.2f} s", flush=True
        )
        for what in ("first", "then"):
            started = process_time()
            classifier.predict(lesson[0][:1])
            print(f"one prediction, {what}: {process_time() - started:.2f} s", flush=True)
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"most memory so far: {most:.1f} GB", flush=True)


def task(
    classes: Iterator[Array], start: int, size: int, samples: int = 50
) -> tuple[Array, NDArray[np.int64]]:
    rows = [next(classes)[:samples] for _ in range(size)]
    return np.concatenate(rows), np.repeat(np.arange(start, start + size), len(rows[0]))


def mixed(real: list[Array]) -> Iterator[Array]:
    """Classes that lie between two real ones, without end."""
    rng = np.random.default_rng(0)
    while True:
        one, other = rng.choice(len(real), 2, replace=False)
        part = np.float32(rng.uniform(0.3, 0.7))
        yield part * real[one] + (1 - part) * real[other]


def random_classes(count: int, dim: int = 1280) -> list[Array]:
    rng = np.random.default_rng(0)
    means = rng.uniform(0, 1, (count, dim))
    return [np.abs(mean + rng.normal(0, 0.5, (50, dim))).astype(np.float32) for mean in means]


if __name__ == "__main__":
    main()
