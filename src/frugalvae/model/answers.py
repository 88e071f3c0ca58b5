"""Answers: which classes an input shows, how probably, if any; and how many to expect right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from frugalvae.formatting import printable, shortened

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from frugalvae.model.model import Model

NONE, UNSURE = "none of these", "not sure"
FEW = 5  # samples of a class below which it is often missed beside larger ones
THRESHOLD = 0.05  # of familiarity, below which an input belongs to no taught class


@dataclass(frozen=True)
class Answer:
    """What an input shows.

    Attributes
    ----------
    top
        The likeliest classes with their probabilities; none if none is likely enough.
    known, familiarity
        Whether the input belongs to a taught class at all, and the score that says so; None if
        that was not asked.
    sure
        Whether the answer is among those of which few enough are wrong; None if not asked.
    among
        Classes of which the right one is probably one; None if not asked.
    """

    input: str
    top: list[tuple[Any, float]]
    known: bool | None = None
    familiarity: float | None = None
    sure: bool | None = None
    among: list[Any] | None = None

    @property
    def label(self) -> Any:
        """The likeliest class; None if it is none of them, or none is likely or sure enough."""
        refused = self.known is False or self.sure is False
        return self.top[0][0] if self.top and not refused else None

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        found = {
            "input": self.input,
            "label": self.label,
            "known": self.known,
            "familiarity": self.familiarity,
            "top": [{"label": label, "probability": chance} for label, chance in self.top],
        }
        optional = {"sure": self.sure, "set": self.among}
        return found | {name: value for name, value in optional.items() if value is not None}


@dataclass(frozen=True)
class Unreadable:
    """An input that cannot be read, and why; ``skipped`` if a folder has it and it is no image."""

    input: str
    reason: str
    skipped: bool = False

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"input": self.input, "reason": self.reason}


#: Some results that came together.
Batch = list[Answer | Unreadable]


def rank(
    model: Model,
    names: list[str],
    x: NDArray[np.float32],
    top: int = 1,
    min_probability: float = 0.0,
    threshold: float | None = None,
    error: float | None = None,
    coverage: float | None = None,
) -> list[Answer]:
    """The likeliest classes of each input; whether it is known, if there is a threshold.

    Parameters
    ----------
    names
        What the inputs are called.
    x
        Their features (n, d).
    top, min_probability
        How many classes to name, and how probable they have to be.
    threshold
        How familiar an input has to look to be taken for known; None does not ask.
    error
        The share of answers that may be wrong; None does not ask.
    coverage
        How often the right class has to be in the set; None does not ask.

    Examples
    --------
    >>> from frugalvae.model.model import Model
    >>> model = Model().learn([[0.0, 1.0], [1.0, 0.0]], ["cat", "emu"])
    >>> [answer] = rank(model, ["a.jpg"], [[0.0, 1.0]], threshold=0.05)
    >>> answer.label, answer.known
    ('cat', True)
    """
    if not names:
        return []
    classes, chances = model.classes.tolist(), model.predict_proba(x)  # (n, k)
    order = (-chances).argsort(axis=1, kind="stable")[:, :top]
    nothing = [None] * len(names)
    scores = nothing if threshold is None else model.familiarity(x).tolist()
    sure = nothing if error is None else model.is_reliable(x, error).tolist()
    sets = nothing if coverage is None else model.predict_set(x, coverage)
    answers = []
    for row, (name, score) in enumerate(zip(names, scores, strict=True)):
        ranked = [(classes[place], float(chances[row, place])) for place in order[row].tolist()]
        likely = [(label, p) for label, p in ranked if p >= min_probability]
        known = None if threshold is None or score is None else score >= threshold
        answers.append(Answer(name, likely, known, score, sure[row], sets[row]))
    return answers


# --------------------------------------------------------------------------- what to expect


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
    >>> found["classes"] = {"cat": 1.0, "dax": 0.2, "emu": 0.9, "fox": 0.5}
    >>> found["intervals"] = {"cat": [0.8, 1.0], "emu": [0.7, 0.9], "fox": [0.3, 0.7]}
    >>> expectation(found)
    ['expected accuracy on new images like these: about 77% (70 to 83), lowest of fox (50%)']
    >>> expectation(found | {"enough": False})
    ['expected accuracy on new images like these: too few images were tested']
    >>> expectation(None)
    []
    """
    if found is None:
        return []
    accuracy, lowest = "too few images were tested", ""
    if found["enough"]:
        low, high = 100 * found["low"], 100 * found["high"]
        accuracy = f"about {found['accuracy']:.0%} ({low:.0f} to {high:.0f})"
        sayable = {label: found["classes"][label] for label in found["intervals"]}
        worst = sorted(sayable.items(), key=lambda item: item[1])[:2]
        hard = [f"{label} ({share:.0%})" for label, share in worst if share < 0.9]
        lowest = f", lowest of {printable(', '.join(hard))}" if hard else ""
    return [f"expected accuracy on new images like these: {accuracy}{lowest}"]
