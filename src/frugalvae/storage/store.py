"""The file of a classifier: changed one step at a time, and never lost.

Beside ``birds.frugal`` there may be

- ``birds.frugal.undo``: what it was before the last change;
- ``.birds.frugal.before``: what it was before a change that is under way, or was killed;
- ``.birds.frugal.lock``: held by the process that is changing it;
- ``birds.frugal.parts``: features of images that a killed ``learn`` has encoded;
- ``.frugalvae-unfinished-birds.frugal.*``: what a killed command was writing.

A change has three steps: give the old file a second name, ``before``; replace the file; rename
``before`` to ``undo``. Each step happens or does not. If a kill leaves ``before``, the next
command sees whether the file was replaced, and finishes the change.
"""

from __future__ import annotations

import errno
import hashlib
import os
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frugalvae.errors import (
    FrugalError,
    InputError,
    MemoryFileError,
    MissingPackageError,
)
from frugalvae.files import check_place, check_plain, locked, sync_folder, unfinished, write_bytes

if TYPE_CHECKING:  # a wrong path is refused before NumPy is imported
    from frugalvae.model.model import Model
    from frugalvae.storage.model_file import Contents

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
BLOCK = 2**16  # bytes of files that are compared at once
STALE = 60  # seconds after which nobody is still writing a file
QUANTILES = "the quantiles of familiarity are of all classes together, and still count its samples"


class Store:
    """A classifier's file, and what is kept beside it.

    >>> store = Store("birds.frugal")
    >>> store.undo.name
    'birds.frugal.undo'
    """

    def __init__(self, path: str | Path, *, trust: Collection[str] = ()) -> None:
        self.given = Path(path)  # what messages call it
        self.path = Path(os.path.realpath(path))  # or a link would be replaced by a file
        self.undo = self.path.with_name(f"{self.path.name}.undo")
        self._before = self.path.with_name(f".{self.path.name}.before")
        self._trust = trust  # modules that parts from outside may be imported from

    @property
    def exists(self) -> bool:
        """Whether there is such a file already."""
        return self.path.exists()

    @contextmanager
    def changing(self, what: str, wait: float) -> Iterator[None]:
        """No other process changes the file inside the block."""
        check_place(self.path)
        if self.exists and not os.access(self.path, os.W_OK):
            raise InputError(
                f"{self.given} is write-protected, and is as it was; change who may write it, or "
                "work on a copy"
            )
        try:
            with locked(self.path, what, wait):
                for beside in (self.undo, self._before):
                    check_plain(beside)
                self._settle()
                yield
        except OSError as error:
            if error.errno not in FULL:
                raise
            raise FrugalError(
                f"{self.given}: there is no room to write it ({error.strerror}), and it is as it "
                "was; make room on the disk, and run the same command again"
            ) from error

    def load(self, *, empty: bool = False, answering: bool = True) -> Model:
        """The model in the file, which must know a class unless it may be ``empty``.

        Whoever is not ``answering`` yet calls :meth:`check_answering` before the first answer.
        """
        from frugalvae.storage.model_file import load

        self.check_there()
        with self._offering_undo():
            model = load(self.given, trust=self._trust, answering=answering)
        if not (empty or len(model.classes)):
            raise InputError(
                f"{self.given} knows no class: all that it was taught was taken back; "
                f"'frugalvae learn {self.given} FOLDER' teaches it"
            )
        return model

    def check_answering(self, model: Model) -> None:
        """Make what answers need, and refuse the file if they are not finite."""
        from frugalvae.storage.model_file import check_answering

        with self._offering_undo():
            check_answering(model, self.given)

    @contextmanager
    def _offering_undo(self) -> Iterator[None]:
        """Errors about a file that cannot be used name the way back, if there is one."""
        try:
            yield
        except MemoryFileError as error:
            if type(error) is not MemoryFileError or not self.undo.exists():
                raise
            raise MemoryFileError(
                f"{error}; 'frugalvae undo {self.given}' goes back to what it was before the last "
                "change"
            ) from error.__cause__

    def read(self) -> Contents:
        """What the file says of itself, without making the model."""
        from frugalvae.storage.model_file import read_file

        self.check_there()
        return read_file(self.path, self.given)

    def check_there(self) -> None:
        """Refuse a file that does not exist, and say how to make one."""
        if not self.exists:
            raise MemoryFileError(
                f"{self.given}: there is no such file; check the path, or make one with "
                f"'frugalvae learn {self.given} FOLDER'"
            )

    def save(self, model: Model, *, undoable: bool = True) -> None:
        """Replace the file, and keep the old one for ``undo``: one that knows nothing, if none.

        If the old one must not be kept, older traces are removed first: a kill leaves the old
        file, and the same command can be run again.
        """
        from frugalvae.model.model import Model
        from frugalvae.storage.model_file import save

        there = self.exists
        if not undoable:
            self._remove_traces()
        try:
            if undoable and there:
                _second_name(self.path, self._before)
            elif undoable:
                save(Model(model.recipe), self._before)
            save(model, self.path)
        except BaseException:
            if not there:  # there is nothing to go back to
                self._before.unlink(missing_ok=True)
            raise
        finally:
            self._settle()

    def read_undo(self) -> Contents:
        """The file as it was before the last change, which must be one that loads."""
        from frugalvae.storage.model_file import make, read_file

        self.check_there()
        if not self.undo.exists():
            raise InputError(
                f"{self.given}: there is nothing to undo; {self.undo.name} is not there. One step "
                "is kept"
            )
        named = self.given.with_name(self.undo.name)
        contents = read_file(self.undo, named)
        with suppress(MissingPackageError):  # whoever has its parts can use it
            make(contents, named, trust=self._trust)
        return contents

    def go_back(self) -> None:
        """Put back the file as it was before the last change, after :meth:`read_undo`."""
        import shutil

        shutil.copymode(self.path, self.undo)
        os.replace(self.undo, self.path)
        sync_folder(self.path.parent)

    def _settle(self) -> None:
        """Finish a change, or take back one that had not replaced the file."""
        self._sweep()
        if not self._before.exists():
            return
        if self.exists and _same(self._before, self.path):
            self._before.unlink()
        else:
            os.replace(self._before, self.undo)
        sync_folder(self.path.parent)

    def _remove_traces(self) -> None:
        """Remove all files beside this one that may hold what was learned."""
        from frugalvae.encoding import Parts

        self.undo.unlink(missing_ok=True)
        self._sweep(any_age=True)
        parts = Parts(self.path, {})
        if parts.there():
            parts.remove()
        sync_folder(self.path.parent)

    def _sweep(self, any_age: bool = False) -> None:
        """Remove unfinished files of killed commands."""
        for path in [*unfinished(self.path), *unfinished(self._before)]:
            with suppress(FileNotFoundError):  # whoever was writing it is done
                if any_age or time.time() - path.stat().st_mtime > STALE:
                    path.unlink()


def _second_name(path: Path, name: Path) -> None:
    """Another name of a file, or a copy where hard links do not work."""
    try:
        os.link(path, name)
    except OSError:
        write_bytes(name, path.read_bytes(), like=path)


def _same(one: Path, other: Path) -> bool:
    """Whether two files are one, or equal. No more is read than up to the first difference."""
    if os.path.samefile(one, other):
        return True
    with one.open("rb") as first, other.open("rb") as second:
        while (block := first.read(BLOCK)) == second.read(BLOCK):
            if not block:
                return True
    return False


# --------------------------------------------------------------------------- receipts


def checksum_of(path: Path) -> str:
    """SHA-256 of a file, as ``sha256sum`` prints it."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def size_and_checksum(store: Store) -> dict[str, Any]:
    """What a receipt says of a file, before and after."""
    return {"bytes": store.path.stat().st_size, "sha256": checksum_of(store.path)}


def receipt(
    model: Model, label: Any, remains: list[str], before: dict[str, Any], after: dict[str, Any]
) -> dict[str, Any]:
    """What was removed from a file, what remains, and when."""
    event = model.history[-1]
    if model.taught_novelty.quantiles and not event["scrub"]:
        remains = [*remains, QUANTILES]
    return {
        "class": label,
        "samples": event["classes"][str(label)],
        "bytes": before["bytes"] - after["bytes"],
        "remains": remains,
        "classes": len(model.classes),
        "before": before,
        "after": after,
        "when": event["when"],
        "scrub": event["scrub"],
    }
