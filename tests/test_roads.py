"""Every road that a name can travel into this program, walked with payloads that leave a mark.

What a file, an archive, a model, a request or another process names is data. A child process
walks all roads, while an audit hook notes each import, file, program and connection that a payload
asks for: there must be none, and the error says what to type. The roads are looked up, not
remembered: a verb, route, method or field that has no row here fails a test.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import copy
import inspect
import io
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from PIL import Image

from frugalvae import FrugalClassifier, PhotoClassifier
from frugalvae.cli.main import VERBS, main, parser
from frugalvae.encoders import Choice
from frugalvae.errors import FrugalError
from frugalvae.images.feature_file import IDENTITY, OPTIONAL, REQUIRED
from frugalvae.parts.registry import is_trusted
from frugalvae.storage import schema
from frugalvae.storage.model_file import from_bytes, to_bytes
from tests.small_onnx import forged

#: Every verb: what is typed, and whether it refuses an encoder or a part that only a file names.
#: ``None`` is a verb that reads no file.
CLI: dict[str, tuple[str, bool, bool] | None] = {
    "check": ("{file} {photos} -o {out}.html --list {out}.txt", True, True),
    "learn": ("{file} {more}", True, True),
    "predict": ("{file} {photo}", True, True),
    "explain": ("{file} {photo} -o {out}.png", True, True),
    "serve": ("{file} --teach", False, False),  # it says so in its log, and refuses; see HTTP
    "evaluate": ("{file} {photos} -o {out}.html", True, True),
    "status": ("{file} --verify", False, False),  # whose summary may find it wrong before
    "suggest": ("{file} {photos} -o {out}.html", True, True),
    "rename": ("{file} cat dog", False, True),
    "merge": ("{out}.frugal {file}", True, True),
    "merge-classes": ("{file} cat dax", False, True),
    "unlearn": ("{file} cat {photo}", True, True),
    "forget": ("{file} cat --scrub", False, True),
    "undo": ("{file}", False, True),
    "history": ("{file}", False, False),
    "sample": ("{file} cat -o {out}.npz", False, True),
    "encode": ("{zip} -o {out}.npz --encoder onnx --model {model} {how}", False, False),
    "completion": None,
}

#: The same of the laboratory, where it is installed.
LABORATORY: dict[str, tuple[str, bool, bool] | None] = {
    "run": (
        "{features} --tasks 2 --memory gaussian-diagonal --head nearest-mean -o {out}.json",
        False,
        False,
    ),
    "bench": ("run {toml} --seeds 0 --results {out}", True, True),
    "report": ("{results} -o {out}.md", False, False),
    "memory": None,
    "demo": None,
}

#: Every route: what is sent besides a payload in each of its fields, and whether it needs the
#: file's encoder.
HTTP: dict[tuple[str, str], tuple[dict[str, Any] | None, bool]] = {
    ("POST", "/predict"): (None, True),
    ("POST", "/explain"): (None, True),
    ("GET", "/suggest"): ({}, False),
    ("GET", "/recent"): ({}, False),
    ("GET", "/recent/{id}/picture"): ({}, False),
    ("POST", "/recent/clear"): ({"ids": []}, False),
    ("POST", "/learn"): (None, True),
    ("POST", "/rename"): ({"from": "cat", "to": "dog"}, False),
    ("POST", "/merge-classes"): ({"label": "cat", "other": "dax"}, False),
    ("POST", "/forget"): ({"label": "cat"}, False),
    ("POST", "/undo"): ({}, False),
    ("GET", "/status"): ({}, False),
    ("GET", "/classes"): ({}, False),
    ("GET", "/history"): ({}, False),
    ("GET", "/health"): ({}, False),
    ("GET", "/metrics"): ({}, False),
    ("GET", "/openapi.json"): ({}, False),
    ("GET", "/docs"): ({}, False),
}

#: Every public method that takes a path or photographs, as it is called with a file's classifier.
PYTHON: dict[str, Callable[[Any, dict[str, Any]], object]] = {
    "learn": lambda clf, at: clf.learn(at["more"]),
    "predict": lambda clf, at: clf.predict(at["photo"]),
    "predict_proba": lambda clf, at: clf.predict_proba(at["photo"]),
    "encode": lambda clf, at: clf.encode([at["photo"]]),
    "explain": lambda clf, at: clf.explain(at["photo"]),
    "load": lambda clf, at: clf.load(at["file"]).predict(at["photo"]),
    "save": lambda clf, at: (clf.save(at["file"]), clf.predict(at["photo"])),
}

#: Every field of a file's document: those that name parts or an encoder get each payload whole,
#: and in every field each text and object is replaced by each.
NAMES = {"parameters", "memory", "head", "encoder"}
DATA = {
    *("aliases", "classes", "confidence", "digests", "feature_names", "format", "head_due"),
    *("history", "library", "n_features", "n_samples_of_class", "n_tasks", "n_taught", "numbers"),
    *("sha256", "task_of_class", "withheld"),
}

ROOT = Path(__file__).parents[1]
MARK = "stranger-mark"
TYPED = re.compile(
    r"give --(trust|encoder|model) \S*stranger|give --\w+ (subprocess|io|logging|zip)"
)


def classes_of(folder: Path) -> dict[str, dict[str, Any]]:
    """Names that run or write something when they are made, with what makes them do so."""
    mark = str(folder / MARK)
    return {
        "subprocess:Popen": {"args": ["touch", mark]},
        "io:FileIO": {"file": mark, "mode": "w"},
        "logging:FileHandler": {"filename": mark},
        "zipfile:ZipFile": {"file": mark, "mode": "w"},
        "stranger:Encoder": {},
    }


def models_of(folder: Path) -> list[str]:
    """Models that would be opened or fetched."""
    here = ["stranger-model.onnx", "stranger-pipe", "stranger-folder"]
    others = ["somebody/stranger", "stranger", "//host/stranger/model.onnx", "~/.ssh/stranger"]
    return [*(str(folder / name) for name in here), *others]


# --------------------------------------------------------------------------- the child that walks


class Walker:
    """Walks roads, and notes what each leaves: errors, and marks."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.marks, self.found = folder, list[str](), list[dict[str, Any]]()
        self.original = (folder / "good.frugal").read_bytes()
        self.at = {
            name: str(folder / where)
            for name, where in {
                "good": "good.frugal",
                "file": "it.frugal",
                "photos": "photos",
                "more": "more",
                "photo": "photos/cat/0.png",
                "zip": "photos.zip",
                "model": "model.onnx",
                "features": "features.npz",
                "toml": "it.toml",
                "results": "results",
                "out": "out",
            }.items()
        }
        self.at["how"] = HOW
        sys.addaudithook(self.note)

    def note(self, event: str, arguments: tuple[Any, ...]) -> None:
        about = f"{event} {arguments[:1]}"
        touches = event in ("import", "open", "os.listdir", "os.scandir") and "stranger" in about
        if touches or event.startswith(("subprocess", "os.system", "os.exec", "os.posix_spawn")):
            self.marks.append(about)
        if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "os.fork"):
            self.marks.append(about)

    def walk(self, road: str, step: Callable[[], object], refused: bool) -> None:
        """Go one road, which must be refused or need not."""
        self.marks.clear()
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            try:
                code = step()
            except FrugalError as error:
                code, _ = 2, printed.write(str(error))
        marks = [*self.marks]
        if (self.folder / MARK).exists():
            (self.folder / MARK).unlink()
            marks.append("the mark is there")
        self.found.append(
            {
                "road": road,
                "marks": marks,
                "code": code if isinstance(code, int) else 0,
                "refused": refused,
                "printed": printed.getvalue()[-2000:],
            }
        )

    # ------------------------------------------------------------ payloads

    def write(self, change: Callable[[dict[str, Any]], object]) -> None:
        """The evil file, and what undo would put back; and nothing of the last walk."""
        for path in self.folder.glob("out*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        document, arrays = copy.deepcopy(from_bytes(self.original))
        change(document)
        for name in ("sha256", "format"):
            document.pop(name, None)
        for name in (self.at["file"], f"{self.at['file']}.undo"):
            Path(name).write_bytes(to_bytes(document, arrays))

    def encoders(self, few: bool = True) -> Iterator[tuple[str, dict[str, Any]]]:
        """What a file may remember of its encoder; one of each kind, or all."""
        for name, settings in [*classes_of(self.folder).items()][-2 if few else 0 :]:
            yield name, {"encoder": name, "given": {"name": name, "settings": settings}}
            yield f"{name} alone", {"encoder": name}
        for model in models_of(self.folder)[1 : 5 if few else None : 2 if few else 1]:
            for name in ("onnx", "transformers")[few:]:
                given = {"name": name, "settings": {"model": model}}
                yield f"{name} {model}", {"encoder": name, "given": given}
        yield "implied", {"encoder": "onnx", "model": "somebody/stranger"}

    def parts(self, few: bool = True) -> Iterator[tuple[str, Callable[[dict[str, Any]], object]]]:
        """Changes that name a part, wherever a part can be named; with one name, or all."""

        def put(role: str, value: Any) -> Callable[[dict[str, Any]], object]:
            where, _, key = role.rpartition(".")
            return lambda document: (document[where] if where else document).update({key: value})

        for name, settings in [*classes_of(self.folder).items()][-1 if few else 0 :]:
            made = {"class": name, "state": settings}
            for role in ("memory", "head", "parameters.memory", "parameters.head"):
                yield f"{role} {name}", put(role, made)
            for role in ("parameters.memory", "parameters.head"):
                yield f"{role} {name} as text", put(role, name)

    # ------------------------------------------------------------ roads

    def everything(self) -> None:
        for verb in CLI:
            self.verb(verb)
        if find_spec("frugalvae_lab"):
            self.laboratory()
        self.feature_files()
        self.places()
        self.python()
        if find_spec("torch"):
            self.heads()
        self.requests()
        self.trusted()

    def trusted(self) -> None:
        """The same where whoever calls has named it."""
        given = {"name": "stranger:Encoder", "settings": {}}
        self.write(lambda d: d.update(encoder={"encoder": "stranger:Encoder", "given": given}))
        self.walk("trusted module", self.command("predict", "--trust", "stranger"), False)
        model = str(self.folder / "stranger-model.onnx")
        self.write(lambda d: d["encoder"]["given"]["settings"].update(model=model))
        self.walk("trusted model", self.command("predict", "--model", model), False)
        import socket

        self.walk("trusted host", lambda: socket.getaddrinfo("localhost", 1) and 0, False)
        settings = {"filename": str(self.folder / MARK)}
        self.walk("trusted log", lambda: __import__("logging").FileHandler(**settings) and 0, False)

    def command(self, verb: str, *more: str) -> Callable[[], int]:
        row = CLI.get(verb) or LABORATORY[verb]
        assert row is not None
        words = [verb, *row[0].format(**self.at).split(), *more]
        if verb in CLI:
            return lambda: main(words)
        from frugalvae_lab.cli import main as laboratory

        return lambda: laboratory(words)

    def verb(self, verb: str) -> None:
        row = CLI[verb]
        if row is None:
            return
        if verb == "encode":  # which reads no file that names a part
            self.walk(verb, self.command(verb), False)
            return
        _, encoder, part = row
        with contextlib.ExitStack() as patched:
            for name in ("listen", "serve"):  # the first of all requests is walked below
                patched.enter_context(mock.patch(f"frugalvae.server.running.{name}"))
            if verb == "serve":
                patched.enter_context(mock.patch("frugalvae.cli.serve.announce"))
            few = verb != "predict"
            for name, remembered in self.encoders(few):
                self.write(lambda document, kept=remembered: document.update(encoder=kept))
                refused = encoder and (verb != "merge" or ":" in name)  # a model's is carried on
                self.walk(f"{verb}: encoder {name}", self.command(verb), refused)
            for name, change in self.parts(few):
                self.write(change)
                self.walk(f"{verb}: {name}", self.command(verb), part)
            if verb == "learn":
                for name, remembered in self.encoders():
                    self.write(lambda document, kept=remembered: document.update(encoder=kept))
                    road = f"{verb} with processes: encoder {name}"
                    self.walk(road, self.command(verb, "--jobs", "2"), True)
                    road = f"{verb} of one class: encoder {name}"
                    self.walk(road, self.command(verb, "--class", "cat", "--flat"), True)

    def laboratory(self) -> None:
        for verb in ("run", "report"):  # which read no file that names a part
            self.walk(verb, self.command(verb), False)
        self.experiments()

    def experiments(self) -> None:
        text = Path(self.at["toml"]).with_name("base.toml").read_text()
        for name, settings in classes_of(self.folder).items():
            written = ", ".join(f"{key} = {json.dumps(to)}" for key, to in settings.items())
            table = f'{{ name = "{name}"{", " + written if written else ""} }}'
            for role, usual in (("memory", '"gaussian-diagonal"'), ("head", '"nearest-mean"')):
                for entry in (f'"{name}"', table):
                    Path(self.at["toml"]).write_text(
                        text.replace(f"{role} = {usual}", f"{role} = {entry}")
                    )
                    self.walk(f"bench: {role} {entry}", self.command("bench"), True)
            Path(self.at["toml"]).write_text(f"encoder = {table}\n{text}")
            self.walk(f"bench: encoder {name}", self.command("bench"), True)
        for model in models_of(self.folder):
            head = f'{{ name = "prompt", model = {json.dumps(model)} }}'
            Path(self.at["toml"]).write_text(text.replace('"nearest-mean"', head))
            self.walk(f"bench: head of {model}", self.command("bench"), True)
        for path in (*models_of(self.folder), "../stranger.toml"):
            Path(self.at["toml"]).write_text(f"extends = {json.dumps(path)}\n{text}")
            self.walk(f"bench: extends {path}", self.command("bench"), False)
            data = text.replace('["digits"]', json.dumps([path]))
            Path(self.at["toml"]).write_text(data)
            self.walk(f"bench: data {path}", self.command("bench"), False)

    def feature_files(self) -> None:
        """``learn new.frugal evil.npz``, and asking and merging what came of it."""
        new = f"{self.folder / 'out'}.frugal"
        with np.load(self.at["features"]) as file:
            arrays = dict(file)
        for name, remembered in self.encoders():
            self.write(lambda _: None)
            arrays["encoder"] = np.array(json.dumps(remembered))
            np.savez(self.folder / "evil.npz", **arrays)
            foreign = ":" in str(remembered["encoder"])
            evil = str(self.folder / "evil.npz")
            quick = ["--memory", "gaussian-diagonal", "--head", "nearest-mean"]
            learn = ["learn", new, evil, *quick]
            self.walk(f"feature file: {name}", lambda w=learn: main(w), foreign)
            if Path(new).exists():
                ask = ["predict", new, self.at["photo"]]
                self.walk(f"what a feature file taught: {name}", lambda w=ask: main(w), True)
        for key in (*REQUIRED, *OPTIONAL):
            np.savez(self.folder / "evil.npz", **arrays | {key: np.array([Touch(self.folder)])})
            self.walk(f"feature file: a pickle in {key}", lambda w=learn: main(w), False)

    def places(self) -> None:
        """Every text and every object of a document, each replaced by each payload."""
        document, _ = from_bytes(self.original)
        for path in places(document):
            old = at(document, path)
            for name, settings in [*classes_of(self.folder).items()][-2:]:
                if isinstance(old, str):
                    payload: Any = name
                elif isinstance(old, dict) and path[0] != "encoder":
                    payload = {"class": name, "state": settings}
                else:
                    continue

                def change(document: Any, path: Any = path, payload: Any = payload) -> None:
                    at(document, path[:-1])[path[-1]] = payload

                self.write(change)
                where = ".".join(map(str, path))
                self.walk(f"{where} is {name}", self.load_and_ask, False)

    def load_and_ask(self) -> None:
        PhotoClassifier.load(self.at["file"]).predict(self.at["photo"])

    def python(self) -> None:
        for method, call in PYTHON.items():
            few = method != "load"
            for name, remembered in self.encoders(few):
                self.write(lambda document, kept=remembered: document.update(encoder=kept))

                def step(call: Any = call) -> None:
                    call(PhotoClassifier.load(self.at["file"]), self.at)

                self.walk(f"{method}(): encoder {name}", step, True)
            for name, change in self.parts(few):
                self.write(change)
                self.walk(f"{method}(): {name}", step, True)

    def heads(self) -> None:
        """The model of a file's head, whichever way a classifier with that head is made."""
        from sklearn.base import clone

        roads: dict[str, Callable[[Any], Any]] = {
            "load()": lambda clf: clf,
            "set_params()": lambda clf: clf.set_params(head__epochs=1),
            "clone()": clone,
            "copy": copy.deepcopy,
            "get_params()": lambda clf: FrugalClassifier(
                head=type(h := clf.head)(**h.get_params())
            ),
        }
        model = models_of(self.folder)[0]
        head = {"class": "PromptHead", "state": {"model": model}}
        for name, road in roads.items():

            def step(road: Any = road) -> None:
                road(FrugalClassifier.load(self.at["file"])).fit(
                    [[0.0, 1.0], [1.0, 0.0]], ["a", "b"]
                )

            self.write(lambda document: document["parameters"].update(head=head))
            self.walk(f"{name}: head of {model}", step, True)

    def requests(self) -> None:
        pytest.importorskip("starlette")
        from frugalvae.server.app import create_app
        from frugalvae.server.settings import Settings

        settings = Settings(Path(self.at["file"]), teach=True)
        mine = Settings(Path(self.at["file"]), teach=True, model=self.at["model"])
        for name, remembered in self.encoders():
            self.write(lambda document, kept=remembered: document.update(encoder=kept))
            app = create_app(settings)
            self.walk(
                f"the server starts: {name}", lambda app=app: app.state.server.warm_up(), False
            )
            for route, (_, needs) in HTTP.items():
                self.walk(f"{route}: {name}", lambda app=app, r=route: ask(app, r, "x"), needs)
            app.state.server.close()
        for name, change in self.parts():
            self.write(change)
            app = create_app(Settings(Path(self.at["file"])))
            self.walk(
                f"the server starts: {name}", lambda app=app: app.state.server.warm_up(), False
            )
            self.walk(
                f"/predict: {name}", lambda app=app: ask(app, ("POST", "/predict"), "x"), True
            )
            app.state.server.close()
        for payload in ("stranger:Encoder", models_of(self.folder)[0], "somebody/stranger"):
            self.write(lambda _: None)
            app = create_app(mine)
            for route in HTTP:
                road = f"{route}: a request that names {payload}"
                self.walk(road, lambda app=app, r=route, p=payload: ask(app, r, p), False)
            app.state.server.close()


class Touch:
    """Makes the mark when it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.folder / MARK,)


HOW = "--set encoder.size=8 --set encoder.mean=[0,0,0] --set encoder.std=[1,1,1]"


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths to everything in a document."""
    items = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in items:
        yield (*path, key)
        if isinstance(value, (dict, list)):
            yield from places(value, (*path, key))


def at(document: Any, path: tuple[Any, ...]) -> Any:
    """What a path leads to."""
    for key in path:
        document = document[key]
    return document


def ask(app: Any, route: tuple[str, str], payload: str) -> int:
    """One request with a payload in every field that it might have; 2 if it is refused."""
    from lab.benchmarks.serving import form

    method, path = route
    told, _ = HTTP[route]
    names = ("encoder", "model", "trust", "memory", "head", "file", "path", "url", "source")
    odd = dict.fromkeys(names, payload)
    if told is None:
        picture = io.BytesIO()
        Image.new("RGB", (40, 40), "red").save(picture, "PNG")
        needed = {"name": "cat"} if path == "/learn" else {}
        odd = {} if payload == "x" else odd
        body, kind = form([picture.getvalue()], needed | odd)
    else:
        body, kind = json.dumps(told | odd).encode(), "application/json"
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path.replace("{id}", payload.replace("/", "")),
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"" if payload == "x" else f"trust={payload}&model={payload}".encode(),
        "headers": [
            (b"host", b"localhost"),
            (b"content-type", kind.encode()),
            (b"content-length", str(len(body)).encode()),
        ],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    status = sent[0]["status"]
    assert status != 500, sent
    if status != 200:
        print(b"".join(message.get("body", b"") for message in sent[1:]).decode(), file=sys.stderr)
    return 0 if status == 200 else 2


def prepare(folder: Path) -> None:
    """A file that was taught photographs with a model of ours, and what payloads name."""
    for name, colour in {"cat": (200, 30, 30), "dax": (30, 200, 30), "emu": (30, 30, 200)}.items():
        where = folder / ("more" if name == "emu" else "photos") / name
        where.mkdir(parents=True)
        for number in range(6):
            shade = tuple(part + number for part in colour)
            Image.new("RGB", (40, 40), shade).save(where / f"{number}.png")
    for name in ("model.onnx", "stranger-model.onnx", "stranger-folder/model.onnx"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(forged("inside", b""))
    if hasattr(os, "mkfifo"):
        os.mkfifo(folder / "stranger-pipe")
    (folder / "stranger.py").write_text("class Encoder:\n    def __init__(self): pass\n")
    with zipfile.ZipFile(folder / "photos.zip", "w") as archive:
        for payload in ("subprocess:Popen", "stranger:Encoder", "somebody"):
            for number in range(4):
                archive.write(folder / "photos/cat" / f"{number}.png", f"{payload}/{number}.png")
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20, 5)).astype(np.float32), np.arange(20) % 2
    np.savez(folder / "features.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    (folder / "base.toml").write_text(
        'title = "x"\ndata = ["digits"]\ntasks = 2\nseeds = [0]\n[[rows]]\n'
        'name = "a"\nmemory = "gaussian-diagonal"\nhead = "nearest-mean"\n'
    )
    (folder / "results" / "runs").mkdir(parents=True)
    for path in sorted((ROOT / "lab" / "results" / "runs").glob("*gaussian-diagonal*"))[:2]:
        text = path.read_text().replace("gaussian-diagonal", "stranger:Encoder")
        (folder / "results" / "runs" / path.name).write_text(text)
    words = f"learn {folder}/good.frugal {folder}/photos --model {folder}/model.onnx --quiet"
    assert main([*words.split(), "--encoder", "onnx", *HOW.split()]) == 0


def in_child(folder: Path) -> None:
    """Walk everything, and print what was found."""
    walker = Walker(folder)
    walker.everything()
    print(json.dumps(walker.found))


# --------------------------------------------------------------------------- what must be so


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What was found on each road."""
    pytest.importorskip("starlette", reason="the extra 'serve' is not installed")
    folder = tmp_path_factory.mktemp("roads")
    prepare(folder)
    script = (
        "import sys; from pathlib import Path; from tests.test_roads import in_child; "
        f"sys.path.append({str(folder)!r}); in_child(Path({str(folder)!r}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_the_payloads_leave_marks_where_they_are_trusted(walked: list[dict[str, Any]]) -> None:
    """Or nothing below would prove anything."""
    trusted = [found for found in walked if found["road"].startswith("trusted")]
    assert len(trusted) == 4
    assert all(found["marks"] for found in trusted), trusted


def test_no_road_leads_to_an_import_a_file_a_program_or_a_network(
    walked: list[dict[str, Any]],
) -> None:
    roads = [found for found in walked if not found["road"].startswith("trusted")]
    assert len(roads) > 500
    assert [found for found in roads if found["marks"]] == []


def test_what_is_refused_says_what_to_type(walked: list[dict[str, Any]]) -> None:
    refused = [found for found in walked if found["refused"]]
    silent = [found for found in refused if not TYPED.search(found["printed"])]
    assert [found for found in silent if not found["road"].startswith("(")] == []  # not over HTTP
    assert [found for found in refused if found["code"] != 2] == []


def test_verbs_that_need_no_encoder_go_on(walked: list[dict[str, Any]]) -> None:
    """A name that nobody obeys stands in nobody's way."""
    rows = {verb for verb, row in CLI.items() if row and not row[1] and verb != "serve"}
    went = [found for found in walked if found["road"].partition(":")[0] in rows]
    wrong = [found for found in went if not found["refused"] and found["code"]]
    assert [found for found in wrong if "encoder" in found["road"]] == []


def test_every_road_is_walked() -> None:
    """A verb, a route, a method or a field that is new gets a row above."""
    assert list(CLI) == list(VERBS)
    for verb, row in CLI.items():
        paths = [action for action in options_of(verb) if action.type is Path]
        assert row or {action.dest for action in paths} <= {"output", "picture"}, verb
    methods = {
        name
        for kind in (FrugalClassifier, PhotoClassifier)
        for name, method in inspect.getmembers(kind, callable)
        if not name.startswith("_")
        and re.search(r"Path|Photograph|bytes", str(inspect.signature(method)))
    }
    assert methods == PYTHON.keys()
    if find_spec("frugalvae_lab"):
        from frugalvae_lab.cli import VERBS as OFFERED

        assert list(LABORATORY) == list(OFFERED)
    assert {*schema.FIELDS, *schema.OPTIONAL} == NAMES | DATA
    assert {"memory", "head", "random_state", "calibrate"} == set(schema.PARAMETERS)
    assert {*IDENTITY} == {"encoder", "model", "weights", "preprocessing", "given"}


def test_every_route_is_walked() -> None:
    pytest.importorskip("starlette", reason="the extra 'serve' is not installed")
    from frugalvae.server.app import OPERATIONS, create_app
    from frugalvae.server.settings import Settings

    assert [*HTTP, ("GET", "/")] == [(one.method, one.path) for one in OPERATIONS]
    app = create_app(Settings(Path("absent.frugal"), teach=True))
    paths = {route.path for route in app.routes}
    assert paths == {path for _, path in HTTP} | {"/", "/page"}


def test_what_a_model_or_an_encoder_is_called_is_no_module() -> None:
    """``--encoder onnx`` and ``--model lab`` trust no module of these names."""
    named = Choice("onnx", "lab", trust=("mine",)).named
    assert not is_trusted("onnx.hub:ModelInfo", named)
    assert not is_trusted("lab.parts:Memory", named)
    assert is_trusted("mine.parts:Memory", named)
    assert is_trusted("my_module:Encoder", Choice("my_module:Encoder").named)
    assert is_trusted("lab/dino", Choice(model="lab/dino").named)


def options_of(verb: str) -> list[argparse.Action]:
    """What may be typed after a verb."""
    [commands] = [a for a in parser(verb)._actions if isinstance(a, argparse._SubParsersAction)]
    actions: list[argparse.Action] = commands.choices[verb]._actions
    return actions
