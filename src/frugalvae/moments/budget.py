"""Room: what a moment memory costs, and what a budget leaves for each part of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from frugalvae.errors import InputError, check_number
from frugalvae.parts.cost import Component, triangle

UNITS = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9}
PER_CLASS, PER_CLASS_BYTES = 16, 64  # count, squares, scale, rows, and how sure answers were
MARGINS, MARGINS_BYTES = 56, 80  # and, once samples were held out, their margins,
MARGINS_SHARE = 0.02  # if they take no more than this of a given budget
MEAN, COVARIANCE, ROW = 2, 2, 1  # bytes of one parameter
SCALE = 4  # bytes of the scale of a row, and of a variance beyond its correlations


def usual_bytes(dim: int, classes: int) -> int:
    """The default budget, in bytes.

    Each class beyond 200 adds room for its mean and two rows.

    >>> usual_bytes(512, 100), usual_bytes(1280, 200), usual_bytes(1280, 201)
    (2018320, 3992000, 3997268)
    """
    further = MEAN * dim + 2 * ROW * (dim + SCALE) + PER_CLASS_BYTES
    margins = (MARGINS_BYTES - 4) * classes  # which cost no rows
    return 700_000 + 2_560 * dim + further * max(0, classes - 200) + margins


@dataclass(frozen=True)
class Room:
    """A budget, in bytes or in parameters.

    >>> Room.of("3MB"), Room.of(500_000)
    (Room(limit=3000000, in_bytes=True), Room(limit=500000, in_bytes=False))
    """

    limit: int
    in_bytes: bool
    usual: bool = field(default=False, repr=False)  # nobody has given it

    @classmethod
    def of(cls, budget: int | str) -> Room:
        """A number of parameters, or bytes such as ``"3MB"``."""
        if not isinstance(budget, str):
            check_number("budget", budget, 1, 2**53, whole=True)
            return cls(int(budget), in_bytes=False)
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kKMG]?B)\s*", budget)
        limit = int(float(found[1]) * UNITS[found[2]]) if found else 0
        if not 1 <= limit <= 2**53:
            raise InputError(
                f"budget is {budget!r}; expected bytes, such as '3MB' or '500kB', or a number of "
                "parameters"
            )
        return cls(limit, in_bytes=True)

    def said(self, amount: int) -> str:
        """An amount in words."""
        return f"{amount:,} {'bytes' if self.in_bytes else 'parameters'}"

    def has_margins(self, classes: int) -> bool:
        """Whether there is room for the margins of samples that were held out."""
        cost = (MARGINS_BYTES if self.in_bytes else MARGINS) * classes
        return self.usual or cost <= MARGINS_SHARE * self.limit

    def whole(self, dim: int, classes: int, rows: int) -> int:
        """The cost while the rows of all classes say everything."""
        return self._cost(Room.components(dim, classes, dim, 0, rows, self.has_margins(classes)))

    def summed(self, dim: int, classes: int, rank: int, rows: int) -> int:
        """The cost with a covariance of ``rank`` coordinates."""
        return self._cost(
            Room.components(dim, classes, rank, rank, rows, self.has_margins(classes))
        )

    def rank(self, dim: int, classes: int, rows: int) -> int:
        """How many coordinates the covariance may have, if classes want so many rows.

        It gets half of what the means leave, and what the rows do not need.
        """
        left = max(0, self.limit - self.summed(dim, classes, 0, 0))
        entry, per_row = (COVARIANCE, ROW) if self.in_bytes else (1, 1)
        half = (left / entry) ** 0.5
        need = rows * per_row / entry
        all_rows = (need**2 + 2 * max(0, left - SCALE * rows) / entry) ** 0.5 - need
        rank = max(1, min(dim, int(max(half, all_rows)) - 2))
        return dim if self.summed(dim, classes, dim, 0) <= left / 2 else rank

    def rows(self, dim: int, classes: int, rank: int) -> int:
        """How many rows all classes together may have beside a covariance."""
        left = self.limit - self.summed(dim, classes, rank, 0)
        return max(0, left) // (ROW * rank + SCALE if self.in_bytes else rank + 1)

    def _cost(self, parts: list[Component]) -> int:
        return sum(part.bytes if self.in_bytes else part.stored for part in parts)

    @staticmethod
    def components(
        dim: int, classes: int, width: int, rank: int, rows: int, margins: bool = True
    ) -> list[Component]:
        """Means, a covariance of ``rank`` coordinates, and rows of ``width``, of all classes."""
        parameters, room = PER_CLASS + MARGINS * margins, PER_CLASS_BYTES + MARGINS_BYTES * margins
        parts = [
            Component("means", classes * dim, classes * dim, MEAN * classes * dim),
            Component(
                "shared covariance",
                rank**2,
                triangle(rank),
                COVARIANCE * (triangle(rank) - rank) + SCALE * rank,
            ),
            Component(
                "class scatters", rows * width, rows * (width + 1), rows * (ROW * width + SCALE)
            ),
            Component("class statistics", 0, parameters * classes, room * classes),
        ]
        return [part for part in parts if part.stored]


def shared_out(wanted: Mapping[int, int], room: int) -> dict[int, int]:
    """Rows per class: what each wants, at most equally many, and the rest to the first ones."""
    sizes = np.array(list(wanted.values()))
    limits = np.arange(int(sizes.max(initial=0)) + 1)
    totals = np.minimum(sizes, limits[:, None]).sum(axis=1)  # if no class exceeds the limit
    limit = int(limits[totals <= room].max())
    left = room - int(np.minimum(sizes, limit).sum())
    more = np.flatnonzero(sizes > limit)[: max(0, left)]
    allowed = np.minimum(sizes, limit)
    allowed[more] += 1
    return dict(zip(wanted, allowed.tolist(), strict=True))
