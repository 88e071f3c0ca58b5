"""What every memory and every head must do: forget, learn again, take in more. Discovered."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from frugalvae import FrugalClassifier, make_head, make_memory
from frugalvae.errors import InputError
from frugalvae.parts import HEADS, MEMORIES
from tests.conftest import accuracy, blobs, small_head
from tests.contract.test_saving import CASES, again, assert_alike, quick, rounds, teach


def made(case: str) -> FrugalClassifier:
    memory, head = CASES[case]
    classifier = FrugalClassifier(
        quick(MEMORIES, make_memory, *memory), quick(HEADS, make_head, *head), random_state=5
    )
    return teach(teach(teach(classifier, [4, 1]), [2]), [3, 0])


@pytest.fixture(scope="module", params=list(CASES))
def whole(request: pytest.FixtureRequest) -> FrugalClassifier:
    return made(request.param)


@pytest.fixture
def taught(whole: FrugalClassifier) -> FrugalClassifier:
    return copy.deepcopy(whole)


def samples(classes: list[int], **settings: Any) -> tuple[np.ndarray, np.ndarray]:
    task = blobs(classes, seed=9, **settings)
    return task.features, np.array([f"class {label}" for label in task.labels.tolist()])


def assert_sound(classifier: FrugalClassifier, labels: list[str]) -> None:
    """Everything that can be asked fits together."""
    assert classifier.model_.classes.tolist() == labels
    for name in ("numbers", "task_of_class", "n_samples_of_class"):
        assert len(getattr(classifier.model_, name)) == len(labels), name
    for part in (classifier.memory_, classifier.head_):
        assert sorted(part.classes) == classifier.model_.numbers.tolist()
        tensors, counted = part.arrays(), part.components()
        assert sum(c.bytes for c in counted) == sum(t.nbytes for t in tensors.values())
    x, _ = samples([0, 1, 2, 3, 4])
    assert classifier.model_.predict_proba(x).shape == (100, len(labels))
    assert set(classifier.predict(x)) <= set(labels)
    if classifier.memory_.arrays():
        assert all(classifier.sample(label, 3).shape == (3, 8) for label in labels)


LEFT = ["class 1", "class 4", "class 0", "class 3"]


def test_a_forgotten_class_is_gone_and_the_others_score_as_before(
    taught: FrugalClassifier, tmp_path: Path
) -> None:
    x, _ = samples([0, 1, 3, 4])
    kept = [label != "class 2" for label in taught.model_.classes]
    before, size = taught.model_.logits(x)[:, kept], taught.memory_report().bytes
    remains = taught.forget("class 2")
    assert all(isinstance(sentence, str) for sentence in remains)
    assert_sound(taught, LEFT)
    if hasattr(taught.head_, "memory_") and rounds(taught):  # what all share loses the class, too
        assert np.array_equal(taught.model_.logits(x).argmax(axis=1), before.argmax(axis=1))
    else:
        np.testing.assert_allclose(taught.model_.logits(x), before, rtol=1e-4, atol=1e-4)
    solved = getattr(taught.head_, "solved_", [])  # AnaCP keeps weights that it cannot derive now
    assert taught.memory_report().bytes - sum(array.nbytes for array in solved) < size
    loaded = again(taught, tmp_path)
    assert_alike(taught, loaded)
    for one in (taught, loaded):
        teach(one, [2])
    assert_alike(taught, loaded)
    assert_sound(taught, [*LEFT, "class 2"])
    assert taught.model_.numbers.tolist() == [0, 1, 3, 4, 5]
    assert taught.model_.task_of_class.tolist() == [0, 0, 2, 2, 3]


def test_the_class_that_was_taught_last_can_be_forgotten(taught: FrugalClassifier) -> None:
    for label in ("class 3", "class 0"):  # a whole task
        taught.forget(label)
    assert_sound(taught, ["class 1", "class 4", "class 2"])
    teach(taught, [3])
    assert taught.model_.numbers.tolist() == [0, 1, 2, 5]
    assert_sound(taught, ["class 1", "class 4", "class 2", "class 3"])


def test_after_scrubbing_nothing_remains(taught: FrugalClassifier, tmp_path: Path) -> None:
    remains = copy.deepcopy(taught).forget("class 1")
    if remains and not taught.memory_.arrays():
        with pytest.raises(InputError, match="memory 'none' keeps nothing to replay"):
            taught.forget("class 1", scrub=True)
        return
    assert taught.forget("class 1", scrub=True) == []
    assert copy.deepcopy(taught).forget("class 4") == [] or remains
    assert_sound(taught, ["class 4", "class 2", "class 0", "class 3"])
    assert_alike(taught, again(taught, tmp_path))
    teach(taught, [1])
    assert_sound(taught, ["class 4", "class 2", "class 0", "class 3", "class 1"])


def test_more_examples_of_a_class(taught: FrugalClassifier, tmp_path: Path) -> None:
    labels = taught.model_.classes.tolist()
    more, _ = samples([4], per_class=12)
    loaded = again(taught, tmp_path)
    for one in (taught, loaded):
        one.partial_fit(more, ["class 4"] * len(more))
    assert_alike(taught, loaded)
    assert_sound(taught, labels)
    assert taught.model_.n_samples_of_class.tolist() == [20, 32, 20, 20, 20]
    assert taught.model_.numbers.tolist() == [0, 1, 2, 3, 4]
    assert_alike(taught, again(taught, tmp_path))
    teach(taught, [5])
    assert_sound(taught, [*labels, "class 5"])


@pytest.mark.parametrize("name", [name for name in HEADS.names if name != "prompt"])
def test_separable_classes_stay_apart_after_every_verb(name: str) -> None:
    classifier = FrugalClassifier("gaussian-diagonal", small_head(name))
    for classes in ([4, 1], [2], [3, 0]):
        teach(classifier, classes)
    classifier.partial_fit(*samples([1]))
    classifier.forget("class 2")
    classifier.partial_fit(*samples([3]))
    x, y = samples([0, 1, 3, 4], per_class=5)
    assert accuracy(y, classifier.predict(x)) == 1.0
    teach(classifier, [2])
    x, y = samples([0, 1, 2, 3, 4], per_class=5)
    assert accuracy(y, classifier.predict(x)) == 1.0
