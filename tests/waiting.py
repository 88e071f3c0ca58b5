"""Other processes: what they do, and waiting for it, on however busy a machine."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

#: Seconds after which something hangs: more than ten times what anything here takes on an idle
#: machine of two cores.
PATIENCE = 600.0


def wait_until(condition: Callable[[], object]) -> None:
    """Come back when the condition holds; fail when it never does."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.01)


needs_proc = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc"
)


def descendants(pid: int) -> dict[int, str]:
    """Processes that a process has started, and these in turn, with their commands."""
    parents, commands = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except (OSError, ValueError):  # it has ended meanwhile
            continue
        if state != "Z":
            parents[int(folder.name)], commands[int(folder.name)] = int(parent), command
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return {child: commands[child] for child in found - {pid}}


def worked(pid: int) -> float:
    """Seconds of work that a process has done so far."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def kill_a_run(killed: list[int], task: str = "perform", gate: Path | None = None) -> None:
    """Wait until a worker of our Ray is at a run, and kill it; then others need not wait."""

    def at_work() -> list[int]:
        running = descendants(os.getpid()).items()
        return [pid for pid, command in running if command.startswith(f"ray::{task}")]

    wait_until(lambda: killed.extend(at_work()[:1]) or killed)
    os.kill(killed[0], signal.SIGKILL)
    if gate is not None:
        gate.unlink()
