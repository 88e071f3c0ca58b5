"""Recent images: kept in memory for a while, listed, suggested for teaching, and forgotten."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from frugalvae.errors import InputError
from frugalvae.server.guard import RefusedError
from frugalvae.server.models import IdsRequest, PredictOptions
from frugalvae.server.predict import class_of, rank_again
from frugalvae.server.workers import key_of

if TYPE_CHECKING:
    from frugalvae.model.model import Model
    from frugalvae.server.app import ServerState
    from frugalvae.server.settings import Limits
    from frugalvae.server.workers import EncodedImage

OVERHEAD = 2_000  # bytes of an entry besides its thumbnail and its features, about
SUGGESTED = 20  # images, at most


@dataclass
class PendingImage:
    """An image that was asked about.

    Attributes
    ----------
    answer, revision
        What was answered last, as JSON, and by which state of the file.
    since, when
        When it was asked, as the clock of the server and as a date.
    """

    id: str
    image: EncodedImage
    answer: dict[str, Any]
    revision: str | None
    since: float
    when: str

    @property
    def bytes(self) -> int:
        """What it takes, about."""
        return len(self.image.thumbnail) + self.image.features.nbytes + OVERHEAD


class PendingImages:
    """Images that were asked about: those with a thumbnail are listed, others wait to be taught.

    Both are bounded in number, bytes and time; the oldest go first.
    """

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits, self._clock = limits, clock
        self._listed: OrderedDict[str, PendingImage] = OrderedDict()
        self._quiet: OrderedDict[str, PendingImage] = OrderedDict()

    def add(self, image: EncodedImage, answer: dict[str, Any], revision: str | None = None) -> str:
        """Remember an image; the id of it."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        name = secrets.token_urlsafe(9)
        kept = self._listed if image.thumbnail else self._quiet
        kept[name] = PendingImage(name, image, answer, revision, self._clock(), now)
        self._drop_old()
        return name

    def listed(self) -> list[PendingImage]:
        """Those with a thumbnail, newest first."""
        self._drop_old()
        return list(reversed(self._listed.values()))

    def seconds_left(self, image: PendingImage) -> float:
        """Until an image is forgotten."""
        return self.limits.seconds_remembered - (self._clock() - image.since)

    @property
    def bytes(self) -> int:
        """What all of them take, about."""
        return sum(one.bytes for kept in (self._listed, self._quiet) for one in kept.values())

    def get(self, ids: Iterable[str]) -> list[PendingImage]:
        """Some of them; a refusal if one is no longer remembered."""
        self._drop_old()
        wanted, kept = list(dict.fromkeys(ids)), {**self._quiet, **self._listed}
        gone = [name for name in wanted if name not in kept]
        if gone:
            minutes = self.limits.seconds_remembered / 60
            raise RefusedError(
                410,
                f"{len(gone)} of {len(wanted)} images are no longer remembered: the last "
                f"{self.limits.recent} are, for {minutes:g} minutes; send them again",
                gone=gone,
            )
        return [kept[name] for name in wanted]

    def find(self, ids: list[str], model: Model | None) -> list[PendingImage]:
        """Some of them, if the encoder of the file made their features."""
        found = self.get(ids)
        if len(of_encoder(found, model)) < len(found):
            why = "the file has another encoder now; send the images again"
            raise RefusedError(410, why, gone=ids)
        return found

    def remove(self, ids: Iterable[str] | None = None) -> int:
        """Forget some of them, or all that are listed; how many these were."""
        names = list(self._listed) if ids is None else list(ids)
        found = [self._listed.pop(name, None) or self._quiet.pop(name, None) for name in names]
        return sum(one is not None for one in found)

    def _drop_old(self) -> None:
        for kept, most in ((self._listed, self.limits.recent), (self._quiet, self.limits.quiet)):
            taken = sum(one.bytes for one in kept.values())
            while kept:
                oldest = next(iter(kept.values()))
                fits = len(kept) <= most and taken <= self.limits.remembered
                if fits and self.seconds_left(oldest) >= 0:
                    break
                taken -= kept.popitem(last=False)[1].bytes


def of_encoder(images: list[PendingImage], model: Model | None) -> list[PendingImage]:
    """Those whose features the encoder of the file made; all, if it has none yet."""
    if model is None or not model.encoder:
        return images
    key = key_of(model.encoder)
    return [one for one in images if one.image.encoder == key]


# --------------------------------------------------------------------------- what is answered


async def recent(server: ServerState, _: Request) -> dict[str, Any]:
    """What was asked lately, newest first, and what the file says of it now."""
    snapshot, pending = await server.served.refresh(), server.pending
    if snapshot is not None:
        stale = [one for one in pending.listed() if one.revision != snapshot.revision]
        if stale := of_encoder(stale, snapshot.model):
            await rank_again(server, snapshot, stale, PredictOptions())
    images = [
        {
            **one.answer,
            "id": one.id,
            "when": one.when,
            "left": pending.seconds_left(one),
            "taught": class_of(snapshot, one.image),
        }
        for one in pending.listed()
    ]
    return {"seconds": server.settings.limits.seconds_remembered, "questions": images}


async def picture(server: ServerState, request: Request) -> Response:
    """The thumbnail of a recent image."""
    [found] = server.pending.get([request.path_params["id"]])
    if not found.image.thumbnail:
        raise RefusedError(404, "no small image is kept of this one")
    return Response(found.image.thumbnail, media_type="image/jpeg")


async def clear(server: ServerState, request: Request) -> dict[str, Any]:
    """Forget recent images: some, or all."""
    sent = (await server.reader.read(request)).parse(IdsRequest)
    return {"removed": server.pending.remove(sent.ids)}


async def suggest(server: ServerState, _: Request) -> dict[str, Any]:
    """Recent images that would teach most, the first most; and groups of unknown ones."""
    snapshot = await server.served.refresh()
    images = of_encoder(server.pending.listed(), snapshot.model if snapshot else None)
    if snapshot is None or not len(snapshot.model.classes):
        return {"suggestions": [], "groups": []}
    new = [one for one in images if snapshot.taught_as(one.image.digest) is None]
    key = (snapshot.revision, *[one.id for one in new])
    if server.suggested[0] != key:  # the page asks again and again
        found = await server.encoders.run(lambda: suggestions(snapshot.model, new))
        server.suggested = key, found
    return server.suggested[1]


def suggestions(model: Model, images: list[PendingImage]) -> dict[str, Any]:
    """What :func:`frugalvae.care.suggestions.suggest` finds, by the ids of the images."""
    from frugalvae.care.suggestions import suggest

    if not images:
        return {"suggestions": [], "groups": []}
    try:
        x = np.array([one.image.features for one in images], np.float32)  # (n, d)
        found = suggest(model, x, SUGGESTED)
    except InputError:  # the memory keeps nothing to compare with
        return {"suggestions": [], "groups": []}
    rows = [one.to_json() for one in found.suggestions]
    return {
        "suggestions": [{"id": images[row.pop("row")].id, **row} for row in rows],
        "groups": [[images[row].id for row in group] for group in found.groups],
    }
