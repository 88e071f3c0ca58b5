"""Findings: everything that may be wrong with samples, before they are taught."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from frugalvae.care.judge import FEWEST, Judged, add_samples, judge, open_moments
from frugalvae.care.photographs import Twin, near_duplicates, same_pixels
from frugalvae.digests import NONE, among
from frugalvae.formatting import plural, shortened
from frugalvae.labels import edits, folded, near_pairs
from frugalvae.model.answers import FEW
from frugalvae.model.model import Model
from frugalvae.parts.checks import check_features, check_kind, check_labels
from frugalvae.parts.protocols import Task

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from frugalvae.maths.arrays import Array

#: Every kind of finding, with its heading. Those of :data:`LEAVE_OUT` are better not taught.
KINDS = {
    "names": "Names that are nearly the same",
    "unreadable": "Cannot be read",
    "taught-before": "Taught before as another class",
    "duplicate": "Nearly the same as another",
    "wrong-label": "Looks like another class",
    "blank": "Blank",
    "tiny": "Tiny",
    "blurred": "Blurred",
    "outlier": "Unlike its class, and unlike all others",
    "few": "Too few to learn from",
}
LEAVE_OUT = ("unreadable", "taught-before", "duplicate", "wrong-label", "blank")
SURE = 0.5  # from which on a finding is reported


@dataclass(frozen=True)
class Finding:
    """What may be wrong with a sample or a class.

    Attributes
    ----------
    kind
        One of :data:`KINDS`.
    sure
        How sure it is, from 0.5 to 1.
    label
        The label of the sample, or the class that the finding is about.
    why
        In words.
    row
        Which sample; None for what concerns a class.
    other
        The class that it looks like, that its duplicate is of, or whose name is nearly the same.
    twin
        The sample that it duplicates.

    Examples
    --------
    >>> Finding("few", 1.0, "hat", "1 sample").leave_out
    False
    """

    kind: str
    sure: float
    label: Any
    why: str
    row: int | None = None
    other: Any = None
    twin: int | None = None

    @property
    def leave_out(self) -> bool:
        """Whether the sample is better not taught as it is."""
        return self.row is not None and self.kind in LEAVE_OUT

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        values = {
            key: value.item() if isinstance(value, np.generic) else value
            for key, value in asdict(self).items()
        }
        return {**values, "sure": round(self.sure, 4), "leave_out": self.leave_out}


@dataclass
class Checked:
    """All findings, and what they come with.

    Attributes
    ----------
    findings
        The surest first.
    notes
        What could not be checked, a line each.
    typical
        Of each class, the sample whose label is surest.
    taught
        Samples that their class was taught before, ascending; they are not checked again.
    """

    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    typical: dict[Any, int] = field(default_factory=dict)
    taught: list[int] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        findings: Iterable[Finding],
        notes: Sequence[str] = (),
        typical: Mapping[Any, int] | None = None,
        taught: Iterable[int] = (),
        **more: Any,
    ) -> Self:
        """In order: by how sure they are, then by kind and row; ``more`` is of a subclass."""
        kinds = list(KINDS)
        order = sorted(findings, key=lambda f: (-f.sure, kinds.index(f.kind), f.row or 0))
        return cls(order, list(notes), dict(typical or {}), sorted(taught), **more)

    def of_kind(self, kind: str) -> list[Finding]:
        """The findings of one kind."""
        return [finding for finding in self.findings if finding.kind == kind]

    @property
    def rows_to_leave_out(self) -> list[int]:
        """Samples that are better not taught as they are, ascending."""
        return sorted({f.row for f in self.findings if f.row is not None and f.leave_out})


def check(
    model: Model,
    X: ArrayLike,
    y: ArrayLike,
    *,
    digests: NDArray[np.bytes_] | None = None,
    patterns: Array | None = None,
) -> Checked:
    """What may be wrong with samples, among themselves and beside what a model was taught.

    Parameters
    ----------
    model
        What was taught before; ``Model()`` if nothing was.
    X, y
        Features (n, d) and labels (n,) that are to be taught.
    digests
        Of the samples, to recognise exactly what was taught before; 0 where there is none.
    patterns
        Of the photographs, (n, bits), to recognise copies; see
        :func:`frugalvae.care.photographs.pattern_of`.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(9, 32))
    >>> x[8] = 1.01 * x[0]
    >>> [(f.row, f.why) for f in check(Model(), x, ["hat"] * 9).of_kind("duplicate")]
    [(8, 'nearly the same as another of its class')]
    """
    features = check_features(X, model.n_features or None)
    labels = check_labels(y, len(features))
    check_kind(labels, model.classes)
    labels = _present_names(model, labels)
    task, names = _task(model, features, labels)
    rng = model.recipe.generator("check", 0)
    before = _taught_before(model, digests)
    elsewhere = _taught_elsewhere(labels, before)
    known_rows = sorted(set(before) - {finding.row for finding in elsewhere})
    fresh = np.setdiff1d(np.arange(len(labels)), list(before))
    part = Task(features[fresh], task.labels[fresh])
    classes = _of_classes(model, labels, known_rows)
    found, notes = [*elsewhere, *classes], _limits(model, digests, len(known_rows))
    typical: dict[Any, int] = {}
    if len(fresh):
        memory, limits = open_moments(model, part.features, rng)
        twins = near_duplicates(memory.mapped(features))  # also of what was taught and is here
        twins += [] if patterns is None else same_pixels(patterns)
        taught = _in_one_class(task, twins, fresh)
        add_samples(memory, Task(part.features[taught], part.labels[taught]))
        judged = judge(memory, part, taught)
        notes += limits + _unjudged(len(memory.classes), labels[fresh], judged)
        found += _mistaken(labels, names, fresh, judged, classes)
        surest = fresh[np.argsort(-judged.wrong, kind="stable")]  # the last of a class is kept
        typical = dict(zip(labels[surest].tolist(), surest.tolist(), strict=True))
        found += _outliers(labels, fresh, judged)
        found += _duplicates(labels, fresh, twins, judged)
    return Checked.of([f for f in found if f.sure >= SURE], notes, typical, known_rows)


def _present_names(model: Model, labels: NDArray[Any]) -> NDArray[Any]:
    """Labels as classes are called now, if they were renamed."""
    if labels.dtype.kind not in "UO":
        return labels
    names = {name: label for name, label in model.aliases.items() if isinstance(label, str)}
    return np.array([names.get(label, label) for label in labels.tolist()])


def _task(
    model: Model, features: NDArray[np.float32], labels: NDArray[Any]
) -> tuple[Task, dict[int, Any]]:
    """The samples with the numbers of their classes, and the label of each number."""
    known = dict(zip(model.classes.tolist(), model.numbers.tolist(), strict=True))
    new = [label for label in np.unique(labels).tolist() if label not in known]
    numbers = known | {label: model.n_taught + row for row, label in enumerate(new)}
    of_row = np.array([numbers[label] for label in labels.tolist()], np.int64)
    return Task(features, of_row), {number: label for label, number in numbers.items()}


def _in_one_class(task: Task, twins: list[Twin], fresh: NDArray[np.int64]) -> Array:
    """Which fresh samples have no twin in another class; all, if few classes have such samples.

    A photograph that is in two classes would speak for both.
    """
    taught = np.ones(len(task.labels), bool)
    for row, other, _ in twins:
        if task.labels[row] != task.labels[other]:
            taught[[row, other]] = False
    enough = len(np.unique(task.labels[fresh][taught[fresh]])) > 1
    return taught[fresh] if enough else np.ones(len(fresh), bool)


# --------------------------------------------------------------------------- findings


def _taught_before(model: Model, digests: NDArray[np.bytes_] | None) -> dict[int, list[Any]]:
    """The samples whose digests are kept, and the classes that each was taught as."""
    found: dict[int, list[Any]] = {}
    if digests is None:
        return found
    of_number = dict(zip(model.numbers.tolist(), model.classes.tolist(), strict=True))
    for number, kept in model.digests.items():
        for row in np.flatnonzero(among(digests, kept) & (digests != NONE)).tolist():
            found.setdefault(row, []).append(of_number[number])
    return found


def _taught_elsewhere(labels: NDArray[Any], before: dict[int, list[Any]]) -> list[Finding]:
    """Samples that another class was taught: one of the two labels is wrong."""
    return [
        Finding(
            "taught-before",
            1.0,
            labels[row].item(),
            f"exactly this was taught before, as {other!r}",
            row,
            other=other,
        )
        for row, taught in before.items()
        for other in taught
        if other != labels[row]
    ]


def _of_classes(model: Model, labels: NDArray[Any], known_rows: list[int]) -> list[Finding]:
    """Classes of too few samples, and names that are nearly the same.

    Samples ``known_rows`` are among those that their class was taught already.
    """
    known = dict(zip(model.classes.tolist(), model.n_samples_of_class.tolist(), strict=True))
    counts = Counter(labels.tolist())
    counts.subtract(labels[known_rows].tolist())
    new = [label for label, _ in counts.most_common()[::-1] if label not in known]
    return few({label: n + known.get(label, 0) for label, n in counts.items()}) + near_names(
        new, list(known)
    )


def _mistaken(
    labels: NDArray[Any],
    names: dict[int, Any],
    fresh: NDArray[np.int64],
    judged: Judged,
    classes: list[Finding],
) -> list[Finding]:
    """Samples that look like another class, unless it has nearly the same name."""
    same = {frozenset((f.label, f.other)) for f in classes if f.kind == "names"}
    found = []
    for place in np.flatnonzero(judged.wrong >= SURE).tolist():
        row, sure = int(fresh[place]), float(judged.wrong[place])
        other = names[int(judged.likelier[place])]
        label, why = labels[row].item(), f"it looks like {other}"
        if frozenset((label, other)) not in same:
            found.append(Finding("wrong-label", sure, label, why, row, other=other))
    return found


def _outliers(labels: NDArray[Any], fresh: NDArray[np.int64], judged: Judged) -> list[Finding]:
    """Samples that look like no class, and have no likelier one either."""
    why = "it looks like no class here: another subject, or an unusual view"
    return [
        Finding("outlier", sure, labels[fresh[place]].item(), why, int(fresh[place]))
        for place, sure in judged.outliers.items()
        if judged.wrong[place] < SURE
    ]


def _duplicates(
    labels: NDArray[Any], fresh: NDArray[np.int64], twins: list[Twin], judged: Judged
) -> list[Finding]:
    """Samples that are nearly the same as another, all but one of each group.

    The one is what was taught; else, of different classes, the one that fits its class best; else
    the first.
    """
    wrong = np.full(len(labels), -1.0)
    wrong[fresh] = judged.wrong
    surest = {twin.row: twin for twin in sorted(twins, key=lambda twin: twin.sure)}
    found = []
    for group in _groups(surest):
        kept = group[0]
        if wrong[group].min() < 0 or len(set(labels[group].tolist())) > 1:
            kept = min(group, key=lambda row: (wrong[row], row))
        for row in group:
            if row == kept or wrong[row] < 0:
                continue
            mine, its = labels[[row, kept]].tolist()
            where = "another of its class" if mine == its else f"another, of class {its}"
            sure = surest[row if row in surest else kept].sure
            found.append(
                Finding("duplicate", sure, mine, f"nearly the same as {where}", row, its, kept)
            )
    return found


def _groups(twins: dict[int, Twin]) -> list[list[int]]:
    """Samples that are nearly the same, ascending, from each one's earlier twin."""
    groups: dict[int, list[int]] = {}
    for row, twin in sorted(twins.items()):
        first = twin.of
        while first in twins:
            first = twins[first].of
        groups.setdefault(first, [first]).append(row)
    return list(groups.values())


# --------------------------------------------------------------------------- what is not checked


def _limits(model: Model, digests: NDArray[np.bytes_] | None, count_known: int) -> list[str]:
    """What cannot be known of samples that were taught before, and how many there are."""
    if not len(model.classes):
        return []
    if digests is None or not model.digests:
        return ["samples that were taught before cannot be recognised: there are no digests"]
    known = f"{plural(count_known, 'sample')} taught before: neither checked nor counted again"
    return [
        *([known] if count_known else []),
        "changed copies of what was taught before are found only if the original is in this "
        "folder: the file keeps no single samples",
    ]


def _unjudged(classes: int, labels: NDArray[Any], judged: Judged) -> list[str]:
    """Why some samples, or all, cannot be compared with other classes."""
    notes = []
    if classes < 2:
        notes.append("there is one class only: whether a sample looks like another cannot be known")
    elif not judged.known.all():
        alone = sorted({str(label) for label in labels[~judged.known].tolist()})
        notes.append(
            f"{plural(len(alone), 'class')} of one sample: {shortened(alone)}; whether that one is "
            "right cannot be known"
        )
    if len(labels) < FEWEST:
        notes.append(
            f"fewer than {FEWEST} samples: too few to find those that are unlike all classes"
        )
    return notes


def few(counts: Mapping[Any, int]) -> list[Finding]:
    """Classes of too few samples; ``counts`` has those that were taught before, too.

    >>> [finding.why for finding in few({"hat": 1, "shirt": 30})]
    ['1 sample; classes of fewer than 5 are often missed']
    """
    return [
        Finding(
            "few",
            1 - 0.5 * (count - 1) / FEW,
            label,
            f"{plural(count, 'sample')}; classes of fewer than {FEW} are often missed",
        )
        for label, count in counts.items()
        if count < FEW
    ]


def near_names(new: Sequence[Any], known: Sequence[Any] = ()) -> list[Finding]:
    """Names that may mean the same class, among new ones and between new and known ones.

    >>> [(f.label, f.other) for f in near_names(["Cardnal"], ["Cardinal", "Wren"])]
    [('Cardnal', 'Cardinal')]
    """
    texts = [[label for label in labels if isinstance(label, str)] for labels in (new, known)]
    return [
        Finding("names", _alike(one, two), one, f"it is nearly {two!r}", other=two)
        for one, two in near_pairs(*texts)
    ]


def _alike(one: str, two: str) -> float:
    if folded(one.replace("_", " ")) == folded(two.replace("_", " ")):
        return 1.0
    return max(0.5, 1 - edits(one.casefold(), two.casefold()) / len(one))
