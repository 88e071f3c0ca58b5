"""Processes of our own: how often they are started, on how many threads, and when they end."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import connection, parent_process

TRIES = 3  # how often a job is started whose process dies, as it does when memory runs out


@contextmanager
def starting(threads: int = 1) -> Iterator[None]:
    """Processes that are started inside the block compute on so many threads each.

    A process reads it when it loads its libraries. The number of threads changes last digits.
    """
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = str(threads)
    try:
        yield
    finally:
        os.environ.pop("OMP_NUM_THREADS")
        os.environ |= {} if before is None else {"OMP_NUM_THREADS": before}


def end_with_parent(tidy: Callable[[], object] = lambda: None) -> None:
    """End this process when its parent ends, even if that is killed; interrupts are the parent's.

    ``tidy`` is called before.
    """
    parent = parent_process()
    assert parent is not None

    def end() -> None:
        connection.wait([parent.sentinel])
        tidy()
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=end, daemon=True).start()
