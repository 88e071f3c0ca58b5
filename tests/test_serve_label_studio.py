"""Label Studio's messages, as its documentation and its own backends have them."""

from __future__ import annotations

import base64
import http.server
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.serving import Served
from tests.tool import paint

pytest.importorskip("starlette", reason="the extra 'serve' is not installed")

from frugalvae.server.label_studio import below, choices_of
from frugalvae.server.refusals import RefusedError

CONFIG = """
<View>
  <Header value="Which bird?"/>
  <Image name="photo" value="$picture"/>
  <Choices name="bird" toName="photo" choice="single">
    <Choice value="cat"/><Choice value="dax"/><Choice value="emu"/>
  </Choices>
</View>
"""
KEY = "the-key-of-label-studio"


class Uploads(http.server.BaseHTTPRequestHandler):
    """Label Studio as far as it gives pictures to whoever has a key."""

    folder: Path
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
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


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return paint(tmp_path_factory.mktemp("labels"), "cat", "dax", "emu", count=12)


@pytest.fixture(scope="module")
def studio(pictures: Path) -> Iterator[http.server.ThreadingHTTPServer]:
    Uploads.folder, Uploads.asked = pictures, []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Uploads) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def served(
    pictures: Path,
    studio: http.server.ThreadingHTTPServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    key = folder / "key.txt"
    key.write_text(KEY)
    address = f"http://127.0.0.1:{studio.server_port}"
    options = ["--teach", "--label-studio-url", address, "--label-studio-key", key]
    found = Served(folder / "birds.frugal", *options)
    for name in ("cat", "dax"):
        found.send("/learn", sorted((pictures / name).glob("*")), name=name)
    yield found
    found.close()


def task(picture: object, number: int = 7) -> dict[str, Any]:
    return {"id": number, "data": {"picture": picture}, "annotations": [], "predictions": []}


def asked(served: Served, *tasks: dict[str, Any], config: object = CONFIG) -> Any:
    """What Label Studio sends for predictions."""
    return served.post(
        "/label-studio/predict",
        {
            "tasks": list(tasks),
            "model_version": None,
            "project": "1.1700000000",
            "label_config": config,
            "params": {"login": None, "password": None, "context": None},
        },
    )


def annotated(
    served: Served, picture: object, *choices: str, event: str = "ANNOTATION_CREATED"
) -> Any:
    """What Label Studio sends when somebody has chosen."""
    result = {
        "id": "a1",
        "from_name": "bird",
        "to_name": "photo",
        "type": "choices",
        "value": {"choices": list(choices)},
        "origin": "manual",
    }
    return served.post(
        "/label-studio/webhook",
        {
            "action": event,
            "annotation": {"id": 3, "result": [result], "was_cancelled": False, "task": 7},
            "task": task(picture),
            "project": {"id": 1, "title": "Birds", "label_config": CONFIG},
        },
    )


def in_itself(path: Path) -> str:
    return f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"


def test_it_is_up_and_a_project_is_set_up(served: Served) -> None:
    health = served.get("/label-studio/health").json
    assert health == {"status": "UP", "model_class": "FrugalVAE"}
    setup = {
        "project": "1.1700000000",
        "schema": CONFIG,
        "hostname": "http://localhost:8080",
        "access_token": "not used",
        "extra_params": None,
    }
    told = served.post("/label-studio/setup", setup)
    assert told.json == {"model_version": served.get("/status").json["revision"]}
    wrong = served.post("/label-studio/setup", {**setup, "schema": "<View/>"})
    assert (wrong.status, "no Choices about an Image" in wrong.json["error"]) == (422, True)


def test_tasks_are_predicted_from_uploads_and_from_themselves(
    served: Served, pictures: Path
) -> None:
    reply = asked(
        served,
        task("/data/upload/1/cat-0.png"),
        task(in_itself(pictures / "dax/0.png")),
        task("data:image/png;base64," + base64.b64encode(b"no picture").decode()),
    )
    cat, dax, broken = reply.json["results"]
    assert cat["result"] == [
        {
            "from_name": "bird",
            "to_name": "photo",
            "type": "choices",
            "value": {"choices": ["cat"]},
        }
    ]
    assert dax["result"][0]["value"] == {"choices": ["dax"]}
    assert 0.5 < cat["score"] <= 1
    assert cat["model_version"] == served.get("/status").json["revision"]
    assert (broken["result"], broken["score"]) == ([], 0)


def test_what_is_no_choice_of_the_project_is_not_predicted(served: Served, pictures: Path) -> None:
    only = CONFIG.replace('<Choice value="dax"/>', "")
    [found] = asked(served, task(in_itself(pictures / "dax/0.png")), config=only).json["results"]
    assert [one["value"]["choices"] for one in found["result"]] in ([["cat"]], [])


def test_what_somebody_chooses_is_learned_and_changed_with_their_mind(
    served: Served, pictures: Path
) -> None:
    for number in range(3):
        told = annotated(served, f"/data/upload/1/emu-{number}.png", "emu")
        assert (told.status, told.json["status"]) == (201, "ok")
    assert told.json["result"]["after"]["samples"] == 3
    [found] = asked(served, task(in_itself(pictures / "emu/1.png"))).json["results"]
    assert found["result"][0]["value"] == {"choices": ["emu"]}
    again = annotated(served, "/data/upload/1/emu-0.png", "dax", event="ANNOTATION_UPDATED").json
    assert again["result"]["moved"] == {"emu": 1}
    counts = {one["label"]: one["samples"] for one in served.get("/classes").json["classes"]}
    assert counts == {"cat": 12, "dax": 13, "emu": 2}


def test_events_without_a_class_change_nothing(served: Served) -> None:
    before = served.file.read_bytes()
    several = annotated(served, "/data/upload/1/emu-0.png", "emu", "cat")
    assert (several.status, several.json["status"]) == (201, "ok")
    for event in ("ANNOTATION_DELETED", "START_TRAINING"):
        assert annotated(served, "/data/upload/1/emu-0.png", "emu", event=event).status == 201
    unknown = annotated(served, "/data/upload/1/emu-0.png", "emu", event="PROJECT_CREATED")
    assert unknown.json == {"status": "Unknown event"}
    assert served.post("/label-studio/webhook", {"action": "ANNOTATION_CREATED"}).status == 422
    assert served.file.read_bytes() == before


@pytest.mark.parametrize(
    "address",
    [
        "http://attacker.example/cat.png",
        "http://127.0.0.1:1/cat.png",
        "//attacker.example/cat.png",
        "file:///etc/passwd",
        "/data/elsewhere/cat.png",
        "data:image/png;base64,???",
        "data:",
        "http://[",
        "/data/upload/1/a cat.png",
        "/data/upload/1/\u00e9.png",
        None,
        5,
    ],
)
def test_pictures_are_fetched_from_nowhere_else(served: Served, address: object) -> None:
    reply = asked(served, task(address))
    assert (reply.status, bool(reply.json["error"])) == (422, True)


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
    assert below(f"http://ls:8080/labels{end}", value) == found


def test_pictures_are_bounded_as_if_they_came_with_the_request(
    pictures: Path, studio: http.server.ThreadingHTTPServer, tmp_path: Path
) -> None:
    large = Image.frombytes("RGB", (400, 400), random.Random(0).randbytes(480_000))
    large.save(pictures / "cat/large.png")  # half a megabyte
    key = tmp_path / "key.txt"
    key.write_text(KEY)
    address = f"http://127.0.0.1:{studio.server_port}"
    options = ["--label-studio-url", address, "--label-studio-key", key, "--max-body", "1"]
    served = Served(tmp_path / "birds.frugal", "--teach", *options)
    try:
        for name in ("cat", "dax"):
            served.send("/learn", sorted((pictures / name).glob("1*.png")), name=name)
        many = [task("/data/upload/1/cat-large.png") for _ in range(3)]
        reply = asked(served, *many)
        assert (reply.status, "more than 1.0 MB" in reply.json["error"]) == (413, True)
        assert len(asked(served, *many[:2]).json["results"]) == 2
        for _ in range(5):  # and what was held is given back
            assert asked(served, *many).status == 413
        assert asked(served, *many[:2]).status == 200
    finally:
        served.close()


def test_half_of_a_letter_is_refused(served: Served) -> None:
    for path in ("setup", "predict", "webhook"):
        reply = served.ask(
            "POST",
            f"/label-studio/{path}",
            b'{"schema": "\\ud800", "label_config": "\\ud800", "action": "\\udfff"}',
            {"Content-Type": "application/json"},
        )
        assert (reply.status, "half of a letter" in reply.json["error"]) == (422, True)


def test_without_the_address_of_label_studio_nothing_is_fetched(
    tmp_path: Path, pictures: Path
) -> None:
    served = Served(tmp_path / "birds.frugal", "--teach")
    try:
        served.send("/learn", sorted((pictures / "cat").glob("*")), name="cat")
        served.send("/learn", sorted((pictures / "dax").glob("*")), name="dax")
        asked_before = list(Uploads.asked) if hasattr(Uploads, "asked") else []
        reply = asked(served, task("/data/upload/1/cat-0.png"))
        assert (reply.status, "--label-studio-url" in reply.json["error"]) == (422, True)
        assert (list(Uploads.asked) if hasattr(Uploads, "asked") else []) == asked_before
        assert asked(served, task(in_itself(pictures / "cat/0.png"))).status == 200
    finally:
        served.close()


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
    with pytest.raises(RefusedError, match="labelling configuration"):
        choices_of(config)
