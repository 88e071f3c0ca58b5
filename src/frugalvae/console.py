"""What the command line shows while it works and when it is done."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from frugalvae.progress import listening

if TYPE_CHECKING:
    from frugalvae.experiments.cell import Cell
    from frugalvae.experiments.clock import Clock


class Display:
    """Progress bars and results on standard output; bars only where that is a terminal.

    ``quiet`` shows neither; errors are not its business.
    """

    def __init__(self, quiet: bool = False) -> None:
        self.console = Console(quiet=quiet)
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self.console,
            disable=not self.console.is_terminal,
            transient=True,
        )

    @contextmanager
    def working(self, what: str, total: int) -> Iterator[None]:
        """Show a bar for ``total`` tasks, and under it one for what the library is doing."""
        self.outer = self.progress.add_task(what, total=total)
        with self.watching():
            yield
        self.progress.remove_task(self.outer)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Show a bar for what the library is doing.

        Warnings become plain lines: no file names, no code.
        """
        with self.progress, warnings.catch_warnings():
            warnings.showwarning = self._warn  # type: ignore[assignment]
            self.inner = self.progress.add_task("")
            with listening(self._inner_step):
                yield
            self.progress.remove_task(self.inner)

    def step(self) -> None:
        """One more task is done."""
        self.progress.advance(self.outer)

    def _inner_step(self, what: str, done: int, total: int) -> None:
        self.progress.update(self.inner, description=f"  {what}", completed=done, total=total)

    def _warn(self, message: Warning | str, *_: object) -> None:
        self.say(f"warning: {message}")

    def say(self, text: str) -> None:
        """A line of results."""
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def table(self, title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """A table: the first column to the left, numbers to the right; headings if any."""
        table = Table(
            title=title, title_justify="left", title_style="bold", show_header=any(header)
        )
        for position, name in enumerate(header):
            table.add_column(name, justify="right" if position else "left")
        for row in rows:
            table.add_row(*row)
        self.console.print(table)


class GridDisplay:
    """A grid of runs: done, running, failed, and the time left. A line for each that ended."""

    def __init__(self, quiet: bool = False) -> None:
        self.console = Console(quiet=quiet)
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[state]}"),
            console=self.console,
            disable=not self.console.is_terminal,
            transient=True,
        )
        self.done, self.failures, self.under_way = 0, 0, 0

    def start(self, total: int, clock: Clock) -> None:
        """Get ready for that many runs."""
        self.total, self.clock = total, clock
        self.task = self.bar.add_task("runs", total=total, state="")

    def __enter__(self) -> GridDisplay:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def say(self, text: str) -> None:
        """A line."""
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def running(self, count: int) -> None:
        """How many are under way now."""
        self.under_way = count
        self.bar.update(self.task, completed=self.done + self.failures, state=self.state())

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
                f"{done} runs done, {failed} failed: {duration(spent)} of work in "
                f"{duration(wall)} on {slots} at a time"
            )


def duration(seconds: float) -> str:
    """A time as people say it.

    >>> duration(8.04), duration(200), duration(7800)
    ('8 s', '3 min 20 s', '2 h 10 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
