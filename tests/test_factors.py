"""The factor memory: sums, directions, budgets, samples; against independent twins."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from frugalvae import FrugalClassifier, make_memory
from frugalvae.errors import InputError
from frugalvae.memories.densities import Shrinkage
from frugalvae.memories.factors import FactorMemory
from frugalvae.memories.mixing import rotation
from frugalvae.tasks import Task


def features(classes: int, per_class: int = 40, dim: int = 12, seed: int = 0) -> Task:
    """Classes with means, a common covariance and two wide directions of their own."""
    rng = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=rng)

    common, rows = normal(dim, dim) / dim**0.5, []
    for _ in range(classes):
        own = normal(per_class, 2) * 3 @ torch.linalg.qr(normal(dim, 2))[0].T
        rows.append(normal(dim) + normal(per_class, dim) @ common + own)
    return Task(torch.cat(rows), torch.arange(classes).repeat_interleave(per_class))


def split(task: Task, *groups: list[int]) -> list[Task]:
    keep = [torch.isin(task.labels, torch.tensor(group)) for group in groups]
    return [Task(task.features[rows], task.labels[rows]) for rows in keep]


def taught(*tasks: Task, **settings: object) -> FactorMemory:
    memory = FactorMemory(**settings)  # type: ignore[arg-type]
    for task in tasks:
        memory.learn(task, torch.Generator())
    return memory


def pooled(task: Task, rank: int) -> Tensor:
    """The covariance around class means, computed at once and by NumPy."""
    x = task.features.double().numpy()
    for label in task.classes:
        own = task.labels.numpy() == label
        x[own] -= x[own].mean(axis=0)
    if rank < x.shape[1]:
        x = x @ rotation(x.shape[1]).numpy()[:, :rank]
    return torch.from_numpy(x.T @ x / len(x))


@pytest.mark.parametrize("budget", [10_000, 200])
def test_the_shared_covariance_is_that_of_all_samples_together(budget: int) -> None:
    task = features(6)
    memory = taught(*split(task, [0, 1], [2], [3, 4, 5]), budget=budget)
    assert (memory.rank_ < 12) == (budget == 200)
    torch.testing.assert_close(
        memory.scatter_ / memory.count_, pooled(task, memory.rank_), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("budget", [10_000, 200])
def test_what_lies_beside_the_coordinates_is_counted_too(budget: int) -> None:
    task = features(6)
    memory = taught(*split(task, [0, 1], [2], [3, 4, 5]), budget=budget)
    total = (float(memory.scatter_.trace()) + memory.rest_) / memory.count_
    assert total == pytest.approx(float(pooled(task, 12).trace()), rel=1e-5)


def test_densities_are_those_of_the_covariances_that_the_memory_says() -> None:
    memory = taught(*split(features(4), [0, 1], [2, 3]), budget=200)
    x, shrinkage = features(4, seed=5).features.double(), Shrinkage(own=0.3, ridge=0.05)
    found = memory.log_density(x, shrinkage)
    shared = memory.scatter_ / memory.count_
    level = shared.diagonal().mean()
    rest = memory.rest_ / memory.count_ / (12 - memory.rank_)
    shared += 0.05 * level * torch.eye(memory.rank_)
    turned = rotation(12)[:, : memory.rank_]
    for label in range(4):
        factors = memory.factors_[label].double()
        twin = torch.distributions.MultivariateNormal(
            memory.means_[label].double() @ turned, shared + 0.3 * factors.T @ factors
        )
        beside = (x - memory.means_[label]) @ rotation(12)[:, memory.rank_ :].double()
        off = memory.rank_ / memory.count_ * beside.square().sum(dim=1) / (rest + 0.05 * level) / 2
        torch.testing.assert_close(found[:, label], twin.log_prob(x @ turned) - off)


def test_directions_are_those_in_which_a_class_spreads_most_beyond_the_rest() -> None:
    """By the generalised eigenvalue problem of class scatter against shared scatter."""
    import scipy.linalg

    task = features(5, per_class=200)
    memory = taught(task, directions=2)
    shared = pooled(task, 12).numpy()
    shared += 0.1 * np.trace(shared) / 12 * np.eye(12)
    for label in task.classes:
        own = task.of(label).double().numpy()
        values, vectors = scipy.linalg.eigh(np.cov(own.T, bias=True), shared)
        expected = shared @ vectors[:, -2:] * np.sqrt(values[-2:] - 1)
        found = memory.factors_[label].double().numpy().T
        np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-4)


@pytest.mark.parametrize("budget", [100_000, 200])
def test_nothing_of_a_class_changes_when_others_come_but_what_all_share(budget: int) -> None:
    first, second = split(features(8), [0, 1, 2], [3, 4, 5, 6, 7])
    before = taught(first, budget=100_000)
    after = copy.deepcopy(before)
    after.budget = budget
    after.learn(second, torch.Generator())
    for label in first.classes:
        assert torch.equal(before.means_[label], after.means_[label])
        old, new = before.factors_[label], after.factors_[label]
        if budget == 100_000:
            assert torch.equal(old, new)
            assert torch.equal(before.spread_[label], after.spread_[label])
        else:  # coordinates and directions that are kept are what they were
            turned = old[: len(new)].double() @ rotation(12)[:, : after.rank_]
            torch.testing.assert_close(new.double(), turned, rtol=1e-5, atol=1e-5)


def test_the_order_of_tasks_decides_next_to_nothing() -> None:
    task, x = features(6), features(6, seed=3).features
    one = taught(*split(task, [0, 1, 2], [3, 4, 5])).log_density(x)
    other = taught(*split(task, [4, 5], [3, 1, 0, 2]))
    columns = [other.classes.index(label) for label in range(6)]
    agree = one.argmax(dim=1) == other.log_density(x)[:, columns].argmax(dim=1)
    assert agree.float().mean() > 0.97


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
            memory.learn(part, torch.Generator())
        stored = sum(part.stored for part in memory.components())
        assert stored <= budget or (caught and not any(map(len, memory.factors_.values())))
        assert stored == sum(tensor.numel() for tensor in memory.tensors().values())


def test_the_usual_budget_grows_with_classes_beyond_200_and_no_coordinate_is_lost_then() -> None:
    rng, memory, ranks = torch.Generator().manual_seed(0), FactorMemory(), []
    for start in (0, 200, 400):
        labels = start + torch.arange(200).repeat_interleave(4)
        memory.learn(Task(torch.randn(800, 900, generator=rng), labels), rng)
        ranks.append(memory.rank_)
        stored = sum(len(tensor.flatten()) for tensor in memory.tensors().values())
        assert stored <= 500_000 + 390 * 900 + 3 * 900 * start
    assert 500 < ranks[0] < 900
    assert ranks == ranks[:1] * 3
    assert min(len(factors) for factors in memory.factors_.values()) >= 2


def test_a_budget_that_means_alone_exceed_is_said_to_be_exceeded() -> None:
    with pytest.warns(UserWarning, match="6 classes of 12 features take .* budget of 60"):
        taught(features(6), budget=60)


@pytest.mark.parametrize("dim", [1, 2, 7, 64, 333])
def test_the_rotation_is_orthogonal_and_the_same_for_ever(dim: int) -> None:
    turned = rotation(dim)
    torch.testing.assert_close(turned.T @ turned, torch.eye(dim, dtype=torch.float64))
    if dim == 7:  # a file that was written with another one would be worthless
        first = [-0.377964, 0.377964, 0.377964, 0.377964, -0.377964, -0.377964, -0.377964]
        column = int((turned.abs() - 7**-0.5).abs().sum(dim=0).argmin())
        assert [round(float(value), 6) for value in turned[:, column]] == first
        assert column == 3


@pytest.mark.parametrize("budget", [10_000, 200, 120])
def test_samples_have_the_moments_that_the_memory_says(budget: int) -> None:
    task = features(3, per_class=500)
    memory = taught(task, budget=budget)
    turned = rotation(12)[:, : memory.rank_] if memory.rank_ < 12 else torch.eye(12).double()
    for label in task.classes:
        drawn = memory.sample(label, 40_000, torch.Generator().manual_seed(1)).double()
        torch.testing.assert_close(
            drawn.mean(dim=0), memory.means_[label].double(), atol=0.1, rtol=0
        )
        factors, scale = memory.factors_[label].double(), memory._scale(label).double()
        expected = scale * memory.scatter_ / memory.count_ + factors.T @ factors
        found = torch.cov((drawn @ turned).T)
        assert (found - expected).norm() < 0.03 * expected.norm()
        beside = (drawn - drawn @ turned @ turned.T).var(dim=0).sum()
        assert float(beside) == pytest.approx(float(scale) * memory.rest_ / memory.count_, rel=0.03)


@pytest.mark.parametrize("budget", [10_000, 200, 120])
def test_samples_have_about_the_total_variance_of_their_class(budget: int) -> None:
    """Also when directions are dropped, whose variance then goes elsewhere."""
    task = features(3, per_class=500)
    memory = taught(*split(task, [0], [1, 2]), budget=budget)
    for label in task.classes:
        drawn, real = memory.sample(label, 5000, torch.Generator().manual_seed(1)), task.of(label)
        assert float(drawn.var(dim=0).sum() / real.var(dim=0).sum()) == pytest.approx(1, abs=0.05)


def test_features_without_negative_ones_are_taken_by_their_roots() -> None:
    task = features(3)
    positive = Task(task.features.square(), task.labels)
    memory = taught(positive)
    assert memory.rooted_
    assert not taught(task).rooted_
    torch.testing.assert_close(memory.means_[1], task.of(1).abs().mean(dim=0))
    assert memory.sample(1, 200, torch.Generator()).min() >= 0
    signed = taught(task, root=True)
    torch.testing.assert_close(
        signed.means_[0], (task.of(0).sign() * task.of(0).abs().sqrt()).mean(0)
    )
    assert signed.sample(0, 200, torch.Generator()).min() < 0
    assert not taught(positive, root=False).rooted_


@pytest.mark.parametrize("positive", [False, True])
def test_mapped_means_are_those_of_mapped_features(positive: bool) -> None:
    task = features(3)
    x = task.features.square() if positive else task.features
    memory = taught(Task(x, task.labels))
    roots = x.sqrt() if positive else x
    real = torch.stack([roots[task.labels == label].mean(dim=0) for label in range(3)])
    torch.testing.assert_close(memory.mapped_means(), real)
    torch.testing.assert_close(memory.mapped(x), roots)


def test_later_tasks_may_have_negative_features_all_the_same() -> None:
    task = features(4)
    memory = taught(Task(task.of(0).abs(), torch.zeros(40, dtype=torch.long)))
    (later,) = split(task, [1, 2, 3])
    memory.learn(later, torch.Generator())
    assert memory.log_density(task.features).isfinite().all()


def test_updating_gives_mean_and_shared_covariance_of_all_samples() -> None:
    task = features(4)
    early = torch.arange(len(task.labels)) % 2 == 0
    memory = taught(Task(task.features[early], task.labels[early]))
    for label in task.classes:
        rows = ~early & (task.labels == label)
        memory.update(Task(task.features[rows], task.labels[rows]), 20, torch.Generator())
    whole = taught(task)
    torch.testing.assert_close(memory.scatter_, whole.scatter_, rtol=1e-4, atol=1e-3)
    for label in task.classes:
        torch.testing.assert_close(memory.means_[label], whole.means_[label])
    x = features(4, seed=9).features
    agree = memory.log_density(x).argmax(dim=1) == whole.log_density(x).argmax(dim=1)
    assert agree.float().mean() > 0.95


def test_the_default_classifier_is_the_factor_memory_under_bayes_rule() -> None:
    task = features(2)
    classifier = FrugalClassifier().fit(task.features.numpy(), task.labels.numpy())
    kinds = type(classifier.memory_).__name__, type(classifier.head_).__name__
    assert kinds == ("FactorMemory", "BayesHead")


def test_bad_settings_are_refused() -> None:
    for wrong in ({"budget": 0}, {"budget": 1.5}, {"directions": -1}, {"root": "yes"}):
        with pytest.raises(InputError):
            make_memory("factors", **wrong)
