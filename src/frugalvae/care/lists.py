"""What ``check`` and ``suggest`` write for people to look at, and ``learn`` reads.

``suggest`` copies photographs into folders whose names are guesses; ``learn`` refuses such names.
``check`` writes a list of what is not to be taught, for ``learn --except``.

One line per image, as ``learn`` names it: its path inside the folder; or ``x_train[12]``, a row of
a feature file. Lines that begin with ``#`` are remarks. Odd names are JSON strings.

Above each image ``check`` writes what it would do. Where a person did otherwise, that is a
decision, and the next ``check`` of the same folder keeps it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from frugalvae.errors import InputError
from frugalvae.files import read_plain, write_bytes
from frugalvae.formatting import printable, shortened

MOST_BYTES = 100_000_000  # of a list: a million long paths
GUESS = "perhaps "  # with which folders of guesses begin
TAKEN, PROPOSED, DECIDED = "leave out", "perhaps", "decided"


@dataclass(frozen=True)
class ListEntry:
    """An image of a list: its name, the reason, whether it is left out, and who decided so."""

    name: str
    why: str
    taken: bool = True
    decided: bool = False

    @property
    def lines(self) -> list[str]:
        """Two lines: what is to be done and why, and the name.

        >>> ListEntry("cat/1.png", "it is tiny", taken=False).lines
        ['# perhaps: it is tiny', '#   cat/1.png']
        """
        mark = DECIDED if self.decided else TAKEN if self.taken else PROPOSED
        name = _written(self.name)
        return [f"# {mark}: {printable(self.why)}", name if self.taken else f"#   {name}"]


def write_list(path: Path, remarks: Sequence[str], entries: Iterable[ListEntry]) -> None:
    """Write names with the reason for each; those that are not left out stand in remarks."""
    lines = [f"# {remark}" for remark in remarks]
    text = "\n".join(lines + [line for entry in entries for line in entry.lines]) + "\n"
    write_bytes(path, text.encode("utf-8", "surrogateescape"))


def read_list(path: Path) -> list[str]:
    """The names in a list, each once."""
    try:
        lines = _lines(path)
    except (OSError, InputError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise InputError(
            f"--except {path} cannot be read ({why}); give a list that 'frugalvae "
            "check' wrote, or a text file with one path per line"
        ) from error
    return list(dict.fromkeys(_read(path, line) for line in lines if line and line[0] != "#"))


def read_decisions(path: Path, remark: str) -> dict[str, bool]:
    """What a person decided in a list with this remark at its head: whether names are left out.

    Nothing if there is no such list: one of another folder says nothing about this one.
    """
    lines = _lines(path) if path.is_file() else []
    decisions, mark = dict[str, bool](), ""
    for line in lines if f"# {remark}" in lines else []:
        written = next((m for m in (TAKEN, PROPOSED, DECIDED) if line.startswith(f"# {m}:")), "")
        taken = bool(line) and line[0] != "#"
        if not written and (mark == DECIDED or taken != (mark == TAKEN)) and (taken or mark):
            decisions[_read(path, line.lstrip("# "))] = taken
        mark = written
    return decisions


def folder_of(path: Path) -> str | None:
    """The remark of a list that says which folder it is about; None if there is none."""
    lines = _lines(path) if path.is_file() else []
    return next((line[2:] for line in lines if line.startswith("# of ")), None)


def with_decisions(
    entries: Sequence[ListEntry], decisions: Mapping[str, bool], names: Iterable[str]
) -> list[ListEntry]:
    """Entries as they were decided; what is not found any more, but there, comes last.

    >>> entry, decisions = ListEntry("1.png", "it is tiny"), {"1.png": False, "gone": True}
    >>> with_decisions([entry], decisions, ["1.png"])
    [ListEntry(name='1.png', why='it is tiny', taken=False, decided=True)]
    """
    rest = set(names) - {entry.name for entry in entries}
    return [
        replace(entry, taken=decisions[entry.name], decided=True)
        if entry.name in decisions
        else entry
        for entry in entries
    ] + [
        ListEntry(name, "not found again", taken, decided=True)
        for name, taken in decisions.items()
        if name in rest
    ]


def _lines(path: Path) -> list[str]:
    text = read_plain(path, MOST_BYTES).decode("utf-8", "surrogateescape")
    return [line.strip("\r ") for line in text.split("\n")]


def _written(name: str) -> str:
    r"""A name as a line.

    >>> _written("cat/1.png"), _written("#1.png")
    ('cat/1.png', '"#1.png"')
    """
    plain = name.strip() == name and name[:1] not in '#"' and "\n" not in name and "\r" not in name
    return name if plain else json.dumps(name)


def _read(path: Path, line: str) -> str:
    if line[:1] != '"':
        return line
    try:
        return str(json.loads(line))
    except ValueError:
        raise InputError(f"--except {path}: {line[:60]!r} is no path, nor a JSON string") from None


# --------------------------------------------------------------------------- folders


def guess(name: object) -> str:
    """The folder of images that may be of a class.

    >>> guess("AC/DC")
    'perhaps AC DC'
    """
    return GUESS + str(name).replace("/", " ")


def refuse_guesses(names: Iterable[str]) -> None:
    """Refuse folders that nobody has named yet."""
    found = [repr(name) for name in names if name.startswith(GUESS)]
    if found:
        raise InputError(
            f"folders with names of 'frugalvae suggest', which only guesses: {shortened(found)}; "
            "look at the images, move what is wrong, and give each folder the name of its class"
        )
