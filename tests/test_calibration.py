"""Calibration: probabilities match the observed accuracy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from frugalvae import FrugalClassifier
from frugalvae.errors import InputError
from frugalvae.maths.arrays import softmax
from frugalvae.model.confidence import Calibration, fit_temperature
from tests.conftest import blobs, made
from tests.test_learner import named, small
from tests.test_novelty import digits


def surprise(classifier: FrugalClassifier, x: np.ndarray, y: np.ndarray) -> float:
    """Mean negative log likelihood."""
    column = {label: position for position, label in enumerate(classifier.classes_.tolist())}
    rows = np.arange(len(y)), [column[label] for label in y.tolist()]
    return float(-np.log(classifier.predict_proba(x)[rows] + 1e-12).mean())


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


@pytest.mark.parametrize(
    ("memory", "head"), [("none", "lda"), ("gaussian-diagonal", "nearest-mean")]
)
def test_on_digits_calibration_makes_probabilities_better_and_leaves_predictions(
    memory: str, head: str
) -> None:
    x, y, x_test, y_test = digits(range(10))
    plain = FrugalClassifier(made(memory), head).fit(x, y)
    calibrated = FrugalClassifier(memory, head, calibrate=True).fit(x, y)
    assert plain.calibration_.temperature == 1.0
    assert surprise(calibrated, x_test, y_test) < surprise(plain, x_test, y_test)
    assert np.array_equal(calibrated.predict(x_test), plain.predict(x_test))
    for part in ("memory_", "head_"):
        one, other = (getattr(made, part).arrays() for made in (plain, calibrated))
        assert all(np.array_equal(one[name], other[name]) for name in one)


def test_calibration_is_repeatable_and_survives_what_follows(tmp_path: Path) -> None:
    first, second = named([0, 1], spread=2.0), named([2], spread=2.0)
    made = [small(calibrate=True).partial_fit(*first).partial_fit(*second) for _ in range(2)]
    assert made[0].calibration_ == made[1].calibration_
    assert made[0].calibration_.temperature != 1.0
    deferred = made[1].partial_fit(*named([3]), defer_head=True)
    assert deferred.calibration_.temperature == made[0].calibration_.temperature
    deferred.save(tmp_path / "it.frugal")
    loaded = FrugalClassifier.load(tmp_path / "it.frugal")
    assert loaded.calibrate is True
    assert loaded.calibration_ == deferred.calibration_


def test_classes_of_one_sample_leave_the_temperature_alone() -> None:
    x = blobs([0, 1]).features[[0, 20]]
    classifier = FrugalClassifier("gaussian-diagonal", "nearest-mean", calibrate=True).fit(
        x, [0, 1]
    )
    assert classifier.calibration_ == Calibration()


def test_a_setting_that_is_neither_is_refused() -> None:
    with pytest.raises(InputError, match="calibrate is 'yes'"):
        small(calibrate="yes").partial_fit(*named([0]))


@pytest.mark.parametrize("temperature", [0, float("nan"), "warm", 1e9])
def test_a_temperature_that_cannot_be_is_refused(temperature: object) -> None:
    with pytest.raises(InputError, match="temperature"):
        Calibration(temperature)  # type: ignore[arg-type]


def test_classes_of_two_samples_are_answered_as_surely_as_rightly() -> None:
    """Held out, a class of two has one left; answers used to be two thirds as sure as right."""
    sure, right = [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        means, y = 0.5 * rng.standard_normal((40, 48)), np.repeat(np.arange(40), 2)
        clf = FrugalClassifier().fit(means[y] + rng.standard_normal((80, 48)), y)
        labels = np.repeat(np.arange(40), 50)
        chances = clf.predict_proba(means[labels] + rng.standard_normal((2000, 48)))
        sure.append(chances.max(axis=1).mean())
        right.append((chances.argmax(axis=1) == labels).mean())
    assert 0.85 < np.mean(sure) / np.mean(right) < 1.35
