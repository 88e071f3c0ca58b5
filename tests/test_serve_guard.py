"""What a server refuses: strangers, other sites, too much of anything; and what it never tells."""

from __future__ import annotations

import base64
import http.client
import io
import socket
import struct
import sys
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from PIL import Image

from tests.serving import Served, form, in_a_loop
from tests.tool import paint
from tests.waiting import PATIENCE

pytest.importorskip("starlette", reason="the extra 'serve' is not installed")

from frugalvae.server.guard import HEADERS, RefusedError, without_paths
from frugalvae.server.requests import RequestReader
from frugalvae.server.settings import Limits, Settings

TOKEN = "0123456789abcdefghij"
KIND = "multipart/form-data; boundary=x"
HEAD = b'\r\nContent-Disposition: form-data; name="images"; filename="a"'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return paint(tmp_path_factory.mktemp("guarded"), "cat", "dax")


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Served]:
    """A server with small limits, which was taught cats and daxes."""
    limits = ["--max-body", "1", "--max-images", "3", "--max-pixels", "2"]
    found = Served(folder / "birds.frugal", "--teach", *limits, "--allow-host", "birds.example")
    for name in ("cat", "dax"):
        assert found.send("/learn", sorted((folder / name).glob("*"))[:3], name=name).status == 200
    yield found
    found.close()


# --------------------------------------------------------------------------- who may ask


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "birds.example:8000"}, 200),
        ({"Host": "192.168.1.5:8000"}, 421),
        ({"Host": "["}, 421),
        ({"Origin": "http://127.0.0.1:{port}"}, 200),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
    ],
)
def test_other_names_and_pages_of_other_sites_are_refused(
    served: Served, headers: dict[str, str], status: int
) -> None:
    given = {name: value.format(port=served.port) for name, value in headers.items()}
    before = served.file.read_bytes()
    assert served.get("/status", **given).status == status
    if status != 200:
        assert served.post("/forget", {"label": "cat"}, **given).status == status
        assert served.file.read_bytes() == before


def test_a_token_is_asked_of_everything_but_the_page(folder: Path) -> None:
    secret = folder / "token.txt"
    secret.write_text(f"{TOKEN}\nnot this line\n")
    guarded = Served(
        folder / "secret.frugal", "--teach", "--token-file", secret, "--host", "0.0.0.0"
    )
    try:
        basic = base64.b64encode(f"anyone:{TOKEN}".encode()).decode()
        for given in (f"Bearer {TOKEN}", f"Basic {basic}"):
            assert guarded.get("/status", Authorization=given).status == 200
        for given in ("", f"Bearer {TOKEN}x", "Basic !!"):
            for path in ("/status", "/health", "/metrics", "/docs", "/openapi.json", "/nothing"):
                reply = guarded.get(path, Authorization=given)
                assert (reply.status, "token" in reply.json["error"]) == (401, True)
            assert guarded.post("/undo", Authorization=given).status == 401
        for path in ("/", "/page/app.js"):
            assert guarded.get(path).status == 200
        assert (
            guarded.get("/status", Host="192.168.1.5", Authorization=f"Bearer {TOKEN}").status
            == 200
        )
        assert (
            guarded.get("/status", Host="evil.example", Authorization=f"Bearer {TOKEN}").status
            == 421
        )
    finally:
        guarded.close()


# --------------------------------------------------------------------------- too much


def picture(size: tuple[int, int] = (4, 4)) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", size, "red").save(buffer, "PNG")
    return buffer.getvalue()


def bomb(side: int) -> bytes:
    """A PNG of a few bytes that claims many pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")


def test_each_limit_has_its_answer(served: Served) -> None:
    large = served.ask("POST", "/predict", b"x" * 1_100_000, {"Content-Type": "image/png"})
    assert (large.status, "more than 1.0 MB" in large.json["error"]) == (413, True)
    many = served.send("/predict", [picture()] * 4)
    assert (many.status, "more than 3 images" in many.json["error"]) == (413, True)
    wide = served.ask("POST", "/predict", picture((2000, 1001)), {"Content-Type": "image/png"})
    assert (wide.status, "2,000,000 pixels" in wide.json["error"]) == (413, True)
    claimed = served.ask("POST", "/learn?name=cat", bomb(60_000), {"Content-Type": "image/png"})
    assert (claimed.status, "pixels" in claimed.json["error"]) == (413, True)
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        text = served.ask("POST", "/predict", b"x", {"Content-Type": kind})
        assert (text.status, "expected multipart/form-data" in text.json["error"]) == (415, True)


def test_a_body_without_a_length_is_cut_off(served: Served) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
    parts = (b"x" * 100_000 for _ in range(20))
    connection.request(
        "POST", "/predict", parts, {"Content-Type": "image/png"}, encode_chunked=True
    )
    assert connection.getresponse().status == 413
    connection.close()


@pytest.mark.parametrize(
    ("count", "long", "status"), [(900, 1, b"422"), (3_000, 128, b"422"), (3_000, 1, b"413")]
)
def test_a_body_in_very_many_tiny_chunks_is_refused(
    served: Served, count: int, long: int, status: bytes
) -> None:
    """Whoever sends them is slow to read, and all others wait meanwhile."""
    chunk = b"%x\r\n%s\r\n" % (long, b"x" * long)
    with socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE) as client:
        client.sendall(
            b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: image/png\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n" + chunk * count + b"0\r\n\r\n"
        )
        assert client.recv(100)[9:12] == status
    assert served.get("/health").status == 200


def test_a_request_that_does_not_arrive_is_given_up(folder: Path) -> None:
    served = Served(folder / "slow.frugal", "--teach", "--time-limit", "1")
    try:
        with socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE) as slow:
            slow.sendall(
                b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: image/png\r\n"
                b"Content-Length: 100\r\n\r\nabc"
            )
            assert b"408" in slow.recv(100)
    finally:
        served.close()


def test_bytes_of_all_requests_together_are_bounded() -> None:
    from starlette.requests import Request

    reader = RequestReader(Limits(body=100, held=150))

    def request(content: bytes) -> Request:
        async def receive() -> dict[str, object]:
            return {"type": "http.request", "body": content, "more_body": False}

        headers = [(b"content-type", b"image/png")]
        scope = {"type": "http", "headers": headers, "query_string": b"", "state": {}}
        return Request(scope, receive)

    def read(sent: Request) -> None:
        in_a_loop(reader.read(sent))

    first, second = request(b"x" * 100), request(b"x" * 100)
    read(first)
    with pytest.raises(RefusedError, match="more than 100 bytes at a time from one") as refused:
        read(second)
    assert refused.value.status == 429
    reader.release(second)
    assert reader.held.total == 100
    reader.release(first)
    third = request(b"x" * 100)
    read(third)
    reader.release(third)
    assert reader.held.total == 0


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"{", "application/json"),
        (b"[]", "application/json"),
        (b'{"a": NaN}', "application/json"),
        (b"[" * 100_000, "application/json"),
        (b"\xff", "application/json"),
        (b"nothing", "multipart/form-data"),
        (b"nothing", "multipart/form-data; boundary=x"),
        (b"--x\r\nA: b\r\n\r\n\r\n--x--", "multipart/form-data; boundary=x"),
        (b'{"ids": ["\\ud800"]}', "application/json"),
        (b'{"ids": ' + b"[" * 990 + b'"\\u0041"' + b"]" * 990 + b"}", "application/json"),
        (b'{"ids": [' + b"1," * 100_000 + b"1]}", "application/json"),
        (b"nothing", "multipart/form-data; boundary=x; charset=utf-7"),
    ],
)
def test_bodies_that_cannot_be_read_are_refused(served: Served, body: bytes, kind: str) -> None:
    reply = served.ask("POST", "/predict", body, {"Content-Type": kind})
    assert (400 <= reply.status < 500, bool(reply.json["error"])) == (True, True)


@pytest.mark.parametrize("fill", [b"\r\n--xY", b"a: b\r\n", b"\r\n--x", b"\r", b"\r\n--x" + HEAD])
def test_a_form_is_read_in_few_steps(fill: bytes) -> None:
    """Whatever fills a part or its head; a parser in Python took ten seconds for 60 MB."""
    steps = 0

    def count(*_: object) -> None:
        nonlocal steps
        steps += 1

    edge = b"\r\n--x" + HEAD + b"\r\n\r\n"
    for body in (edge + fill * 20_000, edge[:-4] + b"\r\n" + fill * 20_000):
        sys.setprofile(count)
        try:
            with suppress(RefusedError):
                RequestReader(Limits()).form(KIND, body[2:] + b"\r\n--x--")
        finally:
            sys.setprofile(None)
    assert steps < 10_000


@pytest.mark.parametrize(
    "query", ["top=0", "top=x", "top=1000", "min_probability=2", "threshold=-1", "unknown=perhaps",
              "kept=ever", "top=nan", "top=250%", "top=2.5", "top=", "top=-1", "top=1e2",
              "top=99999999999999", "unknown=", "unknown", "threshold=", "min_probability=200%"]
)  # fmt: skip
def test_what_cannot_be_asked_for_is_refused(served: Served, query: str) -> None:
    body, kind = form([picture()], {})
    reply = served.ask("POST", f"/predict?{query}", body, {"Content-Type": kind})
    assert (reply.status, "expected" in reply.json["error"]) == (422, True)


# --------------------------------------------------------------------------- what is told


def test_browsers_are_told_to_be_careful(served: Served) -> None:
    for path in ("/", "/status", "/docs", "/page/app.js", "/nothing"):
        headers = served.get(path).headers
        assert HEADERS.items() <= {name.title(): value for name, value in headers.items()}.items()
        assert not {"access-control-allow-origin", "server"}.intersection(headers)
    assert served.get("/status").headers["cache-control"] == "no-store"


def test_wrong_paths_and_methods_are_told(served: Served) -> None:
    missing = served.get("/nothing")
    assert (missing.status, "/docs" in missing.json["error"]) == (404, True)
    wrong = served.get("/predict")
    assert (wrong.status, "GET is not understood" in wrong.json["error"]) == (405, True)


def test_hostile_names_are_only_text(served: Served) -> None:
    hostile = "<script>alert(1)</script>{{7*7}}'\"\\"
    cat = served.send("/learn", [picture((9, 9))], name=hostile)
    assert cat.json["label"] == hostile
    assert hostile in [one["label"] for one in served.get("/classes").json["classes"]]
    assert served.get("/classes").headers["content-type"] == "application/json"
    assert "<script>alert" not in served.get("/docs").content.decode()
    assert "<script>alert" not in served.get("/metrics").content.decode()
    assert served.post("/forget", {"label": hostile}).status == 200


def test_folders_of_the_server_are_never_told(served: Served) -> None:
    replies = [served.get(path) for path in ("/status", "/health", "/classes", "/history", "/docs")]
    replies += [
        served.post("/forget", {"label": "nothing"}),
        served.post("/rename", {"from": "cat", "to": "dax"}),
        served.post("/undo"),
        served.post("/undo"),
    ]
    assert [reply.status for reply in replies[5:]] == [404, 409, 200, 422]
    for reply in replies:
        assert str(served.file.parent).encode() not in reply.content


def test_messages_lose_their_folders() -> None:
    folders = Settings(Path("/a b/c/d.frugal"), model="/models/x y/m.onnx").folders
    assert (
        without_paths("/a b/c/d.frugal: /a b/c is full", folders) == "d.frugal: its folder is full"
    )
    assert without_paths("'/models/x y/m.onnx' is gone", folders) == "'m.onnx' is gone"
    seen = "see http://a.b/c/d, and /x/y.frugal"
    assert without_paths(seen) == "see http://a.b/c/d, and y.frugal"
    assert without_paths("~/birds/x.frugal or ../up/x.frugal") == "x.frugal or x.frugal"
