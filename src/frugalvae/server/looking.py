"""Looking: from the bytes of pictures to features, in a bounded pool."""

from __future__ import annotations

import io
import json
import os
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from frugalvae.digests import digest
from frugalvae.encoders.remembered import IDENTITY_KEYS, Choice, Remembered, load_encoder
from frugalvae.images.decode import LARGE_BYTES, alone, decode, reading_images
from frugalvae.images.photographs import reason
from frugalvae.server.workers import Workers

if TYPE_CHECKING:
    from PIL import Image

    from frugalvae.parts.protocols import Encoder
    from frugalvae.server.settings import Settings

T = TypeVar("T")

CLIENTS = 4  # that can keep all cores busy before others have to wait
SIDE, QUALITY = 160, 80  # of the small pictures that are remembered


@dataclass(frozen=True)
class Seen:
    """A picture that was looked at.

    Attributes
    ----------
    features
        (d,), float32.
    digest
        What tells it from others, if it was taught before.
    encoder
        What made the features.
    small
        A small JPEG of it; empty if none was asked for.
    """

    features: NDArray[np.float32]
    digest: bytes
    encoder: str
    small: bytes = b""


@dataclass(frozen=True)
class Eye:
    """An encoder, what a file remembers of it, and a name that tells it from others."""

    encoder: Encoder
    remembered: dict[str, Any]
    key: str


class Looker:
    """Encodes pictures; of one client, as many at a time as there are cores."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.count = settings, 0
        self._eye: Eye | None = None
        self._lock = threading.Lock()
        cores = os.cpu_count() or 1
        seconds = settings.limits.seconds
        self._workers = Workers("frugalvae-looker", CLIENTS * cores, cores, seconds)
        self._opened = ExitStack()
        self._opened.enter_context(reading_images())

    def eye(self, remembered: Remembered) -> Eye:
        """The encoder of a file, which is loaded once."""
        key = key_of(remembered)
        with self._lock:
            if self._eye is None or (remembered != {} and self._eye.key != key):
                asked = self.settings
                views = {} if asked.views is None else {"views": asked.views}
                choice = Choice(asked.encoder, asked.model, views, asked.trust)
                made = load_encoder(remembered, choice, self.settings.file.name)
                self._eye = Eye(*made, key_of(made[1]) if remembered == {} else key)
            return self._eye

    def look(self, content: bytes, remembered: Remembered, small: bool = True) -> Seen | str:
        """What is seen in a picture; or why it cannot be read."""
        eye = self.eye(remembered)
        try:
            image = self.decoded(content, eye.encoder.side)
            prepared = eye.encoder.prepare(image)
        except Exception as error:  # Pillow fails in many ways
            return reason(error)
        [features] = eye.encoder.encode(prepared[None])
        with self._lock:
            self.count += 1
        return Seen(features, digest(content), eye.key, small_jpeg(image) if small else b"")

    def decoded(self, content: bytes, side: int | None = None) -> Image.Image:
        """A picture, as hardened as on the command line."""
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
    """A picture made small; it has no notes of the camera."""
    image.thumbnail((SIDE, SIDE), reducing_gap=1.0)
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=QUALITY)
    return buffer.getvalue()
