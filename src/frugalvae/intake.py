"""Intake: which samples of a folder that grows are to be taught, and what happens to the others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from frugalvae.taught import NONE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from frugalvae.model import Model


@dataclass
class Intake:
    """Which samples of a folder are to be taught, and what happens to the others.

    Attributes
    ----------
    rows, labels, digests
        Of each sample that is to be taught: its place, its class, and its digest.
    new, more
        How many samples of each class these are, of new classes and of known ones.
    already, copies
        Samples by class that were taught before; and that are there twice.
    forgotten, unwanted
        Samples by folder of classes that were forgotten; and that are left out as it was asked.
    renamed
        Folders, and the labels that their classes have.
    unrecognised
        Known classes that were taught, at least in part, without digests: nothing of them is
        taught, as it may have been before.
    """

    rows: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    labels: NDArray[Any] = field(default_factory=lambda: np.empty(0, "U1"))
    digests: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))
    new: dict[Any, int] = field(default_factory=dict)
    more: dict[Any, int] = field(default_factory=dict)
    already: dict[Any, int] = field(default_factory=dict)
    copies: dict[Any, int] = field(default_factory=dict)
    forgotten: dict[str, int] = field(default_factory=dict)
    unwanted: dict[str, int] = field(default_factory=dict)
    renamed: dict[str, Any] = field(default_factory=dict)
    unrecognised: list[Any] = field(default_factory=list)

    def digests_of(self, rows: NDArray[np.int64]) -> dict[Any, NDArray[np.uint64]]:
        """Digests by class, of some positions in ``rows``."""
        found, labels = self.digests[rows], self.labels[rows]
        return {label: found[labels == label] for label in np.unique(labels).tolist()}

    def to_json(self) -> dict[str, Any]:
        """All that is not taught, as plain values."""
        counts = ("new", "more", "already", "copies", "forgotten", "unwanted")
        told = {name: {str(k): n for k, n in getattr(self, name).items()} for name in counts}
        return {**told, "renamed": self.renamed, "unrecognised": self.unrecognised}


def choose(
    model: Model,
    names: NDArray[Any],
    digests: Callable[[NDArray[np.int64]], NDArray[np.uint64]],
    *,
    again: Collection[str] = (),
    only: Literal["new", "known"] | None = None,
    leave: Collection[str] = (),
    same: Mapping[str, Any] | None = None,
) -> Intake:
    """What of some samples a model is to be taught.

    Parameters
    ----------
    names
        The class of each sample, as its folder is called.
    digests
        Gives the digests of samples at some places, ``NONE`` where there is none.
    again
        Names of classes to teach although they were forgotten, renamed, or taught without
        digests.
    only
        Only new classes, or only known ones.
    leave
        Names of further classes to leave out.
    same
        Further names of known classes.
    """
    aliases = {name: label for name, label in model.aliases.items() if name not in again}
    aliases |= same or {}
    intake, parts = Intake(), list[tuple[Any, Any, Any]]()  # label, rows, digests
    by_class: dict[Any, list[NDArray[np.int64]]] = {}
    for name in np.unique(names).tolist():
        rows = np.flatnonzero(names == name)
        label = aliases.get(str(name), name) if name not in model.classes else name
        if label is None:
            intake.forgotten[str(name)] = len(rows)
            continue
        known = label in model.classes
        if str(name) in leave or only == ("new" if known else "known"):
            intake.unwanted[str(name)] = len(rows)
            continue
        if label != name:
            intake.renamed[str(name)] = label
        by_class.setdefault(label, []).append(rows)
    for label, places in by_class.items():
        rows = np.sort(np.concatenate(places))
        if not recognisable(model, label) and str(label) not in again:
            intake.unrecognised.append(label)
            continue
        fresh, found = _fresh(intake, model, label, rows, digests(rows))
        if len(fresh):
            (intake.more if label in model.classes else intake.new)[label] = len(fresh)
            parts.append((label, fresh, found))
    if parts:
        order = np.argsort(np.concatenate([rows for _, rows, _ in parts]), kind="stable")
        intake.rows = np.concatenate([rows for _, rows, _ in parts])[order]
        labels = np.array([label for label, _, _ in parts])
        intake.labels = labels.repeat([len(rows) for _, rows, _ in parts])[order]
        intake.digests = np.concatenate([found for _, _, found in parts])[order]
    return intake


def _fresh(
    intake: Intake,
    model: Model,
    label: Any,
    rows: NDArray[np.int64],
    found: NDArray[np.uint64],
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Rows of a class that were not taught, each once, and their digests."""
    known = np.isin(found, digests_of(model, label)) & (found != NONE)
    first = np.zeros(len(rows), bool)
    first[np.unique(found, return_index=True)[1]] = True
    copies = ~first & ~known & (found != NONE)
    if known.any():
        intake.already[label] = int(known.sum())
    if copies.any():
        intake.copies[label] = int(copies.sum())
    taken = ~known & ~copies
    return rows[taken], found[taken]


def digests_of(model: Model, label: Any) -> NDArray[np.uint64]:
    """Digests of what a class was taught."""
    position = np.flatnonzero(model.classes == label) if len(model.classes) else []
    number = int(model.numbers[position[0]]) if len(position) else -1
    return model.digests.get(number, np.empty(0, np.uint64))


def recognisable(model: Model, label: Any) -> bool:
    """Whether all that a class was taught has a digest; so has a class that is new."""
    position = np.flatnonzero(model.classes == label) if len(model.classes) else []
    if not len(position):
        return True
    count = int(model.n_samples_of_class[position[0]])
    return 0 < count <= len(digests_of(model, label))
