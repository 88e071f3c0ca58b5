"""The application: which path is answered by what, and the state that all requests share."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from frugalvae.errors import FrugalError
from frugalvae.files import write_bytes
from frugalvae.images.decode import HEAD, format_of
from frugalvae.server import models, pending, predict, status, teach
from frugalvae.server.guard import Guard, RefusedError, is_full, refusal_of
from frugalvae.server.models import Operation
from frugalvae.server.requests import RequestReader
from frugalvae.server.served import Served
from frugalvae.server.workers import EncoderPool, Workers

if TYPE_CHECKING:
    from frugalvae.server.settings import Settings

logger = logging.getLogger(__name__)

PAGE = Path(__file__).with_name("page")
TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


class ServerState:
    """The file, the encoder, the remembered images and the counters of a server."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.served, self.encoders = Served(settings), EncoderPool(settings)
        self.reader = RequestReader(settings.limits)
        self.pending = pending.PendingImages(settings.limits)
        self.metrics = status.Metrics()
        # Each takes as long as fifty predictions, which do not wait for it.
        self.explaining = Workers("frugalvae-explaining", 2, 1, settings.limits.seconds)
        self.suggested: tuple[tuple[str, ...], dict[str, Any]] = ((), {})

    def warm_up(self) -> None:
        """Read the file and load the encoder, before the first request needs them."""
        try:
            snapshot = self.served.read()
            if snapshot is not None or self.settings.teach:
                self.encoders.load(snapshot.model.remembered if snapshot else {})
        except FrugalError as error:  # of which the first request is told
            logger.warning("%s", error)

    async def keep(self, content: bytes, digest: bytes) -> None:
        """Write an image into the folder that was given for it, if one was, under its digest."""
        if self.settings.keep is None:
            return
        known = (format_of(content[:HEAD]) or "image").lower()
        ending = {"jpeg": "jpg", "jpeg2000": "jp2"}.get(known, known)
        path = self.settings.keep / f"{digest.hex()}.{ending}"

        def write() -> None:
            if not path.exists():
                write_bytes(path, content)

        try:
            await self.encoders.run(write)
        except OSError as error:
            if not is_full(error):
                raise
            raise RefusedError(
                507,
                "there is no room for the image in the folder of --keep; make room on the disk",
            ) from error

    def close(self) -> None:
        """Finish what is begun."""
        for part in (self.encoders, self.explaining, self.served):
            part.close()


# --------------------------------------------------------------------------- pages


async def openapi(server: ServerState, _: Request) -> dict[str, Any]:
    """The OpenAPI document."""
    return models.description(server.served.name, OPERATIONS)


async def docs(server: ServerState, request: Request) -> Response:
    """The same as a page."""
    document, address = await openapi(server, request), str(request.base_url).rstrip("/")
    return HTMLResponse(models.page(document, address))


async def index(*_: Any) -> Response:
    """The page."""
    return FileResponse(PAGE / "index.html", headers={"Cache-Control": "no-cache"})


class Assets(StaticFiles):
    """The files of the page, which browsers ask again whether they have changed."""

    def file_response(self, *arguments: Any, **named: Any) -> Response:
        """A file of the page."""
        response = super().file_response(*arguments, **named)
        response.headers["Cache-Control"] = "no-cache"
        ending = Path(str(arguments[0])).suffix
        if ending in TYPES and "content-type" in response.headers:
            response.headers["Content-Type"] = f"{TYPES[ending]}; charset=utf-8"
        return response


# --------------------------------------------------------------------------- the application

OPERATIONS = (
    Operation(
        "POST",
        "/predict",
        predict.predict,
        models.Predictions,
        models.IdsRequest,
        images=True,
        options=models.PredictOptions,
    ),
    Operation(
        "POST",
        "/explain",
        predict.explain,
        models.Explanation,
        models.ExplainRequest,
        images=True,
        options=models.ExplainOptions,
        or_png=True,
    ),
    Operation("GET", "/suggest", pending.suggest, models.Suggestions),
    Operation("GET", "/recent", pending.recent, models.Recent),
    Operation("GET", "/recent/{id}/picture", pending.picture, "image/jpeg"),
    Operation("POST", "/recent/clear", pending.clear, models.Removed, models.IdsRequest),
    Operation("POST", "/learn", teach.learn, models.Lesson, models.LearnRequest, images=True),
    Operation("POST", "/rename", teach.rename, models.Changed, models.RenameRequest),
    Operation("POST", "/merge-classes", teach.merge_classes, models.Changed, models.MergeRequest),
    Operation("POST", "/forget", teach.forget, models.Forgotten, models.ForgetRequest),
    Operation("POST", "/undo", teach.undo, models.Undone, models.Change),
    Operation("GET", "/status", status.status, models.Status),
    Operation("GET", "/classes", status.classes, models.Classes, options=models.ClassesOptions),
    Operation("GET", "/history", status.history, models.History),
    Operation("GET", "/health", status.health, models.Health),
    Operation("GET", "/metrics", status.metrics, "text/plain"),
    Operation("GET", "/openapi.json", openapi),
    Operation("GET", "/docs", docs),
    Operation("GET", "/", index),
)


def create_app(settings: Settings) -> Starlette:
    """The application that serves a classifier's file."""
    server = ServerState(settings)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        warming = asyncio.create_task(asyncio.to_thread(server.warm_up))
        yield
        await warming
        await asyncio.to_thread(server.close)

    async def on_error(_: Request, error: Exception) -> Response:
        """What the library refuses."""
        assert isinstance(error, FrugalError)
        return refusal_of(error, settings.folders).response()

    app = Starlette(
        routes=[
            *(Route(one.path, endpoint(one), methods=[one.method]) for one in OPERATIONS),
            Mount("/page", Assets(directory=PAGE, check_dir=False)),
        ],
        middleware=[Middleware(Guard, server=server)],
        exception_handlers={FrugalError: on_error, HTTPException: on_http},
        lifespan=lifespan,
    )
    app.state.server = server
    return app


def endpoint(operation: Operation) -> Callable[[Request], Awaitable[Response]]:
    """What answers at a path: it is counted under it, and releases what its request held."""

    async def answer(request: Request) -> Response:
        request.scope["frugalvae.path"] = operation.path
        server: ServerState = request.app.state.server
        try:
            found = await operation.work(server, request)
        finally:
            server.reader.release(request)
        return found if isinstance(found, Response) else JSONResponse(found)

    return answer


async def on_http(request: Request, error: Exception) -> Response:
    """What Starlette refuses: wrong paths and methods."""
    assert isinstance(error, HTTPException)
    words = {404: "there is nothing here; /docs lists what there is",
             405: f"{request.method} is not understood here; /docs lists what is"}  # fmt: skip
    body = {"error": words.get(error.status_code, error.detail)}
    return JSONResponse(body, error.status_code, headers=dict(error.headers or {}))
