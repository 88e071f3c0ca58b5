"""Advising: why a picture was taken for a class, and which pictures would teach most."""

from __future__ import annotations

import io
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from frugalvae.errors import InputError
from frugalvae.images.photographs import reason
from frugalvae.server.asking import check_some
from frugalvae.server.reading import as_flag
from frugalvae.server.refusals import RefusedError
from frugalvae.server.state import of_encoder

if TYPE_CHECKING:
    from PIL import Image

    from frugalvae.care.explain import Explanation
    from frugalvae.care.suggest import Suggestion
    from frugalvae.model.model import Model
    from frugalvae.server.state import ServerState

SUGGESTED = 20  # pictures of the tray, at most


async def explain(request: Request) -> Response:
    """``POST /explain``: which parts of a picture speak for its class, as ``frugalvae explain``."""
    server: ServerState = request.app.state.server
    started, sent = time.perf_counter(), await server.reader.read(request)
    snapshot = await server.served.current()
    model, against = snapshot.model, sent.fields.get("against")
    check_some(sent.uploads)
    if len(sent.uploads) > 1:
        raise RefusedError(422, f"{len(sent.uploads)} images were sent; expected one")
    label = None if against is None else server.served.label_named(model, sent.text("against"))
    drawn = as_flag("picture", request.query_params.get("picture", "no"))

    def work() -> tuple[Explanation, bytes]:
        found = explanation(server, model, sent.uploads[0].content, label)
        return found, png(found.picture()) if drawn else b""

    found, picture = await server.explaining.run(work)
    if drawn:
        return Response(picture, media_type="image/png")
    told = {"revision": snapshot.revision, "seconds": time.perf_counter() - started}
    return JSONResponse(found.to_json(model) | told)


def png(image: Image.Image) -> bytes:
    """An image as a file."""
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def explanation(server: ServerState, model: Model, content: bytes, against: Any) -> Explanation:
    """What speaks for the class of a picture, and what for another."""
    from frugalvae.care.explain import explain

    encoder = server.looker.eye(model.remembered).encoder
    try:
        image = server.looker.decoded(content, getattr(encoder, "side", None))
    except Exception as error:  # Pillow fails in many ways
        server.refuse_unreadable([{"input": "image", "reason": reason(error)}])
    return explain(model, encoder, image, against)


async def suggest(request: Request) -> Response:
    """``GET /suggest``: which pictures of the tray would teach most, the most telling first."""
    server: ServerState = request.app.state.server
    snapshot = await server.served.refresh()
    asked = of_encoder(server.tray.shown(), snapshot.model if snapshot else None)
    if snapshot is None or not len(snapshot.model.classes) or not asked:
        return JSONResponse({"suggestions": [], "groups": []})
    new = [one for one in asked if snapshot.taught_as(one.seen.digest) is None]
    ids = [one.id for one in new]
    key = (snapshot.revision, *ids)
    if server.suggested[0] != key:  # the page asks again and again
        x = np.array([one.seen.features for one in new], np.float32)
        server.suggested = key, await server.looker.run(lambda: suggested(snapshot.model, x, ids))
    return JSONResponse(server.suggested[1])


def suggested(model: Model, x: Any, ids: list[str]) -> dict[str, Any]:
    """What :func:`frugalvae.care.suggest.suggest` says of pictures (n, d), by their ids."""
    from frugalvae.care.suggest import suggest

    if not ids:
        return {"suggestions": [], "groups": []}
    try:
        found = suggest(model, x, SUGGESTED)
    except InputError:  # the memory keeps nothing to compare with
        return {"suggestions": [], "groups": []}
    return {
        "suggestions": [{"id": ids[one.row], **told(one)} for one in found.suggestions],
        "groups": [[ids[row] for row in rows] for rows in found.groups],
    }


def told(one: Suggestion) -> dict[str, Any]:
    """A suggestion as JSON, but for its row."""
    return {name: value for name, value in one.to_json().items() if name != "row"}
