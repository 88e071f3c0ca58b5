"""Findings: what may be wrong with samples before they are taught, and with their classes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

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
        The class that the sample is said to be of; or the class itself.
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
        told = {key: _plain(value) for key, value in asdict(self).items()}
        return {**told, "sure": round(self.sure, 4), "leave_out": self.leave_out}


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
        Samples that their class was taught before, ascending; nothing else is said of them.
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
    ) -> Checked:
        """In order: by how sure they are, then by kind and row."""
        kinds = list(KINDS)
        order = sorted(findings, key=lambda f: (-f.sure, kinds.index(f.kind), f.row or 0))
        return cls(order, list(notes), dict(typical or {}), sorted(taught))

    def of_kind(self, kind: str) -> list[Finding]:
        """The findings of one kind."""
        return [finding for finding in self.findings if finding.kind == kind]

    @property
    def rows_to_leave_out(self) -> list[int]:
        """Samples that are better not taught as they are, ascending."""
        return sorted({f.row for f in self.findings if f.row is not None and f.leave_out})


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
