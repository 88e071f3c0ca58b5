from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frugalvae_lab.bench import metrics

#: Three tasks; the first was forgotten and came back a little, the second improved.
MATRIX = [
    [0.9, np.nan, np.nan],
    [0.5, 0.8, np.nan],
    [0.6, 0.9, 0.7],
]


def test_scores_by_hand() -> None:
    assert metrics.final_average_accuracy(MATRIX) == pytest.approx((0.6 + 0.9 + 0.7) / 3)
    assert metrics.forgetting(MATRIX) == pytest.approx(((0.9 - 0.6) + (0.8 - 0.9)) / 2)
    assert metrics.backward_transfer(MATRIX) == pytest.approx(((0.6 - 0.9) + (0.9 - 0.8)) / 2)


def test_incremental_accuracy_weighs_samples_and_final_accuracy_weighs_tasks() -> None:
    counts = [10, 30, 60]
    rows = [0.9, (0.5 * 10 + 0.8 * 30) / 40, (0.6 * 10 + 0.9 * 30 + 0.7 * 60) / 100]
    assert metrics.average_incremental_accuracy(MATRIX, counts) == pytest.approx(np.mean(rows))
    assert metrics.final_average_accuracy(MATRIX) != pytest.approx(rows[-1])


def test_forgetting_is_measured_from_the_best_not_from_the_first() -> None:
    risen = [[0.5, np.nan, np.nan], [0.9, 0.8, np.nan], [0.4, 0.8, 0.7]]
    assert metrics.forgetting(risen) == pytest.approx((0.5 + 0.0) / 2)
    assert metrics.backward_transfer(risen) == pytest.approx((-0.1 + 0.0) / 2)


def test_one_task_cannot_be_forgotten() -> None:
    assert metrics.forgetting([[0.7]]) == 0
    assert metrics.backward_transfer([[0.7]]) == 0
    assert metrics.final_average_accuracy([[0.7]]) == pytest.approx(0.7)


@given(st.integers(1, 6), st.integers(0, 100))
def test_a_matrix_that_never_changes_has_no_forgetting(size: int, seed: int) -> None:
    accuracies = np.random.default_rng(seed).random(size)
    matrix = np.where(np.tri(size, dtype=bool), accuracies, np.nan)
    assert metrics.forgetting(matrix) == pytest.approx(0)
    assert metrics.backward_transfer(matrix) == pytest.approx(0)


def test_a_row_counts_only_the_samples_of_each_task() -> None:
    truth, prediction = np.array([3, 3, 1, 2]), np.array([3, 1, 1, 2])
    row = metrics.accuracy_row(truth, prediction, [np.array([1, 2]), np.array([3])], width=3)
    np.testing.assert_array_equal(row, [1.0, 0.5, np.nan])


def test_a_matrix_that_is_not_square_is_refused() -> None:
    with pytest.raises(ValueError, match=r"shape \(tasks, tasks\), got \(1, 2\)"):
        metrics.forgetting([[0.5, 0.6]])
