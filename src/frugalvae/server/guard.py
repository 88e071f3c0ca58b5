"""The guard: who may ask, how much at a time, and what is answered to those who may not."""

from __future__ import annotations

import base64
import binascii
import hmac
import ipaddress
import logging
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse

from frugalvae.errors import (
    BusyError,
    FrugalError,
    KnownClassError,
    MemoryFileError,
    UnknownClassError,
)
from frugalvae.formatting import printable
from frugalvae.storage.store import FULL

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from frugalvae.server.app import ServerState
    from frugalvae.server.settings import Settings

logger = logging.getLogger(__name__)

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "media-src 'self' blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(self), microphone=(), geolocation=()",
}
OPEN = ("/", "/page/")  # the page itself, which holds nothing and asks for the token
LIGHT = "/health"  # with the page, what is answered also when there are too many requests
PREFIX = 64  # bits of an IPv6 address that one household or machine has all addresses of

#: Who asks, as :func:`client_of` names it; set for each request by the guard.
CLIENT: ContextVar[str] = ContextVar("CLIENT", default="")

#: The status of each kind of error: the first that fits.
STATUS: tuple[tuple[type[Exception], int], ...] = (
    (UnknownClassError, 404),
    (KnownClassError, 409),
    (BusyError, 503),
    (MemoryFileError, 409),
    (FrugalError, 422),
)
_PATH = re.compile(r"(?<![\w/.:])(?:~|\.{1,2})?/(?:[^\s/'\";:,]+/)+(?=[^\s/'\";:,])")


# --------------------------------------------------------------------------- refusals


class RefusedError(Exception):
    """An answer other than the one that was hoped for.

    >>> RefusedError(413, "too large").status
    413
    """

    def __init__(self, status: int, why: str, retry: int | None = None, **more: Any) -> None:
        super().__init__(why)
        self.status, self.why, self.more = status, why, more
        self.headers = {} if retry is None else {"Retry-After": str(retry)}

    def response(self) -> JSONResponse:
        """The refusal as it is sent."""
        return JSONResponse({"error": self.why, **self.more}, self.status, headers=self.headers)


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


# --------------------------------------------------------------------------- shares


def client_of(address: Any) -> str:
    """Who asks, from the address and port of a connection.

    >>> client_of(("192.0.2.7", 5000)), client_of(("::ffff:192.0.2.7", 5000)), client_of(None)
    ('192.0.2.7', '192.0.2.7', '')
    >>> client_of(("2001:db8::1", 5000)) == client_of(("2001:db8::2", 5000))
    True
    """
    name = str(address[0]) if address else ""
    try:
        found = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:  # a socket without addresses
        return name
    if isinstance(found, ipaddress.IPv4Address):
        return name
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((int(found), PREFIX), strict=False))


class Shares:
    """How much of something is taken, by all clients and by each: one may have about half of it.

    Attributes
    ----------
    what
        What it is, in the plural, for refusals.
    most, each
        How much there is, and how much of it one client may have.
    total, of
        How much is taken, and how much by each client.
    """

    def __init__(self, what: str, most: int, each: int) -> None:
        self.what, self.most, self.each = what, most, each
        self.total, self.of = 0, Counter[str]()

    def take(self, client: str, count: int = 1) -> None:
        """Take some for a client; a refusal if that is more than it may have, or than there is."""
        if self.of[client] + count > self.each:
            raise RefusedError(
                429, f"more than {self.each:,} {self.what} from one address; try again soon", 1
            )
        if self.total + count > self.most:
            raise RefusedError(503, f"more than {self.most:,} {self.what}; try again soon", 1)
        self.total += count
        self.of[client] += count

    def give_back(self, client: str, count: int = 1) -> None:
        """Give back what was taken."""
        self.total -= count
        self.of[client] -= count
        if not self.of[client]:
            del self.of[client]  # or whoever came once would be remembered

    @contextmanager
    def taken(self, client: str) -> Iterator[None]:
        """One of it is the client's inside the block."""
        self.take(client)
        try:
            yield
        finally:
            self.give_back(client)


def half(most: int) -> int:
    """What one client may have of a number of places: half of them, and at least one.

    >>> half(128), half(3), half(1)
    (64, 2, 1)
    """
    return most - most // 2


# --------------------------------------------------------------------------- the guard


class Guard:
    """Lets requests through that may ask, and tells browsers what they may do."""

    def __init__(self, app: ASGIApp, server: ServerState) -> None:
        self.app, self.server = app, server
        most = server.settings.limits.requests
        self.requests = Shares("requests at a time", most, half(most))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status, metrics = time.perf_counter(), 500, self.server.metrics

        async def guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        metrics.in_flight += 1
        client = CLIENT.set(client_of(scope["client"]))
        try:
            self.check(scope)
            with self.place(scope["path"]):
                await self.app(scope, receive, guarded)
        except RefusedError as refusal:
            await refusal.response()(scope, receive, guarded)
        except Exception:  # which should not happen: the log says what, and the answer does not
            logger.exception("%s %s failed", scope["method"], scope["path"])
            failure = RefusedError(500, "the server failed at this; its log has the reason")
            await failure.response()(scope, receive, guarded)
        finally:
            CLIENT.reset(client)
            metrics.in_flight -= 1
            seconds = time.perf_counter() - started
            metrics.count(scope.get("frugalvae.path", "other"), status, seconds)

    def check(self, scope: Scope) -> None:
        """Refuse what may not ask."""
        settings, headers = self.server.settings, Headers(scope=scope)
        check_host(headers.get("host", ""), settings)
        check_origin(headers)
        if settings.token is not None and not is_open(scope["path"]):
            check_token(headers.get("authorization", ""), settings.token)

    def place(self, path: str) -> AbstractContextManager[None]:
        """A place among the requests that are worked on; or a refusal.

        The page and ``/health`` need none: whoever watches the server has to see that it runs.
        """
        if path == LIGHT or is_open(path):
            return nullcontext()
        return self.requests.taken(CLIENT.get())


def is_open(path: str) -> bool:
    """Whether a path is answered without a token.

    >>> is_open("/"), is_open("/page/app.js"), is_open("/predict")
    (True, True, False)
    """
    return path == OPEN[0] or path.startswith(OPEN[1])


def check_host(host: str, settings: Settings) -> None:
    """Refuse a name that is not ours: another site's name may have been led to this address.

    An address in digits cannot be led anywhere, so that it is ours where others may ask at all.
    """
    try:  # "[::1]:8000" is ::1
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        name = ""
    if name in ("localhost", *(known.lower() for known in settings.hosts)):
        return
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        address = None
    if address is None or (settings.on_loopback and not address.is_loopback):
        raise RefusedError(
            421,
            f"this server is not called {printable(host)!r}; ask it by its address, or start it "
            "with --allow-host NAME",
        )


def check_origin(headers: Headers) -> None:
    """Refuse what another site's page sends."""
    origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
    try:
        place = origin and urlsplit(origin).netloc.lower()
    except ValueError:
        place = ""
    same = origin is None or place == headers.get("host", "").lower()
    if not same or site not in ("none", "same-origin"):
        raise RefusedError(403, "pages of other sites may not ask this server")


def check_token(authorization: str, token: str) -> None:
    """Refuse whoever does not have the token, as a bearer token or as a password."""
    kind, _, given = authorization.partition(" ")
    given = given.strip()
    if kind.lower() == "basic":
        given = password(given)
    known = kind.lower() in ("bearer", "basic", "token")
    if not hmac.compare_digest(given.encode(), token.encode()) or not known:
        raise RefusedError(401, "a token is needed: send 'Authorization: Bearer TOKEN'")


def password(encoded: str) -> str:
    """The password of basic authentication, whoever the user is.

    >>> password(base64.b64encode(b"anyone:secret").decode())
    'secret'
    """
    try:
        decoded = base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, ValueError):
        return ""
    return decoded.partition(":")[2]
