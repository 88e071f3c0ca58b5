"""Workers: threads for what takes long, shared among clients, and the encoder that they use."""

from __future__ import annotations

import asyncio
import io
import json
import os
import threading
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from frugalvae.digests import digest
from frugalvae.encoders import IDENTITY_KEYS, Choice, Remembered, load_encoder
from frugalvae.images.decode import LARGE_BYTES, alone, decode, reading_images
from frugalvae.images.photographs import reason
from frugalvae.server.guard import CLIENT, RefusedError

if TYPE_CHECKING:
    from PIL import Image

    from frugalvae.parts.protocols import Encoder
    from frugalvae.server.settings import Settings

T = TypeVar("T")

RETRY = 5  # seconds after which somebody who was sent away may try again
CLIENTS = 4  # that can keep all cores busy before others have to wait
SIDE, QUALITY = 160, 80  # of thumbnails


class Workers:
    """Threads for work that takes long: ``most`` at a time, and ``each`` of them for one client.

    A thread cannot be ended. So its place is given back when its work ends, and not when its
    request does; who has no place left but for such work is sent away at once. Of those who wait
    for a place, the client with the fewest comes first.
    """

    def __init__(self, name: str, most: int, each: int, seconds: float) -> None:
        self.most, self.each, self.seconds = most, each, seconds
        self.working, self.late = Counter[str](), Counter[str]()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._pool = ThreadPoolExecutor(most, name)

    async def run(self, work: Callable[[], T], *, to_the_end: bool = False) -> T:
        """What ``work`` gives, in a thread; or a refusal if that takes too long.

        ``to_the_end``, work that has begun is waited for however long it takes, also if the
        client leaves: nobody is told that nothing was changed when something was.
        """
        client, running = CLIENT.get(), None
        try:
            async with asyncio.timeout(self.seconds) as limit:
                await self._place(client)
                running = asyncio.get_running_loop().run_in_executor(self._pool, work)
                running.add_done_callback(lambda _: self._leave(client))
                if to_the_end:
                    limit.reschedule(None)
                return await asyncio.shield(running)
        except TimeoutError:
            if not limit.expired():  # it is the work's own
                raise
            if running is not None and not running.done():
                self.late[client] += 1
                running.add_done_callback(lambda _: decrement(self.late, client))
            raise RefusedError(
                503,
                f"no answer within {self.seconds:g} s: the server is busy; "
                "try again later, with fewer images",
                RETRY,
            ) from None

    async def _place(self, client: str) -> None:
        """Come back with a place."""
        if self.late[client] >= self.each or self.late.total() >= self.most:
            raise RefusedError(
                503, "the server is still busy with earlier requests; try again later", RETRY
            )
        if self.working[client] < self.each and self.working.total() < self.most:
            self.working[client] += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(client, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._forget(client, turn)
            else:  # the place came at the last moment
                self._leave(client)
            raise

    def _leave(self, client: str) -> None:
        """Give a place back, to whoever waits and has the fewest; of these, to the first."""
        decrement(self.working, client)
        waiting = [name for name in self._waiting if self.working[name] < self.each]
        if waiting:
            first = min(waiting, key=lambda name: self.working[name])
            turn = self._waiting[first][0]
            self._forget(first, turn)
            self.working[first] += 1
            turn.set_result(None)

    def _forget(self, client: str, turn: asyncio.Future[None]) -> None:
        """Somebody does not wait any more; others of the client come after other clients."""
        turns = self._waiting.pop(client)
        turns.remove(turn)
        if turns:
            self._waiting[client] = turns

    def close(self) -> None:
        """Finish what is begun."""
        self._pool.shutdown()


def decrement(counter: Counter[str], name: str) -> None:
    """One less of a name, which is not remembered when none is left."""
    counter[name] -= 1
    if not counter[name]:
        del counter[name]


# --------------------------------------------------------------------------- the encoder


@dataclass(frozen=True)
class EncodedImage:
    """An image and its features.

    Attributes
    ----------
    features
        (d,), float32.
    digest
        What tells the image from others, if it was taught before.
    encoder
        The key of what made the features.
    thumbnail
        A small JPEG of it; empty if none was asked for.
    """

    features: NDArray[np.float32]
    digest: bytes
    encoder: str
    thumbnail: bytes = b""


@dataclass(frozen=True)
class LoadedEncoder:
    """An encoder, what a file remembers of it, and a key that tells it from others."""

    encoder: Encoder
    remembered: dict[str, Any]
    key: str


class EncoderPool:
    """Encodes images; of one client, as many at a time as there are cores."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.count = settings, 0
        self._loaded: LoadedEncoder | None = None
        self._lock = threading.Lock()
        cores = os.cpu_count() or 1
        self._workers = Workers(
            "frugalvae-encoders", CLIENTS * cores, cores, settings.limits.seconds
        )
        self._opened = ExitStack()
        self._opened.enter_context(reading_images())

    def load(self, remembered: Remembered) -> LoadedEncoder:
        """The encoder of a file, which is loaded once."""
        key = key_of(remembered)
        with self._lock:
            if self._loaded is None or (remembered != {} and self._loaded.key != key):
                given = self.settings
                views = {} if given.views is None else {"views": given.views}
                choice = Choice(given.encoder, given.model, views, given.trust)
                made = load_encoder(remembered, choice, given.file.name)
                self._loaded = LoadedEncoder(*made, key_of(made[1]) if remembered == {} else key)
            return self._loaded

    def encode(
        self, content: bytes, remembered: Remembered, thumbnail: bool = True
    ) -> EncodedImage | str:
        """The features of an image; or why it cannot be read."""
        loaded = self.load(remembered)
        try:
            image = self.decode(content, loaded.encoder.side)
            prepared = loaded.encoder.prepare(image)
        except Exception as error:  # Pillow fails in many ways
            return reason(error)
        [features] = loaded.encoder.encode(prepared[None])
        with self._lock:
            self.count += 1
        small = small_jpeg(image) if thumbnail else b""
        return EncodedImage(features, digest(content), loaded.key, small)

    def decode(self, content: bytes, side: int | None = None) -> Image.Image:
        """An image, as hardened as on the command line."""
        with alone(len(content) > LARGE_BYTES):
            return decode(content, side, self.settings.limits.pixels)

    async def run(self, work: Callable[[], T]) -> T:
        """What ``work`` gives, in one of the threads; or a refusal if that takes too long."""
        return await self._workers.run(work)

    def close(self) -> None:
        """Finish what is begun."""
        self._workers.close()
        self._opened.close()


def key_of(remembered: Remembered) -> str:
    """Tells encoders apart whose features cannot be compared."""
    return json.dumps([(remembered or {}).get(name) for name in IDENTITY_KEYS], sort_keys=True)


def small_jpeg(image: Image.Image) -> bytes:
    """A thumbnail; it has no notes of the camera."""
    image.thumbnail((SIDE, SIDE), reducing_gap=1.0)
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=QUALITY)
    return buffer.getvalue()
