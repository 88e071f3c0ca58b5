"""What files hold is of the types, signs, shapes and ranges that follow from samples."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from frugalvae import FrugalClassifier, make_head, make_memory
from frugalvae.cli.main import main
from frugalvae.errors import InputError, MemoryFileError
from frugalvae.maths.arrays import Array
from frugalvae.moments.memory import MomentMemory
from frugalvae.paper.records import PriorState
from frugalvae.parts import HEADS, MEMORIES
from frugalvae.parts.gaussian import GaussianMemory
from frugalvae.storage.model_file import from_bytes, to_bytes
from frugalvae.storage.states import HELPERS, from_state
from frugalvae.storage.store import Store
from frugalvae.storage.tables import KINDS, TABLES, check_held, packed_diagonal, parsed
from tests.conftest import SMALL, blobs

DIM = 4
NAMES = ["ant", "bee", "cat"]


def taught(memory: Any, head: Any) -> FrugalClassifier:
    classifier = FrugalClassifier(memory, head)
    task = blobs([0, 1, 2], dim=DIM)
    text = {name: task.of(label).mean(axis=0) for label, name in enumerate(NAMES)}
    return classifier.partial_fit(task.features, np.array(NAMES)[task.labels], text=text)


def forge(path: Path, change: Callable[[dict[str, Any], dict[str, Array]], object]) -> None:
    """The same file with other contents, and a checksum that fits."""
    document, arrays = from_bytes(path.read_bytes())
    arrays = {name: array.copy() for name, array in arrays.items()}
    change(document, arrays)
    for name in ("sha256", "format"):
        del document[name]
    path.write_bytes(to_bytes(document, arrays))


def turned(name: str, become: Callable[[Array], Array]) -> Callable[..., None]:
    def change(document: Any, arrays: dict[str, Array]) -> None:
        arrays[name] = np.ascontiguousarray(become(arrays[name]))

    return change


def as_whole(array: Array) -> Array:
    """Whole numbers that take as many bytes, as many as there were."""
    return (100 * array).astype(f"i{array.itemsize}")


def counted(document: Any, arrays: Any) -> None:
    document["n_samples_of_class"] = [2**40] * 3


def longer(arrays: dict[str, Array], begin: str) -> dict[str, Array]:
    """Arrays whose names begin so, of 1e21."""
    found = {
        name: np.full_like(kept, 1e21) for name, kept in arrays.items() if name.startswith(begin)
    }
    assert found
    return found


#: Memory, head, what is changed, and what is said.
FORGED: dict[str, tuple[Any, Any, Callable[..., Any], str]] = {
    "whole means": (
        "gaussian-diagonal",
        "nearest-mean",
        turned("memory.means_", as_whole),
        r"means_ of its GaussianMemory is int32 of shape \(4,\); expected each feature d",
    ),
    "whole means of a head": (
        "none",
        "nearest-mean",
        turned("head.means_", as_whole),
        "means_ of its NearestMeanHead is int32",
    ),
    "negative variances": (
        "gaussian-diagonal",
        "bayes",
        turned("memory.covariances_", np.negative),
        r"covariances_ of its GaussianMemory .*, from -.* to .*; expected each positive d",
    ),
    "negative diagonals": (
        "gaussian-full",
        "ridge",
        turned("memory.covariances_", np.negative),
        "covariances_ of its GaussianMemory .*in its diagonal; expected each packed",
    ),
    "a negative scatter": (
        "none",
        "lda",
        turned("head.scatter_", np.negative),
        "scatter_ of its StreamingLDAHead .*in its diagonal; expected square",
    ),
    "2**40 samples": (
        "gaussian-diagonal",
        "nearest-mean",
        counted,
        "n_samples_of_class is 1099511627776; expected a whole number from 0 to 4294967295",
    ),
    "other counts": (
        "moments",
        "bayes",
        lambda document, _: document.update(n_samples_of_class=[20, 20, 21]),
        "its class 2 has 21 samples in the header, 20 in the memory",
    ),
    "means far away": (
        "gaussian-diagonal",
        "nearest-mean",
        turned("memory.means_", lambda x: np.full_like(x, 1e20)),
        "means_ of its GaussianMemory .*from 1e.20 to 1e.20; expected each feature",
    ),
    "rows longer than samples": (
        "moments",
        "bayes",
        lambda _, arrays: arrays.update(longer(arrays, "memory.arrays.root_scales")),
        r"roots of its ClassSums .*expected each root \* rank",
    ),
    "not a number": (
        "store-all",
        "nearest-mean",
        turned("memory.features_", lambda x: x * np.nan),
        "features_ of its StoreAllMemory .*nan",
    ),
    "weights of -3e38": (
        "store-all",
        "ridge",
        turned("head.weights_", lambda x: np.full_like(x, -3e38)),
        "weights_ of its RidgeHead .*from -3e.38 to -3e.38; expected float",
    ),
    "nothing of a class": (
        "gaussian-diagonal",
        "nearest-mean",
        lambda document, _: document["memory"]["state"].update(means_={"dict": []}),
        "nothing uses its tensors memory.means_",
    ),
    "a share of samples": (
        "none",
        "lda",
        lambda document, _: document["head"]["state"].update(count_=0.5),
        "count_ of a StreamingLDAHead is '0.5'",
    ),
    "no count": (
        "none",
        "lda",
        lambda document, _: document["head"]["state"].pop("count_"),
        "count_ of its StreamingLDAHead is",
    ),
    "classes in another order": (
        "store-all",
        "ridge",
        lambda document, _: document["head"]["state"].update(classes_=[0.0, 1.0, 2.0]),
        "its RidgeHead numbers its classes",
    ),
    "swapped arrays": (
        "none",
        "lda",
        lambda _, arrays: arrays.update({"head.means_": arrays["head.means_"][:, :3]}),
        r"means_ of its StreamingLDAHead is float32 of shape \(3,\)",
    ),
}


@pytest.mark.parametrize("name", FORGED)
def test_what_no_samples_give_is_refused(name: str, tmp_path: Path) -> None:
    memory, head, change, message = FORGED[name]
    path = tmp_path / "it.frugal"
    memory = make_memory(memory[0], **memory[1]) if isinstance(memory, tuple) else memory
    taught(memory, head() if callable(head) else head).save(path)
    assert FrugalClassifier.load(path).classes_.tolist() == NAMES
    forge(path, change)
    with pytest.raises(MemoryFileError, match=message) as caught:
        FrugalClassifier.load(path)
    assert str(path) in str(caught.value)


def test_what_cannot_be_computed_with_is_told_and_no_traceback(tmp_path: Path) -> None:
    """Features that are all correlated with each other by 1 and -1 at once have no samples."""
    path = tmp_path / "it.frugal"
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 8)), np.repeat(NAMES, 20)
    FrugalClassifier(make_memory("moments", budget="470B")).fit(x, y).save(path)
    change = turned("memory.arrays.correlations", lambda kept: np.full_like(kept, -32767))
    forge(path, change)
    classifier = FrugalClassifier.load(path)
    with pytest.raises(InputError, match="what was learned cannot be computed with"):
        classifier.sample("ant", 3)
    assert main(["status", str(path), "--verify"]) == 2


def test_answers_that_are_no_numbers_are_not_given() -> None:
    classifier: Any = taught("none", "lda")
    model, x = classifier.model_, np.ones((2, DIM), np.float32)
    for wrong in (np.nan, np.inf, -np.inf):
        scores = np.array([[0.0, wrong, 1.0], [wrong] * 3])
        model.head.logits = lambda _, scores=scores: scores
        for ask in (classifier.predict, classifier.predict_proba, model.logits):
            with pytest.raises(InputError, match="some answers are no finite numbers"):
                ask(x)


# --------------------------------------------------------------------------- what is written


def whole_means(classifier: Any) -> None:
    memory = classifier.memory_
    memory.means_ = {label: as_whole(mean) for label, mean in memory.means_.items()}


def negative_variances(classifier: Any) -> None:
    memory = classifier.memory_
    memory.covariances_ = {label: -kept for label, kept in memory.covariances_.items()}


def far_weights(classifier: Any) -> None:
    classifier.head_.weights_ = np.full_like(classifier.head_.weights_, -3e38)


@pytest.mark.parametrize(
    ("head", "spoil"),
    [
        ("nearest-mean", whole_means),
        ("nearest-mean", negative_variances),
        ("ridge", far_weights),
    ],
)
@pytest.mark.parametrize("by_command", [False, True])
def test_what_could_not_be_loaded_is_not_written(
    head: str, spoil: Callable[[Any], None], by_command: bool, tmp_path: Path
) -> None:
    path = tmp_path / "it.frugal"
    classifier: Any = taught("gaussian-diagonal", make_head(head, **small(HEADS, head)))
    classifier.save(path)
    before = path.read_bytes()
    spoil(classifier)
    told = "it.frugal is not written, as it could not be loaded again: .*_ of its .*; expected"
    with pytest.raises(InputError, match=told):
        Store(path).save(classifier.model_) if by_command else classifier.save(path)
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == ["it.frugal"]


@pytest.mark.parametrize(
    ("role", "method", "wrong"),
    [
        ("memory_", "sample", lambda *_: np.full((1, DIM), np.inf)),
        ("memory_", "sample", lambda *_: np.zeros((1, 1))),
        ("memory_", "sample", lambda *_: [][0]),
        ("head_", "logits", lambda _, x: np.full((len(x), 3), np.nan)),
    ],
)
def test_what_cannot_answer_is_not_written(
    role: str, method: str, wrong: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor what can be read, but draws or answers what is no number."""
    path = tmp_path / "it.frugal"
    classifier: Any = taught("gaussian-diagonal", "nearest-mean")
    classifier.save(path)
    before = path.read_bytes()
    monkeypatch.setattr(type(getattr(classifier, role)), method, wrong)
    with pytest.raises(InputError, match="is not written, .* it gives answers of|do not fit tog"):
        classifier.save(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("memory", ["moments", "gaussian-diagonal"])
def test_samples_are_drawn_when_a_file_is_written_and_never_when_it_is_read(
    memory: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path, rows = tmp_path / "it.frugal", tmp_path / "rows.npz"
    kind, draws = MEMORIES.part(memory), []
    sample = kind.sample

    def counting(self: Any, label: int, count: int, rng: Any) -> Any:
        draws.append(label)
        return sample(self, label, count, rng)

    monkeypatch.setattr(kind, "sample", counting)
    np.savez(rows, x=np.ones((1, DIM), np.float32))

    def drawn_by(*words: object) -> int:
        draws.clear()
        assert main([str(word) for word in words]) == 0
        return len(draws)

    classifier = taught(memory, "bayes")
    draws.clear()
    classifier.save(path)
    assert len(draws) == len(NAMES)
    draws.clear()
    FrugalClassifier.load(path).predict(np.ones((1, DIM)))
    assert not draws
    assert drawn_by("predict", path, rows) == drawn_by("status", path) == 0
    assert drawn_by("rename", path, "ant", "wasp", "--quiet") == len(NAMES)
    assert drawn_by("undo", path, "--quiet") == 0
    capsys.readouterr()
    assert drawn_by("status", path, "--verify") == len(NAMES)
    assert "verified: it loads, draws samples and classifies them" in capsys.readouterr().out
    assert drawn_by("status", path, "--verify", "--json") == len(NAMES)
    assert '"verified": true' in capsys.readouterr().out
    assert drawn_by("status", path, "--json") == 0
    assert "verified" not in capsys.readouterr().out


def test_verify_says_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "it.frugal"
    taught("gaussian-diagonal", "nearest-mean").save(path)
    monkeypatch.setattr(GaussianMemory, "sample", lambda *_: np.zeros((1, 9)))
    assert main(["status", str(path)]) == 0
    assert main(["status", str(path), "--verify"]) == 2
    assert f"{path}: it gives answers of the wrong shape" in capsys.readouterr().err


# --------------------------------------------------------------------------- the tables


def test_every_part_of_ours_has_a_table() -> None:
    """Discovered: or what a new part holds would go unchecked."""
    checked = {"FixedPointPrior", "SinglePrior", "MLP"}  # by its constructor, and by its layers
    known = {name.partition(" ")[0] for name in TABLES} | checked
    for registry in (MEMORIES, HEADS):
        assert {registry.part(name).__name__ for name in registry} <= known
    assert set(HELPERS) <= known
    for table in TABLES.values():
        for entry in table.values():
            many, kind, _ = parsed(entry)
            assert many in ("one", "each", "some", "list")
            assert kind


def small(registry: Any, name: str) -> dict[str, Any]:
    given = inspect.signature(registry.part(name)).parameters
    small = {"width": 20, "samples": 8, "epochs": 1, "max_steps": 4} | SMALL
    return {key: value for key, value in small.items() if key in given}


def part(**attributes: Any) -> Any:
    """A memory of ours with these attributes; its table is :data:`TABLES`' of that class."""
    memory = GaussianMemory("diagonal")
    for name, value in attributes.items():
        setattr(memory, name, value)
    return memory


GOOD: dict[str, Any] = {
    "means_": {3: np.ones(2, np.float32), 5: np.ones(2, np.float32)},
    "covariances_": {3: np.zeros(2, np.float32), 5: np.ones(2, np.float32)},
    "count_": 0,
    "pooled_": None,
}


def rows(kind: Any = np.float32, **changed: Any) -> dict[int, Array]:
    made = {3: np.ones(2, kind), 5: np.ones(2, kind)}
    made[5] = changed.get("last", made[5])
    return made


@pytest.mark.parametrize(
    ("attribute", "value", "right"),
    [
        ("means_", rows(np.float64), True),
        ("means_", rows(np.int32), False),
        ("means_", rows(bool), False),
        ("means_", rows(last=np.ones(3, np.float32)), False),
        ("means_", rows(last=np.ones((2, 1), np.float32)), False),
        ("means_", rows(last=np.full(2, 1e15)), True),
        ("means_", rows(last=np.full(2, 1.1e15)), False),
        ("means_", rows(last=np.full(2, -1.1e15)), False),
        ("means_", rows(last=np.array([0.0, np.nan])), False),
        ("covariances_", rows(last=np.array([0.0, -1e-9])), False),
        ("covariances_", rows(last=np.array([0.0, 1e36])), True),
        ("covariances_", rows(last=np.array([0.0, 1.1e36])), False),
        ("covariances_", rows(last=np.array([np.inf, 1.0])), False),
        ("covariances_", rows(last="x"), False),
        ("covariances_", {3: np.ones(2)}, False),
        ("covariances_", {3: np.ones(2), 6: np.ones(2)}, False),
        ("covariances_", [np.ones(2), np.ones(2)], False),
        ("count_", -1, False),
        ("count_", 0, True),
        ("count_", 2**53, True),
        ("count_", 2**53 + 1, False),
        ("count_", 0.5, False),
        ("count_", True, False),
        ("count_", "1", False),
        ("pooled_", np.eye(2), False),
        ("more_", 3, False),
        ("_derived", 3, True),
        ("setting", 3, True),
    ],
)
def test_an_attribute_is_what_its_entry_says(attribute: str, value: Any, right: bool) -> None:
    memory = part(**{**GOOD, attribute: value})
    if right:
        check_held(memory, 2)
        return
    with pytest.raises(MemoryFileError, match=f"{attribute}|GaussianMemory has {attribute}"):
        check_held(memory, 2)


def test_many_small_arrays_are_all_looked_at() -> None:
    """They are looked at together, and one that is wrong is found wherever it stands."""
    for count in (1, 63, 64, 65, 200):
        for wrong in {0, count // 2, count - 1}:
            means = {label: np.ones(2) for label in range(count)}
            spread = {label: np.ones(2) for label in range(count)}
            check_held(part(means_=means, covariances_=spread), 2)
            spread[wrong] = np.array([1.0, -1.0])
            with pytest.raises(MemoryFileError, match="from -1 to 1"):
                check_held(part(means_=means, covariances_=spread), 2)


def test_a_field_is_of_the_kind_that_its_class_says() -> None:
    fields = asdict(PriorState(1, 2, 1e-6, True, 3.0, 4.0))
    assert from_state(PriorState, fields) == PriorState(**fields)
    for name, wrong in (("task", 1.5), ("converged", 1), ("residual", "x")):
        with pytest.raises(MemoryFileError, match=f"^{name} of its PriorState is "):
            from_state(PriorState, fields | {name: wrong})
    with pytest.raises(MemoryFileError, match="^a PriorState cannot learn 'other'"):
        from_state(PriorState, fields | {"other": 1})


def test_a_part_from_outside_checks_itself() -> None:
    check_held(SimpleNamespace(means_="anything", classes=[0.5]), 3)


def test_a_packed_triangle_has_its_diagonal_where_rows_begin() -> None:
    full = np.arange(16.0).reshape(4, 4)
    for size in range(5):
        packed = full[:size, :size][np.triu_indices(size)]
        assert packed_diagonal(packed).tolist() == full.diagonal()[:size].tolist()


def test_every_kind_lets_its_bounds_in() -> None:
    for letters, least, most in KINDS.values():
        assert letters
        assert least < most


def test_sides_are_settings_attributes_or_the_same_wherever_they_stand() -> None:
    head: Any = taught("store-all", "ridge").head_
    check_held(head, DIM)
    head.classes_ = [0, 1]
    with pytest.raises(MemoryFileError, match="of its RidgeHead is float.. of shape"):
        check_held(head, DIM)


def test_a_head_reads_the_memory_of_its_model(tmp_path: Path) -> None:
    classifier: Any = taught("moments", "bayes")
    classifier.head_.memory_ = copy.deepcopy(classifier.memory_)
    with pytest.raises(InputError, match="its head reads another memory than its own"):
        classifier.save(tmp_path / "it.frugal")


def test_sums_that_a_file_has_no_room_for_are_refused(tmp_path: Path) -> None:
    """Four bytes count the samples of a class: one more is said, and nothing is written."""
    classifier: Any = taught("moments", "bayes")
    memory: MomentMemory = classifier.memory_
    memory.sums_.counts = dict.fromkeys(memory.counts_, 2**32)
    memory._derived = {}
    with pytest.raises(InputError, match=r"4,294,967,296 samples; .* at most 4,294,967,295"):
        classifier.save(tmp_path / "it.frugal")
