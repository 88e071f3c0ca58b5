"""What changes a classifier beside new classes: forgetting, updating, renaming; and the record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from frugalvae.checks import check_kind, check_learned, listing
from frugalvae.errors import InputError, KnownClassError, UnknownClassError, suggestion
from frugalvae.tasks import Replay, Task
from frugalvae.training import DRAWS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from frugalvae.heads.base import Head
    from frugalvae.learner import FrugalClassifier
    from frugalvae.memories.base import Memory

#: Attributes with one entry for each class, in the order of ``classes_``.
BY_CLASS = ("classes_", "numbers_", "task_of_class_", "n_samples_of_class_")


@contextmanager
def undone_on_error(classifier: FrugalClassifier) -> Iterator[None]:
    """Whatever goes wrong, Ctrl-C included: as if nothing had been asked."""
    before = vars(classifier).copy()
    try:
        yield
    except BaseException:
        classifier.__dict__ = before
        raise


def record(
    classifier: FrugalClassifier, action: str, counts: Mapping[Any, int], **more: Any
) -> None:
    """Add an event to the history: what was done when, to how many samples of which classes."""
    event = {
        "action": action,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "classes": {str(label): int(count) for label, count in counts.items()},
        **more,
    }
    classifier.history_ = [*getattr(classifier, "history_", []), event]


def count_in(
    classifier: FrugalClassifier,
    new: NDArray[Any],
    counts: NDArray[np.int64],
    task: int,
    taught: int,
) -> None:
    """Note a task's classes, of so many samples each, after ``taught`` classes before them."""
    numbers = np.arange(taught, taught + len(new))
    of_class = new, numbers, np.full(len(new), task), counts
    for name, added in zip(BY_CLASS, of_class, strict=True):
        before = getattr(classifier, name, added[:0])
        setattr(classifier, name, np.concatenate([before, added]))
    classifier.n_tasks_, classifier.n_taught_ = task + 1, taught + len(new)
    record(classifier, "learn", dict(zip(new.tolist(), counts.tolist(), strict=True)), task=task)


def position_of(label: Any, classes: NDArray[Any], advice: str = "") -> int:
    """Where a label stands among the known ones.

    >>> position_of("emu", np.array(["cat", "emu"]))
    1
    """
    same = classes == label if np.ndim(label) == 0 else np.zeros(0, bool)
    position = np.flatnonzero(same)
    if not len(position):
        near = suggestion(label, classes.tolist())
        raise UnknownClassError(
            f"class {label!r} was never taught.{near} {listing(classes)}{advice}"
        )
    return int(position[0])


def forget(classifier: FrugalClassifier, label: Any, scrub: bool) -> list[str]:
    """Take a class out of memory and head; what remains of it."""
    position = position_of(label, classifier.classes_)
    if len(classifier.classes_) == 1:
        raise InputError(
            f"class {classifier.classes_.tolist()[0]!r} is the only one that is known, "
            "and a classifier needs one; teach another first, or call fit() to start over"
        )
    label, count = (getattr(classifier, name)[position] for name in ("classes_", BY_CLASS[-1]))
    number = int(classifier.numbers_[position])
    memory, head = classifier._parts(first=False)
    in_memory, in_head = memory.forget(number), head.forget(number)
    for name in BY_CLASS:
        setattr(classifier, name, np.delete(getattr(classifier, name), position))
    if scrub:
        memory, head = _scrubbed(classifier, memory, head, in_memory, in_head)
        in_memory, in_head = [], []
    check_learned(memory, *([] if classifier.head_due_ else [head]))
    classifier.memory_, classifier.head_ = memory, head
    remains = in_memory + in_head
    record(classifier, "forget", {label: count}, scrub=scrub, remains=remains)
    return remains


def _scrubbed(
    classifier: FrugalClassifier,
    memory: Memory,
    head: Head,
    in_memory: list[str],
    in_head: list[str],
) -> tuple[Memory, Head]:
    """Fresh parts, in place of those in which traces remain, taught by replay of the others."""
    if not in_memory and not in_head:
        return memory, head
    if not memory.tensors():
        raise InputError(
            "scrub=True relearns from replay, and memory 'none' keeps nothing to replay; "
            "forget without scrub, or call fit() on samples of the other classes"
        )
    fresh_memory, fresh_head = classifier._parts(first=True)
    rng = classifier._generator("scrub", len(classifier.history_))
    task = _replayed(memory, head, rng)
    if in_memory:
        fresh_memory.learn(task, rng)
        memory = fresh_memory
    if in_head or getattr(head, "needs_density", False):
        fresh_head.meet(task)
        if not classifier.head_due_:
            fresh_head.learn(task, classifier._replay(memory, classifier.n_tasks_ - 1))
        head = fresh_head
    return memory, head


def _replayed(memory: Memory, head: Head, rng: torch.Generator) -> Task:
    """All that a memory holds as one task, with what the head was told about its classes."""
    features, positions = Replay(memory, rng).draw(DRAWS)
    numbers = torch.tensor(memory.classes, device=features.device)[positions]
    told = [getattr(head, name, {}) for name in ("text_", "names_")]
    return Task(features, numbers, *told)


def update(classifier: FrugalClassifier, label: Any, features: NDArray[np.float32]) -> None:
    """Give memory and head more samples of a class."""
    position = position_of(label, classifier.classes_)
    device = classifier._device()
    x = torch.as_tensor(features, device=device)
    task = Task(x, torch.full((len(x),), int(classifier.numbers_[position]), device=device))
    before = int(classifier.n_samples_of_class_[position]) or len(x)  # an old file does not say
    memory, head = classifier._parts(first=False)
    memory.update(task, before, classifier._generator("update", len(classifier.history_)))
    if not classifier.head_due_:
        head.update(task, before, classifier._replay(memory, classifier.n_tasks_ - 1))
    check_learned(memory, *([] if classifier.head_due_ else [head]))
    classifier.memory_, classifier.head_ = memory, head
    counts = classifier.n_samples_of_class_.copy()
    counts[position] = before + len(x)
    classifier.n_samples_of_class_ = counts
    classifier._measure_familiarity(task)
    record(classifier, "update", {classifier.classes_[position]: len(x)})


def rename(classifier: FrugalClassifier, old: Any, new: Any) -> None:
    """Give a class another label, and the name in its prompt if that was the label."""
    known = classifier.classes_
    position = position_of(old, known)
    if np.ndim(new):
        raise InputError(f"the new label is {new!r}; expected one label, such as 'emu' or 7")
    if isinstance(new, str) and not new.strip():
        raise InputError(f"the new label is {new!r}; expected a name that can be read")
    label = np.array([new])
    check_kind(label, known)
    if label[0] in known:
        raise KnownClassError(f"class {new!r} is already known; choose another label")
    old, new = known[position], label[0]
    classifier.classes_ = np.concatenate([known[:position], label, known[position + 1 :]])
    memory, head = classifier._parts(first=False)
    names, number = getattr(head, "names_", {}), int(classifier.numbers_[position])
    if names.get(number) == old:
        names[number] = str(new)
    classifier.memory_, classifier.head_ = memory, head
    count = classifier.n_samples_of_class_[position]
    told = {"from": _plain(old), "to": _plain(new)}
    record(classifier, "rename", {new: count}, **told)


def _plain(label: Any) -> Any:
    """A label as JSON knows it."""
    return label.item() if isinstance(label, np.generic) else label
