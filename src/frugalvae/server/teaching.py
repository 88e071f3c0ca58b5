"""Teaching: learn, correct, rename, forget and undo, as the command line does it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from frugalvae.errors import MemoryFileError
from frugalvae.labels import as_label, check_case, check_label, like
from frugalvae.model import forgetting
from frugalvae.model.history import with_digest
from frugalvae.server.pictures import ONE_NAME, gather, learned, outcome, updated
from frugalvae.server.refusals import RefusedError
from frugalvae.server.telling import told_event
from frugalvae.storage.receipts import receipt, state
from frugalvae.storage.summary import difference

if TYPE_CHECKING:
    from frugalvae.server.reading import Sent
    from frugalvae.server.served import Snapshot
    from frugalvae.server.state import ServerState


async def read(request: Request) -> tuple[ServerState, Sent]:
    """What was sent, if this server may be taught at all."""
    server: ServerState = request.app.state.server
    check_may_teach(server)
    return server, await server.reader.read(request)


def check_may_teach(server: ServerState) -> None:
    """Refuse to change anything where only questions are answered."""
    if not server.settings.teach:
        raise RefusedError(
            403, "this server only answers; start it with 'frugalvae serve FILE --teach' to teach"
        )


def check_revision(server: ServerState, sent: Sent) -> None:
    """Refuse a change of another state than the one that was looked at; inside the lock."""
    wanted, now = sent.fields.get("revision"), server.served.read()
    if wanted is not None and (now is None or wanted != now.revision):
        raise RefusedError(
            409, f"{server.served.name} was changed meanwhile; look again, then try again"
        )


# --------------------------------------------------------------------------- learn and update


async def learn(request: Request) -> Response:
    """``POST /learn``: pictures of a class, new or known; those that it was taught count once."""
    return JSONResponse(await taught(*await read(request), must_be_known=False))


async def update(request: Request) -> Response:
    """``POST /update``: more pictures of a known class; each counts, taught before or not."""
    return JSONResponse(await taught(*await read(request), must_be_known=True))


async def taught(server: ServerState, sent: Sent, must_be_known: bool) -> dict[str, Any]:
    """Learn what a request brought, and say what came of it."""
    started, name = time.perf_counter(), as_label(sent.text("name", "label"))
    check_label(name)
    if must_be_known:
        server.served.label_named((await server.served.current()).model, name)
    pictures = await gather(server, sent, name)

    def work() -> dict[str, Any]:
        check_revision(server, sent)
        before, size = server.served.to_change(), server.served.size
        if must_be_known:
            label, after, intake = updated(server, before, pictures)
        else:
            label, after, intake = learned(server, before, pictures, sent.flag("case_matters"))
        snapshot = server.served.save(after) if after is not before else server.served.last
        return outcome(server, label, before, size, snapshot, intake, pictures)

    answer = await server.served.change(work)
    server.metrics.taught += answer["learned"]
    return answer | {"seconds": time.perf_counter() - started}


# --------------------------------------------------------------------------- other changes


async def rename(request: Request) -> Response:
    """``POST /rename``: another name for a class."""
    server, sent = await read(request)
    old, new = sent.text("from", "label"), sent.text("to", "name")

    def work() -> dict[str, Any]:
        check_revision(server, sent)
        model = server.served.to_change()
        label = server.served.label_named(model, old)
        name = like(label, new)
        if not sent.flag("case_matters"):
            others = [str(known) for known in model.classes.tolist() if known != label]
            check_case([str(name)], others, ONE_NAME)
        snapshot = server.served.save(model.rename(label, name))
        return {"text": f"{label} is called {name} now", "label": name, **state_of(snapshot)}

    return JSONResponse(await server.served.change(work))


async def merge_classes(request: Request) -> Response:
    """``POST /merge-classes``: one class becomes part of another."""
    server, sent = await read(request)
    kept, joined = sent.text("label", "name"), sent.text("other")

    def work() -> dict[str, Any]:
        from frugalvae.model.merging import merge_classes

        check_revision(server, sent)
        model = server.served.to_change()
        label, other = (server.served.label_named(model, typed) for typed in (kept, joined))
        snapshot = server.served.save(merge_classes(model, label, other))
        return {"text": f"{other} is part of {label} now", "label": label, **state_of(snapshot)}

    return JSONResponse(await server.served.change(work))


async def forget(request: Request) -> Response:
    """``POST /forget``: remove a class; the answer is the receipt of ``frugalvae forget``."""
    server, sent = await read(request)
    typed = sent.text("label", "name")

    def work() -> dict[str, Any]:
        check_revision(server, sent)
        model, store = server.served.to_change(), server.served.store
        label = server.served.label_named(model, typed)
        before = state(store)
        model, remains = forgetting.forget(model, label)
        snapshot = server.served.save(with_digest(model))
        written = receipt(model, label, remains, before, state(store))
        text = f"{label} is forgotten"
        return {"text": text, "label": label, "receipt": written, **state_of(snapshot)}

    return JSONResponse(await server.served.change(work))


async def undo(request: Request) -> Response:
    """``POST /undo``: take back the last change, whoever made it."""
    server, sent = await read(request)

    def work() -> dict[str, Any]:
        check_revision(server, sent)
        store = server.served.store
        before = store.read_undo().document
        try:
            event, gone, back = difference(store.read().document, before)
        except MemoryFileError:  # a broken file can be undone, too
            event, gone, back = None, [], []
        store.go_back()
        snapshot = server.served.went_back()
        said = told_event(event) if event else None
        words = f"undone: {said['text']}" if said else "undone"
        return {"text": words, "event": said, "gone": gone, "back": back, **state_of(snapshot)}

    return JSONResponse(await server.served.change(work))


def state_of(snapshot: Snapshot) -> dict[str, Any]:
    """What the file is now."""
    summary = snapshot.summary
    return {
        "revision": snapshot.revision,
        "bytes": summary.bytes,
        "classes": summary.classes,
    }
