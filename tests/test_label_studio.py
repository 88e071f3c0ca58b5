"""The example for Label Studio: messages as its documentation and its own backends have them."""

from __future__ import annotations

import base64
import http.client
import http.server
import importlib.util
import json
import select
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.serving import Served
from tests.tool import paint

pytest.importorskip("starlette", reason="the extra 'serve' is not installed")

FILE = Path(__file__).parent.parent / "examples/label_studio/backend.py"
SPEC = importlib.util.spec_from_file_location("label_studio_backend", FILE)
assert SPEC is not None
assert SPEC.loader is not None
example = importlib.util.module_from_spec(SPEC)
sys.modules[SPEC.name] = example  # where dataclasses look for it
SPEC.loader.exec_module(example)

CONFIG = """
<View>
  <Header value="Which bird?"/>
  <Image name="photo" value="$picture"/>
  <Choices name="bird" toName="photo" choice="single">
    <Choice value="cat"/><Choice value="dax"/><Choice value="emu"/>
  </Choices>
</View>
"""
KEY, TOKEN, PASSWORD = "the-key-of-label-studio", "0123456789abcdefghij", "only-label-studio"

Ask = Callable[..., tuple[int, Any]]


class Uploads(http.server.BaseHTTPRequestHandler):
    """Label Studio as far as it gives pictures to whoever has a key."""

    folder: Path

    def do_GET(self) -> None:
        if self.headers["Authorization"] != f"Token {KEY}":
            self.send_error(401)
        elif self.path.startswith("/data/upload/1/"):
            self.send_response(200)
            self.end_headers()
            self.wfile.write((self.folder / self.path[15:].replace("-", "/")).read_bytes())
        else:
            self.send_response(302)
            self.send_header("Location", "/data/upload/1/cat-0.png")
            self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def running(server: http.server.HTTPServer) -> Iterator[str]:
    """The address of a server in a thread."""
    with server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return paint(tmp_path_factory.mktemp("labels"), "cat", "dax", "emu", count=12)


@pytest.fixture(scope="module")
def served(pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    (folder / "token.txt").write_text(TOKEN)
    found = Served(folder / "birds.frugal", "--teach", "--token-file", folder / "token.txt")
    found.headers["Authorization"] = f"Bearer {TOKEN}"
    for name in ("cat", "dax"):
        found.send("/learn", sorted((pictures / name).glob("*")), name=name)
    yield found
    found.close()


@pytest.fixture(scope="module")
def ask(pictures: Path, served: Served) -> Iterator[Ask]:
    """Send JSON to a path of the backend; its status and its answer."""
    Uploads.folder = pictures
    with ExitStack() as opened:
        studio = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Uploads)
        backend = example.Backend(served.address, TOKEN, opened.enter_context(running(studio)), KEY)
        kind = example.handler(backend, PASSWORD)
        kind.log_message = lambda *_: None
        address = opened.enter_context(running(example.BoundedServer(("127.0.0.1", 0), kind)))
        basic = base64.b64encode(f"any:{PASSWORD}".encode()).decode()

        def send(path: str, body: object, **more: str | None) -> tuple[int, Any]:
            headers: dict[str, str | None] = {"Content-Type": "application/json"}
            headers |= {"Authorization": f"Basic {basic}"} | more
            given = {name: value for name, value in headers.items() if value is not None}
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=60)
            connection.request("POST", path, content, given)
            reply = connection.getresponse()
            found = reply.status, json.loads(reply.read())
            connection.close()
            return found

        yield send


def task(picture: object, number: int = 7) -> dict[str, Any]:
    return {"id": number, "data": {"picture": picture}, "annotations": [], "predictions": []}


def asked(*tasks: object, config: object = CONFIG) -> dict[str, Any]:
    """What Label Studio sends for predictions."""
    project, params = "1.1700000000", {"login": None, "password": None, "context": None}
    more = {"model_version": None, "project": project, "params": params}
    return {"tasks": list(tasks), "label_config": config, **more}


def annotated(picture: object, *choices: str, event: str = "ANNOTATION_CREATED") -> dict[str, Any]:
    """What Label Studio sends when somebody has chosen."""
    names = {"id": "a1", "from_name": "bird", "to_name": "photo", "type": "choices"}
    result = {**names, "value": {"choices": list(choices)}, "origin": "manual"}
    return {
        "action": event,
        "annotation": {"id": 3, "result": [result], "was_cancelled": False, "task": 7},
        "task": task(picture),
        "project": {"id": 1, "title": "Birds", "label_config": CONFIG},
    }


def in_itself(path: Path) -> str:
    return f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"


def test_a_project_is_set_up(ask: Ask, served: Served) -> None:
    setup = {"project": "1.1700000000", "schema": CONFIG, "access_token": "not used"}
    version = served.get("/status").json["revision"]
    assert ask("/setup", setup) == (200, {"model_version": version})
    status, wrong = ask("/setup", {**setup, "schema": "<View/>"})
    assert (status, "no Choices about an Image" in wrong["error"]) == (422, True)


def test_tasks_are_predicted_from_uploads_and_from_themselves(
    ask: Ask, served: Served, pictures: Path
) -> None:
    broken = "data:image/png;base64," + base64.b64encode(b"no picture").decode()
    tasks = [
        task("/data/upload/1/cat-0.png"),
        task(in_itself(pictures / "dax/0.png")),
        task(broken),
    ]
    cat, dax, none = ask("/predict", asked(*tasks))[1]["results"]
    result = {"from_name": "bird", "to_name": "photo", "type": "choices"}
    assert cat["result"] == [{**result, "value": {"choices": ["cat"]}}]
    assert dax["result"][0]["value"] == {"choices": ["dax"]}
    assert 0.5 < cat["score"] <= 1
    assert cat["model_version"] == served.get("/status").json["revision"]
    assert (none["result"], none["score"]) == ([], 0)
    only = CONFIG.replace('<Choice value="dax"/>', "")
    [found] = ask("/predict", asked(tasks[1], config=only))[1]["results"]
    assert [one["value"]["choices"] for one in found["result"]] in ([["cat"]], [])


def test_what_somebody_chooses_is_learned_and_changed_with_their_mind(
    ask: Ask, served: Served, pictures: Path
) -> None:
    for number in range(3):
        status, answer = ask("/webhook", annotated(f"/data/upload/1/emu-{number}.png", "emu"))
        assert (status, answer["status"]) == (201, "ok")
    assert answer["result"]["after"]["samples"] == 3
    [found] = ask("/predict", asked(task(in_itself(pictures / "emu/1.png"))))[1]["results"]
    assert found["result"][0]["value"] == {"choices": ["emu"]}
    other = annotated("/data/upload/1/emu-0.png", "dax", event="ANNOTATION_UPDATED")
    assert ask("/webhook", other)[1]["result"]["moved"] == {"emu": 1}
    counts = {one["label"]: one["samples"] for one in served.get("/classes").json["classes"]}
    assert counts == {"cat": 12, "dax": 13, "emu": 2}


def test_events_without_a_class_change_nothing(ask: Ask, served: Served) -> None:
    before, picture = served.file.read_bytes(), "/data/upload/1/emu-0.png"
    assert ask("/webhook", annotated(picture, "emu", "cat"))[0] == 201
    for event in ("ANNOTATION_DELETED", "START_TRAINING"):
        assert ask("/webhook", annotated(picture, "emu", event=event))[0] == 201
    unknown = ask("/webhook", annotated(picture, "emu", event="PROJECT_CREATED"))
    assert unknown == (200, {"status": "Unknown event"})
    assert ask("/webhook", {"action": "ANNOTATION_CREATED"})[0] == 422
    assert served.file.read_bytes() == before


@pytest.mark.parametrize(
    "address",
    [
        "http://attacker.example/cat.png",
        "http://127.0.0.1:1/cat.png",
        "//attacker.example/cat.png",
        "file:///etc/passwd",
        "/data/elsewhere/cat.png",  # which is redirected
        "data:image/png;base64,???",
        "data:",
        "http://[",
        "/data/upload/1/a cat.png",
        "/data/upload/1/\u00e9.png",
        None,
        5,
    ],
)
def test_pictures_are_fetched_from_nowhere_else(ask: Ask, address: object) -> None:
    status, answer = ask("/predict", asked(task(address)))
    assert (status, bool(answer["error"])) == (422, True)


def test_without_an_address_nothing_is_fetched() -> None:
    with pytest.raises(example.RefusedError, match="give --label-studio"):
        example.Backend("http://127.0.0.1:1").content_of("/data/upload/1/cat-0.png")


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("1.jpg", "http://ls:8080/labels/1.jpg"),
        ("/labels/data/1.jpg?d=../x", "http://ls:8080/labels/data/1.jpg?d=../x"),
        ("http://ls:8080/labels/1.jpg", "http://ls:8080/labels/1.jpg"),
        ("/1.jpg", None),
        ("/labels", None),
        ("/labelsother/1.jpg", None),
        ("../1.jpg", None),
        ("/labels/../1.jpg", None),
        ("/labels/%2e%2e/1.jpg", None),
        ("/labels/a/%2E./%2e%2E/1.jpg", None),
        ("/labels/..%2f1.jpg", None),
        ("/labels/..\\1.jpg", None),
        ("/labels/..%5c1.jpg", None),
        ("//ls:8080@other/labels/1.jpg", None),
        ("http://ls:8081/labels/1.jpg", None),
        ("https://ls:8080/labels/1.jpg", None),
        ("http://ls:8080@other/labels/1.jpg", None),
    ],
)
@pytest.mark.parametrize("end", ["", "/"])
def test_the_key_goes_only_below_the_address(value: str, found: str | None, end: str) -> None:
    assert example.below(f"http://ls:8080/labels{end}", value) == found


def test_pictures_and_requests_are_bounded(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    picture = "/data/upload/1/cat-0.png"
    assert ask("/predict", asked(*[task(picture)] * 65))[0] == 422
    body = asked(task(picture))
    monkeypatch.setattr(example, "BYTES", len(json.dumps(body)))
    assert ask("/predict", body)[0] == 200
    assert ask("/predict", json.dumps(body).encode() + b" ")[0] == 413


def test_a_picture_is_bounded(pictures: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Uploads.folder = pictures
    monkeypatch.setattr(example, "BYTES", 50)
    with running(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Uploads)) as studio:
        backend = example.Backend("http://127.0.0.1:1", studio=studio, key=KEY)
        with pytest.raises(example.RefusedError, match="more than 50 bytes"):
            backend.content_of("/data/upload/1/cat-0.png")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": None}, 401),
        ({"Authorization": "Basic " + base64.b64encode(b"a:wrong").decode()}, 401),
        ({"Authorization": f"Bearer {PASSWORD}"}, 401),
        ({"Content-Type": "text/plain"}, 403),
        ({"Origin": "http://attacker.example"}, 403),
    ],
)
def test_strangers_and_pages_are_refused(
    ask: Ask, headers: dict[str, str | None], status: int
) -> None:
    assert ask("/setup", {"schema": CONFIG}, **headers)[0] == status


@pytest.mark.parametrize("body", [b"{", b"[]", b"\xff", b"[" * 100_000])
def test_bodies_that_cannot_be_read_are_refused(ask: Ask, body: bytes) -> None:
    assert ask("/predict", body)[0] == 400


@pytest.mark.parametrize(
    "config",
    [
        None,
        5,
        "<View",
        '<!DOCTYPE a [<!ENTITY b "c">]><View>&b;</View>',
        "<View><Choices name='c' toName='nothing'/></View>",
        "x" * 300_000,
    ],
)
def test_configurations_that_do_not_suit_are_refused(config: object) -> None:
    with pytest.raises(example.RefusedError, match="labelling configuration"):
        example.choices_of(config)


def test_a_body_that_trickles_in_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte comes in time, and all of them never would."""
    kind = example.handler(example.Backend(""), None)
    kind.log_message = lambda *_: None
    monkeypatch.setattr(example, "SECONDS", 0.2)
    server = example.BoundedServer(("127.0.0.1", 0), kind)
    with running(server), socket.create_connection(server.server_address) as slow:
        slow.sendall(
            b"POST /predict HTTP/1.1\r\nContent-Type: application/json\r\n"
            b"Content-Length: 9999\r\n\r\n"
        )
        sent = 0
        while sent < 999 and not select.select([slow], [], [], 0.01)[0]:
            sent += slow.send(b" ")
        slow.shutdown(socket.SHUT_WR)
        assert (sent < 999, b" 408 " in slow.recv(100)) == (True, True)
