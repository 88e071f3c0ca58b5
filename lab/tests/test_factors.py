"""The factor memory: sums, directions, budgets, samples; against independent twins."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from frugalvae import FrugalClassifier, make_memory
from frugalvae.errors import InputError
from frugalvae.maths.arrays import Array, rotate, rotate_back
from frugalvae.maths.gaussians import Shrinkage
from frugalvae.parts.protocols import Task
from frugalvae_lab.memories.factors import FactorMemory
from frugalvae_lab.memories.gaussians import Gaussians, Scores


def features(classes: int, per_class: int = 40, dim: int = 12, seed: int = 0) -> Task:
    """Classes with means, a common covariance and two wide directions of their own."""
    rng = np.random.default_rng(seed)

    def normal(*shape: int) -> Array:
        return rng.standard_normal(shape)

    common, rows = normal(dim, dim) / dim**0.5, []
    for _ in range(classes):
        own = normal(per_class, 2) * 3 @ np.linalg.qr(normal(dim, 2))[0].T
        rows.append(normal(dim) + normal(per_class, dim) @ common + own)
    labels = np.arange(classes).repeat(per_class)
    return Task(np.concatenate(rows).astype(np.float32), labels)


def rotation(dim: int) -> Array:
    """As a matrix that features are multiplied by from the right."""
    return rotate(np.eye(dim), dim)


def split(task: Task, *groups: list[int]) -> list[Task]:
    keep = [np.isin(task.labels, group) for group in groups]
    return [Task(task.features[rows], task.labels[rows]) for rows in keep]


def taught(*tasks: Task, **settings: object) -> FactorMemory:
    memory = FactorMemory(**settings)  # type: ignore[arg-type]
    for task in tasks:
        memory.learn(task, np.random.default_rng(0))
    return memory


def pooled(task: Task, rank: int) -> Array:
    """The covariance around class means, computed at once."""
    x = task.features.astype(np.float64)
    for label in task.classes:
        own = task.labels == label
        x[own] -= x[own].mean(axis=0)
    if rank < x.shape[1]:
        x = x @ rotation(x.shape[1])[:, :rank]
    covariance: Array = x.T @ x / len(x)
    return covariance


@pytest.mark.parametrize("budget", [10_000, 200])
def test_the_shared_covariance_is_that_of_all_samples_together(budget: int) -> None:
    task = features(6)
    memory = taught(*split(task, [0, 1], [2], [3, 4, 5]), budget=budget)
    assert (memory.rank_ < 12) == (budget == 200)
    np.testing.assert_allclose(
        memory.scatter_ / memory.count_, pooled(task, memory.rank_), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("budget", [10_000, 200])
def test_what_lies_beside_the_coordinates_is_counted_too(budget: int) -> None:
    task = features(6)
    memory = taught(*split(task, [0, 1], [2], [3, 4, 5]), budget=budget)
    total = (float(memory.scatter_.trace()) + memory.rest_) / memory.count_
    assert total == pytest.approx(float(pooled(task, 12).trace()), rel=1e-5)


@pytest.mark.parametrize("folded", [True, False])
@pytest.mark.parametrize("directions", [0, 1, 32])
@pytest.mark.parametrize("budget", [10_000, 200])
def test_densities_are_those_of_the_covariances_that_the_memory_says(
    budget: int, directions: int, folded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for what is the same for all classes; by one product, or step by step."""
    monkeypatch.setattr(Gaussians, "is_worth_folding", lambda *_: folded)
    tasks = split(features(4), [0, 1], [2, 3])
    memory = taught(*tasks, budget=budget, directions=directions)
    assert (memory.rank_ < 12) == (budget == 200)
    x, shrinkage = features(4, seed=5).features.astype(np.float64), Shrinkage(own=0.3, ridge=0.05)
    found, expected = memory.log_density(x, shrinkage), []
    shared = memory.scatter_ / memory.count_
    level = shared.diagonal().mean()
    rest = memory.rest_ / memory.count_ / max(1, 12 - memory.rank_)
    shared += 0.05 * level * np.eye(memory.rank_)
    turned, other = np.split(rotation(12) if memory.rank_ < 12 else np.eye(12), [memory.rank_], 1)
    for label in range(4):
        mean, factors = memory.means_[label], memory.factors_[label].astype(np.float64)
        twin = multivariate_normal(mean @ turned, shared + 0.3 * factors.T @ factors)
        beside = ((x - mean) @ other) ** 2 / (rest + 0.05 * level) / 2
        off = memory.rank_ / memory.count_ * beside.sum(axis=1)
        expected.append(twin.logpdf(x @ turned) - off)
    apart = found - found[:, :1], np.transpose(expected) - expected[0][:, None]
    np.testing.assert_allclose(*apart, rtol=1e-7, atol=1e-7)
    assert isinstance(memory._scores[1], Scores) == folded  # type: ignore[index]


def test_directions_are_those_in_which_a_class_spreads_most_beyond_the_rest() -> None:
    """By the generalised eigenvalue problem of class scatter against shared scatter."""
    import scipy.linalg

    task = features(5, per_class=200)
    memory = taught(task, directions=2)
    shared = pooled(task, 12)
    shared += 0.1 * np.trace(shared) / 12 * np.eye(12)
    for label in task.classes:
        own = task.of(label).astype(np.float64)
        values, vectors = scipy.linalg.eigh(np.cov(own.T, bias=True), shared)
        expected = shared @ vectors[:, -2:] * np.sqrt(values[-2:] - 1)
        found = memory.factors_[label].astype(np.float64).T
        np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-4)


@pytest.mark.parametrize("budget", [100_000, 200])
def test_nothing_of_a_class_changes_when_others_come_but_what_all_share(budget: int) -> None:
    first, second = split(features(8), [0, 1, 2], [3, 4, 5, 6, 7])
    before = taught(first, budget=100_000)
    after = copy.deepcopy(before)
    after.budget = budget
    after.learn(second, np.random.default_rng(0))
    for label in first.classes:
        assert np.array_equal(before.means_[label], after.means_[label])
        old, new = before.factors_[label], after.factors_[label]
        if budget == 100_000:
            assert np.array_equal(old, new)
            assert np.array_equal(before.spread_[label], after.spread_[label])
        else:  # coordinates and directions that are kept are what they were
            turned = old[: len(new)].astype(np.float64) @ rotation(12)[:, : after.rank_]
            np.testing.assert_allclose(new, turned, rtol=1e-5, atol=1e-5)


def test_the_order_of_tasks_decides_next_to_nothing() -> None:
    task, x = features(6), features(6, seed=3).features
    one = taught(*split(task, [0, 1, 2], [3, 4, 5])).log_density(x)
    other = taught(*split(task, [4, 5], [3, 1, 0, 2]))
    columns = [other.classes.index(label) for label in range(6)]
    agree = one.argmax(axis=1) == other.log_density(x)[:, columns].argmax(axis=1)
    assert agree.mean() > 0.97


@settings(max_examples=60)
@given(
    budget=st.integers(60, 3000),
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=5),
    per_class=st.integers(1, 30),
)
def test_a_budget_is_kept_whenever_means_leave_room(
    budget: int, sizes: list[int], per_class: int
) -> None:
    task, memory, start = features(sum(sizes), per_class), FactorMemory(budget), 0
    for size in sizes:
        (part,) = split(task, list(range(start, start + size)))
        start += size
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            memory.learn(part, np.random.default_rng(0))
        stored = sum(part.stored for part in memory.components())
        assert stored <= budget or (caught and not any(map(len, memory.factors_.values())))
        assert stored == sum(array.size for array in memory.arrays().values())


def test_the_usual_budget_grows_with_classes_beyond_200_and_no_coordinate_is_lost_then() -> None:
    rng, memory, ranks = np.random.default_rng(0), FactorMemory(), []
    for start in (0, 200, 400):
        labels = start + np.arange(200).repeat(4)
        memory.learn(Task(rng.standard_normal((800, 900), np.float32), labels), rng)
        ranks.append(memory.rank_)
        stored = sum(array.size for array in memory.arrays().values())
        assert stored <= 500_000 + 390 * 900 + 3 * 900 * start
    assert 500 < ranks[0] < 900
    assert ranks == ranks[:1] * 3
    assert min(len(factors) for factors in memory.factors_.values()) >= 2


def test_a_budget_that_means_alone_exceed_is_said_to_be_exceeded() -> None:
    with pytest.warns(UserWarning, match="6 classes of 12 features take .* budget of 60"):
        taught(features(6), budget=60)


@pytest.mark.parametrize("dim", [1, 2, 7, 64, 333])
def test_the_rotation_is_orthogonal_and_the_same_for_ever(dim: int) -> None:
    """A file that was written with another one would be worthless."""
    turned = rotation(dim)
    np.testing.assert_allclose(turned.T @ turned, np.eye(dim), rtol=1e-7, atol=1e-7)
    raw = np.random.PCG64(0).random_raw(2 * dim)
    signs, order = np.where(raw[:dim] < 2**63, 1.0, -1.0), np.argsort(raw[dim:], kind="stable")
    cosines = np.cos(np.pi / dim * (np.arange(dim)[:, None] + 0.5) * order)
    lengths = np.where(order == 0, 1 / dim, 2 / dim) ** 0.5
    np.testing.assert_allclose(turned, signs[:, None] * cosines * lengths, rtol=0, atol=1e-12)
    if dim == 7:
        first = [-0.377964, 0.377964, 0.377964, 0.377964, -0.377964, -0.377964, -0.377964]
        column = int(np.abs(np.abs(turned) - 7**-0.5).sum(axis=0).argmin())
        assert [round(float(value), 6) for value in turned[:, column]] == first
        assert column == 3


@pytest.mark.parametrize(("dim", "rank"), [(1, 1), (2, 1), (7, 3), (64, 64), (333, 100)])
def test_rotating_keeps_the_first_coordinates_and_back_takes_the_others_as_zero(
    dim: int, rank: int
) -> None:
    rows = np.random.default_rng(0).normal(size=(5, dim))
    turned = rotation(dim)[:, :rank]
    np.testing.assert_allclose(rotate(rows, rank), rows @ turned, rtol=0, atol=1e-12)
    back = rotate_back(rotate(rows, rank), dim)
    np.testing.assert_allclose(back, rows @ turned @ turned.T, rtol=0, atol=1e-12)


@pytest.mark.parametrize("budget", [10_000, 200, 120])
def test_samples_have_the_moments_that_the_memory_says(budget: int) -> None:
    task = features(3, per_class=500)
    memory = taught(task, budget=budget)
    turned = rotation(12)[:, : memory.rank_] if memory.rank_ < 12 else np.eye(12)
    for label in task.classes:
        drawn = memory.sample(label, 40_000, np.random.default_rng(1)).astype(np.float64)
        np.testing.assert_allclose(drawn.mean(axis=0), memory.means_[label], atol=0.1, rtol=0)
        factors, scale = memory.factors_[label].astype(np.float64), memory._scale(label)
        expected = scale * memory.scatter_ / memory.count_ + factors.T @ factors
        found = np.cov((drawn @ turned).T)
        assert np.linalg.norm(found - expected) < 0.03 * np.linalg.norm(expected)
        beside = (drawn - drawn @ turned @ turned.T).var(axis=0).sum()
        assert beside == pytest.approx(scale * memory.rest_ / memory.count_, rel=0.03)


@pytest.mark.parametrize("budget", [10_000, 200, 120])
def test_samples_have_about_the_total_variance_of_their_class(budget: int) -> None:
    """Also when directions are dropped, whose variance then goes elsewhere."""
    task = features(3, per_class=500)
    memory = taught(*split(task, [0], [1, 2]), budget=budget)
    for label in task.classes:
        drawn, real = memory.sample(label, 5000, np.random.default_rng(1)), task.of(label)
        ratio = drawn.var(axis=0, ddof=1).sum() / real.var(axis=0, ddof=1).sum()
        assert ratio == pytest.approx(1, abs=0.05)


def test_features_without_negative_ones_are_taken_by_their_roots() -> None:
    task = features(3)
    positive = Task(task.features**2, task.labels)
    memory = taught(positive)
    assert memory.rooted_
    assert not taught(task).rooted_
    expected = np.abs(task.of(1)).mean(axis=0)
    np.testing.assert_allclose(memory.means_[1], expected, rtol=1.3e-6, atol=1e-5)
    assert memory.sample(1, 200, np.random.default_rng(0)).min() >= 0
    signed, x = taught(task, root=True), task.of(0)
    expected = (np.sign(x) * np.sqrt(np.abs(x))).mean(axis=0)
    np.testing.assert_allclose(signed.means_[0], expected, rtol=1.3e-6, atol=1e-5)
    assert signed.sample(0, 200, np.random.default_rng(0)).min() < 0
    assert not taught(positive, root=False).rooted_


@pytest.mark.parametrize("positive", [False, True])
def test_mapped_means_are_those_of_mapped_features(positive: bool) -> None:
    task = features(3)
    x = task.features**2 if positive else task.features
    memory = taught(Task(x, task.labels))
    roots = np.sqrt(x) if positive else x
    real = np.stack([roots[task.labels == label].mean(axis=0) for label in range(3)])
    np.testing.assert_allclose(memory.mapped_means(), real, rtol=1.3e-6, atol=1e-5)
    np.testing.assert_allclose(memory.mapped(x), roots, rtol=1.3e-6, atol=1e-5)


def test_later_tasks_may_have_negative_features_all_the_same() -> None:
    task = features(4)
    memory = taught(Task(np.abs(task.of(0)), np.zeros(40, int)))
    (later,) = split(task, [1, 2, 3])
    memory.learn(later, np.random.default_rng(0))
    assert np.isfinite(memory.log_density(task.features)).all()


def test_the_usual_head_of_factors_is_bayes_rule() -> None:
    task = features(2)
    classifier = FrugalClassifier("factors").fit(task.features, task.labels)
    kinds = type(classifier.memory_).__name__, type(classifier.head_).__name__
    assert kinds == ("FactorMemory", "BayesHead")


def test_bad_settings_are_refused() -> None:
    for wrong in ({"budget": 0}, {"budget": 1.5}, {"directions": -1}, {"root": "yes"}):
        with pytest.raises(InputError):
            make_memory("factors", **wrong)


def test_scrubbing_adds_no_evidence() -> None:
    """What is relearned from replay counts as many samples as there were."""
    x = np.random.default_rng(0).normal(size=(18, 4))
    classifier = FrugalClassifier("factors").fit(x, np.arange(18) % 3)
    classifier.forget(0, scrub=True)
    assert classifier.memory_.count_ == 12
