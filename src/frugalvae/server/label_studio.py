"""Label Studio: a machine-learning backend that names pictures, and learns what people say.

Label Studio is told ``http://HOST:PORT/label-studio`` as the address of the backend. It sends tasks
to ``/predict``, and each annotation to ``/webhook``, which is learned at once.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from http.client import HTTPException
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, unquote_to_bytes, urljoin, urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener
from xml.etree import ElementTree

from starlette.requests import Request as Asked
from starlette.responses import JSONResponse, Response

from frugalvae.server.asking import Wanted, look_at
from frugalvae.server.reading import Sent, Upload
from frugalvae.server.refusals import RefusedError
from frugalvae.server.teaching import check_may_teach, taught

if TYPE_CHECKING:
    from frugalvae.server.state import ServerState

LEARNED = ("ANNOTATION_CREATED", "ANNOTATION_UPDATED")
OTHERS = ("ANNOTATION_DELETED", "START_TRAINING")
NOTHING = "no picture of this project is learned from that"
LONGEST = 200_000  # letters of a labelling configuration


@dataclass(frozen=True)
class Choices:
    """Where a project asks for the class of a picture.

    Attributes
    ----------
    name, to
        Of the choices, and of the picture that they are about.
    key
        Where a task has the picture.
    values
        What may be chosen; nothing if that is not said.
    """

    name: str
    to: str
    key: str
    values: tuple[str, ...]


def choices_of(config: object) -> Choices:
    """The choices of a labelling configuration that are about a picture.

    >>> choices_of('<View><Image name="i" value="$image"/><Choices name="c" toName="i">'
    ...            '<Choice value="emu"/></Choices></View>')
    Choices(name='c', to='i', key='image', values=('emu',))
    """
    if not isinstance(config, str) or len(config) > LONGEST or "<!" in config.replace("<!--", ""):
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


# --------------------------------------------------------------------------- pictures


class Stay(HTTPRedirectHandler):
    """Follows nothing to anywhere else."""

    def redirect_request(self, *_: Any) -> None:
        """Nowhere."""


def content_of(value: object, server: ServerState) -> bytes:
    """The bytes of a task's picture: in the task itself, or with Label Studio, never elsewhere."""
    if not isinstance(value, str):
        raise RefusedError(422, "a task has no picture where the labelling configuration says")
    if value.startswith("data:"):
        return from_data(value)
    base, key = server.settings.label_studio, server.settings.label_studio_key
    wanted = below(base, value) if base else None
    if wanted is None:
        raise RefusedError(
            422,
            "pictures are not fetched from there: start the server with --label-studio-url and "
            "the address of Label Studio, or put them into tasks as data: addresses",
        )
    request = Request(wanted, headers={"Authorization": f"Token {key}"} if key else {})
    most = server.settings.limits.body
    try:
        opener = build_opener(Stay, ProxyHandler({}))
        with opener.open(request, timeout=server.settings.limits.seconds) as answer:
            content: bytes = answer.read(most + 1)
    except (HTTPException, OSError, ValueError) as error:
        raise RefusedError(422, f"Label Studio does not give a picture: {error}") from None
    if len(content) > most:
        raise RefusedError(413, f"a picture has more than {most:,} bytes")
    return content


def below(base: str, value: str) -> str | None:
    """An address below the one of Label Studio; None if it is elsewhere.

    >>> below("http://ls:8080", "/data/1.jpg"), below("http://ls:8080", "//other/1.jpg")
    ('http://ls:8080/data/1.jpg', None)
    >>> below("http://ls/labels", "data/1.jpg"), below("http://ls/labels", "/other/1.jpg")
    ('http://ls/labels/data/1.jpg', None)
    """
    try:
        wanted = urljoin(base.rstrip("/") + "/", value)
        found, ours = urlsplit(wanted), urlsplit(base)
    except ValueError:
        return None
    inside = found[:2] == ours[:2] and found.path.startswith(f"{ours.path.rstrip('/')}/")
    steps = unquote(found.path).replace("\\", "/").split("/")  # as servers may read it
    return wanted if inside and not {".", ".."}.intersection(steps) else None


def from_data(value: str) -> bytes:
    """The bytes in a ``data:`` address.

    >>> from_data("data:image/png;base64,aGk="), from_data("data:,a%20b")
    (b'hi', b'a b')
    """
    head, comma, body = value.partition(",")
    try:
        if not comma:
            raise ValueError
        content = unquote_to_bytes(body)
        return base64.b64decode(content, validate=True) if head.endswith(";base64") else content
    except (ValueError, binascii.Error):
        raise RefusedError(422, "a data: address cannot be read") from None


# --------------------------------------------------------------------------- what is asked


async def health(_: Asked) -> Response:
    """``GET /label-studio/health``."""
    return JSONResponse({"status": "UP", "model_class": "FrugalVAE"})


async def setup(request: Asked) -> Response:
    """``POST /label-studio/setup``: whether a project suits, and the state of the file."""
    server: ServerState = request.app.state.server
    sent = await server.reader.read(request)
    choices_of(sent.fields.get("schema"))
    snapshot = await server.served.refresh()
    return JSONResponse({"model_version": snapshot.revision if snapshot else None})


async def predict(request: Asked) -> Response:
    """``POST /label-studio/predict``: a prediction for each task."""
    server: ServerState = request.app.state.server
    sent = await server.reader.read(request)
    choices, tasks = choices_of(sent.fields.get("label_config")), sent.fields.get("tasks")
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        raise RefusedError(422, "'tasks' is no list of tasks")
    if len(tasks) > server.settings.limits.images:
        raise RefusedError(413, f"more than {server.settings.limits.images} tasks at a time")
    snapshot = await server.served.current()
    pictures = [picture_of(task, choices) for task in tasks]
    contents = [await fetched(request, value) for value in pictures]  # so one at a time is large
    uploads = [Upload(str(task.get("id", "")), content)
               for task, content in zip(tasks, contents, strict=True)]  # fmt: skip
    wanted = Wanted({"kept": "no", "unknown": "yes", "top": "100"})
    answers = await look_at(server, snapshot, uploads, wanted)
    return JSONResponse(
        {"results": [prediction(answer, choices, snapshot.revision) for answer in answers]}
    )


async def fetched(request: Asked, value: object) -> bytes:
    """The bytes of a picture; they count as if the request had brought them."""
    server: ServerState = request.app.state.server
    content = await server.fetching.run(lambda: content_of(value, server))
    server.reader.hold(request, len(content))
    return content


def picture_of(task: dict[str, Any], choices: Choices) -> object:
    """Where the picture of a task is."""
    data = task.get("data")
    return data.get(choices.key) if isinstance(data, dict) else None


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


# --------------------------------------------------------------------------- what is learned


async def webhook(request: Asked) -> Response:
    """``POST /label-studio/webhook``: learn what somebody chose."""
    server: ServerState = request.app.state.server
    sent = await server.reader.read(request)
    event = sent.fields.get("action")
    if event in OTHERS:
        return JSONResponse({"result": NOTHING, "status": "ok"}, 201)
    if event not in LEARNED:
        return JSONResponse({"status": "Unknown event"})
    check_may_teach(server)
    project, task = sent.fields.get("project"), sent.fields.get("task")
    if not isinstance(project, dict) or not isinstance(task, dict):
        raise RefusedError(422, "'project' or 'task' is missing")
    choices = choices_of(project.get("label_config"))
    name = chosen_in(sent.fields.get("annotation"), choices)
    if name is None:
        return JSONResponse({"result": NOTHING, "status": "ok"}, 201)
    content = await fetched(request, picture_of(task, choices))
    chosen = Sent([Upload(str(task.get("id", "")), content)], {"name": name})
    answer = await taught(server, chosen, must_be_known=False)
    return JSONResponse({"result": answer, "status": "ok"}, 201)


def chosen_in(annotation: object, choices: Choices) -> str | None:
    """The class that an annotation says."""
    results = annotation.get("result") if isinstance(annotation, dict) else None
    for result in results if isinstance(results, list) else []:
        if isinstance(result, dict) and result.get("from_name") == choices.name:
            value = result.get("value")
            found = value.get("choices") if isinstance(value, dict) else None
            if isinstance(found, list) and len(found) == 1 and isinstance(found[0], str):
                return found[0]
    return None
