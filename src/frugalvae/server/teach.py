"""Teaching and correcting: each path is one verb, on the file and inside its lock."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from starlette.requests import Request

from frugalvae.digests import DIGEST
from frugalvae.labels import as_label, check_label, near
from frugalvae.model.neighbours import CONFUSED, neighbours_of
from frugalvae.server.guard import RefusedError
from frugalvae.server.models import (
    Change,
    ForgetRequest,
    LearnRequest,
    MergeRequest,
    RenameRequest,
)
from frugalvae.server.predict import encode_uploads, refuse_unreadable
from frugalvae.server.status import event_json
from frugalvae.verbs import changes

if TYPE_CHECKING:
    from frugalvae.model.model import Model
    from frugalvae.server.app import ServerState
    from frugalvae.server.requests import RequestData
    from frugalvae.server.served import Served, Snapshot

Body = TypeVar("Body", bound=Change)
Verb = Callable[["Served", Body], tuple["Snapshot", dict[str, Any]]]
Endpoint = Callable[["ServerState", Request], Awaitable[dict[str, Any]]]

SOURCE = "the page or HTTP"  # in the history


async def read(server: ServerState, request: Request) -> RequestData:
    """What was sent, if this server may be taught at all."""
    if not server.settings.teach:
        raise RefusedError(
            403, "this server only answers; start it with 'frugalvae serve FILE --teach' to teach"
        )
    return await server.reader.read(request)


def check_revision(served: Served, sent: Change) -> None:
    """Refuse a change of another state than the one that was looked at; inside the lock."""
    now = served.read()
    if sent.revision is not None and (now is None or sent.revision != now.revision):
        raise RefusedError(409, f"{served.name} was changed meanwhile; look again, then try again")


# --------------------------------------------------------------------------- learn


async def learn(server: ServerState, request: Request) -> dict[str, Any]:
    """Teach pictures of a class, new or known.

    Those that it was taught before are not counted again; those that another class was taught are
    moved.
    """
    started, data = time.perf_counter(), await read(server, request)
    sent, served = data.parse(LearnRequest), server.served
    name = check_label(as_label(sent.name))
    x, digests, unreadable = await encoded(server, data, sent.ids)

    def work() -> dict[str, Any]:
        check_revision(served, sent)
        before, size = served.model_to_change(), served.size
        loaded = server.encoders.load(before.remembered)
        changed = changes.correct(
            before,
            name,
            x,
            digests,
            loaded.encoder,
            loaded.remembered,
            case_matters=sent.case_matters,
            source=SOURCE,
        )
        snapshot = served.save(changed.model) if changed.model is not before else served.last
        assert snapshot is not None
        found = lesson(changed, snapshot, before, size)
        return found | {"unreadable": unreadable}

    answer = await served.change(work)
    server.metrics.taught += answer["learned"]
    return answer | {"seconds": time.perf_counter() - started}


async def encoded(
    server: ServerState, data: RequestData, ids: list[str]
) -> tuple[NDArray[np.float32], NDArray[np.bytes_], list[dict[str, Any]]]:
    """Features (n, d) and digests of images sent or remembered; and what is unreadable."""
    snapshot = await server.served.refresh()
    model = snapshot.model if snapshot else None
    images = [one.image for one in server.pending.find(ids, model)]
    if not images:
        data.check_images()
    sent, unreadable = await encode_uploads(server, model, data.uploads, lambda *_: None)
    images += [image for image, _ in sent]
    if not images:
        refuse_unreadable(unreadable)
    x = np.stack([one.features for one in images])  # (n, d)
    return x, np.array([one.digest for one in images], DIGEST), unreadable


def lesson(
    changed: changes.Changed, snapshot: Snapshot, before: Model, size: int
) -> dict[str, Any]:
    """What came of teaching a class, when the file had ``size`` bytes before."""
    label, plan, model = changed.label, changed.plan, snapshot.model
    known = before.classes.tolist()
    is_new = label not in known
    samples = int(model.n_samples_of_class[model.classes.tolist().index(label)])
    expected = model.forecast.to_json()["intervals"] if model.forecast else {}
    return {
        "label": label,
        "new": is_new,
        "learned": len(plan.rows),
        "already": sum(plan.already.values()),
        "copies": sum(plan.copies.values()),
        "moved": changed.moved,
        "gone": changed.gone,
        "near": near(str(label), list(map(str, known))) if is_new else None,
        "before": {"bytes": size, "classes": len(known)},
        "after": {
            "bytes": snapshot.summary.bytes,
            "classes": len(model.classes),
            "samples": samples,
        },
        "confused": [
            {"label": other.label, "share": other.share}
            for other in neighbours_of(model, label)
            if other.share >= CONFUSED
        ],
        "interval": expected.get(str(label)),
        "warnings": [*changed.warnings, *snapshot.summary.warnings],
        "revision": snapshot.revision,
    }


# --------------------------------------------------------------------------- other changes


def change(body: type[Body]) -> Callable[[Verb[Body]], Endpoint]:
    """Make an endpoint of a verb: it reads what was sent, and runs inside the file's lock."""

    def made(verb: Verb[Body]) -> Endpoint:
        @wraps(verb)
        async def endpoint(server: ServerState, request: Request) -> dict[str, Any]:
            sent, served = (await read(server, request)).parse(body), server.served

            def work() -> dict[str, Any]:
                check_revision(served, sent)
                snapshot, found = verb(served, sent)
                return {**found, **snapshot.to_json()}

            return await served.change(work)

        return endpoint

    return made


@change(RenameRequest)
def rename(served: Served, sent: RenameRequest) -> tuple[Snapshot, dict[str, Any]]:
    """Give a class another name."""
    model = served.model_to_change()
    label = served.label_named(model, sent.old)
    renamed = changes.rename(model, label, sent.to, case_matters=sent.case_matters)
    text = f"{label} is called {renamed.label} now"
    return served.save(renamed.model), {"text": text, "label": renamed.label}


@change(MergeRequest)
def merge_classes(served: Served, sent: MergeRequest) -> tuple[Snapshot, dict[str, Any]]:
    """Make one class part of another."""
    model = served.model_to_change()
    label, other = (served.label_named(model, typed) for typed in (sent.label, sent.other))
    merged = changes.merge_classes(model, label, [other])
    return served.save(merged.model), {"text": f"{other} is part of {label} now", "label": label}


@change(ForgetRequest)
def forget(served: Served, sent: ForgetRequest) -> tuple[Snapshot, dict[str, Any]]:
    """Remove a class, with a receipt."""
    model = served.model_to_change()
    label = served.label_named(model, sent.label)
    forgotten = changes.forget(served.store, model, label)
    found = {"text": f"{label} is forgotten", "label": label, "receipt": forgotten.receipt}
    return served.take_up(forgotten.model), found


@change(Change)
def undo(served: Served, _: Change) -> tuple[Snapshot, dict[str, Any]]:
    """Take back the last change, whoever made it."""
    undone = changes.undo(served.store)
    event = event_json(undone.event) if undone.event else None
    text = f"undone: {event['text']}" if event else "undone"
    found = {"text": text, "event": event, "gone": undone.gone, "back": undone.back}
    return served.reload_after_undo(), found
