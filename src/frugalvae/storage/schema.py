"""What may stand in the document of a file, whatever its memory and head are.

Every verb checks files with :func:`check_document`, and so does saving. No part is made for it,
so it needs no PyTorch. Labels, digests and confidence are turned to JSON and back here, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from frugalvae.digests import BY_DIGEST, BYTES, unpack_digests
from frugalvae.errors import InputError, MemoryFileError
from frugalvae.labels import LONGEST, as_label, is_plain
from frugalvae.model.confidence import Calibration, TaughtNovelty

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: The type of each field, or several.
FIELDS: dict[str, tuple[type, ...]] = {
    "sha256": (str,),
    "format": (int,),
    "library": (str,),
    "classes": (dict,),
    "numbers": (list,),
    "task_of_class": (list,),
    "n_samples_of_class": (list,),
    "n_tasks": (int,),
    "n_taught": (int,),
    "n_features": (int,),
    "feature_names": (list, type(None)),
    "head_due": (bool,),
    "parameters": (dict,),
    "memory": (dict, type(None)),
    "head": (dict, type(None)),
    "confidence": (dict,),
    "encoder": (dict, type(None)),
    "history": (list,),
}
#: The same of what not every file has: written if there is any.
OPTIONAL: dict[str, tuple[type, ...]] = {**dict.fromkeys(BY_DIGEST, (dict,)), "aliases": (dict,)}
PARAMETERS: dict[str, tuple[type, ...]] = {
    "memory": (str, dict, type(None)),
    "head": (str, dict, type(None)),
    "random_state": (int,),
    "calibrate": (bool,),
}
PART: dict[str, tuple[type, ...]] = {"class": (str,), "state": (dict,)}
DIGESTS: dict[str, tuple[type, ...]] = {"counts": (list,), "rows": (dict,)}

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

#: What types are called in errors.
WORDS = {
    bool: "true or false",
    int: "a whole number",
    str: "text",
    list: "a list",
    dict: "a JSON object",
    type(None): "null",
}

LARGEST = 2**53  # of a whole number: floats are exact up to there
MOST_SAMPLES = 2**32 - 1  # of a class: what a memory has four bytes for
USUAL = 2**16  # features that a file of any size may have


def check_document(document: Mapping[str, Any], size: int) -> None:
    """Refuse a document that contradicts itself, or claims more than ``size`` bytes can hold."""
    optional = {name: kinds for name, kinds in OPTIONAL.items() if name in document}
    _check_fields(document, FIELDS | optional, "its document")
    events = all(isinstance(event, dict) for event in document["history"])
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
    texts = names is None or all(isinstance(name, str) for name in names)
    fits = texts and (names is None or len(names) == document["n_features"])
    _require(fits, "its names of features are not as many as there are features")
    parameters = document["parameters"]
    _check_fields(parameters, PARAMETERS, "its parameters")
    _check_whole("random_state", parameters["random_state"], 0, 2**128)
    for role in ("memory", "head"):
        if isinstance(parameters[role], dict):
            _check_part(parameters[role], role)
        if classes:
            _check_part(document[role], role)
    try:
        _, novelty = read_confidence(document["confidence"])
    except (InputError, TypeError, OverflowError) as error:
        raise MemoryFileError(f"its confidence cannot be used ({error})") from error
    _check_whole("count", novelty.count, 0, LARGEST)
    _check_encoder(document["encoder"] or {})


def _check_fields(written: Any, expected: Mapping[str, tuple[type, ...]], what: str) -> None:
    """Refuse what is no object with exactly these fields, each of its type."""
    _require(isinstance(written, dict), f"{what} is no JSON object")
    for name in sorted(expected.keys() - written.keys()):
        raise MemoryFileError(f"{what} lacks {name!r}")
    for name in sorted(written.keys() - expected.keys()):
        raise MemoryFileError(f"{what} has a field {name!r}, which this version does not know")
    for name, kinds in expected.items():
        if type(written[name]) not in kinds:
            words = " or ".join(WORDS[kind] for kind in kinds)
            raise MemoryFileError(f"{name} is {str(written[name])[:40]!r}; expected {words}")


def _check_part(written: Any, role: str) -> None:
    """Refuse what is no part, by its outline."""
    named = {"name": (str,)} if isinstance(written, dict) and "name" in written else {}
    _check_fields(written, PART | named, f"its {role}")
    texts = [written["class"], written.get("name", "unnamed")]
    _require(all(map(is_plain, texts)), f"the name of its {role} is no name")


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
        fits = len(document[name]) == classes
        _require(fits, f"{name} has not an entry for each of its {classes} classes")
        for value in document[name]:
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
        _check_fields(document[name], DIGESTS, f"its {name}")
        counts = document[name]["counts"]
        _require(len(counts) == len(labels), f"its {name} have no count for each of its classes")
        for count in counts:
            _check_whole("a number of digests", count, 0, LARGEST)
    texts = set(map(str, labels))
    for name, label in document.get("aliases", {}).items():
        right = is_plain(name) and name not in texts
        right &= label is None or any(label == y and type(label) is type(y) for y in labels)
        _require(right, f"its other name {name[:40]!r} is of no class")


def _check_encoder(encoder: Mapping[str, Any]) -> None:
    """Refuse fields of the wrong type in what finds the encoder again; others are free."""
    given = encoder.get("given") or {}
    _require(isinstance(given, dict), "how its encoder was chosen is no JSON object")
    settings = given.get("settings", {})
    _require(isinstance(settings, dict), "the settings of its encoder are no JSON object")
    texts = [encoder.get(name) for name in ("encoder", "model", "weights")]
    for text in [*texts, given.get("name"), settings.get("model")]:
        _require(text is None or is_plain(text), f"its encoder is {str(text)[:40]!r}")


def _check_whole(name: str, value: Any, least: int, most: int) -> None:
    """Refuse what is no whole number in these bounds."""
    if type(value) is not int or not least <= value <= most:
        large = isinstance(value, int) and abs(value) > 10**40
        shown = "far too large" if large else str(value)[:40]
        raise MemoryFileError(f"{name} is {shown}; expected a whole number from {least} to {most}")


def _require(right: bool, otherwise: str) -> None:
    if not right:
        raise MemoryFileError(otherwise)


# --------------------------------------------------------------------------- fields


def read_confidence(saved: Mapping[str, Any]) -> tuple[Calibration, TaughtNovelty]:
    """What files keep under one name: the temperature, and the novelty of taught samples.

    >>> read_confidence({"temperature": 2.0})
    (Calibration(temperature=2.0), TaughtNovelty(quantiles=(), count=0, score='distance'))
    """
    novelty = {**saved}
    temperature = novelty.pop("temperature", Calibration.temperature)
    return Calibration(temperature), TaughtNovelty(**novelty)


def read_digests(
    document: Mapping[str, Any], name: str, read: Callable[[Any, str], Any]
) -> dict[int, NDArray[np.bytes_]]:
    """Digests by the number of their class, of what a file packs under a name; or none."""
    if name not in document:
        return {}
    packed = read(document[name]["rows"], name)
    counts, numbers = document[name]["counts"], document["numbers"]
    right = isinstance(packed, np.ndarray) and packed.dtype == np.uint8
    _require(right and packed.shape == (sum(counts), BYTES), "its digests are not as many")
    found = np.split(unpack_digests(packed), np.cumsum(counts)[:-1])
    by_number = zip(numbers, found, strict=True)
    return {number: np.sort(of_class) for number, of_class in by_number if len(of_class)}


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
    _require(right, f"its labels are not of the type {dtype!r} that they should be")
    _require(len(set(values)) == len(values), "it has one of its labels twice")
    if TYPES[dtype] is str:
        _check_names(values)
    try:
        labels = np.array(values, dtype=dtype)
    except OverflowError:
        labels = np.array([])
    fits = labels.tolist() == values
    _require(fits, f"a label of it is not of the type {dtype!r} that it should be")
    return labels


def _check_names(names: list[str]) -> None:
    """Names that can be shown, each in its one writing, and of about the same length."""
    for name in names:
        shown = f"its label {name[:40]!r}"
        too_long = f"{shown}... has {len(name):,} characters; expected at most {LONGEST}"
        _require(len(name) <= LONGEST, too_long)
        _require(is_plain(name), f"{shown} contains control characters or is not valid text")
        _require(as_label(name) == name, f"{shown} has blanks or accents that no label has")
    longest = max(map(len, names), default=0)
    if 4 * longest * len(names) > max(WIDEST, 64 * sum(map(len, names))):
        raise MemoryFileError(f"a label of it has {longest:,} characters")
