"""Novelty and familiarity: what is measured, kept, and right on real data."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from frugalvae import FrugalClassifier, make_memory
from frugalvae.errors import InputError
from frugalvae.model.confidence import TaughtNovelty
from frugalvae.parts import MEMORIES
from tests.conftest import SMALL, load_digits, made
from tests.test_learner import named
from tests.test_saving import forged, put


def digits(classes: range) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    data = load_digits()
    train, test = np.isin(data.y_train, classes), np.isin(data.y_test, classes)
    return data.x_train[train], data.y_train[train], data.x_test[test], data.y_test[test]


# --------------------------------------------------------------------------- familiarity


@pytest.mark.parametrize("name", [name for name in MEMORIES if name != "none"])
def test_other_blobs_are_strange_to_every_memory(name: str, tmp_path: Path) -> None:
    known = MEMORIES.part(name).__init__.__kwdefaults__ or {}
    settings = SMALL if name.startswith("vae") else {k: v for k, v in SMALL.items() if k in known}
    classifier = FrugalClassifier(make_memory(name, **settings), "nearest-mean")
    for classes in ([0, 1, 2], [3, 4]):
        classifier.partial_fit(*named(classes))
    x, _ = named([0, 1, 2, 3, 4], seed=9)
    strange, _ = named([5, 6, 7, 8], seed=9)
    assert classifier.is_known(x).mean() > 0.8
    assert classifier.is_known(strange).mean() < 0.2
    classifier.save(tmp_path / "it.frugal")
    loaded = FrugalClassifier.load(tmp_path / "it.frugal", device="cpu")
    rounds = getattr(classifier.memory_, "rounds", False)
    atol = 0.03 if rounds else 0
    np.testing.assert_allclose(loaded.familiarity(x), classifier.familiarity(x), rtol=0, atol=atol)


def test_few_activations_that_are_never_negative_are_enough_to_notice_noise() -> None:
    rng = np.random.default_rng(0)
    shapes = rng.uniform(0.05, 0.6, (8, 400))  # of pooled activations: many small, few large
    x, test = (rng.gamma(np.repeat(shapes, count, axis=0)) for count in (12, 6))
    classifier = FrugalClassifier()
    for start in (0, 4):
        rows = slice(12 * start, 12 * (start + 4))
        classifier.partial_fit(x[rows], np.repeat(np.arange(start, start + 4), 12))
    noise = np.abs(rng.normal(size=(50, 400)))
    assert classifier.is_known(noise).mean() < 0.1
    assert classifier.is_known(test).mean() > 0.8


@pytest.mark.parametrize("memory", ["gaussian-shared", ("vae-fo", SMALL)])
def test_on_digits_about_as_many_known_ones_are_refused_as_asked(memory: Any) -> None:
    x, y, known, _ = digits(range(7))
    unknown = digits(range(7, 10))[2]
    classifier = FrugalClassifier(made(memory), "nearest-mean")
    for classes in (range(4), range(4, 7)):
        rows = np.isin(y, classes)
        classifier.partial_fit(x[rows], y[rows])
    for threshold in (0.05, 0.2):
        refused = 1 - classifier.is_known(known, threshold).mean()
        assert threshold / 3 < refused < 2 * threshold
    assert classifier.is_known(unknown, 0.05).mean() < 0.85
    assert classifier.familiarity(unknown).mean() < 0.7 * classifier.familiarity(known).mean()


def test_one_class_alone_and_classes_of_one_sample() -> None:
    x, y = named([0])
    classifier = FrugalClassifier("gaussian-diagonal", "nearest-mean").partial_fit(x, y)
    assert classifier.is_known(x).mean() > 0.8
    assert not classifier.is_known(-x).any()
    single = FrugalClassifier("gaussian-diagonal", "nearest-mean").fit(np.eye(3, 8), [0, 1, 2])
    assert not single.taught_novelty_.quantiles
    assert single.is_known(np.eye(3, 8)).all()


@pytest.mark.parametrize("count", [5, 15, 50])
def test_of_one_class_of_few_samples_others_of_it_are_known(
    count: int, rng: np.random.Generator
) -> None:
    """In many coordinates, few samples lie closer to what they were taught as than others do."""
    mean, spread = rng.normal(size=512), rng.uniform(0.2, 1.5, size=512)
    x, near = (mean + spread * rng.normal(size=(n, 512)) for n in (count, 200))
    clf = FrugalClassifier().fit(x, ["emu"] * count)
    assert clf.is_known(near).mean() > 0.8
    assert not clf.is_known(rng.normal(size=(50, 512)) - mean).any()


def test_it_follows_every_change(tmp_path: Path) -> None:
    classifier = FrugalClassifier("gaussian-diagonal", "nearest-mean")
    classifier.fit(*named([0, 1, 2], per_class=100))
    x, _ = named([2], seed=9, per_class=100)
    assert classifier.taught_novelty_.count == 300
    assert classifier.is_known(x).mean() > 0.8
    classifier.forget("class 2")
    assert classifier.is_known(x).mean() < 0.2
    classifier.partial_fit(*named([2], per_class=100)).partial_fit(x, ["class 2"] * len(x))
    assert classifier.taught_novelty_.count == 500
    assert classifier.is_known(x).mean() > 0.8


def test_a_memory_that_keeps_nothing_cannot_compare() -> None:
    classifier = FrugalClassifier("none", "lda").fit(*named([0, 1]))
    with pytest.raises(InputError, match="keeps nothing that could be sampled"):
        classifier.familiarity(np.zeros((1, 8)))
    with pytest.raises(InputError, match="threshold is 5; expected a number, from 0 to 1"):
        classifier.is_known(np.zeros((1, 8)), threshold=5)


def test_a_file_without_it_compares_with_replay(tmp_path: Path) -> None:
    path = tmp_path / "it.frugal"
    FrugalClassifier("gaussian-diagonal", "nearest-mean").fit(*named([0, 1, 2])).save(path)
    path.write_bytes(forged(path.read_bytes(), put("confidence", {})))
    loaded = FrugalClassifier.load(path, device="cpu")
    assert loaded.taught_novelty_ == TaughtNovelty()
    sample = loaded.sample("class 2", 50)
    assert loaded.is_known(sample).mean() > 0.7
    loaded.partial_fit(sample[:5], ["class 2"] * 5)


# --------------------------------------------------------------------------- what is kept


def test_quantiles_of_parts_are_about_those_of_all() -> None:
    x = np.random.default_rng(0).gamma(3.0, size=2000)
    parts = TaughtNovelty()
    for part in np.array_split(x, 7):
        parts = parts.with_samples(part)
    assert parts.count == 2000
    np.testing.assert_allclose(
        parts.quantiles[5:96], np.quantile(x, np.linspace(0.05, 0.95, 91)), rtol=0.1
    )
    np.testing.assert_allclose(
        parts.familiarity(np.quantile(x, [0.1, 0.95])), [0.9, 0.05], atol=0.03
    )


def test_it_is_small_and_comes_back_from_json() -> None:
    kept = TaughtNovelty().with_samples(np.arange(1.0, 50.0))
    text = json.dumps(kept.to_json())
    assert len(text) < 1500
    assert TaughtNovelty(**json.loads(text)) == kept


@pytest.mark.parametrize(
    "wrong",
    [
        {"count": -1},
        {"quantiles": [1.0, 2.0]},
        {"quantiles": list(range(101, 0, -1))},
        {"quantiles": ["a"] * 101},
    ],
    ids=str,
)
def test_what_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        TaughtNovelty(**wrong)


def test_while_every_class_has_one_sample_nothing_is_called_unknown(
    rng: np.random.Generator,
) -> None:
    """No two samples show how those of a class differ, so nobody can say what is unlike them."""
    means = rng.normal(size=(5, 64))
    clf = FrugalClassifier().fit(means, list("abcde"))
    near = means + 0.3 * rng.normal(size=means.shape)
    assert clf.is_known(near).all()
    assert (clf.familiarity(near) == 1).all()
    clf.partial_fit(means[:3] + rng.normal(size=(3, 64)), list("abc"))
    assert clf.familiarity(rng.normal(size=(5, 64))).max() < 1


def test_without_taught_samples_to_compare_with_the_same_question_has_the_same_answer() -> None:
    """Files of older versions have no quantiles: samples are drawn, and drawn once."""
    x, y, test, _ = digits(range(4))
    model = replace(FrugalClassifier().fit(x, y).model_, taught_novelty=TaughtNovelty())
    np.testing.assert_array_equal(model.familiarity(test), model.familiarity(test))


@pytest.mark.parametrize("steps", [[8], [3, 3, 2], [2, 2, 2, 2]])
def test_few_classes_of_few_samples_that_come_one_after_the_other_refuse_noise(
    steps: list[int],
) -> None:
    """What was measured when two classes were known still holds when there are eight."""
    rng = np.random.default_rng(0)
    centres, shape = rng.gamma(0.5, size=(8, 200)), rng.gamma(0.5, size=(12, 200))

    def drawn(labels: np.ndarray) -> np.ndarray:
        varied = rng.normal(size=(len(labels), 12)) @ shape / 4  # along few directions
        return np.maximum(centres[labels] + varied + 0.1 * rng.normal(size=(len(labels), 200)), 0)

    classifier, ends = FrugalClassifier(), np.cumsum(steps)
    for part in np.split(np.arange(8), ends[:-1]):
        labels = part.repeat(12)
        classifier.partial_fit(drawn(labels), labels)
    assert classifier.is_known(drawn(np.arange(8).repeat(20))).mean() > 0.85
    assert classifier.is_known(rng.random((20, 200)) * 2 * centres.mean()).mean() < 0.2
