"""The HTML page of an evaluation: what is recognised, what is not, and how it looks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from frugalvae.report import figures
from frugalvae.report.evaluation import Evaluation, Pair
from frugalvae.report.page import percent, render

IN_TABLE = 40  # classes whose confusions a table can show
WORST = 24  # classes that are listed at once where there are very many
TAKEN = 12  # classes of which it is said what they are taken for, where no table can show it
PAIRS = 8  # mistakes that are shown with pictures
LISTED = 20  # or without
EXAMPLES = 3  # pictures of a mistake
TYPICAL = 2  # pictures of what was recognised
WRONG = 120  # wrong images that are shown
TITLED = 1500  # cells of a large matrix that say what they are
CLOSE = 0.05  # of mean probability and accuracy, where they count as the same
LEFT_OUT = 50  # images that cannot be read and are named


@dataclass(frozen=True)
class Bar:
    """A class or a task: how many samples it has, and the share that was recognised."""

    name: str
    share: float
    count: int
    note: str = ""


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


def shown_names(classes: Sequence[str]) -> list[str]:
    """Names of folders as people write them, unless two would look the same.

    >>> shown_names(["Horned_Lark", "Cardinal"]), shown_names(["a_b", "a b"])
    (['Horned Lark', 'Cardinal'], ['a_b', 'a b'])
    """
    written = [name.replace("_", " ").strip() or name for name in classes]
    return written if len(set(written)) == len(classes) else list(classes)


def verdict(evaluation: Evaluation, names: Sequence[str]) -> str:
    """What a person should know if they read one line."""
    return f"{_mistakes(evaluation, names)} {_honesty(evaluation)}"


def _mistakes(evaluation: Evaluation, names: Sequence[str]) -> str:
    wrong = len(evaluation.wrong)
    if not wrong:
        return f"Every {word(evaluation, 1)} is recognised."
    if evaluation.pairs[0].count == 1:
        return f"{wrong:,} {'is' if wrong == 1 else 'are'} wrong, no mistake is made twice."
    return f"{wrong:,} are wrong; most often, {sentence(evaluation.pairs[0], names)}."


def sentence(pair: Pair, names: Sequence[str]) -> str:
    """A mistake in words."""
    whole = f"{pair.count:,} of {pair.total:,}"
    return f"{names[pair.truth]} is taken for {names[pair.taken_for]} ({whole})"


def _honesty(evaluation: Evaluation) -> str:
    """Whether probabilities can be believed, as far as so many samples can tell."""
    mean, (low, high) = float(evaluation.confidence.mean()), evaluation.interval
    sure = f"{percent(mean)} on average"
    if abs(mean - evaluation.accuracy) <= CLOSE:
        return f"It is about as sure as it is right: {sure}."
    if mean > high:
        return f"It is surer than it should be: {sure}."
    if mean < low:
        return f"It is less sure than it could be: {sure}."
    few = f"{len(evaluation.truth):,} {word(evaluation, len(evaluation.truth))}"
    wrong = "high" if mean > evaluation.accuracy else "low"
    return f"Its probabilities are {sure}; from {few} one cannot tell whether that is too {wrong}."


def word(evaluation: Evaluation, number: int) -> str:
    """What samples are called."""
    return ("image" if evaluation.of_images else "sample") + ("" if number == 1 else "s")


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
