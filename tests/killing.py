"""Runs commands in processes of their own, and kills them: what tests start and talk to.

Importing takes seconds and learning takes none, so that this process imports everything once
and forks for each command. It reads a line of JSON for each: the words of the command, and
when to kill it: ``after`` so many seconds, or before the ``nth`` operation on files. ``most``
is the largest file that it may write, which stands for a full disk. The answer is a line of
JSON: how it ended, and how long it took.
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
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from frugalvae.cli import main as cli
from tests.tool import QUICK, paint

OPERATIONS = (
    "open", "replace", "rename", "link", "unlink", "chmod", "fsync", "mkdir", "rmdir", "write",
)  # fmt: skip


def serve() -> None:
    """Answer until there is no more to read."""
    from frugalvae.encoders import remembered as encoder
    from frugalvae.images import encode as folder
    from frugalvae.storage import store
    from tests.colours import Colours

    encoder.make_frozen = lambda _, **__: Colours()  # type: ignore[assignment]
    folder.SHARD = 4
    store.STALE = 0
    cli.parser = functools.cache(cli.parser)  # making it takes longer than most commands
    warm_up()
    for line in sys.stdin:
        print(json.dumps(run(**json.loads(line))), flush=True)


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


def run(words: list[str], after: float | None, nth: int | None, most: int | None) -> dict[str, Any]:
    """Run a command in a process of its own; -9 is the code of one that was killed."""
    started = time.perf_counter()
    child = os.fork()
    if not child:
        command(words, nth, most)
    if after is not None:
        time.sleep(after)
        os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return {"code": code, "seconds": time.perf_counter() - started}


def command(words: list[str], nth: int | None, most: int | None) -> None:
    """What the new process does; it never comes back."""
    code = 99
    try:
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        if nth is not None:
            count_down(nth)
        if most is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        code = cli.main(words)
    finally:
        os._exit(code)


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
