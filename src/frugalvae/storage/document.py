"""The document of a file: what it must say, whatever its memory and head are.

Every verb checks files with :func:`check_document`, and so does saving. No part is made for it,
so it needs no PyTorch. Labels are written here too, and documents of older formats are brought
up to date; their arrays stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from frugalvae.digests import BY_DIGEST, BYTES, OLDER, unpack_digests, without
from frugalvae.errors import InputError, MemoryFileError
from frugalvae.labels import as_label, is_plain
from frugalvae.model.calibration import Calibration
from frugalvae.model.novelty import TaughtNovelty

if TYPE_CHECKING:
    from numpy.typing import NDArray

FORMAT = 2
GET_ANOTHER = "get another copy, or save the classifier again"

FIELDS = {
    "sha256", "format", "library", "classes", "numbers", "task_of_class", "n_samples_of_class",
    "n_tasks", "n_taught", "n_features", "feature_names", "head_due", "parameters", "memory",
    "head", "confidence", "encoder", "history",
}  # fmt: skip
#: Fields of what not every file has: written if there is any.
OPTIONAL = {*BY_DIGEST, "aliases"}
PARAMETERS = {"memory", "head", "random_state", "calibrate"}
PART = (
    {"class", "fields"},
    {"class", "settings", "learned"},
    {"class", "settings", "learned", "name"},
)

#: What a file says that knows no class: nothing but its settings, other names and history.
EMPTY: dict[str, Any] = {
    "numbers": [],
    "task_of_class": [],
    "n_samples_of_class": [],
    "n_tasks": 0,
    "n_taught": 0,
    "n_features": 0,
    "feature_names": None,
    "head_due": False,
    "memory": None,
    "head": None,
    "encoder": None,
}

LARGEST = 2**53  # of a whole number: floats are exact up to there
MOST_SAMPLES = 2**32 - 1  # of a class: what a memory has four bytes for
USUAL = 2**16  # features that a file of any size may have


def check_document(document: Mapping[str, Any], size: int) -> None:
    """Refuse a document that contradicts itself, or claims more than ``size`` bytes can hold."""
    _check_fields(document, FIELDS | (OPTIONAL & document.keys()), "its document")
    history = document["history"]
    events = isinstance(history, list) and all(isinstance(event, dict) for event in history)
    _require(events, "its history is no list of events")
    classes = len(labels_from_json(document["classes"]))
    if not classes:
        left = [name for name, value in EMPTY.items() if repr(document[name]) != repr(value)]
        left += [name for name in BY_DIGEST if name in document]
        _require(not left, "it has no labels, and yet it has more")
    else:
        _check_counts(document, classes)
        _check_whole("n_features", document["n_features"], 1, max(USUAL, size))
    _check_taught(document)
    names = document["feature_names"]
    texts = isinstance(names, list) and all(isinstance(name, str) for name in names)
    named = names is None or (texts and len(names) == document["n_features"])
    _require(named, "its names of features are not as many as there are features")
    _require(type(document["head_due"]) is bool, "head_due is neither true nor false")
    parameters = document["parameters"]
    _check_fields(parameters, PARAMETERS, "what it was made with")
    _check_whole("random_state", parameters["random_state"], 0, 2**128)
    _require(type(parameters["calibrate"]) is bool, "calibrate is neither true nor false")
    for role in ("memory", "head"):
        if not isinstance(parameters[role], str | None):
            _check_part(parameters[role], role)
        if classes:
            _check_part(document[role], role)
    try:
        _, novelty = read_confidence(document["confidence"])
    except (InputError, TypeError, OverflowError) as error:
        raise MemoryFileError(f"its confidence cannot be used ({error})") from error
    _check_whole("count", novelty.count, 0, LARGEST)
    _check_encoder(document["encoder"])


def read_confidence(saved: Mapping[str, Any]) -> tuple[Calibration, TaughtNovelty]:
    """What files keep under one name: the temperature, and the novelty of taught samples.

    >>> read_confidence({"temperature": 2.0})
    (Calibration(temperature=2.0), TaughtNovelty(quantiles=(), count=0, score='distance'))
    """
    novelty = {**saved}
    temperature = novelty.pop("temperature", Calibration.temperature)
    return Calibration(temperature), TaughtNovelty(**novelty)


def _check_part(written: Any, role: str) -> None:
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
    gone = [event.get("gone") for event in document["history"]]  # one class, unless more are named
    most = classes + sum(max(1, len(names)) if isinstance(names, list) else 1 for names in gone)
    _check_whole("n_taught", n_taught, 1, most)
    _check_whole("n_tasks", n_tasks, 1, n_taught)
    for name, most in (
        ("numbers", n_taught - 1),
        ("task_of_class", n_tasks - 1),
        ("n_samples_of_class", MOST_SAMPLES),
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


def _check_taught(document: Mapping[str, Any]) -> None:
    """Digests of each class, and other names of classes, if there are any."""
    labels = document["classes"]["values"]
    for name in BY_DIGEST:
        if name not in document:
            continue
        _check_fields(document[name], {"counts", "rows"}, "what it says of digests")
        counts = document[name]["counts"]
        fits = isinstance(counts, list) and len(counts) == len(labels)
        _require(fits, "it has not a number of digests for each of its classes")
        for count in counts:
            _check_whole("a number of digests", count, 0, LARGEST)
    aliases = document.get("aliases", {})
    _require(isinstance(aliases, dict), "its other names of classes are no JSON object")
    texts = set(map(str, labels))
    for name, label in aliases.items():
        right = is_plain(name) and name not in texts
        right &= label is None or any(label == y and type(label) is type(y) for y in labels)
        _require(right, f"its other name {name[:40]!r} is of no class")


def read_digests(
    document: Mapping[str, Any], name: str, read: Callable[[Any, str], Any]
) -> dict[int, NDArray[np.bytes_]]:
    """Digests by the number of their class, of what a file packs under a name; or none."""
    if name not in document:
        return {}
    packed = read(document[name]["rows"], name)
    counts, numbers = document[name]["counts"], document["numbers"]
    right = isinstance(packed, np.ndarray) and packed.dtype == np.uint8
    right = right and packed.shape in {(sum(counts), size) for size in (BYTES, OLDER)}
    _require(right, "its digests are not as many")
    found = np.split(unpack_digests(packed), np.cumsum(counts)[:-1])
    by_number = zip(numbers, found, strict=True)
    return {number: np.sort(of_class) for number, of_class in by_number if len(of_class)}


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


# --------------------------------------------------------------------------- labels


WHOLE = [f"{sign}int{size}" for sign in ("", "u") for size in (8, 16, 32, 64)]
WIDEST = 2**26  # bytes that names of unequal length may be filled up to

#: What labels of a type are in JSON.
TYPES: dict[str, type] = {
    "str": str,
    "object": str,
    "bool": bool,
    **dict.fromkeys(WHOLE, int),
    **dict.fromkeys(["float16", "float32", "float64"], float),
}


def labels_to_json(labels: NDArray[Any]) -> dict[str, Any]:
    """Labels and their type.

    >>> labels_to_json(np.array(["cat", "emu"]))
    {'dtype': 'str', 'values': ['cat', 'emu']}
    """
    dtype = "str" if labels.dtype.kind == "U" else labels.dtype.name
    values = labels.tolist()
    if dtype not in TYPES or not all(type(label) is TYPES[dtype] for label in values):
        raise InputError(
            f"labels like {values[0]!r} of type {labels.dtype} cannot be saved; "
            "teach names or whole numbers"
        )
    return {"dtype": dtype, "values": values}


def labels_from_json(written: Any) -> NDArray[Any]:
    """The labels that were written: distinct, and the same after they became an array.

    >>> labels_from_json({"dtype": "int8", "values": [7, 300]})
    Traceback (most recent call last):
    ...
    frugalvae.errors.MemoryFileError: a label of it is not of the type 'int8' ...
    """
    match written:
        case {"dtype": str(dtype), "values": list(values), **others} if (
            dtype in TYPES and not others
        ):
            right = all(type(label) is TYPES[dtype] for label in values)
        case _:
            raise MemoryFileError("its labels are none of a type that this version knows")
    if not right:
        raise MemoryFileError(f"its labels are not of the type {dtype!r} that they should be")
    if len(set(values)) < len(values):
        raise MemoryFileError("it has one of its labels twice")
    if TYPES[dtype] is str:
        _check_names(values)
    try:
        labels = np.array(values, dtype=dtype)
    except OverflowError:
        labels = np.array([])
    if labels.tolist() != values:
        raise MemoryFileError(f"a label of it is not of the type {dtype!r} that it should be")
    return labels


def _check_names(names: list[str]) -> None:
    for name in names:
        if not is_plain(name):
            raise MemoryFileError(f"its label {name[:40]!r} has control characters, or no end")
    if len(set(map(as_label, names))) < len(names):
        raise MemoryFileError(
            "two of its labels look the same; rename one with the version that wrote it"
        )
    longest = max(map(len, names), default=0)
    if 4 * longest * len(names) > max(WIDEST, 64 * sum(map(len, names))):
        raise MemoryFileError(f"a label of it has {longest:,} characters")


def as_kept(document: dict[str, Any]) -> dict[str, Any]:
    """A checked document with all labels as this version keeps them."""
    classes = document["classes"]
    labels = [as_label(label) for label in classes["values"]]
    kept = {**document, "classes": {**classes, "values": labels}}
    if "aliases" in document:
        names = {as_label(name): as_label(y) for name, y in document["aliases"].items()}
        kept["aliases"] = without(names, labels)
    return kept


# --------------------------------------------------------------------------- older formats


def to_2(document: dict[str, Any]) -> dict[str, Any]:
    """The head ``bayes`` divides its tempering by the root of d, the feature dimension: it was d.

    The first versions wrote fewer fields: nothing could be forgotten, and counts were not kept.
    """
    try:
        head, classes = document["head"], len(document["classes"]["values"])
        added: dict[str, Any] = {
            "numbers": list(range(classes)),
            "n_samples_of_class": [0] * classes,
            "n_taught": classes,
            "confidence": {},
        }
        document = {
            **added,
            **document,
            "parameters": {"calibrate": False, **document["parameters"]},
        }
        if head["class"] != "BayesHead":
            return document
        width = document["memory"]["learned"].get("rank_", document["n_features"])
        tempering = head["settings"]["tempering"] / math.sqrt(width)
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise MemoryFileError(f"its head is none that this version knows; {GET_ANOTHER}") from error
    settings = {**head["settings"], "tempering": tempering}
    return {**document, "head": {**head, "settings": settings}}


#: For each older format, what makes its document one of the next.
MIGRATIONS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {1: to_2}


def migrated(document: dict[str, Any]) -> dict[str, Any]:
    """A document of some format as one of this version's."""
    for version in range(document["format"], FORMAT):
        if version not in MIGRATIONS:
            raise MemoryFileError(f"there is no format {version}; {GET_ANOTHER}")
        document = MIGRATIONS[version](document)
    return document
