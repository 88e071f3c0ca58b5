"""Check samples before they are taught: everything that may be wrong with them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from frugalvae.care.class_list import few, near_names
from frugalvae.care.duplicates import Twin, near_duplicates, same_pixels
from frugalvae.care.findings import SURE, Checked, Finding
from frugalvae.care.judge import Judged, judge
from frugalvae.care.moments import add_samples, open_moments
from frugalvae.care.outliers import LEAST
from frugalvae.digests import NONE, among
from frugalvae.formatting import plural, shortened
from frugalvae.model.model import Model
from frugalvae.parts.checks import check_features, check_kind, check_labels
from frugalvae.parts.protocols import Task

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from frugalvae.maths.arrays import Array


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
        :func:`frugalvae.care.image_quality.pattern_of`.

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
    again = sorted(set(before) - {finding.row for finding in elsewhere})
    fresh = np.setdiff1d(np.arange(len(labels)), list(before))
    part = Task(features[fresh], task.labels[fresh])
    classes = _of_classes(model, labels, again)
    found, notes = [*elsewhere, *classes], _limits(model, digests, len(again))
    typical: dict[Any, int] = {}
    if len(fresh):
        memory, said = open_moments(model, part.features, rng)
        twins = near_duplicates(memory.mapped(features))  # also of what was taught and is here
        twins += [] if patterns is None else same_pixels(patterns)
        taught = _in_one_class(task, twins, fresh)
        add_samples(memory, Task(part.features[taught], part.labels[taught]))
        judged = judge(memory, part, taught)
        notes += said + _unjudged(len(memory.classes), labels[fresh], judged)
        found += _mistaken(labels, names, fresh, judged, classes)
        typical = _typical(labels, fresh, judged)
        found += _outliers(labels, fresh, judged)
        found += _duplicates(labels, fresh, twins, judged)
    return Checked.of([f for f in found if f.sure >= SURE], notes, typical, again)


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


def _of_classes(model: Model, labels: NDArray[Any], again: list[int]) -> list[Finding]:
    """Classes of too few samples, and names that are nearly the same.

    Samples ``again`` are among those that their class was taught already.
    """
    known = dict(zip(model.classes.tolist(), model.n_samples_of_class.tolist(), strict=True))
    counts = Counter(labels.tolist())
    counts.subtract(labels[again].tolist())
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


def _typical(labels: NDArray[Any], fresh: NDArray[np.int64], judged: Judged) -> dict[Any, int]:
    """Of each class, the sample whose label is surest."""
    order = fresh[np.argsort(-judged.wrong, kind="stable")]
    return dict(zip(labels[order].tolist(), order.tolist(), strict=True))


# --------------------------------------------------------------------------- what is not checked


def _limits(model: Model, digests: NDArray[np.bytes_] | None, again: int) -> list[str]:
    """What cannot be known of samples that were taught before, and how many there are."""
    if not len(model.classes):
        return []
    if digests is None or not model.digests:
        return ["samples that were taught before cannot be recognised: there are no digests"]
    told = f"{plural(again, 'sample')} taught before: neither checked nor counted again"
    return [
        *([told] if again else []),
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
    if len(labels) < LEAST:
        notes.append(
            f"fewer than {LEAST} samples to check: too few to tell which are unlike all classes"
        )
    return notes
