"""Evaluate: predictions for samples whose classes are known, and all scores that follow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from frugalvae.digests import among
from frugalvae.encoders import described
from frugalvae.errors import InputError, suggestion
from frugalvae.formatting import plural, printable
from frugalvae.images import BATCH_SIZE
from frugalvae.labels import folded, listing
from frugalvae.model.plan import other_names
from frugalvae.parts.protocols import MemoryReport
from frugalvae.samples import refuse

if TYPE_CHECKING:
    from frugalvae.model.model import Model
    from frugalvae.parts.protocols import Encoder
    from frugalvae.samples import Samples

CALIBRATION_BINS = 15


@dataclass(frozen=True)
class Pair:
    """An entry of the confusion matrix: a true and a predicted class, often a mistake.

    Attributes
    ----------
    truth, taken_for
        Positions of the true and of the predicted class among the classes.
    count, total
        How many samples of the true class were predicted so, and how many it has.
    """

    truth: int
    taken_for: int
    count: int
    total: int

    @property
    def right(self) -> bool:
        """Whether the prediction is right."""
        return self.truth == self.taken_for


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Predictions for test samples of classes that the classifier knows.

    Attributes
    ----------
    classes
        Names of all classes that the classifier knows, k of them.
    task_of_class
        The task that taught each class, from 0, shape (k,).
    truth
        The class of each sample, as its position among the classes, shape (n,).
    probabilities
        Of each class for each sample, shape (n, k).
    samples
        The name of each sample: its file, or its row if features were given.
    memory
        What the classifier keeps.
    of_images
        Whether samples are images, so that a page can show them.
    file_size
        Bytes of the classifier's file, if it has one.
    skipped
        Images that cannot be read, each with the reason.
    unknown
        Classes that the classifier does not know, each with its number of samples.
    encoder
        What made the features, in words.
    notes, left_out
        What was assumed, and files that are no images, with the reason.
    about
        What was evaluated, in words, by name, for the page.
    kept
        Those of the samples that were classified.
    taught
        How many of the samples the classifier was taught.
    expected
        The accuracy that was to be expected of samples like those that were taught, with the ends
        of its interval; none if that cannot be said.

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
    taught: int = 0
    expected: tuple[float, float, float] | None = None
    encoder: str = ""
    notes: Sequence[str] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    about: Mapping[str, str] = field(default_factory=dict)
    kept: Samples | None = None

    @property
    def caution(self) -> str:
        """Why accuracy may be too high, or is lower than expected; nothing if neither is so."""
        if self.taught:
            share = "all" if self.taught == len(self.truth) else f"{self.taught:,}"
            number = plural(len(self.truth), "image")
            return f"{share} of {number} were taught; expect less of new ones"
        all_tested = len(self.tested) == len(self.classes)
        if self.expected and all_tested and self.interval[1] < self.expected[1]:
            accuracy, low, high = self.expected
            return (
                f"about {accuracy:.0%} ({100 * low:.0f} to {100 * high:.0f}) was to be expected of "
                "images like the taught ones; these differ from them, so teach some of their kind"
            )
        return ""

    @cached_property
    def answers(self) -> NDArray[np.intp]:
        """The most probable class of each sample, as its position."""
        return self.probabilities.argmax(axis=1)

    @cached_property
    def confidence(self) -> NDArray[np.float64]:
        """The probability of each prediction."""
        return self.probabilities.max(axis=1)

    @cached_property
    def correct(self) -> NDArray[np.bool_]:
        """Which predictions are right."""
        return self.answers == self.truth

    @property
    def accuracy(self) -> float:
        """Share of right predictions."""
        return float(self.correct.mean())

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95% confidence interval of the accuracy, which suits few samples too."""
        return wilson_interval(int(self.correct.sum()), len(self.truth))

    @cached_property
    def confusion(self) -> NDArray[np.int64]:
        """Number of samples by true class (rows) and predicted class (columns)."""
        return confusion(self.truth, self.answers, np.arange(len(self.classes)))

    @cached_property
    def class_counts(self) -> NDArray[np.int64]:
        """Number of samples of each class."""
        return self.confusion.sum(axis=1)

    @cached_property
    def class_accuracy(self) -> NDArray[np.float64]:
        """Accuracy of each class; NaN for a class without samples."""
        return _shares(self.confusion.diagonal(), self.class_counts)

    @property
    def mean_class_accuracy(self) -> float:
        """Mean over the classes that have samples: each class counts the same."""
        return float(np.nanmean(self.class_accuracy))

    @property
    def tested(self) -> list[int]:
        """Positions of the classes that have samples."""
        return np.flatnonzero(self.class_counts).tolist()

    @property
    def task_counts(self) -> NDArray[np.int64]:
        """Number of samples of each task's classes."""
        return np.bincount(self.task_of_class, self.class_counts).astype(np.int64)

    @property
    def task_accuracy(self) -> NDArray[np.float64]:
        """Accuracy of each task; NaN for a task without samples."""
        right = np.bincount(self.task_of_class, self.confusion.diagonal())
        return _shares(right, self.task_counts)

    @cached_property
    def cells(self) -> list[Pair]:
        """All entries of the confusion matrix that are not zero.

        Right predictions come first, then the most frequent mistakes; among equals, those of
        smaller classes.
        """
        found = [
            Pair(truth, answer, int(self.confusion[truth, answer]), int(self.class_counts[truth]))
            for truth, answer in np.argwhere(self.confusion).tolist()
        ]
        return sorted(found, key=lambda pair: (not pair.right, -pair.count, pair.total))

    @cached_property
    def pairs(self) -> list[Pair]:
        """All mistakes, the most frequent first."""
        return [pair for pair in self.cells if not pair.right]

    @cached_property
    def wrong(self) -> list[int]:
        """Rows of wrong predictions, the most confident first."""
        return self._most_confident(~self.correct)

    def mistaken(self, pair: Pair) -> list[int]:
        """Rows of the samples in a pair, the most confident first."""
        return self._most_confident((self.truth == pair.truth) & (self.answers == pair.taken_for))

    def typical(self, number: int) -> list[int]:
        """Rows of right predictions in a class, the most confident first."""
        return self._most_confident(self.correct & (self.truth == number))

    def _most_confident(self, chosen: NDArray[np.bool_]) -> list[int]:
        rows = np.flatnonzero(chosen)
        return rows[np.argsort(-self.confidence[rows], kind="stable")].tolist()

    @property
    def calibration_error(self) -> float:
        """See :func:`calibration_error`."""
        return calibration_error(self.confidence, self.correct)

    @cached_property
    def names(self) -> list[str]:
        """Class names with spaces for underscores, unless two names would become equal."""
        written = [name.replace("_", " ").strip() or name for name in self.classes]
        return written if len(set(written)) == len(self.classes) else list(self.classes)

    def to_json(self) -> dict[str, Any]:
        """All scores and mistakes as plain JSON values, for scripts."""
        return {
            "about": dict(self.about),
            "samples": len(self.truth),
            "accuracy": self.accuracy,
            "interval_95": list(self.interval),
            "mean_class_accuracy": self.mean_class_accuracy,
            "expected_calibration_error": self.calibration_error,
            "tasks": [
                {"task": task, "samples": int(count), "accuracy": _or_none(share)}
                for task, (count, share) in enumerate(
                    zip(self.task_counts, self.task_accuracy, strict=True), start=1
                )
            ],
            "classes": [
                {"class": name, "task": int(task) + 1, "samples": int(n), "accuracy": _or_none(a)}
                for name, task, n, a in zip(
                    self.classes,
                    self.task_of_class,
                    self.class_counts,
                    self.class_accuracy,
                    strict=True,
                )
            ],
            "confused": [
                {
                    "truth": self.classes[pair.truth],
                    "taken_for": self.classes[pair.taken_for],
                    "count": pair.count,
                    "of": pair.total,
                }
                for pair in self.pairs
            ],
            "wrong": [
                {
                    "sample": self.samples[row],
                    "truth": self.classes[self.truth[row]],
                    "taken_for": self.classes[self.answers[row]],
                    "probability": float(self.confidence[row]),
                }
                for row in self.wrong
            ],
            "taught": self.taught,
            "expected": self.expected,
            "unreadable": dict(self.skipped),
            "unknown_classes": dict(self.unknown),
            "memory": self.memory.to_json(),
            "file_size": self.file_size,
            "skipped": dict(self.left_out),
            "assumed": list(self.notes),
        }


def _or_none(share: float) -> float | None:
    return None if np.isnan(share) else float(share)


def _shares(part: NDArray[Any], whole: NDArray[np.int64]) -> NDArray[np.float64]:
    shares = np.full(len(whole), np.nan)
    np.divide(part, whole, out=shares, where=whole > 0)
    return shares


def evaluate(
    model: Model,
    samples: Samples,
    encoder: Encoder | None = None,
    *,
    place: Path | str | None = None,
    batch_size: int = BATCH_SIZE,
    strict: bool = False,
) -> Evaluation:
    """Classify samples whose classes are given; those of classes that are not known are left out.

    Parameters
    ----------
    samples
        With their labels, still open.
    place
        What messages call the samples; by default their name.
    strict
        Refuse if a file cannot be read or is no image.
    """
    place = str(place or samples.name)
    numbers, unknown = numbers_of(model, samples, place)
    classes = [str(label) for label in model.classes.tolist()]
    present = {str(name): model.aliases.get(str(name)) for name in samples.classes}
    renamed = {name: label for name, label in present.items() if label is not None}
    notes = samples.notes + other_names(renamed) + spelt_differently(unknown, classes)
    tested = samples.at(np.flatnonzero(numbers >= 0))
    if strict:
        tested.refuse_unreadable()
    encoded = tested.encode(encoder, batch_size)
    unreadable = {printable(tested.names[at]): why for at, why in encoded.reasons.items()}
    if strict:
        refuse(unreadable)
    if not len(encoded.places):
        first, why = tested.names[0], encoded.reasons[0]
        raise InputError(f"{place}: no image in it can be read, such as {first} ({why})")
    made_by = described(encoder.identity if encoder else model.encoder or samples.made_by or {})
    width = encoded.features.shape[1]
    if width != model.n_features:
        raise InputError(
            f"{made_by} gives features of {width} numbers, and the classifier learned from "
            f"features of {model.n_features}; use the encoder that it learned from"
        )
    read, taught = tested.at(encoded.places), 0
    if model.digests and read.files is not None:
        digests = read.digests("looking for images that were taught")
        taught = int(among(digests, np.concatenate(list(model.digests.values()))).sum())
    forecast = model.forecast
    return Evaluation(
        classes,
        model.task_of_class,
        numbers[numbers >= 0][encoded.places],
        model.predict_proba(encoded.features),
        list(map(printable, read.names)),  # a page is UTF-8
        model.memory_report(),
        of_images=samples.files is not None,
        skipped=unreadable,
        unknown=unknown,
        taught=taught,
        expected=(forecast.accuracy, *forecast.interval) if forecast and forecast.enough else None,
        encoder=made_by,
        notes=notes,
        left_out=samples.skipped,
        kept=read,
    )


def spelt_differently(unknown: Iterable[str], classes: Iterable[str]) -> list[str]:
    """Unknown classes whose names differ from a known one only in case or blanks, a line each."""
    known = {folded(name): name for name in classes}
    return [
        f"class {name!r} is not known; rename its folder if {known[folded(name)]!r} is meant"
        for name in unknown
        if folded(name) in known
    ]


def numbers_of(
    model: Model, samples: Samples, place: str
) -> tuple[NDArray[np.int64], dict[str, int]]:
    """The class of each sample as its number, -1 if it is unknown; and how many of which are.

    Labels are compared as text: a folder's name is text, and a label may be a number. A name that
    a class had still means it.
    """
    number = {label: n for n, label in enumerate(model.classes.tolist())}
    numbers = {name: number[label] for name, label in model.aliases.items() if label is not None}
    numbers |= {str(label): n for label, n in number.items()}
    names, inverse, counts = np.unique(
        samples.labels.astype(str), return_inverse=True, return_counts=True
    )
    found = np.array([numbers.get(name, -1) for name in names.tolist()], np.int64)
    if (found < 0).all():
        raise InputError(unknown_classes(names.tolist(), model, place))
    unknown = {str(n): int(c) for n, c, f in zip(names, counts, found, strict=True) if f < 0}
    return found[inverse], unknown


def unknown_classes(names: list[str], model: Model, place: str) -> str:
    """That no class is known, and what may be the reason."""
    classes = {str(label) for label in model.classes.tolist()}
    inside = sorted({name.split("/")[0] for name in names if name.split("/", 1)[-1] in classes})
    if inside:
        apart = [name for name in inside if not name.lower().startswith("train")]
        hint = f" Its classes are in folders: give {place}/{(apart or inside)[0]}."
    else:
        hint = suggestion(names[0], classes)
    shown = ", ".join(map(repr, names[:3])) + (", ..." if len(names) > 3 else "")
    return (
        f"{place}: the classifier knows none of its {len(names)} classes, such as {shown}.{hint} "
        f"{listing(model.classes)}"
    )


# --------------------------------------------------------------------------- scores


def confusion(
    truth: NDArray[Any], prediction: NDArray[Any], labels: NDArray[Any]
) -> NDArray[np.int64]:
    """Number of samples by true label (rows) and predicted one (columns), (k, k).

    >>> confusion(np.array(["a", "b", "b"]), np.array(["a", "a", "b"]), np.array(["b", "a"]))
    array([[1, 1],
           [0, 1]])
    """
    order = np.argsort(labels)
    rows, columns = (
        order[np.searchsorted(labels, values, sorter=order)] for values in (truth, prediction)
    )
    places = np.bincount(rows * len(labels) + columns, minlength=len(labels) ** 2)
    return places.reshape(len(labels), len(labels))


def wilson_interval(right: int, count: int, z: float = 1.959963984540054) -> tuple[float, float]:
    """Between which shares the true one lies, in 95 of 100 cases, if ``right`` of ``count`` were.

    Wilson's interval, which is never empty and never outside of 0 to 1.

    >>> low, high = wilson_interval(9, 10)
    >>> round(low, 3), round(high, 3)
    (0.596, 0.982)
    """
    share, spread = right / count, z * z / count
    centre = share + spread / 2
    reach = float(np.sqrt(spread * (share * (1 - share) + spread / 4)))
    low, high = (centre - reach) / (1 + spread), (centre + reach) / (1 + spread)
    return (low if right else 0.0), (high if right < count else 1.0)


def calibration_error(
    confidence: NDArray[np.float64], correct: NDArray[np.bool_], bins: int = CALIBRATION_BINS
) -> float:
    """Expected calibration error: mean distance between probability and accuracy of a bin.

    Bins have equal width and count by their size; a probability on a bound belongs to the bin
    below it.

    References
    ----------
    Guo, Pleiss, Sun, Weinberger: "On Calibration of Modern Neural Networks", ICML 2017.

    Examples
    --------
    >>> round(calibration_error(np.array([0.7, 0.9]), np.array([True, False])), 6)
    0.6
    """
    places = np.clip(np.ceil(confidence * bins).astype(int) - 1, 0, bins - 1)
    gaps = np.bincount(places, correct - confidence)
    return float(np.abs(gaps).sum() / len(confidence))
