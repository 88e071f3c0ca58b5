"""The guard without a server: every condition of who may ask, and how many at a time."""

from __future__ import annotations

import asyncio
import base64
import errno
import json
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.serving import in_a_loop

pytest.importorskip("starlette", reason="the extra 'serve' is not installed")

from starlette.datastructures import Headers

from frugalvae.errors import (
    BusyError,
    FrugalError,
    KnownClassError,
    MemoryFileError,
    UnknownClassError,
)
from frugalvae.server import guard
from frugalvae.server.guard import CLIENT, Guard, RefusedError
from frugalvae.server.settings import Limits, Settings
from frugalvae.server.status import Metrics

TOKEN = "0123456789abcdefghij"
ENDS = 10.0  # seconds after which a test has failed, and does not hang


class Asked:
    """A guard before an application that answers 200 with the path, or does as it is told."""

    def __init__(self, *, requests: int = 4, **given: Any) -> None:
        settings = Settings(Path("birds.frugal"), limits=Limits(requests=requests), **given)
        self.metrics, self.reached = Metrics(), list[str]()
        self.waits: asyncio.Event | None = None
        self.begun = 0
        self.fails: Exception | None = None
        self.headers: list[tuple[bytes, bytes]] = []
        server: Any = SimpleNamespace(settings=settings, metrics=self.metrics)
        self.guard = Guard(self.app, server)

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        self.reached.append(scope.get("path", scope["type"]))
        if scope["type"] != "http":
            return
        scope["frugalvae.path"] = "/known"
        if self.waits is not None:
            self.begun += 1
            await self.waits.wait()
        if self.fails is not None:
            raise self.fails
        start = {"type": "http.response.start", "status": 200, "headers": list(self.headers)}
        await send(start)
        await send({"type": "http.response.body", "body": CLIENT.get().encode()})

    async def ask(
        self, path: str = "/status", client: Any = ("10.0.0.1", 5), **headers: str
    ) -> Any:
        """Status, headers and body of an answer."""
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        given = {"host": "localhost", **{name.replace("_", "-"): headers[name] for name in headers}}
        scope = {
            "type": "http",
            "method": "GET",
            "path": path,
            "client": client,
            "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        }
        async with asyncio.timeout(ENDS):
            await self.guard(scope, None, send)  # type: ignore[arg-type]
        return sent[0]["status"], Headers(raw=sent[0]["headers"]), sent[1]["body"]

    def answer(self, *given: Any, **headers: str) -> Any:
        return in_a_loop(self.ask(*given, **headers))

    def status(self, *given: Any, **headers: str) -> int:
        found: int = self.answer(*given, **headers)[0]
        return found


# --------------------------------------------------------------------------- the token


@pytest.mark.parametrize("path", ["/", "/page/", "/page/app.js"])
def test_the_page_is_open(path: str) -> None:
    asked = Asked(token=TOKEN)
    assert (asked.status(path), asked.reached) == (200, [path])


@pytest.mark.parametrize(
    "path",
    ["", "//", "/p", "/pa", "/page", "/pages/x", "/Page/", "/predict", "/explain", "/learn",
     "/undo", "/status", "/health", "/metrics", "/docs", "/x/page/"],
)  # fmt: skip
def test_everything_else_needs_the_token(path: str) -> None:
    asked = Asked(token=TOKEN)
    status, _, body = asked.answer(path)
    assert (status, asked.reached) == (401, [])
    why = "a token is needed: send 'Authorization: Bearer TOKEN'"
    assert json.loads(body) == {"error": why}
    assert asked.status(path, authorization=f"Bearer {TOKEN}x") == 401
    assert asked.status(path, authorization=f"Bearer {TOKEN}") == 200


def test_without_a_token_all_is_open() -> None:
    assert Asked().status("/status") == 200


def basic(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("given", "fits"),
    [
        (f"Bearer {TOKEN}", True),
        (f"bearer {TOKEN}", True),
        (f"BEARER  {TOKEN} ", True),
        (f"Token {TOKEN}", True),
        (f"Basic {basic(f'ann:{TOKEN}')}", True),
        (f"basic {basic(f':{TOKEN}')}", True),
        (f"Basic {basic(TOKEN)}", False),
        (f"Basic {basic(f'{TOKEN}:ann')}", False),
        (f"Basic {TOKEN}", False),
        (f"Bearer {basic(f'ann:{TOKEN}')}", False),
        (f"Digest {TOKEN}", False),
        (TOKEN, False),
        (f"{TOKEN} Bearer", False),
        (f"Bearer {TOKEN[:-1]}", False),
        (f"Bearer {TOKEN.upper()}", False),
        ("Bearer ü", False),
        ("Bearer", False),
        ("Basic", False),
        ("Basic ü", False),
        ("Basic a!==", False),
        ("", False),
    ],
)
def test_the_token_fits_or_does_not(given: str, fits: bool) -> None:
    if fits:
        guard.check_token(given, TOKEN)
        return
    with pytest.raises(RefusedError, match="a token is needed") as refused:
        guard.check_token(given, TOKEN)
    assert refused.value.status == 401


def test_a_password_may_have_colons_and_must_be_text() -> None:
    assert guard.password(basic("ann:a:b")) == "a:b"
    assert guard.password(basic("ann")) == ""
    assert guard.password(base64.b64encode(b"ann:\xff").decode()) == ""
    assert guard.password(basic("ann:abc") + "!") == ""  # not skipped, as Python would


# --------------------------------------------------------------------------- names and sites


@pytest.mark.parametrize(
    ("host", "ours"),
    [
        ("localhost", True),
        ("localhost:8000", True),
        ("LocalHost", True),
        ("127.0.0.1", True),
        ("127.1.2.3:80", True),
        ("[::1]:8000", True),
        ("birds.example", True),
        ("BIRDS.example:1", True),
        ("192.168.1.5", False),
        ("[2001:db8::1]", False),
        ("attacker.example", False),
        ("localhost.attacker.example", False),
        ("", False),
        ("[", False),
        (":8000", False),
    ],
)
@pytest.mark.parametrize("at", ["127.0.0.1", "::1", "localhost", "0.0.0.0"])
def test_names_are_ours_or_not(host: str, ours: bool, at: str) -> None:
    settings = Settings(Path("a.frugal"), host=at, hosts=("Birds.Example",))
    in_digits = host in ("192.168.1.5", "[2001:db8::1]")
    if ours or (in_digits and at == "0.0.0.0"):
        guard.check_host(host, settings)
        return
    with pytest.raises(RefusedError) as refused:
        guard.check_host(host, settings)
    assert refused.value.status == 421
    assert refused.value.why == (
        f"this server is not called {host!r}; ask it by its address, or start it with "
        "--allow-host NAME"
    )


def test_a_request_without_a_name_or_with_a_wrong_one_is_refused() -> None:
    asked = Asked()
    assert asked.status(host="attacker.example") == asked.status(host="") == 421
    with pytest.raises(RefusedError, match="not called ''"):
        asked.guard.check({"headers": [], "path": "/"})
    assert asked.reached == []


def test_a_name_that_would_confuse_a_terminal_is_shown_escaped() -> None:
    with pytest.raises(RefusedError) as refused:
        guard.check_host("a\x1b[31m", Settings(Path("a.frugal")))
    assert "\x1b" not in refused.value.why


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({}, True),
        ({"origin": "http://localhost:8000"}, True),
        ({"origin": "HTTP://LocalHost:8000"}, True),
        ({"origin": "http://localhost"}, False),
        ({"origin": "http://localhost:8001"}, False),
        ({"origin": "http://attacker.example"}, False),
        ({"origin": "null"}, False),
        ({"origin": ""}, False),
        ({"origin": "http://["}, False),
        ({"sec-fetch-site": "none"}, True),
        ({"sec-fetch-site": "same-origin"}, True),
        ({"sec-fetch-site": "same-site"}, False),
        ({"sec-fetch-site": "cross-site"}, False),
        ({"sec-fetch-site": ""}, False),
        ({"origin": "http://localhost:8000", "sec-fetch-site": "cross-site"}, False),
        ({"origin": "http://attacker.example", "sec-fetch-site": "same-origin"}, False),
    ],
)
def test_sites_are_ours_or_not(headers: dict[str, str], allowed: bool) -> None:
    given = Headers({"host": "LOCALHOST:8000", **headers})
    if allowed:
        guard.check_origin(given)
        return
    with pytest.raises(RefusedError, match="^pages of other sites may not ask") as refused:
        guard.check_origin(given)
    assert refused.value.status == 403


def test_an_origin_is_no_host_that_is_missing() -> None:
    with pytest.raises(RefusedError):
        guard.check_origin(Headers({"origin": "http://localhost"}))


def test_pages_of_other_sites_do_not_get_through() -> None:
    asked = Asked()
    assert asked.status(origin="http://attacker.example") == 403
    assert asked.reached == []


# --------------------------------------------------------------------------- how many


async def full(asked: Asked, *clients: str) -> list[Any]:
    """Requests of some clients that are all worked on."""
    asked.waits = asyncio.Event()
    tasks = [asyncio.create_task(asked.ask("/predict", (name, 5))) for name in clients]
    async with asyncio.timeout(ENDS):
        while asked.begun < len(tasks):
            await asyncio.sleep(0)
    return tasks


def test_one_address_may_have_half_of_the_requests() -> None:
    async def work() -> None:
        asked = Asked(requests=4)
        tasks = await full(asked, "10.0.0.1", "10.0.0.1")
        status, headers, body = await asked.ask("/predict")
        why = "more than 2 requests at a time from one address; try again soon"
        assert (status, json.loads(body), headers["retry-after"]) == (429, {"error": why}, "1")
        more = asyncio.create_task(asked.ask("/predict", ("10.0.0.2", 5)))
        while asked.begun < 3:
            await asyncio.sleep(0)
        assert asked.waits is not None
        asked.waits.set()
        assert [(await task)[0] for task in [*tasks, more]] == [200] * 3
        assert (await asked.ask("/predict"))[0] == 200
        assert (asked.guard.requests.total, asked.guard.requests.of) == (0, {})

    in_a_loop(work())


def test_when_all_places_are_taken_others_are_sent_away_at_once() -> None:
    async def work() -> None:
        asked = Asked(requests=4)
        await full(asked, "10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.0.3")
        status, headers, body = await asked.ask("/status", ("10.0.0.9", 5))
        why = "more than 4 requests at a time; try again soon"
        assert (status, json.loads(body), headers["retry-after"]) == (503, {"error": why}, "1")
        assert asked.metrics.in_flight == 4
        assert asked.waits is not None
        asked.waits.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert (await asked.ask("/status", ("10.0.0.9", 5)))[0] == 200
        assert asked.metrics.in_flight == 0

    in_a_loop(work())


@pytest.mark.parametrize("path", ["/", "/page/app.js", "/health"])
def test_the_page_and_health_are_answered_also_then(path: str) -> None:
    async def work() -> None:
        asked = Asked(requests=1)
        await full(asked, "10.0.0.1")
        assert (await asked.ask("/status"))[0] == 429
        waits, asked.waits = asked.waits, None
        assert (await asked.ask(path))[0] == 200
        assert (await asked.ask("/healthy"))[0] == 429
        assert waits is not None
        waits.set()

    in_a_loop(work())


def test_health_needs_the_token_as_all_else() -> None:
    assert Asked(token=TOKEN).status("/health") == 401


def test_a_place_is_given_back_however_a_request_ends() -> None:
    asked = Asked(requests=1)
    for error, status in ((RefusedError(410, "gone"), 410), (ValueError("secret"), 500)):
        asked.fails = error
        assert asked.status() == status
        assert (asked.guard.requests.total, asked.metrics.in_flight) == (0, 0)
    asked.fails = None
    assert asked.status() == 200


def test_those_who_may_not_ask_take_no_place() -> None:
    asked = Asked(requests=1, token=TOKEN)
    assert [asked.status() for _ in range(3)] == [401] * 3
    assert asked.guard.requests.total == 0


# --------------------------------------------------------------------------- what is told


def test_answers_tell_browsers_to_be_careful() -> None:
    assert guard.HEADERS == {
        "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
        "img-src 'self' blob: data:; media-src 'self' blob:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": "camera=(self), microphone=(), geolocation=()",
    }
    asked = Asked()
    for found in (asked.answer()[1], asked.answer(host="attacker.example")[1]):
        assert {name: found[name] for name in guard.HEADERS} == guard.HEADERS
        assert found["cache-control"] == "no-store"
    asked.headers = [(b"cache-control", b"no-cache"), (b"x-frame-options", b"ALLOWALL")]
    found = asked.answer()[1]
    assert (found["cache-control"], found.getlist("x-frame-options")) == ("no-cache", ["DENY"])


def test_a_failure_is_logged_and_not_told(caplog: pytest.LogCaptureFixture) -> None:
    asked = Asked()
    asked.fails = ValueError("/secret/path")
    with caplog.at_level(logging.ERROR, guard.__name__):
        status, headers, body = asked.answer("/classes")
    why = "the server failed at this; its log has the reason"
    assert (status, json.loads(body)) == (500, {"error": why})
    assert headers["x-frame-options"] == "DENY"
    [record] = caplog.records
    assert (record.getMessage(), record.exc_info is not None) == ("GET /classes failed", True)


def test_a_refusal_is_told_with_all_that_it_has() -> None:
    asked = Asked()
    asked.fails = RefusedError(410, "no longer there", 7, gone=["a"])
    status, headers, body = asked.answer()
    assert (status, headers["retry-after"]) == (410, "7")
    assert json.loads(body) == {"error": "no longer there", "gone": ["a"]}


@pytest.mark.parametrize(
    ("error", "cause", "status"),
    [
        (UnknownClassError("x"), None, 404),
        (KnownClassError("x"), None, 409),
        (BusyError("x"), None, 503),
        (MemoryFileError("x"), None, 409),
        (FrugalError("x"), ValueError(), 422),
        (FrugalError("x"), OSError(errno.EACCES, "x"), 422),
        (FrugalError("x"), OSError(errno.ENOSPC, "x"), 507),
    ],
)
def test_each_error_of_the_library_has_its_status(
    error: FrugalError, cause: Exception | None, status: int
) -> None:
    error.__cause__ = cause
    refusal = guard.refusal_of(error)
    assert refusal.status == status
    assert refusal.headers == ({"Retry-After": "1"} if status == 503 else {})


def test_requests_are_counted_under_their_path_with_status_and_time() -> None:
    asked = Asked()
    asked.answer()
    asked.answer(host="attacker.example")
    asked.fails = ValueError()
    asked.answer()
    counted = {("/known", 200): 1, ("other", 421): 1, ("/known", 500): 1}
    assert asked.metrics.requests == counted
    assert 0 < asked.metrics.seconds["/known"] < ENDS
    assert asked.metrics.within["/known", 10.0] == 2


def test_what_is_no_request_goes_through() -> None:
    asked = Asked(token=TOKEN)
    in_a_loop(asked.guard({"type": "lifespan"}, None, None))  # type: ignore[arg-type]
    assert (asked.reached, asked.metrics.requests) == (["lifespan"], {})


def test_an_answer_that_was_not_begun_counts_as_a_failure() -> None:
    """Whoever leaves before it is cancelled, and the count does not say that all went well."""

    async def work() -> None:
        asked = Asked()
        [task] = await full(asked, "10.0.0.1")
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert asked.metrics.requests == {("/known", 500): 1}
        assert (asked.guard.requests.total, asked.metrics.in_flight) == (0, 0)

    in_a_loop(work())


@pytest.mark.parametrize(
    ("client", "name"),
    [(("10.0.0.1", 5), b"10.0.0.1"), (("2001:db8::7", 5), b"2001:db8::/64"), (None, b"")],
)
def test_work_knows_whose_it_is(client: Any, name: bytes) -> None:
    assert Asked().answer("/predict", client)[2] == name


def test_whose_work_it_was_is_forgotten_afterwards() -> None:
    async def work() -> str:
        await Asked().ask()
        return CLIENT.get()

    assert in_a_loop(work()) == ""
