"""Outliers: which samples look like none of the classes."""

from __future__ import annotations

import numpy as np

from frugalvae.interfaces import Memory, Task
from frugalvae.maths.arrays import Array
from frugalvae.novelty import DistanceReference

FAR = 2.5  # robust standard deviations above the median novelty
LEAST = 10  # samples below which nothing is said


def outliers(
    memory: Memory, task: Task, counts: dict[int, int], rng: np.random.Generator
) -> dict[int, float]:
    """Rows of samples that look like no class, and how sure that is; ``memory`` was taught them.

    The novelty of each sample is measured as if its class had been taught without it. What is far
    above the others, as their median and their median deviation say, is an outlier.

    Examples
    --------
    >>> from frugalvae.memories import make_memory
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(60, 16)), np.arange(60) % 2
    >>> x[np.arange(60), y] += 9
    >>> x[8] = 9.0 * (np.arange(16) == 5)
    >>> memory = make_memory("moments")
    >>> memory.learn(Task(x, y), rng)
    >>> list(outliers(memory, Task(x, y), {0: 30, 1: 30}, rng))
    [8]
    """
    rows = [np.flatnonzero(task.labels == label) for label in task.classes if counts[label] > 1]
    if sum(map(len, rows)) < LEAST:
        return {}
    reference = DistanceReference(memory, rng)
    novelty = np.log(np.maximum(reference.novelty_of_taught(task, counts), 1e-9))
    far = _robust_deviations(novelty)
    places = np.concatenate(rows)
    return {
        int(places[row]): float(1 - 0.5 * np.exp(FAR - far[row]))
        for row in np.flatnonzero(far > FAR)
    }


def _robust_deviations(values: Array) -> Array:
    """How many standard deviations values are above the median, as the median deviation says."""
    above = values - np.median(values)
    deviations: Array = above / max(1.4826 * float(np.median(np.abs(above))), 1e-9)
    return deviations
