"""Forgetting, updating and renaming: what is refused, what is exact, and what it costs."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from frugalvae import FrugalClassifier, make_head
from frugalvae.errors import InputError, KnownClassError, UnknownClassError
from frugalvae.estimator import NotFittedError
from frugalvae.images.feature_file import Features
from tests.conftest import accuracy, blobs, load_digits, made, real_features, small_head
from tests.test_learner import named, small, state

NETWORK = {"hidden": 64, "latent": 32, "max_steps": 200}


@pytest.fixture(scope="module")
def once() -> FrugalClassifier:
    return small().partial_fit(*named([0, 1])).partial_fit(*named([2]))


@pytest.fixture
def taught(once: FrugalClassifier) -> FrugalClassifier:
    return copy.deepcopy(once)


# --------------------------------------------------------------------------- refusals


def test_what_cannot_be_forgotten_updated_or_renamed_changes_nothing(
    taught: FrugalClassifier,
) -> None:
    before = state(taught)
    x = np.zeros((2, 8))
    refusals: list[tuple[Any, type[Exception], str]] = [
        (lambda: taught.forget("class 11"), UnknownClassError, "never taught. Did you mean 'class"),
        (lambda: taught.forget(["class 1"]), UnknownClassError, "never taught"),
        (lambda: taught.forget("class 1", scrub="yes"), InputError, "scrub is 'yes'"),
        (lambda: taught.partial_fit(x[:, :7], ["class 1"] * 2), InputError, r"7 feat|\(2, 7\)"),
        (lambda: taught.partial_fit(x[:0], []), InputError, r"0 sample|shape \(0, 8\)"),
        (lambda: taught.partial_fit(x + np.nan, ["class 1"] * len(x)), InputError, "not finite"),
        (lambda: taught.rename("class 9", "a"), UnknownClassError, "Did you mean"),
        (
            lambda: taught.rename("class 1", "class 2"),
            KnownClassError,
            "choose another name",
        ),
        (lambda: taught.rename("class 1", 7), InputError, "labels like 7 were given"),
        (lambda: taught.rename("class 1", ["a"]), InputError, "expected one label"),
        *(
            (partial(taught.rename, "class 1", odd), InputError, "a name or a whole number")
            for odd in (None, object(), b"x", np.datetime64("2026-01-01"), 1.5, np.nan)
        ),
    ]
    for refused, error, message in refusals:
        with pytest.raises(error, match=message):
            refused()
        assert state(taught) == before


def test_when_the_only_class_is_forgotten_nothing_is_known(tmp_path: Path) -> None:
    classifier = FrugalClassifier("gaussian-diagonal").partial_fit(*named([0]))
    assert classifier.forget("class 0") == []
    for clf in (classifier, copied(classifier, tmp_path / "empty.frugal")):
        assert clf.model_.classes.tolist() == []
        assert [event["action"] for event in clf.history_] == ["learn", "forget"]
        assert [event["action"] for event in clf.history_] == ["learn", "forget"]
        with pytest.raises(NotFittedError):
            clf.predict([[0.0, 1.0]])
        wider = np.eye(5, dtype=np.float32)  # of any kind and width, as at first
        fresh = FrugalClassifier("gaussian-diagonal").partial_fit(wider, [1, 1, 2, 2, 2])
        clf.partial_fit(wider, [1, 1, 2, 2, 2])
        assert clf.model_.classes.tolist() == [1, 2]
        assert np.array_equal(clf.model_.predict_proba(wider), fresh.predict_proba(wider))


def copied(classifier: FrugalClassifier, path: Path) -> FrugalClassifier:
    classifier.save(path)
    return FrugalClassifier.load(path)


@pytest.mark.parametrize("verb", ["forget", "partial_fit"])
def test_a_failure_in_the_middle_changes_nothing(
    taught: FrugalClassifier, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> None:
        raise KeyboardInterrupt

    before = state(taught)
    method = verb if verb == "forget" or taught.head_.needs_every_task else "learn"
    monkeypatch.setattr(type(taught.head_), method, fail)  # the memory has changed by then
    given = ["class 1"] if verb == "forget" else [np.zeros((2, 8)), ["class 1"] * 2]
    with pytest.raises(KeyboardInterrupt):
        getattr(taught, verb)(*given)
    assert state(taught) == before


def test_known_classes_and_new_ones_are_taught_together(taught: FrugalClassifier) -> None:
    taught.partial_fit(*named([1, 3], seed=4))
    assert taught.model_.classes.tolist() == [f"class {n}" for n in range(4)]
    assert taught.model_.n_samples_of_class.tolist() == [20, 40, 20, 20]
    assert taught.model_.task_of_class.tolist() == [0, 0, 1, 2]
    x, y = named([0, 1, 2, 3], seed=9)
    assert accuracy(y, taught.predict(x)) == 1.0
    event = taught.history_[-1]
    assert (event["action"], event["task"]) == ("learn", 2)
    assert event["classes"] == {"class 1": 20, "class 3": 20}


# --------------------------------------------------------------------------- exactness


@pytest.mark.parametrize(
    ("memory", "head"),
    [
        ("gaussian-diagonal", "nearest-mean"),
        ("gaussian-full", "nearest-mean"),
        ("gaussian-shared", "nearest-mean"),
        ("none", "lda"),
    ],
)
def test_sums_are_updated_as_if_all_samples_had_come_at_once(memory: str, head: str) -> None:
    x, y = named([0, 1, 2])
    late = (y == "class 1") & (np.arange(len(y)) % 3 > 0)
    at_once = FrugalClassifier(made(memory), head).fit(x, y)
    updated = (
        FrugalClassifier(made(memory), head).fit(x[~late], y[~late]).partial_fit(x[late], y[late])
    )
    for part in ("memory_", "head_"):
        one, other = (getattr(made, part).arrays() for made in (at_once, updated))
        for name, kept in one.items():
            np.testing.assert_allclose(other[name], kept, rtol=1e-4, atol=1e-5)


def test_a_deferred_head_stays_due() -> None:
    classifier = FrugalClassifier("gaussian-diagonal", "ridge").partial_fit(*named([0, 1]))
    classifier.partial_fit(*named([2]), defer_head=True)
    for change in (
        lambda: classifier.partial_fit(*named([2], seed=5)),
        lambda: classifier.forget("class 2"),
        lambda: classifier.forget("class 1", scrub=True),
    ):
        change()
        assert classifier.model_.head_stale
    assert classifier.predict(named([0])[0]).tolist() == ["class 0"] * 20


# --------------------------------------------------------------------------- names and history


def test_a_renamed_class_answers_by_its_new_name(taught: FrugalClassifier, tmp_path: Path) -> None:
    taught.rename("class 0", "a much longer name")
    x, y = named([0, 1, 2], seed=9)
    y = np.where(y == "class 0", "a much longer name", y)
    assert accuracy(y, taught.predict(x)) == 1.0
    taught.save(tmp_path / "it.frugal")
    assert FrugalClassifier.load(tmp_path / "it.frugal").model_.classes[0] == "a much longer name"
    taught.partial_fit(*named([0]))
    assert taught.model_.classes.tolist() == ["a much longer name", "class 1", "class 2", "class 0"]


def test_numbers_stay_numbers() -> None:
    x = blobs([0]).features[:2]
    classifier = FrugalClassifier("gaussian-diagonal").fit(x, np.array([1, 2], dtype=np.int8))
    classifier.rename(np.int8(1), 3000)
    assert classifier.model_.classes.tolist() == [3000, 2]
    assert classifier.history_[-1]["from"] == 1
    json.dumps(classifier.history_)


def test_prompts_speak_of_the_new_name_only_if_they_spoke_of_the_label() -> None:
    classifier = FrugalClassifier("gaussian-diagonal", small_head("prompt"))
    x, y = named([0, 1])
    classifier.partial_fit(x, y, names={"class 1": "a robin"})
    token, vectors = classifier.head_.tokens_.clone(), classifier.head_.vectors_.clone()
    classifier.rename("class 0", "wren").rename("class 1", "robin")
    assert classifier.head_.names_ == {0: "wren", 1: "a robin"}
    assert classifier.head_.tokens_.equal(token)
    assert classifier.head_.vectors_.equal(vectors)


def test_the_history_tells_every_change_in_plain_values(taught: FrugalClassifier) -> None:
    taught.partial_fit(named([1])[0][:7], ["class 1"] * 7)
    taught.rename("class 1", "one")
    taught.forget("one")
    told = taught.history_
    assert [event["action"] for event in told] == ["learn", "learn", "learn", "rename", "forget"]
    assert [event["classes"] for event in told] == [
        {"class 0": 20, "class 1": 20},
        {"class 2": 20},
        {"class 1": 7},
        {"one": 27},
        {"one": 27},
    ]
    assert told[1]["task"] == 1
    assert (told[3]["from"], told[3]["to"]) == ("class 1", "one")
    assert told[4]["remains"]
    assert not told[4]["scrub"]
    for event in told:
        age = datetime.now(UTC) - datetime.fromisoformat(event["when"])
        assert age.total_seconds() < 600
    assert json.loads(json.dumps(told)) == list(taught.history_)


def test_the_history_is_kept_in_the_file_with_what_others_add(
    taught: FrugalClassifier, tmp_path: Path
) -> None:
    taught.history_[-1]["source"] = "photos"
    taught.save(tmp_path / "it.frugal")
    loaded = FrugalClassifier.load(tmp_path / "it.frugal")
    assert loaded.history_ == taught.history_
    assert loaded.forget("class 0")
    assert len(loaded.history_) == 3


# --------------------------------------------------------------------------- real data


def accuracies(classifier: FrugalClassifier, data: Features) -> dict[Any, float]:
    predicted = classifier.predict(data.x_test)
    return {
        label: accuracy(data.y_test[rows], predicted[rows])
        for label in classifier.model_.classes.tolist()
        if (rows := data.y_test == label).any()
    }


def part(data: Features, classes: int) -> Features:
    kept = data.classes[:classes]
    train, test = np.isin(data.y_train, kept), np.isin(data.y_test, kept)
    return Features(
        data.name, data.x_train[train], data.y_train[train], data.x_test[test], data.y_test[test]
    )


def check_update(classifier: FrugalClassifier, data: Features, tolerance: float) -> None:
    """A third of a class first, the rest later."""
    label = data.classes[1]
    own = np.flatnonzero(data.y_train == label)
    late = np.isin(np.arange(len(data.y_train)), own[len(own) // 3 :])
    for classes in np.array_split(data.classes, 2):
        rows = np.isin(data.y_train, classes) & ~late
        classifier.partial_fit(data.x_train[rows], data.y_train[rows])
    before = accuracies(classifier, data)
    after = accuracies(classifier.partial_fit(data.x_train[late], data.y_train[late]), data)
    others = [after[other] - before[other] for other in before if other != label]
    assert after[label] >= before[label]
    assert np.mean(others) > -tolerance


@pytest.mark.parametrize(
    ("memory", "head"),
    [
        ("gaussian-shared", "cosine"),
        ("gaussian-full", "ridge"),
        (("vae-fo", NETWORK), "cosine"),
        ("none", "lda"),
        ("none", "nearest-mean"),
    ],
    ids=["gaussian", "full", "vae", "lda", "nearest-mean"],
)
def test_on_digits_an_update_helps_the_class_and_leaves_the_others(memory: Any, head: str) -> None:
    check_update(FrugalClassifier(made(memory), head), load_digits(), tolerance=0.03)


@pytest.mark.parametrize("memory", ["gaussian-shared", ("vae-fo", {"max_steps": 60})])
def test_on_clip_features_an_update_helps_the_class(memory: Any) -> None:
    check_update(
        FrugalClassifier(made(memory)),
        part(real_features("ucf101-clip_vit_b32"), 20),
        tolerance=0.03,
    )


@pytest.mark.parametrize(
    "memory", ["gaussian-shared", ("vae-fo", NETWORK)], ids=["gaussian", "vae"]
)
def test_on_digits_forgetting_hurts_no_other_class_and_scrubbing_little(memory: Any) -> None:
    data = load_digits()
    classifier = FrugalClassifier(made(memory), make_head("cosine", epochs=10))
    for classes in np.array_split(data.classes, 5):
        rows = np.isin(data.y_train, classes)
        classifier.partial_fit(data.x_train[rows], data.y_train[rows])
    before = accuracies(classifier, data)
    del before[3]
    scrubbed = copy.deepcopy(classifier)
    classifier.forget(3)
    scrubbed.forget(3, scrub=True)
    kept, again = accuracies(classifier, data), accuracies(scrubbed, data)
    assert all(kept[label] >= before[label] for label in before)
    assert np.mean([again[label] - before[label] for label in before]) > -0.05
