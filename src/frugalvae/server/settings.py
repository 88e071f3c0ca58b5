"""Settings of a server: the file, who may ask and teach, and its limits."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

LOOPBACK = ("127.0.0.1", "::1", "localhost")
SHORTEST_TOKEN = 16


@dataclass(frozen=True)
class Limits:
    """What one request, and all of them together, may take.

    Attributes
    ----------
    body, images, pixels
        Bytes of a request, images in it, and pixels of each.
    held
        Bytes of all requests that are being worked on.
    requests
        That are worked on or wait at a time.
    head
        Seconds for the head of a request to arrive, if ``seconds`` are not less.
    seconds
        For a request to arrive, and again to be answered.
    wait
        Seconds to wait while another process changes the file.
    recent, quiet, remembered, seconds_remembered
        How many questions are remembered with a small picture, and how many pictures without,
        that are going to be taught; the bytes of either; and for how long.
    """

    body: int = 64_000_000
    images: int = 64
    pixels: int = 150_000_000  # telephones make 108 million
    held: int = 256_000_000
    requests: int = 128
    head: float = 10.0
    seconds: float = 60.0
    wait: float = 10.0
    recent: int = 500
    quiet: int = 5_000
    remembered: int = 50_000_000
    seconds_remembered: float = 3600.0


@dataclass(frozen=True)
class Settings:
    """What was typed after ``frugalvae serve``.

    Attributes
    ----------
    teach
        Whether the file may be changed.
    token
        What every request has to show; None where only this machine can ask.
    hosts
        Further names by which the server may be called.
    keep
        A folder for the pictures that are asked and taught; None keeps none.
    """

    file: Path
    teach: bool = False
    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = None
    hosts: tuple[str, ...] = ()
    keep: Path | None = None
    encoder: str | None = None
    model: str | None = None
    views: int | None = None
    trust: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)

    @property
    def folders(self) -> list[str]:
        """Where things are on this machine, which nobody is told."""
        named = [self.file, *([self.keep] if self.keep else []), Path(self.model or ".")]
        found = {str(path.parent) for path in named} | {
            os.path.dirname(os.path.realpath(path)) for path in named
        }
        return sorted(found - {".", "/", ""}, key=len, reverse=True)

    @property
    def on_loopback(self) -> bool:
        """Whether only this machine can ask."""
        return self.host in LOOPBACK
