"""Rows whose outer products are summed late: only when somebody needs the sum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from frugalvae.maths.arrays import Array


class LateRows:
    """Rows (n, size) that come in parts, on their way to the sum of their outer products.

    While there are fewer rows than columns, equations are solved faster from the rows than from
    their sum, and forming the sum takes longest of all. So rows wait, until they have become many
    or somebody asks for the sum; then they are let go. There may be several maps, each with rows
    and a sum of its own.

    Parameters
    ----------
    size
        The length of a row, and how many rows may wait.
    maps
        How many sums there are.
    known
        Whether all rows of the sums are here. Those of sums from a file are not.

    Examples
    --------
    >>> late = LateRows(2)
    >>> late.add([np.array([[1.0, 2.0]])])
    >>> late.known, late.all(0).tolist()
    (True, [[1.0, 2.0]])
    >>> late.summed([], np.float64)[0].tolist()
    [[1.0, 2.0], [2.0, 4.0]]
    """

    def __init__(self, size: int, maps: int = 1, known: bool = True) -> None:
        self.size, self.maps, self.known = size, maps, known
        self._waiting: list[Sequence[Array]] = []

    def __deepcopy__(self, memo: dict[int, object]) -> LateRows:
        """A copy with the same rows, which nobody changes."""
        twin = LateRows(self.size, self.maps, self.known)
        twin._waiting = list(self._waiting)
        return twin

    def all(self, number: int) -> Array:
        """Every row of a map that waits, (n, size); if they are known, every row that there was."""
        return np.concatenate([part[number] for part in self._waiting])

    def add(self, rows: Sequence[Array]) -> None:
        """Let more rows (n, size) of each map wait; ``known`` is false when these are too many."""
        self._waiting.append(rows)
        self.known = self.known and sum(len(part[0]) for part in self._waiting) <= self.size

    def summed(self, totals: Sequence[Array], dtype: Any) -> list[Array]:
        """The sums (size, size) with every row in them, given what they were: none at first.

        They are changed in place.
        """
        totals = totals or [np.zeros((self.size, self.size), dtype) for _ in range(self.maps)]
        for number, total in enumerate(totals if self._waiting else []):
            rows = self.all(number)
            total += rows.T @ rows
        self._waiting, self.known = [], False
        return list(totals)

    def diagonals(self, totals: Sequence[Array]) -> Array:
        """The diagonals of the sums, (maps, size): if these are finite, all of them is."""
        found = np.stack([total.diagonal() for total in totals]) if totals else np.zeros((1, 1))
        for part in self._waiting:
            found = found + np.stack([np.einsum("ns,ns->s", rows, rows) for rows in part])
        return found
