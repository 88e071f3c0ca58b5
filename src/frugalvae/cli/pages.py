"""Pages that verbs write beside what they print."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from frugalvae.console import Display
from frugalvae.errors import MissingPackageError, needing
from frugalvae.files import write_text


def page_of(verb: str, make: Callable[[], str]) -> str | MissingPackageError:
    """The page that ``make`` returns; or what has to be installed for it."""
    try:
        with needing(f"the page of {verb!r}"):
            return make()
    except MissingPackageError as error:
        return error


def write_page(
    page: str | MissingPackageError, output: Path, display: Display, beside: str = ""
) -> None:
    """Write a page and say so, with what was written besides; or raise what is missing.

    Call it last: what a verb found is printed all the same.
    """
    if isinstance(page, MissingPackageError):
        raise page
    write_text(output, page)
    display.say(f"written: {output}{beside}")
