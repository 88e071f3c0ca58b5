"""Names of folders that ``suggest`` makes: guesses, which ``learn`` does not take for classes."""

from __future__ import annotations

from collections.abc import Iterable

from frugalvae.errors import InputError
from frugalvae.formatting import shortened

GUESS = "perhaps "


def guess(name: object) -> str:
    """The folder of images that may be of a class.

    >>> guess("AC/DC")
    'perhaps AC DC'
    """
    return GUESS + str(name).replace("/", " ")


def refuse_guesses(names: Iterable[str]) -> None:
    """Refuse folders that nobody has named yet."""
    found = [repr(name) for name in names if name.startswith(GUESS)]
    if found:
        raise InputError(
            f"folders with names of 'frugalvae suggest', which only guesses: {shortened(found)}; "
            "look at the images, move what is wrong, and give each folder the name of its class"
        )
