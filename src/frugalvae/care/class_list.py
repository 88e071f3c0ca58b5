"""What is wrong with a list of classes: too few samples, names that are nearly the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from frugalvae.care.findings import Finding
from frugalvae.checks import folded
from frugalvae.formatting import plural
from frugalvae.taught import edits, near

FEW = 5  # samples below which a class is learned poorly


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
    names = [label for label in [*new, *known] if isinstance(label, str)]
    count = sum(isinstance(label, str) for label in new)
    return [
        Finding("names", _alike(one, two), one, f"it is nearly {two!r}", other=two)
        for one, two in _pairs(names, count)
        if one != two and near(one, [two]) is not None
    ]


def _alike(one: str, two: str) -> float:
    if folded(one.replace("_", " ")) == folded(two.replace("_", " ")):
        return 1.0
    return max(0.5, 1 - edits(one.casefold(), two.casefold()) / len(one))


def _pairs(names: Sequence[str], count: int) -> Iterator[tuple[str, str]]:
    """Pairs, one of them among the first ``count``, whose letters hardly differ."""
    letters = np.zeros((len(names), 64), np.int16)
    for row, name in enumerate(names):
        np.add.at(letters[row], [ord(letter) % 64 for letter in name.casefold()], 1)
    for row in range(count):
        differ = np.abs(letters[row + 1 :] - letters[row]).sum(axis=1)
        for other in np.flatnonzero(differ <= 4).tolist():  # two edits change up to four counts
            yield names[row], names[row + 1 + other]
