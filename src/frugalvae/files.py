"""Writing files so that a kill at any moment leaves the old one or the new one."""

from __future__ import annotations

import json
import os
import re
import stat
import tempfile
from pathlib import Path
from typing import Any

from frugalvae.errors import InputError

_LIST = re.compile(r"\[\s+[^\[\]{}\"]*?\s+\]")  # numbers, true, false and null


def check_place(path: str | Path) -> None:
    """Refuse a file that cannot be written before the work, not after it."""
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
    """Write beside the file, make sure it is on disk, then rename over it.

    A file that is replaced may be read by whom it could be read before; ``like`` names
    another one whose mode to take.
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
    """What killed processes have left of a file that they were writing."""
    name = re.compile(re.escape(_prefix(path)) + r"\w{8}")
    return [beside for beside in path.parent.iterdir() if name.fullmatch(beside.name)]


def _prefix(path: Path) -> str:
    """How the names of files begin that are being written: as nobody would call their own."""
    return f".frugalvae-unfinished-{path.name}."


def _mode(path: Path) -> int:
    """Who may read a file and write it; of a new one, as the umask says."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return 0o666 & ~_umask()


def write_text(path: str | Path, content: str) -> None:
    """Like :func:`write_bytes`, in UTF-8."""
    write_bytes(path, content.encode())


def write_json(path: str | Path, content: dict[str, Any]) -> None:
    """Like :func:`write_text`, as JSON that a person can read: a list of values is a line."""
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    write_text(path, _LIST.sub(lambda match: " ".join(match[0].split()), text) + "\n")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def sync_folder(folder: Path) -> None:
    """Make the renaming itself durable, where the system can open folders."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
