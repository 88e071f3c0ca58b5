"""Predictions: the classes of images that are sent or remembered, and what explains one."""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from frugalvae.errors import InputError
from frugalvae.images.photographs import reason
from frugalvae.model.answers import Answer, rank
from frugalvae.server.guard import RefusedError
from frugalvae.server.models import ExplainOptions, ExplainRequest, IdsRequest, PredictOptions
from frugalvae.server.requests import Upload, parse
from frugalvae.server.workers import EncodedImage

if TYPE_CHECKING:
    from frugalvae.care.explanations import Explanation
    from frugalvae.model.model import Model
    from frugalvae.server.app import ServerState
    from frugalvae.server.pending import PendingImage
    from frugalvae.server.served import Snapshot

T = TypeVar("T")

SHOWN = 5  # classes that are kept of each recent image


async def predict(server: ServerState, request: Request) -> dict[str, Any]:
    """Name the classes of pictures, or of remembered ones."""
    started, options = time.perf_counter(), parse(PredictOptions, request.query_params)
    sent = await server.reader.read(request)
    ids = sent.parse(IdsRequest).ids
    teach = server.settings.teach  # or a file that knows nothing is of no use
    snapshot = await (server.served.refresh() if teach else server.served.current())
    unreadable: list[dict[str, Any]] = []
    if ids:
        answers = await predict_remembered(server, snapshot, ids, options)
    else:
        sent.check_images()
        answers, unreadable = await predict_uploads(server, snapshot, sent.uploads, options)
    if not answers and not sent.is_form:
        refuse_unreadable(unreadable)
    return {
        "file": server.served.name,
        "predictions": answers,
        "unreadable": unreadable,
        "skipped": [],
        "seconds": time.perf_counter() - started,
        "revision": snapshot.revision if snapshot else None,
    }


def refuse_unreadable(unreadable: list[dict[str, Any]]) -> NoReturn:
    """Refuse a request of which no image can be read."""
    reasons = [found["reason"] for found in unreadable]
    too_large = bool(reasons) and all("pixels" in why for why in reasons)
    why = f"no image can be read: {reasons[0] if reasons else 'none was sent'}"
    raise RefusedError(413 if too_large else 422, why, unreadable=unreadable)


async def encode_uploads(
    server: ServerState,
    model: Model | None,
    uploads: list[Upload],
    work: Callable[[str, EncodedImage], T],
    *,
    thumbnail: bool = False,
    keep: bool = True,
) -> tuple[list[tuple[EncodedImage, T]], list[dict[str, Any]]]:
    """Images, encoded for a model, with what ``work`` gives of each; and why others are not.

    ``work`` runs in the same thread, or it would wait for a place once more.
    """

    def both(upload: Upload) -> tuple[EncodedImage, T] | str:
        remembered = model.remembered if model else {}
        image = server.encoders.encode(upload.content, remembered, thumbnail)
        return image if isinstance(image, str) else (image, work(upload.name, image))

    jobs = [server.encoders.run(lambda upload=upload: both(upload)) for upload in uploads]  # type: ignore[misc]
    images, unreadable = list[tuple[EncodedImage, T]](), list[dict[str, Any]]()
    for upload, found in zip(uploads, await asyncio.gather(*jobs), strict=True):
        if isinstance(found, str):
            unreadable.append({"input": upload.name, "reason": found})
            continue
        images.append(found)
        if keep:
            await server.keep(upload.content, found[0].digest)
    return images, unreadable


async def predict_uploads(
    server: ServerState, snapshot: Snapshot | None, uploads: list[Upload], options: PredictOptions
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """An answer for each image that can be read; and why others cannot."""
    model, revision = (snapshot.model, snapshot.revision) if snapshot else (None, None)

    def answer_to(name: str, image: EncodedImage) -> Answer:
        return answers_to(options, model, [(name, image)])[0]

    how = {"thumbnail": options.kept == "tray", "keep": options.kept != "no"}
    found, unreadable = await encode_uploads(server, model, uploads, answer_to, **how)
    answers = []
    for image, answer in found:
        answers.append(as_json(options, answer))
        if options.kept != "no":
            name = server.pending.add(image, answer.to_json(), revision)
            answers[-1] |= {"id": name, "taught": class_of(snapshot, image)}
    return answers, unreadable


async def predict_remembered(
    server: ServerState, snapshot: Snapshot | None, ids: list[str], options: PredictOptions
) -> list[dict[str, Any]]:
    """Answers about images that are remembered."""
    images = server.pending.find(ids, snapshot.model if snapshot else None)
    answers = await rank_again(server, snapshot, images, options)
    return [
        as_json(options, answer) | {"id": one.id, "taught": class_of(snapshot, one.image)}
        for one, answer in zip(images, answers, strict=True)
    ]


async def rank_again(
    server: ServerState,
    snapshot: Snapshot | None,
    images: list[PendingImage],
    options: PredictOptions,
) -> list[Answer]:
    """What the file says now of images that are remembered; they have it from now on."""
    named = [(one.answer["input"], one.image) for one in images]
    model = snapshot.model if snapshot else None
    answers = await server.encoders.run(lambda: answers_to(options, model, named))
    for one, answer in zip(images, answers, strict=True):
        one.answer = answer.to_json()
        one.revision = snapshot.revision if snapshot else None
    return answers


def answers_to(
    options: PredictOptions, model: Model | None, images: list[tuple[str, EncodedImage]]
) -> list[Answer]:
    """All that may be asked of some images, which have names."""
    names = [name for name, _ in images]
    if model is None or not len(model.classes):
        return [Answer(name, []) for name in names]
    x = np.stack([image.features for _, image in images])  # (n, d)
    compared = options.is_compared or len(model.by_name) < len(model.classes)
    threshold = options.least_familiarity if compared else None
    most = max(options.top, SHOWN)
    try:
        return rank(model, names, x, most, 0.0, threshold, options.error, options.sets)
    except InputError as error:  # nothing can be promised
        raise RefusedError(422, str(error)) from error


def as_json(options: PredictOptions, answer: Answer) -> dict[str, Any]:
    """The part of an answer that was asked for."""
    likely = [(label, chance) for label, chance in answer.top if chance >= options.min_probability]
    shown = replace(answer, top=likely[: options.top])
    if not options.is_compared:
        shown = replace(shown, known=None, familiarity=None)
    return shown.to_json()


def class_of(snapshot: Snapshot | None, image: EncodedImage) -> str | None:
    """The class that was taught this very image, if any."""
    label = snapshot.taught_as(image.digest) if snapshot else None
    return None if label is None else str(label)


# --------------------------------------------------------------------------- why


async def explain(server: ServerState, request: Request) -> dict[str, Any] | Response:
    """Which parts of a picture speak for its class, and which for the next one.

    How much each of 8 by 8 parts adds to the first one's log-odds.
    """
    started, options = time.perf_counter(), parse(ExplainOptions, request.query_params)
    sent = await server.reader.read(request)
    against = sent.parse(ExplainRequest).against
    snapshot = await server.served.current()
    sent.check_images()
    if len(sent.uploads) > 1:
        raise RefusedError(422, f"{len(sent.uploads)} images were sent; expected one")
    label = against and server.served.label_named(snapshot.model, against)

    def work() -> tuple[Explanation, bytes]:
        found = explanation(server, snapshot.model, sent.uploads[0].content, label)
        buffer = io.BytesIO()
        if options.picture:
            found.picture().save(buffer, "PNG")
        return found, buffer.getvalue()

    found, picture = await server.explaining.run(work)
    if options.picture:
        return Response(picture, media_type="image/png")
    seconds = time.perf_counter() - started
    return found.to_json(snapshot.model) | {"revision": snapshot.revision, "seconds": seconds}


def explanation(server: ServerState, model: Model, content: bytes, against: Any) -> Explanation:
    """What speaks for the class of an image, and what for another."""
    from frugalvae.care.explanations import explain

    encoder = server.encoders.load(model.remembered).encoder
    try:
        image = server.encoders.decode(content, encoder.side)
    except Exception as error:  # Pillow fails in many ways
        refuse_unreadable([{"input": "image", "reason": reason(error)}])
    return explain(model, encoder, image, against)
