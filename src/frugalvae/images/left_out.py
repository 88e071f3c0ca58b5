"""Files that are not read: finding those that cannot be, and naming all of them."""

from __future__ import annotations

from collections.abc import Mapping

from frugalvae.errors import InputError
from frugalvae.formatting import plural, printable, shortened
from frugalvae.images.decode import decode
from frugalvae.images.kinds import HIDDEN
from frugalvae.images.limits import LARGE_BYTES, alone
from frugalvae.images.listing import Listing
from frugalvae.images.shards import ahead, reason
from frugalvae.images.walk import File
from frugalvae.progress import track

SHOWN = 20  # lines about files, of as many as there may be
EACH = 3  # files of one reason that have a line each


def unreadable(images: Listing, threads: int) -> dict[str, str]:
    """Images that cannot be read, each with the reason."""

    def problem(file: File) -> str | None:
        try:
            with alone(file.size > LARGE_BYTES):
                decode(file.read(), side=1)  # all of it is read, however small it is made
        except Exception as error:  # Pillow and zipfile fail in many ways
            return reason(error)
        return None

    checked = zip(
        track(images.paths, "checking images"),
        ahead(problem, images.files, threads, 4 * threads),
        strict=True,
    )
    return {str(path): why for path, why in checked if why is not None}


def refuse(left_out: Mapping[str, str]) -> None:
    """Raise an error that names files that are not read, if there are any.

    What is hidden or a system's own is no error: nobody put it there.
    """
    wrong = {path: why for path, why in left_out.items() if why != HIDDEN}
    if wrong:
        lines = "\n".join(named(wrong))
        raise InputError(
            f"{plural(len(wrong), 'file')} cannot be read; nothing was written. Repair or "
            f"remove them, or leave out --strict to go on without them:\n{lines}"
        )


def named(left_out: Mapping[str, str]) -> list[str]:
    """A line for each file; one line for all where many have the same reason.

    >>> named({"cat/1.png": "the file is empty"})
    ['  cat/1.png: the file is empty']
    """
    lines = []
    for why, paths in grouped(left_out).items():
        if len(paths) > EACH:
            lines.append(f"  {shortened(paths)}: {why}")
        else:
            lines += [f"  {printable(path)}: {left_out[path]}" for path in paths]
    more = len(lines) - SHOWN
    return lines[:SHOWN] + ([f"  and {more:,} more"] if more > 0 else [])


def counted(left_out: Mapping[str, str]) -> list[str]:
    """One line per reason, with how many files have it.

    >>> counted({"cat/a.txt": "not an image", "b.pdf": "not an image"})
    ['left out, not an image: 2 (cat/a.txt, b.pdf)']
    """
    return [
        f"left out, {why}: {len(paths):,} ({shortened(paths)})"
        for why, paths in grouped(left_out).items()
    ]


def grouped(left_out: Mapping[str, str]) -> dict[str, list[str]]:
    """Files by reason; what a reason says in parentheses differs from file to file."""
    groups: dict[str, list[str]] = {}
    for path, why in left_out.items():
        groups.setdefault(why.partition(" (")[0], []).append(path)
    return groups
