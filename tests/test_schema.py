"""The document of a file: what is refused, in which words, and what is let in at every limit."""

from __future__ import annotations

import copy
import re
from typing import Any

import numpy as np
import pytest

from frugalvae.digests import DIGEST, pack_digests
from frugalvae.errors import InputError, MemoryFileError
from frugalvae.storage.model_file import FORMAT
from frugalvae.storage.schema import (
    EMPTY,
    TYPES,
    check_document,
    labels_from_json,
    labels_to_json,
    read_confidence,
    read_digests,
)

MEMORY = {"class": "M", "state": {}}
DOCUMENT: dict[str, Any] = {
    "sha256": "0" * 64,
    "format": FORMAT,
    "library": "1",
    "classes": {"dtype": "str", "values": ["ant", "bee", "cat"]},
    "numbers": [0, 2, 3],
    "task_of_class": [0, 0, 1],
    "n_samples_of_class": [5, 0, 2**32 - 1],
    "n_tasks": 2,
    "n_taught": 4,
    "n_features": 4,
    "feature_names": None,
    "head_due": False,
    "parameters": {"memory": None, "head": "ridge", "random_state": 0, "calibrate": True},
    "memory": MEMORY,
    "head": {"class": "H", "state": {}},
    "confidence": {"temperature": 2.0},
    "encoder": None,
    "history": [{}],
}
#: Of a file that knows no class.
NONE: dict[str, Any] = {
    **DOCUMENT,
    "classes": {"dtype": "str", "values": []},
    "numbers": [],
    "task_of_class": [],
    "n_samples_of_class": [],
    "n_tasks": 0,
    "n_taught": 0,
    "n_features": 0,
    "memory": None,
    "head": None,
}
DIGESTS: dict[str, Any] = {"counts": [1, 0, 2**53], "rows": {"tensor": "x"}}
GONE = object()


def changed(*path: Any, of: dict[str, Any] = DOCUMENT) -> dict[str, Any]:
    """The document with the last of the arguments, or nothing, where the others lead."""
    *keys, last, value = path
    document = copy.deepcopy(of)
    place: Any = document
    for key in keys:
        place = place[key]
    if value is GONE:
        del place[last]
    else:
        place[last] = value
    return document


def refused(document: Any, message: str, size: int = 0) -> None:
    with pytest.raises(MemoryFileError, match=f"^{re.escape(message)}"):
        check_document(document, size)


@pytest.mark.parametrize(
    "change",
    [
        ("n_tasks", 4),
        ("n_features", 2**16),
        ("feature_names", ["a", "b", "c", "d"]),
        ("head_due", True),
        ("history", []),
        ("parameters", "random_state", 2**128),
        ("parameters", "calibrate", False),
        ("parameters", "memory", "moments"),
        ("parameters", "memory", MEMORY),
        ("memory", {**MEMORY, "name": "vae-fo"}),
        ("confidence", {}),
        ("confidence", "count", 2**53),
        ("confidence", "count", 0),
        ("encoder", {}),
        ("encoder", {"encoder": "clip", "model": None, "given": None, "more": 3}),
        ("encoder", {"weights": "w", "given": {"name": "n", "settings": {"model": "m"}}}),
        ("digests", DIGESTS),
        ("withheld", DIGESTS),
        ("aliases", {"old": "ant", "gone": None}),
    ],
)
def test_what_is_right_is_let_in(change: Any) -> None:
    document = changed(*change)
    if change == ("history", []):
        document["n_taught"], document["numbers"] = 3, [0, 1, 2]
    check_document(document, 0)


LIST = "has not an entry for each of its 3 classes"
ORDER = "its classes and the tasks that taught them do not belong together"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("numbers", GONE), "its document lacks 'numbers'"),
        (("more", 3), "its document has a field 'more', which this version does not know"),
        (("history", 3), "history is '3'; expected a list"),
        (("library", None), "library is 'None'; expected text"),
        (("history", [{}, 3]), "its history is no list of events"),
        (("n_features", 0), "n_features is 0; expected a whole number from 1 to 65536"),
        (("n_features", 2**16 + 1), "n_features is 65537; expected a whole number from 1 to 65536"),
        (("n_features", True), "n_features is 'True'; expected a whole number"),
        (("n_features", "four"), "n_features is 'four'; expected a whole number"),
        (("n_features", 10**40), f"n_features is 1{'0' * 39}; expected"),
        (("n_features", 10**40 + 1), "n_features is far too large; expected"),
        (("n_features", -(10**41)), "n_features is far too large; expected"),
        (("n_taught", 0), "n_taught is 0; expected a whole number from 1 to 4"),
        (("n_taught", 5), "n_taught is 5; expected a whole number from 1 to 4"),
        (("n_tasks", 0), "n_tasks is 0; expected a whole number from 1 to 4"),
        (("n_tasks", 5), "n_tasks is 5; expected a whole number from 1 to 4"),
        (("numbers", [0, 2]), f"numbers {LIST}"),
        (("numbers", "abc"), "numbers is 'abc'; expected a list"),
        (("numbers", [0, 2, True]), "numbers is True; expected a whole number from 0 to 3"),
        (("numbers", [0, 2, 4]), "numbers is 4; expected a whole number from 0 to 3"),
        (("numbers", [-1, 2, 3]), "numbers is -1; expected a whole number from 0 to 3"),
        (("numbers", [0, 2, 2]), ORDER),
        (("numbers", [2, 0, 3]), ORDER),
        (("task_of_class", [0, 1, 0]), ORDER),
        (("task_of_class", [0, 0, 2]), "task_of_class is 2; expected a whole number from 0 to 1"),
        (("task_of_class", [0, 0]), f"task_of_class {LIST}"),
        (("n_samples_of_class", [0] * 4), f"n_samples_of_class {LIST}"),
        (
            ("n_samples_of_class", [0, 0, 2**32]),
            "n_samples_of_class is 4294967296; expected a whole number from 0 to 4294967295",
        ),
        (("digests", 3), "digests is '3'; expected a JSON object"),
        (("withheld", {"counts": []}), "its withheld lacks 'rows'"),
        (("digests", {"rows": {}}), "its digests lacks 'counts'"),
        (("digests", {**DIGESTS, "more": 3}), "its digests has a field 'more'"),
        (
            ("withheld", {**DIGESTS, "counts": [1, 2]}),
            "its withheld have no count for each of its classes",
        ),
        (
            ("digests", {**DIGESTS, "counts": {"a": 1, "b": 2, "c": 3}}),
            "counts is \"{'a': 1, 'b': 2, 'c': 3}\"; expected a list",
        ),
        (
            ("digests", {**DIGESTS, "counts": [0, 0, -1]}),
            f"a number of digests is -1; expected a whole number from 0 to {2**53}",
        ),
        (("digests", {**DIGESTS, "counts": [0, 0, 2**53 + 1]}), "a number of digests is 9007"),
        (("aliases", 3), "aliases is '3'; expected a JSON object"),
        (("aliases", {"ant": "bee"}), "its other name 'ant' is of no class"),
        (("aliases", {"old": "dax"}), "its other name 'old' is of no class"),
        (("aliases", {"\x1b": "ant"}), r"its other name '\x1b' is of no class"),
        (("aliases", {"y" * 50: "dax"}), f"its other name '{'y' * 40}' is of no class"),
        (("feature_names", ["a"] * 3), "its names of features are not as many as there are"),
        (("feature_names", "abcd"), "feature_names is 'abcd'; expected a list or null"),
        (("feature_names", ["a", "b", "c", 4]), "its names of features are not as many as"),
        (("feature_names", []), "its names of features are not as many as there are features"),
        (("head_due", 0), "head_due is '0'; expected true or false"),
        (("parameters", 3), "parameters is '3'; expected a JSON object"),
        (("parameters", "memory", GONE), "its parameters lacks 'memory'"),
        (("parameters", "more", 3), "its parameters has a field 'more'"),
        (("parameters", "random_state", -1), "random_state is -1; expected a whole number from 0"),
        (("parameters", "random_state", 2**128 + 1), "random_state is 340282366920938463463374"),
        (("parameters", "calibrate", 1), "calibrate is '1'; expected true or false"),
        (("parameters", "memory", 3), "memory is '3'; expected text or a JSON object or null"),
        (("parameters", "head", {"class": "H"}), "its head lacks 'state'"),
        (("memory", None), "its memory is no JSON object"),
        (("head", None), "its head is no JSON object"),
        (("head", {**MEMORY, "fields": {}}), "its head has a field 'fields', which this version"),
        (("memory", "class", ""), "the name of its memory is no name"),
        (("memory", {**MEMORY, "name": "\x1b"}), "the name of its memory is no name"),
        (("memory", {**MEMORY, "name": 3}), "name is '3'; expected text"),
        (("head", "class", ["H"]), "class is \"['H']\"; expected text"),
        (("head", "state", []), "state is '[]'; expected a JSON object"),
        (("memory", "state", None), "state is 'None'; expected a JSON object"),
        (("confidence", 3), "confidence is '3'; expected a JSON object"),
        (("confidence", "temperature", 0), "its confidence cannot be used (temperature is 0"),
        (("confidence", "temperature", 10**400), "its confidence cannot be used ("),
        (("confidence", "more", 3), "its confidence cannot be used ("),
        (("confidence", "count", 2**53 + 1), "count is 9007199254740993; expected a whole number"),
        (("encoder", 3), "encoder is '3'; expected a JSON object or null"),
        (("encoder", {"given": 3}), "how its encoder was chosen is no JSON object"),
        (("encoder", {"given": {"settings": 3}}), "the settings of its encoder are no JSON object"),
        (("encoder", {"encoder": 3}), "its encoder is '3'"),
        (("encoder", {"model": ""}), "its encoder is ''"),
        (("encoder", {"weights": ["x" * 50]}), f"""its encoder is "['{"x" * 38}\""""),
        (("encoder", {"given": {"name": 3}}), "its encoder is '3'"),
        (("encoder", {"given": {"settings": {"model": 3}}}), "its encoder is '3'"),
    ],
)
def test_what_contradicts_itself_is_refused(change: Any, message: str) -> None:
    refused(changed(*change), message)


def test_there_are_as_many_features_as_bytes_may_hold() -> None:
    check_document(changed("n_features", 10**6), 10**6)
    refused(changed("n_features", 10**6 + 1), "n_features is 1000001; expected", size=10**6)


def test_as_many_classes_were_taught_as_there_are_and_are_gone() -> None:
    """An event of the history may have taken one class out, or those that it names."""
    history = [{"gone": ["dax", "emu"]}, {"gone": []}, {"gone": "fox"}, {}]
    document = changed("history", history)
    check_document({**document, "n_taught": 3 + 2 + 1 + 1 + 1}, 0)
    refused({**document, "n_taught": 9}, "n_taught is 9; expected a whole number from 1 to 8")


def test_where_no_class_is_known_there_is_nothing_else() -> None:
    check_document(NONE, 0)
    check_document({**NONE, "aliases": {"old": None}}, 0)
    more = "it has no labels, and yet it has more"
    other = DOCUMENT | {"feature_names": [], "head_due": True, "encoder": {}}
    for name in EMPTY:
        refused({**NONE, name: other[name]}, more)
    refused({**NONE, "withheld": DIGESTS}, more)
    refused(changed("parameters", "memory", 3, of=NONE), "memory is '3'; expected text or")


def test_other_names_lead_to_a_label_of_the_same_type() -> None:
    numbered = changed("classes", {"dtype": "int64", "values": [1, 2, 3]})
    check_document({**numbered, "aliases": {"old": 1}}, 0)
    for aliases in ({"old": 1.0}, {"old": True}, {"1": 2}):
        refused({**numbered, "aliases": aliases}, "its other name")


def test_confidence_has_a_temperature_and_the_rest_is_novelty() -> None:
    calibration, novelty = read_confidence({"temperature": 2.0, "count": 3, "score": "fit"})
    assert (calibration.temperature, novelty.count, novelty.score) == (2.0, 3, "fit")
    assert read_confidence({})[0].temperature == 1.0


# --------------------------------------------------------------------------- digests


def test_digests_come_back_by_the_number_of_their_class() -> None:
    kept = [np.array(each, DIGEST) for each in ([b"3", b"3", b"4"], [], [b"1"])]
    document = changed("digests", {"counts": [3, 0, 1], "rows": "there"})

    def read(rows: Any, name: str = "digests") -> Any:
        document["digests"]["rows"] = rows
        return read_digests(document, name, lambda rows, path: path == "digests" and rows)

    whole = pack_digests(kept)
    found = {number: of.tolist() for number, of in read(whole).items()}
    assert found == {0: [b"3", b"3", b"4"], 3: [b"1"]}
    assert read(whole, "withheld") == {}
    for other in (whole[1:], whole[:, 1:], whole.astype(np.int8), whole.tolist(), whole.ravel()):
        with pytest.raises(MemoryFileError, match="^its digests are not as many$"):
            read(other)


# --------------------------------------------------------------------------- labels


LIMITS: dict[str, list[Any]] = {
    "str": ["a", "b c"],
    "object": ["a", "b c"],
    "bool": [False, True],
    **{f"int{n}": [-(2 ** (n - 1)), 2 ** (n - 1) - 1] for n in (8, 16, 32, 64)},
    **{f"uint{n}": [0, 2**n - 1] for n in (8, 16, 32, 64)},
    "float16": [0.5, 65504.0],
    "float32": [0.5, 2.0**127],
    "float64": [0.1, 2.0**1023],
}


@pytest.mark.parametrize("dtype", LIMITS)
def test_labels_of_every_type_come_back(dtype: str) -> None:
    written = {"dtype": dtype, "values": LIMITS[dtype]}
    assert LIMITS.keys() == TYPES.keys()
    labels = labels_from_json(written)
    assert (labels.dtype.name.rstrip("0123456789") == "str") is (dtype == "str")
    assert labels_to_json(labels) == written


@pytest.mark.parametrize(
    ("dtype", "values", "message"),
    [
        ("O,O", [], "its labels are none of a type that this version knows"),
        (3, [], "its labels are none of a type that this version knows"),
        ("str", "abc", "its labels are none of a type that this version knows"),
        ("str", [1], "its labels are not of the type 'str' that they should be"),
        ("int8", [True], "its labels are not of the type 'int8' that they should be"),
        ("bool", [0], "its labels are not of the type 'bool' that they should be"),
        ("str", ["a", "a"], "it has one of its labels twice"),
        ("float64", [0.0, -0.0], "it has one of its labels twice"),
        ("str", ["a", "\x1b"], r"its label '\x1b' contains control characters or is not valid te"),
        ("str", ["a", "\ud800"], r"its label '\ud800' contains control characters or is not valid"),
        ("object", ["y" * 50 + "\x1b"], f"its label '{'y' * 40}' contains control characters"),
        ("str", ["a", "a "], "its label 'a ' has blanks or accents that no label has"),
        ("str", ["u\u0308"], "its label 'u\u0308' has blanks or accents that no label has"),
        ("int8", [128], "a label of it is not of the type 'int8' that it should be"),
        ("uint8", [-1], "a label of it is not of the type 'uint8' that it should be"),
        ("float32", [0.1], "a label of it is not of the type 'float32' that it should be"),
        ("str", ["a", "a\0"], r"its label 'a\x00' contains control characters"),
        ("float16", [2049.0, 2048.0], "a label of it is not of the type 'float16' that it should"),
        ("float64", [float("nan")], "a label of it is not of the type 'float64' that it should"),
    ],
)
def test_labels_that_would_change_are_refused(dtype: Any, values: Any, message: str) -> None:
    with pytest.raises(MemoryFileError, match=f"^{re.escape(message)}"):
        labels_from_json({"dtype": dtype, "values": values})


def test_labels_are_a_type_and_values_and_nothing_else() -> None:
    for written in (3, {"dtype": "str"}, {"dtype": "str", "values": ["a"], "more": 3}):
        with pytest.raises(MemoryFileError, match="^its labels are none of a type"):
            labels_from_json(written)


def names(count: int, longest: int) -> dict[str, Any]:
    """Short names, and one of that length."""
    values = [chr(0x4E00 + number) for number in range(count - 1)]
    return {"dtype": "str", "values": [*values, "x" * longest]}


def test_one_long_name_makes_no_array_of_gigabytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """No name has more than 255 characters, nor is it far longer than very many others."""
    assert labels_from_json(names(1, 255)).itemsize == 4 * 255
    with pytest.raises(MemoryFileError, match=r"has 256 characters; expected at most 255$"):
        labels_from_json(names(1, 256))
    monkeypatch.setattr("frugalvae.storage.schema.WIDEST", 4 * 128 * 128)
    assert labels_from_json(names(128, 128)).itemsize == 4 * 128
    with pytest.raises(MemoryFileError, match="^a label of it has 129 characters$"):
        labels_from_json(names(128, 129))


def test_many_long_names_are_as_good_as_short_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frugalvae.storage.schema.WIDEST", 0)
    assert len(labels_from_json(names(18, 136))) == 18  # 4 * 136 * 18 = 64 * (136 + 17)
    with pytest.raises(MemoryFileError, match="^a label of it has 137 characters$"):
        labels_from_json(names(18, 137))


def test_labels_that_json_does_not_have_are_refused() -> None:
    for labels in (np.array([1j]), np.array(["a", 3], object), np.array(["2026"], "M8[Y]")):
        with pytest.raises(InputError, match="^labels like .* cannot be saved; teach names or"):
            labels_to_json(labels)
