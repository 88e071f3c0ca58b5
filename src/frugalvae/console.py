"""What the command line shows while it works and when it is done."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text

from frugalvae.formatting import printable, printable_message
from frugalvae.progress import listening


class Display:
    """Progress bars and results on standard output; bars only where that is a terminal.

    Whatever is shown is text: nothing in it is taken for markup, and escape sequences are shown
    instead of obeyed. ``quiet`` shows nothing; errors are shown elsewhere.

    Parameters
    ----------
    last
        What stands at the end of a progress bar; the time by default.
    """

    def __init__(self, quiet: bool = False, last: ProgressColumn | None = None) -> None:
        self.console = Console(quiet=quiet, markup=False, highlight=False, emoji=False)
        self.progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            last or TimeElapsedColumn(),
            console=self.console,
            disable=not self.console.is_terminal,
            transient=True,
        )

    @contextmanager
    def working(self, what: str, total: int) -> Iterator[None]:
        """Show a bar for ``total`` tasks, and under it one for what the library is doing."""
        self.outer = self.progress.add_task(printable(what), total=total)
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
        """A result in a line, which a list of indented lines may follow."""
        self.console.print(Text(printable_message(text)), soft_wrap=True)

    def say_lines(self, lines: Iterable[str]) -> None:
        """Results, a line each."""
        for line in lines:
            self.say(line)

    def table(self, title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """A table: the first column to the left, numbers to the right; headings if any."""
        table = Table(
            title=Text(printable(title)),
            title_justify="left",
            title_style="bold",
            show_header=any(header),
        )
        for position, name in enumerate(header):
            table.add_column(Text(printable(name)), justify="right" if position else "left")
        for row in rows:
            table.add_row(*(Text(printable(cell)) for cell in row))
        self.console.print(table)
