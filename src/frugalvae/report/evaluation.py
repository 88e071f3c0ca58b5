"""What a classifier made of test images, and every score that can be had from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frugalvae.bench.metrics import confusion
from frugalvae.cost import MemoryReport
from frugalvae.report.calibration import Bin, expected_calibration_error, reliability, wilson


@dataclass(frozen=True)
class Pair:
    """A mistake that was made ``count`` times: images of one class taken for another.

    Attributes
    ----------
    truth, taken_for
        Numbers of the two classes.
    total
        How many images of the true class there are.
    """

    truth: int
    taken_for: int
    count: int
    total: int


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Answers of a classifier to test samples whose classes it knows.

    Attributes
    ----------
    classes
        Names of all classes that the classifier knows.
    task_of_class
        For each of them, the task that taught it, from 0.
    truth
        The class of each sample, as its number, shape (n,).
    probabilities
        Of each class for each sample, shape (n, k).
    samples
        The name of each sample: its file, or its row if features were given.
    memory
        What the classifier keeps.
    of_images
        Whether samples are images, of which one may have pictures.
    file_size
        Bytes of the classifier's file, if it is in one.
    skipped
        Images that cannot be read, each with the reason.
    unknown
        Classes that the classifier does not know, and how many samples each has.
    about
        What was evaluated, in words, by name.

    Examples
    --------
    >>> memory = MemoryReport("none", classes=2, tasks=1, components=())
    >>> sure = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]]
    >>> truth, files = np.array([0, 1, 1]), ["cat/1.png", "emu/1.png", "emu/2.png"]
    >>> evaluation = Evaluation(
    ...     ["cat", "emu"], np.zeros(2, int), truth, np.array(sure), files, memory
    ... )
    >>> round(evaluation.accuracy, 3), evaluation.mean_class_accuracy
    (0.667, 0.75)
    >>> evaluation.pairs
    [Pair(truth=1, taken_for=0, count=1, total=2)]
    """

    classes: Sequence[str]
    task_of_class: NDArray[np.int64]
    truth: NDArray[np.int64]
    probabilities: NDArray[np.float64]
    samples: Sequence[str]
    memory: MemoryReport
    of_images: bool = True
    file_size: int | None = None
    skipped: Mapping[str, str] = field(default_factory=dict)
    unknown: Mapping[str, int] = field(default_factory=dict)
    about: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def answers(self) -> NDArray[np.intp]:
        """The most probable class of each sample, as its number."""
        found: NDArray[np.intp] = self.probabilities.argmax(axis=1)
        return found

    @cached_property
    def confidence(self) -> NDArray[np.float64]:
        """The probability of each answer."""
        found: NDArray[np.float64] = self.probabilities.max(axis=1)
        return found

    @cached_property
    def correct(self) -> NDArray[np.bool_]:
        """Which answers are right."""
        found: NDArray[np.bool_] = self.answers == self.truth
        return found

    @property
    def accuracy(self) -> float:
        """Share of right answers."""
        return float(self.correct.mean())

    @property
    def interval(self) -> tuple[float, float]:
        """Where the accuracy on many more such images would lie, with 95% probability."""
        return wilson(self.accuracy, len(self.truth))

    @cached_property
    def confusion(self) -> NDArray[np.int64]:
        """How many samples of each class (rows) were taken for each class (columns)."""
        return confusion(self.truth, self.answers, np.arange(len(self.classes)))

    @cached_property
    def class_counts(self) -> NDArray[np.int64]:
        """How many samples each class has."""
        found: NDArray[np.int64] = self.confusion.sum(axis=1)
        return found

    @cached_property
    def class_accuracy(self) -> NDArray[np.float64]:
        """Share of right answers in each class; NaN where there is no sample."""
        return _shares(self.confusion.diagonal(), self.class_counts)

    @property
    def mean_class_accuracy(self) -> float:
        """Mean over classes that have samples: every class counts the same."""
        return float(np.nanmean(self.class_accuracy))

    @property
    def tested(self) -> list[int]:
        """Numbers of classes that have samples."""
        return np.flatnonzero(self.class_counts).tolist()

    @property
    def task_counts(self) -> NDArray[np.int64]:
        """How many samples the classes of each task have."""
        return np.bincount(self.task_of_class, self.class_counts).astype(np.int64)

    @property
    def task_accuracy(self) -> NDArray[np.float64]:
        """Share of right answers in each task; NaN where there is no sample."""
        right = np.bincount(self.task_of_class, self.confusion.diagonal())
        return _shares(right, self.task_counts)

    @cached_property
    def pairs(self) -> list[Pair]:
        """All mistakes, the most frequent first; of those the larger part of its class."""
        mistakes = self.confusion - np.diag(self.confusion.diagonal())
        found = [
            Pair(truth, taken_for, int(mistakes[truth, taken_for]), int(self.class_counts[truth]))
            for truth, taken_for in np.argwhere(mistakes).tolist()
        ]
        return sorted(found, key=lambda pair: (-pair.count, pair.total))

    @cached_property
    def wrong(self) -> list[int]:
        """Samples with wrong answers, the surest first."""
        rows = np.flatnonzero(~self.correct)
        ordered: list[int] = rows[np.argsort(-self.confidence[rows], kind="stable")].tolist()
        return ordered

    def mistaken(self, pair: Pair) -> list[int]:
        """Samples of which a pair consists, the surest first."""
        return [
            row
            for row in self.wrong
            if (self.truth[row], self.answers[row]) == (pair.truth, pair.taken_for)
        ]

    def typical(self, number: int) -> list[int]:
        """Samples of a class that were recognised, the surest first."""
        rows = np.flatnonzero(self.correct & (self.truth == number))
        ordered: list[int] = rows[np.argsort(-self.confidence[rows], kind="stable")].tolist()
        return ordered

    @cached_property
    def bins(self) -> list[Bin]:
        """Answers by their probability, in 15 bins of the same width; empty ones are left out."""
        return reliability(self.confidence, self.correct)

    @property
    def calibration_error(self) -> float:
        """Expected calibration error: how far probability and accuracy of a bin are apart."""
        return expected_calibration_error(self.bins)


def _shares(part: NDArray[Any], whole: NDArray[np.int64]) -> NDArray[np.float64]:
    shares = np.full(len(whole), np.nan)
    np.divide(part, whole, out=shares, where=whole > 0)
    return shares
