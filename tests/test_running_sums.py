"""Sums in parts are those of all samples at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frugalvae.errors import InputError
from frugalvae.maths.gaussians import RunningSums


def samples(count: int, seed: int = 0, dim: int = 3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return 100 + rng.normal(size=(count, dim)) @ rng.normal(size=(dim, dim))


def assert_same(one: RunningSums, other: RunningSums) -> None:
    assert one.count == other.count
    np.testing.assert_allclose(one.mean, other.mean, rtol=1e-12)
    np.testing.assert_allclose(one.scatter, other.scatter, rtol=1e-9, atol=1e-9)


def test_they_are_those_of_numpy() -> None:
    x = samples(20)
    sums = RunningSums.of(x)
    np.testing.assert_allclose(sums.mean, x.mean(axis=0))
    np.testing.assert_allclose(sums.covariance, np.cov(x.T, bias=True))
    assert np.array_equal(sums.scatter, sums.scatter.T)


@settings(max_examples=40)
@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=6), seed=st.integers(0, 99))
def test_batches_added_and_parts_merged_give_the_whole(sizes: list[int], seed: int) -> None:
    x = samples(sum(sizes), seed)
    added = merged = RunningSums()
    for part in np.split(x, np.cumsum(sizes)[:-1]):
        added, merged = added.add(part), merged.merge(RunningSums.of(part))
    assert_same(added, RunningSums.of(x))
    assert_same(merged, RunningSums.of(x))


@settings(max_examples=40)
@given(kept=st.integers(0, 9), removed=st.integers(1, 9), seed=st.integers(0, 99))
def test_what_is_subtracted_was_never_there(kept: int, removed: int, seed: int) -> None:
    x = samples(kept + removed, seed)
    left = RunningSums.of(x).subtract(RunningSums.of(x[kept:]))
    assert_same(left, RunningSums.of(x[:kept]) if kept else RunningSums())


def test_a_scatter_that_is_kept_elsewhere_grows_by_what_is_gained() -> None:
    x = samples(12)
    before = RunningSums.of(x[:7])
    gained = RunningSums(before.count, before.mean).add(x[7:])
    np.testing.assert_allclose(before.scatter + gained.scatter, RunningSums.of(x).scatter)
    rows = before.deviations(x[7:])
    assert rows.shape == (6, 3)
    np.testing.assert_allclose(rows.T @ rows, gained.scatter)
    np.testing.assert_allclose(before.mean_with(x[7:]), x.mean(axis=0))


def test_more_than_there_is_cannot_be_subtracted() -> None:
    with pytest.raises(InputError, match="cannot subtract 3 samples from 2"):
        RunningSums.of(samples(2)).subtract(RunningSums.of(samples(3)))
