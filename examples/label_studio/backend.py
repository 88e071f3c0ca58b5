"""A machine-learning backend for Label Studio: it names pictures, and learns what people choose.

It stands between Label Studio and ``frugalvae serve``, and needs Python alone::

    frugalvae serve birds.frugal --teach
    python backend.py --label-studio http://labels.example:8080 --key-file key.txt

Label Studio is told ``http://HOST:9090`` as the address of the backend. It sends tasks to
``/predict``, and each annotation to ``/webhook``, which is learned at once.
"""

from __future__ import annotations

import argparse
import base64
import binascii
import hmac
import json
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, unquote, unquote_to_bytes, urljoin, urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener
from xml.etree import ElementTree

LEARNED = ("ANNOTATION_CREATED", "ANNOTATION_UPDATED")
OTHERS = ("ANNOTATION_DELETED", "START_TRAINING")
NOTHING = {"result": "no picture of this project is learned from that", "status": "ok"}
BYTES = 64_000_000  # of a request, and of a picture
TASKS, LETTERS = 64, 200_000  # in a request, and of a labelling configuration
SECONDS = 60.0  # to wait for anybody, and for a whole request
CLIENTS, PICTURES = 8, 4  # that are answered, and in memory, at a time
PLACES = threading.BoundedSemaphore(PICTURES)
LOOPBACK = ("127.0.0.1", "::1", "localhost")


class RefusedError(Exception):
    """What is answered instead, with its status."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class NoRedirects(HTTPRedirectHandler):
    """Follows nothing: a key must not go elsewhere."""

    def redirect_request(self, *_: Any) -> None:
        """Nowhere."""


OPENER = build_opener(NoRedirects, ProxyHandler({}))


# --------------------------------------------------------------------------- what a project asks


@dataclass(frozen=True)
class Choices:
    """Where a project asks for the class of a picture.

    ``name`` and ``to`` are of the choices and of the picture that they are about, ``key`` is where
    a task has the picture, and ``values`` are what may be chosen, if that is said.
    """

    name: str
    to: str
    key: str
    values: tuple[str, ...]


def choices_of(config: object) -> Choices:
    """The choices of a labelling configuration that are about a picture."""
    if not isinstance(config, str) or len(config) > LETTERS or "<!" in config.replace("<!--", ""):
        raise RefusedError(422, "the labelling configuration cannot be read")
    try:
        root = ElementTree.fromstring(config)
    except ElementTree.ParseError as error:
        raise RefusedError(422, f"the labelling configuration is no XML: {error}") from None
    images = {
        image.get("name", ""): image.get("value", "").removeprefix("$")
        for image in root.iter("Image")
    }
    for found in root.iter("Choices"):
        to = found.get("toName", "")
        if to in images:
            values = tuple(choice.get("value", "") for choice in found.iter("Choice"))
            return Choices(found.get("name", ""), to, images[to], values)
    raise RefusedError(422, "the labelling configuration has no Choices about an Image")


def picture_of(task: object, choices: Choices) -> object:
    """Where the picture of a task is."""
    data = task.get("data") if isinstance(task, dict) else None
    return data.get(choices.key) if isinstance(data, dict) else None


def chosen_in(annotation: object, choices: Choices) -> str | None:
    """The class that an annotation names; None if it names none, or several."""
    results = annotation.get("result") if isinstance(annotation, dict) else None
    for result in results if isinstance(results, list) else []:
        if isinstance(result, dict) and result.get("from_name") == choices.name:
            value = result.get("value")
            found = value.get("choices") if isinstance(value, dict) else None
            if isinstance(found, list) and len(found) == 1 and isinstance(found[0], str):
                return found[0]
    return None


def prediction(answer: dict[str, Any], choices: Choices, version: str) -> dict[str, Any]:
    """An answer as Label Studio has it: without a result if it is none of the choices."""
    likely = [
        (str(one["label"]), one["probability"])
        for one in answer.get("top", [])
        if not choices.values or str(one["label"]) in choices.values
    ]
    label, score = likely[0] if likely else ("", 0.0)
    chosen = {
        "from_name": choices.name,
        "to_name": choices.to,
        "type": "choices",
        "value": {"choices": [label]},
    }
    known = label and answer.get("known") is not False
    return {"result": [chosen] if known else [], "score": score, "model_version": version}


# --------------------------------------------------------------------------- pictures


def below(base: str, value: str) -> str | None:
    """An address below the one of Label Studio; None if it is elsewhere."""
    try:
        wanted = urljoin(base.rstrip("/") + "/", value)
        found, ours = urlsplit(wanted), urlsplit(base)
    except ValueError:
        return None
    inside = found[:2] == ours[:2] and found.path.startswith(f"{ours.path.rstrip('/')}/")
    steps = unquote(found.path).replace("\\", "/").split("/")  # as servers may read it
    return wanted if inside and not {".", ".."}.intersection(steps) else None


def from_data(value: str) -> bytes:
    """The bytes in a ``data:`` address."""
    head, comma, body = value.partition(",")
    try:
        if not comma:
            raise ValueError
        content = unquote_to_bytes(body)
        return base64.b64decode(content, validate=True) if head.endswith(";base64") else content
    except (ValueError, binascii.Error):
        raise RefusedError(422, "a data: address cannot be read") from None


# --------------------------------------------------------------------------- the backend


@dataclass(frozen=True)
class Backend:
    """What answers Label Studio: where both servers are, and what they ask for."""

    server: str
    token: str | None = None
    studio: str | None = None
    key: str | None = None

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """The status and the answer to what was sent to a path."""
        if path == "/setup":
            choices_of(body.get("schema"))
            return 200, {"model_version": self.version()}
        if path == "/predict":
            return 200, self.predict(body)
        if path == "/webhook":
            return self.webhook(body)
        raise RefusedError(404, "there is nothing here")

    def predict(self, body: dict[str, Any]) -> dict[str, Any]:
        """A prediction for each task."""
        choices, tasks = choices_of(body.get("label_config")), body.get("tasks")
        if not isinstance(tasks, list) or len(tasks) > TASKS:
            raise RefusedError(422, f"'tasks' is no list of up to {TASKS} tasks")
        version, results = self.version(), []
        for task in tasks:
            with PLACES:
                content = self.content_of(picture_of(task, choices))
                try:
                    path = "/predict?kept=no&unknown=yes&top=100"
                    [answer] = self.ask(path, content)["predictions"]
                except RefusedError as error:
                    if error.status not in (413, 422):  # which only this picture is
                        raise
                    answer = {}
            results.append(prediction(answer, choices, version))
        return {"results": results}

    def webhook(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Learn what somebody chose."""
        event, project, task = (body.get(name) for name in ("action", "project", "task"))
        if event in OTHERS:
            return 201, NOTHING
        if event not in LEARNED:
            return 200, {"status": "Unknown event"}
        if not isinstance(project, dict) or not isinstance(task, dict):
            raise RefusedError(422, "'project' or 'task' is missing")
        choices = choices_of(project.get("label_config"))
        name = chosen_in(body.get("annotation"), choices)
        if name is None:
            return 201, NOTHING
        with PLACES:
            content = self.content_of(picture_of(task, choices))
            return 201, {"result": self.ask(f"/learn?name={quote(name)}", content), "status": "ok"}

    def content_of(self, value: object) -> bytes:
        """The bytes of a picture: in the task itself, or with Label Studio, never elsewhere."""
        if not isinstance(value, str):
            raise RefusedError(422, "a task has no picture where the labelling configuration says")
        if value.startswith("data:"):
            return from_data(value)
        wanted = below(self.studio, value) if self.studio else None
        if wanted is None:
            raise RefusedError(
                422,
                "pictures are not fetched from there: give --label-studio and its address, or put "
                "pictures into tasks as data: addresses",
            )
        headers = {"Authorization": f"Token {self.key}"} if self.key else {}
        try:
            with OPENER.open(Request(wanted, headers=headers), timeout=SECONDS) as answer:
                content: bytes = answer.read(BYTES + 1)
        except (HTTPException, OSError, ValueError) as error:
            raise RefusedError(422, f"Label Studio does not give a picture: {error}") from None
        if len(content) > BYTES:
            raise RefusedError(413, f"a picture has more than {BYTES:,} bytes")
        return content

    def version(self) -> str:
        """The state of the classifier's file."""
        return str(self.ask("/health")["revision"])

    def ask(self, path: str, content: bytes | None = None) -> Any:
        """What ``frugalvae serve`` answers, about a picture if there is one."""
        headers = {"Content-Type": "application/octet-stream"} if content is not None else {}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        request = Request(f"{self.server.rstrip('/')}{path}", content, headers)
        try:
            with OPENER.open(request, timeout=SECONDS) as answer:
                return json.load(answer)
        except HTTPError as error:
            raise RefusedError(error.code, error.read(1000).decode(errors="replace")) from None
        except (HTTPException, OSError, ValueError) as error:
            raise RefusedError(502, f"frugalvae serve does not answer: {error}") from None


def handler(backend: Backend, password: str | None) -> type[BaseHTTPRequestHandler]:
    """What answers each connection."""

    class Handler(BaseHTTPRequestHandler):
        timeout = SECONDS

        def handle_one_request(self) -> None:
            """Answer one request; what has not arrived in time, however slowly, is given up."""
            late = threading.Timer(SECONDS, self.give_up)
            late.daemon = True
            late.start()
            try:
                super().handle_one_request()
            finally:
                late.cancel()

        def give_up(self) -> None:
            """Nothing more is read."""
            with suppress(OSError):  # the client has left
                self.connection.shutdown(socket.SHUT_RD)

        def do_GET(self) -> None:
            """Whether it runs."""
            up = self.path.rstrip("/") in ("", "/health")
            self.reply(*(200, {"status": "UP"}) if up else (404, {"error": "nothing is here"}))

        def do_POST(self) -> None:
            """What Label Studio sends."""
            try:
                self.check()
                length = self.headers.get("Content-Length", "")
                if not length.isdecimal() or int(length) > BYTES:
                    raise RefusedError(413, f"expected a body of at most {BYTES:,} bytes")
                content = self.rfile.read(int(length))
                if len(content) < int(length):
                    raise RefusedError(408, f"the body did not arrive within {SECONDS:g} s")
                body = json.loads(content)
                if not isinstance(body, dict):
                    raise RefusedError(400, "the body is no JSON object")
                self.reply(*backend.answer(self.path.rstrip("/"), body))
            except RefusedError as error:
                self.reply(error.status, {"error": str(error)})
            except (ValueError, RecursionError):
                self.reply(400, {"error": "the body is no JSON"})

        def check(self) -> None:
            """Refuse pages of other sites, and whoever does not have the password."""
            kind = self.headers.get("Content-Type", "").partition(";")[0]
            if kind != "application/json" or "Origin" in self.headers:
                raise RefusedError(403, "expected application/json, and no page in a browser")
            if password is None:
                return
            given = self.headers.get("Authorization", "").removeprefix("Basic ")
            try:
                found = base64.b64decode(given, validate=True).partition(b":")[2]
            except (ValueError, binascii.Error):
                found = b""
            if not hmac.compare_digest(found, password.encode()):
                raise RefusedError(401, "the password is wrong")

        def reply(self, status: int, body: dict[str, Any]) -> None:
            """Send JSON."""
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    return Handler


class BoundedServer(ThreadingHTTPServer):
    """A thread for each connection, up to a number of them; others are closed."""

    daemon_threads = True

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.places = threading.BoundedSemaphore(CLIENTS)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer it, if there is a place."""
        if self.places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer it, and give the place back."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.places.release()


def main() -> None:
    """Answer until it is interrupted."""
    parser = argparse.ArgumentParser(description="A backend for Label Studio.")
    parser.add_argument("--server", default="http://127.0.0.1:8000", help="of frugalvae serve")
    parser.add_argument("--token-file", type=Path, help="has the token of frugalvae serve")
    parser.add_argument("--label-studio", help="its address: pictures come from below it alone")
    parser.add_argument("--key-file", type=Path, help="has the access token of Label Studio")
    parser.add_argument("--password-file", type=Path, help="that Label Studio has to give")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=9090)
    options = parser.parse_args()
    if options.host not in LOOPBACK and options.password_file is None:
        parser.error(f"--host {options.host} lets others ask; give --password-file")
    token, key, password = (
        path and path.read_text().splitlines()[0].strip()
        for path in (options.token_file, options.key_file, options.password_file)
    )
    backend = Backend(options.server, token, options.label_studio, key)
    with BoundedServer((options.host, options.port), handler(backend, password)) as server:
        print(f"Label Studio can use http://{options.host}:{server.server_port}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
