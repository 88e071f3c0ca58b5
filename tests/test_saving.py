from __future__ import annotations

import copy
import hashlib
import io
import json
import pickle
import signal
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frugalvae import FrugalClassifier, make_head
from frugalvae.errors import FrugalError, InputError, MemoryFileError
from frugalvae.estimator import NotFittedError
from frugalvae.maths.arrays import Array
from frugalvae.parts.store_all import StoreAllMemory
from frugalvae.storage.model_file import from_bytes, to_bytes
from frugalvae.storage.states import Reader, Writer
from tests.conftest import accuracy, blobs

ROOT = Path(__file__).parent.parent
FIXTURES = ROOT / "tests/fixtures"
MOMENTS = ["format-3-moments", "format-3-moments-cut"]


def taught(memory: Any = "gaussian-diagonal", head: Any = "nearest-mean") -> FrugalClassifier:
    first, second = blobs([0, 1], dim=4), blobs([2], dim=4)
    classifier = FrugalClassifier(memory, head)
    for task in (first, second):
        classifier.partial_fit(task.features, task.labels)
    return classifier


def saved(path: Path, *parts: Any) -> Path:
    taught(*parts).save(path)
    return path


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return saved(tmp_path_factory.mktemp("saved") / "it.frugal").read_bytes()


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scratch") / "it.frugal"


def refused(path: Path, content: bytes | None, message: str = ".") -> str:
    """What loading such a file says."""
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(MemoryFileError, match=message) as caught:
        FrugalClassifier.load(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


# --------------------------------------------------------------------------- what is kept


def test_saving_needs_something_learned(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        FrugalClassifier().save(tmp_path / "it.frugal")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["[x]", "ä \u200d", 'quo"te\\', '"sha256": "' + "0" * 64]),
        np.array([-3, 2**62]),
        np.array([2**63, 7], dtype=np.uint64),
        np.array([1, 2], dtype=np.int8),
        np.array([False, True]),
        np.array([1.0, 2.0]),
        np.array(["a", "bb"], dtype=object),
    ],
    ids=["names", "whole", "large", "small", "truth", "real", "objects"],
)
def test_labels_come_back_as_they_were(labels: np.ndarray, tmp_path: Path) -> None:
    x = np.eye(len(labels), 5)
    classifier = FrugalClassifier("gaussian-diagonal", "nearest-mean").fit(x, labels)
    classifier.save(tmp_path / "it.frugal")
    loaded = FrugalClassifier.load(tmp_path / "it.frugal")
    assert loaded.classes_.dtype == classifier.classes_.dtype
    assert loaded.classes_.tolist() == classifier.classes_.tolist()
    assert loaded.predict(x).tolist() == classifier.predict(x).tolist()


def test_names_of_features_encoder_and_history_come_back(tmp_path: Path) -> None:
    classifier = taught()
    classifier.encoder_ = {"name": "clip", "sha256": "0" * 64}
    classifier.model_ = replace(
        classifier.model_,
        feature_names=("a", "b", "c", "d"),
        history=({"task": 1, "classes": 2},),
    )
    classifier.save(tmp_path / "it.frugal")
    loaded = FrugalClassifier.load(tmp_path / "it.frugal")
    assert loaded.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    assert loaded.encoder_ == classifier.encoder_
    assert loaded.history_ == classifier.history_ == ({"task": 1, "classes": 2},)
    classifier.model_ = replace(classifier.model_, history=(object(),))
    with pytest.raises(InputError, match="history_ cannot be written as JSON .* only names"):
        classifier.save(tmp_path / "it.frugal")
    assert FrugalClassifier.load(tmp_path / "it.frugal").history_ == loaded.history_


def test_parts_by_name_come_back_as_names_and_parts_with_settings_as_parts(tmp_path: Path) -> None:
    path = tmp_path / "it.frugal"
    loaded = FrugalClassifier.load(saved(path, "gaussian-full", make_head("ridge", penalty=0.5)))
    assert loaded.memory == "gaussian-full"
    assert loaded.head.penalty == loaded.head_.penalty == 0.5
    assert loaded.head.classes == []
    assert loaded.memory_report().memory == "gaussian-full"


def test_the_checksum_is_that_of_the_file_with_zeros_in_its_place(content: bytes) -> None:
    digest = from_bytes(content)[0]["sha256"]
    blank = content.replace(digest.encode(), b"0" * 64)
    assert hashlib.sha256(blank).hexdigest() == digest


def test_overhead_is_small(tmp_path: Path) -> None:
    x, y = np.random.default_rng(0).normal(size=(600, 64)), np.arange(200).repeat(3)
    classifier = FrugalClassifier("gaussian-diagonal", "nearest-mean").fit(x, y)
    classifier.save(tmp_path / "it.frugal")
    assert (tmp_path / "it.frugal").stat().st_size < classifier.memory_report().bytes + 11000


def test_a_class_inside_a_function_cannot_be_saved(tmp_path: Path) -> None:
    class OwnMemory(StoreAllMemory):
        pass

    with pytest.raises(InputError, match=r"OwnMemory cannot be saved: .* top of a module"):
        taught(OwnMemory()).save(tmp_path / "it.frugal")


class TowerHead:
    """Stands for a head with a large frozen model, which it finds again by name."""

    def __init__(self, model: str = "small") -> None:
        self.model = model
        self.context_ = np.ones(2)
        self._tower: Array | None = None  # derived; never stored

    def tower(self) -> Array:
        if self._tower is None:
            self._tower = np.full(1000, float(len(self.model)))
        return self._tower


def test_what_is_derived_is_left_out_and_made_again() -> None:
    head, writer = TowerHead("large"), Writer()
    head.tower()
    written = writer.write(head, "head")
    assert writer.arrays.keys() == {"head.context_"}
    again = Reader(writer.arrays, trust=[__name__]).read(written, "head")
    assert again._tower is None
    assert np.array_equal(again.context_, head.context_)
    assert np.array_equal(again.tower(), head.tower())


# --------------------------------------------------------------------------- places


def test_unknown_places_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist; make it first"):
        taught().save(tmp_path / "nowhere" / "it.frugal")
    with pytest.raises(InputError, match="is a folder"):
        taught().save(tmp_path)


# --------------------------------------------------------------------------- damage


def other_files() -> dict[str, bytes]:
    archive, arrays = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("a.txt", "hello")
    np.savez(arrays, x=np.zeros(3))
    return {
        "empty": b"",
        "zip": archive.getvalue(),
        "npz": arrays.getvalue(),
        "pickle": pickle.dumps({"memory": [1, 2]}),
        "text": b"This is a text.\n" * 20,
        "zeros": bytes(100),
        "another safetensors": safetensors.numpy.save({"a": np.zeros(3)}, {"b": "c"}),
        "no metadata": safetensors.numpy.save({"a": np.zeros(3)}),
        "a list": safetensors.numpy.save({}, {"frugalvae": "[]"}),
        "no version": safetensors.numpy.save({}, {"frugalvae": "{}"}),
    }


@pytest.mark.parametrize("kind", other_files())
def test_files_of_another_kind(kind: str, scratch: Path) -> None:
    message = "it is not a .frugal file, or its beginning is damaged; get"
    refused(scratch, other_files()[kind], message)


def test_a_file_cut_off_at_any_byte(content: bytes, scratch: Path) -> None:
    for length in range(len(content)):
        with pytest.raises(MemoryFileError):
            from_bytes(content[:length])
    refused(scratch, content[:-1], "it is damaged: its checksum does not fit; get another copy")
    refused(scratch, content + b"\0", "it is damaged")


@settings(max_examples=300, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_one_changed_byte_is_always_noticed(content: bytes, scratch: Path, data: Any) -> None:
    position = data.draw(st.integers(0, len(content) - 1))
    value = data.draw(st.integers(0, 255).filter(lambda value: value != content[position]))
    refused(scratch, content[:position] + bytes([value]) + content[position + 1 :])


@settings(max_examples=100, suppress_health_check=list(HealthCheck))
@given(st.binary(max_size=200))
def test_any_other_bytes_are_refused(scratch: Path, noise: bytes) -> None:
    refused(scratch, noise)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (4, r"a newer version of frugalvae \(format 4, .*format 3\); pip install --upgrade frugal"),
        (2, r"an earlier version of frugalvae \(format 2, .*python -m lab.benchmarks.convert OLD "),
        (0, r"an earlier version of frugalvae \(format 0"),
    ],
)
def test_another_format_is_refused_with_what_to_do(
    other: int, message: str, content: bytes, scratch: Path
) -> None:
    document, tensors = from_bytes(content)
    refused(scratch, to_bytes({**document, "format": other}, tensors), message)


# --------------------------------------------------------------------------- hostile files


def forged(content: bytes, change: Callable[[dict[str, Any], dict[str, Array]], Any]) -> bytes:
    """The file after a change, with a checksum that fits."""
    document, tensors = copy.deepcopy(from_bytes(content))
    change(document, tensors)
    del document["sha256"], document["format"]
    return to_bytes(document, tensors)


def sign(content: bytes) -> bytes:
    """A file that was changed as bytes, with a checksum that fits."""
    digest = read_header(content)["sha256"]
    blank = content.replace(digest.encode(), b"0" * 64, 1)
    return blank.replace(b"0" * 64, hashlib.sha256(blank).hexdigest().encode(), 1)


def read_header(content: bytes) -> dict[str, Any]:
    """The document as it stands, whatever is wrong with the rest."""
    size = struct.unpack("<Q", content[:8])[0]
    document: dict[str, Any] = json.loads(
        json.loads(content[8 : 8 + size])["__metadata__"]["frugalvae"]
    )
    return document


def put(*path: Any) -> Callable[[dict[str, Any], Any], None]:
    """A change that puts the last of the arguments where the others lead."""
    *keys, last, value = path

    def change(document: Any, tensors: Any) -> None:
        for key in keys:
            document = document[key]
        document[last] = value

    return change


def deep(document: dict[str, Any], tensors: Any) -> None:
    nested: list[Any] = []
    for _ in range(900):
        nested = [nested]
    document["memory"]["state"]["means_"] = nested


def retype(name: str, array: Array) -> Callable[[Any, dict[str, Array]], None]:
    return lambda _, arrays: arrays.update({name: array})


def zeros(*shape: int) -> Array:
    return np.zeros(shape, np.float32)


MEANS = "memory.means_"
HOSTILE: dict[str, Callable[[Any, Any], Any]] = {
    "unknown class": put("memory", "class", "Popen"),
    "a class of Python": put("memory", "class", "builtins.eval"),
    "a class that is no name": put("memory", "class", ["list"]),
    "a head as memory": lambda d, _: d.update(memory=copy.deepcopy(d["head"])),
    "a prior as memory": put("memory", {"class": "SinglePrior", "state": {}}),
    "layers from settings": put("memory", {"class": "LayerInputs", "state": {"size": 10**9}}),
    "an empty memory": put("memory", {"class": "StoreAllMemory", "state": {}}),
    "the form of format 2": put("memory", {"class": "NoMemory", "settings": {}, "learned": {}}),
    "a method": put("memory", "state", "sample", 3),
    "a property": put("memory", "state", "classes", []),
    "a dunder": put("memory", "state", "__class__", "x"),
    "a dunder ending so": put("memory", "state", "__dict__", {"dict": []}),
    "a private name": put("memory", "state", "_factors", {"dict": []}),
    "unknown setting": put("memory", "state", "speed", 3),
    "wrong setting": put("memory", "state", "covariance", "round"),
    "a cycle": put("memory", "state", "covariances_", {"same": "memory"}),
    "a reference to nowhere": put("memory", "state", "covariances_", {"same": "x"}),
    "a tensor that is not there": put("memory", "state", "means_", "tensor", "x"),
    "a tensor used twice": put("memory", "state", "means_", "tensor", "memory.covariances_"),
    "a tensor nothing uses": retype("more", zeros(3)),
    "too few rows": retype(MEANS, zeros(2, 4)),
    "too wide": retype(MEANS, zeros(3, 5)),
    "no rows": retype(MEANS, zeros()),
    "not a number": retype(MEANS, zeros(3, 4) + np.nan),
    "infinite": retype("head.means_", zeros(3, 4) + np.inf),
    "whole numbers": retype(MEANS, zeros(3, 4).astype(np.int64)),
    "complex": retype(MEANS, zeros(3, 4).astype(np.complex64)),
    "negative variances": retype("memory.covariances_", zeros(3, 4) - 1),
    "names as keys": put("memory", "state", "means_", "rows", ["a", "b", "c"]),
    "one key twice": put("memory", "state", "means_", "rows", [0, 0, 1]),
    "other keys": put("memory", "state", "covariances_", "rows", [0, 1, 3]),
    "a mapping of what": put("memory", "state", "means_", {"what": 3}),
    "a number too many": put("memory", "state", "means_", {"number": "__import__"}),
    "nothing learned": put("memory", "state", {}),
    "deeply nested": deep,
    "features too many": put("n_features", 5),
    "unknown memory": put("parameters", "memory", "vae-f0"),
    "taught template": lambda d, _: d["parameters"].update(memory={"same": "memory"}),
    "head due that never is": put("head_due", True),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_with_a_fitting_checksum_is_refused(
    name: str, content: bytes, scratch: Path
) -> None:
    refused(scratch, forged(content, HOSTILE[name]))


def test_a_forgery_that_changes_nothing_is_accepted(content: bytes, scratch: Path) -> None:
    """Or the tests around this one would see no more than wrong checksums."""
    scratch.write_bytes(forged(content, lambda *_: None))
    assert FrugalClassifier.load(scratch).classes_.tolist() == [0, 1, 2]


def test_an_unknown_class_is_named(content: bytes, scratch: Path) -> None:
    change = put("memory", "class", "NewMemory")
    refused(
        scratch,
        forged(content, change),
        "its memory is 'NewMemory', which this version does not know; load",
    )


def test_what_does_not_fit_is_told(content: bytes, scratch: Path) -> None:
    change = put("memory", "state", "covariance", "round")
    message = "its parts do not fit together .InputError: covariance is 'round'"
    refused(scratch, forged(content, change), message)


@pytest.mark.parametrize("value", ["3", 3.0, -3, True, {"dict": []}, None])
def test_a_template_has_learned_nothing_of_another_kind(
    value: Any, content: bytes, scratch: Path
) -> None:
    """What was taught is compared with a table; a template knows no class, and is not."""
    template = {"class": "GaussianMemory", "state": {"covariance": "diagonal", "count_": value}}
    change = put("parameters", "memory", template)
    refused(scratch, forged(content, change), "count_ of a GaussianMemory is '")


def test_json_nested_without_end(content: bytes, scratch: Path) -> None:
    nested = b"[" * 200_000
    refused(scratch, struct.pack("<Q", len(nested)) + nested, "not a .frugal file")
    inner = json.dumps({"__metadata__": {"frugalvae": nested.decode()}}).encode()
    refused(scratch, struct.pack("<Q", len(inner)) + inner, "not a .frugal file")


def test_a_setting_that_would_take_all_memory_is_refused(scratch: Path) -> None:
    ridge = saved(scratch, "gaussian-full", make_head("ridge", samples=20)).read_bytes()
    change = put("head", "state", "samples", 2**16 + 1)
    refused(scratch, forged(ridge, change), "samples is 65537; .* number, from 1 to 65536")


# --------------------------------------------------------------------------- files that are kept


def answers_as_it_did(name: str) -> tuple[FrugalClassifier, dict[str, Any]]:
    """A fixture, which was written by the code of its time, with what stands beside it."""
    from sklearn.datasets import load_digits

    recorded = json.loads((FIXTURES / f"{name}.json").read_text())
    loaded = FrugalClassifier.load(FIXTURES / f"{name}.frugal", device="cpu")
    x, _ = load_digits(return_X_y=True)
    probabilities = loaded.predict_proba(x[-40:])
    assert loaded.predict(x[-40:]).tolist() == recorded["predictions"]
    np.testing.assert_allclose(probabilities[:, 0], recorded["probability of 0"], atol=1e-6)
    assert loaded.memory_report().bytes == recorded["bytes"]
    assert list(loaded.history_) == recorded["history"]
    return loaded, recorded


@pytest.mark.parametrize(("name", "whole"), [(MOMENTS[0], True), (MOMENTS[1], False)])
def test_a_file_of_this_format_answers_replays_and_learns_as_it_did(
    name: str, whole: bool, scratch: Path
) -> None:
    from sklearn.datasets import load_digits

    loaded, recorded = answers_as_it_did(name)
    memory: Any = loaded.memory_
    assert memory.sums_.is_whole is whole
    np.testing.assert_allclose(loaded.sample(3)[0], recorded["a sample of 3"], atol=1e-3)
    loaded.save(scratch)
    x, y = load_digits(return_X_y=True)
    again = FrugalClassifier.load(scratch).predict_proba(x[-400:])
    assert np.array_equal(again, loaded.predict_proba(x[-400:]))
    before = loaded.n_samples_of_class_.sum()
    loaded.partial_fit(x[-40:], y[-40:])
    assert loaded.n_samples_of_class_.sum() == before + 40
    assert accuracy(y[-40:], loaded.predict(x[-40:])) > 0.9


# --------------------------------------------------------------------------- kills

KILLS = """
import sys
import numpy as np
from frugalvae import FrugalClassifier
from tests.killing import each_kill

path = sys.argv[1]
x = np.random.default_rng(0).normal(size=(40, 30))
old, new = [
    FrugalClassifier("store-all", "nearest-mean", random_state=n).fit(x, np.arange(40) % (2 + n))
    for n in range(2)
]
old.save(path)
for killed in each_kill(lambda: new.save(path)):
    loaded = FrugalClassifier.load(path)
    assert len(loaded.classes_) == 2 + loaded.random_state
    print("new" if loaded.random_state else "old", "killed" if killed else "done")
    old.save(path)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs POSIX")
def test_a_kill_before_any_operation_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLS, str(tmp_path / "it.frugal")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    states = done.stdout.splitlines()
    assert list(dict.fromkeys(states)) == ["old killed", "new killed", "new done"]


def test_errors_are_ours() -> None:
    assert issubclass(MemoryFileError, InputError)
    assert issubclass(MemoryFileError, FrugalError)
