"""Running: a socket, HTTP for clients that are slow or many, and an end when a signal comes."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from frugalvae.errors import InputError
from frugalvae.server.guard import RefusedError, Shares, client_of, half

if TYPE_CHECKING:
    from types import FrameType

    from frugalvae.server.settings import Limits, Settings

CONNECTIONS = 4  # times the requests that are allowed at a time: browsers hold some open
KEPT = 15  # seconds for which a connection stays open without a request
CHUNKS, TINY = 1_000, 128  # of a body; more than that may not have fewer bytes each
GRACE = 30  # seconds for requests that are worked on when a signal comes


class Server(uvicorn.Server):
    """Ends cleanly when it is asked to, as if that were all it was started for."""

    def __init__(self, config: Config, close: Callable[[], None]) -> None:
        super().__init__(config)
        self.close = close  # comes back when no change of the file is under way
        self.last: threading.Timer | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal ends it when all requests are answered, the second at once.

        A thread that decodes an image cannot be ended, and is not waited for without end.
        """
        self.last = threading.Timer(0 if self.should_exit else GRACE + 1, self.end)
        self.last.daemon = True
        self.last.start()
        self.should_exit = True

    def end(self) -> None:
        """End the process, whatever its threads are working on, after a change of the file."""
        self.close()
        os._exit(0)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals come between other events, not in the middle of one."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        yield
        if self.last is not None:
            self.last.cancel()


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

    app = create_app(settings)
    config = Config(
        app,
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
        asyncio.run(Server(config, app.state.server.served.close).serve(sockets=[opened]))


# --------------------------------------------------------------------------- the protocol


class Config(uvicorn.Config):
    """The settings of uvicorn, and the limits of connections."""

    def __init__(self, app: Any, limits: Limits, **named: Any) -> None:
        super().__init__(app, http=Protocol, ws="none", timeout_keep_alive=KEPT, **named)
        most = CONNECTIONS * limits.requests
        self.limits, self.connections = limits, Shares("connections", most, half(most))


class Connection(h11.Connection):
    """What a client sends: a body may not have very many tiny chunks, which are slow to read."""

    chunks = taken = 0

    def next_event(self) -> Any:
        """The next event; a refusal at the first chunk that is too much."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            self.chunks = self.taken = 0
        elif isinstance(event, h11.Data):
            self.chunks += event.chunk_end  # whole ones
            self.taken += len(event.data)
            if self.chunks > CHUNKS and self.taken < TINY * self.chunks:
                raise RefusedError(
                    413,
                    f"the body has more than {CHUNKS:,} chunks of less than {TINY} bytes; "
                    "send larger ones, or its length",
                )
        return event


class Protocol(H11Protocol):
    """One connection. Each address may have a share of them, and each step has its time.

    uvicorn itself waits for the head of a request, and for somebody to take an answer, as long as
    it takes; and for the rest of a body that was answered already.
    """

    config: Config

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.conn = Connection(h11.SERVER, self.config.h11_max_incomplete_event_size or 0)
        self._client: str | None = None  # whose share has it
        self._head: asyncio.TimerHandle | None = None
        self._taking: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Answer it, or send it away if there are too many."""
        super().connection_made(transport)
        client = client_of(self.client)
        try:
            self.config.connections.take(client)
        except RefusedError as refusal:
            self._send_away(refusal)
            return
        self._client = client
        self._wait_for_head(self._seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Give back what it had."""
        stop(self._head)
        stop(self._taking)
        if self._client is not None:
            self.config.connections.give_back(self._client)
            self._client = None
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Whatever arrived; a whole head ends waiting for it."""
        try:
            super().handle_events()
        except RefusedError as refusal:
            if self.conn.our_state is h11.SEND_RESPONSE:
                self._send_away(refusal)
            else:  # the answer is under way
                self.transport.abort()
            return
        if self.cycle is not None and not self.cycle.response_complete:
            stop(self._head)

    def on_response_complete(self) -> None:
        """Wait for the next request; less long if this one has not even arrived."""
        whole = self.conn.their_state is h11.DONE
        self._wait_for_head(self._seconds + (KEPT if whole else 0))
        super().on_response_complete()

    def pause_writing(self) -> None:
        """The client does not take what is sent."""
        super().pause_writing()
        self._taking = self.loop.call_later(self.config.limits.seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """The client has taken it."""
        stop(self._taking)
        super().resume_writing()

    @property
    def _seconds(self) -> float:
        return min(self.config.limits.head, self.config.limits.seconds)

    def _wait_for_head(self, seconds: float) -> None:
        stop(self._head)
        self._head = self.loop.call_later(seconds, self._too_late)

    def _too_late(self) -> None:
        """No whole head has arrived; whoever began one is told."""
        if self.conn.our_state is h11.IDLE and self.conn.trailing_data[0]:
            why = f"the head of the request did not arrive within {self._seconds:g} s"
            self._send_away(RefusedError(408, why))
        else:
            self.transport.abort()

    def _send_away(self, refusal: RefusedError) -> None:
        """Answer a connection without a request, and close it."""
        answer = refusal.response()
        head = [
            f"HTTP/1.1 {refusal.status} {HTTPStatus(refusal.status).phrase}".encode(),
            *(name + b": " + value for name, value in answer.raw_headers),
            b"connection: close",
        ]
        self.transport.write(b"\r\n".join([*head, b"", answer.body]))
        self.transport.close()
        stop(self._head)
        self._head = self.loop.call_later(self._seconds, self.transport.abort)


def stop(timer: asyncio.TimerHandle | None) -> None:
    """End a timer, if it was ever set."""
    if timer is not None:
        timer.cancel()
