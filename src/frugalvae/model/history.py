"""What the history notes of a change: where samples came from, and what tells it from others."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from frugalvae.formatting import printable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from frugalvae.model.model import Model

DIGEST = "digest"  # of the samples of an update, in its event of the history


def with_source(model: Model, name: str) -> Model:
    """The model with a note in its history of where the last samples came from."""
    *before, last = model.history
    return replace(model, history=(*before, {**last, "source": printable(name)}))


def as_one_lesson(before: Model, after: Model, moved: Mapping[str, int], gone: list[str]) -> Model:
    """The model after a lesson that took samples out of other classes, as one event.

    ``moved`` are these samples by class, ``gone`` the classes that had no others.
    """
    if not moved:
        return after
    done = after.history[len(before.history) :]
    [lesson] = [event for event in done if event["action"] == "learn"]
    remains = [text for event in done for text in event.get("remains", ())]
    notes = {"moved": dict(moved), "gone": gone, "remains": list(dict.fromkeys(remains))}
    return replace(after, history=(*before.history, {**lesson, **notes}))


def with_digest(model: Model, digest: str | None = None) -> Model:
    """With the digest in the last event of the history, and in no other."""
    history = [{k: v for k, v in event.items() if k != DIGEST} for event in model.history]
    if digest is not None:
        history[-1][DIGEST] = digest
    return replace(model, history=tuple(history))


def is_last_change(model: Model, digest: str) -> bool:
    """Whether the last change of a model was this very one, which is not to be made twice."""
    return bool(model.history) and model.history[-1].get(DIGEST) == digest


def digest_of(label: Any, x: NDArray[np.float32]) -> str:
    """What tells an update from any other: a killed one that is repeated must not count twice."""
    return hashlib.sha256(repr((label, x.shape)).encode() + x.tobytes()).hexdigest()[:32]
