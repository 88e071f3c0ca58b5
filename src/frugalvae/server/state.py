"""The state of a server: what all requests share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from frugalvae.files import write_bytes
from frugalvae.images.decode import HEAD, format_of
from frugalvae.server.looking import Looker, key_of
from frugalvae.server.metrics import Metrics
from frugalvae.server.reading import RequestReader
from frugalvae.server.refusals import RefusedError, is_full
from frugalvae.server.served import Served
from frugalvae.server.tray import Question, Tray
from frugalvae.server.workers import Workers

if TYPE_CHECKING:
    from frugalvae.model.answers import Answer
    from frugalvae.model.model import Model
    from frugalvae.server.looking import Seen
    from frugalvae.server.settings import Settings

FETCHED = 4  # pictures that are fetched from Label Studio at a time


class ServerState:
    """The file, the encoder, the tray and the counters of a server."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.served, self.looker = Served(settings), Looker(settings)
        self.reader, self.tray = RequestReader(settings.limits), Tray(settings.limits)
        self.metrics = Metrics()
        # Each takes as long as fifty questions, which do not wait for it.
        self.explaining = Workers("frugalvae-explaining", 2, 1, settings.limits.seconds)
        self.fetching = Workers("frugalvae-fetching", FETCHED, FETCHED, settings.limits.seconds)
        self.suggested: tuple[tuple[str, ...], dict[str, Any]] = ((), {})

    def warm_up(self) -> None:
        """Read the file and load the encoder, before the first request needs them."""
        snapshot = self.served.read()
        if snapshot is not None or self.settings.teach:
            self.looker.eye(snapshot.model.remembered if snapshot else {})

    def remember(self, seen: Seen, answer: Answer, revision: str | None) -> str:
        """Put a question into the tray; its id."""
        return self.tray.add(seen, answer.to_json(), revision)

    def find(self, ids: list[str], model: Model | None) -> list[Question]:
        """Questions by their ids, if the encoder of the file made their features."""
        found = self.tray.get(ids)
        if len(of_encoder(found, model)) < len(found):
            why = "the file has another encoder now; send the pictures again"
            raise RefusedError(410, why, gone=ids)
        return found

    def keep(self, content: bytes, digest: bytes) -> None:
        """Write a picture into the folder that was given for it, under its digest."""
        assert self.settings.keep is not None
        known = (format_of(content[:HEAD]) or "image").lower()
        ending = {"jpeg": "jpg", "jpeg2000": "jp2"}.get(known, known)
        path = self.settings.keep / f"{digest.hex()}.{ending}"
        try:
            if not path.exists():
                write_bytes(path, content)
        except OSError as error:
            if not is_full(error):
                raise
            raise RefusedError(
                507,
                "there is no room for the picture in the folder of --keep; make room on the disk",
            ) from error

    def refuse_unreadable(self, results: list[dict[str, Any]]) -> NoReturn:
        """Refuse a request of which no picture can be read."""
        reasons = [found["reason"] for found in results]
        too_large = bool(reasons) and all("pixels" in why for why in reasons)
        raise RefusedError(
            413 if too_large else 422,
            f"no image can be read: {reasons[0] if reasons else 'none was sent'}",
            unreadable=results,
        )

    def close(self) -> None:
        """Finish what is begun."""
        self.looker.close()
        self.explaining.close()
        self.fetching.close()
        self.served.close()


def of_encoder(questions: list[Question], model: Model | None) -> list[Question]:
    """Those whose features the encoder of the file made; all, if it has none yet."""
    if model is None or not model.encoder:
        return questions
    key = key_of(model.encoder)
    return [question for question in questions if question.seen.encoder == key]
