"""Cost: parameters and bytes by component, as the paper counts them and as stored.

The paper counts parameters, not bytes, and counts some twice: four statistics per
class and dimension where two suffice, and both halves of symmetric matrices. Each memory
says in ``cost()`` what it will cost; a test compares that with the arrays that it keeps
after training.

Plain arithmetic: nothing in this module imports PyTorch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from frugalvae.formatting import plural


@dataclass(frozen=True)
class Component:
    """A part of a memory.

    Attributes
    ----------
    name
        What it is for.
    paper
        Parameters, as the paper counts them.
    stored
        Parameters that are stored.
    bytes
        The bytes that those take.
    """

    name: str
    paper: int
    stored: int
    bytes: int


@dataclass(frozen=True)
class MemoryReport:
    """What a memory holds and what it costs.

    >>> parts = [component("means", 6), component("covariances", 9, 6, width=8)]
    >>> report = MemoryReport("shared", classes=2, tasks=1, components=parts)
    >>> report.paper, report.stored, report.bytes
    (15, 12, 72)
    """

    memory: str
    classes: int
    tasks: int
    components: Sequence[Component]

    @property
    def paper(self) -> int:
        """All parameters, as the paper counts them."""
        return sum(part.paper for part in self.components)

    @property
    def stored(self) -> int:
        """All parameters that are stored."""
        return sum(part.stored for part in self.components)

    @property
    def bytes(self) -> int:
        """The bytes that those take."""
        return sum(part.bytes for part in self.components)

    def to_json(self) -> dict[str, Any]:
        """Plain values, totals included."""
        totals = {"paper": self.paper, "stored": self.stored, "bytes": self.bytes}
        return {**asdict(self), "components": [asdict(p) for p in self.components], **totals}

    def __str__(self) -> str:
        rows = [(part.name, part.paper, part.stored, part.bytes) for part in self.components]
        rows.append(("total", self.paper, self.stored, self.bytes))
        width = max(len(row[0]) for row in rows)
        lines = [
            f"{self.memory}: {plural(self.classes, 'class')} in {plural(self.tasks, 'task')}",
            f"{'':{width}}  {'as the paper counts':>19}  {'really stored':>13}  {'bytes':>13}",
        ]
        lines += [f"{n:{width}}  {p:>19,}  {s:>13,}  {b:>13,}" for n, p, s, b in rows]
        return "\n".join(lines)


def component(name: str, paper: int, stored: int | None = None, width: int = 4) -> Component:
    """A component whose parameters take ``width`` bytes each."""
    stored = paper if stored is None else stored
    return Component(name, paper, stored, stored * width)


def triangle(size: int) -> int:
    """Distinct entries of a symmetric matrix."""
    return size * (size + 1) // 2
