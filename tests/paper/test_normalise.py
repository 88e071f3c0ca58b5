from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from frugalvae.paper.normalise import (
    ClasswiseNormaliser,
    GlobalNormaliser,
    Normaliser,
    mean_and_std,
)
from frugalvae.parts.tensors import TensorTask, stack

SPREAD = torch.tensor([0.01, 1.0, 50.0], dtype=torch.float64)


def normal(*shape: int, seed: int = 0) -> Tensor:
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


def task(*classes: Tensor) -> TensorTask:
    """Classes 0, 1, ... whose samples come in turns where they can."""
    labels = torch.cat([torch.full((len(rows),), label) for label, rows in enumerate(classes)])
    order = torch.cat([torch.arange(len(rows)) for rows in classes]).argsort(stable=True)
    return TensorTask(torch.cat(classes)[order], labels[order])


def taught(*classes: Tensor) -> ClasswiseNormaliser:
    normaliser = ClasswiseNormaliser()
    normaliser.learn(task(*classes))
    return normaliser


# --------------------------------------------------------------------------- class by class


def test_normalised_class_has_zero_mean_and_unit_variance() -> None:
    x = 3 + SPREAD * normal(8, 3)
    z = taught(x).normalise(0, x)
    torch.testing.assert_close(z.mean(dim=0), torch.zeros_like(SPREAD))
    torch.testing.assert_close(z.square().mean(dim=0), torch.ones_like(SPREAD))


def test_min_max_before_the_z_score_changes_nothing() -> None:
    """Why two statistics are stored where the paper counts four."""
    x = 3 + SPREAD * normal(8, 3)
    squeezed = (x - x.amin(dim=0)) / (x.amax(dim=0) - x.amin(dim=0))
    z = taught(squeezed).normalise(0, squeezed)
    torch.testing.assert_close(taught(x).normalise(0, x), z)


def test_classes_keep_statistics_of_their_own() -> None:
    a, b = normal(8, 3), 7 + 2 * normal(6, 3, seed=1)
    both = taught(a, b)
    torch.testing.assert_close(both.normalise(0, a), taught(a).normalise(0, a))
    torch.testing.assert_close(both.normalise(1, b), taught(b).normalise(0, b))
    torch.testing.assert_close(both.restore(1, torch.zeros(1, 3))[0], b.mean(dim=0))


def test_later_task_leaves_the_classes_of_an_earlier_one() -> None:
    a, b = normal(8, 3), 7 + 2 * normal(6, 3, seed=1)
    normaliser = taught(a)
    normaliser.learn(TensorTask(b, torch.full((6,), 1)))
    torch.testing.assert_close(normaliser.normalise(0, a), taught(a).normalise(0, a))
    torch.testing.assert_close(normaliser.normalise(1, b), taught(b).normalise(0, b))


def test_constant_dimension_becomes_zero_beside_others_that_do_not() -> None:
    x = torch.tensor([[1.0, 0.1], [3.0, 0.1], [8.0, 0.1]])
    z = taught(x).normalise(0, x)
    assert torch.equal(z[:, 1], torch.zeros(3))
    assert z[:, 0].abs().min() > 0.1


def test_constant_dimension_stays_constant_whatever_is_restored() -> None:
    x = torch.full((3, 2), 0.1)
    restored = taught(x).restore(0, torch.tensor([[5.0, -5.0]]))
    torch.testing.assert_close(restored, x[:1])


@settings(max_examples=60)
@given(constant=st.floats(-10, 10, width=32), count=st.integers(1, 12))
def test_constant_dimension_is_restored_exactly(constant: float, count: int) -> None:
    """As the class promises; the mean of equal float32 numbers need not be that number."""
    x = torch.full((count, 1), constant)
    assert taught(x).restore(0, torch.ones(1, 1)).item() == x[0].item()


def test_class_of_one_sample_becomes_zero_and_comes_back() -> None:
    x = normal(1, 3)
    normaliser = taught(x)
    assert torch.equal(normaliser.normalise(0, x), torch.zeros_like(x))
    assert torch.equal(normaliser.restore(0, normal(1, 3, seed=1)), x)


def test_two_vectors_a_class_are_stored_in_the_order_of_learning() -> None:
    a, b = normal(8, 3), 7 + 2 * normal(8, 3, seed=1)
    normaliser = ClasswiseNormaliser()
    normaliser.learn(TensorTask(a, torch.full((8,), 9)))
    normaliser.learn(TensorTask(b, torch.full((8,), 2)))
    arrays, both = normaliser.arrays(), np.stack([a.numpy(), b.numpy()])
    assert sorted(arrays) == ["normaliser.mean", "normaliser.std"]
    np.testing.assert_allclose(arrays["normaliser.mean"], both.mean(axis=1), atol=1e-7)
    np.testing.assert_allclose(arrays["normaliser.std"], both.std(axis=1), atol=1e-7)


# --------------------------------------------------------------------------- all classes alike


def test_global_map_brings_the_first_task_as_a_whole_to_unit_variance() -> None:
    a, b = SPREAD * normal(8, 3), 7 + 2 * normal(6, 3, seed=1)
    normaliser = GlobalNormaliser()
    normaliser.learn(task(a, b))
    z = torch.cat([normaliser.normalise(0, a), normaliser.normalise(1, b)])
    torch.testing.assert_close(z.mean(dim=0), torch.zeros_like(SPREAD))
    torch.testing.assert_close(z.square().mean(dim=0), torch.ones_like(SPREAD))


def test_global_map_is_decided_by_the_first_task_for_every_class() -> None:
    x = normal(5, 3, seed=2)
    normaliser = GlobalNormaliser()
    normaliser.learn(task(SPREAD * normal(8, 3)))
    before = normaliser.normalise(0, x)
    stored = {name: array.copy() for name, array in normaliser.arrays().items()}
    normaliser.learn(TensorTask(7 + normal(6, 3, seed=1), torch.full((6,), 1)))
    assert torch.equal(normaliser.normalise(1, x), before)
    assert normaliser.arrays().keys() == stored.keys()
    assert all(np.array_equal(kept, stored[name]) for name, kept in normaliser.arrays().items())


def test_dimension_constant_in_the_first_task_is_shifted_and_not_scaled() -> None:
    normaliser = GlobalNormaliser()
    normaliser.learn(task(torch.tensor([[1.0, 5.0], [3.0, 5.0]])))
    assert normaliser.normalise(0, torch.tensor([[4.0, 7.0]])).tolist() == [[2.0, 2.0]]


def test_global_map_stores_two_vectors_once_it_has_learned() -> None:
    normaliser = GlobalNormaliser()
    assert sum(array.size for array in normaliser.arrays().values()) == 0
    normaliser.learn(task(normal(8, 3), normal(8, 3, seed=1)))
    shapes = {name: array.shape for name, array in normaliser.arrays().items()}
    assert shapes == {"normaliser.mean": (3,), "normaliser.std": (3,)}


# --------------------------------------------------------------------------- both


@pytest.mark.parametrize("normaliser", [ClasswiseNormaliser(), GlobalNormaliser()])
def test_restore_undoes_normalise_for_features_never_seen(normaliser: Normaliser) -> None:
    normaliser.learn(task(3 + SPREAD * normal(8, 3)))
    x = SPREAD * normal(5, 3, seed=1)
    torch.testing.assert_close(normaliser.restore(0, normaliser.normalise(0, x)), x)
    torch.testing.assert_close(normaliser.normalise(0, normaliser.restore(0, x)), x)


@pytest.mark.parametrize("normaliser", [ClasswiseNormaliser(), GlobalNormaliser()])
def test_float32_stays_float32(normaliser: Normaliser) -> None:
    x = normal(8, 3).float()
    normaliser.learn(task(x))
    assert normaliser.normalise(0, x).dtype == torch.float32
    assert normaliser.restore(0, x).dtype == torch.float32
    assert {str(array.dtype) for array in normaliser.arrays().values()} == {"float32"}


def test_moments_are_those_of_the_population() -> None:
    x = 3 + SPREAD * normal(8, 3)
    mean, std = mean_and_std(x)
    torch.testing.assert_close(mean, torch.tensor(x.numpy().mean(axis=0)))
    torch.testing.assert_close(std, torch.tensor(x.numpy().std(axis=0)))


def test_small_spread_counts_around_zero_and_is_rounding_around_a_large_number() -> None:
    small = 1e-9 * normal(8, 3)
    expected = small.std(dim=0, correction=0)
    torch.testing.assert_close(mean_and_std(small)[1], expected, rtol=1e-12, atol=0)
    assert torch.equal(mean_and_std(1 + small)[1], torch.zeros(3, dtype=torch.float64))


def test_stack_keeps_the_order_and_of_nothing_is_empty() -> None:
    assert stack({3: torch.ones(2), 1: torch.zeros(2)}).tolist() == [[1, 1], [0, 0]]
    assert stack({}).numel() == 0
