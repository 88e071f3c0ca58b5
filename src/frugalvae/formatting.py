"""Numbers and names as people say them."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

SHOWN = 3  # names of a kind that are told


#: Kinds of characters that steer a terminal instead of standing for something: controls,
#: invisible formatting such as a change of direction, lone surrogates, and line separators.
STEERING = ("Cc", "Cf", "Cs", "Zl", "Zp")
JOINERS = "\u200c\u200d"  # needed to write Persian, Hindi and many emoji; they do no harm


def printable(text: str, *, lines: bool = False) -> str:
    r"""Text that is safe on a terminal: what would steer it is shown as an escape.

    Names of files, folders and classes come from anywhere. Whatever shows them to people
    shows them through this; JSON and CSV keep them as they are.

    Parameters
    ----------
    lines
        Keep line breaks, in messages of several lines.

    >>> printable("two\nlines, \x1b[31mred")
    'two\\nlines, \\x1b[31mred'
    >>> printable("photo[final].jpg")
    'photo[final].jpg'
    """
    if text.isprintable():
        return text
    kept = JOINERS + "\n" * lines
    return "".join(
        _escaped(letter)
        if unicodedata.category(letter) in STEERING and letter not in kept
        else letter
        for letter in text
    )


def _escaped(letter: str) -> str:
    if "\udc80" <= letter <= "\udcff":  # a byte of a name that is not UTF-8, as Python keeps it
        return f"\\x{ord(letter) - 0xDC00:02x}"
    return letter.encode("unicode_escape").decode()


def plural(number: int, what: str) -> str:
    """How many of something there are.

    >>> plural(1, "class"), plural(2, "new class"), plural(2000, "image")
    ('1 class', '2 new classes', '2,000 images')
    """
    ending = "" if number == 1 else "es" if what.endswith("s") else "s"
    return f"{number:,} {what}{ending}"


def shortened(names: Sequence[str], most: int = SHOWN) -> str:
    """The first few names, and how many more there are.

    >>> shortened(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    more = len(names) - most
    return printable(", ".join(names[:most])) + (f" and {more:,} more" if more > 0 else "")


def size(taken: int) -> str:
    """Bytes.

    >>> size(2_500), size(11_400_000)
    ('2.5 kB', '11.4 MB')
    """
    return f"{taken / 1e6:.1f} MB" if taken >= 1e6 else f"{taken / 1e3:.1f} kB"


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
