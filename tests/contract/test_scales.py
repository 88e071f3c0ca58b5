"""The unit that features are measured in does not matter. Memories and heads are discovered."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from frugalvae.errors import InputError
from frugalvae.maths.arrays import Array
from frugalvae.parts import HEADS, MEMORIES, make_memory
from frugalvae.parts.bayes import BayesHead
from frugalvae.parts.protocols import Head, Memory, Replay, Task
from frugalvae.testing.rules import quiet
from tests.conftest import small_head
from tests.contract.test_memories import ABLATIONS, made

#: Powers of two near 1e-30, 1e-20, 1e-6 and 1e12: digits of features stay what they are, so that
#: not even networks are trained otherwise.
SCALES = [2.0**-100, 2.0**-66, 2.0**-20, 2.0**40]
CLASSES, DIM = 6, 8
AGREE = 0.97  # of answers: rounding may turn a few

#: Memories that have other sums with less room, or if features are not negative.
MORE: dict[str, tuple[str, dict[str, Any]]] = {
    "moments, cut": ("moments", {"budget": 200}),
    "moments, not all coordinates": ("moments", {"budget": 90}),
}
if "factors" in MEMORIES:  # the laboratory is installed
    MORE["factors, not all coordinates"] = ("factors", {"budget": 100})
    MORE["mixture of one"] = ("mixture", {"parts": 1})
CASES = [*(name for name in MEMORIES.names if name != "none"), *ABLATIONS, *MORE]


@cache
def samples(seed: int, positive: bool) -> tuple[Array, Array]:
    """Classes that overlap, so that answers depend on the details; the first has one sample."""
    centres = np.random.default_rng(5).normal(size=(CLASSES, DIM))
    rng, labels = np.random.default_rng(seed), np.arange(20 * CLASSES) % CLASSES
    x = centres[labels] + 0.6 * rng.normal(size=(len(labels), DIM))
    x = np.abs(x) if positive else x
    kept = (labels > 0) | (np.arange(len(labels)) < CLASSES) if seed == 1 else labels >= 0
    return x[kept].astype(np.float32), labels[kept]


def tasks(scale: float, positive: bool = False) -> list[Task]:
    """Two tasks, and more samples of a class."""
    x, y = samples(1, positive)
    parts = [np.flatnonzero(y < 3), np.flatnonzero(y >= 3), np.flatnonzero(y == 4)[:5]]
    names = [{label: f"class {label}" for label in np.unique(y[part]).tolist()} for part in parts]
    scaled = x * np.float32(scale)
    return [Task(scaled[part], y[part], names=own) for part, own in zip(parts, names, strict=True)]


def taught(memory: Memory, scale: float, positive: bool) -> Memory:
    first, second, more = tasks(scale, positive)
    with quiet():
        for number, task in enumerate((first, second)):
            memory.learn(task, np.random.default_rng(number))
        memory.update(more, 20, np.random.default_rng(2))
    return memory


def make(case: str) -> Memory:
    if case not in MORE:
        return made(case)
    name, settings = MORE[case]
    return make_memory(name, **settings)


@cache
def usual(case: str, positive: bool) -> tuple[list[Array], Array | None]:
    return shown(case, 1.0, positive)


def shown(case: str, scale: float, positive: bool) -> tuple[list[Array], Array | None]:
    """Samples of each class, in the unit of the scale, and the most probable classes."""
    memory = taught(make(case), scale, positive)
    drawn = [memory.sample(label, 400, np.random.default_rng(7)) for label in range(CLASSES)]
    assert all(own.dtype == np.float32 for own in drawn)
    answers = None
    if hasattr(memory, "log_density"):
        head = BayesHead()
        head.learn(Task.empty(DIM), Replay(memory, np.random.default_rng(0)))
        answers = answers_of(head, scale, positive)
    return [own.astype(np.float64) / scale for own in drawn], answers


def answers_of(head: Head, scale: float, positive: bool = False) -> Array:
    x = samples(2, positive)[0] * np.float32(scale)
    return np.array(head.classes)[head.logits(x).argmax(axis=1)]


@pytest.mark.parametrize(
    ("scale", "positive"), [*((scale, False) for scale in SCALES), (SCALES[1], True)]
)
@pytest.mark.parametrize("case", CASES)
def test_memories_know_the_same_in_every_unit(case: str, positive: bool, scale: float) -> None:
    """Means and deviations of samples; and answers, where there are densities."""
    (drawn, answers), (expected, usually) = shown(case, scale, positive), usual(case, positive)
    size = float(np.abs(np.concatenate(expected)).max())
    for label, (own, one) in enumerate(zip(drawn, expected, strict=True)):
        for measure in (np.mean, np.std):
            apart = float(np.abs(measure(own, axis=0) - measure(one, axis=0)).max())
            assert apart < 0.1 * size, f"{measure.__name__} of class {label} is off by {apart}"
        trace, usual_trace = float(own.var(axis=0).sum()), float(one.var(axis=0).sum())
        assert trace == pytest.approx(usual_trace, rel=0.15, abs=1e-6), label
    if usually is not None:
        assert (answers == usually).mean() >= AGREE


@cache
def usual_answers(name: str) -> Array:
    return answered(name, 1.0)


def answered(name: str, scale: float) -> Array:
    """What a head answers that was taught features of a scale."""
    head, rng = small_head(name), np.random.default_rng(0)
    memory = make_memory(
        "gaussian-shared" if getattr(head, "needs_density", False) else "store-all"
    )
    for task in tasks(scale)[:2]:
        memory.learn(task, rng)
        head.register(task)
        head.learn(task, Replay(memory, rng))
    return answers_of(head, scale)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", HEADS.names)
def test_heads_answer_the_same_in_every_unit(name: str, scale: float) -> None:
    """Or say which unit they need: penalties of some are absolute, as their authors have them."""
    if "RunningRidge" in {kind.__name__ for kind in type(small_head(name)).__mro__}:
        with pytest.raises(
            InputError, match=r"expects 0.0001 to 10000: multiply all features by 1e"
        ):
            answered(name, scale)
        return
    right = (usual_answers(name) == samples(2, False)[1]).mean()
    assert right > 0.6 or name == "prompt"  # which learns from small text features
    assert (answered(name, scale) == usual_answers(name)).mean() >= AGREE
