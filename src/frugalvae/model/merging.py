"""Merging: what two models were taught becomes one model, or two classes become one."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from frugalvae.digests import DIGEST, Digests, among, renamed, with_digests, without
from frugalvae.errors import InputError
from frugalvae.formatting import shortened
from frugalvae.labels import by_label, check_label
from frugalvae.model.confidence import Calibration
from frugalvae.parts.checks import check_kind, check_learned, check_named, position_of
from frugalvae.parts.protocols import Replay, Task

if TYPE_CHECKING:
    from frugalvae.model.model import Model
    from frugalvae.parts.protocols import Head, Memory


def merge(
    model: Model, other: Model, rename: Mapping[Any, Any] | None = None, *, twice: bool = False
) -> Model:
    """A model of all that two were taught, apart.

    Parameters
    ----------
    model, other
        Memory and head must be of the same kind, and features of the same encoder.
    rename
        Other labels for classes of ``other``. Classes of one label are one class.
    twice
        Whether samples that both were taught may count twice. They are known by their digests.
    """
    if other.memory is None or other.head is None:
        return model
    labels = _renamed(other, rename or {})
    if model.memory is None or model.head is None:
        counts = dict(zip(labels.tolist(), other.n_samples_of_class.tolist(), strict=True))
        aliases = _aliases(model, other, labels)
        history = (*model.history, *other.history)
        joined = replace(other, classes=labels, aliases=aliases, history=history)
        return joined.recorded("merge", counts)
    _check_mergeable(model, other, labels)
    if not twice:
        _check_apart(model, other, labels)
    memory, head, added = copy.deepcopy((model.memory, model.head, other.memory))
    new = labels[~np.isin(labels, model.classes)]
    added_numbers = {label: model.n_taught + row for row, label in enumerate(new.tolist())}
    numbers = model.number_of | added_numbers
    ours = {
        theirs: numbers[label]
        for theirs, label in zip(other.numbers.tolist(), labels.tolist(), strict=True)
    }
    counts, others = model.count_of, other.count_of
    assert added is not None
    taught = {theirs: ours[theirs] for theirs in added.classes}  # not by name alone
    with model.computing():
        memory.merge(added, taught, counts, others)  # type: ignore[attr-defined]
        if hasattr(head, "merge"):
            head.merge(copy.deepcopy(other.head), ours, counts, others)
        if not head.needs_every_task:
            rng = model.recipe.generator("head", model.n_tasks + other.n_tasks)
            head.learn(Task.empty(model.n_features), Replay(memory, rng))
    check_learned(memory, head)
    check_named(memory, head)
    merged = _listed(model, other, labels, new, numbers)
    return replace(merged, memory=memory, head=head, head_stale=False)


def merge_classes(model: Model, label: Any, joined: Any) -> Model:
    """A model in which two classes are one, under the first label."""
    kept, gone = position_of(label, model.classes), position_of(joined, model.classes)
    if kept == gone:
        raise InputError(f"class {label!r} cannot be joined with itself")
    memory, head = model.parts()
    if not hasattr(memory, "join") or not getattr(head, "needs_density", False):
        raise InputError(
            f"{type(memory).__name__} with {type(head).__name__} cannot join two classes; memory "
            "'moments' with head 'bayes' can"
        )
    with model.computing():
        if int(model.numbers[gone]) in memory.classes:  # or it is known by name alone
            memory.join(int(model.numbers[kept]), int(model.numbers[gone]))
        head.forget(int(model.numbers[gone]))  # its text feature, if it has one
        head.learn(Task.empty(model.n_features), Replay(memory, model.recipe.generator("head", 0)))
    check_learned(memory, head)
    counts = model.n_samples_of_class.copy()
    counts[kept] += counts[gone]
    left: dict[str, Any] = {
        name: np.delete(getattr(model, name), gone)
        for name in ("classes", "numbers", "task_of_class")
    }
    joined_model = replace(
        model, memory=memory, head=head, n_samples_of_class=np.delete(counts, gone), **left
    )
    ours, theirs = int(model.numbers[kept]), int(model.numbers[gone])
    joined_model = replace(
        joined_model,
        digests=_moved(model.digests, theirs, ours),
        withheld=_moved(model.withheld, theirs, ours),
        aliases=renamed(model.aliases, *model.classes[[gone, kept]].tolist()),
    )
    labels = {"from": [str(label), str(joined)]}
    return joined_model.recorded("merge-classes", {model.classes[kept]: counts[kept]}, **labels)


def _moved(digests: Digests, old: int, new: int) -> Digests:
    """Digests by class, with those of one class at another."""
    left = {number: found for number, found in digests.items() if number != old}
    return with_digests(left, {new: digests.get(old, np.empty(0, DIGEST))})


def _renamed(other: Model, rename: Mapping[Any, Any]) -> Any:
    """The other model's labels as they are to be."""
    rename = {label: check_label(name) for label, name in by_label(rename).items()}
    for label, name in rename.items():
        position_of(label, other.classes)
        check_kind(np.array([name]), other.classes)
    labels = np.array([rename.get(label, label) for label in other.classes.tolist()])
    twice = [label for label in set(labels.tolist()) if (labels == label).sum() > 1]
    if twice:
        raise InputError(f"two classes would be called {twice[0]!r}; rename only one of them so")
    return labels


def _check_mergeable(model: Model, other: Model, labels: Any) -> None:
    if model.n_features != other.n_features:
        raise InputError(
            f"one was taught {model.n_features} features, the other {other.n_features}; only what "
            "one encoder made can be merged"
        )
    one, two = model.encoder, other.encoder
    if one and two:
        _check_one_encoder(one, two)
    check_kind(labels, model.classes)
    for mine, theirs in ((model.memory, other.memory), (model.head, other.head)):
        if type(mine) is not type(theirs):
            raise InputError(
                f"one has {type(mine).__name__}, the other {type(theirs).__name__}; memory and "
                "head must be of one kind"
            )
    _check_adds_up(model.memory, model.head)


def _check_apart(model: Model, other: Model, labels: Any) -> None:
    """Refuse what was taught to both, as far as that can be told."""
    if model is other:
        raise InputError("it cannot be merged with itself: all samples would count twice")
    number_of, none, shared = model.number_of, np.empty(0, DIGEST), dict[Any, int]()
    for number, label in zip(other.numbers.tolist(), labels.tolist(), strict=True):
        theirs = other.digests.get(number, none)
        ours = model.digests.get(number_of.get(label, -1), none)
        shared[label] = max(int(among(theirs, ours).sum()), int(among(ours, theirs).sum()))
    shown = [f"{count:,} of {label!r}" for label, count in shared.items() if count]
    if shown:
        raise InputError(
            f"both were taught the same photographs, which would count twice: {shortened(shown)}. "
            "Leave one out, or allow it: --twice, in Python twice=True"
        )


def _check_one_encoder(one: dict[str, Any], two: dict[str, Any]) -> None:
    from frugalvae.encoders import described, differences

    differ = differences(one, two)
    if differ:
        raise InputError(
            f"one was taught with the encoder {described(one)}, the other with {described(two)}: "
            f"{' and '.join(differ)} differ, and features of different encoders cannot be merged"
        )


def _check_adds_up(memory: Memory | None, head: Head | None) -> None:
    needed = [memory] + [head] * bool(head is not None and head.needs_every_task)
    for part in needed:
        if not hasattr(part, "merge"):
            raise InputError(
                f"{type(part).__name__} cannot be merged: it is no sum. Memories 'moments', "
                "'gaussian-…' and 'store-all' can, and heads 'bayes', 'lda', 'nearest-mean', "
                "'ranpac', other sums, and all that are fitted on replay"
            )


def _listed(model: Model, other: Model, labels: Any, new: Any, numbers: dict[Any, int]) -> Model:
    """With the other's classes on the list, and both histories."""
    theirs = {label: row for row, label in enumerate(labels.tolist())}
    rows = [theirs[label] for label in new.tolist()]
    tasks, task_of_new = np.unique(other.task_of_class[rows], return_inverse=True)
    counts = model.n_samples_of_class.copy()
    for position, label in enumerate(model.classes.tolist()):
        if label in theirs:
            counts[position] += other.n_samples_of_class[theirs[label]]
    weights = np.array([model.n_samples_of_class.sum(), other.n_samples_of_class.sum()], float)
    logs = np.log([model.calibration.temperature, other.calibration.temperature])
    temperature = float(f"{np.exp(weights @ logs / max(weights.sum(), 1)):.5g}")
    rows_of = zip(other.numbers.tolist(), labels.tolist(), strict=True)
    now = {number: numbers[label] for number, label in rows_of}  # ours, by the other's
    merged = replace(
        model,
        classes=np.concatenate([model.classes, new]),
        numbers=np.concatenate([model.numbers, [numbers[y] for y in new.tolist()]]).astype(int),
        task_of_class=np.concatenate([model.task_of_class, model.n_tasks + task_of_new]).astype(
            int
        ),
        n_samples_of_class=np.concatenate([counts, other.n_samples_of_class[rows]]).astype(int),
        n_tasks=model.n_tasks + len(tasks),  # tasks are those that taught new classes
        n_taught=model.n_taught + len(new),
        calibration=Calibration(temperature),
        taught_novelty=model.taught_novelty.merge(other.taught_novelty),
        encoder=model.encoder or other.encoder,
        history=(*model.history, *other.history),
        digests=with_digests(model.digests, _renumbered(other.digests, now)),
        withheld=with_digests(model.withheld, _renumbered(other.withheld, now)),
        aliases=_aliases(model, other, labels),
    )
    added = dict(zip(labels.tolist(), other.n_samples_of_class.tolist(), strict=True))
    return merged.recorded("merge", added)


def _renumbered(digests: Digests, now: Mapping[int, int]) -> Digests:
    """Digests by the numbers that classes have now."""
    return {now[number]: found for number, found in digests.items()}


def _aliases(model: Model, other: Model, labels: Any) -> dict[str, Any]:
    """Other names of classes in either, but for those that are labels now."""
    now = dict(zip(other.classes.tolist(), labels.tolist(), strict=True))
    theirs = {name: now.get(label, label) for name, label in other.aliases.items()}
    theirs |= {str(old): new for old, new in now.items() if old != new}
    return without({**theirs, **model.aliases}, [*model.classes.tolist(), *labels.tolist()])
