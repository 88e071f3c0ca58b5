"""The HTML page of an evaluation: what is recognised, what is not, and how it looks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from frugalvae.report import figures
from frugalvae.report.confusions import matrix
from frugalvae.report.evaluation import Evaluation
from frugalvae.report.page import render
from frugalvae.report.verdict import shown_names, verdict

WORST = 24  # classes that are listed at once where there are very many
TAKEN = 12  # classes of which it is said what they are taken for, where no table can show it
PAIRS = 8  # mistakes that are shown with pictures
LISTED = 20  # or without
EXAMPLES = 3  # pictures of a mistake
TYPICAL = 2  # pictures of what was recognised
WRONG = 120  # wrong images that are shown
LEFT_OUT = 50  # images that cannot be read and are named


@dataclass(frozen=True)
class Bar:
    """A class or a task: how many samples it has, and the share that was recognised."""

    name: str
    share: float
    count: int
    note: str = ""


def evaluation_page(evaluation: Evaluation, pictures: Mapping[int, str]) -> str:
    """One page that needs nothing but itself.

    Parameters
    ----------
    evaluation
        What came out.
    pictures
        Addresses of the rows' pictures, at least of :func:`pictured`; empty if there are none.
    """
    names = shown_names(evaluation.classes)
    return render(
        "evaluation.html",
        e=evaluation,
        names=names,
        pictures=pictures,
        verdict=verdict(evaluation, names),
        classes=class_bars(evaluation, names),
        tasks=task_bars(evaluation),
        matrix=matrix(evaluation, names),
        pairs=evaluation.pairs[: PAIRS if evaluation.of_images else LISTED],
        wrong=evaluation.wrong[: WRONG if evaluation.of_images else LISTED],
        worst=worst(evaluation, names),
        reliability=figures.reliability(evaluation.bins, evaluation.accuracy),
        limits={
            "examples": EXAMPLES,
            "typical": TYPICAL,
            "worst": WORST,
            "left_out": LEFT_OUT,
        },
    )


def pictured(evaluation: Evaluation) -> list[int]:
    """Rows of which the page shows a picture."""
    if not evaluation.of_images:
        return []
    rows = evaluation.wrong[:WRONG]
    for pair in evaluation.pairs[:PAIRS]:
        rows = rows + evaluation.mistaken(pair)[:EXAMPLES]
        for number in (pair.truth, pair.taken_for):
            rows = rows + evaluation.typical(number)[:TYPICAL]
    return rows


def class_bars(evaluation: Evaluation, names: Sequence[str]) -> list[Bar]:
    """Classes that have samples, the worst first."""
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
    """Tasks in their order; without samples, the share is NaN."""
    sizes = np.bincount(evaluation.task_of_class).tolist()
    return [
        Bar(f"task {number}", float(share), int(count), f"{size} class{'es' * (size != 1)}")
        for number, (share, count, size) in enumerate(
            zip(evaluation.task_accuracy, evaluation.task_counts, sizes, strict=True), start=1
        )
    ]


def worst(evaluation: Evaluation, names: Sequence[str]) -> list[tuple[Bar, str]]:
    """Classes that are recognised least, each with what it is taken for."""
    numbers = sorted(evaluation.tested, key=lambda n: float(evaluation.class_accuracy[n]))
    found = []
    for number in numbers[:TAKEN]:
        mistakes = [pair for pair in evaluation.pairs if pair.truth == number]
        if mistakes:
            taken_for = ", ".join(f"{names[p.taken_for]} ({p.count:,})" for p in mistakes[:3])
            more = sum(pair.count for pair in mistakes[3:])
            bar = Bar(
                names[number],
                float(evaluation.class_accuracy[number]),
                int(evaluation.class_counts[number]),
            )
            found.append((bar, taken_for + (f", others ({more:,})" if more else "")))
    return found
