"""Asking: which classes pictures show; and the tray of what was asked lately."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from frugalvae.errors import InputError
from frugalvae.model.answers import THRESHOLD, Answer, rank
from frugalvae.server.looking import Seen
from frugalvae.server.reading import Upload, as_flag, share, whole
from frugalvae.server.refusals import RefusedError
from frugalvae.server.state import of_encoder

if TYPE_CHECKING:
    from frugalvae.model.model import Model
    from frugalvae.server.served import Snapshot
    from frugalvae.server.state import ServerState
    from frugalvae.server.tray import Question

SHOWN = 5  # classes that the tray has of each question
MOST = 100  # classes that may be asked for
KEPT = ("tray", "quiet", "no")


async def predict(request: Request) -> Response:
    """``POST /predict``: the classes of pictures, as ``frugalvae predict --json`` has them."""
    server: ServerState = request.app.state.server
    started, wanted = time.perf_counter(), Wanted(request.query_params)
    sent = await server.reader.read(request)
    teach = server.settings.teach  # or a file that knows nothing is of no use
    snapshot = await (server.served.refresh() if teach else server.served.current())
    if sent.ids():
        results = await again(server, snapshot, sent.ids(), wanted)
    else:
        check_some(sent.uploads)
        results = await look_at(server, snapshot, sent.uploads, wanted)
    answers = [found for found in results if "reason" not in found]
    if not answers and not sent.is_form:
        server.refuse_unreadable(results)
    return JSONResponse(
        {
            "file": server.served.name,
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
        self.top = whole(query, "top", 1, MOST)
        self.least = share(query, "min_probability", 0.0)
        self.threshold = share(query, "threshold", THRESHOLD)
        self.unknown = "threshold" in query or as_flag("unknown", query.get("unknown", "no"))
        self.error, self.sets = (
            share(query, name, 0.0) if name in query else None for name in ("error", "sets")
        )
        self.kept = query.get("kept", "tray")
        if self.kept not in KEPT:
            raise RefusedError(422, f"kept is {self.kept!r}; expected one of {', '.join(KEPT)}")

    def of(self, answer: Answer) -> dict[str, Any]:
        """The part of an answer that was asked for."""
        likely = [(label, chance) for label, chance in answer.top if chance >= self.least]
        asked = replace(answer, top=likely[: self.top])
        if not self.unknown:
            asked = replace(asked, known=None, familiarity=None)
        return asked.to_json()

    def rank(self, model: Model | None, names: list[str], seen: list[Seen]) -> list[Answer]:
        """All that may be asked of some pictures."""
        if model is None or not len(model.classes):
            return [Answer(name, []) for name in names]
        x = np.stack([one.features for one in seen])  # (n, d)
        compared = self.unknown or len(model.by_name) < len(model.classes)
        threshold = self.threshold if compared else None
        most = max(self.top, SHOWN)
        try:
            return rank(model, names, x, most, 0.0, threshold, self.error, self.sets)
        except InputError as error:  # nothing can be promised
            raise RefusedError(422, str(error)) from error


async def look_at(
    server: ServerState, snapshot: Snapshot | None, uploads: list[Upload], wanted: Wanted
) -> list[dict[str, Any]]:
    """An answer for each picture, or why it cannot be read; in their order."""
    model = snapshot.model if snapshot else None
    remembered = model.remembered if model else {}

    def one(upload: Upload) -> tuple[Seen, Answer] | str:
        seen = server.looker.look(upload.content, remembered, small=wanted.kept == "tray")
        if isinstance(seen, str):
            return seen
        return seen, wanted.rank(model, [upload.name], [seen])[0]

    jobs = [server.looker.run(lambda upload=upload: one(upload)) for upload in uploads]  # type: ignore[misc]
    results: list[dict[str, Any]] = []
    revision = snapshot.revision if snapshot else None
    for upload, found in zip(uploads, await asyncio.gather(*jobs), strict=True):
        if isinstance(found, str):
            results.append({"input": upload.name, "reason": found})
            continue
        seen, answer = found
        told = wanted.of(answer)
        if wanted.kept != "no":
            name = server.remember(seen, answer, revision)
            told |= {"id": name, "taught": taught_as(snapshot, seen)}
        results.append(told)
        if server.settings.keep and wanted.kept != "no":
            await server.looker.run(lambda c=upload.content, s=seen: server.keep(c, s.digest))  # type: ignore[misc]
    return results


def taught_as(snapshot: Snapshot | None, seen: Seen) -> str | None:
    """The class that was taught this very picture, if any."""
    label = snapshot.taught_as(seen.digest) if snapshot else None
    return None if label is None else str(label)


async def again(
    server: ServerState, snapshot: Snapshot | None, ids: list[str], wanted: Wanted
) -> list[dict[str, Any]]:
    """Answers about pictures that are remembered."""
    questions = server.find(ids, snapshot.model if snapshot else None)
    answers = await answer_anew(server, snapshot, questions, wanted)
    return [
        wanted.of(answer) | {"id": question.id, "taught": taught_as(snapshot, question.seen)}
        for question, answer in zip(questions, answers, strict=True)
    ]


async def answer_anew(
    server: ServerState, snapshot: Snapshot | None, questions: list[Question], wanted: Wanted
) -> list[Answer]:
    """What the file says now of pictures that are remembered; they have it from now on."""
    names = [question.answer["input"] for question in questions]
    seen, model = [question.seen for question in questions], snapshot.model if snapshot else None
    answers = await server.looker.run(lambda: wanted.rank(model, names, seen))
    for question, answer in zip(questions, answers, strict=True):
        question.answer = answer.to_json()
        question.revision = snapshot.revision if snapshot else None
    return answers


# --------------------------------------------------------------------------- the tray


async def recent(request: Request) -> Response:
    """``GET /recent``: what was asked lately, newest first, and what the file says of it now."""
    server: ServerState = request.app.state.server
    snapshot = await server.served.refresh()
    if snapshot is not None:
        stale = [one for one in server.tray.shown() if one.revision != snapshot.revision]
        if stale := of_encoder(stale, snapshot.model):
            await answer_anew(server, snapshot, stale, Wanted({}))
    questions = [
        {
            **question.answer,
            "id": question.id,
            "when": question.when,
            "left": server.tray.left(question),
            "taught": taught_as(snapshot, question.seen),
        }
        for question in server.tray.shown()
    ]
    seconds = server.settings.limits.seconds_remembered
    return JSONResponse({"seconds": seconds, "questions": questions})


async def picture(request: Request) -> Response:
    """``GET /recent/ID/picture``: the small picture of a question."""
    server: ServerState = request.app.state.server
    [question] = server.tray.get([request.path_params["id"]])
    if not question.seen.small:
        raise RefusedError(404, "no picture is kept of this one")
    return Response(question.seen.small, media_type="image/jpeg")


async def clear(request: Request) -> Response:
    """``POST /recent/clear``: forget some of them, or all."""
    server: ServerState = request.app.state.server
    sent = await server.reader.read(request)
    ids = sent.ids() if "ids" in sent.fields else None
    return JSONResponse({"removed": server.tray.remove(ids)})
