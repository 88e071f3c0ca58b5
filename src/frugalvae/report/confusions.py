"""The confusion matrix of an evaluation, as a page can show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from frugalvae.report.evaluation import Evaluation

IN_TABLE = 40  # classes whose confusions a table can show
TITLED = 1500  # cells of a large matrix that say what they are


@dataclass(frozen=True)
class Cell:
    """An entry of the matrix: its place, what it says, and its share of the row."""

    row: int
    column: int
    count: int
    share: float
    title: str

    @property
    def right(self) -> bool:
        """Whether it counts right answers."""
        return self.row == self.column


@dataclass(frozen=True)
class Matrix:
    """Confusions of some classes.

    Attributes
    ----------
    names
        Of the classes that have samples or were answered.
    cells
        Entries that are not zero.
    starts
        Where a task begins, but for the first one.
    tested
        Which of them have samples.
    """

    names: Sequence[str]
    cells: Sequence[Cell]
    starts: Sequence[int]
    tested: Sequence[bool]

    @property
    def at(self) -> dict[tuple[int, int], Cell]:
        """Entries by row and column."""
        return {(cell.row, cell.column): cell for cell in self.cells}

    @property
    def titled(self) -> list[Cell]:
        """The largest entries, as many as a page can explain one by one."""
        return sorted(self.cells, key=lambda cell: (not cell.right, -cell.count))[:TITLED]

    @property
    def untitled(self) -> list[Cell]:
        """All others."""
        return sorted(self.cells, key=lambda cell: (not cell.right, -cell.count))[TITLED:]

    @property
    def fits(self) -> bool:
        """Whether a table can show it."""
        return len(self.names) <= IN_TABLE


def matrix(evaluation: Evaluation, names: Sequence[str]) -> Matrix:
    """Confusions of the classes that have samples or were answered, in the order of tasks."""
    counts, totals = evaluation.confusion, evaluation.class_counts
    shown = np.flatnonzero(counts.sum(axis=0) + totals)
    tasks = evaluation.task_of_class[shown]
    cells = []
    for row, column in np.argwhere(counts[np.ix_(shown, shown)]).tolist():
        truth, answer = int(shown[row]), int(shown[column])
        count, total = int(counts[truth, answer]), int(totals[truth])
        name = names[truth]
        words = f"{name}, recognised" if row == column else f"{name} taken for {names[answer]}"
        cells.append(Cell(row, column, count, count / total, f"{words}: {count:,} of {total:,}"))
    return Matrix(
        [names[number] for number in shown.tolist()],
        cells,
        (np.flatnonzero(np.diff(tasks)) + 1).tolist(),
        (totals[shown] > 0).tolist(),
    )
