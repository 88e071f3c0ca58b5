"""Objects as JSON and arrays: what is written, to the letter, and what is read or refused."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from frugalvae.errors import InputError, MemoryFileError
from frugalvae.maths.arrays import Array, pack
from frugalvae.storage import states
from frugalvae.storage.states import Reader, Writer
from frugalvae.storage.tables import as_array, is_tensor

TRUST = [__name__]


@dataclass
class Fields:
    """An object that is its fields."""

    one: Any
    other: Any = 0


class Sums:
    """Says itself what a file keeps of it."""

    def __init__(self, total: Array) -> None:
        self.total = total

    def state(self) -> dict[str, Any]:
        return {"total": self.total}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Sums:
        return cls(state["total"])


class Learns:
    """Has settings, and what it learned."""

    holds_tensors = False

    def __init__(self, width: int = 3) -> None:
        self.width = width
        self.sums_: Any = None
        self.means_: Any = None
        self.trusted: Any = None

    def named_by_file(self, trust: Any) -> None:
        self.trusted = trust


class Tensors(Learns):
    """Its arrays are tensors."""

    holds_tensors = True


def written(value: Any) -> tuple[Any, dict[str, list[Any]]]:
    """JSON, and arrays with their types."""
    writer = Writer()
    found = writer.write(value, "it")
    return found, {name: [str(a.dtype), a.tolist()] for name, a in writer.arrays.items()}


def again(value: Any) -> Any:
    writer = Writer()
    found = writer.write(value, "it")
    reader = Reader(writer.arrays, TRUST)
    value = reader.read(found, "it")
    assert not reader.unused
    return value


F32, F64 = "float32", "float64"


@pytest.mark.parametrize(
    ("value", "expected", "arrays"),
    [
        (None, None, {}),
        (True, True, {}),
        (3, 3, {}),
        ("x", "x", {}),
        (1.5, 1.5, {}),
        (np.float32(1.5), 1.5, {}),
        (np.int8(3), 3, {}),
        (math.inf, {"number": "inf"}, {}),
        (-math.inf, {"number": "-inf"}, {}),
        ([1, [2.5, "y"]], [1, [2.5, "y"]], {}),
        ((1, (2,)), {"tuple": [1, {"tuple": [2]}]}, {}),
        ({}, {"dict": []}, {}),
        ({"a": 1, "b": (2,)}, {"dict": [["a", 1], ["b", {"tuple": [2]}]]}, {}),
        ({3: 1}, {"dict": [[3, 1]]}, {}),
        (np.arange(2.0), {"tensor": "it"}, {"it": [F64, [0, 1]]}),
        (np.eye(2), {"symmetric": "it"}, {"it": [F64, [1, 0, 1]]}),
        (np.ones((1, 1, 1)), {"tensor": "it"}, {"it": [F64, [[[1]]]]}),
        (np.arange(4.0).reshape(2, 2), {"tensor": "it"}, {"it": [F64, [[0, 1], [2, 3]]]}),
        ([np.ones(1)], [{"tensor": "it.0"}], {"it.0": [F64, [1]]}),
        ((np.ones(1),), {"tuple": [{"tensor": "it.0"}]}, {"it.0": [F64, [1]]}),
        (
            {7: np.zeros(1), 4: np.ones(1)},
            {"rows": [7, 4], "tensor": "it"},
            {"it": [F64, [[0], [1]]]},
        ),
        (
            {7: np.zeros(1), 4: np.ones(2)},
            {"dict": [[7, {"tensor": "it.7"}], [4, {"tensor": "it.4"}]]},
            {"it.7": [F64, [0]], "it.4": [F64, [1, 1]]},
        ),
        (
            {7: np.zeros(1), 4: np.ones(1, np.float32)},
            {"dict": [[7, {"tensor": "it.7"}], [4, {"tensor": "it.4"}]]},
            {"it.7": [F64, [0]], "it.4": [F32, [1]]},
        ),
        ({7: np.zeros(1), 4: 3}, {"dict": [[7, {"tensor": "it.7"}], [4, 3]]}, {"it.7": [F64, [0]]}),
        ({"a": np.zeros(1)}, {"dict": [["a", {"tensor": "it.a"}]]}, {"it.a": [F64, [0]]}),
    ],
)
def test_values_are_written_and_read(value: Any, expected: Any, arrays: dict[str, Any]) -> None:
    assert written(value) == (expected, arrays)
    found = again(value)
    np.testing.assert_equal(found, value)
    assert type(found) in (type(value), float, int)


def test_what_is_no_number_comes_back_as_such() -> None:
    assert written(math.nan) == ({"number": "nan"}, {})
    assert math.isnan(again(math.nan))


def test_keys_are_names_or_whole_numbers() -> None:
    for value in ({1: 0, "a": 0}, {1.0: 0}, {None: 0}, {True: 0}):
        with pytest.raises(InputError, match="^it has keys that are neither all names nor all"):
            written(value)


def test_what_is_shared_is_shared_again() -> None:
    array, part = np.arange(3.0), Fields(1)
    assert written([array, array, part, part])[0] == [
        {"tensor": "it.0"},
        {"same": "it.0"},
        {"class": f"{__name__}:Fields", "state": {"one": 1, "other": 0}},
        {"same": "it.2"},
    ]
    one, two, three, four = again([array, array, part, part])
    assert one is two
    assert three is four
    assert one.flags.writeable
    assert one is not array
    assert type(again(Fields(array)).one) is np.ndarray


def test_arrays_are_written_row_by_row_and_copied() -> None:
    array, writer = np.asfortranarray(np.arange(6.0).reshape(2, 3)), Writer()
    writer.write(array, "it")
    assert writer.arrays["it"].flags.c_contiguous
    array[:] = 0
    assert writer.arrays["it"].any()


# --------------------------------------------------------------------------- parts


def test_an_object_is_its_settings_and_what_it_learned() -> None:
    part: Any = Learns(5)
    part.means_, part.name = np.ones(1), "mine"
    writer = Writer()
    found = writer.write(part, "it")
    assert found == {
        "class": f"{__name__}:Learns",
        "state": {"width": 5, "sums_": None, "means_": {"tensor": "it.means_"}},
        "name": "mine",
    }
    assert writer.classes == {f"{__name__}:Learns"}
    made = Reader(writer.arrays, TRUST).read(found, "it")
    assert (made.width, made.means_.tolist(), made.sums_, made.name) == (5, [1], None, "mine")
    assert made.trusted == TRUST
    del found["name"], found["state"]["means_"]
    made = Reader({}, TRUST).read(found, "it")
    assert not hasattr(made, "name")
    made = Reader({}, TRUST).read({**found, "name": 3}, "it")
    assert not hasattr(made, "name")


@pytest.mark.parametrize(
    "one",
    [
        {"number": "1e9"},
        {"number": "inf", "more": 1},
        {"tuple": [], "more": 1},
        {"tuple": 3},
        {"dict": [], "more": 1},
        {"dict": {}},
        {"rows": [0], "tensor": "a", "more": 1},
        {"rows": [0]},
        {"same": "it.0", "more": 1},
        {"tensor": "a", "more": 1},
        {"tensor": 3},
        {"symmetric": "a", "more": 1},
        {"factor": "a", "more": 1},
        {"parameter": "a", "more": 1},
        {"class": f"{__name__}:Fields", "state": {"one": 1}, "more": 1},
        {"class": f"{__name__}:Fields", "state": []},
        {"class": f"{__name__}:Learns", "settings": {}, "learned": {}},
        {"class": f"{__name__}:Fields", "fields": {"one": 1}},
        {"class": f"{__name__}:Learns"},
        {},
    ],
)
def test_what_nothing_can_be_made_of_is_refused(one: Any) -> None:
    reader = Reader({"a": np.ones((1, 1))}, TRUST)
    with pytest.raises(
        MemoryFileError, match=r"^it\.1 is .*, which is not a value this format allows$"
    ):
        reader.read([0, one], "it")


def test_references_are_to_what_is_there_already() -> None:
    part = {"class": f"{__name__}:Fields", "state": {"one": {"same": "it"}}}
    with pytest.raises(MemoryFileError, match=r"^it\.one refers to 'it', which is not there$"):
        Reader({}, TRUST).read(part, "it")


def test_an_array_is_there_and_used_once() -> None:
    reader = Reader({"a": np.ones(1)})
    assert reader.read({"tensor": "a"}, "it").tolist() == [1]
    for name in ("a", "b"):
        with pytest.raises(MemoryFileError, match=f"^the tensor '{name}' is not there, or used"):
            reader.read({"tensor": name}, "it")


def test_rows_have_a_class_each() -> None:
    with pytest.raises(MemoryFileError, match="^it has 2 rows for 1 classes$"):
        Reader({"a": np.ones((2, 1))}).read({"rows": [0], "tensor": "a"}, "it")


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([3], "3 stands where a key and its value are expected"),
        ([[1]], r"\[1\] stands where a key and its value are expected"),
        ([[1, 2, 3]], r"\[1, 2, 3\] stands where"),
        ([[1.5, 2]], r"\[1.5, 2\] stands where"),
        ([[True, 2]], r"\[True, 2\] stands where"),
        ([[None, 2]], r"\[None, 2\] stands where"),
        ([[1, 2], [1, 3]], "it has two entries for one key, or keys of two kinds"),
        ([[1, 2], ["1", 3]], "it has two entries for one key, or keys of two kinds"),
    ],
)
def test_keys_differ_and_are_of_one_kind(items: Any, message: str) -> None:
    with pytest.raises(MemoryFileError, match=f"^{message}"):
        Reader({}).read({"dict": items}, "it")
    if isinstance(items[0], list) and items[0][0] not in (1, True):
        with pytest.raises(MemoryFileError, match=r"stands where"):
            Reader({"a": np.ones((1, 1))}).read({"rows": [items[0][0]], "tensor": "a"}, "it")
    with pytest.raises(MemoryFileError, match=r"^\['x', .* stands where"):
        Reader({"a": np.ones((1, 1))}).read({"rows": ["x"], "tensor": "a"}, "it")


# --------------------------------------------------------------------------- room


LARGER = "^it would take far more memory than a file of its size should$"


def test_a_file_becomes_at_most_so_many_times_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (states.ROOM, states.PER_BYTE) == (2**27, 8)
    monkeypatch.setattr(states, "ROOM", 10)
    reader = Reader({"a": np.ones(2), "b": np.ones(3, np.int8)})
    reader.spend(100)
    reader.spend(10 + 8 * 19 - 100)
    with pytest.raises(MemoryFileError, match=LARGER):
        reader.spend(1)


def test_what_is_unpacked_takes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    triangle = pack(np.eye(4))
    monkeypatch.setattr(states, "PER_BYTE", 0)
    monkeypatch.setattr(states, "ROOM", 2 * triangle.nbytes)
    assert Reader({"a": triangle}).read({"symmetric": "a"}, "it").shape == (4, 4)
    monkeypatch.setattr(states, "ROOM", 2 * triangle.nbytes - 1)
    with pytest.raises(MemoryFileError, match=LARGER):
        Reader({"a": triangle}).read({"symmetric": "a"}, "it")


# --------------------------------------------------------------------------- tensors


def test_only_what_pytorch_made_is_a_tensor() -> None:
    alike: Any = SimpleNamespace(detach=3)
    assert not is_tensor(alike)
    assert as_array(alike) is alike


def test_tensors_are_arrays_in_a_file_and_come_back_where_a_class_holds_them() -> None:
    torch: Any = pytest.importorskip("torch")
    assert not is_tensor(torch.Generator())
    parameter, tensor = torch.nn.Parameter(torch.ones(1, 2)), torch.zeros(2)
    found, arrays = written([parameter, tensor, {1: tensor, 2: tensor + 1}])
    assert found == [
        {"parameter": "it.0"},
        {"tensor": "it.1"},
        {"rows": [1, 2], "tensor": "it.2"},
    ]
    assert arrays["it.0"] == [F32, [[1, 1]]]
    part = Tensors()
    part.sums_, part.means_ = Learns(), {1: tensor}
    part.sums_.means_ = tensor + 2
    made, plain, back = again([part, tensor, parameter])
    assert made.means_[1].equal(tensor)
    assert type(made.sums_.means_) is np.ndarray
    assert type(plain) is np.ndarray
    assert type(back) is torch.nn.Parameter
    assert back.equal(parameter)
    symmetric = Tensors()
    symmetric.means_, symmetric.sums_ = torch.eye(2), 3
    assert again(symmetric).means_.equal(torch.eye(2))
