from __future__ import annotations

import pytest
import torch
from torch import Tensor

from frugalvae.symmetric import add_ridge, pack, square_root, unpack


def normal(*shape: int, seed: int = 0) -> Tensor:
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


def covariance(size: int, rank: int | None = None) -> Tensor:
    factor = normal(size, size if rank is None else rank)
    return factor @ factor.T


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_unpack_undoes_pack_at_any_size(size: int) -> None:
    matrix = normal(size, size)
    symmetric = matrix + matrix.T
    assert torch.equal(unpack(pack(symmetric)), symmetric)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_packed_triangle_has_every_distinct_number_once(size: int) -> None:
    values = torch.arange(size**2).reshape(size, size)
    packed = pack(torch.maximum(values, values.T))
    expected = {max(i * size + j, j * size + i) for i in range(size) for j in range(size)}
    assert sorted(packed.tolist()) == sorted(expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_packing_keeps_the_precision(dtype: torch.dtype) -> None:
    packed = pack(covariance(3).to(dtype))
    assert packed.dtype == unpack(packed).dtype == dtype


@pytest.mark.parametrize("length", [2, 4, 5])
def test_vector_that_is_no_triangle_is_refused(length: int) -> None:
    with pytest.raises(RuntimeError):
        unpack(torch.zeros(length))


def test_root_times_its_transpose_is_the_covariance() -> None:
    matrix = covariance(6)
    root = square_root(matrix)
    assert root.shape == (6, 6)
    assert root.dtype == torch.float32
    torch.testing.assert_close((root @ root.T).double(), matrix, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rank", [0, 1, 3, 5])
def test_root_is_as_narrow_as_the_rank(rank: int) -> None:
    matrix = covariance(6, rank)
    root = square_root(matrix)
    assert root.shape == (6, rank)
    torch.testing.assert_close((root @ root.T).double(), matrix, rtol=1e-5, atol=1e-5)


def test_root_keeps_small_directions_that_are_not_rounding() -> None:
    root = square_root(torch.diag(torch.tensor([1.0, 1e-9], dtype=torch.float64)))
    assert sorted(root.abs().amax(dim=0).tolist()) == pytest.approx([1e-9**0.5, 1.0])


def test_samples_through_the_root_have_the_covariance() -> None:
    matrix = covariance(3)
    samples = normal(40_000, 3).float() @ square_root(matrix).T
    torch.testing.assert_close(samples.T.cov().double(), matrix, rtol=0.05, atol=0.05)


def test_ridge_is_relative_to_the_mean_of_the_diagonal() -> None:
    matrix = covariance(4)
    expected = matrix + 0.1 * matrix.trace() / 4 * torch.eye(4)
    torch.testing.assert_close(add_ridge(matrix, 0.1), expected)


def test_ridge_scales_with_the_matrix() -> None:
    matrix = covariance(4)
    torch.testing.assert_close(add_ridge(100 * matrix, 0.1), 100 * add_ridge(matrix, 0.1))


def test_ridge_makes_zeros_a_multiple_of_the_identity() -> None:
    torch.testing.assert_close(add_ridge(torch.zeros(3, 3), 0.1), 0.1 * torch.eye(3))


def test_ridge_changes_neither_its_argument_nor_the_precision() -> None:
    matrix = covariance(4)
    assert add_ridge(matrix, 0.1).dtype == torch.float64
    assert torch.equal(matrix, covariance(4))
