from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import sqrtm

from frugalvae_lab.bench.metrics import (
    frechet_distance,
    precision_and_recall,
    relative_frechet_distance,
)


def by_square_root(one: np.ndarray, other: np.ndarray) -> float:
    """The textbook formula, with the root of a d x d matrix."""
    shift = one.mean(axis=0) - other.mean(axis=0)
    first, second = (np.cov(rows.T, bias=True) for rows in (one, other))
    root = np.real(sqrtm(first @ second))
    return float(shift @ shift + np.trace(first + second - 2 * root))


def exact(mean: np.ndarray, deviations: np.ndarray) -> np.ndarray:
    """Rows with this mean and this diagonal covariance, to the last digit."""
    corners = np.diag(deviations) * np.sqrt(len(mean))
    return np.concatenate([mean + corners, mean - corners])


@given(st.integers(1, 12), st.integers(0, 1000))
def test_of_diagonal_gaussians_it_has_a_closed_form(dim: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    means, deviations = rng.normal(size=(2, dim)), rng.uniform(0, 3, size=(2, dim))
    expected = np.square(means[0] - means[1]).sum()
    expected += np.square(deviations[0] - deviations[1]).sum()
    sets = [exact(mean, spread) for mean, spread in zip(means, deviations, strict=True)]
    assert frechet_distance(*sets) == pytest.approx(expected)
    spread = np.square(deviations[0]).sum()
    assert relative_frechet_distance(*sets) == pytest.approx(expected / spread)


@pytest.mark.parametrize("counts", [(40, 60), (40, 7), (3, 60)])
def test_it_is_the_textbook_formula(counts: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(5, 5))
    one = rng.normal(size=(counts[0], 5)) @ mixing + 1
    other = rng.normal(size=(counts[1], 5))
    assert frechet_distance(one, other) == pytest.approx(by_square_root(one, other), rel=1e-5)


def test_fewer_rows_than_columns_are_no_trouble() -> None:
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=(6, 5)), rng.normal(size=(9, 5))
    rotation = np.linalg.qr(rng.normal(size=(300, 300)))[0][:5]  # into a plane of a wide space
    narrow, wide = frechet_distance(one, other), frechet_distance(one @ rotation, other @ rotation)
    assert wide == pytest.approx(narrow)
    few = rng.normal(size=(4, 300)).astype(np.float32)
    assert frechet_distance(few, few) == pytest.approx(0, abs=1e-10)
    assert frechet_distance(few, few + 2) == pytest.approx(4 * 300)


def test_the_relative_distance_knows_no_unit() -> None:
    rng = np.random.default_rng(0)
    real, samples = rng.normal(size=(20, 4)), rng.normal(size=(30, 4)) + 1
    expected = frechet_distance(real, samples) / np.trace(np.cov(real.T, bias=True))
    assert relative_frechet_distance(real, samples) == pytest.approx(expected)
    assert relative_frechet_distance(10 * real, 10 * samples) == pytest.approx(expected)
    same = np.full((5, 4), 0.1)
    assert relative_frechet_distance(same, same) == 0
    assert relative_frechet_distance(same, same + 1) == np.inf


def by_loops(real: np.ndarray, samples: np.ndarray, k: int) -> tuple[float, float]:
    """Precision and recall as they are defined."""

    def covered(rows: np.ndarray, centres: np.ndarray) -> float:
        radii = [sorted(np.linalg.norm(centre - centres, axis=1))[k] for centre in centres]
        inside = [
            any(
                np.linalg.norm(row - centre) <= radius
                for centre, radius in zip(centres, radii, strict=True)
            )
            for row in rows
        ]
        return float(np.mean(inside))

    return covered(samples, real), covered(real, samples)


@pytest.mark.parametrize("k", [1, 3])
def test_precision_and_recall_are_what_their_definition_says(k: int) -> None:
    rng = np.random.default_rng(0)
    real, samples = rng.normal(size=(30, 3)), rng.normal(size=(20, 3)) + 0.7
    found = precision_and_recall(real, samples, k)
    assert found == pytest.approx(by_loops(real, samples, k))
    assert 0 < found[0] < 1
    assert precision_and_recall(samples, real, k) == found[::-1]


def test_precision_and_recall_at_their_ends() -> None:
    rng = np.random.default_rng(0)
    real = rng.normal(size=(40, 6))
    assert precision_and_recall(real, real[::-1]) == (1, 1)
    assert precision_and_recall(real, real + 100) == (0, 0)
    narrow = real.mean(axis=0) + (real - real.mean(axis=0)) / 100  # all good, and all alike
    precision, recall = precision_and_recall(real, narrow)
    assert (precision, recall) == (1, 0)
    assert precision_and_recall(narrow, real) == (0, 1)


def test_what_cannot_be_measured_is_refused() -> None:
    with pytest.raises(ValueError, match=r"one row per sample, got shape \(3,\)"):
        frechet_distance([1.0, 2.0, 3.0], [[1.0]])
    with pytest.raises(ValueError, match="one dimension, got 2 and 1"):
        frechet_distance([[1.0, 2.0]], [[1.0]])
    with pytest.raises(ValueError, match="3 real features and 5 samples; expected more than 3"):
        precision_and_recall(np.zeros((3, 2)), np.zeros((5, 2)))
