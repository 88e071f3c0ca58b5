"""A lock on a file: one process changes it, the others wait and are told for whom.

Our own and not a library's: the lock file holds a note of who has it, is removed afterwards, is
never a link that is followed, and no file that was there before is ever written into.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from frugalvae.errors import InputError

PAUSE = 0.05  # seconds between two attempts


@contextmanager
def locked(path: Path, what: str, wait: float) -> Iterator[None]:
    """Hold the lock of a file inside the block, or say who holds it.

    The lock is on a hidden file beside it, which is removed afterwards. A process that dies
    loses its lock.

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
            raise InputError(
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
        _check_plain(beside)
    left = _locked(beside)
    if left is None:
        return None
    beside.unlink()  # left by a process that died; whatever it is, nothing is written into it
    os.close(left)
    return _try(beside)


def _locked(beside: Path, how: int = 0) -> int | None:
    """A descriptor of the file of that name, locked; None if another process has the lock."""
    import fcntl

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


def _check_plain(beside: Path) -> None:
    """Refuse a link, a folder or anything but a plain file in place of the lock."""
    with suppress(FileNotFoundError):  # its holder has removed it since
        if not stat.S_ISREG(os.lstat(beside).st_mode):
            raise InputError(f"{beside} is in the way: it is no plain file; move it elsewhere")


def _holder(beside: Path) -> str:
    """The process that has the lock, as its note says."""
    try:
        told = json.loads(beside.read_text())
        since = time.strftime("%H:%M:%S", time.localtime(told["since"]))
        return f"process {told['process']} ('{told['command']}', since {since})"
    except (OSError, ValueError, LookupError, TypeError):
        return "another process"
