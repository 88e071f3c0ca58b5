"""Estimate how long the remaining runs take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from frugalvae.bench.cell import Cell


class Clock:
    """Estimates the remaining time from finished runs of the same data and memory."""

    def __init__(
        self, cells: Sequence[Cell], records: Sequence[Mapping[str, Any]], slots: int
    ) -> None:
        self.slots = slots
        self.left = {cell.key: cell for cell in cells}
        self.seconds: dict[tuple[str, ...], list[float]] = {}
        for record in records:
            settings = record["settings"]
            spent = sum(sum(task.values()) for task in record["seconds"])
            self._note(settings["data"], settings["memory"]["name"], spent)

    def _note(self, data: str, memory: str, seconds: float) -> None:
        for kind in ((data, memory), (data,), ()):
            self.seconds.setdefault(kind, []).append(seconds)

    def done(self, cell: Cell, seconds: float | None) -> None:
        """A run has ended; ``None`` if it failed."""
        self.left.pop(cell.key, None)
        if seconds is not None:
            self._note(cell.data, cell.memory.name, seconds)

    def remaining(self) -> float | None:
        """Seconds to the end; ``None`` before any run has finished."""
        if not self.seconds:
            return None
        total = 0.0
        for cell in self.left.values():
            kinds: list[tuple[str, ...]] = [(cell.data, cell.memory.name), (cell.data,), ()]
            known = next(self.seconds[kind] for kind in kinds if kind in self.seconds)
            total += sum(known) / len(known)
        return total / self.slots
