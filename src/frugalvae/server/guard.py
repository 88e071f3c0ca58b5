"""The guard: who may ask at all, how many at a time, and what browsers are told."""

from __future__ import annotations

import base64
import binascii
import hmac
import ipaddress
import logging
import time
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse

from frugalvae.formatting import printable
from frugalvae.server.refusals import RefusedError
from frugalvae.server.shares import CLIENT, Shares, client_of, half

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from frugalvae.server.settings import Settings
    from frugalvae.server.state import ServerState

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
            await refused(refusal)(scope, receive, guarded)
        except Exception:  # which should not happen: the log says what, and the answer does not
            logger.exception("%s %s failed", scope["method"], scope["path"])
            failure = RefusedError(500, "the server failed at this; its log says why")
            await refused(failure)(scope, receive, guarded)
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


def refused(refusal: RefusedError) -> JSONResponse:
    """A refusal as it is sent."""
    body = {"error": refusal.why, **refusal.more}
    return JSONResponse(body, refusal.status, headers=refusal.headers)


def check_host(host: str, settings: Settings) -> None:
    """Refuse a name that is not ours: another site's name may have been led to this address.

    An address in digits cannot be led anywhere, so that it is ours where others may ask at all.
    """
    name = host_name(host)
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


def host_name(host: str) -> str:
    """The name in a Host header, without the port.

    >>> host_name("LocalHost:8000"), host_name("[::1]:8000"), host_name("")
    ('localhost', '::1', '')
    """
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def check_origin(headers: Headers) -> None:
    """Refuse what another site's page sends."""
    origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
    same = origin is None or place_of(origin) == headers.get("host", "").lower()
    if not same or site not in ("none", "same-origin"):
        raise RefusedError(403, "pages of other sites may not ask this server")


def place_of(origin: str) -> str:
    """Host and port of an origin.

    >>> place_of("http://LocalHost:8000"), place_of("null"), place_of("http://[")
    ('localhost:8000', '', '')
    """
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


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
