"""Answers of ``predict``, in the forms that it can print."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from frugalvae.console import json_text
from frugalvae.formatting import as_cell, printable
from frugalvae.model.answers import NONE, UNSURE, Answer, Batch, Unreadable

FIELDS = (
    "input", "rank", "label", "probability", "known", "familiarity", "reason", "sure", "set"
)  # fmt: skip


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
    ['none of these', 'nearest is emu (93.0% among the known classes)']
    >>> in_words(Answer("a.jpg", [("emu", 0.93), ("dax", 0.04)], known=False))[1:]
    ['nearest is emu (93.0% among the known classes)', 'dax (4.0%)']
    >>> in_words(Answer("a.jpg", [("emu", 0.53)], sure=False, among=["emu", "dax"]))
    ['not sure', 'likeliest is emu (53.0%)', 'one of: emu, dax']
    """
    if answer.known is False:
        nearest = "nearest is {} ({:.1%} among the known classes)"
        return [NONE, *(nearest.format(*first) for first in answer.top[:1]), *_others(answer)]
    among = [f"one of: {', '.join(map(str, answer.among))}"] if answer.among else []
    if answer.sure is False:
        likeliest = "likeliest is {} ({:.1%})"
        first = [likeliest.format(*first) for first in answer.top[:1]]
        return [UNSURE, *first, *_others(answer), *among]
    return [*([f"{label} {chance:.1%}" for label, chance in answer.top] or [UNSURE]), *among]


def _others(answer: Answer) -> list[str]:
    return [f"{label} ({chance:.1%})" for label, chance in answer.top[1:]]


def as_csv(_: Path, batches: Iterable[Batch]) -> Iterator[str]:
    """A row for each input and rank; one without a class if none is likely enough.

    An input that cannot be read has a row with the reason; what folders have beside images has
    none.
    """
    yield ",".join(FIELDS) + "\n"
    for batch in batches:
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        for entry in batch:
            if isinstance(entry, Answer):
                writer.writerows(map(as_cell, row) for row in csv_rows(entry))
            elif not entry.skipped:
                cells = [entry.input, "", "", "", "", "", entry.reason, "", ""]
                writer.writerow(map(as_cell, cells))
        yield buffer.getvalue()


def csv_rows(answer: Answer) -> Iterator[list[Any]]:
    """The rows of an answer, under :data:`FIELDS`."""
    known = "" if answer.known is None else str(answer.known).lower()
    score = "" if answer.familiarity is None else f"{answer.familiarity:.6f}"
    sure = "" if answer.sure is None else str(answer.sure).lower()
    among = "" if answer.among is None else "; ".join(map(str, answer.among))
    for number, (label, chance) in enumerate(answer.top, start=1):
        yield [answer.input, number, label, f"{chance:.6f}", known, score, "", sure, among]
    if not answer.top:
        yield [answer.input, "", "", "", known, score, "", sure, among]


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
