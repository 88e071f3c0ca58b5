"""What is shown while experiments run, and how long the rest will take."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from rich.progress import TextColumn

from frugalvae.console import Display
from frugalvae.formatting import duration, plural
from frugalvae_lab.bench.grid import Cell


class Clock:
    """Estimates the remaining time from finished runs of the same data and memory."""

    def __init__(
        self, cells: Sequence[Cell], records: Sequence[Mapping[str, Any]], slots: int
    ) -> None:
        self.slots = slots
        self.left = {cell.key: cell for cell in cells}
        self.seconds: dict[tuple[str, ...], list[float]] = {}
        for record in records:
            settings = record["settings"]
            spent = sum(sum(task.values()) for task in record["seconds"])
            self._note(settings["data"], settings["memory"]["name"], spent)

    def _note(self, data: str, memory: str, seconds: float) -> None:
        for kind in ((data, memory), (data,), ()):
            self.seconds.setdefault(kind, []).append(seconds)

    def done(self, cell: Cell, seconds: float | None) -> None:
        """A run has ended; ``None`` if it failed."""
        self.left.pop(cell.key, None)
        if seconds is not None:
            self._note(cell.data, cell.memory.name, seconds)

    def remaining(self) -> float | None:
        """Seconds to the end; ``None`` before any run has finished."""
        if not self.seconds:
            return None
        total = 0.0
        for cell in self.left.values():
            kinds: list[tuple[str, ...]] = [(cell.data, cell.memory.name), (cell.data,), ()]
            known = next(self.seconds[kind] for kind in kinds if kind in self.seconds)
            total += sum(known) / len(known)
        return total / self.slots


class GridDisplay(Display):
    """Runs: done, running, failed, and the time left. A line for each that ended."""

    def __init__(self, quiet: bool = False) -> None:
        super().__init__(quiet, TextColumn("{task.fields[state]}", markup=False))
        self.done, self.failures, self.under_way, self.spent = 0, 0, 0, 0.0

    def start(self, total: int, clock: Clock) -> None:
        """Get ready for that many runs."""
        self.total, self.clock, self.started = total, clock, time.perf_counter()
        self.task = self.progress.add_task("runs", total=total, state="")

    def running(self, count: int) -> None:
        """How many are under way now."""
        self.under_way = count
        self.progress.update(self.task, completed=self.done + self.failures, state=self.state())

    def state(self) -> str:
        """What stands beside the bar."""
        left = self.clock.remaining()
        parts = [f"{self.under_way} running", f"{self.failures} failed"]
        return ", ".join(parts + ([f"{duration(left)} left"] if left is not None else []))

    def encoded(self, name: str, seconds: float) -> None:
        """An encoder was trained."""
        self.say(f"encoder: {name}, {duration(seconds)}")

    def finished(self, cell: Cell, record: dict[str, Any], seconds: float) -> None:
        """A run has ended well."""
        self.done += 1
        self.spent += seconds
        self.clock.done(cell, seconds)
        accuracy = record["metrics"]["final_average_accuracy"]
        shown = "" if accuracy is None else f"{accuracy:.1%}, "
        self._line(f"{cell.name}: {shown}{duration(seconds)}")

    def failed(self, cell: Cell, traceback: str) -> None:
        """A run has failed."""
        self.failures += 1
        self.clock.done(cell, None)
        self._line(f"{cell.name}: FAILED, {traceback.strip().splitlines()[-1]}")

    def _line(self, text: str) -> None:
        ended = self.done + self.failures
        left = self.clock.remaining()
        more = f"; {duration(left)} left" if left and ended < self.total else ""
        self.say(f"{ended} of {self.total}  {text}{more}")

    def summary(self, slots: int) -> None:
        """What it came to."""
        wall = duration(time.perf_counter() - self.started)
        if self.done + self.failures:
            self.say(
                f"{plural(self.done, 'run')} done, {self.failures} failed: {duration(self.spent)} "
                f"of work in {wall}, {slots} at a time"
            )
