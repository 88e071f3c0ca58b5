"""Answers of ``predict``: the likeliest classes of each input, for people and for scripts."""

from __future__ import annotations

import csv
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frugalvae.cli.output import json_text
from frugalvae.formatting import printable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.table import Table

NONE = "none of these"
FIELDS = ("input", "rank", "label", "probability", "known")


@dataclass(frozen=True)
class Answer:
    """What an input is: the likeliest classes first; ``known`` if that was asked."""

    input: str
    top: list[tuple[Any, float]]
    known: bool | None

    @property
    def label(self) -> Any:
        """The likeliest class; None if it is none of them."""
        return None if self.known is False else self.top[0][0]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        top = [{"label": label, "probability": chance} for label, chance in self.top]
        return {"input": self.input, "label": self.label, "known": self.known, "top": top}


def ranked(
    names: list[str],
    classes: list[Any],
    chances: NDArray[np.float64],
    known: NDArray[np.bool_] | None,
    top: int,
) -> list[Answer]:
    """The likeliest classes of each input."""
    order = (-chances).argsort(axis=1, kind="stable")[:, :top]
    return [
        Answer(
            name,
            [(classes[column], float(chances[row, column])) for column in order[row].tolist()],
            None if known is None else bool(known[row]),
        )
        for row, name in enumerate(names)
    ]


def as_text(
    file: Path, answers: list[Answer], unreadable: dict[str, str], skipped: dict[str, str]
) -> str:
    """JSON of everything."""
    return json_text(
        {
            "file": str(file),
            "predictions": [answer.to_json() for answer in answers],
            "unreadable": [{"input": name, "reason": why} for name, why in unreadable.items()],
            "skipped": [{"input": name, "reason": why} for name, why in skipped.items()],
        },
        sys.stdout.encoding,
        indent=1,
    )


def write_csv(answers: list[Answer]) -> None:
    """A row for each input and rank."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(FIELDS)
    for answer in answers:
        known = "" if answer.known is None else str(answer.known).lower()
        for rank, (label, chance) in enumerate(answer.top, start=1):
            writer.writerow([printable(answer.input), rank, label, f"{chance:.6f}", known])


def show(answers: list[Answer]) -> None:
    """A table on a terminal; elsewhere a line each."""
    if sys.stdout.isatty() and answers:
        from frugalvae.console import Display

        Display().console.print(as_table(answers))
        return
    width = max((len(printable(answer.input)) for answer in answers), default=0)
    for answer in answers:
        print(f"{printable(answer.input):{width}}  {', '.join(in_words(answer))}")


def as_table(answers: list[Answer]) -> Table:
    """A row for each class; long names of files are folded, never cut."""
    from rich.table import Table

    table = Table()
    table.add_column("image", overflow="fold")
    table.add_column("class", overflow="fold")
    table.add_column("probability", justify="right")
    for answer in answers:
        first = [(NONE, "")] if answer.known is False else []
        rows = first + [(str(label), f"{chance:.1%}") for label, chance in answer.top]
        for number, row in enumerate(rows):
            last = number == len(rows) - 1 and len(answer.top) > 1
            table.add_row("" if number else answer.input, *row, end_section=last)
    return table


def in_words(answer: Answer) -> list[str]:
    """The likeliest classes with their probabilities.

    >>> in_words(Answer("a.jpg", [("emu", 0.93), ("dax", 0.04)], None))
    ['emu 93.0%', 'dax 4.0%']
    >>> in_words(Answer("a.jpg", [("emu", 0.93)], known=False))
    ['none of these', 'nearest is emu 93.0%']
    """
    classes = [f"{label} {chance:.1%}" for label, chance in answer.top]
    return [NONE, f"nearest is {classes[0]}"] if answer.known is False else classes
