"""Asking and teaching over HTTP: a real process, and a file that the command line changes too."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from frugalvae import FrugalClassifier
from tests.serving import START, Served
from tests.test_images import save
from tests.tool import SHADES, paint
from tests.waiting import wait_until

pytest.importorskip("starlette", reason="the extra 'serve' is not installed")

Start = Callable[..., Served]


def command(*words: object) -> str:
    """A command of frugalvae in a process of its own, with the encoder of colours."""
    done = subprocess.run(
        [sys.executable, "-c", START, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[1],
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return paint(tmp_path_factory.mktemp("pictures"), *SHADES)


@pytest.fixture(scope="module")
def taught_bytes(pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("taught")
    paint(folder / "train", "cat", "dax")
    command("learn", folder / "birds.frugal", folder / "train", "--quiet")
    return (folder / "birds.frugal").read_bytes()


@pytest.fixture
def start(tmp_path: Path, taught_bytes: bytes) -> Iterator[Start]:
    """Start a server of a file that knows cats and daxes, with these options."""
    started: list[Served] = []

    def make(*options: object, new: bool = False) -> Served:
        file = tmp_path / "birds.frugal"
        if not new:
            file.write_bytes(taught_bytes)
        started.append(Served(file, *options))
        return started[-1]

    yield make
    for served in started:
        served.close()


def images(pictures: Path, name: str) -> list[Path]:
    return sorted((pictures / name).glob("*.png"))


def known(served: Served) -> list[Any]:
    return FrugalClassifier.load(served.file).model_.classes.tolist()


# --------------------------------------------------------------------------- asking


def test_pictures_are_named_as_on_the_command_line(start: Start, pictures: Path) -> None:
    served = start()
    paths = [pictures / "cat/0.png", pictures / "dax/1.png"]
    told = served.send("/predict?top=2&unknown=true", paths).json
    printed = command("predict", served.file, *paths, "--top", "2", "--unknown", "--json")
    for ours, theirs in zip(told["predictions"], json.loads(printed)["predictions"], strict=True):
        assert ours["input"] == Path(theirs["input"]).name
        assert {key: ours[key] for key in ("label", "known")} == {
            key: theirs[key] for key in ("label", "known")
        }
        assert ours["familiarity"] == pytest.approx(theirs["familiarity"], abs=1e-6)
        assert [one["label"] for one in ours["top"]] == [one["label"] for one in theirs["top"]]
        assert [one["probability"] for one in ours["top"]] == pytest.approx(
            [one["probability"] for one in theirs["top"]], abs=1e-6
        )
    assert [found["label"] for found in told["predictions"]] == ["cat", "dax"]


def test_a_raw_picture_is_named_and_remembered(start: Start, pictures: Path) -> None:
    served = start()
    reply = served.raw("/predict?input=yard.png", pictures / "dax/0.png")
    [answer] = reply.json["predictions"]
    assert (reply.status, answer["input"], answer["label"]) == (200, "yard.png", "dax")
    assert (answer["known"], len(answer["top"])) == (None, 1)
    [question] = served.get("/recent").json["questions"]
    assert (question["id"], question["label"], question["taught"]) == (answer["id"], "dax", "dax")
    assert 0 < question["left"] <= 3600
    small = served.get(f"/recent/{answer['id']}/picture")
    assert small.headers["content-type"] == "image/jpeg"
    assert small.content.startswith(b"\xff\xd8\xff")
    again = served.post("/predict?top=2", {"ids": [answer["id"]]}).json["predictions"]
    assert [found["label"] for found in again] == ["dax"]
    assert served.post("/recent/clear", {"ids": [answer["id"]]}).json == {"removed": 1}
    assert served.get("/recent").json["questions"] == []
    gone = served.post("/predict", {"ids": [answer["id"]]})
    assert (gone.status, gone.json["gone"]) == (410, [answer["id"]])


def test_what_is_not_to_be_remembered_is_not(start: Start, pictures: Path) -> None:
    served = start("--teach")
    [quiet] = served.send("/predict?kept=quiet", images(pictures, "emu")[:1]).json["predictions"]
    [no] = served.send("/predict?kept=no", images(pictures, "emu")[:1]).json["predictions"]
    assert "id" not in no
    assert served.get("/recent").json["questions"] == []
    assert served.post("/learn", {"name": "emu", "ids": [quiet["id"]]}).json["learned"] == 1


def test_unreadable_pictures_are_told_and_the_others_answered(start: Start, pictures: Path) -> None:
    served = start()
    told = served.send("/predict", [b"no picture", pictures / "cat/0.png"]).json
    assert [found["label"] for found in told["predictions"]] == ["cat"]
    assert told["unreadable"] == [
        {"input": "0.png", "reason": "it is in no known format of images"}
    ]
    reply = served.ask("POST", "/predict", b"no picture", {"Content-Type": "image/png"})
    assert reply.status == 422
    assert "no image can be read: it is in no known format of images" in reply.json["error"]
    none = served.send("/predict", [])
    assert (none.status, none.json["error"][:19]) == (422, "no images were sent")


def test_what_is_known_is_told(start: Start) -> None:
    served = start()
    status = served.get("/status").json
    assert (status["file"], status["classes"], status["samples"]) == ("birds.frugal", 2, 12)
    assert (status["teach"], status["undo"], status["broken"]) == (False, None, None)
    assert status["keep"] == {
        "seconds": 3600.0,
        "most": 500,
        "bytes": 50_000_000,
        "folder": False,
    }
    told = served.get("/classes").json
    assert [(one["label"], one["samples"]) for one in told["classes"]] == [("cat", 6), ("dax", 6)]
    assert [one["nearest"][0]["label"] for one in told["classes"]] == ["dax", "cat"]
    assert told["accuracy"] > 0.9
    low, high = told["interval"]  # of twelve samples, but not of six
    assert low < 0.9 < high
    assert [(one["accuracy"] > 0.9, one["interval"]) for one in told["classes"]] == 2 * [
        (True, None)
    ]
    assert abs(told["classes"][0]["x"]) == 1
    assert "nearest" not in served.get("/classes?brief=1").json["classes"][0]
    [event] = served.get("/history").json["events"]
    assert event["text"].startswith("learn cat (6), dax (6)")
    assert served.get("/health").json["status"] == "ok"
    metrics = served.get("/metrics").content.decode()
    assert 'frugalvae_requests_total{path="/status",status="200"} 1' in metrics
    assert "frugalvae_classes 2" in metrics
    assert str(served.file.parent) not in metrics + str(status)


def test_the_page_and_its_documentation_are_there(start: Start) -> None:
    served = start()
    page = served.get("/")
    assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    script = served.get("/page/app.js")
    assert script.headers["content-type"].startswith("text/javascript")
    assert (script.headers["cache-control"], bool(script.headers["etag"])) == ("no-cache", True)
    docs = served.get("/docs").content.decode()
    for path in served.get("/openapi.json").json["paths"]:
        assert path in docs
    address = re.compile(r"http://127\.0\.0\.1:\d+(?=/predict|/learn)")  # its own
    assert len(address.findall(docs)) == 2
    assert "http" not in address.sub("", docs)
    missing = served.get("/page/../../served.py")
    assert (missing.status, "error" in missing.json) == (404, True)


def test_a_picture_is_explained(start: Start, pictures: Path) -> None:
    served = start()
    told = served.send("/explain", images(pictures, "dax")[:1]).json
    assert [one["label"] for one in told["classes"]] == ["dax", "cat"]
    assert [one["taught"][0]["samples"] for one in told["classes"]] == [6, 6]
    assert np.shape(told["influence"]) == (8, 8)
    shown = served.send("/explain?picture=true", images(pictures, "dax")[:1])
    assert (shown.headers["content-type"], shown.content[:4]) == ("image/png", b"\x89PNG")
    two = served.send("/explain", images(pictures, "dax")[:2])
    assert (two.status, "expected one" in two.json["error"]) == (422, True)
    unknown = served.send("/explain", images(pictures, "dax")[:1], against="emu")
    assert (unknown.status, "/classes lists all 2" in unknown.json["error"]) == (404, True)
    long = served.send("/explain", images(pictures, "dax")[:1], against="a" + 255 * "\u0301")
    assert (long.status, "expected: at most 255 characters" in long.json["error"]) == (422, True)
    assert served.send("/explain", [b"no picture"]).status == 422


def test_the_tray_says_which_pictures_would_teach_most(start: Start, pictures: Path) -> None:
    served = start("--teach")
    assert served.get("/suggest").json == {"suggestions": [], "groups": []}
    asked = [*images(pictures, "emu"), *images(pictures, "cat")]  # of which cats were taught
    ids = {one["input"]: one["id"] for one in served.send("/predict", asked).json["predictions"]}
    found = served.get("/suggest").json["suggestions"]
    assert len(found) == 6 < len(ids) + 6
    assert {one["why"] for one in found} <= {"looks like no class that was taught", "cat or dax?"}
    served.post("/learn", {"name": "emu", "ids": [one["id"] for one in found]})
    assert served.get("/suggest").json["suggestions"] == []


# --------------------------------------------------------------------------- teaching


def test_promises_are_kept_or_refused(start: Start, pictures: Path) -> None:
    served = start()
    expected = served.get("/status").json["expected"]
    assert expected["accuracy"] == expected["high"] == 1
    assert 0.5 < expected["low"] < 1
    [answer] = served.raw("/predict?error=0.5&sets=0.5", pictures / "dax/3.png").json["predictions"]
    assert (answer["label"], answer["sure"], answer["set"]) == ("dax", True, ["dax"])
    [answer] = served.raw("/predict?error=0.01", pictures / "dax/3.png").json["predictions"]
    assert (answer["label"], answer["sure"], "set" in answer) == (None, False, False)
    assert served.raw("/predict?error=2", pictures / "dax/3.png").status == 422


def test_a_new_file_is_taught_from_nothing(start: Start, pictures: Path) -> None:
    served = start("--teach", new=True)
    assert served.get("/status").json["classes"] == 0
    [empty] = served.send("/predict?kept=quiet", images(pictures, "cat")[:1]).json["predictions"]
    assert (empty["label"], empty["top"]) == (None, [])
    first = served.send("/learn", images(pictures, "cat"), name="cat").json
    assert (first["label"], first["new"], first["learned"]) == ("cat", True, 6)
    assert first["before"] == {"bytes": 0, "classes": 0}
    assert first["after"]["bytes"] == served.file.stat().st_size
    assert served.post("/undo").json["gone"] == ["cat"]
    assert served.get("/status").json["classes"] == 0
    assert served.send("/learn", images(pictures, "cat"), name="cat").json["learned"] == 6
    second = served.send("/learn", images(pictures, "dax"), name="dax").json
    assert (second["after"]["classes"], second["after"]["samples"]) == (2, 6)
    assert known(served) == ["cat", "dax"]
    [answer] = served.raw("/predict", pictures / "dax/3.png").json["predictions"]
    assert answer["label"] == "dax"
    assert "learn" in command("history", served.file)


def test_pictures_that_were_taught_are_not_counted_again(start: Start, pictures: Path) -> None:
    served = start("--teach")
    again = served.send("/learn", images(pictures, "cat"), name="cat").json
    assert (again["new"], again["learned"], again["already"]) == (False, 0, 6)
    assert again["after"]["samples"] == 6


def test_a_wrong_answer_is_corrected_by_its_id(start: Start, pictures: Path) -> None:
    served = start("--teach")
    ids = [
        served.raw("/predict", path).json["predictions"][0]["id"]
        for path in images(pictures, "emu")[:3]
    ]
    told = served.post("/learn", {"name": "emu", "ids": ids}).json
    assert (told["new"], told["learned"]) == (True, 3)
    assert {one["taught"] for one in served.get("/recent").json["questions"]} == {"emu"}
    [answer] = served.raw("/predict?kept=no", pictures / "emu/5.png").json["predictions"]
    assert answer["label"] == "emu"
    undone = served.post("/undo", {"revision": told["revision"]}).json
    assert (undone["gone"], undone["classes"]) == (["emu"], 2)
    assert {one["taught"] for one in served.get("/recent").json["questions"]} == {None}


def test_a_picture_that_was_taught_wrongly_is_moved(start: Start, pictures: Path) -> None:
    served = start("--teach")
    served.send("/learn", images(pictures, "emu")[:3], name="emu")
    served.send("/learn", images(pictures, "fox")[:1], name="emu")
    moved = served.send("/learn", images(pictures, "fox")[:1], name="fox").json
    assert (moved["new"], moved["learned"], moved["moved"]) == (True, 1, {"emu": 1})
    counts = {one["label"]: one["samples"] for one in served.get("/classes").json["classes"]}
    assert counts == {"cat": 6, "dax": 6, "emu": 3, "fox": 1}
    back = served.send("/learn", images(pictures, "fox")[:1], name="emu").json
    assert (back["moved"], back["gone"], back["after"]["classes"]) == ({"fox": 1}, ["fox"], 3)
    events = served.get("/history").json["events"]
    texts = [event["text"].replace(", from the page or HTTP", "") for event in events]
    assert texts[-2:] == [
        "learn fox (1), moved from emu (1)",
        "learn emu (1), moved from fox (1); fox had no other and is gone",
    ]
    assert served.get("/status").json["undo"]["text"] == events[-1]["text"]
    assert "fox had no other and is gone" in command("history", served.file)
    assert served.post("/undo").json["back"] == ["fox"]
    assert served.get("/history").json["events"] == events[:-1]


def test_several_classes_may_go_at_once(start: Start, pictures: Path) -> None:
    served = start("--teach")
    for name in ("emu", "fox"):
        served.send("/learn", images(pictures, name)[:1], name=name)
    both = [*images(pictures, "emu")[:1], *images(pictures, "fox")[:1]]
    told = served.send("/learn", both, name="gnu").json
    assert (told["moved"], told["gone"]) == ({"emu": 1, "fox": 1}, ["emu", "fox"])
    assert known(served) == ["cat", "dax", "gnu"]  # the file can be read


def test_classes_are_renamed_forgotten_and_brought_back(start: Start, pictures: Path) -> None:
    served = start("--teach")
    assert served.post("/rename", {"from": "cat", "to": "lynx"}).json["label"] == "lynx"
    taken = served.post("/rename", {"from": "lynx", "to": "dax"})
    assert (taken.status, "already known" in taken.json["error"]) == (409, True)
    case = served.post("/rename", {"from": "lynx", "to": "DAX"})
    assert case.status == 422
    gone = served.post("/forget", {"label": "dax"}).json
    assert (gone["text"], gone["classes"]) == ("dax is forgotten", 1)
    assert gone["receipt"]["samples"] == 6
    last = served.post("/forget", {"label": "lynx"}).json
    assert (last["text"], last["classes"]) == ("lynx is forgotten", 0)
    assert served.get("/classes").json["classes"] == []
    [empty] = served.send("/predict", images(pictures, "cat")[:1]).json["predictions"]
    assert empty["label"] is None
    assert served.post("/undo").json["back"] == ["lynx"]
    nothing = served.post("/undo")
    assert (nothing.status, "nothing to undo" in nothing.json["error"]) == (422, True)
    renamed = served.send("/learn", images(pictures, "cat")[:1], name="cat").json
    assert (renamed["label"], renamed["already"]) == ("lynx", 1)


def test_one_class_becomes_part_of_another(start: Start) -> None:
    served = start("--teach")
    merged = served.post("/merge-classes", {"label": "cat", "other": "dax"}).json
    assert (merged["text"], merged["classes"]) == ("dax is part of cat now", 1)
    assert served.get("/classes").json["classes"][0]["samples"] == 12
    itself = served.post("/merge-classes", {"label": "cat", "other": "cat"})
    assert (itself.status, "with itself" in itself.json["error"]) == (422, True)
    assert served.post("/undo").json["back"] == ["dax"]


def test_without_teach_nothing_changes(start: Start, pictures: Path, taught_bytes: bytes) -> None:
    served = start()
    for path in ("/learn", "/rename", "/merge-classes", "/forget", "/undo"):
        reply = served.post(path, {"name": "cat", "label": "cat"})
        assert (reply.status, "--teach" in reply.json["error"]) == (403, True)
    assert served.file.read_bytes() == taught_bytes


def test_a_change_of_another_state_is_refused(start: Start, pictures: Path) -> None:
    served = start("--teach")
    seen = served.get("/status").json["revision"]
    command("rename", served.file, "cat", "lynx")
    reply = served.post("/forget", {"label": "dax", "revision": seen})
    assert (reply.status, "changed meanwhile" in reply.json["error"]) == (409, True)
    assert known(served) == ["lynx", "dax"]


@pytest.mark.parametrize("name", ["", " ", "a\x1b[31m", "\u202ered", 5.5, None, ["cat"]])
def test_names_that_cannot_be_read_are_refused(start: Start, pictures: Path, name: object) -> None:
    served = start("--teach")
    [answer] = served.raw("/predict", pictures / "emu/0.png").json["predictions"]
    assert served.post("/learn", {"name": name, "ids": [answer["id"]]}).status == 422
    assert known(served) == ["cat", "dax"]


def test_a_name_that_is_nearly_known_is_told(start: Start, pictures: Path) -> None:
    served = start("--teach")
    served.post("/rename", {"from": "cat", "to": "Cardinal"})
    told = served.send("/learn", images(pictures, "emu"), name="Cardnal").json
    assert (told["new"], told["near"]) == (True, "Cardinal")
    case = served.send("/learn", images(pictures, "fox"), name="cardinal")
    assert case.status == 422
    mattering = served.send("/learn", images(pictures, "fox"), name="cardinal", case_matters="yes")
    assert mattering.json["new"]


def test_pictures_are_kept_only_where_a_folder_is_given(
    start: Start, pictures: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    served = start("--teach", "--keep", folder)
    served.raw("/predict", pictures / "cat/0.png")
    served.raw("/predict", pictures / "cat/0.png")
    served.send("/learn", [pictures / "emu/0.png"], name="../../emu")
    kept = sorted(folder.iterdir())
    assert {path.read_bytes() for path in kept} == {
        (pictures / "cat/0.png").read_bytes(),
        (pictures / "emu/0.png").read_bytes(),
    }
    assert all(path.suffix == ".png" and len(path.stem) == 32 for path in kept)
    assert served.get("/status").json["keep"]["folder"] is True


# --------------------------------------------------------------------------- the file


def test_what_the_command_line_changes_is_taken_up(start: Start, pictures: Path) -> None:
    served = start("--teach")
    before = served.get("/status").json
    command("rename", served.file, "cat", "lynx")
    after = served.get("/status").json
    assert after["revision"] != before["revision"]
    assert after["undo"]["text"] == "rename cat to lynx"
    [answer] = served.raw("/predict", pictures / "cat/0.png").json["predictions"]
    assert answer["label"] == "lynx"
    served.send("/learn", images(pictures, "emu"), name="emu")
    assert known(served) == ["lynx", "dax", "emu"]


def test_a_broken_file_is_told_and_the_old_goes_on(
    start: Start, pictures: Path, taught_bytes: bytes
) -> None:
    served = start("--teach")
    assert served.get("/health").json["status"] == "ok"
    served.file.write_bytes(b"broken")
    health = served.get("/health").json
    assert (health["status"], "birds.frugal" in health["problem"]) == ("degraded", True)
    assert str(served.file.parent) not in str(health)
    assert served.get("/status").json["broken"] == health["problem"]
    [answer] = served.raw("/predict", pictures / "cat/0.png").json["predictions"]
    assert answer["label"] == "cat"
    refused = served.send("/learn", images(pictures, "emu"), name="emu")
    assert (refused.status, served.file.read_bytes()) == (409, b"broken")
    served.file.unlink()
    assert "is gone" in served.get("/health").json["problem"]
    assert served.send("/learn", images(pictures, "emu"), name="emu").status == 409
    served.file.write_bytes(taught_bytes)
    assert served.get("/health").json == served.get("/health").json | {
        "status": "ok",
        "problem": None,
    }


def test_a_file_that_could_not_be_read_for_a_while_is_read_again(
    tmp_path: Path, taught_bytes: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    from frugalvae.server.served import Served as ServedFile
    from frugalvae.server.settings import Settings

    file = tmp_path / "birds.frugal"
    file.write_bytes(taught_bytes)
    served = ServedFile(Settings(file))

    def refuse(*_: object) -> bytes:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_bytes", refuse)
        assert served.read() is None
    assert "Permission denied" in str(served.problem)
    assert served.read() is not None
    assert served.problem is None


def test_a_file_that_another_process_changes_is_waited_for(start: Start, pictures: Path) -> None:
    from frugalvae.storage.store import Store

    served = start("--teach", "--wait", "0.2")
    with Store(served.file).changing("somebody", 0):
        busy = served.send("/learn", images(pictures, "emu"), name="emu")
        [answer] = served.raw("/predict", pictures / "cat/0.png").json["predictions"]
    assert (busy.status, busy.headers["retry-after"], answer["label"]) == (503, "1", "cat")
    assert "birds.frugal is being changed by another program" in busy.json["error"]
    assert str(served.file.parent) not in busy.json["error"]
    assert served.send("/learn", images(pictures, "emu"), name="emu").json["new"]


def test_many_ask_while_others_teach(start: Start, pictures: Path) -> None:
    """All answers come from a complete state, and every lesson that was answered is learned."""
    served = start("--teach")
    wrong, done = list[Any](), threading.Event()

    def ask() -> None:
        while not done.is_set():
            reply = served.raw("/predict?top=5&kept=no", pictures / "cat/0.png")
            total = sum(one["probability"] for one in reply.json["predictions"][0]["top"])
            if reply.status != 200 or abs(total - 1) > 1e-6:
                wrong.append(reply.content)

    def teach(number: int) -> int:
        name, path = f"class {number % 3}", served.file.parent / f"{number}.png"
        save(path, (10 * number, 200 - 10 * number, 90 + number))
        return served.send("/learn", [path], name=name).status

    askers = [threading.Thread(target=ask) for _ in range(2)]
    for asker in askers:
        asker.start()
    with ThreadPoolExecutor(4) as pool:
        statuses = list(pool.map(teach, range(12)))
    done.set()
    for asker in askers:
        asker.join()
    assert (wrong, set(statuses)) == ([], {200})
    counts = {one["label"]: one["samples"] for one in served.get("/classes").json["classes"]}
    assert counts == {"cat": 6, "dax": 6, "class 0": 4, "class 1": 4, "class 2": 4}


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_when_all_is_answered(start: Start, pictures: Path, how: int) -> None:
    served = start("--teach")
    replies: list[int] = []

    def teach() -> None:
        replies.append(served.send("/learn", images(pictures, "emu"), name="emu").status)

    under_way = threading.Thread(target=teach)
    metrics = "frugalvae_requests_in_flight"
    assert metrics in served.get("/metrics").content.decode()
    under_way.start()
    wait_until(lambda: replies or "in_flight 2" in served.get("/metrics").content.decode())
    assert served.stop(how) == 0
    under_way.join()
    assert replies == [200]
    assert known(served) == ["cat", "dax", "emu"]
    assert [path.name for path in served.file.parent.glob(".*birds*")] == []


def test_errors_of_starting_are_told(tmp_path: Path) -> None:
    def failing(*words: object) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "frugalvae", "serve", *map(str, words)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2
        return done.stderr

    file, short = tmp_path / "birds.frugal", tmp_path / "short.txt"
    short.write_text("secret\n")
    assert "there is no such file" in failing(file)
    assert "give --token-file" in failing(file, "--teach", "--host", "0.0.0.0")
    assert "has 6 letters; expected 16 or more" in failing(file, "--teach", "--token-file", short)
    for place, why in ((tmp_path / "none", "No such file"), ("/dev/zero", "not a regular file")):
        said = failing(file, "--teach", "--token-file", place)
        assert f"{place} cannot be read" in said
        assert why in said
    assert "is not a port" in failing(file, "--teach", "--port", "70000")
    assert "does not exist" in failing(file, "--teach", "--keep", tmp_path / "none")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"127.0.0.1:{port}" in failing(file, "--teach", "--port", port)
