"""How classes become tasks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frugalvae.errors import InputError
from frugalvae_lab.bench.tasks import equal_sizes, split_classes


@given(st.integers(1, 300), st.integers(1, 60), st.integers(0, 5))
def test_every_class_is_in_exactly_one_task(classes: int, tasks: int, seed: int) -> None:
    tasks = min(tasks, classes)
    parts = split_classes(np.arange(classes), tasks, seed)
    assert len(parts) == tasks
    assert sorted(np.concatenate(parts).tolist()) == list(range(classes))
    assert min(map(len, parts)) >= 1


def test_the_paper_s_splits() -> None:
    assert equal_sizes(200, 10) == [20] * 10
    assert equal_sizes(196, 10) == [20] * 9 + [16]


def test_the_seed_decides_the_order() -> None:
    first, same, other = (split_classes(np.arange(50), 5, seed) for seed in (0, 0, 1))
    assert all(np.array_equal(a, b) for a, b in zip(first, same, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize("sizes", [[2, 2], [3, 3], [0, 5], [5, -1, 1]])
def test_sizes_that_do_not_fit_are_refused(sizes: list[int]) -> None:
    with pytest.raises(InputError, match=r"there are 5 classes"):
        split_classes(np.arange(5), sizes, 0)


def test_more_tasks_than_classes_are_refused() -> None:
    with pytest.raises(InputError, match="5 classes cannot be split into 6 tasks"):
        split_classes(np.arange(5), 6, 0)
