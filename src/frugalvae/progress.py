"""Progress of long loops, reported to a listener.

The library never prints. Long loops run through :func:`track`; a program that wants to show
their progress listens::

    with listening(bar.update):
        classifier.partial_fit(X, y)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

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
