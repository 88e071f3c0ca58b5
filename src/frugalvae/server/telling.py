"""Telling: what the file knows, what was done to it, and how the server is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from frugalvae import __version__
from frugalvae.model.answers import FEW
from frugalvae.model.neighbours import CONFUSED
from frugalvae.server.reading import as_flag
from frugalvae.storage.summary import in_words

if TYPE_CHECKING:
    from frugalvae.server.served import Snapshot
    from frugalvae.server.state import ServerState

PAIRS = 50  # of classes that are confused, at most


async def status(request: Request) -> Response:
    """``GET /status``: what ``frugalvae status --json`` has, and how the server is set."""
    server: ServerState = request.app.state.server
    snapshot = await server.served.refresh()
    about = {**_empty(), **_told(snapshot)} if snapshot else _empty()
    settings, limits = server.settings, server.settings.limits
    about |= {
        "file": server.served.name,
        "revision": snapshot.revision if snapshot else None,
        "teach": settings.teach,
        "undo": _undo(server, snapshot),
        "broken": server.served.problem,
        "version": __version__,
        "keep": {
            "seconds": limits.seconds_remembered,
            "most": limits.recent,
            "bytes": limits.remembered,
            "folder": settings.keep is not None,
        },
        "limits": {
            "bytes": limits.body,
            "images": limits.images,
            "pixels": limits.pixels,
            "requests": limits.requests,
            "seconds": limits.seconds,
        },
    }
    return JSONResponse(about)


def _empty() -> dict[str, Any]:
    return {
        "bytes": 0,
        "classes": 0,
        "samples": 0,
        "tasks": [],
        "components": {},
        "warnings": [],
        "aliases": {},
        "encoder": None,
        "expected": None,
    }


def _told(snapshot: Snapshot) -> dict[str, Any]:
    """What a file says of itself, but for where anything is on this machine."""
    from frugalvae.encoders.remembered import described

    told = snapshot.summary.to_json()
    encoder = told["encoder"]
    told["encoder"] = described(encoder) if encoder else None
    told["samples"] = int(snapshot.model.n_samples_of_class.sum())
    return told


def _undo(server: ServerState, snapshot: Snapshot | None) -> dict[str, Any] | None:
    """What ``POST /undo`` would take back."""
    if snapshot is None or not server.served.store.undo.exists():
        return None
    said = told_event(snapshot.model.history[-1] if snapshot.model.history else {})
    return {"when": None, **said, "text": said["text"] or "the last change"}


def told_event(event: Mapping[str, Any]) -> dict[str, Any]:
    """An event of the history, also in words."""
    return {**event, "text": f"{event.get('action', '')} {in_words(event)}".strip()}


async def classes(request: Request) -> Response:
    """``GET /classes``: counts, what each is taken for, and a map of them."""
    server: ServerState = request.app.state.server
    snapshot = await server.served.refresh()
    nothing: dict[str, Any] = {"revision": None, "classes": [], "confused": []}
    nothing |= {"accuracy": None, "interval": None}
    if snapshot is None:
        return JSONResponse(nothing)
    nothing["revision"] = snapshot.revision
    model = snapshot.model
    known = [
        {"label": label, "samples": int(count), "task": int(task)}
        for label, count, task in zip(
            model.classes.tolist(), model.n_samples_of_class, model.task_of_class, strict=True
        )
    ]
    if not known or as_flag("brief", request.query_params.get("brief", "no")):
        return JSONResponse(nothing | {"classes": known})
    return JSONResponse(nothing | await server.looker.run(lambda: _described(snapshot, known)))


def _described(snapshot: Snapshot, known: list[dict[str, Any]]) -> dict[str, Any]:
    forecast = snapshot.model.forecast
    found, expected = snapshot.neighbours, forecast.to_json() if forecast else None
    most = max(one["samples"] for one in known)
    pairs = []
    for one in known:
        few = 0 < one["samples"] < FEW <= most
        near = found.nearest.get(one["label"], [])
        place = found.places.get(one["label"], [None, None])
        one |= {
            "accuracy": expected and expected["classes"].get(str(one["label"])),
            "interval": expected and expected["intervals"].get(str(one["label"])),
            "warnings": [f"fewer than {FEW} samples, and so often missed"] if few else [],
            "x": place[0],
            "y": place[1],
            "nearest": [
                {"label": other.label, "share": other.share, "distance": other.distance}
                for other in near
            ],
        }
        pairs += [
            {"label": one["label"], "taken_for": other.label, "share": other.share}
            for other in near
            if other.share >= CONFUSED
        ]
    pairs.sort(key=lambda pair: -pair["share"])
    bounds = [expected["low"], expected["high"]] if expected and expected["enough"] else None
    return {
        "accuracy": expected and expected["accuracy"],
        "interval": bounds,
        "classes": known,
        "confused": pairs[:PAIRS],
    }


async def history(request: Request) -> Response:
    """``GET /history``: every change, oldest first."""
    server: ServerState = request.app.state.server
    snapshot = await server.served.refresh()
    events = [told_event(event) for event in (snapshot.model.history if snapshot else ())]
    return JSONResponse({"events": events, "undo": _undo(server, snapshot) is not None})


async def health(request: Request) -> Response:
    """``GET /health``: whether it answers, and whether from the file as it is now."""
    server: ServerState = request.app.state.server
    snapshot = await server.served.refresh()
    problem = server.served.problem
    return JSONResponse(
        {
            "status": "degraded" if problem else "ok",
            "problem": problem,
            "revision": snapshot.revision if snapshot else None,
        }
    )


async def metrics(request: Request) -> Response:
    """``GET /metrics``: counters for Prometheus."""
    server: ServerState = request.app.state.server
    await server.served.refresh()
    kind = "text/plain; version=0.0.4"
    return PlainTextResponse(server.metrics.text(server), media_type=kind)
