"""What ``check`` finds: planted mistakes, compared with oracles."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageFilter

from frugalvae import FrugalClassifier
from frugalvae import check as check_samples
from frugalvae.care.findings import Checked, Finding, check, near_names
from frugalvae.care.judge import add_samples, left_out, open_moments, wrong_labels
from frugalvae.care.photographs import (
    _candidates,
    _twins,
    near_duplicates,
    poor_ones,
    quality_of,
    same_pixels,
)
from frugalvae.digests import NONE, digest
from frugalvae.errors import InputError
from frugalvae.maths.arrays import unit
from frugalvae.model.model import Model, Recipe
from frugalvae.parts import make_memory
from frugalvae.parts.protocols import Task
from tests.conftest import real_features


def blobs(seed: int = 0, classes: int = 5, each: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """Well separated classes of features in 16 dimensions."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(classes), each)
    return rng.normal(size=(len(y), 16)) + 6 * rng.normal(size=(classes, 16))[y], y


def rows(checked: Checked, kind: str) -> set[int]:
    return {finding.row for finding in checked.of_kind(kind) if finding.row is not None}


# --------------------------------------------------------------------------- wrong labels


@given(st.integers(0, 1000), st.integers(1, 8))
def test_planted_wrong_labels_are_found_and_no_others(seed: int, count: int) -> None:
    x, y = blobs(seed)
    wrong = np.random.default_rng(seed).permutation(len(y))[:count]
    told = y.copy()
    told[wrong] = (y[wrong] + 1) % 5
    checked = check(Model(), x, told)
    found = rows(checked, "wrong-label")
    assert found <= set(wrong.tolist())
    assert len(found) >= 0.8 * count
    for finding in checked.of_kind("wrong-label"):
        assert finding.row is not None
        assert finding.other == y[finding.row]
        assert finding.label == told[finding.row]


def test_real_features_with_wrong_labels() -> None:
    features = real_features("ucf101-clip_vit_b32")
    rng = np.random.default_rng(5)
    chosen = np.isin(features.y_train, np.unique(features.y_train)[:40])
    x, y = features.x_train[chosen], np.unique(features.y_train[chosen], return_inverse=True)[1]
    wrong = rng.permutation(len(y))[: len(y) // 10]
    told = y.copy()
    told[wrong] = (y[wrong] + rng.integers(1, 40, len(wrong))) % 40
    found = rows(check(Model(), x, told), "wrong-label")
    right = len(found & set(wrong.tolist()))
    assert right / len(wrong) > 0.9
    assert right / len(found) > 0.75


def test_the_noise_matrix_is_that_of_a_dense_loop() -> None:
    rng = np.random.default_rng(0)
    count, n = 4, 60
    y = rng.integers(0, count, n)
    dense = rng.normal(size=(n, count)) * 3
    dense[np.arange(n), y] += 3
    classes = np.array([[label, *(c for c in range(count) if c != label)] for label in y])
    sparse = wrong_labels(classes, np.take_along_axis(dense, classes, 1), count)
    looks = np.exp(dense) / np.exp(dense).sum(axis=1, keepdims=True)
    given = np.full((count, count), 0.05 / (count - 1))
    np.fill_diagonal(given, 0.95)
    for _ in range(6):
        is_of = looks * given[:, y].T
        is_of /= is_of.sum(axis=1, keepdims=True)
        rate = np.clip(1 - is_of[np.arange(n), y].mean(), 1e-3, 0.5)
        times = np.zeros((count, count))
        for row in range(n):
            times[:, y[row]] += is_of[row]
        prior = np.full((count, count), rate / (count - 1))
        np.fill_diagonal(prior, 1 - rate)
        given = (times + 200 * prior) / (times.sum(axis=1, keepdims=True) + 200)
    is_of = looks * given[:, y].T
    expected = 1 - is_of[np.arange(n), y] / is_of.sum(axis=1)
    np.testing.assert_allclose(sparse, expected, atol=1e-9)


@pytest.mark.parametrize("budget", [None, 260])  # 260 parameters: some coordinates are dropped
@pytest.mark.parametrize("more", [0, 3])
def test_samples_are_left_out_as_the_rule_has_it(budget: int | None, more: int) -> None:
    x, y = blobs(classes=7)
    x = np.concatenate([x, x[:more] + 0.1])
    y = np.concatenate([y, y[:more]])  # classes of unequal size
    half = np.arange(len(y)) % 2 == 0
    recipe = Recipe(make_memory("moments", budget=budget))
    model = Model(recipe).learn(x[half], y[half])
    rng = np.random.default_rng(0)
    task = Task(x[~half].astype(np.float32), y[~half])
    memory, _ = open_moments(model, task.features, rng)
    add_samples(memory, task)
    assert memory.counts_ == {label: 20 + more * (label == 0) for label in range(7)}
    assert (memory.sums_.rank == 16) == (budget is None)
    found = left_out(memory, task)
    for rows, held in memory.held_out(task):
        expected = np.take_along_axis(held.scores, found.columns[rows], axis=1)
        scores = found.scores[rows] * held.rule.shared.noise
        np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-3)
    assert (found.columns[:, 0] == task.labels).all()


def test_wrong_labels_are_found_among_few_samples() -> None:
    """Sixty samples of 512 features: the shared covariance is mostly its ridge."""
    features = real_features("ucf101-clip_vit_b32")
    found = right = planted = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        chosen = rng.permutation(np.unique(features.y_train))[:6]
        x = np.concatenate([features.x_train[features.y_train == label][:10] for label in chosen])
        y = np.repeat(np.arange(6), 10)
        wrong = rng.permutation(60)[:6]
        y[wrong] = (y[wrong] + rng.integers(1, 6, 6)) % 6
        told = rows(check(Model(), x, y), "wrong-label")
        found, right, planted = (
            found + len(told),
            right + len(told & set(wrong.tolist())),
            planted + 6,
        )
    assert right / planted > 0.8
    assert right / found > 0.8


def test_more_samples_add_up_to_what_teaching_them_gives() -> None:
    x, y = blobs(1)
    task, rng = Task(x.astype(np.float32), y), np.random.default_rng(0)
    memory, notes = open_moments(Model().learn(x[::2], y[::2]), task.features, rng)
    add_samples(memory, task)
    taught = make_memory("moments", directions=0)
    taught.learn(Task(np.concatenate([x[::2], x]), np.concatenate([y[::2], y])), rng)
    assert notes == []
    assert memory.counts_ == taught.counts_
    np.testing.assert_allclose(memory.sums_.scatter, taught.sums_.scatter, atol=1e-3)
    np.testing.assert_allclose(memory.mapped_means(), taught.mapped_means(), atol=1e-5)


@pytest.mark.parametrize("classes", [1, 4])
def test_a_stranger_is_an_outlier(classes: int) -> None:
    x, y = blobs(2, classes=classes, each=30)
    x = np.concatenate([x, x.mean(axis=0) + 12 * np.eye(16)[:1]])
    checked = check(Model(), x, np.append(y, 0))
    assert len(x) - 1 in rows(checked, "outlier") | rows(checked, "wrong-label")
    assert len(rows(checked, "outlier")) <= 4


@pytest.mark.parametrize("memory", ["moments", "gaussian-diagonal", "store-all"])
def test_samples_are_compared_with_what_was_taught(memory: str) -> None:
    x, y = blobs(3)
    names = np.array(["ant", "bee", "cow", "dog", "eel"])[y]
    old = y < 3
    model = Model(Recipe(memory)).learn(x[old], names[old])
    told = names.copy()
    told[70], told[90] = "eel", "ant"  # a dog among eels, and an eel among what was taught
    checked = check(model, x[~old], told[~old])
    found = {finding.row: finding.other for finding in checked.of_kind("wrong-label")}
    assert found == {10: "dog", 30: "eel"}
    looks_old = check(model, np.concatenate([x[~old], x[:1]]), [*names[~old], "dog"])
    assert {f.other for f in looks_old.of_kind("wrong-label")} == {"ant"}
    drawn = "the file's classes are compared by samples drawn from its memory"
    assert (drawn in checked.notes) == (memory != "moments")


def test_checking_changes_nothing() -> None:
    x, y = blobs()
    clf = FrugalClassifier().fit(x, y)
    before = clf.predict_proba(x)
    check_samples(x, y, clf)
    assert (clf.predict_proba(x) == before).all()
    assert len(clf.history_) == 1


# --------------------------------------------------------------------------- duplicates


@given(st.integers(0, 10_000))
def test_duplicates_are_those_of_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(40, 12)).astype(np.float32)
    for copy in range(30, 36):
        x[copy] = x[rng.integers(0, 30)] * rng.uniform(0.9, 1.1)
    found = {twin.row: twin.of for twin in near_duplicates(x)}
    centred = x - x.mean(axis=0)
    cosine = centred @ centred.T / np.outer(*[np.linalg.norm(centred, axis=1)] * 2)
    distance = 1 - cosine
    others = np.where(distance < 1e-5, np.inf, distance)
    limit = 0.35 * np.median(others.min(axis=1))
    expected: dict[int, int] = {}
    for row in range(40):
        for other in range(row):
            if distance[row, other] < limit and row not in expected:
                expected[row] = expected.get(other, other)
    assert found == expected


def test_copies_in_two_classes_are_told_as_such() -> None:
    x, y = blobs()
    x, y = np.concatenate([x, x[:1]]), np.append(y, 3)
    [finding] = check(Model(), x, y).of_kind("duplicate")
    assert (finding.row, finding.twin, finding.label, finding.other) == (100, 0, 3, 0)
    assert finding.leave_out
    assert finding.sure == pytest.approx(1, abs=1e-3)


def test_of_three_copies_the_one_that_fits_is_kept() -> None:
    x, y = blobs(4)
    x, y = np.concatenate([x[[7]], x, x[[7]]]), np.concatenate([[3], y, [0]])  # 0, 8 and 101
    checked = check(Model(), x, y)
    assert {(f.row, f.twin) for f in checked.of_kind("duplicate")} == {(0, 8), (101, 8)}


def test_of_copies_in_two_classes_the_wrong_one_is_told() -> None:
    x, y = blobs(4)
    x, y = np.concatenate([x, x[[7]]]), np.append(y, 3)  # would speak for class 3 if it was taught
    checked = check(Model(), x, y)
    assert [(f.row, f.twin) for f in checked.of_kind("duplicate")] == [(100, 7)]
    assert [(f.row, f.other) for f in checked.of_kind("wrong-label")] == [(100, 0)]
    assert checked.rows_to_leave_out == [100]


def test_classes_of_nearly_the_same_name_are_told_once() -> None:
    x, y = blobs(5)
    names = np.array(["ant", "bee", "Cardinal", "dog", "eel"])[y].astype(object)
    names[[42, 43]] = "Cardinl"
    checked = check(Model(), x, names)
    assert [(f.label, f.other) for f in checked.of_kind("names")] == [("Cardinl", "Cardinal")]
    assert checked.of_kind("wrong-label") == []


def test_most_pairs_are_ruled_out_in_few_directions() -> None:
    rng = np.random.default_rng(0)
    directions = unit(rng.normal(size=(300, 200)).astype(np.float32))
    directions[200:] = unit(directions[:100] + 0.2 * directions[200:])
    near = {(row, row - 200) for row in range(200, 300)}
    pairs = {pair for part in _candidates(directions, 0.05) for pair in zip(*part, strict=True)}
    assert near <= pairs
    assert len(pairs) < 300
    assert {(twin.row, twin.of) for twin in _twins(directions, 0.05)} == near


@pytest.mark.parametrize("count", [3, 700])
def test_all_samples_the_same(count: int) -> None:
    checked = check(Model(), np.ones((2 * count, 4)), ["a"] * count + ["b"] * count)
    assert len(rows(checked, "duplicate")) == 2 * count - 1
    assert {finding.twin for finding in checked.of_kind("duplicate")} == {0}


def test_scaled_and_compressed_copies_have_the_same_pattern() -> None:
    noise = np.random.default_rng(0).integers(0, 255, (2, 24, 32, 3), np.uint8)
    large = [Image.fromarray(part).resize((400, 300), Image.Resampling.BICUBIC) for part in noise]
    images = [*large, large[0].resize((133, 100)), Image.new("RGB", (90, 80))]
    images += [Image.new("RGB", (70, 80))]  # blank ones have nothing in common
    patterns = np.array([quality_of(image).pattern for image in images])
    assert [(twin.row, twin.of) for twin in same_pixels(patterns)] == [(2, 0)]


def test_what_was_taught_is_recognised_by_its_digest() -> None:
    x, y = blobs()
    digests = np.array([digest(bytes([row])) for row in range(100)])
    model = Model().learn(x, y, digests={label: digests[y == label] for label in range(5)})
    checked = check(model, x[[3, 50]] + 0.5, [0, 4], digests=digests[[3, 50]])
    told = [(f.row, f.why) for f in checked.of_kind("taught-before")]
    assert told == [(1, "exactly this was taught before, as 2")]
    assert checked.taught == [0]
    assert checked.rows_to_leave_out == [1]
    assert checked.notes[0] == "1 sample taught before: neither checked nor counted again"
    assert "changed copies of what was taught before are found only if" in checked.notes[1]


@pytest.mark.parametrize("last", [False, True])
def test_a_changed_copy_is_recognised_beside_what_was_taught(last: bool) -> None:
    x, y = blobs()
    digests = np.array([digest(bytes([row])) for row in range(100)])
    model = Model().learn(x, y, digests={label: digests[y == label] for label in range(5)})
    place = 100 if last else 0  # the new one is the duplicate, wherever it stands
    both, labels = np.insert(x, place, x[7] + 0.01, axis=0), np.insert(y, place, y[7])
    checked = check(model, both, labels, digests=np.insert(digests, place, NONE))
    assert [(f.row, f.twin) for f in checked.of_kind("duplicate")] == [(place, 7 + (not last))]
    assert len(checked.taught) == 100


def test_a_class_is_not_counted_twice() -> None:
    x, y = blobs(each=3)
    digests = np.array([digest(bytes([row])) for row in range(15)])
    model = Model().learn(x, y, digests={label: digests[y == label] for label in range(5)})
    checked = check(model, x, y, digests=digests)  # three samples, though taught and in the folder
    assert {f.why for f in checked.of_kind("few")} == {
        "3 samples; classes of fewer than 5 are often missed"
    }


# --------------------------------------------------------------------------- photographs, classes


def test_blank_tiny_and_blurred_photographs_are_found() -> None:
    rng = np.random.default_rng(1)
    blocks = [Image.fromarray(rng.integers(0, 255, (10, 13, 3), np.uint8)) for _ in range(6)]
    sharp = [image.resize((260, 200), Image.Resampling.NEAREST) for image in blocks]
    images = [*sharp, sharp[0].filter(ImageFilter.GaussianBlur(6)), sharp[1].resize((40, 30))]
    images += [Image.new("RGB", (300, 200), "navy")]
    found = poor_ones({row: quality_of(image) for row, image in enumerate(images)})
    assert {row: poor.kind for row, poor in found.items()} == {6: "blurred", 7: "tiny", 8: "blank"}
    assert found[7].why == "its shorter side has 30 pixels"


def test_names_and_counts() -> None:
    names = ["Snow Bunting", "snow_bunting", "Wren", "Gull", "task 1", "task 2"]
    assert [(f.label, f.other, f.sure) for f in near_names(names)] == [
        ("Snow Bunting", "snow_bunting", 1.0)
    ]
    x, y = blobs(each=4)
    checked = check(Model().learn(*blobs(each=3)), x[:5], y[:5])  # 3 and 4 are 7, 3 and 1 are 4
    assert [(f.label, f.why) for f in checked.of_kind("few")] == [
        (1, "4 samples; classes of fewer than 5 are often missed")
    ]


# --------------------------------------------------------------------------- bad input


def test_one_sample_and_one_class_are_checked_as_far_as_possible() -> None:
    one = check(Model(), [[1.0, 2.0]], ["cat"])
    assert [finding.kind for finding in one.findings] == ["few"]
    assert one.notes == [
        "there is one class only: whether a sample looks like another cannot be known",
        "fewer than 10 samples: too few to find those that are unlike all classes",
    ]
    x, _ = blobs()
    alone = check(Model(), x, ["cat"] * 99 + ["emu"])
    assert "1 class of one sample: emu; whether that one is right cannot be known" in alone.notes


def test_wrong_features_are_refused() -> None:
    model = Model().learn(*blobs())
    with pytest.raises(InputError, match=r"expected \(n, 16\)"):
        check(model, np.ones((2, 3)), [0, 1])
    with pytest.raises(InputError, match="use labels of one kind throughout"):
        check(model, np.ones((2, 16)), ["a", "b"])
    with pytest.raises(InputError, match="y has shape"):
        check(Model(), np.ones((2, 3)), [0])


def test_findings_are_sorted_and_plain() -> None:
    found = [Finding("few", 0.6, np.str_("hat"), "why"), Finding("blank", 1.0, "a", "why", 3)]
    checked = Checked.of(found)
    assert [finding.kind for finding in checked.findings] == ["blank", "few"]
    assert checked.rows_to_leave_out == [3]
    assert checked.findings[1].to_json() == {
        "kind": "few",
        "sure": 0.6,
        "label": "hat",
        "why": "why",
        "row": None,
        "other": None,
        "twin": None,
        "leave_out": False,
    }
