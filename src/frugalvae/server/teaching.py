"""Teaching: learn, correct, rename, forget and undo, as the command line does it."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from frugalvae.changes import DIGEST, digest_of, label_named, like, with_digest, with_source
from frugalvae.checks import as_label, check_case, check_kind, check_label
from frugalvae.errors import MemoryFileError
from frugalvae.images.encode import describe
from frugalvae.intake import Intake, choose
from frugalvae.server.asking import check_some
from frugalvae.server.looking import Seen
from frugalvae.server.refusals import RefusedError
from frugalvae.storage.receipts import QUANTILES, receipt, state
from frugalvae.storage.summary import difference, in_words
from frugalvae.taught import near

if TYPE_CHECKING:
    from frugalvae.model import Model
    from frugalvae.server.reading import Sent
    from frugalvae.server.room import Room
    from frugalvae.server.served import Snapshot
    from frugalvae.server.tray import Question

SOURCE = "the server"  # in the history
CONFUSED = 0.02  # share of a class's samples from which on they are said to be taken for another's


async def read(request: Request) -> tuple[Room, Sent]:
    """What was sent, if this server may be taught at all."""
    room: Room = request.app.state.room
    if not room.settings.teach:
        raise RefusedError(
            403, "this server only answers; start it with 'frugalvae serve FILE --teach' to teach"
        )
    return room, await room.reader.read(request)


def check_revision(room: Room, sent: Sent) -> None:
    """Refuse a change of another state than the one that was looked at; inside the lock."""
    wanted, now = sent.fields.get("revision"), room.served.read()
    if wanted is not None and (now is None or wanted != now.revision):
        raise RefusedError(
            409, f"{room.served.name} was changed meanwhile; look again, then try again"
        )


@dataclass
class Lesson:
    """Pictures of one class, encoded.

    Attributes
    ----------
    x, digests
        Features (n, d), and what tells each picture from others.
    questions
        Those of them that were asked before.
    unreadable
        Why others cannot be read.
    """

    name: str
    x: NDArray[np.float32]
    digests: NDArray[np.uint64]
    questions: list[Question] = field(default_factory=list)
    unreadable: list[dict[str, Any]] = field(default_factory=list)


async def gather(room: Room, sent: Sent, name: str) -> Lesson:
    """The pictures of a request: those that came with it, and those that are remembered."""
    snapshot = await room.served.refresh()
    model = snapshot.model if snapshot else None
    questions = room.find(sent.ids(), model)
    if not questions:
        check_some(sent.uploads)
    remembered = model.encoder if model else {}
    jobs = [
        room.looker.run(lambda c=upload.content: room.looker.look(c, remembered, small=False))  # type: ignore[misc]
        for upload in sent.uploads
    ]
    seen, unreadable = [question.seen for question in questions], []
    for upload, found in zip(sent.uploads, await asyncio.gather(*jobs), strict=True):
        if isinstance(found, Seen):
            seen.append(found)
            if room.settings.keep:
                await room.looker.run(lambda c=upload.content, d=found.digest: room.keep(c, d))  # type: ignore[misc]
        else:
            unreadable.append({"input": upload.name, "reason": found})
    if not seen:
        room.refuse_unreadable(unreadable)
    features = np.stack([one.features for one in seen])  # (n, d)
    digests = np.array([one.digest for one in seen], np.uint64)
    return Lesson(name, features, digests, questions, unreadable)


# --------------------------------------------------------------------------- learn and update


async def learn(request: Request) -> Response:
    """``POST /learn``: pictures of a class, new or known; those that it was taught count once."""
    return await teach(request, must_be_known=False)


async def update(request: Request) -> Response:
    """``POST /update``: more pictures of a known class; each counts, taught before or not."""
    return await teach(request, must_be_known=True)


async def teach(request: Request, must_be_known: bool) -> Response:
    """Learn what a request brought, and say what came of it."""
    room, sent = await read(request)
    started, name = time.perf_counter(), as_label(sent.text("name", "label"))
    check_label(name)
    if must_be_known:
        label_named(room.served.name, known_labels(await room.served.refresh()), name)
    lesson = await gather(room, sent, name)

    def work() -> dict[str, Any]:
        check_revision(room, sent)
        before, size = room.served.to_change(), room.served.size
        if must_be_known:
            label, after, intake = updated(room, before, lesson)
        else:
            label, after, intake = learned(room, before, lesson, sent.flag("case_matters"))
        snapshot = room.served.save(after) if after is not before else room.served.last
        return told(room, label, before, size, snapshot, intake, lesson)

    answer = await room.served.change(work)
    room.metrics.taught += answer["learned"]
    return JSONResponse(answer | {"seconds": time.perf_counter() - started})


def known_labels(snapshot: Snapshot | None) -> list[Any]:
    """The classes that are known."""
    return snapshot.model.classes.tolist() if snapshot else []


def learned(
    room: Room, model: Model, lesson: Lesson, case_matters: bool
) -> tuple[Any, Model, Intake]:
    """The model with what is new of a lesson; itself if nothing is."""
    known = model.classes.tolist()
    label: Any = like(known[0], lesson.name) if known else lesson.name
    if label not in known:
        label = model.aliases.get(lesson.name) or label
    if known:
        check_kind(np.array([label]), model.classes)
    if label not in known and not case_matters:
        check_case([str(label)], map(str, known))
    names = np.array([label] * len(lesson.x))
    intake = choose(model, names, lambda rows: lesson.digests[rows], again=[str(label)])
    if not len(intake.rows):
        return label, model, intake
    eye = room.looker.eye(model.encoder if model.n_tasks else {})
    text = describe(eye.encoder, [str(label)]) if intake.new else None
    digests = intake.digests_of(np.arange(len(intake.rows)))
    x = lesson.x[intake.rows]
    after = model.learn(x, intake.labels, text=text, digests=digests)
    if not after.encoder:
        after = replace(after, encoder=eye.remembered)
    return label, with_source(after, SOURCE), intake


def updated(room: Room, model: Model, lesson: Lesson) -> tuple[Any, Model, Intake]:
    """The model with more of a known class; itself if the last change was this very one."""
    label = label_named(room.served.name, model.classes.tolist(), lesson.name)
    digest = digest_of(label, lesson.x)
    if model.history and model.history[-1].get(DIGEST) == digest:
        return label, model, Intake(already={label: len(lesson.x)})
    after = model.update(label, lesson.x, digests=lesson.digests)
    after = with_digest(with_source(after, SOURCE), digest)
    return label, after, Intake(rows=np.arange(len(lesson.x)), more={label: len(lesson.x)})


def told(
    room: Room,
    label: Any,
    before: Model,
    size: int,
    snapshot: Snapshot | None,
    intake: Intake,
    lesson: Lesson,
) -> dict[str, Any]:
    """What came of a lesson."""
    assert snapshot is not None
    for question in lesson.questions:
        question.taught = str(label), snapshot.revision
    model, known = snapshot.model, before.classes.tolist()
    place = model.classes.tolist().index(label)
    samples = int(model.n_samples_of_class[place])
    others = [str(other) for other in known if other != label]
    return {
        "label": label,
        "new": label not in known,
        "learned": len(intake.rows),
        "already": sum(intake.already.values()),
        "copies": sum(intake.copies.values()),
        "unreadable": lesson.unreadable,
        "near": near(str(label), others) if label not in known else None,
        "before": {"bytes": size, "classes": len(known)},
        "after": {"bytes": room.served.size, "classes": len(model.classes), "samples": samples},
        "confused": confused_with(snapshot, place),
        "warnings": snapshot.summary.warnings,
        "revision": snapshot.revision,
    }


def confused_with(snapshot: Snapshot, place: int) -> list[dict[str, Any]]:
    """Classes that one is taken for, most often first."""
    nearest = snapshot.neighbours_of(place)
    return [
        {"label": near.label, "share": near.share} for near in nearest if near.share >= CONFUSED
    ]


# --------------------------------------------------------------------------- other changes


async def rename(request: Request) -> Response:
    """``POST /rename``: another name for a class."""
    room, sent = await read(request)
    old, new = sent.text("from", "label"), sent.text("to", "name")

    def work() -> dict[str, Any]:
        check_revision(room, sent)
        model = room.served.to_change()
        label = label_named(room.served.name, model.classes.tolist(), old)
        name = like(label, new)
        if not sent.flag("case_matters"):
            others = [str(known) for known in model.classes.tolist() if known != label]
            check_case([str(name)], others)
        snapshot = room.served.save(model.rename(label, name))
        return {"text": f"{label} is called {name} now", "label": name, **state_of(snapshot)}

    return JSONResponse(await room.served.change(work))


async def forget(request: Request) -> Response:
    """``POST /forget``: remove a class; the answer is the receipt of ``frugalvae forget``."""
    room, sent = await read(request)
    typed = sent.text("label", "name")

    def work() -> dict[str, Any]:
        check_revision(room, sent)
        model, store = room.served.to_change(), room.served.store
        label = label_named(room.served.name, model.classes.tolist(), typed)
        before = state(store)
        model, remains = model.forget(label)
        if model.taught_novelty.quantiles:
            remains = [*remains, QUANTILES]
        snapshot = room.served.save(with_digest(model))
        written = receipt(model, label, remains, before, state(store))
        text = f"{label} is forgotten"
        return {"text": text, "label": label, "receipt": written, **state_of(snapshot)}

    return JSONResponse(await room.served.change(work))


async def undo(request: Request) -> Response:
    """``POST /undo``: take back the last change, whoever made it."""
    room, sent = await read(request)

    def work() -> dict[str, Any]:
        check_revision(room, sent)
        store, last = room.served.store, room.served.last
        before = store.read_undo().document
        try:
            event, gone, back = difference(store.read().document, before)
        except MemoryFileError:  # a broken file can be undone, too
            event, gone, back = None, [], []
        store.go_back()
        if last is not None:
            room.tray.undone(last.revision)
        snapshot = room.served.went_back()
        words = f"undone: {event['action']} {in_words(event)}" if event else "undone"
        return {"text": words, "gone": gone, "back": back, **state_of(snapshot)}

    return JSONResponse(await room.served.change(work))


def state_of(snapshot: Snapshot) -> dict[str, Any]:
    """What the file is now."""
    summary = snapshot.summary
    return {
        "revision": snapshot.revision,
        "bytes": summary.bytes,
        "classes": summary.classes,
    }
