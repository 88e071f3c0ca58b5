"""Atomic files: a kill at any moment leaves the old one or the new one."""

from __future__ import annotations

import json
import os
import re
import stat
import tempfile
from pathlib import Path
from typing import Any, NoReturn

from frugalvae.errors import InputError

_LIST = re.compile(r"\[\s+[^\[\]{}\"]*?\s+\]")  # numbers, true, false and null


def check_place(path: str | Path) -> None:
    """Refuse a file that cannot be written, before the work and not after it."""
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path} is a folder; give the name of a file")
    if not path.parent.is_dir():
        raise InputError(f"{path}: the folder {path.parent} does not exist; make it first")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise InputError(
            f"{path}: nothing can be written in {path.parent} ({error.strerror}); "
            "choose another folder"
        ) from error


def write_bytes(path: str | Path, content: bytes, like: Path | None = None) -> None:
    """Write a new file beside the old one, flush it to disk, then rename it over the old one.

    It gets the mode of the old file, or that of ``like``.
    """
    path = Path(path)
    check_place(path)
    descriptor, beside = tempfile.mkstemp(prefix=_prefix(path), dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(beside, _mode(like or path))
        os.replace(beside, path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def unfinished(path: Path) -> list[Path]:
    """Files that killed processes left while they were writing this one."""
    name = re.compile(re.escape(_prefix(path)) + r"\w{8}")
    return [beside for beside in path.parent.iterdir() if name.fullmatch(beside.name)]


def _prefix(path: Path) -> str:
    """How names of files begin while they are written; nobody would choose such a name."""
    return f".frugalvae-unfinished-{path.name}."


def _mode(path: Path) -> int:
    """The permissions of a file; those of a new one follow the umask."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def write_text(path: str | Path, content: str) -> None:
    """Like :func:`write_bytes`, in UTF-8."""
    write_bytes(path, content.encode())


def write_json(path: str | Path, content: dict[str, Any]) -> None:
    """Like :func:`write_text`, as JSON that people can read: a list of values takes one line."""
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    write_text(path, _LIST.sub(lambda match: " ".join(match[0].split()), text) + "\n")


def json_object(text: str | bytes) -> dict[str, Any] | None:
    """The JSON object that a text is; None if it is none.

    >>> json_object('{"n": 1}'), json_object('{"n": NaN}'), json_object("[1]")
    ({'n': 1}, None, None)
    """
    try:
        found = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def sync_folder(folder: Path) -> None:
    """Flush a rename to disk, where the system can open folders."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
