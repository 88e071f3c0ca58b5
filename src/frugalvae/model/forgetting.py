"""Forgetting: a model without a class, or without some of its samples."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from frugalvae.digests import BY_DIGEST, renamed, without_digests
from frugalvae.errors import InputError, check_choice
from frugalvae.maths.arrays import Array
from frugalvae.model.model import BY_CLASS, Model, plain
from frugalvae.parts.checks import check_features, check_learned, position_of
from frugalvae.parts.protocols import Task

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from frugalvae.parts.protocols import Head, Memory

DRAWS = 256  # samples of a class that stand for it where others are learned anew


def unlearn(
    model: Model, label: Any, X: ArrayLike, *, digests: NDArray[np.bytes_] | None = None
) -> Model:
    """A model without samples of a class; see :meth:`frugalvae.FrugalClassifier.unlearn`."""
    position = position_of(label, model.classes)
    x = check_features(X, model.n_features)
    memory, head = model.parts()
    task, before = Task(x, np.full(len(x), model.numbers[position])), _count_of(model, position)
    remains: list[str] = []
    for part in (memory, head):
        _require_verb(part, "unlearn", "take samples out again")
        remains += part.unlearn(task, before) or []  # type: ignore[union-attr]
    check_learned(memory, head)
    counts = model.n_samples_of_class.copy()
    counts[position] = before - len(x)
    left = replace(model, memory=memory, head=head, n_samples_of_class=counts)
    if digests is not None:
        gone = {int(model.numbers[position]): digests}
        left = replace(left, digests=without_digests(model.digests, gone))
        left = left.withholding({plain(model.classes[position]): digests})
    return left.recorded("unlearn", {model.classes[position]: len(x)}, remains=remains)


def forget(
    model: Model, label: Any, X: ArrayLike | None = None, *, scrub: bool = False
) -> tuple[Model, list[str]]:
    """A model without a class, and what remains; see :meth:`frugalvae.FrugalClassifier.forget`."""
    check_choice("scrub", scrub, (True, False))
    position = position_of(label, model.classes)
    forgotten = {model.classes[position]: model.n_samples_of_class[position]}
    aliases = renamed(model.aliases, plain(model.classes[position]), None)
    if len(model.classes) == 1:  # nothing is left of what was taught
        empty = Model(model.recipe, history=model.history, aliases=aliases)
        return empty.recorded("forget", forgotten, scrub=scrub, remains=[]), []
    number, (memory, head) = int(model.numbers[position]), model.parts()
    if X is None:
        known = number in memory.classes  # or by name alone
        in_memory, in_head = memory.forget(number) if known else [], head.forget(number)
    else:
        in_memory, in_head = _forget_with(model, memory, head, position, X)
    if scrub:
        with model.computing():
            memory, head = _scrubbed(model, memory, head, in_memory, in_head)
        in_memory, in_head = [], []
    check_learned(memory, *([] if model.head_stale else [head]))
    left: dict[str, Any] = {name: np.delete(getattr(model, name), position) for name in BY_CLASS}
    for name in BY_DIGEST:
        left[name] = {y: found for y, found in getattr(model, name).items() if y != number}
    remains = in_memory + in_head
    model = replace(model, memory=memory, head=head, aliases=aliases, **left)
    return model.recorded("forget", forgotten, scrub=scrub, remains=remains), remains


def _count_of(model: Model, position: int) -> int:
    """How many samples a class has; one that is known by name alone has none to take out."""
    count, label = int(model.n_samples_of_class[position]), plain(model.classes[position])
    if label in model.by_name:
        raise InputError(f"class {label!r} is known by name alone: it has no samples to remove")
    return count


def _forget_with(
    model: Model, memory: Memory, head: Head, position: int, X: ArrayLike
) -> tuple[list[str], list[str]]:
    """Forget a class by all of its samples: what they added is taken out exactly."""
    x, number = check_features(X, model.n_features), model.numbers[position]
    count = _count_of(model, position)
    if len(x) != count:
        raise InputError(
            f"class {plain(model.classes[position])!r} was taught {count} samples, and "
            f"{len(x)} were given to remove; give all of them, or forget the class without "
            "samples"
        )
    task = Task(x, np.full(len(x), number))
    remains = []
    for part in (memory, head):
        _require_verb(part, "forget_with", "take a class out by its samples")
        remains.append(part.forget_with(task))  # type: ignore[union-attr]
    return remains[0], remains[1]


def _scrubbed(
    model: Model, memory: Memory, head: Head, in_memory: list[str], in_head: list[str]
) -> tuple[Memory, Head]:
    """Fresh parts, in place of those in which traces remain, taught by replay of the others."""
    if not in_memory and not in_head:
        return memory, head
    if not memory.arrays():
        raise InputError(
            "scrub=True relearns from replay, and memory 'none' keeps nothing to replay; "
            "forget without scrub, or call fit() on samples of the other classes"
        )
    fresh_memory, fresh_head = model.recipe.parts()
    rng = model.recipe.generator("scrub", len(model.history))
    metadata = [getattr(head, name, {}) for name in ("text_", "names_")]
    task = Task(*_replayed(model, memory, rng), *metadata)
    if in_memory:
        fresh_memory.learn(task, rng)
        memory = fresh_memory
    if in_head or getattr(head, "needs_density", False):
        numbers = np.array(sorted({*task.classes, *head.classes}), np.int64)
        fresh_head.register(replace(task, features=task.features[:0], labels=numbers))
        if not model.head_stale:
            fresh_head.learn(task, model.replay(memory, model.n_tasks - 1))
        head = fresh_head
    return memory, head


def _replayed(model: Model, memory: Memory, rng: np.random.Generator) -> tuple[Array, Array]:
    """Samples of all classes with their numbers: of each as many as it had, at most 256.

    More would count as evidence that was never there, and make answers too sure.
    """
    taught = [model.count_of[label] for label in memory.classes]
    counts = [min(max(count, 2), DRAWS) for count in taught]
    drawn = [memory.sample(y, n, rng) for y, n in zip(memory.classes, counts, strict=True)]
    return np.concatenate(drawn), np.repeat(memory.classes, counts)


def _require_verb(part: Memory | Head, verb: str, what: str) -> None:
    if not hasattr(part, verb):
        raise InputError(
            f"{type(part).__name__} cannot {what}; memory 'moments' with head 'bayes' can, and so "
            "can sums of samples, such as 'lda' and 'nearest-mean'"
        )
