"""Answers of ``predict``, in the forms that it can print."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frugalvae.cli.output import json_text
from frugalvae.formatting import printable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NONE, UNSURE = "none of these", "not sure"
FIELDS = ("input", "rank", "label", "probability", "known", "familiarity")


@dataclass(frozen=True)
class Answer:
    """What an input shows.

    Attributes
    ----------
    top
        The likeliest classes with their probabilities; none if none is likely enough.
    known, familiarity
        Whether the input belongs to a taught class at all, and the score that says so; None if
        that was not asked.
    """

    input: str
    top: list[tuple[Any, float]]
    known: bool | None = None
    familiarity: float | None = None

    @property
    def label(self) -> Any:
        """The likeliest class; None if it is none of them, or none is likely enough."""
        return self.top[0][0] if self.top and self.known is not False else None

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "input": self.input,
            "label": self.label,
            "known": self.known,
            "familiarity": self.familiarity,
            "top": [{"label": label, "probability": chance} for label, chance in self.top],
        }


@dataclass(frozen=True)
class Unreadable:
    """An input that cannot be read, and why; ``skipped`` if a folder has it and it is no image."""

    input: str
    reason: str
    skipped: bool = False

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"input": self.input, "reason": self.reason}


#: Some results that came together.
Batch = list[Answer | Unreadable]


def rank(
    names: list[str],
    classes: list[Any],
    chances: NDArray[np.float64],
    familiarity: NDArray[np.float64] | None,
    *,
    top: int = 1,
    least: float = 0.0,
    threshold: float = 0.0,
) -> Batch:
    """The likeliest classes of each input.

    Parameters
    ----------
    chances
        Probabilities (n, k) of the classes.
    familiarity
        Shape (n,), if it is to be judged whether inputs belong to a known class.
    top, least
        How many classes are named, and how probable they have to be.
    threshold
        The least familiarity of an input that is taken for known.
    """
    order = (-chances).argsort(axis=1, kind="stable")[:, :top]
    answers: Batch = []
    for row, name in enumerate(names):
        ranked = [(classes[column], float(chances[row, column])) for column in order[row].tolist()]
        likely = [(label, chance) for label, chance in ranked if chance >= least]
        score = None if familiarity is None else float(familiarity[row])
        answers.append(Answer(name, likely, None if score is None else score >= threshold, score))
    return answers


# --------------------------------------------------------------------------- forms


def as_lines(_: Path, batches: Iterable[Batch]) -> Iterator[str]:
    """For people: a line for each answer."""
    width = 0  # of names so far: those to come are not known yet
    for batch in batches:
        answers = [entry for entry in batch if isinstance(entry, Answer)]
        names = [printable(answer.input) for answer in answers]
        width = max([width, *map(len, names)])
        lines = [
            f"{name:{width}}  {printable(', '.join(in_words(answer)))}\n"
            for name, answer in zip(names, answers, strict=True)
        ]
        if lines:
            yield "".join(lines)


def in_words(answer: Answer) -> list[str]:
    """The likeliest classes with their probabilities.

    >>> in_words(Answer("a.jpg", [("emu", 0.93), ("dax", 0.04)]))
    ['emu 93.0%', 'dax 4.0%']
    >>> in_words(Answer("a.jpg", [("emu", 0.93)], known=False))
    ['none of these', 'nearest is emu 93.0%']
    """
    classes = [f"{label} {chance:.1%}" for label, chance in answer.top]
    if answer.known is False:
        return [NONE, *(f"nearest is {first}" for first in classes[:1])]
    return classes or [UNSURE]


def as_csv(_: Path, batches: Iterable[Batch]) -> Iterator[str]:
    """A row for each input and rank; one without a class if none is likely enough."""
    yield ",".join(FIELDS) + "\n"
    for batch in batches:
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        for answer in batch:
            if isinstance(answer, Unreadable):
                continue
            known = "" if answer.known is None else str(answer.known).lower()
            score = "" if answer.familiarity is None else f"{answer.familiarity:.6f}"
            for number, (label, chance) in enumerate(answer.top, start=1):
                writer.writerow([answer.input, number, label, f"{chance:.6f}", known, score])
            if not answer.top:
                writer.writerow([answer.input, "", "", "", known, score])
        yield buffer.getvalue()


def as_json_lines(_: Path, batches: Iterable[Batch]) -> Iterator[str]:
    """An object for each input, a line each."""
    for batch in batches:
        texts = (json_text(entry.to_json(), sys.stdout.encoding) for entry in batch)
        yield "".join(f"{text}\n" for text in texts)


def as_json(file: Path, batches: Iterable[Batch]) -> Iterator[str]:
    """One document, when all is answered."""
    entries = [entry for batch in batches for entry in batch]
    failures = [entry for entry in entries if isinstance(entry, Unreadable)]
    document = {
        "file": str(file),
        "predictions": [entry.to_json() for entry in entries if isinstance(entry, Answer)],
        "unreadable": [entry.to_json() for entry in failures if not entry.skipped],
        "skipped": [entry.to_json() for entry in failures if entry.skipped],
    }
    yield json_text(document, sys.stdout.encoding, indent=1) + "\n"


#: Each takes the classifier's file and the results as they come, and gives text as it is ready.
FORMS: dict[str, Callable[[Path, Iterable[Batch]], Iterator[str]]] = {
    "lines": as_lines,
    "csv": as_csv,
    "jsonl": as_json_lines,
    "json": as_json,
}
