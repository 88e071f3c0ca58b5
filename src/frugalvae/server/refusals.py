"""Refusals: what is answered instead, as JSON that says what was wrong and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from frugalvae.errors import (
    BusyError,
    FrugalError,
    KnownClassError,
    MemoryFileError,
    UnknownClassError,
)
from frugalvae.storage.store import FULL

_PATH = re.compile(r"(?<![\w/.:])(?:~|\.{1,2})?/(?:[^\s/'\";:,]+/)+(?=[^\s/'\";:,])")

#: The status of each kind of error: the first that fits.
STATUS: tuple[tuple[type[Exception], int], ...] = (
    (UnknownClassError, 404),
    (KnownClassError, 409),
    (BusyError, 503),
    (MemoryFileError, 409),
    (FrugalError, 422),
)


class RefusedError(Exception):
    """An answer other than the one that was hoped for.

    >>> RefusedError(413, "too large").status
    413
    """

    def __init__(self, status: int, why: str, retry: int | None = None, **more: Any) -> None:
        super().__init__(why)
        self.status, self.why, self.more = status, why, more
        self.headers = {} if retry is None else {"Retry-After": str(retry)}


def refusal_of(error: FrugalError, folders: Iterable[str] = ()) -> RefusedError:
    """The refusal that an error of the library comes to."""
    status = next(status for kind, status in STATUS if isinstance(error, kind))
    if is_full(error.__cause__):
        status = 507
    return RefusedError(
        status, without_paths(str(error), folders), retry=1 if status == 503 else None
    )


def is_full(error: BaseException | None) -> bool:
    """Whether there was no room on the disk."""
    return isinstance(error, OSError) and error.errno in FULL


def without_paths(text: str, folders: Iterable[str] = ()) -> str:
    """A message without the folders of this machine: those that are known, and what looks so.

    >>> without_paths("/home/ann/birds.frugal: there is nothing to undo; see /history")
    'birds.frugal: there is nothing to undo; see /history'
    """
    for folder in folders:
        text = text.replace(f"{folder}/", "").replace(folder, "its folder")
    return _PATH.sub("", text)
