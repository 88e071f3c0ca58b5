"""Plans: which samples of a folder that grows are to be taught, and what happens to the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from frugalvae.digests import DIGEST, NONE, among
from frugalvae.formatting import plural, quoted, shortened

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from frugalvae.model.model import Model


@dataclass
class TeachingPlan:
    """Which samples of a folder are to be taught, and what happens to the others.

    Attributes
    ----------
    what
        What lines call a sample.
    rows, labels, digests
        Of each sample that is to be taught: its place, its class, and its digest.
    new, more
        How many samples of each class these are, of new classes and of known ones.
    already, withheld, copies
        Samples by class that were taught before; that were taken out or left out before; and that
        are there twice.
    forgotten, unwanted
        Samples by folder of classes that were forgotten; and that are left out as it was asked.
    elsewhere
        Samples by class that are to be taught though another class was taught them.
    shared
        Samples by class that are to be taught as another class, too.
    renamed
        Folders, and the labels that their classes have.
    unrecognised
        Known classes that were taught, at least in part, without digests: nothing of them is
        taught, as it may have been before.
    """

    what: str = "image"
    rows: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    labels: NDArray[Any] = field(default_factory=lambda: np.empty(0, "U1"))
    digests: NDArray[np.bytes_] = field(default_factory=lambda: np.empty(0, DIGEST))
    new: dict[Any, int] = field(default_factory=dict)
    more: dict[Any, int] = field(default_factory=dict)
    already: dict[Any, int] = field(default_factory=dict)
    withheld: dict[Any, int] = field(default_factory=dict)
    copies: dict[Any, int] = field(default_factory=dict)
    forgotten: dict[str, int] = field(default_factory=dict)
    unwanted: dict[str, int] = field(default_factory=dict)
    elsewhere: dict[Any, int] = field(default_factory=dict)
    shared: dict[Any, int] = field(default_factory=dict)
    renamed: dict[str, Any] = field(default_factory=dict)
    unrecognised: list[Any] = field(default_factory=list)

    def digests_of(self, rows: NDArray[np.int64]) -> dict[Any, NDArray[np.bytes_]]:
        """Digests by class, of some positions in ``rows``."""
        found, labels = self.digests[rows], self.labels[rows]
        return {label: found[labels == label] for label in np.unique(labels).tolist()}

    def leave_out(self, unreadable: Iterable[Any]) -> None:
        """Count samples of these classes no more: they cannot be read."""
        lost = Counter(map(str, unreadable))
        for counts in (self.new, self.more):
            for label in [label for label in counts if str(label) in lost]:
                counts[label] -= lost[str(label)]
                if not counts[label]:
                    del counts[label]

    @property
    def grown(self) -> list[str]:
        """A line about more samples of known classes, if there are any."""
        return _counted(self.more, f"more {self.what}", "known class")

    @property
    def taught(self) -> list[str]:
        """Lines about what else is to be taught."""
        lines = _counted(self.new, self.what, "new class")
        if self.elsewhere:
            counts = [f"{count:,} of {label}" for label, count in self.elsewhere.items()]
            lines.append(
                f"taught before as another class, and now as this one, too: {shortened(counts)}; "
                "'frugalvae unlearn' takes them out of the first"
            )
        if self.shared:
            counts = [f"{count:,} of {label}" for label, count in self.shared.items()]
            lines.append(
                f"the same in two classes, and taught as both: {shortened(counts)}; "
                "'frugalvae check' shows them"
            )
        return lines + other_names(self.renamed)

    @property
    def left_out(self) -> list[str]:
        """Lines about what is not."""
        lines = []
        if self.already:
            number = plural(sum(self.already.values()), self.what)
            lines.append(f"{number} taught before, and not counted again")
        for label, count in self.withheld.items():
            lines.append(
                f"{plural(count, self.what)} of {str(label)!r} left out, as before; "
                f"--again {quoted(str(label))} teaches them"
            )
        if self.copies:
            number = plural(sum(self.copies.values()), self.what)
            lines.append(f"{number} left out: the same is there twice")
        for name, count in self.forgotten.items():
            lines.append(
                f"{plural(count, self.what)} of {name!r} left out: it was forgotten; "
                f"--again {quoted(name)} teaches it anew"
            )
        if self.unwanted:
            number, names = plural(sum(self.unwanted.values()), self.what), sorted(self.unwanted)
            lines.append(f"{number} left out, as requested: {shortened(names)}")
        if self.unrecognised:
            names = sorted(map(str, self.unrecognised))
            lines.append(
                f"{plural(len(names), 'known class')} left alone: {shortened(names)}; taught "
                f"without digests, so new {self.what}s are not recognised. --again CLASS learns "
                "all that are there, --class CLASS all that are given"
            )
        return lines

    def to_json(self) -> dict[str, Any]:
        """All that is not taught, as plain values."""
        kept = ("what", "rows", "labels", "digests", "renamed", "unrecognised")
        counts = [one.name for one in fields(self) if one.name not in kept]
        by_kind = {name: {str(k): n for k, n in getattr(self, name).items()} for name in counts}
        return {**by_kind, "renamed": self.renamed, "unrecognised": self.unrecognised}


def _counted(counts: Mapping[Any, int], what: str, kind: str) -> list[str]:
    if not counts:
        return []
    names, images = shortened(sorted(map(str, counts))), plural(sum(counts.values()), what)
    return [f"{images} of {plural(len(counts), kind)}: {names}"]


def other_names(renamed: Mapping[str, Any]) -> list[str]:
    """A line about folders and the labels that their classes have, if there are any."""
    names = [f"{name} is {label}" for name, label in renamed.items()]
    return [f"folders whose classes have another name: {shortened(names)}"] if names else []


def choose_samples(
    model: Model,
    names: NDArray[Any],
    digests: Callable[[NDArray[np.int64]], NDArray[np.bytes_]],
    *,
    again: Collection[str] = (),
    only: Literal["new", "known"] | None = None,
    leave: Collection[str] = (),
    same: Mapping[str, Any] | None = None,
    what: str = "image",
) -> TeachingPlan:
    """What of some samples a model is to be taught.

    Parameters
    ----------
    names
        The class of each sample, as its folder is called.
    digests
        Gives the digests of samples at some places, ``NONE`` where there is none.
    again
        Names of classes to teach although they were forgotten, renamed, or taught without
        digests; and with samples that were left out before.
    only
        Only new classes, or only known ones.
    leave
        Names of further classes to leave out.
    same
        Further names of known classes.
    what
        What lines call a sample.
    """
    aliases = {name: label for name, label in model.aliases.items() if name not in again}
    aliases |= same or {}
    plan, parts = TeachingPlan(what), list[tuple[Any, Any, Any]]()  # label, rows, digests
    by_class: dict[Any, list[NDArray[np.int64]]] = {}
    classes = set(model.classes.tolist())
    for name, rows in _grouped(names):
        label = name if name in classes else aliases.get(str(name), name)
        if label is None:
            plan.forgotten[str(name)] = len(rows)
            continue
        known = label in classes
        if str(name) in leave or only == ("new" if known else "known"):
            plan.unwanted[str(name)] = len(rows)
            continue
        if label != name:
            plan.renamed[str(name)] = label
        by_class.setdefault(label, []).append(rows)
    for label, places in by_class.items():
        rows = np.sort(np.concatenate(places))
        if not recognisable(model, label) and str(label) not in again:
            plan.unrecognised.append(label)
            continue
        fresh, found = _fresh(plan, model, label, rows, digests(rows), str(label) in again)
        if len(fresh):
            (plan.more if label in classes else plan.new)[label] = len(fresh)
            parts.append((label, fresh, found))
    if parts:
        order = np.argsort(np.concatenate([rows for _, rows, _ in parts]), kind="stable")
        plan.rows = np.concatenate([rows for _, rows, _ in parts])[order]
        labels = np.array([label for label, _, _ in parts])
        plan.labels = labels.repeat([len(rows) for _, rows, _ in parts])[order]
        plan.digests = np.concatenate([found for _, _, found in parts])[order]
        taught = np.concatenate([np.empty(0, DIGEST), *model.digests.values()])
        plan.elsewhere = _by_class(plan.labels[among(plan.digests, taught)])
        found, counts = np.unique(plan.digests, return_counts=True)
        twice = found[(counts > 1) & (found != NONE)]
        plan.shared = _by_class(plan.labels[np.isin(plan.digests, twice)])
    return plan


def _by_class(labels: NDArray[Any]) -> dict[Any, int]:
    """How many samples of each class there are."""
    names, counts = np.unique(labels, return_counts=True)
    return dict(zip(names.tolist(), counts.tolist(), strict=True))


def _grouped(names: NDArray[Any]) -> list[tuple[Any, NDArray[np.int64]]]:
    """All names, and where each stands."""
    present, of_row, counts = np.unique(names, return_inverse=True, return_counts=True)
    rows = np.split(np.argsort(of_row, kind="stable"), np.cumsum(counts)[:-1])
    return list(zip(present.tolist(), rows, strict=True))


def _fresh(
    plan: TeachingPlan,
    model: Model,
    label: Any,
    rows: NDArray[np.int64],
    found: NDArray[np.bytes_],
    again: bool,
) -> tuple[NDArray[np.int64], NDArray[np.bytes_]]:
    """Rows of a class that were not taught, each once, and their digests."""
    none: NDArray[np.bytes_] = np.empty(0, DIGEST)
    withheld = none if again else model.withheld.get(model.number_of.get(label, -1), none)
    known = among(found, taught_digests(model, label)) & (found != NONE)
    held = among(found, withheld) & ~known & (found != NONE)
    first = np.zeros(len(rows), bool)
    first[np.unique(found, return_index=True)[1]] = True
    copies = ~first & ~known & ~held & (found != NONE)
    if known.any():
        plan.already[label] = int(known.sum())
    if held.any():
        plan.withheld[label] = int(held.sum())
    if copies.any():
        plan.copies[label] = int(copies.sum())
    taken = ~known & ~held & ~copies
    return rows[taken], found[taken]


def taught_digests(model: Model, label: Any) -> NDArray[np.bytes_]:
    """Digests of what a class was taught; none of a class that is new."""
    return model.digests.get(model.number_of.get(label, -1), np.empty(0, DIGEST))


def recognisable(model: Model, label: Any) -> bool:
    """Whether all that a class was taught has a digest; so has a class that is new.

    A class that is known by name alone was taught nothing.
    """
    number = model.number_of.get(label)
    if number is None or label in model.by_name:
        return True
    return 0 < model.count_of[number] <= len(taught_digests(model, label))
