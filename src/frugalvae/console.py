"""The console: results, progress, JSON for scripts, and errors.

The library never prints. Long loops run through :func:`track`; a program that wants to show
their progress listens::

    with listening(bar.update):
        classifier.partial_fit(X, y)
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

from frugalvae.formatting import printable, printable_message

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

Item = TypeVar("Item")

#: Called with what is being done, how many steps are done, and of how many.
Listener = Callable[[str, int, int], None]

_listener: ContextVar[Listener | None] = ContextVar("frugalvae_progress", default=None)


def track(items: Sequence[Item], what: str) -> Iterator[Item]:
    """Iterate over ``items``, and tell the listener before the first and after each.

    >>> with listening(lambda *event: print(event)):
    ...     for _ in track(range(2), "counting"):
    ...         pass
    ('counting', 0, 2)
    ('counting', 1, 2)
    ('counting', 2, 2)
    """
    listener, total = _listener.get(), len(items)
    if listener is None:
        yield from items
        return
    listener(what, 0, total)
    for done, item in enumerate(items, start=1):
        yield item
        listener(what, done, total)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Tell ``listener`` about all progress made inside the block."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def print_error(text: str) -> None:
    """A message on standard error."""
    print(f"frugalvae: {printable_message(text)}", file=sys.stderr)


def print_json(value: Any) -> None:
    """A value on standard output, as JSON."""
    print(json_text(value, sys.stdout.encoding, indent=1))


def json_text(value: Any, encoding: str | None = None, indent: int | None = None) -> str:
    r"""JSON in plain letters, or in escapes where the encoding lacks some of them.

    A name of a file that is not UTF-8 has lone surrogates, which no encoding has.

    >>> json_text({"input": "\u00e9t\u00e9.jpg"}, "ascii")
    '{"input": "\\u00e9t\\u00e9.jpg"}'
    """
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(value, indent=indent)
    return text


class Display:
    """Progress bars and results on standard output; bars only where that is a terminal.

    Whatever is shown is text: nothing in it is taken for markup, and escape sequences are shown
    instead of obeyed. ``quiet`` shows nothing; errors are shown elsewhere. What draws is imported
    with the first display: an answer of ``predict`` need not wait for it.

    Parameters
    ----------
    last
        What stands at the end of a progress bar; the time by default.
    """

    def __init__(self, quiet: bool = False, last: ProgressColumn | None = None) -> None:
        from rich import progress
        from rich.console import Console

        self.console = Console(quiet=quiet, markup=False, highlight=False, emoji=False)
        self.progress = progress.Progress(
            progress.TextColumn("{task.description}", markup=False),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            last or progress.TimeElapsedColumn(),
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

    def say(self, *lines: str) -> None:
        """Results, a line each; a list of indented lines may follow a line."""
        from rich.text import Text

        for line in lines:
            self.console.print(Text(printable_message(line)), soft_wrap=True)

    def table(self, title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """A table: the first column to the left, numbers to the right; headings if any."""
        from rich.table import Table
        from rich.text import Text

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
