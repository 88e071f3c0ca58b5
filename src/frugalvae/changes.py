"""What is noted of a change, which class a name means, and which classes need more samples."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from frugalvae.errors import UnknownClassError, suggestion
from frugalvae.formatting import printable, shortened

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from frugalvae.model import Model

DIGEST = "digest"  # of the samples of an update, in its event of the history
FEW = 5  # samples of a class below which it is often missed beside larger ones


def label_named(path: Path | str, labels: list[Any], typed: str, told: str = "") -> Any:
    """The label that was typed: a name, or a number where labels are numbers.

    ``told`` is where all of them are listed, by default a command.
    """
    from frugalvae.checks import as_label  # imports NumPy, which help does not need

    for label in labels:
        if as_label(str(label)) == as_label(typed):
            return label
    told = told or f"'frugalvae status {path}'"
    raise UnknownClassError(
        f"{path} knows no class {typed!r}.{suggestion(typed, map(str, labels))} "
        f"{told} lists all {len(labels)}"
    )


def like(label: Any, name: str) -> Any:
    """A new name as a label: a number if it is to stand beside numbers."""
    from frugalvae.checks import as_label

    new: Any = as_label(name)
    is_number = not isinstance(label, str) and re.fullmatch(r"-?\d+", new)
    return int(new) if is_number else new


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


def digest_of(label: Any, x: NDArray[np.float32]) -> str:
    """What tells an update from any other: a killed one that is repeated must not count twice."""
    return hashlib.sha256(repr((label, x.shape)).encode() + x.tobytes()).hexdigest()[:16]


def few_samples(labels: Sequence[Any], counts: Sequence[int]) -> str:
    """A warning of classes that are often missed beside larger ones; empty if there are none.

    >>> few_samples(["hat", "shirt", "bag"], [1, 30, 0])
    'fewer than 5 samples, and so often missed: hat; teach more of them'
    >>> few_samples(["hat", "shirt"], [1, 2])
    'every class has fewer than 5 samples: many answers will be wrong; teach more'
    """
    few = [str(label) for label, count in zip(labels, counts, strict=False) if 0 < count < FEW]
    if not few:
        return ""
    if max(counts) < FEW and len(few) > 1:
        return f"every class has fewer than {FEW} samples: many answers will be wrong; teach more"
    names = shortened(few)
    return f"fewer than {FEW} samples, and so often missed: {names}; teach more of them"


def expectation(found: Mapping[str, Any] | None) -> list[str]:
    """Lines about how many new images to expect correct, as ``Forecast.to_json`` has it.

    >>> found = {"accuracy": 0.767, "low": 0.7, "high": 0.83, "enough": True}
    >>> found["classes"] = {"cat": 1.0, "dax": 0.2, "emu": 0.8, "fox": 0.5}
    >>> found["intervals"] = {"cat": [0.8, 1.0], "emu": [0.7, 0.9], "fox": [0.3, 0.7]}
    >>> expectation(found)
    ['expected accuracy on new images: about 77% (70 to 83), lowest of fox (50%), emu (80%)']
    >>> expectation(found | {"enough": False})
    ['expected accuracy on new images: too few images were tested to say']
    >>> expectation(None)
    []
    """
    if found is None:
        return []
    said, lowest = "too few images were tested to say", ""
    if found["enough"]:
        low, high = 100 * found["low"], 100 * found["high"]
        said = f"about {found['accuracy']:.0%} ({low:.0f} to {high:.0f})"
        sayable = {label: found["classes"][label] for label in found["intervals"]}
        worst = sorted(sayable.items(), key=lambda item: item[1])[:2]
        hard = [f"{label} ({share:.0%})" for label, share in worst if share < 0.9]
        lowest = f", lowest of {printable(', '.join(hard))}" if hard else ""
    return [f"expected accuracy on new images: {said}{lowest}"]
