"""A model that was made of a file shows that it knows what it claims to know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from frugalvae.checks import check_kept
from frugalvae.errors import MemoryFileError
from frugalvae.heads import HEADS
from frugalvae.memories import MEMORIES
from frugalvae.storage.classes import class_named, is_ours

if TYPE_CHECKING:
    from frugalvae.interfaces import Head, Memory
    from frugalvae.model import Model
    from frugalvae.plugins import Registry
    from frugalvae.storage.reader import Reader

SHOWN = 64  # classes that are drawn from, of memories that know their means without it


def check_model(model: Model, reader: Reader) -> None:
    """Refuse a model that does not know what it claims to know."""
    if reader.unused:
        raise MemoryFileError(f"nothing uses its tensors {', '.join(sorted(reader.unused)[:3])}")
    memory, head = parts_of(model)
    for template in (model.recipe.memory, model.recipe.head):
        if isinstance(template, str) and ":" in template:
            class_named(template, reader.trust)
    _check_part("memory", model.recipe.memory, memory, MEMORIES)
    _check_part("head", model.recipe.head, head, HEADS)
    for part in (memory, head):  # before any of it is made
        if hasattr(part, "derived_bytes"):
            reader.spend(part.derived_bytes(model.n_features))
    numbers = model.numbers.tolist()
    _check_taught(memory, numbers)
    _check_samples(model, memory)
    if model.head_stale and head.needs_every_task:
        raise MemoryFileError("its head is said to be due, and is one that never is")
    if not model.head_stale:
        _check_taught(head, numbers)
        zero = np.zeros((1, model.n_features))
        _check_finite(model.logits(zero), len(model.classes))


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
    if not (named or fresh) or not _is_of(taught, registry):
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
    check_kept(part, kept)


def _check_samples(model: Model, memory: Memory) -> None:
    """Draw from each class; where that is slow, from some."""
    if not memory.arrays():  # it keeps nothing, and says so when it is asked
        return
    numbers, rng = model.numbers.tolist(), np.random.default_rng(0)
    if hasattr(memory, "mapped_means"):
        numbers = numbers[:: 1 + len(numbers) // SHOWN]
    if getattr(memory, "covariance", None) == "full":
        numbers = numbers[:1]  # each takes an eigendecomposition, and keeps it
    for number in numbers:
        _check_finite(memory.sample(number, 1, rng), model.n_features)


def _check_finite(row: Any, width: int) -> None:
    if row.shape != (1, width) or not np.isfinite(row).all():
        raise MemoryFileError("it gives answers of the wrong shape, or that are not finite")
