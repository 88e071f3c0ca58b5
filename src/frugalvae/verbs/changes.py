"""Changes: rename, join and forget classes, correct photographs, go back; each is one function.

They take a model, and give one. Who calls them holds the lock of the file and saves it, but for
:func:`forget` and :func:`undo`, whose results are about the file itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from frugalvae.digests import among
from frugalvae.encoding import describe
from frugalvae.errors import InputError, MemoryFileError
from frugalvae.formatting import shortened
from frugalvae.labels import check_case, like
from frugalvae.model import forgetting, merging
from frugalvae.model.history import (
    as_one_lesson,
    difference,
    digest_of,
    is_last_change,
    with_digest,
    with_source,
)
from frugalvae.model.plan import TeachingPlan, choose_samples, recognisable, taught_digests
from frugalvae.parts.checks import check_kind
from frugalvae.storage.store import receipt, size_and_checksum

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from frugalvae.model.model import Model
    from frugalvae.parts.protocols import Encoder
    from frugalvae.storage.store import Store

ONE_NAME = "give both the same name if they are one class, or a name of its own"


@dataclass
class Changed:
    """What a change came to.

    Attributes
    ----------
    model
        What is known afterwards: the very model that was given, if nothing changed.
    label
        The class that was changed, as it is called now.
    plan
        Which samples were taught, and which not.
    moved, gone
        Samples by class that were taken out there; and classes that had no others.
    warnings
        What did not go as it should.
    """

    model: Model
    label: Any
    plan: TeachingPlan = field(default_factory=TeachingPlan)
    moved: dict[str, int] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def rename(
    model: Model, label: Any, name: str, *, case_matters: bool = False, advice: str = ONE_NAME
) -> Changed:
    """Give a class another name, unless it is taken or differs from a taken one only in case."""
    new = like(label, name)
    if not case_matters:
        check_case([str(new)], [str(y) for y in model.classes.tolist() if y != label], advice)
    return Changed(model.rename(label, new), new)


def merge_classes(model: Model, label: Any, others: Sequence[Any]) -> Changed:
    """Make other classes part of one."""
    for other in others:
        model = merging.merge_classes(model, label, other)
    return Changed(model, label)


# --------------------------------------------------------------------------- the samples of a class


def correct(
    model: Model,
    name: str,
    x: NDArray[np.float32],
    digests: NDArray[np.bytes_],
    encoder: Encoder,
    remembered: dict[str, Any],
    *,
    case_matters: bool = False,
    source: str = "",
) -> Changed:
    """Teach samples (n, d) as one class: those that it was not taught, moved from other classes.

    Whoever teaches a photograph as another class says that it was wrong before. Memories that
    cannot take samples out keep it there, too, with a warning.

    Parameters
    ----------
    name
        Of the class, known or new.
    x, digests
        Features, and what tells each photograph from others.
    encoder, remembered
        What made the features, and what a file without an encoder remembers of it.
    case_matters
        Whether names that differ only in case are different classes.
    source
        Where they came from, for the history.
    """
    label = resolve_label(model, name, case_matters)
    names = np.array([label] * len(x))
    plan = choose_samples(model, names, lambda rows: digests[rows], again=[str(label)])
    if not len(plan.rows):
        return Changed(model, label, plan)
    described = describe(encoder, [str(label)]) if plan.new else None
    text = described and {label: described[str(label)]}
    x, digests = x[plan.rows], plan.digests
    changed = remove_from_other_classes(model, label, x, digests)
    changed.plan = plan
    after = changed.model.learn(x, plan.labels, text=text, digests={label: digests})
    for other in changed.gone:
        after, _ = forgetting.forget(after, other)
    changed.gone = [str(other) for other in changed.gone]
    after = as_one_lesson(model, after, changed.moved, changed.gone)
    changed.model = with_source(
        after if after.encoder else replace(after, encoder=remembered), source
    )
    return changed


def resolve_label(model: Model, name: str, case_matters: bool = False) -> Any:
    """The label that a name stands for: of a class that is known, was renamed, or is new."""
    known = model.classes.tolist()
    label: Any = like(known[0], name) if known else name
    if label not in known:
        alias = model.aliases.get(name)  # which may be 0
        label = label if alias is None else alias
    if known:
        check_kind(np.array([label]), model.classes)
    if label not in known and not case_matters:
        check_case([str(label)], map(str, known), ONE_NAME)
    return label


def remove_from_other_classes(
    model: Model, label: Any, x: NDArray[np.float32], digests: NDArray[np.bytes_]
) -> Changed:
    """Without samples that other classes were taught; ``gone`` are those that had no others."""
    changed = Changed(model, label)
    for other in model.classes.tolist():
        wrong = among(digests, taught_digests(model, other))
        count = int(wrong.sum())
        if other == label or not count:
            continue
        if count == model.n_samples_of_class[model.classes == other][0]:
            changed.gone.append(other)
        else:
            try:
                model = forgetting.unlearn(model, other, x[wrong], digests=digests[wrong])
            except InputError as error:
                changed.warnings.append(f"{count} of them stay in {other}, too: {error}")
                continue
        changed.moved[str(other)] = count
    changed.model = model
    return changed


def unlearn(
    model: Model,
    label: Any,
    x: NDArray[np.float32],
    digests: NDArray[np.bytes_],
    *,
    source: str,
    images: Sequence[str] = (),
) -> Changed:
    """Take samples (n, d) of a class out again, unless this was the last change.

    ``images`` names the last of the samples, which are photographs: those that the class was never
    taught are refused, where all that it was taught is known.
    """
    digest = digest_of(("unlearn", label), x)
    if is_last_change(model, digest):  # such as a command that was killed, and typed again
        return Changed(model, label)
    if images and recognisable(model, label):
        known = among(digests[-len(images) :], taught_digests(model, label))
        strange = [name for name, there in zip(images, known, strict=True) if not there]
        if strange:
            raise InputError(
                f"{label!r} was never taught {shortened(strange)}; give images that it was "
                "taught, as they were then"
            )
    after = with_source(forgetting.unlearn(model, label, x, digests=digests), source)
    return Changed(with_digest(after, digest), label)


# --------------------------------------------------------------------------- the file


@dataclass
class Forgotten:
    """What is known without a class, and the receipt: what was removed, and what remains of it."""

    model: Model
    receipt: dict[str, Any]


def forget(
    store: Store, model: Model, label: Any, x: ArrayLike | None = None, *, scrub: bool = False
) -> Forgotten:
    """Remove a class from a file, inside its lock.

    ``x`` (n, d), all samples that the class was taught, is taken out of what classes share;
    ``scrub`` relearns what they share, and cannot be undone.
    """
    before = size_and_checksum(store)
    after, remains = forgetting.forget(model, label, x, scrub=scrub)
    after = with_digest(after)
    store.save(after, undoable=not scrub)
    return Forgotten(after, receipt(after, label, remains, before, size_and_checksum(store)))


@dataclass
class Undone:
    """What going back took away.

    Attributes
    ----------
    event
        Of the history, that is undone; None if it is not known.
    gone, back
        Names of classes that are no longer known, and that are known again.
    problem
        Why the file could not be read before; empty if it could.
    empty
        Whether no class is known now.
    """

    event: dict[str, Any] | None = None
    gone: list[str] = field(default_factory=list)
    back: list[str] = field(default_factory=list)
    problem: str = ""
    empty: bool = False


def undo(store: Store) -> Undone:
    """Put a file back as it was before its last change, inside its lock; a broken one, too."""
    before, undone = store.read_undo().document, Undone()
    try:
        undone = Undone(*difference(store.read().document, before))
    except MemoryFileError as error:
        undone.problem = str(error)
    store.go_back()
    undone.empty = not before["classes"]["values"]
    return undone
