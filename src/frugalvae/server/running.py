"""Running: a socket, the application on it, and an end when a signal comes."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import uvicorn

from frugalvae.errors import InputError
from frugalvae.server.protocol import Config

if TYPE_CHECKING:
    from frugalvae.server.settings import Settings

GRACE = 30  # seconds for requests that are worked on when a signal comes


class Server(uvicorn.Server):
    """Ends cleanly when it is asked to, as if that were all it was started for."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """The first signal ends it when all requests are answered, the second at once."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        yield


def listen(settings: Settings) -> socket.socket:
    """A socket that listens; connections wait there until the application is made."""
    try:
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        opened = socket.create_server((settings.host, settings.port), family=family, backlog=512)
    except (OSError, OverflowError) as error:
        raise InputError(
            f"nothing can listen at {address(settings.host, settings.port)} ({error}); choose "
            "another --port, or --port 0 for any that is free"
        ) from error
    # Connections inherit it. Without it the body of an answer waits until its head is acknowledged,
    # which clients put off by 40 ms.
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return opened


def address(host: str, port: int) -> str:
    """Where a browser finds it.

    >>> address("::1", 8000), address("0.0.0.0", 8000)
    ('http://[::1]:8000', 'http://0.0.0.0:8000')
    """
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve(settings: Settings, opened: socket.socket) -> None:
    """Answer until a signal comes."""
    from frugalvae.server.app import create_app

    config = Config(
        create_app(settings),
        settings.limits,
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=64_000,
        timeout_graceful_shutdown=GRACE,
    )
    with opened:
        asyncio.run(Server(config).serve(sockets=[opened]))
