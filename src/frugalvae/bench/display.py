"""What is shown while experiments run."""

from __future__ import annotations

from typing import Any

from rich.progress import TextColumn

from frugalvae.bench.cell import Cell
from frugalvae.bench.clock import Clock
from frugalvae.console import Display
from frugalvae.formatting import duration, plural


class GridDisplay(Display):
    """Runs: done, running, failed, and the time left. A line for each that ended."""

    def __init__(self, quiet: bool = False) -> None:
        super().__init__(quiet, TextColumn("{task.fields[state]}", markup=False))
        self.done, self.failures, self.under_way = 0, 0, 0

    def start(self, total: int, clock: Clock) -> None:
        """Get ready for that many runs."""
        self.total, self.clock = total, clock
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

    def summary(self, done: int, failed: int, spent: float, wall: float, slots: int) -> None:
        """What it came to."""
        if done + failed:
            self.say(
                f"{plural(done, 'run')} done, {failed} failed: {duration(spent)} of work in "
                f"{duration(wall)}, {slots} at a time"
            )
