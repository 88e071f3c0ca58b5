"""The confusion matrix of an evaluation, as a page shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from frugalvae.report.evaluation import Evaluation

IN_TABLE = 40  # classes that fit into a table; more are drawn
TITLED = 1500  # cells of a drawn matrix that have a tooltip


@dataclass(frozen=True)
class Cell:
    """An entry of the matrix: its place, its share of the row, and its meaning in words."""

    row: int
    column: int
    count: int
    share: float
    title: str

    @property
    def right(self) -> bool:
        """Whether it counts right predictions."""
        return self.row == self.column


@dataclass(frozen=True)
class Matrix:
    """The matrix of the classes that have samples or were predicted.

    Attributes
    ----------
    names, tested
        Of the classes, and whether each has samples.
    cells
        Entries that are not zero: right predictions first, then the most frequent mistakes.
    starts
        The first class of each task except the first task.
    """

    names: Sequence[str]
    tested: Sequence[bool]
    cells: Sequence[Cell]
    starts: Sequence[int]

    @property
    def at(self) -> dict[tuple[int, int], Cell]:
        """Entries by row and column."""
        return {(cell.row, cell.column): cell for cell in self.cells}

    @property
    def titled(self) -> Sequence[Cell]:
        """The entries with a tooltip."""
        return self.cells[:TITLED]

    @property
    def untitled(self) -> Sequence[Cell]:
        """All others."""
        return self.cells[TITLED:]

    @property
    def fits(self) -> bool:
        """Whether a table can show it."""
        return len(self.names) <= IN_TABLE


def matrix(evaluation: Evaluation, names: Sequence[str]) -> Matrix:
    """The matrix of the classes that have samples or were predicted, in the order of tasks."""
    counts, totals = evaluation.confusion, evaluation.class_counts
    shown = np.flatnonzero(counts.sum(axis=0) + totals)
    cells = []
    for row, column in np.argwhere(counts[np.ix_(shown, shown)]).tolist():
        truth, answer = int(shown[row]), int(shown[column])
        count, total = int(counts[truth, answer]), int(totals[truth])
        words = "recognised" if row == column else f"mistaken for {names[answer]}"
        title = f"{names[truth]}, {words}: {count:,} of {total:,}"
        cells.append(Cell(row, column, count, count / total, title))
    return Matrix(
        [names[number] for number in shown.tolist()],
        (totals[shown] > 0).tolist(),
        sorted(cells, key=lambda cell: (not cell.right, -cell.count)),
        (np.flatnonzero(np.diff(evaluation.task_of_class[shown])) + 1).tolist(),
    )
