"""What every head must do. Heads are discovered: a new one is tested by being there."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest

from frugalvae import heads
from frugalvae.heads import HEADS, make_head
from frugalvae.interfaces import Head, Memory, Replay, Task
from frugalvae.memories.factors import FactorMemory
from frugalvae.memories.store_all import StoreAllMemory
from frugalvae.plugins import settings_of
from tests.conftest import blobs, parts_of, small_head


@pytest.fixture(params=list(HEADS))
def head(request: pytest.FixtureRequest) -> Head:
    return small_head(request.param)


def memory_for(head: Head) -> Memory:
    """Everything is stored for replay; where densities are compared, there are some."""
    return FactorMemory() if getattr(head, "needs_density", False) else StoreAllMemory()


def teach(head: Head, *tasks: Task, seed: int = 0) -> Head:
    """The head after these tasks."""
    memory, rng = memory_for(head), np.random.default_rng(seed)
    for task in tasks:
        memory.learn(task, rng)
        head.register(task)
        head.learn(task, Replay(memory, rng))
    return head


def predict(head: Head, features: np.ndarray) -> list[int]:
    return [head.classes[column] for column in head.logits(features).argmax(axis=1).tolist()]


def test_every_head_class_of_the_package_has_a_name() -> None:
    assert parts_of(heads, "Head") == {type(make_head(name)).__name__ for name in HEADS}


def test_separable_classes_are_told_apart(head: Head) -> None:
    teach(head, blobs([4, 1]), blobs([2]), blobs([0, 3]))
    test = blobs(list(range(5)), seed=9)
    assert head.classes == [1, 4, 2, 0, 3]
    assert predict(head, test.features) == test.labels.tolist()


def test_one_class_alone_is_always_the_answer(head: Head) -> None:
    teach(head, blobs([3]))
    assert predict(head, blobs([7]).features) == [3] * 20


def test_the_same_seed_gives_the_same_logits(head: Head) -> None:
    x = blobs([0, 1, 2], seed=9).features
    twins = [teach(copy.deepcopy(head), blobs([0, 1]), blobs([2])) for _ in range(2)]
    assert np.array_equal(twins[0].logits(x), twins[1].logits(x))


def test_logits_are_finite_and_one_row_does_not_depend_on_the_others(head: Head) -> None:
    teach(head, blobs([0, 1]), blobs([2]))
    x = blobs([0, 1, 2], seed=9).features
    logits = head.logits(x)
    assert logits.shape == (60, 3)
    assert np.isfinite(logits).all()
    np.testing.assert_allclose(logits[7:8], head.logits(x[7:8]), rtol=1e-9, atol=1e-9)


def test_classes_of_one_sample_and_constant_dimensions(head: Head) -> None:
    x = np.zeros((2, 8), np.float32)
    x[:, :3] = [[1.0, 0.0, 5.0], [0.0, 1.0, 5.0]]
    teach(head, Task(x, np.array([0, 1]), names={0: "zero", 1: "one"}))
    assert predict(head, x) == [0, 1]


def test_stored_numbers_are_exactly_the_arrays(head: Head) -> None:
    teach(head, blobs([0, 1]), blobs([2]))
    parts, arrays = head.components(), head.arrays()
    assert sum(part.stored for part in parts) == sum(t.size for t in arrays.values())
    assert sum(part.bytes for part in parts) == sum(t.nbytes for t in arrays.values())


def test_every_setting_of_a_head_can_be_read_back_and_written_as_json(head: Head) -> None:
    json.dumps(settings_of(head))


def test_a_head_that_may_skip_tasks_comes_out_the_same(head: Head) -> None:
    if head.needs_every_task:
        pytest.skip("it keeps something of each task, and says so")
    tasks, memory = [blobs([4, 1]), blobs([2]), blobs([0, 3])], memory_for(head)
    patient = copy.deepcopy(head)
    for task in tasks:
        memory.learn(task, np.random.default_rng(0))
        head.register(task)
        head.learn(task, Replay(memory, np.random.default_rng(1)))
    dim = tasks[0].features.shape[1]
    patient.learn(Task.empty(dim), Replay(memory, np.random.default_rng(1)))
    x = blobs(list(range(5)), seed=9).features
    assert patient.classes == head.classes
    assert np.array_equal(patient.logits(x), head.logits(x))
