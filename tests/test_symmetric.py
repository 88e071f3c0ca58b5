from __future__ import annotations

import numpy as np
import pytest

from frugalvae.maths.arrays import (
    BLOCK,
    Array,
    add_ridge,
    inverse_root,
    pack,
    solve_lower,
    solve_upper,
    square_root,
    unpack,
)
from frugalvae.moments.rule import Moments, SharedCovariance


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape)


def covariance(size: int, rank: int | None = None) -> Array:
    factor = normal(size, size if rank is None else rank)
    product: Array = factor @ factor.T
    return product


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_unpack_undoes_pack_at_any_size(size: int) -> None:
    matrix = normal(size, size)
    symmetric = matrix + matrix.T
    assert np.array_equal(unpack(pack(symmetric)), symmetric)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_packed_triangle_has_every_distinct_number_once(size: int) -> None:
    values = np.arange(size**2).reshape(size, size)
    packed = pack(np.maximum(values, values.T))
    expected = {max(i * size + j, j * size + i) for i in range(size) for j in range(size)}
    assert sorted(packed.tolist()) == sorted(expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_packing_keeps_the_precision(dtype: type[np.floating]) -> None:
    packed = pack(covariance(3).astype(dtype))
    assert packed.dtype == unpack(packed).dtype == dtype


@pytest.mark.parametrize("length", [2, 4, 5])
def test_vector_that_is_no_triangle_is_refused(length: int) -> None:
    with pytest.raises(ValueError, match="no packed triangle|could not broadcast"):
        unpack(np.zeros(length))


def test_root_times_its_transpose_is_the_covariance() -> None:
    matrix = covariance(6)
    root = square_root(matrix)
    assert root.shape == (6, 6)
    assert root.dtype == np.float32
    np.testing.assert_allclose(root @ root.T, matrix, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rank", [0, 1, 3, 5])
def test_root_is_as_narrow_as_the_rank(rank: int) -> None:
    matrix = covariance(6, rank)
    root = square_root(matrix)
    assert root.shape == (6, rank)
    np.testing.assert_allclose(root @ root.T, matrix, rtol=1e-5, atol=1e-5)


def test_root_keeps_small_directions_that_are_not_rounding() -> None:
    root = square_root(np.diag([1.0, 1e-9]))
    assert sorted(np.abs(root).max(axis=0).tolist()) == pytest.approx([1e-9**0.5, 1.0])


def test_samples_through_the_root_have_the_covariance() -> None:
    matrix = covariance(3)
    samples = normal(40_000, 3, seed=1) @ square_root(matrix).T
    np.testing.assert_allclose(np.cov(samples.T), matrix, rtol=0.05, atol=0.05)


def test_ridge_is_relative_to_the_mean_of_the_diagonal() -> None:
    matrix = covariance(4)
    expected = matrix + 0.1 * matrix.trace() / 4 * np.eye(4)
    np.testing.assert_allclose(add_ridge(matrix, 0.1), expected)


def test_ridge_scales_with_the_matrix() -> None:
    matrix = covariance(4)
    np.testing.assert_allclose(add_ridge(100 * matrix, 0.1), 100 * add_ridge(matrix, 0.1))


def test_ridge_makes_zeros_a_multiple_of_the_identity() -> None:
    np.testing.assert_allclose(add_ridge(np.zeros((3, 3)), 0.1), 0.1 * np.eye(3))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ridge_changes_neither_its_argument_nor_the_precision(dtype: type[np.floating]) -> None:
    matrix = covariance(4).astype(dtype)
    assert add_ridge(matrix, 0.1).dtype == dtype
    assert np.array_equal(matrix, covariance(4).astype(dtype))


@pytest.mark.parametrize("size", [1, 2, 63, 64, 65, 200, 333])
def test_triangles_are_solved_by_halves_as_any_other_matrix(size: int) -> None:
    lower, right = np.linalg.cholesky(covariance(size, 2 * size) / size), normal(size, 3)
    before = lower.copy(), right.copy()
    for matrix, found in (
        (lower, solve_lower(lower, right)),
        (lower.T, solve_upper(lower, right)),
    ):
        np.testing.assert_allclose(found, np.linalg.solve(matrix, right), rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(matrix @ found, right, atol=1e-10)
    assert np.array_equal(lower, before[0])
    assert np.array_equal(right, before[1])


@pytest.mark.parametrize("size", [2, 200])
def test_solving_a_triangle_keeps_the_precision(size: int) -> None:
    lower = np.linalg.cholesky(covariance(size, 2 * size)).astype(np.float32)
    right = np.ones((size, 1), np.float32)
    assert solve_lower(lower, right).dtype == solve_upper(lower, right).dtype == np.float32


# --------------------------------------------------------------------------- by blocks


@pytest.mark.parametrize("size", [1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 44])
def test_inverse_root_is_that_of_cholesky(size: int) -> None:
    matrix = covariance(size) + np.eye(size)
    before = matrix.copy()
    inverse = inverse_root(matrix)
    np.testing.assert_allclose(inverse, np.linalg.inv(np.linalg.cholesky(matrix)), atol=1e-9)
    assert not np.triu(inverse, 1).any()
    assert np.array_equal(matrix, before)


def test_inverse_root_of_what_is_not_positive_is_an_error() -> None:
    matrix = np.eye(2 * BLOCK)
    matrix[-1, -1] = -1.0
    with pytest.raises(np.linalg.LinAlgError):
        inverse_root(matrix)


@pytest.mark.parametrize("negative", [0.0, 3.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_whitening_by_blocks_against_a_dense_inverse(
    negative: float, dtype: type[np.floating]
) -> None:
    """Also where samples that were taken out left a negative variance, which counts as none."""
    size, counts = BLOCK + 70, np.array([500.0, 500.0])
    scatter = 998 * covariance(size) / size
    values, vectors = np.linalg.eigh(scatter)
    values[0] -= 998 * negative
    scatter = vectors * values @ vectors.T
    before, no_rows = scatter.copy(), (np.empty((0, size)), np.empty(0, int))
    known = Moments(counts, normal(2, size), scatter, *no_rows, np.empty((2, 0)))
    shared = SharedCovariance.of(known, ridge=0.5)
    dense = (vectors * np.maximum(values, 0)) @ vectors.T / 998 + shared.ridge * np.eye(size)
    rows = normal(5, size, seed=1).astype(dtype)
    white = shared.whiten(rows)
    assert white.dtype == dtype
    np.testing.assert_allclose(white @ white.T, rows @ np.linalg.inv(dense) @ rows.T, rtol=1e-4)
    inverse_trace = np.linalg.inv(dense).trace()
    assert shared.noise == pytest.approx(1 - shared.ridge * inverse_trace / size)
    assert np.array_equal(scatter, before)
