from __future__ import annotations

import numpy as np
import pytest
from tests.conftest import blobs

from frugalvae.errors import InputError
from frugalvae.parts import make_memory
from frugalvae.parts.protocols import Task, component
from frugalvae_lab.cli import main
from frugalvae_lab.memories.fetril import FeTrILMemory


@pytest.fixture
def tasks() -> list[Task]:
    return [blobs([0, 1, 2]), blobs([3, 4], per_class=7), blobs([5, 6, 7], per_class=5)]


@pytest.fixture
def memory(tasks: list[Task], rng: np.random.Generator) -> FeTrILMemory:
    memory = FeTrILMemory()
    for task in tasks:
        memory.learn(task, rng)
    return memory


def translated(tasks: list[Task], label: int) -> np.ndarray:
    """All pseudo-features of an old class, written as the paper tells it, one number at a time."""
    means = {}
    for task in tasks:
        x, y = task.features, task.labels
        for each in set(y.tolist()):
            means[each] = sum(x[i].astype(float) for i in range(len(x)) if y[i] == each)
            means[each] /= sum(y == each)
    x, y = tasks[-1].features, tasks[-1].labels
    nearest, best = None, -2.0
    for new in sorted(set(y.tolist())):
        cosine = means[label] @ means[new]
        cosine /= np.sqrt(means[label] @ means[label]) * np.sqrt(means[new] @ means[new])
        if cosine > best:
            nearest, best = new, cosine
    return np.array(
        [x[i] - means[nearest] + means[label] for i in range(len(x)) if y[i] == nearest]
    )


def rows(array: np.ndarray) -> np.ndarray:
    """Distinct rows in ascending order."""
    return np.unique(array.round(4), axis=0)


@pytest.mark.parametrize("label", range(5))
def test_old_classes_replay_features_of_the_nearest_new_class_moved(
    memory: FeTrILMemory, tasks: list[Task], label: int, rng: np.random.Generator
) -> None:
    drawn = rows(memory.sample(label, 300, rng))
    np.testing.assert_allclose(drawn, rows(translated(tasks, label)), atol=2e-4)


@pytest.mark.parametrize("label", [5, 6, 7])
def test_classes_of_the_last_task_replay_their_own_features(
    memory: FeTrILMemory, tasks: list[Task], label: int, rng: np.random.Generator
) -> None:
    drawn = memory.sample(label, 300, rng)
    own = tasks[-1].of(label)
    assert np.array_equal(np.unique(drawn, axis=0), np.unique(own, axis=0))


def test_nearness_is_that_of_directions_not_of_places(rng: np.random.Generator) -> None:
    """Class 1 points where class 0 does, from far away; class 2 is close but elsewhere."""
    memory = FeTrILMemory()
    memory.learn(Task(np.array([[1.0, 0.0]]), np.array([0])), rng)
    far, close = [[90.0, 0.0], [110.0, 0.0]], [[0.0, 1.0], [0.0, 3.0]]
    memory.learn(Task(np.array(far + close), np.array([1, 1, 2, 2])), rng)
    assert sorted(set(memory.sample(0, 50, rng)[:, 0].tolist())) == [-9.0, 11.0]


def test_pseudo_features_have_the_mean_of_the_old_class_and_the_spread_of_a_new_one(
    memory: FeTrILMemory, tasks: list[Task], rng: np.random.Generator
) -> None:
    spreads = [tasks[-1].of(label).std(axis=0) for label in (5, 6, 7)]
    for label, task in ((0, tasks[0]), (3, tasks[1])):
        drawn = np.unique(memory.sample(label, 300, rng), axis=0)
        mean = task.of(label).mean(axis=0)
        np.testing.assert_allclose(drawn.mean(axis=0), mean, rtol=1.3e-6, atol=1e-5)
        assert any(np.allclose(drawn.std(axis=0), spread, atol=1e-5) for spread in spreads)


def test_features_of_earlier_tasks_are_let_go(memory: FeTrILMemory) -> None:
    assert list(memory.features_) == [5, 6, 7]
    assert memory.arrays().keys() == {"means", "features.5", "features.6", "features.7"}


def test_order_of_labels_decides_nothing(tasks: list[Task], rng: np.random.Generator) -> None:
    """Classes may come in any order, labels being names of classes and nothing more."""
    memory, renamed = FeTrILMemory(), FeTrILMemory()
    for task in tasks:
        memory.learn(task, rng)
        renamed.learn(Task(task.features, 7 - task.labels), rng)
    for label in range(5):
        one = memory.sample(label, 300, rng)
        other = renamed.sample(7 - label, 300, rng)
        np.testing.assert_allclose(rows(one), rows(other), atol=2e-4)


# --------------------------------------------------------------------------- cost


def test_means_are_counted_and_the_last_task_is_only_stored(memory: FeTrILMemory) -> None:
    means, features = memory.components()
    assert means == component("class means", 8 * 8)
    assert features == component("features of the last task", 0, 15 * 8)


def test_tasks_count_as_equal_before_they_come() -> None:
    means, features = FeTrILMemory().cost(512, classes=100, tasks=10, samples=50_000)
    assert means == component("class means", 51_200)
    assert features == component("features of the last task", 0, 5_000 * 512)


def test_the_command_line_tells_the_cost(capsys: pytest.CaptureFixture[str]) -> None:
    command = "memory --memory fetril --classes 100 --dim 512 --samples 50000"
    assert main(command.split()) == 0
    means, features = capsys.readouterr().out.splitlines()[2:4]
    assert means.split() == ["class", "means", "51,200", "51,200", "204,800"]
    assert features.split()[-3:] == ["0", "2,560,000", "10,240,000"]


def test_it_has_no_settings() -> None:
    assert isinstance(make_memory("fetril"), FeTrILMemory)
    with pytest.raises(InputError, match="memory 'fetril' has no setting 'parts'"):
        make_memory("fetril", parts=2)
