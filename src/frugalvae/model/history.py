"""The history of a model: what it notes of a change, and what that is in words."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from frugalvae.formatting import local_time, printable, shortened

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from frugalvae.model.model import Model

MOST = 12  # classes of a task that are named, if not all are asked for
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


# --------------------------------------------------------------------------- in words


def last_changed(document: Mapping[str, Any]) -> str:
    """When it was last taught or changed, as its history says; copying a file changes nothing.

    >>> last_changed({"history": []})
    'at an unknown time'
    """
    when = document["history"][-1].get("when") if document["history"] else None
    return local_time(when) if isinstance(when, str) else "at an unknown time"


def difference(
    now: Mapping[str, Any], before: Mapping[str, Any]
) -> tuple[dict[str, Any] | None, list[str], list[str]]:
    """What going back undoes: the event, names no longer known, and names known again."""
    last = now["history"][-1] if len(now["history"]) > len(before["history"]) else None
    labels = [[str(label) for label in file["classes"]["values"]] for file in (now, before)]
    after, earlier = map(set, labels)
    gone = [label for label in labels[0] if label not in earlier]
    return last, gone, [label for label in labels[1] if label not in after]


def in_words(event: Mapping[str, Any]) -> str:
    """What an event of the history was about.

    >>> in_words({"action": "rename", "from": "wren", "to": "house wren"})
    'wren to house wren'
    >>> in_words({"action": "learn", "classes": {"emu": 1}, "moved": {"dax": 1}, "gone": ["dax"]})
    'emu (1), moved from dax (1); dax had no other and is gone'
    """
    classes = event.get("classes")
    if isinstance(classes, dict) and event.get("action") != "learn":  # 0: an old file does not say
        classes = {name: count or None for name, count in classes.items()}
    shown = named(classes, MOST) if isinstance(classes, dict) else str(classes or "")
    if "from" in event and "to" in event:
        shown = f"{event['from']} to {event['to']}"
    elif isinstance(event.get("from"), list):
        shown += f", of {' and '.join(map(str, event['from']))}"
    shown += f", from {event['source']}" if "source" in event else ""
    return shown + moved_in_words(event)


def moved_in_words(event: Mapping[str, Any]) -> str:
    """Which classes a lesson took samples out of, and which of them had no others.

    >>> moved_in_words({"moved": {"dax": 2, "emu": 1}, "gone": []})
    ', moved from dax (2), emu (1)'
    """
    moved, gone = event.get("moved"), event.get("gone")
    shown = f", moved from {named(moved, MOST)}" if isinstance(moved, dict) and moved else ""
    if isinstance(gone, list) and gone:
        are = "had no other and is gone" if len(gone) == 1 else "had no others and are gone"
        shown += f"; {shortened([str(name) for name in gone])} {are}"
    return shown


def named(classes: Mapping[str, int | None], most: int) -> str:
    """Classes and how many samples each was taught.

    >>> named({"emu": 30, "dax": None, "heron": 0, "cat": 2}, most=3)
    'emu (30), dax, heron (by name only) and 1 more'
    """
    shown = [
        name + (f" ({count})" if count else " (by name only)" if count == 0 else "")
        for name, count in classes.items()
    ]
    return shortened(shown, most)
