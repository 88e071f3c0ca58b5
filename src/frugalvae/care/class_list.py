"""What is wrong with a list of classes: too few samples, names that are nearly the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from frugalvae.care.findings import Finding
from frugalvae.formatting import plural
from frugalvae.labels import edits, folded, near_pairs
from frugalvae.model.answers import FEW


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
