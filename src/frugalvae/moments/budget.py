"""The budget: what the default memory costs, what fits, and what is cut."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from frugalvae.errors import InputError, check_number
from frugalvae.maths.arrays import Array, leading
from frugalvae.moments.rule import SharedCovariance
from frugalvae.moments.sums import ClassSums, batched_classes
from frugalvae.parts.protocols import Component, triangle

UNITS = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9}
PER_CLASS, PER_CLASS_BYTES = 16, 64  # count, squares, scale, rows, and how sure answers were
MARGINS, MARGINS_BYTES = 56, 80  # and, once samples were held out, their margins,
MARGINS_SHARE = 0.02  # if they take no more than this of a given budget
MEAN, COVARIANCE, ROW = 2, 2, 1  # bytes of one parameter
SCALE = 4  # bytes of the scale of a row, and of a variance beyond its correlations
CLASSES_HELD_OUT = 200  # whose rows are also found without some samples
HELD_OUT = 25  # samples of a class, in one batch, that are held out
FEW = 128  # rows whose principal axes are found at once


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
class Budget:
    """A budget, in bytes or in parameters.

    >>> Budget.of("3MB"), Budget.of(500_000)
    (Budget(limit=3000000, in_bytes=True), Budget(limit=500000, in_bytes=False))
    """

    limit: int
    in_bytes: bool
    usual: bool = field(default=False, repr=False)  # nobody has given it

    @classmethod
    def of(cls, budget: int | str) -> Budget:
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

    @classmethod
    def usual_for(cls, dim: int, classes: int) -> Budget:
        """The default one."""
        return cls(usual_bytes(dim, classes), in_bytes=True, usual=True)

    def format_amount(self, amount: int) -> str:
        """An amount in words."""
        return f"{amount:,} {'bytes' if self.in_bytes else 'parameters'}"

    def has_margins(self, classes: int) -> bool:
        """Whether there is room for the margins of samples that were held out."""
        cost = (MARGINS_BYTES if self.in_bytes else MARGINS) * classes
        return self.usual or cost <= MARGINS_SHARE * self.limit

    def whole(self, dim: int, classes: int, rows: int) -> int:
        """The cost while the rows of all classes say everything."""
        return self._cost(Budget.components(dim, classes, dim, 0, rows, self.has_margins(classes)))

    def summed(self, dim: int, classes: int, rank: int, rows: int) -> int:
        """The cost with a covariance of ``rank`` coordinates."""
        return self._cost(
            Budget.components(dim, classes, rank, rank, rows, self.has_margins(classes))
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


def allot_rows(wanted: Mapping[int, int], room: int) -> dict[int, int]:
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


def cut_to_budget(
    sums: ClassSums,
    budget: Budget,
    directions: int | None,
    new: Mapping[int, int],
    hold_out: bool = True,
) -> tuple[dict[int, HeldOutScatter], SharedCovariance | None]:
    """Cut what exceeds the budget, and mix the rows of each class.

    ``new`` are the classes that have changed, and from which row on; ``directions`` is the most
    rows of a class. Returns what scatters look like without some of the new samples, where rows
    were cut, and W, if it was needed. Warns if the means alone exceed the budget.
    """
    classes, dim = len(sums.counts), sums.dim
    most = sums.rank if directions is None else min(sums.rank, directions)
    wanted = {
        label: min(len(root), max(0, sums.counts[label] - 1), most)
        for label, root in sums.roots.items()
    }
    uncut = directions is None or max(sums.counts.values()) - 1 <= directions
    rows = sum(wanted.values())
    if sums.is_whole and uncut and budget.whole(dim, classes, rows) <= budget.limit:
        sums.mix(new)
        return {}, None
    if sums.is_whole:
        new = dict.fromkeys(sums.roots, 0) | dict(new)
    sums.sum_up()
    sums.lower_rank(budget.rank(dim, classes, rows))
    allowed = allot_rows(wanted, budget.rows(dim, classes, sums.rank))
    spent = budget.summed(dim, classes, sums.rank, 0)
    if spent > budget.limit:
        warnings.warn(
            f"{classes} classes of {dim} features take {budget.format_amount(spent)} without any "
            f"row of their own: more than the budget of {budget.format_amount(budget.limit)}",
            stacklevel=4,
        )
    return _cut_rows(sums, allowed, new, hold_out)


def _cut_rows(
    sums: ClassSums, allowed: Mapping[int, int], new: Mapping[int, int], hold_out: bool
) -> tuple[dict[int, HeldOutScatter], SharedCovariance | None]:
    """Keep of each class the combinations of rows in which it varies most beyond the others.

    Rows of classes that did not change are in that order already.
    """
    long = [label for label, root in sums.roots.items() if len(root) > allowed[label]]
    sums.mix(set(new) - set(long))
    changed = [label for label in long if label in new and allowed[label]]
    without: dict[int, HeldOutScatter] = {}
    shared = SharedCovariance.of(sums.moments_of_some()) if changed else None
    for some in batched_classes({label: len(sums.roots[label]) for label in changed}):
        rows = [sums.roots[label].astype(np.float32) for label in some]
        ends = np.cumsum([len(own) for own in rows])[:-1]
        assert shared is not None
        whitened = np.split(shared.whiten(np.concatenate(rows)), ends)  # (., rank) each
        for label, white in zip(some, whitened, strict=True):
            longest = leading(white, allowed[label])  # (rows, m)
            sums.roots[label] = longest.T @ sums.roots[label]
            if hold_out and len(without) < CLASSES_HELD_OUT:
                without[label] = HeldOutScatter.of(white, longest.T @ white, new[label])
    for label in long:
        sums.roots[label] = sums.roots[label][: allowed[label]].copy()
    return without, shared


class HeldOutScatter(NamedTuple):
    """The scatter of a class without some new samples: axes, sizes, and which were left out."""

    axes: Array
    sizes: Array
    rows: Array

    @classmethod
    def of(cls, white: Array, leading: Array, first: int) -> HeldOutScatter:
        """Of whitened rows (n, r), new from the row ``first`` on, and the leading ones (m, r).

        Of many other rows the leading axes are found by two steps of orthogonal iteration.
        """
        new = len(white) - first
        rows = evenly_spaced(new, min(HELD_OUT, max(1, new // 4)))
        rest = np.delete(white, first + rows, axis=0)
        if len(rest) <= FEW:
            values, vectors = np.linalg.eigh((rest @ rest.T).astype(np.float64))
            kept = np.flatnonzero(values > 1e-6 * values.max(initial=1e-30))[::-1][: len(leading)]
            roots = (vectors[:, kept] / np.sqrt(values[kept])).astype(np.float32)
            return cls(roots.T @ rest, values[kept], rows)
        axes = leading.T  # (r, m)
        for _ in range(2):
            axes = np.linalg.qr(rest.T @ (rest @ axes))[0]
        along = rest @ axes  # (n - count, m)
        sizes, vectors = np.linalg.eigh((along.T @ along).astype(np.float64))
        return cls((axes @ vectors.astype(np.float32)).T, np.maximum(sizes, 0), rows)


def evenly_spaced(samples: int, count: int) -> Array:
    """So many of the samples, from first to last.

    >>> evenly_spaced(10, 4).tolist()
    [0, 2, 5, 7]
    """
    rows: Array = np.arange(count) * samples // max(count, 1)
    return rows
