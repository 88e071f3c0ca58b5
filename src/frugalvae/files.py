"""Atomic files: a kill at any moment leaves the old one or the new one; JSON, and locks."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

from frugalvae.errors import BusyError, InputError

_LIST = re.compile(r"\[\s+[^\[\]{}\"]*?\s+\]")  # numbers, true, false and null


def check_place(path: str | Path) -> None:
    """Refuse a file that cannot be written, before the work and not after it."""
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path} is a folder; give the name of a file")
    if not path.parent.is_dir():
        raise InputError(f"{path}: the folder {path.parent} does not exist; make it first")
    try:
        import tempfile

        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise InputError(
            f"{path}: nothing can be written in {path.parent} ({error.strerror}); "
            "choose another folder"
        ) from error


def write_bytes(path: str | Path, content: bytes, like: Path | None = None) -> None:
    """Write a new file beside the old one, flush it to disk, then rename it over the old one.

    It gets the mode of the old file, or that of ``like``. Of a link, the file that it leads to is
    replaced.
    """
    path = Path(os.path.realpath(path) if os.path.islink(path) else path)
    check_place(path)
    beside = path.with_name(f"{_prefix(path)}{os.urandom(4).hex()}")
    mode = _mode(like or path)
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
    descriptor = os.open(beside, flags, 0o666 if mode is None else 0o600)  # less the umask
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(beside, mode)
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def read_plain(path: str | Path, most: int = 10_000_000, *, first: bool = False) -> bytes:
    """The bytes of a regular file of at most ``most``, or its first ones; errors do not name it.

    A pipe or a device is refused: it could be waited for without end.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise InputError("it is not a regular file")
    with open(path, "rb") as file:
        content = file.read(most + (not first))
    if len(content) > most:
        raise InputError(f"the file has more than {most:,} bytes")
    return content


def unfinished(path: Path) -> list[Path]:
    """Files that killed processes left while they were writing this one."""
    name = re.compile(re.escape(_prefix(path)) + r"\w{8}")
    return [beside for beside in path.parent.iterdir() if name.fullmatch(beside.name)]


def _prefix(path: Path) -> str:
    """How names of files begin while they are written; nobody would choose such a name."""
    return f".frugalvae-unfinished-{path.name}."


def _mode(path: Path) -> int | None:
    """The permissions of a file; None if there is no such file."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return None


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


def json_digest(content: Any) -> str:
    """A hash of plain JSON values that does not depend on the order of keys.

    >>> json_digest({"a": 1, "b": 2}) == json_digest({"b": 2, "a": 1})
    True
    """
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()  # names of files


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


# --------------------------------------------------------------------------- locks


PAUSE = 0.05  # seconds between two attempts to get a lock


@contextmanager
def locked(path: Path, what: str, wait: float) -> Iterator[None]:
    """Hold the lock of a file inside the block, or say who holds it.

    The lock is on a hidden file beside it, which is removed afterwards. A process that dies
    loses its lock. It is our own and not a library's: it holds a note of who has it, is never a
    link that is followed, and no file that was there before is ever written into.

    Parameters
    ----------
    path
        The file that is going to be changed. It need not exist.
    what
        The command, which processes that wait are told.
    wait
        Seconds to wait for another process.
    """
    beside = path.with_name(f".{path.name}.lock")
    deadline = time.monotonic() + wait
    while (descriptor := _try(beside)) is None:
        if time.monotonic() >= deadline:
            raise BusyError(
                f"{path} is being changed by {_holder(beside)}; nothing was changed. Try again "
                f"when that is done, or wait longer than {wait:g} s with --wait SECONDS"
            )
        time.sleep(PAUSE)
    try:
        holder = json.dumps({"process": os.getpid(), "command": what, "since": time.time()})
        os.write(descriptor, holder.encode())
        yield
    finally:
        beside.unlink(missing_ok=True)  # while it is held: nobody can have taken it
        os.close(descriptor)


def _try(beside: Path) -> int | None:
    """A descriptor of a new, locked file; None while another process has the lock."""
    try:
        return _locked(beside, os.O_CREAT | os.O_EXCL)
    except FileExistsError:
        check_plain(beside)
    left = _locked(beside)
    if left is None:
        return None
    beside.unlink()  # left by a process that died; whatever it is, nothing is written into it
    os.close(left)
    return _try(beside)


def _locked(beside: Path, how: int = 0) -> int | None:
    """A descriptor of the file of that name, locked; None if another process has the lock."""
    try:
        import fcntl
    except ImportError:
        raise InputError(
            f"{beside.parent}: files can be changed on Linux and macOS alone, where they can be "
            "locked; here they can be asked"
        ) from None
    try:
        descriptor = os.open(beside, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | how, 0o666)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), os.lstat(beside)):
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)  # its holder has removed the file, or still has the lock
    return None


def check_plain(beside: Path) -> None:
    """Refuse a link, a folder or anything but a plain file, if anything is there."""
    with suppress(FileNotFoundError):  # nothing is there, or not any more
        if not stat.S_ISREG(os.lstat(beside).st_mode):
            raise InputError(f"{beside} is in the way: it is no plain file; move it elsewhere")


def _holder(beside: Path) -> str:
    """The process that has the lock, as its note says."""
    try:
        holder = json.loads(beside.read_text())
        since = time.strftime("%H:%M:%S", time.localtime(holder["since"]))
        return f"process {holder['process']} ('{holder['command']}', since {since})"
    except (OSError, ValueError, LookupError, TypeError):
        return "another process"
