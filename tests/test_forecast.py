"""What to expect of new samples: against new samples, and against counting."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from frugalvae import FrugalClassifier
from frugalvae.cli.predict import warn_of_promise
from frugalvae.errors import InputError
from frugalvae.maths.arrays import Array
from frugalvae.model.answers import expectation, rank
from frugalvae.moments.evidence import (
    GRID,
    Evidence,
    binned,
    gap_for_coverage,
    lead_for_error,
    leads_of_wrong,
    margins_of,
    share_above,
)
from frugalvae.moments.held_out import Forecast
from frugalvae.moments.memory import MomentMemory
from frugalvae.parts.closed_form import NearestMeanHead
from frugalvae.storage.store import Store
from frugalvae.storage.summary import summarise

CLASSES, DIM = 20, 24


def blobs(per_class: int, apart: float = 0.65, seed: int = 0, salt: int = 0) -> tuple[Array, Array]:
    """Samples of classes with heavy tails; ``salt`` for others of the same classes."""
    means = apart * np.random.default_rng(seed).standard_normal((CLASSES, DIM))
    rng = np.random.default_rng([seed, salt, 1])
    y = np.arange(CLASSES * per_class) % CLASSES
    noise = rng.standard_normal((len(y), DIM)) / np.sqrt(rng.chisquare(6, (len(y), 1)) / 6)
    return (means[y] + noise).astype(np.float32), y


def streamed(x: Array, y: Array, tasks: int = 5, **settings: Any) -> FrugalClassifier:
    clf = FrugalClassifier(**settings)
    for part in np.array_split(np.arange(CLASSES), tasks):
        rows = np.isin(y, part)
        clf.partial_fit(x[rows], y[rows])
    return clf


@pytest.fixture(scope="module", params=[0, 1, 2])
def taught(request: pytest.FixtureRequest) -> tuple[FrugalClassifier, Array, Array]:
    """A classifier that was taught in five tasks, and new samples."""
    clf = streamed(*blobs(30, seed=request.param))
    return clf, *blobs(100, seed=request.param, salt=1)


# --------------------------------------------------------------------------- margins


def test_shares_above_are_those_of_the_samples() -> None:
    margins = np.random.default_rng(0).normal(0.05, 0.2, 5000)
    for limit in (-0.3, -0.02, 0.0, 0.01, 0.2, 5.0, -5.0):
        [found] = share_above(binned(margins)[None], np.array([limit]))
        assert found == pytest.approx((margins > limit).mean(), abs=0.01)


def test_margins_and_leads_are_those_of_a_plain_loop() -> None:
    scores, columns = np.random.default_rng(0).normal(size=(50, 4)), np.arange(50) % 4
    found, leads = margins_of(scores, columns), []
    for row, column, margin in zip(scores, columns, found, strict=True):
        assert margin == row[column] - max(np.delete(row, column))
        if margin < 0:
            leads.append(sorted(row)[-1] - sorted(row)[-2])
    np.testing.assert_array_equal(leads_of_wrong(scores, columns), leads)


def test_a_promise_allows_for_chance_and_for_no_answer() -> None:
    answered, wrong = 1 - 0.7 * GRID / GRID[-1], 0.1 * (1 - GRID / GRID[-1])
    few, many = (lead_for_error(wrong, answered, samples, 0.05) for samples in (300, 1e6))
    exact = GRID[np.flatnonzero(wrong <= 0.05 * answered)[0]]
    assert exact < few < np.inf
    assert many == pytest.approx(exact, abs=0.02)
    assert lead_for_error(wrong, answered, 10, 0.05) == np.inf
    assert gap_for_coverage(wrong, 1e6, 0.9) == pytest.approx(0, abs=0.02)
    assert gap_for_coverage(wrong, 10, 0.95) == np.inf


# --------------------------------------------------------------------------- forecast


def test_new_samples_are_classified_as_often_correctly_as_expected(taught: Any) -> None:
    clf, x, y = taught
    right = clf.predict(x) == y
    expected = clf.forecast()
    assert 0.5 < right.mean() < 0.95
    assert abs(expected.accuracy - right.mean()) < 0.05
    low, high = expected.interval
    assert low < right.mean() < high
    assert high - low < 0.2
    real = [right[y == label].mean() for label in expected.labels]
    assert np.corrcoef(list(clf.model_.expected_accuracy().values()), real)[0, 1] > 0.5
    then = sum(clf.memory_.evidence_.values(), Evidence())
    assert then.right / then.held_out > right.mean() + 0.02  # when few classes were known


def test_where_there_is_nothing_to_learn_nothing_is_expected() -> None:
    """One by one in closed form two thirds were right here: the prior tells the samples."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((50, 200)), np.arange(50) % 10
    assert FrugalClassifier(MomentMemory(root=False)).fit(x, y).forecast().accuracy < 0.2


def test_of_the_answers_that_are_given_few_enough_are_wrong(taught: Any) -> None:
    clf, x, y = taught
    wrong = clf.predict(x) != y
    for error in (0.05, 0.1, 0.2):
        sure = clf.is_reliable(x, error)
        assert wrong[sure].sum() <= (error + 0.01) * sure.sum()
    assert clf.is_reliable(x, 0.2).mean() > 0.05
    assert not clf.is_reliable(x, 1e-4).any()
    assert clf.is_reliable(x, 0.999).all()


def test_what_cannot_be_promised_is_said(taught: Any, capsys: pytest.CaptureFixture[str]) -> None:
    clf, x, _ = taught
    least = clf.forecast().least_error
    assert clf.is_reliable(x, least).any()
    assert not clf.is_reliable(x, 0.999 * least).any()
    warn_of_promise(clf.model_, least)
    warn_of_promise(clf.model_, None)
    assert not capsys.readouterr().err
    warn_of_promise(clf.model_, 0.5 * least)
    assert "cannot be promised, so no answer is sure" in capsys.readouterr().err


def test_sets_hold_the_right_class_so_often(taught: Any) -> None:
    clf, x, y = taught
    sizes = []
    for coverage in (0.8, 0.9, 0.95):
        sets = clf.predict_set(x, coverage)
        held = np.mean([label in found for found, label in zip(sets, y.tolist(), strict=True)])
        assert coverage - 0.02 < held < coverage + 0.08
        sizes.append(np.mean([len(found) for found in sets]))
    assert sizes == sorted(sizes)
    assert [found[0] for found in sets] == clf.predict(x).tolist()


def test_what_is_more_likely_wrong_than_right_is_never_promised(taught: Any) -> None:
    clf, x, _ = taught
    rng = np.random.default_rng(3)
    between = (x + rng.permutation(x)) / 2  # unlike what was held out
    probabilities = clf.predict_proba(between)
    assert (probabilities.max(axis=1) < 0.5).any()
    for error in (0.05, 0.3, 0.6):
        sure = clf.is_reliable(between, error)
        assert (probabilities[sure].max(axis=1) >= min(0.5, 1 - error)).all()
    column = {label: place for place, label in enumerate(clf.classes_.tolist())}
    for row, found in zip(probabilities, clf.predict_set(between, 0.6), strict=True):
        assert row[[column[label] for label in found]].sum() >= 0.5 - 1e-9


def test_more_samples_bring_about_what_was_said() -> None:
    x, y = blobs(30)
    test, labels = blobs(100, salt=1)
    few = streamed(x[: 20 * CLASSES], y[: 20 * CLASSES])
    more = streamed(x, y)
    real = (more.predict(test) == labels).mean() - (few.predict(test) == labels).mean()
    forecast = few.forecast()
    assert forecast.with_more(10).accuracy - forecast.accuracy == pytest.approx(real, abs=0.02)
    assert real > 0.02


def test_a_class_of_one_sample_is_expected_to_do_worse_than_others() -> None:
    x, y = blobs(20)
    kept = (y > 0) | (np.arange(len(y)) < CLASSES)
    expected = streamed(x[kept], y[kept]).model_.expected_accuracy()
    assert 0 < expected[0] < np.mean(list(expected.values()))


def test_nine_in_ten_classes_are_within_their_intervals(taught: Any) -> None:
    clf, x, y = taught
    forecast = clf.forecast()
    right = clf.predict(x) == y
    real = np.array([right[y == label].mean() for label in forecast.labels])
    low, high = forecast.intervals.T
    assert (low <= forecast.of_classes).all()
    assert (forecast.of_classes <= high).all()
    assert ((low <= real) & (real <= high)).mean() >= 0.8
    assert (high - low).mean() < 0.4


def test_intervals_are_wilsons_where_nothing_was_corrected() -> None:
    bins = np.zeros((2, 32))
    bins[:, -1] = 10, 40
    nothing = np.zeros(2)
    forecast = Forecast([0, 1], np.array([10.0, 40]), np.array([10.0, 40]), bins, nothing, nothing,
                        np.zeros(16), 0.0)  # fmt: skip
    np.testing.assert_allclose(forecast.intervals[:, 0], [10 / 12.706, 40 / 42.706], atol=1e-3)
    np.testing.assert_allclose(forecast.intervals[:, 1], 1)


def test_of_too_few_samples_nothing_is_said() -> None:
    x, y = blobs(20)
    kept = (y > 0) | (np.arange(len(y)) < CLASSES)
    told = streamed(x[kept], y[kept]).forecast().to_json()
    assert told["enough"]
    assert "0" in told["classes"]
    assert sorted(map(int, told["intervals"])) == list(range(1, CLASSES))
    low, high = told["intervals"]["1"]
    assert 0 <= low <= told["classes"]["1"] <= high <= 1
    assert "about" in expectation(told)[0]
    assert "lowest of 0 " not in expectation(told)[0]
    two = FrugalClassifier().fit([[0, 1], [0, 2], [9, 1], [9, 2]], [0, 0, 1, 1])
    few = two.forecast().to_json()
    assert (few["held_out"], few["enough"], few["intervals"]) == (4, False, {})
    assert expectation(few) == [
        "expected accuracy on new images like these: too few images were tested"
    ]


# --------------------------------------------------------------------------- algebra and files


def test_merging_lowers_what_is_expected_as_teaching_would() -> None:
    x, y = blobs(30)
    half = y < CLASSES // 2
    one, other = (FrugalClassifier().fit(x[rows], y[rows]) for rows in (half, ~half))
    then = [clf.forecast().accuracy for clf in (one, other)]
    merged = one.merge(other).forecast().accuracy
    at_once = FrugalClassifier().fit(x, y).forecast().accuracy
    assert merged < np.mean(then) - 0.03
    assert abs(merged - at_once) < 0.12


def test_small_batches_of_new_classes_lower_it_too() -> None:
    x, y = blobs(30)
    clf = FrugalClassifier().fit(x[y < 10], y[y < 10])
    before = clf.forecast().accuracy
    for label in range(10, CLASSES):
        rows = np.flatnonzero(y == label)[:5]
        clf.partial_fit(x[rows], y[rows])
    assert clf.forecast().accuracy < before - 0.03


def test_what_is_expected_of_a_class_goes_with_it() -> None:
    clf = streamed(*blobs(20))
    clf.forget(3)
    assert 3 not in clf.model_.expected_accuracy()
    assert 3 not in clf.forecast().labels


def test_a_file_of_many_samples_keeps_shares(tmp_path: Path) -> None:
    clf = streamed(*blobs(20))
    memory, expected = clf.memory_, clf.model_.expected_accuracy()
    memory.evidence_ = {
        label: Evidence(np.concatenate([1000 * own.sums[:-1], own.sums[-1:]]))
        for label, own in memory.evidence_.items()
    }
    many = memory.forecast().of_classes
    clf.save(tmp_path / "it.frugal")
    loaded = FrugalClassifier.load(tmp_path / "it.frugal")
    np.testing.assert_allclose(loaded.forecast().of_classes, many, atol=0.03)
    assert len(expected) == CLASSES


def test_margins_take_at_most_two_percent_of_a_given_budget() -> None:
    x, y = blobs(20)
    for budget, kept in (("100kB", True), ("50kB", False)):
        clf = FrugalClassifier(MomentMemory(budget)).fit(x, y)
        assert (clf.forecast() is not None) is kept
        assert ("margins" in clf.memory_.arrays()) is kept
    with pytest.raises(InputError, match="budget of at least 4,000 bytes per class"):
        clf.is_reliable(x)


def test_evidence_without_margins_says_nothing() -> None:
    older = Evidence.of_arrays(np.array([9, 8, *[8.5] * 10]))
    assert Forecast.of({0: older, 1: older}, {0: 9, 1: 9}) is None
    assert older.tempering > 0


@pytest.mark.parametrize("value", [-0.1, 1.1, "much", np.nan])
def test_shares_that_are_none_are_refused(value: Any) -> None:
    clf = streamed(*blobs(5))
    with pytest.raises(InputError, match="error is"):
        clf.is_reliable(np.zeros((1, DIM)), value)
    with pytest.raises(InputError, match="coverage is"):
        clf.predict_set(np.zeros((1, DIM)), value)


def test_nothing_is_promised_without_held_out_samples() -> None:
    x, y = blobs(1)
    clf = FrugalClassifier().fit(x, y)
    assert clf.forecast() is None
    with pytest.raises(InputError, match="no samples were held out"):
        clf.predict_set(x)


@pytest.mark.parametrize("verb", ["forget", "merge_classes"])
def test_of_a_single_class_that_is_left_nothing_is_expected_or_promised(verb: str) -> None:
    x, y = blobs(30)
    clf = FrugalClassifier().fit(x[y < 2], y[y < 2])
    assert clf.forecast() is not None
    clf.forget(0) if verb == "forget" else clf.merge_classes(0, 1)
    assert clf.forecast() is None
    assert clf.model_.expected_accuracy() == {}
    for asked in (lambda: clf.is_reliable(x, 0.1), lambda: clf.predict_set(x)):
        with pytest.raises(InputError, match="two classes"):
            asked()


def test_of_a_head_that_needs_no_density_nothing_is_promised() -> None:
    class Other(NearestMeanHead):
        needs_density = False

    x, y = blobs(30)
    clf = FrugalClassifier("moments", Other()).fit(x, y)
    with pytest.raises(InputError, match="with head 'bayes'"):
        clf.is_reliable(x, 0.1)


def test_answers_have_what_was_asked_for() -> None:
    x, y = blobs(30)
    model = streamed(x, y).model_
    plain, asked = rank(model, ["a"], x[:1]), rank(model, ["a"], x[:1], error=0.5, coverage=0.9)
    assert {"sure", "set"}.isdisjoint(plain[0].to_json())
    found = asked[0].to_json()
    assert found["sure"] is bool(model.is_reliable(x[:1], 0.5)[0])
    assert [found["set"]] == model.predict_set(x[:1], 0.9)
    assert replace(asked[0], sure=False).label is None


def test_a_file_expects_what_its_classifier_does_though_classes_came_one_by_one(
    tmp_path: Path,
) -> None:
    x, y = blobs(12, apart=0.45)
    clf = FrugalClassifier().partial_fit(x[y < 14], y[y < 14])
    before = clf.forecast()
    for label in range(14, CLASSES):
        clf.partial_fit(x[y == label], y[y == label])
    path = tmp_path / "blobs.frugal"
    clf.save(path)
    expected, loaded = summarise(Store(path)).expected, FrugalClassifier.load(path).forecast()
    assert before is not None
    assert expected is not None
    assert loaded is not None
    assert expected == loaded.to_json()
    assert expected["accuracy"] < before.accuracy
