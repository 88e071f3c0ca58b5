"""The HTML page of an evaluation: what is recognised, what is not, and how it looks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from frugalvae.formatting import plural
from frugalvae.report import plots
from frugalvae.report.evaluation import Evaluation
from frugalvae.report.evaluation_summary import shown_names, summary
from frugalvae.report.render import render

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
    names, images = shown_names(evaluation.classes), evaluation.of_images
    return render(
        "evaluation.html",
        e=evaluation,
        names=names,
        pictures=pictures,
        summary=summary(evaluation, names),
        classes=class_bars(evaluation, names),
        tasks=task_bars(evaluation),
        **matrix(evaluation),
        pairs=evaluation.pairs[: LIMITS["pairs" if images else "rows"]],
        wrong=evaluation.wrong[: LIMITS["wrong" if images else "rows"]],
        mistaken_for=mistaken_for(evaluation, names),
        reliability=plots.reliability(evaluation.bins, evaluation.accuracy),
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


def class_bars(evaluation: Evaluation, names: Sequence[str]) -> list[Bar]:
    """The classes that have samples, the worst first."""
    bars = [
        Bar(
            names[number],
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


def mistaken_for(evaluation: Evaluation, names: Sequence[str]) -> list[tuple[Bar, str]]:
    """The worst classes, each with the classes that it is mistaken for most often."""
    found = []
    for bar in class_bars(evaluation, names)[: LIMITS["confused"]]:
        mistakes = [pair for pair in evaluation.pairs if names[pair.truth] == bar.name]
        if mistakes:
            others = ", ".join(f"{names[p.taken_for]} ({p.count:,})" for p in mistakes[:3])
            more = sum(pair.count for pair in mistakes[3:])
            found.append((bar, others + (f", others ({more:,})" if more else "")))
    return found
