"""What every memory and every head must survive: being saved. Discovered, not listed."""

from __future__ import annotations

import copy
import inspect
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from frugalvae import FrugalClassifier, make_head, make_memory
from frugalvae.parts import HEADS, MEMORIES
from tests.conftest import SMALL, blobs
from tests.small_clip import clip_on_disk

QUICK = SMALL | {"epochs": 3, "max_steps": 10, "width": 50, "samples": 8}
FRESH = {"on_saturation": "fresh"}

#: Memories and heads with settings that change what there is to save.
SPECIAL: dict[str, tuple[Any, Any]] = {
    "fresh decoders": (("vae-fo", FRESH), ("nearest-mean", {})),
    "fresh forks with embeddings": (("vae-fodce", FRESH), ("nearest-mean", {})),
    "one map for all": (("vae-fo", {"classwise": False}), ("nearest-mean", {})),
    "a prior of its own": (
        ("vae-fo", {"prior": {"weight": 50.0, "history": 2}}),
        ("nearest-mean", {}),
    ),
    "text": (("gaussian-diagonal", {}), ("cosine", {"start": "text"})),
}
CASES = (
    SPECIAL
    | {name: ((name, {}), ("nearest-mean", {})) for name in MEMORIES.names}
    | {name: (("store-all", {}), (name, {})) for name in HEADS.names if name != "bayes"}
    | {"bayes": (("gaussian-shared", {}), ("bayes", {}))}
    | {"moments under bayes": (("moments", {}), ("bayes", {}))}
    | {"few coordinates of moments": (("moments", {"budget": 160}), ("bayes", {}))}
)
if "ranpac" in HEADS:  # the laboratory is installed
    CASES["penalties"] = (("none", {}), ("ranpac", {"penalties": [1, 100]}))

#: Tensor bytes of a file beyond those of the report, for each class; and in all.
PER_CLASS = {
    **dict.fromkeys(("vae-ceo", "vae-ceo-literal"), 4 * SMALL["latent"]),  # all at the origin
    "fecam": -8,
    "anacp": -8,
}
ALONE = {
    "gaussian-shared": -8,
    "factors": -16,
    "bayes": -8,
    "lda": -8,
    "ranpac": -16,
    "penalties": -16,
    "fly-cl": -16,
    "acil": -8,
    "gacl": -8,
    "klda": -24,
    "klda-e": -24,
    "randumb": -24,
    "lr-rgda": -8,
    "fecam": -8,
    "anacp": -16,
    "knn": -8,
}  # numbers in the JSON


def quick(registry: Any, make: Any, name: str, settings: dict[str, Any]) -> Any:
    known = inspect.signature(registry.part(name)).parameters
    if "model" in known:
        settings = {"model": clip_on_disk()} | settings
    if "prior" in settings:
        from frugalvae.paper.priors import FixedPointPrior

        settings = settings | {"prior": FixedPointPrior(**settings["prior"])}
    return make(name, **{k: v for k, v in QUICK.items() if k in known} | settings)


def teach(classifier: FrugalClassifier, classes: list[int], **settings: Any) -> FrugalClassifier:
    task = blobs(classes)
    text = {f"class {label}": task.of(label).mean(axis=0) for label in classes}
    labels = np.array([f"class {label}" for label in task.labels.tolist()])
    return classifier.partial_fit(task.features, labels, text=text, **settings)


@cache
def taught(case: str) -> FrugalClassifier:
    memory, head = CASES[case]
    made = FrugalClassifier(
        quick(MEMORIES, make_memory, *memory), quick(HEADS, make_head, *head), random_state=5
    )
    return teach(teach(made, [4, 1]), [2])


@pytest.fixture(params=list(CASES))
def classifier(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> FrugalClassifier:
    if request.param.startswith("fresh"):  # a null space is used up after one class
        monkeypatch.setattr("frugalvae.paper.records.LEAST_FREE", 1.0)
    return copy.deepcopy(taught(request.param))


def again(classifier: FrugalClassifier, folder: Path) -> FrugalClassifier:
    classifier.save(folder / "it.frugal")
    model = str(getattr(classifier.head_, "model", "none"))  # which a file may not choose
    return FrugalClassifier.load(folder / "it.frugal", device="cpu", trust=[model])


def rounds(classifier: FrugalClassifier) -> bool:
    """Whether a file keeps fewer digits of its memory."""
    return getattr(classifier.memory_, "rounds", False)


def assert_alike(one: FrugalClassifier, other: FrugalClassifier, exact: bool = False) -> None:
    """Bit for bit; or nearly, where a file rounds, unless it is to be exact."""
    assert one.memory_report() == other.memory_report()
    assert np.array_equal(one.task_of_class_, other.task_of_class_)
    if rounds(one) and not exact:
        assert_nearly_alike(one, other)
        return
    x = blobs(list(range(6)), seed=9).features
    assert np.array_equal(one.predict(x), other.predict(x))
    assert np.array_equal(one.predict_proba(x), other.predict_proba(x))
    for label in one.classes_ if one.memory_.arrays() else []:
        assert np.array_equal(one.sample(label, 7), other.sample(label, 7))
    for part, twin in ((one.memory_, other.memory_), (one.head_, other.head_)):
        kept, same = part.arrays(), twin.arrays()
        assert kept.keys() == same.keys()
        assert all(np.array_equal(kept[name], same[name]) for name in kept)


def assert_nearly_alike(one: FrugalClassifier, other: FrugalClassifier) -> None:
    """As far as rounding lets them be, on samples of the classes that they know."""
    known = [int(label.removeprefix("class ")) for label in one.classes_.tolist()]
    x = blobs(known, seed=9).features
    assert np.array_equal(one.predict(x), other.predict(x))
    np.testing.assert_allclose(one.predict_proba(x), other.predict_proba(x), atol=0.02)
    for label in one.classes_:
        drawn, twin = one.sample(label, 200), other.sample(label, 200)
        np.testing.assert_allclose(drawn.mean(axis=0), twin.mean(axis=0), atol=0.2 * drawn.std())
        np.testing.assert_allclose(drawn.std(), twin.std(), rtol=0.05)
    kept, same = one.memory_.arrays(), other.memory_.arrays()
    assert {name: (array.shape, array.dtype) for name, array in kept.items()} == {
        name: (array.shape, array.dtype) for name, array in same.items()
    }


def test_a_loaded_classifier_answers_and_learns_on_as_if_never_saved(
    classifier: FrugalClassifier, tmp_path: Path
) -> None:
    loaded = again(classifier, tmp_path)
    assert_alike(classifier, loaded)
    assert_alike(loaded, again(loaded, tmp_path), exact=True)  # rounding again changes nothing
    for number, defer_head in ((3, False), (0, True), (5, True)):
        teach(classifier, [number], defer_head=defer_head)
        teach(loaded, [number], defer_head=defer_head)
        loaded = again(loaded, tmp_path)
    assert_alike(classifier, loaded)


def test_a_loaded_classifier_starts_over_with_the_settings_it_was_made_with(
    classifier: FrugalClassifier, tmp_path: Path
) -> None:
    loaded = again(classifier, tmp_path)
    task = blobs([7, 8])
    text = {label: task.of(label).mean(axis=0) for label in (7, 8)}
    for one in (classifier, loaded):
        one.fit(task.features, task.labels, text=text, names=task.names)
    assert_alike(classifier, loaded, exact=True)


def test_a_file_holds_the_tensors_that_the_report_counts(
    classifier: FrugalClassifier, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    classifier.save(tmp_path / "it.frugal")
    case = request.node.callspec.params["classifier"]
    held = safetensors.numpy.load_file(tmp_path / "it.frugal").values()
    explained = PER_CLASS.get(case, 0) * len(classifier.classes_) + ALONE.get(case, 0)
    assert sum(t.nbytes for t in held) == classifier.memory_report().bytes + explained


def test_saving_changes_nothing_and_writes_the_same_file_twice(
    classifier: FrugalClassifier, tmp_path: Path
) -> None:
    twin = copy.deepcopy(classifier)
    files = [tmp_path / "a", tmp_path / "b"]
    for file in files:
        classifier.save(file)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert_alike(twin, classifier, exact=True)
