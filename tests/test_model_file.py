"""A model to a file and back: all that it knows, and what is said if that cannot be."""

from __future__ import annotations

import re
import warnings
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from frugalvae import __version__
from frugalvae.digests import DIGEST
from frugalvae.errors import (
    DeviceError,
    InputError,
    MemoryFileError,
    MissingPackageError,
    UntrustedError,
)
from frugalvae.model.confidence import Calibration, TaughtNovelty
from frugalvae.model.forgetting import forget
from frugalvae.model.model import Model, Recipe
from frugalvae.storage import model_file
from frugalvae.storage.model_file import (
    GET_ANOTHER,
    Contents,
    describe,
    from_bytes,
    load,
    make,
    model_from_document,
    modules_of,
    read_file,
    save,
    verify,
)
from frugalvae.storage.states import Reader, Writer
from tests.conftest import blobs
from tests.outside import MeanMemory, NearestHead

TRUST = ["tests.outside"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "it.frugal"


def taught(memory: Any = "gaussian-diagonal", head: Any = "nearest-mean", **how: Any) -> Model:
    task = blobs([0, 1, 2, 3], dim=4)
    names = np.array(["ant", "bee", "cat", "dax"])[task.labels]
    first, second = task.labels < 2, task.labels >= 2
    model = Model(Recipe(memory, head, random_state=5)).learn(task.features[first], names[first])
    return model.learn(task.features[second], names[second], **how)


def told(model: Model) -> dict[str, Any]:
    """All that a model knows, as plain values."""
    kept = {each.name: getattr(model, each.name) for each in fields(model)}
    for part in ("memory", "head"):
        arrays = kept[part].arrays().items()
        kept[part] = type(kept[part]), {name: array.tolist() for name, array in arrays}
    for name in ("digests", "withheld"):
        kept[name] = {number: found.tolist() for number, found in kept[name].items()}
    return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in kept.items()}


def everything() -> Model:
    """A model with something in every field."""
    model, _ = forget(taught("gaussian-diagonal", "ridge", defer_head=True), "bee")
    return replace(
        model,
        calibration=Calibration(2.5),
        taught_novelty=TaughtNovelty(tuple(map(float, range(101))), 7, "fit"),
        encoder={"encoder": "clip"},
        feature_names=("a", "b", "c", "d"),
        digests={2: np.array([b"3", b"5"], DIGEST)},
        withheld={0: np.array([b"4"], DIGEST), 3: np.array([b"1"], DIGEST)},
        aliases={"wasp": "ant", "gone": None},
    )


def test_all_that_a_model_knows_comes_back(path: Path) -> None:
    model = everything()
    assert model.head_stale
    save(model, path)
    assert told(load(path)) == told(model)
    plain = replace(taught(), recipe=replace(model.recipe, head="nearest-mean", calibrate=True))
    save(plain, path)
    assert told(load(path)) == told(plain)
    document = read_file(path).document
    assert document["library"] == __version__
    assert document["feature_names"] is None
    assert not {"digests", "withheld", "aliases"} & document.keys()
    assert load(path, "cpu").recipe.device == "cpu"


def test_a_model_that_knows_nothing_has_a_file_too(path: Path) -> None:
    save(Model(Recipe("moments", calibrate=True)), path)
    assert load(path).recipe == Recipe("moments", calibrate=True)
    assert not len(load(path).classes)


def test_what_is_in_a_file_is_told_without_making_it(path: Path) -> None:
    save(taught(MeanMemory(), NearestHead()), path)
    contents = read_file(path)
    assert contents.size == path.stat().st_size
    assert contents.document["memory"]["class"] == "tests.outside:MeanMemory"
    assert from_bytes(path.read_bytes())[1].keys() == contents.arrays.keys()


# --------------------------------------------------------------------------- saving


def broken(part: str) -> Model:
    model = taught()
    memory, head = model.parts()
    held: Any = memory if part == "memory" else head
    held.means_ = {label: mean * np.inf for label, mean in held.means_.items()}
    return replace(model, memory=memory, head=head)


@pytest.mark.parametrize(("part", "kind"), [("memory", "GaussianMemory"), ("head", "NearestMea")])
def test_what_is_not_finite_is_not_written(part: str, kind: str, path: Path) -> None:
    with pytest.raises(InputError, match=rf"^learning gave numbers that are .*\({kind}"):
        save(broken(part), path)
    assert not path.exists()


def test_a_head_that_is_due_is_not_looked_at(path: Path) -> None:
    model = taught("gaussian-diagonal", "ridge", defer_head=True)
    assert model.head is not None
    model.head.weights_ = np.full((4, 2), np.nan)  # type: ignore[attr-defined]
    writer = Writer()
    assert describe(model, writer)["head_due"] is True
    save(everything(), path)


@pytest.mark.parametrize("fault", [MemoryFileError, InputError, UntrustedError])
def test_what_cannot_be_loaded_or_answer_again_is_not_written(
    fault: type[Exception], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(model: Model) -> None:
        raise fault(f"its answers are odd; {GET_ANOTHER}")

    monkeypatch.setattr(model_file, "check_answers", fail)
    odd = "its parts do not fit together (InputError: its answers are odd; get another copy, or "
    reason = odd if fault is InputError else "its answers are odd"
    message = f"{path} is not written, as it could not be loaded again: {reason}"
    with pytest.raises(InputError, match=f"^{re.escape(message)}") as caught:
        save(taught(), path)
    assert str(caught.value) == message or fault is InputError
    assert not path.exists()
    with pytest.raises(MemoryFileError, match=f"^{path}: "):
        verify(taught(), path)


def test_whoever_made_a_model_had_its_modules() -> None:
    model = taught(MeanMemory(), NearestHead())
    writer = Writer()
    describe(model, writer)
    assert set(modules_of(model, writer)) == {"tests.outside"}
    asked = Model(Recipe("my_module:Memory", "other.module:Head"))
    assert modules_of(asked, Writer()) == ["my_module", "other.module"]
    assert modules_of(Model(Recipe("moments")), Writer()) == []
    assert modules_of(Model(Recipe(MeanMemory())), Writer()) == []


# --------------------------------------------------------------------------- reading


def test_files_that_are_none_are_told_by_the_name_that_was_given(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(MemoryFileError, match=f"^{path}: there is no such file; check the path$"):
        read_file(path)
    with pytest.raises(MemoryFileError, match="^mine: there is no such file"):
        read_file(path, Path("mine"))
    with pytest.raises(MemoryFileError, match="^mine is a folder or a device; give the name of a"):
        read_file(path.parent, Path("mine"))
    path.write_bytes(b"nothing")
    with pytest.raises(MemoryFileError, match="^mine: it is not a .frugal file"):
        read_file(path, Path("mine"))

    def refuse(_: Path) -> bytes:
        raise PermissionError(13, "not yours")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(MemoryFileError, match=r"^mine cannot be read \(not yours\)$"):
        read_file(path, Path("mine"))


def test_a_document_that_contradicts_itself_is_refused(path: Path) -> None:
    save(taught(), path)
    document, arrays = from_bytes(path.read_bytes())
    del document["sha256"], document["format"]
    path.write_bytes(model_file.to_bytes(document | {"n_tasks": 9}, arrays))
    with pytest.raises(MemoryFileError, match=f"^{path}: n_tasks is 9; expected"):
        read_file(path)


def test_trust_is_a_module_or_several(path: Path) -> None:
    save(taught(MeanMemory(), NearestHead()), path)
    for trust in ("tests.outside", TRUST, ("tests",)):
        assert type(load(path, trust=trust).memory) is MeanMemory
    for untrusted in ("", (), ["other"]):
        with pytest.raises(UntrustedError, match=f"^{path}: "):
            load(path, trust=untrusted)


def test_a_head_is_no_memory_and_none_of_it_is_made(path: Path) -> None:
    save(taught(MeanMemory(), NearestHead()), path)
    contents = read_file(path)
    head = contents.document["head"]
    document = {**contents.document, "memory": head}
    with pytest.raises(
        MemoryFileError, match=r"InputError: memory 'tests.outside:NearestHead' has"
    ):
        make(Contents(document, contents.arrays, contents.size), path, None, TRUST)


def test_arrays_that_nothing_uses_are_refused(path: Path) -> None:
    save(taught(), path)
    contents = read_file(path)
    more = Contents(contents.document, {**contents.arrays, "more": np.ones(1)}, contents.size)
    with pytest.raises(MemoryFileError, match=f"^{path}: nothing uses its tensors more$"):
        make(more, path)
    model = model_from_document(contents.document, Reader(dict(contents.arrays)), "cpu")
    assert (model.recipe.device, model.n_taught) == ("cpu", 4)


@pytest.mark.parametrize(
    ("fault", "kind", "message"),
    [
        (DeviceError("no such device"), DeviceError, "no such device"),
        (MissingPackageError("pip install x"), MissingPackageError, "mine: pip install x"),
        (UntrustedError("module m"), UntrustedError, "mine: module m"),
        (MemoryFileError("damaged"), MemoryFileError, "mine: damaged"),
        (
            IndexError("4"),
            MemoryFileError,
            f"mine: its parts do not fit together (IndexError: 4); {GET_ANOTHER}",
        ),
    ],
)
def test_faults_of_a_file_are_told_with_its_name(
    fault: Exception, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind) as caught, model_file._faults_of("mine"):
        raise fault
    assert (type(caught.value), str(caught.value)) == (kind, message)


def test_numbers_of_a_file_that_overflow_are_checked_and_not_warned_of() -> None:
    with warnings.catch_warnings(), model_file._faults_of("mine"):
        warnings.simplefilter("error")
        assert np.isinf(np.float32(3e38) * np.float32(10))
        assert np.isnan(np.array([0.0]) / np.array([0.0]))
