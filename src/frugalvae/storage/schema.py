"""What the document of a file must say, whatever its memory and head are.

Every verb checks files with :func:`check_document`, and so does saving. No part is made for it,
so it needs no PyTorch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from frugalvae.calibration import Calibration
from frugalvae.checks import is_plain
from frugalvae.errors import InputError, MemoryFileError
from frugalvae.novelty import TaughtNovelty
from frugalvae.storage.labels import labels_from_json

FIELDS = {
    "sha256", "format", "library", "classes", "numbers", "task_of_class", "n_samples_of_class",
    "n_tasks", "n_taught", "n_features", "feature_names", "head_due", "parameters", "memory",
    "head", "confidence", "encoder", "history",
}  # fmt: skip
PARAMETERS = {"memory", "head", "random_state", "calibrate"}
PART = (
    {"class", "fields"},
    {"class", "settings", "learned"},
    {"class", "settings", "learned", "name"},
)

LARGEST = 2**53  # of a whole number: floats are exact up to there
USUAL = 2**16  # features that a file of any size may have


def check_document(document: Mapping[str, Any], size: int) -> None:
    """Refuse a document that contradicts itself, or claims more than ``size`` bytes can hold."""
    _check_fields(document, FIELDS, "its document")
    labels = labels_from_json(document["classes"])
    _check_counts(document, len(labels))
    _check_whole("n_features", document["n_features"], 1, max(USUAL, size))
    _check_names(document["feature_names"], document["n_features"])
    _require(type(document["head_due"]) is bool, "head_due is neither true nor false")
    _check_parameters(document["parameters"])
    for role in ("memory", "head"):
        check_part(document[role], role)
    try:
        read_confidence(document["confidence"])
    except (InputError, TypeError, OverflowError) as error:
        raise MemoryFileError(f"its confidence cannot be used ({error})") from error
    _check_whole("count", document["confidence"].get("count", 0), 0, LARGEST)
    _check_encoder(document["encoder"])
    history = document["history"]
    events = isinstance(history, list) and all(isinstance(event, dict) for event in history)
    _require(events, "its history is no list of events")


def read_confidence(saved: Mapping[str, Any]) -> tuple[Calibration, TaughtNovelty]:
    """What files keep under one name: the temperature, and the novelty of taught samples.

    >>> read_confidence({"temperature": 2.0})
    (Calibration(temperature=2.0), TaughtNovelty(quantiles=(), count=0))
    """
    novelty = {**saved}
    temperature = novelty.pop("temperature", Calibration.temperature)
    return Calibration(temperature), TaughtNovelty(**novelty)


def check_part(written: Any, role: str) -> None:
    """Refuse what is no object of a class, by its outline."""
    outline = set(written) if isinstance(written, dict) else set()
    _require(outline in PART, f"its {role} is none that this version knows")
    texts = [written["class"], written.get("name") or "unnamed"]
    _require(all(is_plain(text) for text in texts), f"the name of its {role} is no name")
    inner = [written[key] for key in outline - {"class", "name"}]
    _require(all(isinstance(value, dict) for value in inner), f"its {role} is no object")


def _check_counts(document: Mapping[str, Any], classes: int) -> None:
    """Numbers, tasks and counts of classes: as many as there are labels, and in order."""
    n_tasks, n_taught = document["n_tasks"], document["n_taught"]
    forgotten = len(document["history"]) if isinstance(document["history"], list) else 0
    _check_whole("n_taught", n_taught, 1, classes + forgotten)  # an event forgets one class
    _check_whole("n_tasks", n_tasks, 1, n_taught)
    for name, most in (
        ("numbers", n_taught - 1),
        ("task_of_class", n_tasks - 1),
        ("n_samples_of_class", LARGEST),
    ):
        values = document[name]
        _require(
            isinstance(values, list) and len(values) == classes,
            f"{name} has not an entry for each of its {classes} classes",
        )
        for value in values:
            _check_whole(name, value, 0, most)
    numbers, tasks = document["numbers"], document["task_of_class"]
    in_order = numbers == sorted(set(numbers)) and tasks == sorted(tasks)
    _require(in_order, "its classes and the tasks that taught them do not belong together")


def _check_parameters(parameters: Any) -> None:
    _check_fields(parameters, PARAMETERS, "what it was made with")
    _check_whole("random_state", parameters["random_state"], 0, 2**128)
    _require(type(parameters["calibrate"]) is bool, "calibrate is neither true nor false")
    for role in ("memory", "head"):
        named = parameters[role] is None or isinstance(parameters[role], str)
        if not named:
            check_part(parameters[role], role)


def _check_encoder(encoder: Any) -> None:
    """Refuse fields of the wrong type in what finds the encoder again; others are free."""
    _require(isinstance(encoder, dict | None), "its encoder is no JSON object")
    given = (encoder or {}).get("given") or {}
    _require(isinstance(given, dict), "how its encoder was asked for is no JSON object")
    settings = given.get("settings", {})
    _require(isinstance(settings, dict), "the settings of its encoder are no JSON object")
    texts = [(encoder or {}).get(name) for name in ("encoder", "model", "weights")]
    for text in [*texts, given.get("name"), settings.get("model")]:
        _require(text is None or is_plain(text), f"its encoder is {str(text)[:40]!r}")


def _check_names(names: Any, features: int) -> None:
    if names is not None:
        texts = isinstance(names, list) and all(isinstance(name, str) for name in names)
        right = texts and len(names) == features
        _require(right, "its names of features are not as many as there are features")


def _check_fields(written: Any, expected: set[str], what: str) -> None:
    _require(isinstance(written, dict), f"{what} is no JSON object")
    for name in sorted(expected - written.keys()):
        raise MemoryFileError(f"{what} lacks {name!r}")
    for name in sorted(written.keys() - expected):
        raise MemoryFileError(f"{what} has a field {name!r}, which this version does not know")


def _check_whole(name: str, value: Any, least: int, most: int) -> None:
    """Refuse what is no whole number in these bounds."""
    if type(value) is not int or not least <= value <= most:
        large = isinstance(value, int) and abs(value) > 10**40
        shown = "far too large" if large else str(value)[:40]
        raise MemoryFileError(f"{name} is {shown}; expected a whole number from {least} to {most}")


def _require(right: bool, otherwise: str) -> None:
    if not right:
        raise MemoryFileError(otherwise)
