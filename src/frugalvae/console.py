"""What the command line shows while it works and when it is done."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from frugalvae.progress import listening


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
