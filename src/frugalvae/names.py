"""Names of classes: which ones are the same, and which ones look too much alike."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from frugalvae.errors import InputError


def as_label(name: str) -> str:
    """A name as all systems would write it: accents composed, no blanks around it.

    >>> as_label("Ru" + chr(0x308) + "ppell ") == "R" + chr(0xFC) + "ppell"
    True
    """
    return unicodedata.normalize("NFC", name).strip()


def check_case(new: Iterable[str], known: Iterable[str]) -> None:
    """Refuse names that differ in nothing but upper and lower case, or in blanks."""
    seen = {folded(name): name for name in known}
    for name in new:
        other = seen.setdefault(folded(name), name)
        if other != name:
            case = name.casefold() == other.casefold()
            raise InputError(
                f"classes {other!r} and {name!r} differ only in "
                f"{'upper and lower case' if case else 'case or blanks'}; rename the folder if "
                "they are one class, or give --case-matters if they are two"
            )


def folded(name: str) -> str:
    """A name without what people write one way or the other: case, and blanks.

    >>> folded("Snow  Bunting")
    'snow bunting'
    """
    return " ".join(name.casefold().split())
