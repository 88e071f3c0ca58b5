"""What a model from a file must show: that it knows what it claims to know.

:func:`check_model` is part of every load, and draws nothing. :func:`check_answers` is the
self-test: it draws samples and classifies them, when a file is written and when somebody asks for
it by ``frugalvae status --verify``.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from frugalvae.errors import MemoryFileError
from frugalvae.model.model import Model
from frugalvae.parts import HEADS, MEMORIES
from frugalvae.parts.checks import check_kept
from frugalvae.parts.protocols import is_tempered
from frugalvae.storage.objects import Reader
from frugalvae.storage.parts import class_named, is_ours
from frugalvae.storage.tables import check_held, table_of

if TYPE_CHECKING:
    from frugalvae.parts.protocols import Head, Memory
    from frugalvae.parts.registry import Registry

DRAWN = 8  # classes that the self-test draws from, of memories that know their means without it


def check_roles(document: dict[str, Any], trust: Collection[str]) -> None:
    """Refuse, before any of it is made, a class from outside that is no memory or no head."""
    for role, registry in (("memory", MEMORIES), ("head", HEADS)):
        for written in (document[role], document["parameters"][role]):
            name = written.get("class") if isinstance(written, dict) else written
            if isinstance(name, str) and ":" in name:
                registry.check(class_named(name, trust), name)


def check_model(model: Model, reader: Reader) -> None:
    """Refuse a model that does not know what it claims to know."""
    if reader.unused:
        raise MemoryFileError(f"nothing uses its tensors {', '.join(sorted(reader.unused)[:3])}")
    _check_part("memory", model.recipe.memory, model.memory, MEMORIES)
    _check_part("head", model.recipe.head, model.head, HEADS)
    if not len(model.classes):
        return
    memory, head = parts_of(model)
    for part in (memory, head):  # before any of it is made
        if hasattr(part, "derived_bytes"):
            reader.spend(part.derived_bytes(model.n_features))
    held: list[Memory | Head] = [memory] if model.head_stale else [memory, head]
    for part in held:
        check_held(part, model.n_features)
    if getattr(head, "memory_", None) not in (None, memory):
        raise MemoryFileError("its head reads another memory than its own")
    numbers, by_name = model.numbers.tolist(), set(getattr(head, "by_name", ()))
    _check_taught(memory, [number for number in numbers if number not in by_name])
    _check_counts(model, by_name)
    if model.head_stale and head.needs_every_task:
        raise MemoryFileError("its head is said to be due, and is one that never is")
    if not model.head_stale:
        _check_taught(head, numbers)
        zero = np.zeros((1, model.n_features))
        _check_finite(model.logits(zero), (1, len(model.classes)))


def parts_of(model: Model) -> tuple[Memory, Head]:
    """Memory and head of a model that was taught."""
    assert model.memory is not None
    assert model.head is not None
    return model.memory, model.head


def _check_part(role: str, template: Any, taught: Any, registry: Registry) -> None:
    named = template is None
    if isinstance(template, str):
        named = ":" in template or template in registry
    fresh = _is_of(template, registry) and getattr(template, "classes", None) == []
    if not (named or fresh) or not (taught is None or _is_of(taught, registry)):
        raise MemoryFileError(f"its {role} is none that this version knows")


def _is_of(part: Any, registry: Registry) -> bool:
    """Whether it is a memory, or a head: one of ours, or from a module that is trusted."""
    ours = registry.modules.get(type(part).__name__) == type(part).__module__
    return ours or (hasattr(part, "classes") and not is_ours(type(part)))


def _check_taught(part: Memory | Head, numbers: list[int]) -> None:
    """Sizes first: then nothing that is made from the settings can be out of proportion."""
    kept = part.arrays()
    stored = sum(array.nbytes for array in kept.values())
    if stored != sum(component.bytes for component in part.components()):
        raise MemoryFileError(f"its {type(part).__name__} is not of the size that it should be")
    if sorted(part.classes) != numbers:
        raise MemoryFileError(f"its {type(part).__name__} does not know its {len(numbers)} classes")
    if table_of(part) is None:  # else what it holds was checked
        check_kept(part, kept)


def _check_counts(model: Model, by_name: set[int]) -> None:
    """A class has no samples if it is known by name alone; memories that count must agree."""
    memory = parts_of(model)[0]
    counted = memory.counts_ if is_tempered(memory) else None
    for number, count in model.count_of.items():
        expected = 0 if number in by_name else counted and counted.get(number)
        if expected not in (None, count):
            raise MemoryFileError(
                f"it says that its class {number} has {count} samples; its memory has {expected}"
            )


def check_answers(model: Model) -> None:
    """Draw from each class, and classify what was drawn; where that is slow, of some classes."""
    if not len(model.classes):
        return
    memory, head = parts_of(model)
    if not memory.arrays():  # it keeps nothing, and says so when it is asked
        return
    rng, drawn = np.random.default_rng(0), []
    for number in _drawn_from(memory):
        drawn.append(memory.sample(number, 1, rng))
        _check_finite(drawn[-1], (1, model.n_features))
    if not model.head_stale:
        rows = np.concatenate(drawn)
        _check_finite(head.logits(rows), (len(rows), len(model.classes)))


def _drawn_from(memory: Memory) -> list[int]:
    """The classes that the self-test draws from."""
    numbers = sorted(memory.classes)
    if getattr(memory, "covariance", None) == "full":
        return numbers[:1]  # each takes an eigendecomposition, and keeps it
    if hasattr(memory, "mapped_means"):
        return numbers[:: 1 + len(numbers) // DRAWN]
    return numbers


def _check_finite(rows: Any, shape: tuple[int, int]) -> None:
    if rows.shape != shape or not np.isfinite(rows).all():
        raise MemoryFileError("it gives answers of the wrong shape, or that are not finite")
