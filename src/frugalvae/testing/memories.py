"""Rules that every memory keeps."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from frugalvae.classifier import FrugalClassifier
from frugalvae.maths.arrays import squared_distances
from frugalvae.maths.gaussians import Shrinkage
from frugalvae.parts.defaults import MemoryDefaults
from frugalvae.parts.protocols import Task
from frugalvae.testing.rules import (
    DIM,
    Rule,
    blobs,
    check,
    check_counts,
    check_file,
    quiet,
    require,
    settings_can_be_recorded,
)

if TYPE_CHECKING:
    from frugalvae.parts.protocols import Memory


def check_memory(make: Callable[[], Memory], *, samples: bool = True) -> None:
    """Check a memory, in some seconds if it learns quickly.

    Parameters
    ----------
    make
        The class, or what makes a fresh memory.
    samples
        False for a memory that keeps nothing to sample from.

    Examples
    --------
    >>> from frugalvae.parts.gaussian import GaussianMemory
    >>> check_memory(GaussianMemory)
    """
    check(make, MEMORY_CHECKS if samples else SAMPLELESS_CHECKS)


def starts_empty(make: Callable[[], Memory]) -> None:
    """It knows no class, and costs nothing."""
    memory = make()
    require(memory.classes == [], f"classes is {memory.classes!r} before anything is learned")
    cost = sum(part.paper + part.stored for part in memory.components())
    require(cost == 0, f"components() counts {cost} parameters before anything is learned")


def tells_classes_in_order(make: Callable[[], Memory]) -> None:
    """Classes come in the order of learning, ascending within a task."""
    memory = _taught(make(), [5, 3], [4])
    require(memory.classes == [3, 5, 4], f"classes is {memory.classes!r}, expected [3, 5, 4]")


def samples_are_features(make: Callable[[], Memory]) -> None:
    """Of the right shape, float32 and finite."""
    memory, rng = _taught(make(), [0, 1], [2]), np.random.default_rng(1)
    for label in memory.classes:
        sample = memory.sample(label, 7, rng)
        require(
            sample.shape == (7, DIM) and sample.dtype == np.float32 and np.isfinite(sample).all(),
            f"sample({label}, 7) has shape {sample.shape} and type {sample.dtype}; expected "
            f"(7, {DIM}), float32, and finite values",
        )


def samples_stand_where_their_class_stands(make: Callable[[], Memory]) -> None:
    """Their mean is nearest to that of their own class."""
    memory, rng = _taught(make(), [0, 1], [2], [3, 4]), np.random.default_rng(1)
    real = np.stack([blobs([label]).features.mean(axis=0) for label in range(5)])
    drawn = np.stack([memory.sample(label, 200, rng).mean(axis=0) for label in range(5)])
    nearest = squared_distances(drawn, real).argmin(axis=1).tolist()
    require(nearest == [0, 1, 2, 3, 4], f"samples of classes 0 to 4 are nearest to {nearest}")


def the_same_generator_gives_the_same(make: Callable[[], Memory]) -> None:
    """All randomness comes from the generator that is passed in."""
    one, other = (
        _taught(make(), [0, 1], [2]).sample(1, 5, np.random.default_rng(7)) for _ in range(2)
    )
    require(np.array_equal(one, other), "two memories taught alike give different samples")


def global_randomness_is_left_alone(make: Callable[[], Memory]) -> None:
    """It neither draws from NumPy's global state nor seeds it."""
    before = repr(np.random.get_state(legacy=False))
    memory = _taught(make(), [0, 1])
    if memory.arrays():
        memory.sample(0, 3, np.random.default_rng(0))
    after = repr(np.random.get_state(legacy=False))
    require(after == before, "it changes np.random's global state")


def densities_tell_classes_apart(make: Callable[[], Memory]) -> None:
    """If it has densities: a column per class in the order of ``classes``, of a stated width."""
    memory = _taught(make(), [4, 1], [2], [0, 3])
    if not hasattr(memory, "log_density"):
        return
    test = blobs([0, 1, 2, 3, 4], seed=9)
    with quiet():
        density = memory.log_density(test.features, Shrinkage())
    expected = (len(test.features), 5)
    require(density.shape == expected, f"log_density has shape {density.shape} for {expected}")
    require(np.isfinite(density).all(), "log_density is not finite")
    width = getattr(memory, "density_width", None)
    require(isinstance(width, int) and 1 <= width <= DIM, f"density_width is {width!r} of {DIM}")
    right = float(np.mean(np.array(memory.classes)[density.argmax(axis=1)] == test.labels))
    require(right > 0.5, f"log_density is largest for the class of {right:.0%} of test samples")


def few_samples_will_do(make: Callable[[], Memory]) -> None:
    """A class of one sample, a task of one class, and features that never change."""
    memory, rng = make(), np.random.default_rng(0)
    with quiet():
        memory.learn(Task(np.array([[1, 2, 3, 4]], np.float32), np.array([0])), rng)
        varied = np.array([[1, 5, 0, 0], [1, 6, 0, 0]], np.float32)
        memory.learn(Task(varied, np.array([1, 1])), rng)
        drawn = rng.standard_normal((6, 4), np.float32)
        memory.learn(Task(drawn, np.array([2, 2, 3, 3, 3, 2])), rng)
    for label in range(4):
        sample = memory.sample(label, 3, rng)
        require(np.isfinite(sample).all(), f"samples of class {label} are not finite")


def counts_what_it_keeps(make: Callable[[], Memory]) -> None:
    """``components()`` tells what ``arrays()`` holds, after each task."""
    memory = make()
    for classes in ([0, 1], [2], [3, 4]):
        check_counts(_taught(memory, classes))


def says_its_cost_before_training(make: Callable[[], Memory]) -> None:
    """``cost()`` is at least what it keeps afterwards, if the memory has one."""
    memory = make()
    if getattr(type(memory), "cost", None) in (None, MemoryDefaults.cost):
        return
    told = sum(part.stored for part in memory.cost(DIM, 4, 2, 80))
    kept = sum(part.stored for part in _taught(memory, [0, 1], [2, 3]).components())
    require(kept <= told, f"cost() counts {told} parameters, and it keeps {kept}")


def a_copy_learns_by_itself(make: Callable[[], Memory]) -> None:
    """A deep copy shares nothing that it changes."""
    memory = _taught(make(), [0, 1])
    before = {name: array.copy() for name, array in memory.arrays().items()}
    _taught(copy.deepcopy(memory), [2])
    after = memory.arrays()
    same = before.keys() == after.keys() and all(
        np.array_equal(before[name], after[name]) for name in before
    )
    require(same and memory.classes == [0, 1], "a deep copy that learns changes the original")


def forgets_a_class(make: Callable[[], Memory]) -> None:
    """The class is gone, the others stay, and it can be learned again."""
    memory, rng = _taught(make(), [0, 1], [2]), np.random.default_rng(1)
    remains = memory.forget(1)
    require(
        isinstance(remains, list) and all(isinstance(line, str) for line in remains),
        f"forget() returns {remains!r}; expected a list of sentences",
    )
    require(memory.classes == [0, 2], f"classes is {memory.classes!r} without class 1 of 0, 1, 2")
    check_counts(memory)
    if memory.arrays():
        require(memory.sample(2, 3, rng).shape == (3, DIM), "another class cannot be sampled")
    _taught(memory, [1])
    require(sorted(memory.classes) == [0, 1, 2], "a forgotten class cannot be learned again")


def takes_more_samples_of_a_class(make: Callable[[], Memory]) -> None:
    """The class and the others stay known."""
    memory, rng = _taught(make(), [0, 1], [2]), np.random.default_rng(1)
    with quiet():
        memory.update(blobs([1], per_class=10, seed=9), 20, rng)
    require(sorted(memory.classes) == [0, 1, 2], f"classes is {memory.classes!r} after update()")
    check_counts(memory)


def can_be_pickled(make: Callable[[], Memory]) -> None:
    """It can go to another process."""
    memory = _taught(make(), [0, 1])
    twin = pickle.loads(pickle.dumps(memory))
    require(twin.classes == memory.classes, "a pickled copy knows other classes")


def survives_a_file(make: Callable[[], Memory]) -> None:
    """Saved and loaded, it gives the same samples."""
    check_file(FrugalClassifier(make(), "nearest-mean"))


def _taught(memory: Memory, *tasks: list[int]) -> Memory:
    """A memory that has learned these classes, task by task."""
    with quiet():
        for classes in tasks:
            memory.learn(blobs(classes), np.random.default_rng(len(memory.classes)))
    return memory


#: Rules of memories that keep nothing to sample from.
SAMPLELESS_CHECKS: tuple[Rule, ...] = (
    settings_can_be_recorded,
    starts_empty,
    tells_classes_in_order,
    global_randomness_is_left_alone,
    densities_tell_classes_apart,
    counts_what_it_keeps,
    says_its_cost_before_training,
    a_copy_learns_by_itself,
    forgets_a_class,
    takes_more_samples_of_a_class,
    can_be_pickled,
    survives_a_file,
)
MEMORY_CHECKS: tuple[Rule, ...] = (
    *SAMPLELESS_CHECKS,
    samples_are_features,
    samples_stand_where_their_class_stands,
    the_same_generator_gives_the_same,
    few_samples_will_do,
)
