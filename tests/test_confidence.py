"""Probabilities and familiarity: what is measured, kept, and right on real data."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from frugalvae import FrugalClassifier, make_memory
from frugalvae.confidence import Confidence, fit_temperature
from frugalvae.errors import InputError
from frugalvae.images.digits import load_digits
from frugalvae.maths.arrays import softmax
from frugalvae.memories import MEMORIES
from frugalvae.storage.container import from_bytes
from tests.conftest import SMALL, blobs, made
from tests.test_learner import named, small


def digits(classes: range) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    data = load_digits()
    train, test = np.isin(data.y_train, classes), np.isin(data.y_test, classes)
    return data.x_train[train], data.y_train[train], data.x_test[test], data.y_test[test]


def surprise(classifier: FrugalClassifier, x: np.ndarray, y: np.ndarray) -> float:
    """Mean negative log likelihood."""
    column = {label: position for position, label in enumerate(classifier.classes_.tolist())}
    rows = np.arange(len(y)), [column[label] for label in y.tolist()]
    return float(-np.log(classifier.predict_proba(x)[rows] + 1e-12).mean())


# --------------------------------------------------------------------------- temperature


def test_the_temperature_that_made_the_labels_is_found() -> None:
    rng = np.random.default_rng(0)
    logits = 10 * rng.normal(size=(20_000, 5))
    for truth in (0.5, 4.0):
        below = softmax(logits / truth).cumsum(axis=1) < rng.random((len(logits), 1))
        drawn = below.sum(axis=1)
        assert fit_temperature(logits, drawn) == pytest.approx(truth, rel=0.05)


def test_a_few_samples_that_are_all_right_move_it_little() -> None:
    logits = 30 * np.eye(3)
    assert 0.1 < fit_temperature(logits, np.arange(3)) <= 1
    assert fit_temperature(logits, np.arange(3), before=2.0) > 0.2


@pytest.mark.parametrize(("memory", "head"), [("none", "lda"), ("mixture", "nearest-mean")])
def test_on_digits_calibration_makes_probabilities_better_and_leaves_predictions(
    memory: str, head: str
) -> None:
    x, y, x_test, y_test = digits(range(10))
    plain = FrugalClassifier(made(memory), head).fit(x, y)
    calibrated = FrugalClassifier(memory, head, calibrate=True).fit(x, y)
    assert plain.confidence_.temperature == 1.0
    assert surprise(calibrated, x_test, y_test) < surprise(plain, x_test, y_test)
    assert np.array_equal(calibrated.predict(x_test), plain.predict(x_test))
    for part in ("memory_", "head_"):
        one, other = (getattr(made, part).arrays() for made in (plain, calibrated))
        assert all(np.array_equal(one[name], other[name]) for name in one)


def test_calibration_is_repeatable_and_survives_what_follows(tmp_path: Path) -> None:
    first, second = named([0, 1], spread=2.0), named([2], spread=2.0)
    made = [small(calibrate=True).partial_fit(*first).partial_fit(*second) for _ in range(2)]
    assert made[0].confidence_ == made[1].confidence_
    assert made[0].confidence_.temperature != 1.0
    deferred = made[1].partial_fit(*named([3]), defer_head=True).fit_head()
    assert deferred.confidence_.temperature == made[0].confidence_.temperature
    deferred.save(tmp_path / "it.frugal")
    loaded = FrugalClassifier.load(tmp_path / "it.frugal")
    assert loaded.calibrate is True
    assert loaded.confidence_ == deferred.confidence_


def test_classes_of_one_sample_leave_the_temperature_alone() -> None:
    x = blobs([0, 1]).features[[0, 20]]
    classifier = FrugalClassifier("gaussian-diagonal", "nearest-mean", calibrate=True).fit(
        x, [0, 1]
    )
    assert classifier.confidence_ == Confidence()


def test_a_setting_that_is_neither_is_refused() -> None:
    with pytest.raises(InputError, match="calibrate is 'yes'"):
        small(calibrate="yes").partial_fit(*named([0]))


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
    assert classifier.knows(x).mean() > 0.8
    assert classifier.knows(strange).mean() < 0.2
    classifier.save(tmp_path / "it.frugal")
    loaded = FrugalClassifier.load(tmp_path / "it.frugal", device="cpu")
    assert np.array_equal(loaded.familiarity(x), classifier.familiarity(x))


def test_few_activations_that_are_never_negative_are_enough_to_notice_noise() -> None:
    rng = np.random.default_rng(0)
    shapes = rng.uniform(0.05, 0.6, (8, 400))  # of pooled activations: many small, few large
    x, test = (rng.gamma(np.repeat(shapes, count, axis=0)) for count in (12, 6))
    classifier = FrugalClassifier()
    for start in (0, 4):
        rows = slice(12 * start, 12 * (start + 4))
        classifier.partial_fit(x[rows], np.repeat(np.arange(start, start + 4), 12))
    noise = np.abs(rng.normal(size=(50, 400)))
    assert classifier.knows(noise).mean() < 0.1
    assert classifier.knows(test).mean() > 0.8


@pytest.mark.parametrize("memory", ["gaussian-shared", ("vae-fo", SMALL)])
def test_on_digits_about_as_many_known_ones_are_refused_as_asked(memory: Any) -> None:
    x, y, known, _ = digits(range(7))
    unknown = digits(range(7, 10))[2]
    classifier = FrugalClassifier(made(memory), "nearest-mean")
    for classes in (range(4), range(4, 7)):
        rows = np.isin(y, classes)
        classifier.partial_fit(x[rows], y[rows])
    for threshold in (0.05, 0.2):
        refused = 1 - classifier.knows(known, threshold).mean()
        assert threshold / 3 < refused < 2 * threshold
    assert classifier.knows(unknown, 0.05).mean() < 0.85
    assert classifier.familiarity(unknown).mean() < 0.7 * classifier.familiarity(known).mean()


def test_one_class_alone_and_classes_of_one_sample() -> None:
    x, y = named([0])
    classifier = FrugalClassifier("gaussian-diagonal", "nearest-mean").partial_fit(x, y)
    assert classifier.knows(x).mean() > 0.8
    assert not classifier.knows(-x).any()
    single = FrugalClassifier("gaussian-diagonal", "nearest-mean").fit(np.eye(3, 8), [0, 1, 2])
    assert not single.confidence_.quantiles
    assert single.knows(np.eye(3, 8)).all()


def test_it_follows_every_change(tmp_path: Path) -> None:
    classifier = FrugalClassifier("gaussian-diagonal", "nearest-mean")
    classifier.fit(*named([0, 1, 2], per_class=100))
    x, _ = named([2], seed=9, per_class=100)
    assert classifier.confidence_.count == 300
    assert classifier.knows(x).mean() > 0.8
    classifier.forget("class 2")
    assert classifier.knows(x).mean() < 0.2
    classifier.partial_fit(*named([2], per_class=100)).update("class 2", x)
    assert classifier.confidence_.count == 500
    assert classifier.knows(x).mean() > 0.8


def test_a_memory_that_keeps_nothing_cannot_compare() -> None:
    classifier = FrugalClassifier("none", "lda").fit(*named([0, 1]))
    with pytest.raises(InputError, match="keeps nothing that could be sampled"):
        classifier.familiarity(np.zeros((1, 8)))
    with pytest.raises(InputError, match="threshold is 5; expected a number, from 0 to 1"):
        classifier.knows(np.zeros((1, 8)), threshold=5)


def test_a_file_without_it_compares_with_replay(tmp_path: Path) -> None:
    fixture = Path(__file__).parent / "fixtures" / "format-1.frugal"
    loaded = FrugalClassifier.load(fixture, device="cpu")
    assert loaded.confidence_ == Confidence()
    assert from_bytes(fixture.read_bytes())[0]["confidence"] == {}
    sample = loaded.sample(3, 50)
    assert loaded.knows(sample).mean() > 0.7
    loaded.update(3, sample[:5])
    assert loaded.n_samples_of_class_[3] == 10


# --------------------------------------------------------------------------- what is kept


def test_quantiles_of_parts_are_about_those_of_all() -> None:
    x = np.random.default_rng(0).gamma(3.0, size=2000)
    parts = Confidence()
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
    kept = replace(Confidence().with_samples(np.arange(1.0, 50.0)), temperature=0.123)
    text = json.dumps(kept.to_json())
    assert len(text) < 1500
    assert Confidence(**json.loads(text)) == kept


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": 0},
        {"temperature": float("nan")},
        {"count": -1},
        {"quantiles": [1.0, 2.0]},
        {"quantiles": list(range(101, 0, -1))},
        {"quantiles": ["a"] * 101},
    ],
    ids=str,
)
def test_what_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Confidence(**wrong)
