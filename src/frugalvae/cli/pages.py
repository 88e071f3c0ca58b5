"""Pages that verbs write besides what they print."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from frugalvae.cli.options import add
from frugalvae.console import Display
from frugalvae.errors import MissingPackageError, needing
from frugalvae.files import write_text

#: Where each verb writes its page, unless another place is named.
PAGES = {name: Path(f"{name}.html") for name in ("check", "evaluation", "suggest")}


def add_page(parser: argparse.ArgumentParser, name: str) -> None:
    """The option that says where the page is written."""
    about = f"the page to write (default: {PAGES[name]}, if the extra 'report' is installed)"
    add(parser, "--output", default=PAGES[name], help=about)


def page_of(verb: str, make: Callable[[], str]) -> str | MissingPackageError:
    """The page that ``make`` returns; or what has to be installed for it."""
    try:
        with needing(f"the page of {verb!r}"):
            return make()
    except MissingPackageError as error:
        return error


def write_page(
    page: str | MissingPackageError, output: Path, display: Display, *besides: str
) -> None:
    """Write a page and say so, with what was written besides.

    Without the packages that make pages, that is an error only if a page was asked for by
    ``--output``. Call it last: what a verb found is printed all the same.
    """
    written = list(besides)
    if isinstance(page, str):
        write_text(output, page)
        written.insert(0, str(output))
    elif output in PAGES.values():
        display.say(f"no page is written: {page}")
    if written:
        display.say(f"written: {', and '.join(written)}")
    if isinstance(page, MissingPackageError) and output not in PAGES.values():
        raise page
