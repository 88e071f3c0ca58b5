"""The HTML page of an evaluation: what is recognised, what is not, and how it looks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from frugalvae.formatting import percent, plural
from frugalvae.pages import plots
from frugalvae.pages.render import render
from frugalvae.verbs.evaluate import Evaluation

CLOSE = 0.05  # probability and accuracy count as equal up to this difference

#: How much the page shows.
LIMITS = {
    "table": 40,  # classes whose confusion matrix is a table; a larger one is drawn
    "tooltips": 1500,  # entries of a drawn matrix that have a tooltip
    "worst": 24,  # classes listed at once if there are very many
    "confused": 12,  # classes listed with what they are mistaken for, beside a drawn matrix
    "pairs": 8,  # frequent mistakes with images
    "rows": 20,  # frequent mistakes, and wrong samples, without images
    "examples": 3,  # images per mistake
    "typical": 2,  # recognised images beside them
    "wrong": 120,  # wrong images
    "unreadable": 50,  # unreadable images that are named
}


@dataclass(frozen=True)
class Bar:
    """A class or a task: its number of samples, and the share that is recognised."""

    name: str
    share: float
    count: int
    note: str = ""


def evaluation_page(evaluation: Evaluation, pictures: Mapping[int, str]) -> str:
    """One page that loads nothing from elsewhere.

    Parameters
    ----------
    evaluation
        What to show.
    pictures
        Images of rows as addresses, at least of the rows in :func:`pictured`; may be empty.
    """
    images = evaluation.of_images
    bins = plots.reliability_bins(evaluation.confidence, evaluation.correct)
    return render(
        "evaluation.html",
        e=evaluation,
        names=evaluation.names,
        pictures=pictures,
        summary=summary(evaluation),
        classes=class_bars(evaluation),
        tasks=task_bars(evaluation),
        **matrix(evaluation),
        pairs=evaluation.pairs[: LIMITS["pairs" if images else "rows"]],
        wrong=evaluation.wrong[: LIMITS["wrong" if images else "rows"]],
        mistaken_for=mistaken_for(evaluation),
        reliability=plots.reliability(bins, evaluation.accuracy),
        limits=LIMITS,
    )


def pictured(evaluation: Evaluation) -> list[int]:
    """Rows whose images the page shows."""
    if not evaluation.of_images:
        return []
    rows = evaluation.wrong[: LIMITS["wrong"]]
    for pair in evaluation.pairs[: LIMITS["pairs"]]:
        rows = rows + evaluation.mistaken(pair)[: LIMITS["examples"]]
        for number in (pair.truth, pair.taken_for):
            rows = rows + evaluation.typical(number)[: LIMITS["typical"]]
    return rows


def class_bars(evaluation: Evaluation) -> list[Bar]:
    """The classes that have samples, the worst first."""
    bars = [
        Bar(
            evaluation.names[number],
            float(evaluation.class_accuracy[number]),
            int(evaluation.class_counts[number]),
            f"task {evaluation.task_of_class[number] + 1}",
        )
        for number in evaluation.tested
    ]
    return sorted(bars, key=lambda bar: (bar.share, -bar.count))


def task_bars(evaluation: Evaluation) -> list[Bar]:
    """Tasks in their order; the share of a task without samples is NaN."""
    sizes = np.bincount(evaluation.task_of_class).tolist()
    return [
        Bar(f"task {number}", float(share), int(count), plural(size, "class"))
        for number, (share, count, size) in enumerate(
            zip(evaluation.task_accuracy, evaluation.task_counts, sizes, strict=True), start=1
        )
    ]


def matrix(evaluation: Evaluation) -> dict[str, Any]:
    """The confusion matrix of the classes that have samples or were predicted.

    ``shown`` has their positions, ``starts`` the places where a task begins, except the first;
    ``places`` the place of each class.
    """
    shown = np.flatnonzero(evaluation.confusion.sum(axis=0) + evaluation.class_counts)
    starts = np.flatnonzero(np.diff(evaluation.task_of_class[shown])) + 1
    places = {number: place for place, number in enumerate(shown.tolist())}
    return {"shown": list(places), "starts": starts.tolist(), "places": places}


def mistaken_for(evaluation: Evaluation) -> list[tuple[Bar, str]]:
    """The worst classes, each with the classes that it is mistaken for most often."""
    names, found = evaluation.names, []
    for bar in class_bars(evaluation)[: LIMITS["confused"]]:
        mistakes = [pair for pair in evaluation.pairs if names[pair.truth] == bar.name]
        if mistakes:
            others = ", ".join(f"{names[p.taken_for]} ({p.count:,})" for p in mistakes[:3])
            more = sum(pair.count for pair in mistakes[3:])
            found.append((bar, others + (f", others ({more:,})" if more else "")))
    return found


# --------------------------------------------------------------------------- one sentence or two


def summary(evaluation: Evaluation) -> str:
    """The most frequent mistake, and whether probabilities match the accuracy."""
    return f"{_mistakes(evaluation)} {_calibration(evaluation)}"


def _mistakes(evaluation: Evaluation) -> str:
    wrong = len(evaluation.wrong)
    if not wrong:
        return f"Every {_sample(evaluation)} is recognised."
    first, names = evaluation.pairs[0], evaluation.names
    if first.count == 1:
        return f"{wrong:,} {'is' if wrong == 1 else 'are'} wrong; no mistake is made twice."
    pair = f"{names[first.truth]} is mistaken for {names[first.taken_for]}"
    return f"{wrong:,} are wrong; most often, {pair} ({first.count:,} of {first.total:,})."


def _calibration(evaluation: Evaluation) -> str:
    """Whether probabilities are too high or too low, as far as so many samples can tell."""
    mean, (low, high) = float(evaluation.confidence.mean()), evaluation.interval
    stated = f"{percent(mean)} on average"
    if abs(mean - evaluation.accuracy) <= CLOSE:
        error = evaluation.calibration_error
        if error <= CLOSE:
            return f"Its probabilities match its accuracy: {stated}."
        return (
            f"Its probabilities match its accuracy on average, {percent(mean)}, but not one by "
            f"one: the calibration error is {percent(error)}."
        )
    if mean > high:
        return f"It is overconfident: its probabilities are {stated}."
    if mean < low:
        return f"It is underconfident: its probabilities are {stated}."
    few = plural(len(evaluation.truth), _sample(evaluation))
    wrong = "high" if mean > evaluation.accuracy else "low"
    return f"Its probabilities are {stated}; {few} are too few to know whether that is too {wrong}."


def _sample(evaluation: Evaluation) -> str:
    return "image" if evaluation.of_images else "sample"
