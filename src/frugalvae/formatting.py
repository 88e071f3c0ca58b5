"""Numbers, sizes, times and names in words, for people."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

SHOWN = 3  # names of a kind that are told

#: Kinds of characters that steer a terminal instead of standing for something: controls,
#: invisible formatting such as a change of direction, lone surrogates, and line separators.
STEERING = ("Cc", "Cf", "Cs", "Zl", "Zp")
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what formulas of spreadsheets begin with
JOINERS = "\u200c\u200d"  # needed to write Persian, Hindi and many emoji; they do no harm


def printable(text: str) -> str:
    r"""Text that is safe on a terminal: what would steer it is shown as an escape.

    Names of files, folders and classes come from anywhere. Whatever shows them to people
    shows them through this; JSON keeps them as they are, and CSV by :func:`as_cell`.

    >>> printable("two\nlines, \x1b[31mred")
    'two\\nlines, \\x1b[31mred'
    >>> printable("photo[final].jpg")
    'photo[final].jpg'
    """
    if text.isprintable():
        return text
    return "".join(
        _escaped(letter)
        if unicodedata.category(letter) in STEERING and letter not in JOINERS
        else letter
        for letter in text
    )


def printable_message(text: str) -> str:
    r"""The same of a message, which may end in a list of indented lines.

    >>> print(printable_message("cannot be read:\n  a\nb.jpg: it is empty\n  c.jpg: it is cut off"))
    cannot be read:
      a\nb.jpg: it is empty
      c.jpg: it is cut off
    """
    return "\n  ".join(map(printable, text.split("\n  ")))


def _escaped(letter: str) -> str:
    if "\udc80" <= letter <= "\udcff":  # a byte of a name that is not UTF-8, as Python keeps it
        return f"\\x{ord(letter) - 0xDC00:02x}"
    return letter.encode("unicode_escape").decode()


def as_cell(value: object) -> object:
    """A value of a CSV file that no spreadsheet takes for a formula: a quote goes before a text.

    >>> as_cell("=1+1"), as_cell("-5"), as_cell("wren")
    ("'=1+1", '-5', 'wren')
    """
    if not isinstance(value, str) or not value.startswith(FORMULA):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


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


def count(number: float) -> str:
    """A whole number.

    >>> count(80219)
    '80,219'
    """
    return f"{number:,.0f}"


def percent(share: float | None) -> str:
    """A share of one, to one decimal; nothing for what was not measured.

    >>> percent(0.8571), percent(-0.0001), percent(float("nan"))
    ('85.7%', '0.0%', '')
    """
    if share is None or share != share:
        return ""
    return f"{round(100 * share, 1) + 0.0:.1f}%"


def most_sure(share: float) -> str:
    """How sure a finding is: a judgement from some samples is never certain.

    >>> most_sure(0.8571), most_sure(0.9996)
    ('85.7%', 'more than 99%')
    """
    return percent(share) if share <= 0.99 else "more than 99%"


def local_time(when: str) -> str:
    """A time in ISO 8601 as the clock on the wall shows it; anything else as it is."""
    from datetime import datetime

    try:
        return datetime.fromisoformat(when).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return when


def size(taken: int) -> str:
    """That many bytes.

    >>> size(980), size(81_920), size(1_250_000), size(3_000_000_000)
    ('980 bytes', '81.9 kB', '1.2 MB', '3.0 GB')
    """
    for unit, letters in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if taken >= unit:
            return f"{taken / unit:.1f} {letters}"
    return f"{taken} bytes"


def duration(seconds: float) -> str:
    """A duration in words.

    >>> duration(8.04), duration(200), duration(7800)
    ('8 s', '3 min 20 s', '2 h 10 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def quoted(name: str) -> str:
    """A name as it is typed.

    >>> quoted("wren"), quoted("house wren")
    ('wren', "'house wren'")
    """
    import shlex

    return shlex.quote(name)
