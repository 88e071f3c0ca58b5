"""Which training samples a run learns: some of each class, or a long tail of classes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frugalvae.images.feature_file import Features
from frugalvae_lab.bench.spec import Shots

Counts = NDArray[np.int64]


def drawn(features: Features, shots: Shots, long_tail: float | None, seed: int) -> Features:
    """The same data with fewer training samples; the test set stays as it is.

    All methods learn the same samples with the same seed, and those of fewer shots are among
    those of more.

    Parameters
    ----------
    shots
        Samples of each class. Of several numbers, each class gets one by lot. A class with
        fewer samples keeps all of them.
    long_tail
        How many times as many samples the largest class has as the smallest.
    """
    if shots is None and long_tail is None:
        return features
    rng = np.random.default_rng([seed, 1])
    classes, labels, counts = np.unique(features.y_train, return_inverse=True, return_counts=True)
    places = places_in_class(labels, rng)
    if long_tail is not None:
        sizes = rng.permutation(tail_sizes(int(counts.max()), len(classes), long_tail))
    else:
        sizes = rng.choice(np.atleast_1d(np.asarray(shots)), len(classes))
    kept = places < sizes[labels]
    return replace(features, x_train=features.x_train[kept], y_train=features.y_train[kept])


def places_in_class(labels: NDArray[Any], rng: np.random.Generator) -> Counts:
    """The place of each sample in a random order of its class, (n,), from 0.

    >>> labels = np.array([1, 0, 1, 1])
    >>> places = places_in_class(labels, np.random.default_rng(0))
    >>> sorted(places[labels == 1].tolist()), int(places[1])
    ([0, 1, 2], 0)
    """
    order = np.lexsort((rng.random(len(labels)), labels))  # classes together, shuffled
    starts = np.flatnonzero(np.diff(labels[order], prepend=labels.min() - 1))
    sizes = np.diff(starts, append=len(labels))
    places = np.empty(len(labels), np.int64)
    places[order] = np.arange(len(labels)) - np.repeat(starts, sizes)
    return places


def tail_sizes(most: int, classes: int, ratio: float) -> Counts:
    """Sizes that fall exponentially from ``most`` to ``most / ratio``, and never below one.

    >>> tail_sizes(500, 3, 100)
    array([500,  50,   5])
    """
    shares = ratio ** -(np.arange(classes) / max(classes - 1, 1))
    return np.maximum(np.round(most * shares), 1).astype(np.int64)
