"""Lists of what is not to be taught: written by ``check``, read by ``learn --except``.

One line per image, as ``learn`` names it: its path inside the folder; or ``x_train[12]``, a row of
a feature file. Lines that begin with ``#`` are remarks. Odd names are JSON strings.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from frugalvae.errors import InputError
from frugalvae.files import write_bytes
from frugalvae.formatting import printable

ROW = "x_train[{}]"


def write_list(
    path: Path, remarks: Sequence[str], entries: Iterable[tuple[str, str, bool]]
) -> None:
    """Write names with the reason for each; those that are only proposed stand in remarks."""
    lines = [f"# {remark}" for remark in remarks]
    for name, why, taken in entries:
        lines += [f"# {printable(why)}", _written(name) if taken else f"#   {_written(name)}"]
    text = "\n".join(lines) + "\n"
    write_bytes(path, text.encode("utf-8", "surrogateescape"))


def read_list(path: Path) -> list[str]:
    """The names in a list, each once."""
    try:
        text = path.read_bytes().decode("utf-8", "surrogateescape")
    except OSError as error:
        raise InputError(
            f"--except {path} cannot be read ({error.strerror}); give a list that 'frugalvae "
            "check' wrote, or a text file with one path per line"
        ) from error
    lines = (line.strip("\r ") for line in text.split("\n"))
    return list(dict.fromkeys(_read(path, line) for line in lines if line and line[0] != "#"))


def _written(name: str) -> str:
    r"""A name as a line.

    >>> _written("cat/1.png"), _written("#1.png")
    ('cat/1.png', '"#1.png"')
    """
    plain = name.strip() == name and name[:1] not in '#"' and "\n" not in name and "\r" not in name
    return name if plain else json.dumps(name)


def _read(path: Path, line: str) -> str:
    if line[0] != '"':
        return line
    try:
        return str(json.loads(line))
    except ValueError:
        raise InputError(f"--except {path}: {line[:60]!r} is no path, nor a JSON string") from None
