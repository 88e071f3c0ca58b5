"""Waiting for what other processes do: for as long as it takes, on however busy a machine."""

from __future__ import annotations

import time
from collections.abc import Callable

#: Seconds after which something hangs: more than ten times what anything here takes on an idle
#: machine of two cores.
PATIENCE = 600.0


def wait_until(condition: Callable[[], object]) -> None:
    """Come back when the condition holds; fail when it never does."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.01)
