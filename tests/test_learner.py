from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from frugalvae import FrugalClassifier, make_head, make_memory
from frugalvae.errors import InputError, UnknownClassError
from frugalvae.estimator import NotFittedError
from frugalvae.labels import like
from tests.conftest import LIGHT, SMALL, accuracy, blobs


def small(**settings: Any) -> FrugalClassifier:
    """A VAE-FO classifier that trains in a moment; without PyTorch, one that needs none."""
    if LIGHT:
        return FrugalClassifier("gaussian-diagonal", "ridge", **settings)
    return FrugalClassifier(make_memory("vae-fo", **SMALL), **settings)


def named(classes: list[int], **settings: Any) -> tuple[np.ndarray, np.ndarray]:
    task = blobs(classes, **settings)
    return task.features, np.array([f"class {label}" for label in task.labels.tolist()])


@pytest.fixture
def taught() -> FrugalClassifier:
    return small().partial_fit(*named([0, 1])).partial_fit(*named([2]))


def state(classifier: FrugalClassifier) -> bytes:
    """Everything a classifier knows, to be compared before and after."""
    return pickle.dumps(
        {
            "public": {k: v for k, v in vars(classifier).items() if k != "model_"},
            "model": {
                name: value
                for name, value in vars(classifier.model_).items()
                if name not in ("recipe", "memory", "head", "reference")
            },
            "memory": [kept.tobytes() for kept in classifier.memory_.arrays().values()],
            "head": [kept.tobytes() for kept in classifier.head_.arrays().values()],
        }
    )


@pytest.mark.parametrize("memory", ["moments", "vae-fo"])
def test_scikit_learn_accepts_the_estimator(memory: str) -> None:
    from sklearn.utils.estimator_checks import check_estimator

    template = FrugalClassifier(memory)
    if memory == "vae-fo":
        template.memory = make_memory(memory, hidden=16, latent=8, epochs=10, max_steps=40)
        template.head = make_head("cosine", epochs=20)
    results = check_estimator(template, on_skip=None, on_fail=None)
    failed = {
        result["check_name"]: repr(result["exception"])
        for result in results
        if result["status"] in ("failed", "xfail")
    }
    assert not failed


def test_classes_taught_in_three_calls_are_all_recognised(taught: FrugalClassifier) -> None:
    taught.partial_fit(*named([3, 4]))
    x, y = named(list(range(5)), seed=9)
    assert accuracy(y, taught.predict(x)) == 1.0
    assert taught.classes_.tolist() == [f"class {n}" for n in range(5)]
    assert taught.task_of_class_.tolist() == [0, 0, 1, 2, 2]
    assert taught.n_tasks_ == 3


def test_the_order_of_rows_and_labels_does_not_matter() -> None:
    x, y = named([2, 0, 1])
    order = np.random.default_rng(0).permutation(len(y))
    test, truth = named([0, 1, 2], seed=9)
    for rows in (np.arange(len(y)), order, order[::-1]):
        classifier = small().partial_fit(x[rows], y[rows])
        assert classifier.classes_.tolist() == ["class 0", "class 1", "class 2"]
        assert accuracy(truth, classifier.predict(test)) == 1.0


def test_class_by_class_in_descending_order() -> None:
    classifier = small()
    for label in (4, 3, 1):
        classifier.partial_fit(blobs([label]).features, [label] * 20)
    assert classifier.classes_.tolist() == [1, 3, 4]
    assert classifier.model_.classes.tolist() == [4, 3, 1]
    test = blobs([1, 3, 4], seed=9)
    assert accuracy(test.labels, classifier.predict(test.features)) == 1.0


def test_the_same_seed_gives_the_same_classifier(taught: FrugalClassifier) -> None:
    twin = small().partial_fit(*named([0, 1])).partial_fit(*named([2]))
    x, _ = named([0, 1, 2], seed=9)
    assert np.array_equal(twin.predict_proba(x), taught.predict_proba(x))
    other = small(random_state=1).partial_fit(*named([0, 1])).partial_fit(*named([2]))
    assert not np.array_equal(other.predict_proba(x), taught.predict_proba(x))


def test_sampling_in_between_changes_nothing_that_is_learned_later() -> None:
    quiet = small().partial_fit(*named([0, 1]))
    asked = copy.deepcopy(quiet)
    asked.sample("class 0", 50)
    x, _ = named([0, 1, 2], seed=9)
    later = [classifier.partial_fit(*named([2])).predict_proba(x) for classifier in (quiet, asked)]
    assert np.array_equal(*later)


def test_probabilities_sum_to_one_and_agree_with_predictions(taught: FrugalClassifier) -> None:
    x, _ = named([0, 1, 2], seed=9)
    probabilities = taught.predict_proba(x)
    assert probabilities.shape == (60, 3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-9)
    assert np.array_equal(taught.classes_[probabilities.argmax(axis=1)], taught.predict(x))


def test_samples_of_a_class_are_classified_as_that_class(taught: FrugalClassifier) -> None:
    for label in taught.classes_:
        sample = taught.sample(label, 200)
        assert sample.shape == (200, 8)
        assert accuracy(np.full(200, label), taught.predict(sample)) > 0.95


def test_samples_are_reproducible_by_seed(taught: FrugalClassifier) -> None:
    assert np.array_equal(taught.sample("class 1", 3), taught.sample("class 1", 3))
    assert not np.array_equal(
        taught.sample("class 1", 3, random_state=1), taught.sample("class 1", 3, random_state=2)
    )


def test_templates_are_never_changed() -> None:
    memory, head = make_memory("gaussian-diagonal"), make_head("nearest-mean")
    FrugalClassifier(memory, head).partial_fit(*named([0, 1]))
    assert memory.classes == []
    assert head.classes == []


def test_fit_starts_over_and_clone_knows_nothing(taught: FrugalClassifier) -> None:
    from sklearn.base import clone

    taught.fit(*named([5]))
    assert taught.classes_.tolist() == ["class 5"]
    assert taught.n_tasks_ == 1
    with pytest.raises(NotFittedError):
        clone(taught).predict(np.zeros((1, 8)))


def test_the_report_counts_memory_and_head(taught: FrugalClassifier) -> None:
    report = taught.memory_report()
    assert (report.classes, report.tasks) == (3, 2)
    arrays = [*taught.memory_.arrays().values(), *taught.head_.arrays().values()]
    assert report.stored == sum(kept.size for kept in arrays)
    assert "means" in str(report)


def test_a_head_can_start_from_text_features() -> None:
    x, y = named([0, 1])
    text = {label: x[y == label].mean(axis=0) for label in np.unique(y)}
    head = make_head("cosine", start="text", epochs=0)
    classifier = FrugalClassifier("gaussian-diagonal", head).partial_fit(x, y, text=text)
    assert accuracy(y, classifier.predict(x)) == 1.0
    swapped = dict(zip(text, reversed(text.values()), strict=True))
    head = make_head("cosine", start="text", epochs=0)
    classifier = FrugalClassifier("gaussian-diagonal", head).partial_fit(x, y, text=swapped)
    assert accuracy(y, classifier.predict(x)) == 0.0


@pytest.mark.parametrize(
    ("x", "y", "error", "message"),
    [
        (
            np.full((2, 8), np.nan),
            ["a", "b"],
            InputError,
            "not finite in 16 of 16 places, the first in row 0, column 0: NaN",
        ),
        (np.full((2, 8), np.inf), ["a", "b"], InputError, "not finite"),
        (
            np.zeros((2, 7)),
            ["a", "b"],
            ValueError,
            r"7 features, but|shape \(2, 7\)",
        ),
        (np.zeros((0, 8)), [], ValueError, r"0 sample|shape \(0, 8\)"),
        (np.zeros((3, 8)), ["a", "b"], ValueError, "inconsistent numbers of samples|for 3 rows"),
        (np.zeros((1, 8)), [7], InputError, "labels like 7 were given, but labels like 'class 0'"),
        (np.zeros(8), ["a"], ValueError, r"Expected 2D array|shape \(8,\)"),
    ],
)
def test_bad_input_is_refused_and_changes_nothing(
    taught: FrugalClassifier, x: np.ndarray, y: list[Any], error: type[Exception], message: str
) -> None:
    before = state(taught)
    with pytest.raises(error, match=message):
        taught.partial_fit(x, y)
    assert state(taught) == before


def test_bad_text_features_are_refused_and_change_nothing(taught: FrugalClassifier) -> None:
    before = state(taught)
    for text, message in [
        ({}, "no entry for class 'a'"),
        ({"a": np.zeros(3)}, r"class 'a' has shape \(3,\); expected \(8,\)"),
        ({"a": np.full(8, np.nan)}, "class 'a' holds NaN"),
        ([np.zeros(8)], "text is a list; expected"),
    ]:
        with pytest.raises(InputError, match=message):
            taught.partial_fit(np.zeros((1, 8)), ["a"], text=text)
    assert state(taught) == before


def test_a_head_that_needs_text_says_so() -> None:
    classifier = FrugalClassifier("gaussian-diagonal", make_head("cosine", start="text"))
    with pytest.raises(InputError, match="pass text="):
        classifier.partial_fit(*named([0]))
    assert not hasattr(classifier, "classes_")


def test_a_failure_in_the_middle_of_learning_changes_nothing(
    taught: FrugalClassifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> None:
        raise KeyboardInterrupt

    before = state(taught)
    monkeypatch.setattr(type(taught.head_), "learn", fail)  # the memory has learned by then
    with pytest.raises(KeyboardInterrupt):
        taught.partial_fit(*named([3]))
    assert state(taught) == before


def test_a_refused_first_call_leaves_an_unfitted_classifier() -> None:
    classifier = small()
    with pytest.raises(InputError):
        classifier.partial_fit(np.full((2, 3), np.nan), ["a", "b"])
    assert not [name for name in vars(classifier) if name.endswith("_")]


def test_unknown_classes_are_named_with_a_suggestion(taught: FrugalClassifier) -> None:
    with pytest.raises(
        UnknownClassError, match="'class 11' was never taught. Did you mean 'class 1'"
    ):
        taught.sample("class 11", 3)
    with pytest.raises(InputError, match="n_samples is 0; expected a whole number, at least 1"):
        taught.sample("class 1", 0)


def test_a_memory_that_keeps_nothing_cannot_be_sampled() -> None:
    classifier = FrugalClassifier("none", "lda").partial_fit(*named([0, 1]))
    with pytest.raises(InputError, match="keeps nothing that could be sampled"):
        classifier.sample("class 0")


def test_unknown_names_of_parts_are_refused() -> None:
    with pytest.raises(InputError, match="no memory 'vae-f0'. Did you mean 'vae-fo'"):
        FrugalClassifier("vae-f0").partial_fit(*named([0]))
    with pytest.raises(InputError, match="no setting 'bugdet'. Did you mean 'budget'"):
        make_memory("moments", bugdet=3)


@pytest.mark.parametrize(
    "settings",
    [
        {"memory": "vae-f0"},
        {"memory": "none"},  # the head needs replay
        {"device": "gpu"},
        {"random_state": -1},
        {"memory": 3},
    ],
)
def test_a_first_call_that_fails_leaves_an_unfitted_classifier(settings: dict[str, Any]) -> None:
    classifier = FrugalClassifier(**{"memory": "gaussian-diagonal", **settings})
    before = vars(classifier).copy()
    with pytest.raises(InputError):
        classifier.partial_fit(*named([0, 1]))
    assert vars(classifier) == before
    with pytest.raises(NotFittedError):
        classifier.predict(np.zeros((1, 8)))


def test_a_head_that_misses_text_leaves_an_unfitted_classifier() -> None:
    classifier = FrugalClassifier("gaussian-diagonal", make_head("cosine", start="text"))
    with pytest.raises(InputError, match="text feature of every new class"):
        classifier.partial_fit(*named([0, 1]))
    assert not hasattr(classifier, "model_")


def test_a_memory_that_knows_classes_already_is_no_template(taught: FrugalClassifier) -> None:
    with pytest.raises(InputError, match="a memory that knows no class yet"):
        FrugalClassifier(taught.memory_, "ridge").partial_fit(*named([0]))


@pytest.mark.parametrize(
    ("first", "second"),
    [([0, 1], [2.5, 3.5]), ([0, 1], [True, True]), (["a", "b"], [7, 7])],
)
def test_labels_never_change_their_type(first: list[Any], second: list[Any]) -> None:
    x = blobs([0]).features[:2]
    classifier = FrugalClassifier("gaussian-diagonal").partial_fit(x, first)
    with pytest.raises((InputError, ValueError)):
        classifier.partial_fit(x, second)
    assert classifier.classes_.tolist() == first


def test_features_too_large_to_learn_from_are_refused() -> None:
    x = np.array([[1e25, 0], [-1e25, 1], [0, 1e25]])
    with pytest.raises(InputError, match="scale the features"):
        FrugalClassifier("gaussian-diagonal", "nearest-mean").partial_fit(x, [0, 0, 1])


def test_a_pickled_classifier_answers_alike_and_is_not_much_larger_than_it_says() -> None:
    memory = make_memory("vae-fo", hidden=32, latent=128, epochs=1)
    classifier = FrugalClassifier(memory).partial_fit(*named(list(range(60))))
    pickled = pickle.dumps(classifier)
    x, _ = named([0, 1], seed=9)
    assert np.array_equal(pickle.loads(pickled).predict_proba(x), classifier.predict_proba(x))
    assert len(pickled) < 4 * classifier.memory_report().bytes


def test_a_name_that_only_looks_like_a_number_is_one_of_its_own() -> None:
    assert [like(3, name) for name in ("5", "-5", "--5", "5-")] == [5, -5, "--5", "5-"]
