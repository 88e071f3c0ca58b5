"""The tray: recent questions, with features and small pictures, in memory and for a while."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from frugalvae.server.refusals import RefusedError

if TYPE_CHECKING:
    from frugalvae.server.looking import Seen
    from frugalvae.server.settings import Limits

OVERHEAD = 2_000  # bytes of a question beside its picture and its features, about


@dataclass
class Question:
    """A picture that was asked about.

    Attributes
    ----------
    answer, revision
        What was answered, as JSON, and by which state of the file; asked again, the last of it.
    """

    id: str
    seen: Seen
    answer: dict[str, Any]
    revision: str | None
    since: float
    when: str

    @property
    def bytes(self) -> int:
        """What it takes, about."""
        return len(self.seen.small) + self.seen.features.nbytes + OVERHEAD


class Tray:
    """Pictures that were asked about: some that are shown, and some that wait to be taught.

    Both are bounded in number, bytes and time; the oldest go first.
    """

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits, self._clock = limits, clock
        self._shown: OrderedDict[str, Question] = OrderedDict()
        self._quiet: OrderedDict[str, Question] = OrderedDict()

    def add(self, seen: Seen, answer: dict[str, Any], revision: str | None = None) -> str:
        """Remember a question, to be shown if it has a picture; the id of it."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        name = secrets.token_urlsafe(9)
        question = Question(name, seen, answer, revision, self._clock(), now)
        (self._shown if seen.small else self._quiet)[question.id] = question
        self._drop_old()
        return question.id

    def shown(self) -> list[Question]:
        """Those with a picture, newest first."""
        self._drop_old()
        return list(reversed(self._shown.values()))

    def left(self, question: Question) -> float:
        """Seconds until a question is forgotten."""
        return self.limits.seconds_remembered - (self._clock() - question.since)

    @property
    def bytes(self) -> int:
        """What all of them take, about."""
        return sum(one.bytes for kept in (self._shown, self._quiet) for one in kept.values())

    def get(self, ids: Iterable[str]) -> list[Question]:
        """Some of them; a refusal if one is no longer remembered."""
        self._drop_old()
        wanted, kept = list(dict.fromkeys(ids)), {**self._quiet, **self._shown}
        gone = [name for name in wanted if name not in kept]
        if gone:
            minutes = self.limits.seconds_remembered / 60
            raise RefusedError(
                410,
                f"{len(gone)} of {len(wanted)} pictures are no longer remembered: the last "
                f"{self.limits.recent} are, for {minutes:g} minutes; send them again",
                gone=gone,
            )
        return [kept[name] for name in wanted]

    def remove(self, ids: Iterable[str] | None = None) -> int:
        """Forget some of them, or all that are shown; how many these were."""
        names = list(self._shown) if ids is None else list(ids)
        found = [self._shown.pop(name, None) or self._quiet.pop(name, None) for name in names]
        return sum(one is not None for one in found)

    def _drop_old(self) -> None:
        for kept, most in ((self._shown, self.limits.recent), (self._quiet, self.limits.quiet)):
            taken = sum(one.bytes for one in kept.values())
            while kept:
                oldest = next(iter(kept.values()))
                if len(kept) <= most and taken <= self.limits.remembered and self.left(oldest) >= 0:
                    break
                taken -= kept.popitem(last=False)[1].bytes
