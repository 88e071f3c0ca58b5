"""What several memories made of the same tasks: the page and the picture of the demo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frugalvae.bench.run import Record
from frugalvae.report import plots
from frugalvae.report.page import data_uri, render

X_LABEL, Y_LABEL = "tasks learned", "accuracy on all digits so far"


@dataclass(frozen=True, eq=False)
class Lesson:
    """What a memory was taught, and what came of it.

    Attributes
    ----------
    name, what
        What the memory is called, and what it does.
    record
        What was measured.
    drawings
        For each task, the classes known by then, each with pictures (n, height, width).
    """

    name: str
    what: str
    record: Record
    drawings: Sequence[Mapping[Any, NDArray[np.float32]]]

    @property
    def course(self) -> list[float]:
        """After each task, the mean accuracy on the tasks so far."""
        return [float(np.nanmean(row)) for row in self.record.accuracy]

    @property
    def final(self) -> float:
        """Accuracy after the last task."""
        return self.record.metrics["final_average_accuracy"]

    @property
    def seconds(self) -> float:
        """Learning and testing, all tasks together."""
        return sum(sum(task.values()) for task in self.record.seconds)

    @property
    def labels(self) -> list[Any]:
        """The classes in the order in which they were taught."""
        return [label for part in self.record.tasks for label in part]

    @property
    def layers(self) -> dict[int, list[dict[str, Any]]]:
        """For each layer of a null-space decoder, its state after each task."""
        states = self.record.layers
        numbers = sorted({state["layer"] for state in states})
        return {number: [s for s in states if s["layer"] == number] for number in numbers}


def demo_page(lessons: Sequence[Lesson], **content: Any) -> str:
    """The demo's HTML page; ``content`` is what ``demo.html`` says beside the lessons."""
    return render(
        "demo.html",
        lessons={lesson.name: lesson for lesson in lessons},
        pictures={lesson.name: pictures(lesson) for lesson in lessons},
        curves=plots.curves(courses(lessons), x_label=X_LABEL, y_label=Y_LABEL),
        colours=plots.COLOURS,
        tasks=lessons[0].record.tasks,
        labels=lessons[0].labels,
        **content,
    )


def pictures(lesson: Lesson, columns: int = 3) -> list[dict[Any, str]]:
    """For each task, the drawings of each class as one address that a page can hold."""
    return [
        {
            label: data_uri(plots.png(plots.mosaic(list(images), columns)))
            for label, images in drawn.items()
        }
        for drawn in lesson.drawings
    ]


def demo_picture(
    lessons: Sequence[Lesson], rows: Sequence[str], real: Mapping[Any, NDArray[np.float32]]
) -> bytes:
    """A PNG: what some memories draw at the end, below real pictures, and all their courses."""
    labels = lessons[0].labels
    drawn = {"real digits": real} | {
        lesson.name: lesson.drawings[-1] for lesson in lessons if lesson.name in rows
    }
    return plots.overview(
        {
            name: [plots.mosaic(list(images[label][:4]), columns=2) for label in labels]
            for name, images in drawn.items()
        },
        [str(label) for label in labels],
        courses(lessons),
        titles=("What each memory draws after the last task", "What it still recognises"),
        x_label=X_LABEL,
        y_label=Y_LABEL,
    )


def courses(lessons: Sequence[Lesson]) -> dict[str, list[float]]:
    """The line of each lesson."""
    return {lesson.name: lesson.course for lesson in lessons}
