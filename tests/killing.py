"""Runs commands in processes of their own, and kills them: what tests start and talk to.

Importing takes seconds and learning takes none, so that this process imports everything once
and forks for each command. It reads a line of JSON for each: the words of the command, and
when to kill it: before the ``nth`` operation on files, or at the byte of a file with which it
would be longer than ``within``. ``most`` is the largest file that it may write, which stands for
a full disk. The answer is how it ended: -9 is a kill, and -25 is one in the middle of a file.
"""

from __future__ import annotations

import errno
import functools
import json
import os
import resource
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from frugalvae.cli import main as cli
from tests.tool import QUICK, paint

OPERATIONS = (
    "open", "replace", "rename", "link", "unlink", "chmod", "fsync", "mkdir", "rmdir", "write",
)  # fmt: skip


def serve() -> None:
    """Answer until there is no more to read."""
    from frugalvae import encoders
    from frugalvae import encoding as folder
    from frugalvae.storage import store
    from tests.colours import Colours

    encoders.make_encoder = lambda _, **__: Colours()  # type: ignore[assignment]
    folder.SHARD = 4
    store.STALE = 0
    cli.parser = functools.cache(cli.parser)  # making it takes longer than most commands
    warm_up()
    for line in sys.stdin:
        print(run(**json.loads(line)), flush=True)


def warm_up() -> None:
    """Import all that a command imports."""
    with tempfile.TemporaryDirectory() as folder:
        for parts in (QUICK, []):
            file = f"{folder}/{len(parts)}"
            for name in ("cat", "dax"):
                images = paint(Path(folder, name), name)
                more = parts if name == "cat" else []
                assert cli.main(["learn", file, str(images), "--quiet", *more]) == 0
        for words in (["merge-classes", file, "cat", "dax"], ["unlearn", file, "cat", str(images)]):
            cli.main([*words, "--quiet"])


def run(words: list[str], nth: int | None, within: int | None, most: int | None) -> int:
    """Run a command in a process of its own."""

    def act() -> int:
        if most is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        return cli.main(words)

    return ended(act, nth, within)


def ended(act: Callable[[], object], nth: int | None = None, within: int | None = None) -> int:
    """How a process of its own ends that does this, if it is not killed before: its exit code."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code: object = 99
    try:
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        if nth is not None:
            count_down(nth)
        if within is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it
            resource.setrlimit(resource.RLIMIT_FSIZE, (within, within))
        code = act() or 0
    finally:
        os._exit(code if isinstance(code, int) else 0)


def each_kill(act: Callable[[], object]) -> Iterator[bool]:
    """Do it again and again, killed before each of its operations on files; the last time, not.

    After each, whether it was killed.
    """
    for nth in range(1000):
        code = ended(act, nth)
        assert code in (0, -signal.SIGKILL), code
        yield code != 0
        if code == 0:
            return
    raise AssertionError("it never ends")


def count_down(left: int) -> None:
    """Make the process kill itself before that operation on files."""

    def counted(operation: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return operation(*arguments, **named)

        return call

    for name in OPERATIONS:
        setattr(os, name, counted(getattr(os, name)))


def full(*_: Any, **__: Any) -> Any:
    """What an operation does on a full disk."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


if __name__ == "__main__":
    serve()
