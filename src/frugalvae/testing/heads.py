"""Rules that every head keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from frugalvae.classifier import FrugalClassifier
from frugalvae.maths.arrays import Array
from frugalvae.parts.gaussian import GaussianMemory
from frugalvae.parts.protocols import Replay, Task
from frugalvae.parts.store_all import StoreAllMemory
from frugalvae.testing.rules import (
    DIM,
    Rule,
    blobs,
    check,
    check_counts,
    check_file,
    require,
    settings_can_be_recorded,
)

if TYPE_CHECKING:
    from frugalvae.parts.protocols import Head, Memory


def check_head(make: Callable[[], Head]) -> None:
    """Check a head.

    >>> from frugalvae.parts.closed_form import NearestMeanHead
    >>> check_head(NearestMeanHead)
    """
    check(make, HEAD_CHECKS)


def separable_classes_are_told_apart(make: Callable[[], Head]) -> None:
    """Classes of several tasks, none of which overlap."""
    head = _fitted(make(), blobs([4, 1]), blobs([2]), blobs([0, 3]))
    test = blobs([0, 1, 2, 3, 4], seed=9)
    require(sorted(head.classes) == [0, 1, 2, 3, 4], f"classes is {head.classes!r}")
    right = float(np.mean(_answers(head, test.features) == test.labels))
    require(right == 1, f"{right:.0%} of test samples are classified correctly, expected all")


def one_class_is_always_the_answer(make: Callable[[], Head]) -> None:
    """As long as there is no other."""
    answers = _answers(_fitted(make(), blobs([3])), blobs([7]).features)
    require((answers == 3).all(), f"with class 3 alone it answers {set(answers.tolist())}")


def the_same_seed_gives_the_same_logits(make: Callable[[], Head]) -> None:
    """All randomness comes from the replay's generator."""
    x = blobs([0, 1, 2], seed=9).features
    one, other = (_fitted(make(), blobs([0, 1]), blobs([2])).logits(x) for _ in range(2))
    require(np.array_equal(one, other), "two heads taught alike give different logits")


def a_row_does_not_depend_on_the_others(make: Callable[[], Head]) -> None:
    """Logits are finite, (n, k), and the same for a row by itself, to float32's rounding."""
    head, x = _fitted(make(), blobs([0, 1]), blobs([2])), blobs([0, 1, 2], seed=9).features
    logits = head.logits(x)
    require(logits.shape == (60, 3), f"logits have shape {logits.shape}, expected (60, 3)")
    require(np.isfinite(logits).all(), "logits are not finite")
    alone = head.logits(x[7:8])
    apart = np.abs(logits[7:8] - alone).max()
    require(apart <= 1e-5 * max(1, np.abs(logits).max()), "a row by itself scores otherwise")


def classes_of_one_sample_will_do(make: Callable[[], Head]) -> None:
    """And features that never change."""
    x = np.zeros((2, DIM), np.float32)
    x[:, :3] = [[1, 0, 5], [0, 1, 5]]
    head = _fitted(make(), Task(x, np.array([0, 1]), names={0: "zero", 1: "one"}))
    answers = _answers(head, x).tolist()
    require(answers == [0, 1], f"two classes of one sample each are taken for {answers}")


def head_counts_what_it_keeps(make: Callable[[], Head]) -> None:
    """``components()`` tells what ``arrays()`` holds."""
    check_counts(_fitted(make(), blobs([0, 1]), blobs([2])))


def may_skip_tasks_if_it_says_so(make: Callable[[], Head]) -> None:
    """Unless ``needs_every_task``, it may be fitted once, after the last one."""
    head, patient = make(), make()
    if head.needs_every_task:
        return
    memory = _memory_for(head)
    for task in (blobs([4, 1]), blobs([2]), blobs([0, 3])):
        memory.learn(task, np.random.default_rng(0))
        head.register(task)
        head.learn(task, Replay(memory, np.random.default_rng(1)))
    patient.learn(Task.empty(DIM), Replay(memory, np.random.default_rng(1)))
    x = blobs([0, 1, 2, 3, 4], seed=9).features
    require(
        patient.classes == head.classes and np.array_equal(patient.logits(x), head.logits(x)),
        "fitted after the last task alone, it is another; set needs_every_task = True",
    )


def head_forgets_a_class(make: Callable[[], Head]) -> None:
    """The others score as before."""
    head, x = _fitted(make(), blobs([0, 1]), blobs([2])), blobs([0, 2], seed=9).features
    kept = [column for column, label in enumerate(head.classes) if label != 1]
    before = head.logits(x)[:, kept]
    if getattr(head, "needs_density", False):
        head.memory_.forget(1)  # type: ignore[attr-defined]
    remains = head.forget(1)
    require(isinstance(remains, list), f"forget() returns {remains!r}; expected sentences")
    require(sorted(head.classes) == [0, 2], f"classes is {head.classes!r} without class 1")
    after = head.logits(x)
    require(
        after.shape == before.shape and np.allclose(after, before, rtol=1e-4, atol=1e-4),
        "without class 1, logits of the others are not what they were",
    )


def head_takes_more_samples_of_a_class(make: Callable[[], Head]) -> None:
    """And still tells all classes apart."""
    head, memory = make(), _memory_for(make())
    _fitted(head, blobs([0, 1]), blobs([2]), memory=memory)
    rng, more = np.random.default_rng(5), blobs([1], per_class=10, seed=9)
    memory.update(more, 20, rng)
    head.update(more, 20, Replay(memory, rng))
    require(sorted(head.classes) == [0, 1, 2], f"classes is {head.classes!r} after update()")
    test = blobs([0, 1, 2], seed=9)
    right = float(np.mean(_answers(head, test.features) == test.labels))
    require(right == 1, f"after update() {right:.0%} of test samples are classified correctly")


def head_survives_a_file(make: Callable[[], Head]) -> None:
    """Saved and loaded, it gives the same probabilities."""
    head = make()
    check_file(FrugalClassifier(_memory_for(head), head))


def _memory_for(head: Head) -> Memory:
    """Everything is stored for replay; where densities are compared, there are some."""
    return GaussianMemory("shared") if getattr(head, "needs_density", False) else StoreAllMemory()


def _fitted(head: Head, *tasks: Task, memory: Memory | None = None) -> Head:
    """A head that has learned these tasks."""
    memory, rng = memory or _memory_for(head), np.random.default_rng(0)
    for task in tasks:
        memory.learn(task, rng)
        head.register(task)
        head.learn(task, Replay(memory, rng))
    return head


def _answers(head: Head, features: Array) -> Array:
    """The most probable class of each row."""
    return np.array(head.classes)[head.logits(features).argmax(axis=1)]


HEAD_CHECKS: tuple[Rule, ...] = (
    settings_can_be_recorded,
    separable_classes_are_told_apart,
    one_class_is_always_the_answer,
    the_same_seed_gives_the_same_logits,
    a_row_does_not_depend_on_the_others,
    classes_of_one_sample_will_do,
    head_counts_what_it_keeps,
    may_skip_tasks_if_it_says_so,
    head_forgets_a_class,
    head_takes_more_samples_of_a_class,
    head_survives_a_file,
)
