"""Asking: which classes pictures show; and the tray of what was asked lately."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from frugalvae.answers import THRESHOLD, Answer, rank
from frugalvae.server.looking import Seen
from frugalvae.server.reading import Upload, as_flag, number
from frugalvae.server.refusals import RefusedError

if TYPE_CHECKING:
    from frugalvae.model import Model
    from frugalvae.server.room import Room

SHOWN = 5  # classes that the tray has of each question
MOST = 100  # classes that may be asked for
KEPT = ("tray", "quiet", "no")


async def predict(request: Request) -> Response:
    """``POST /predict``: the classes of pictures, as ``frugalvae predict --json`` has them."""
    room: Room = request.app.state.room
    started, wanted = time.perf_counter(), Wanted(request.query_params)
    sent = await room.reader.read(request)
    teach = room.settings.teach  # or a file that knows nothing is of no use
    snapshot = await (room.served.refresh() if teach else room.served.current())
    model = snapshot.model if snapshot else None
    if sent.ids():
        results = again(room, model, sent.ids(), wanted)
    else:
        check_some(sent.uploads)
        results = await look_at(room, model, sent.uploads, wanted)
    answers = [found for found in results if "reason" not in found]
    if not answers and not sent.is_form:
        room.refuse_unreadable(results)
    return JSONResponse(
        {
            "file": room.served.name,
            "predictions": answers,
            "unreadable": [found for found in results if "reason" in found],
            "skipped": [],
            "seconds": time.perf_counter() - started,
            "revision": snapshot.revision if snapshot else None,
        }
    )


def check_some(uploads: list[Upload]) -> None:
    """Refuse a request without pictures."""
    if not uploads:
        raise RefusedError(
            422, "no images were sent; give them as 'images' of a form, or as the body"
        )


class Wanted:
    """What is asked for in the address."""

    def __init__(self, query: Any) -> None:
        self.top = int(number(query, "top", 1, 1, MOST))
        self.least = number(query, "min_probability", 0.0, 0.0, 1.0)
        self.threshold = number(query, "threshold", THRESHOLD, 0.0, 1.0)
        self.unknown = "threshold" in query or as_flag("unknown", query.get("unknown", "no"))
        self.kept = query.get("kept", "tray")
        if self.kept not in KEPT:
            raise RefusedError(422, f"kept is {self.kept!r}; expected one of {', '.join(KEPT)}")

    def of(self, answer: Answer) -> dict[str, Any]:
        """The part of an answer that was asked for."""
        likely = [(label, chance) for label, chance in answer.top if chance >= self.least]
        if not self.unknown:
            return Answer(answer.input, likely[: self.top]).to_json()
        asked = Answer(answer.input, likely[: self.top], answer.known, answer.familiarity)
        return asked.to_json()

    def rank(self, model: Model | None, name: str, seen: Seen) -> Answer:
        """All that may be asked of a picture."""
        if model is None or not len(model.classes):
            return Answer(name, [])
        x = seen.features[None]  # (1, d)
        compared = self.unknown or len(model.by_name) < len(model.classes)
        threshold = self.threshold if compared else None
        return rank(model, [name], x, max(self.top, SHOWN), threshold=threshold)[0]


async def look_at(
    room: Room, model: Model | None, uploads: list[Upload], wanted: Wanted
) -> list[dict[str, Any]]:
    """An answer for each picture, or why it cannot be read; in their order."""
    remembered = model.remembered if model else {}

    def one(upload: Upload) -> tuple[Seen, Answer] | str:
        seen = room.looker.look(upload.content, remembered, small=wanted.kept == "tray")
        return seen if isinstance(seen, str) else (seen, wanted.rank(model, upload.name, seen))

    jobs = [room.looker.run(lambda upload=upload: one(upload)) for upload in uploads]  # type: ignore[misc]
    results: list[dict[str, Any]] = []
    for upload, found in zip(uploads, await asyncio.gather(*jobs), strict=True):
        if isinstance(found, str):
            results.append({"input": upload.name, "reason": found})
            continue
        seen, answer = found
        kept = {} if wanted.kept == "no" else {"id": room.remember(seen, answer)}
        results.append(wanted.of(answer) | kept)
        if room.settings.keep and wanted.kept != "no":
            await room.looker.run(lambda c=upload.content, s=seen: room.keep(c, s.digest))  # type: ignore[misc]
    return results


def again(room: Room, model: Model | None, ids: list[str], wanted: Wanted) -> list[dict[str, Any]]:
    """Answers about pictures that are remembered."""
    results = []
    for question in room.find(ids, model):
        answer = wanted.rank(model, question.answer["input"], question.seen)
        results.append(wanted.of(answer) | {"id": question.id})
    return results


# --------------------------------------------------------------------------- the tray


async def recent(request: Request) -> Response:
    """``GET /recent``: what was asked lately, newest first."""
    room: Room = request.app.state.room
    questions = [
        {
            **question.answer,
            "id": question.id,
            "when": question.when,
            "left": room.tray.left(question),
            "taught": question.taught[0] if question.taught else None,
        }
        for question in room.tray.shown()
    ]
    seconds = room.settings.limits.seconds_remembered
    return JSONResponse({"seconds": seconds, "questions": questions})


async def picture(request: Request) -> Response:
    """``GET /recent/ID/picture``: the small picture of a question."""
    room: Room = request.app.state.room
    [question] = room.tray.get([request.path_params["id"]])
    if not question.seen.small:
        raise RefusedError(404, "no picture is kept of this one")
    return Response(question.seen.small, media_type="image/jpeg")


async def clear(request: Request) -> Response:
    """``POST /recent/clear``: forget some of them, or all."""
    room: Room = request.app.state.room
    sent = await room.reader.read(request)
    ids = sent.ids() if "ids" in sent.fields else None
    return JSONResponse({"removed": room.tray.remove(ids)})
