"""The application: which path is answered by what."""

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
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from frugalvae.errors import FrugalError
from frugalvae.server import advising, asking, documentation, label_studio, teaching, telling
from frugalvae.server.guard import Guard, refused
from frugalvae.server.refusals import RefusedError, refusal_of
from frugalvae.server.state import ServerState

if TYPE_CHECKING:
    from frugalvae.server.settings import Settings

logger = logging.getLogger(__name__)

PAGE = Path(__file__).with_name("page")
TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}

Endpoint = Callable[[Request], Awaitable[Response]]

#: Paths, methods, and what answers.
ENDPOINTS: tuple[tuple[str, str, Endpoint], ...] = (
    ("POST", "/predict", asking.predict),
    ("POST", "/explain", advising.explain),
    ("GET", "/suggest", advising.suggest),
    ("GET", "/recent", asking.recent),
    ("GET", "/recent/{id}/picture", asking.picture),
    ("POST", "/recent/clear", asking.clear),
    ("POST", "/learn", teaching.learn),
    ("POST", "/update", teaching.update),
    ("POST", "/rename", teaching.rename),
    ("POST", "/merge-classes", teaching.merge_classes),
    ("POST", "/forget", teaching.forget),
    ("POST", "/undo", teaching.undo),
    ("GET", "/status", telling.status),
    ("GET", "/classes", telling.classes),
    ("GET", "/history", telling.history),
    ("GET", "/health", telling.health),
    ("GET", "/metrics", telling.metrics),
    ("GET", "/openapi.json", documentation.openapi),
    ("GET", "/docs", documentation.docs),
    ("GET", "/docs.css", documentation.style),
    ("GET", "/label-studio/", label_studio.health),
    ("GET", "/label-studio/health", label_studio.health),
    ("POST", "/label-studio/setup", label_studio.setup),
    ("POST", "/label-studio/predict", label_studio.predict),
    ("POST", "/label-studio/webhook", label_studio.webhook),
)


def create_app(settings: Settings) -> Starlette:
    """The application that serves a classifier's file."""
    server = ServerState(settings)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        warming = asyncio.create_task(asyncio.to_thread(warm_up, server))
        yield
        await warming
        await asyncio.to_thread(server.close)

    routes = [
        *(Route(path, noted(path, work), methods=[method]) for method, path, work in ENDPOINTS),
        Route("/", noted("/", index), methods=["GET"]),
        Mount("/page", Assets(directory=PAGE, check_dir=False)),
    ]
    app = Starlette(
        routes=routes,
        middleware=[Middleware(Guard, server=server)],
        exception_handlers={
            RefusedError: on_refusal,
            FrugalError: on_error,
            HTTPException: on_http,
        },
        lifespan=lifespan,
    )
    app.state.server = server
    return app


def warm_up(server: ServerState) -> None:
    """Load what the first request needs; it is told of errors itself."""
    try:
        server.warm_up()
    except FrugalError as error:
        logger.warning("%s", error)


def noted(path: str, work: Endpoint) -> Endpoint:
    """An endpoint whose requests are counted under its path, and release what they held."""

    async def endpoint(request: Request) -> Response:
        request.scope["frugalvae.path"] = path
        try:
            return await work(request)
        finally:
            request.app.state.server.reader.release(request)

    return endpoint


async def index(_: Request) -> Response:
    """``GET /``: the page."""
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


# --------------------------------------------------------------------------- what goes wrong


async def on_refusal(_: Request, error: Exception) -> Response:
    """What we refuse ourselves."""
    assert isinstance(error, RefusedError)
    return refused(error)


async def on_error(request: Request, error: Exception) -> Response:
    """What the library refuses."""
    assert isinstance(error, FrugalError)
    return refused(refusal_of(error, request.app.state.server.settings.folders))


async def on_http(request: Request, error: Exception) -> Response:
    """What Starlette refuses: wrong paths and methods."""
    assert isinstance(error, HTTPException)
    words = {404: "there is nothing here; /docs tells what there is",
             405: f"{request.method} is not understood here; /docs tells what is"}  # fmt: skip
    body = {"error": words.get(error.status_code, error.detail)}
    return JSONResponse(body, error.status_code, headers=dict(error.headers or {}))
