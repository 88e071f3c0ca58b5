"""The file that is served: the last complete model, taken up anew when the file changes."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from frugalvae.digests import DIGEST
from frugalvae.errors import BusyError, FrugalError, MemoryFileError
from frugalvae.labels import label_named
from frugalvae.server.guard import RefusedError, without_paths
from frugalvae.server.workers import Workers
from frugalvae.storage.model_file import Contents, describe
from frugalvae.storage.states import Writer
from frugalvae.storage.store import Store
from frugalvae.storage.summary import Summary, summarise

if TYPE_CHECKING:
    from frugalvae.model.model import Model
    from frugalvae.model.neighbours import Neighbours
    from frugalvae.server.settings import Settings

T = TypeVar("T")

#: What changes when a file is replaced.
Stamp = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A complete state of the file. It never changes."""

    model: Model
    summary: Summary
    stamp: Stamp

    @property
    def revision(self) -> str:
        """Tells this state from others, and nothing else."""
        return hashlib.blake2b(repr(self.stamp).encode(), digest_size=6).hexdigest()

    @cached_property
    def neighbours(self) -> Neighbours:
        """How its classes lie to each other; computed when it is first asked for."""
        from frugalvae.model.neighbours import neighbours

        return neighbours(self.model)

    def taught_as(self, digest: bytes) -> Any:
        """The label of the class that was taught the image with this digest; None if none was."""
        return self._taught.get(np.array([digest], DIGEST).tolist()[0])  # without zeros at its end

    @cached_property
    def _taught(self) -> dict[bytes, Any]:
        """Labels, by the digest of each image that was taught."""
        label_of = {number: label for label, number in self.model.number_of.items()}
        by_class = reversed([*self.model.digests.items()])  # of two classes, the first
        return {one: label_of[number] for number, found in by_class for one in found.tolist()}

    def to_json(self) -> dict[str, Any]:
        """What the file is, in short."""
        found = {"revision": self.revision, "bytes": self.summary.bytes}
        return {**found, "classes": self.summary.classes}


class Served:
    """A classifier's file, asked by many and changed by one at a time.

    Whoever asks has the last complete state, also while another one is being learned, and while
    the file is broken or gone.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings, self.name = settings, settings.file.name
        self.store = Store(settings.file, trust=settings.trust)
        self.last: Snapshot | None = None
        self.problem: str | None = None
        self._bad: Stamp | None = None  # what could not be read
        self._reading = threading.Lock()
        self._writer = Workers("frugalvae-writer", 1, 1, settings.limits.seconds)
        self._reader = ThreadPoolExecutor(1, "frugalvae-reader")
        if not settings.teach:
            self.store.check_there()

    # ------------------------------------------------------------ asking

    async def refresh(self) -> Snapshot | None:
        """The last complete state, after the file was read anew if it has changed."""
        if self.is_current(self._look()):
            return self.last
        return await asyncio.get_running_loop().run_in_executor(self._reader, self.read)

    async def current(self) -> Snapshot:
        """The same, where there must be one."""
        found = await self.refresh()
        if found is None or not len(found.model.classes):
            raise RefusedError(
                409, self.problem or f"{self.name} knows nothing yet; teach it first"
            )
        return found

    def is_current(self, stamp: Stamp | None) -> bool:
        """Whether a file of this stamp has nothing new to read; None is the stamp of no file."""
        return stamp in (None, self._bad, self._last_stamp)

    def _look(self) -> Stamp | None:
        """The stamp of the file; that it is gone, or is what was read last, is noted."""
        stamp = self._stamp()
        if stamp == self._last_stamp:
            self.problem = None
        elif stamp is None:
            self.problem = f"{self.name} is gone; what was read of it last goes on"
        return stamp

    @property
    def _last_stamp(self) -> Stamp | None:
        return None if self.last is None else self.last.stamp

    def read(self) -> Snapshot | None:
        """Read the file if it has changed; what cannot be read is noted, and the old goes on."""
        with self._reading:
            stamp = self._look()
            if self.is_current(stamp):
                return self.last
            try:
                self._take(self.store.load(empty=True), stamp, self.store.read())
            except (FrugalError, OSError) as error:
                if not isinstance(error.__cause__ or error, OSError):  # which may pass
                    self._bad = stamp
                self.problem = without_paths(str(error), self.settings.folders)
            return self.last

    def _take(self, model: Model, stamp: Stamp | None, contents: Contents) -> Snapshot:
        assert stamp is not None
        summary = summarise(self.store, model, contents)
        self.last = Snapshot(model, summary, stamp)
        self.problem = self._bad = None
        return self.last

    def _stamp(self) -> Stamp | None:
        try:
            found = self.store.path.stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    # ------------------------------------------------------------ changing

    async def change(self, work: Callable[[], T]) -> T:
        """What ``work`` gives: it runs alone, while no other process changes the file."""

        def alone() -> T:
            what = f"frugalvae serve {self.store.given}"
            try:
                with self.store.changing(what, self.settings.limits.wait):
                    return work()
            except BusyError:
                raise RefusedError(
                    503,
                    f"{self.name} is being changed by another program, and nothing was changed "
                    "here; try again in a moment",
                    retry=1,
                ) from None

        return await self._writer.run(alone, to_the_end=True)

    def model_to_change(self) -> Model:
        """The model on disk, inside :meth:`change`; one that knows nothing if there is no file."""
        from frugalvae.model.model import Model, Recipe

        if not self.store.exists:
            if self.last is not None:
                raise MemoryFileError(
                    f"{self.name} is gone; put it back, or start the server anew to begin a new one"
                )
            return Model(Recipe(calibrate=True))  # people look at the probabilities
        if self.last is not None and self.last.stamp == self._stamp():
            return self.last.model
        return self.store.load(empty=True)

    def label_named(self, model: Model, typed: str) -> Any:
        """The label that was sent; a refusal if no class has it."""
        return label_named(self.name, model.classes.tolist(), typed, "/classes")

    def save(self, model: Model) -> Snapshot:
        """Write a model, inside :meth:`change`; from now on it answers."""
        self.store.save(model)
        return self.take_up(model)

    def take_up(self, model: Model) -> Snapshot:
        """Answer from a model that was written, inside :meth:`change`; it is not read again."""
        with self._reading:
            writer = Writer()
            document, stamp = describe(model, writer), self._stamp()
            return self._take(model, stamp, Contents(document, writer.arrays, self.size))

    def reload_after_undo(self) -> Snapshot:
        """Take up the file after it was put back, inside :meth:`change`."""
        with self._reading:
            return self._take(self.store.load(empty=True), self._stamp(), self.store.read())

    @property
    def size(self) -> int:
        """Bytes of the file; 0 if there is none."""
        stamp = self._stamp()
        return stamp[2] if stamp else 0

    def close(self) -> None:
        """Finish what is being written."""
        self._writer.close()
        self._reader.shutdown(cancel_futures=True)
