"""Images that cannot be read: finding them, and naming them."""

from __future__ import annotations

from frugalvae.errors import InputError
from frugalvae.images.decode import decode
from frugalvae.images.listing import File, Listing
from frugalvae.images.shards import ahead, reason
from frugalvae.progress import track

SHOWN = 20  # that are named, of as many as there may be


def unreadable(images: Listing, threads: int) -> dict[str, str]:
    """Images that cannot be read, each with the reason."""

    def problem(file: File) -> str | None:
        try:
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


def refuse(skipped: dict[str, str]) -> None:
    """Raise an error that names images that cannot be read, if there are any."""
    if skipped:
        lines = "\n".join(named(skipped))
        raise InputError(
            f"{count(len(skipped), 'image')} cannot be read; nothing was written. Repair or "
            f"remove them, or leave out --strict to go on without them:\n{lines}"
        )


def named(skipped: dict[str, str]) -> list[str]:
    """A line for each unreadable image, but for a long tail of them.

    >>> named({"cat/1.png": "the file is empty"})
    ['  cat/1.png: the file is empty']
    """
    lines = [f"  {path}: {why}" for path, why in list(skipped.items())[:SHOWN]]
    more = len(skipped) - len(lines)
    return lines + ([f"  and {more:,} more"] if more else [])


def count(number: int, what: str) -> str:
    """How many of something there are.

    >>> count(1, "image"), count(2000, "image")
    ('1 image', '2,000 images')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"
