"""Numbers and names as people say them."""

from __future__ import annotations

from collections.abc import Sequence

SHOWN = 3  # names of a kind that are told


def plural(number: int, what: str) -> str:
    """How many of something there are.

    >>> plural(1, "class"), plural(2, "new class"), plural(2000, "image")
    ('1 class', '2 new classes', '2,000 images')
    """
    ending = "" if number == 1 else "es" if what.endswith("s") else "s"
    return f"{number:,} {what}{ending}"


def shortened(names: Sequence[str]) -> str:
    """The first few names, and how many more there are.

    >>> shortened(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more:,} more" if more > 0 else "")


def local_time(when: str) -> str:
    """A time in ISO 8601 as the clock on the wall shows it; anything else as it is."""
    from datetime import datetime

    try:
        return datetime.fromisoformat(when).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return when


def visible(text: str) -> str:
    r"""Text from a file with a question mark in place of each control character.

    >>> visible("red\x1b[31m")
    'red?[31m'
    """
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def size(taken: int) -> str:
    """Bytes.

    >>> size(980), size(2_500), size(11_400_000), size(3_000_000_000)
    ('980 bytes', '2.5 kB', '11.4 MB', '3.0 GB')
    """
    for unit, letter in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if taken >= unit:
            return f"{taken / unit:.1f} {letter}"
    return f"{taken} bytes"


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
