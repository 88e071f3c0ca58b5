from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from frugalvae.paper.equations import proportion
from frugalvae.paper.nullspace import LayerInputs

EPS = float(np.finfo(np.float64).eps)


def normal(*shape: int, seed: int = 0) -> Tensor:
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


def fed(inputs: Tensor) -> LayerInputs:
    layer = LayerInputs(inputs.shape[1])
    layer.add(inputs)
    return layer


def with_eigenvalues(roots: list[int]) -> LayerInputs:
    """Inputs along the axes, so that the eigenvalues are exactly the roots' squares."""
    return fed(torch.diag(torch.tensor(roots, dtype=torch.float64)))


# --------------------------------------------------------------------------- sums


def test_sums_task_by_task_equal_those_of_all_inputs_at_once() -> None:
    inputs = normal(60, 8)
    layer = LayerInputs(8)
    for task in inputs.split([10, 1, 29, 20]):
        layer.add(task)
    torch.testing.assert_close(layer.sum_, fed(inputs).sum_, rtol=1e-12, atol=1e-12)


def test_sum_is_the_uncentred_second_moment() -> None:
    inputs = 3 + normal(20, 5)
    expected = sum(np.outer(x, x) for x in inputs.numpy())
    np.testing.assert_allclose(fed(inputs).sum_.numpy(), expected, rtol=1e-12)


def test_float32_inputs_are_summed_in_float64() -> None:
    """In float32 the small addend would vanish beside the large one."""
    layer = fed(torch.tensor([[1e4], [1.0]], dtype=torch.float32))
    assert layer.sum_.dtype == torch.float64
    assert layer.sum_.item() == 1e8 + 1


def test_sums_come_back_from_what_a_file_holds_and_go_on() -> None:
    first, then = normal(10, 8), normal(20, 8, seed=1)
    layer = LayerInputs.from_state(fed(first).state())
    layer.add(then)
    torch.testing.assert_close(layer.sum_, fed(torch.cat([first, then])).sum_)


def test_sums_are_where_the_network_is() -> None:
    assert LayerInputs(3).sum_.device.type == "cpu"
    assert LayerInputs(3, "meta").sum_.device.type == "meta"


def test_null_space_does_not_depend_on_the_scale_of_the_inputs() -> None:
    inputs = normal(60, 8) * torch.logspace(-3, 0, 8)
    small, large = fed(inputs).null_space(), fed(1000 * inputs).null_space()
    assert 0 < small.rank == large.rank < 8
    torch.testing.assert_close(small.matrix, large.matrix)
    assert small.proportion == pytest.approx(large.proportion)


# --------------------------------------------------------------------------- true null spaces


@pytest.mark.parametrize(("inputs", "dimensions"), [(1, 6), (5, 20), (40, 64)])
@pytest.mark.parametrize("rule", [{}, {"max_proportion": 0.0}, {"max_proportion": 1e-6}])
@pytest.mark.parametrize("offset", [0.0, 5.0])
def test_fewer_inputs_than_dimensions_leave_their_whole_orthogonal_complement(
    inputs: int, dimensions: int, rule: dict[str, float], offset: float
) -> None:
    old = offset + normal(inputs, dimensions)
    null = fed(old).null_space(**rule)
    complement = torch.eye(dimensions) - torch.linalg.pinv(old) @ old
    assert null.rank == dimensions - inputs
    assert null.proportion < 1e-12
    torch.testing.assert_close(null.matrix, complement, rtol=1e-9, atol=1e-9)


def test_projected_update_moves_no_old_input_of_any_task() -> None:
    first, second = normal(10, 32), 4 + normal(10, 32, seed=1)
    layer = LayerInputs(32)
    layer.add(first)
    layer.add(second)
    weight, update = normal(16, 32, seed=2), normal(16, 32, seed=3)
    changed = weight + update @ layer.null_space().matrix
    for old in (first, second):
        torch.testing.assert_close(old @ changed.T, old @ weight.T, rtol=0, atol=1e-9)
    assert (changed - weight).norm() > 1


def test_projection_is_orthogonal_and_of_its_rank() -> None:
    null = fed(normal(5, 12)).null_space()
    torch.testing.assert_close(null.matrix @ null.matrix, null.matrix)
    torch.testing.assert_close(null.matrix, null.matrix.T)
    assert float(null.matrix.trace()) == pytest.approx(null.rank)
    assert (null.rank, null.size) == (7, 12)


@pytest.mark.parametrize("rule", [{}, {"max_proportion": 0.05}])
def test_layer_that_was_fed_nothing_is_free_in_all_directions(rule: dict[str, float]) -> None:
    null = LayerInputs(4).null_space(**rule)
    torch.testing.assert_close(null.matrix, torch.eye(4, dtype=torch.float64))
    assert (null.rank, null.proportion) == (4, 0.0)


def test_even_inputs_saturate_the_rule_of_the_paper() -> None:
    """All eigenvalues are within the ratio, so that nothing old is protected."""
    null = fed(normal(200, 4)).null_space()
    assert null.rank == 4
    assert null.proportion == pytest.approx(1)


# --------------------------------------------------------------------------- rules


@settings(max_examples=60)
@given(roots=st.lists(st.integers(0, 12), min_size=1, max_size=6), ratio=st.integers(1, 100))
def test_ratio_rule_equals_brute_force(roots: list[int], ratio: int) -> None:
    values = sorted(root**2 for root in roots)
    bound = max(ratio * values[0], len(values) * EPS * values[-1])
    expected = sum(value <= bound for value in values)
    null = with_eigenvalues(roots).null_space(ratio=ratio)
    free = [root**2 <= bound for root in roots]
    assert null.rank == expected
    assert null.matrix.diagonal().tolist() == pytest.approx([float(axis) for axis in free])
    assert null.proportion == pytest.approx(sum(values[:expected]) / max(sum(values), 1))


@settings(max_examples=60)
@given(roots=st.lists(st.integers(0, 12), min_size=1, max_size=6), part=st.integers(0, 64))
def test_max_proportion_rule_is_the_largest_within_it(roots: list[int], part: int) -> None:
    values, total = sorted(root**2 for root in roots), sum(root**2 for root in roots)
    within = [size for size in range(len(values) + 1) if 64 * sum(values[:size]) <= part * total]
    null = with_eigenvalues(roots).null_space(max_proportion=part / 64)
    assert null.rank == max(within)
    assert null.proportion <= part / 64


def test_max_proportion_replaces_the_ratio() -> None:
    layer = with_eigenvalues([1, 2, 3, 10])
    assert layer.null_space(ratio=100.0).rank == 4
    assert layer.null_space(ratio=100.0, max_proportion=0.05).rank == 2


def test_default_ratio_is_that_of_the_paper() -> None:
    assert with_eigenvalues([1, 10, 11]).null_space().rank == 2
    assert with_eigenvalues([100, 1000, 1004]).null_space().rank == 2, "100.8 times is too much"


@settings(max_examples=60)
@given(roots=st.lists(st.integers(0, 12), min_size=1, max_size=6))
def test_proportion_grows_with_the_null_space(roots: list[int]) -> None:
    values = torch.tensor(sorted(root**2 for root in roots), dtype=torch.float64)
    parts = [proportion(values, size) for size in range(len(roots) + 1)]
    assert parts == sorted(parts)
    assert parts[0] == 0
    assert parts[-1] == pytest.approx(1 if any(roots) else 0)


def test_null_space_shrinks_as_tasks_come() -> None:
    layer, ranks = LayerInputs(12), []
    for task in range(4):
        layer.add(normal(3, 12, seed=task))
        ranks.append(layer.null_space(max_proportion=1e-9).rank)
    assert ranks == [9, 6, 3, 0]


@pytest.mark.parametrize("n_inputs", [1, 5, 9])
def test_projecting_by_either_basis_equals_the_projector(n_inputs: int) -> None:
    inputs = LayerInputs(10)
    inputs.add(torch.randn(n_inputs, 10, generator=torch.Generator().manual_seed(0)))
    null = inputs.null_space()
    change = torch.randn(3, 10, generator=torch.Generator().manual_seed(1)).double()
    torch.testing.assert_close(null.project(change), change @ null.matrix)
