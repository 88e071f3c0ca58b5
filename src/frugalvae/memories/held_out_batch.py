"""Samples of a batch are held out, and classified by the rule without them.

In closed form: the rule is not fitted again (:func:`frugalvae.maths.held_out.hold_out`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from frugalvae.maths.arrays import Array
from frugalvae.maths.held_out import HeldOutRows, hold_out
from frugalvae.maths.margins import margins_of
from frugalvae.maths.posterior import Posterior
from frugalvae.maths.typicality import Typicality
from frugalvae.memories.evidence import (
    HELD_OUT,
    LEAST_LEAD,
    Evidence,
    HeldOut,
    Shifts,
    spread_over,
    tempered,
)

FOLDS, FOLDS_AND_CLASSES = (3, 10), 600  # at least and at most; their product with the classes
HELD_OUT_IN_ALL = 500  # samples of a batch that are held out, if its classes are few
CLASSES_COMPARED = 2048  # of more, some stand for all


@dataclass(frozen=True)
class HeldOutBatch:
    """A batch that was just taught, by the rule that it gave.

    Attributes
    ----------
    rule
        What scores rows.
    owners
        The class of each row of the batch: its column in scores, (n,).
    taught
        The classes that can be held out.
    cut
        What the rows of classes that were cut look like without some samples.
    whiten
        Whitened coordinates (m, d) of the means of m groups of rows, given by their numbers.
    power
        To which densities are taken.
    """

    rule: Posterior
    owners: Array
    taught: list[int]
    cut: Mapping[int, HeldOut]
    whiten: Callable[[list[Array]], Array]
    power: float

    def evidence(self, ratios: Array) -> tuple[dict[int, Evidence], Array]:
        """What was found of each class, and how typical of its class each held-out sample was."""
        folds, typical, scores = self.folds, [], []
        left = np.zeros(len(self.rule.targets))
        rows = self.whiten([np.array([row]) for row in np.concatenate(folds)])
        ends = np.cumsum([len(fold) for fold in folds])
        for fold, white in zip(folds, np.split(rows, ends[:-1]), strict=True):
            held = self._held_out(white, self.owners[fold])
            typical.append(Typicality.of(held.rule, ratios)(held.white, held.scores))
            scores.append(tempered(held.scores, held.white))
            np.add.at(left, self.owners[fold], held.rule.moments.counts[self.owners[fold]])
        owners, all_scores = self.owners[np.concatenate(folds)], np.concatenate(scores)
        found = self._halves()
        for column, own in _by_class(owners):
            each = Evidence.of(all_scores[own], column, left[column] / own.sum())
            found[column] = found.get(column, Evidence()) + each
        for column, crowded in self._crowded(all_scores, owners).items():
            found[column] += crowded
        return found, np.concatenate(typical)

    @cached_property
    def folds(self) -> list[Array]:
        """Numbers of rows that are held out together, some of each class.

        Of a class whose rows were cut there is one fold: a quarter of its new samples.
        """
        most = int(np.clip(FOLDS_AND_CLASSES // len(self.rule.targets), *FOLDS))
        limit = max(HELD_OUT, HELD_OUT_IN_ALL // len(self.taught))
        folds: list[list[Array]] = [[] for _ in range(most)]
        for column in self.taught:
            new = np.flatnonzero(self.owners == column)
            if column in self.cut:
                folds[0].append(new[self.cut[column].rows])
                continue
            each = max(1, min(len(new), limit) // 10)
            rows = new[spread_over(len(new), min(len(new), limit, most * each))]
            for number, start in enumerate(range(0, len(rows), each)):
                folds[number].append(rows[start : start + each])
        return [np.concatenate(fold) for fold in folds if fold]

    def _held_out(
        self, white: Array, owners: Array, fewer: Mapping[int, tuple[Array, float]] | None = None
    ) -> HeldOutRows:
        without = {column: (own.axes, own.sizes) for column, own in self.cut.items()}
        return hold_out(self.rule, white, owners, without, fewer or {})

    def _halves(self) -> dict[int, Evidence]:
        """How samples are classified if their class has only half of its samples."""
        scored, others = [], {}
        for column in self.taught:
            new, count = (
                np.flatnonzero(self.owners == column),
                int(self.rule.moments.counts[column]),
            )
            out = min(len(new), count // 2)
            kept = self.cut[column].rows if column in self.cut else spread_over(len(new), out)
            kept = kept[:HELD_OUT][:out]
            scored.append(new[kept])
            rest = np.delete(new, kept)[: out - len(kept)]
            if len(rest):
                others[column] = rest
        rows = np.concatenate(scored)
        white = self.whiten([*(np.array([row]) for row in rows), *others.values()])
        means = zip(others.items(), white[len(rows) :], strict=True)
        fewer = {column: (len(rest) * mean, float(len(rest))) for (column, rest), mean in means}
        owners = self.owners[rows]
        held = self._held_out(white[: len(rows)], owners, fewer)
        right = margins_of(held.scores, owners) > 0
        return {
            column: Evidence.of_half(right[own], float(held.rule.moments.counts[column]))
            for column, own in _by_class(owners)
        }

    def _crowded(self, scores: Array, owners: Array) -> dict[int, Evidence]:
        """What either half of the other classes takes from samples of a class, and should take."""
        columns = np.arange(scores.shape[1])
        if len(columns) < 4:
            return {}
        each, classes = np.arange(len(scores)), np.unique(owners)
        right = margins_of(scores, owners) > 0
        taken, supposed = np.zeros(len(scores)), np.zeros(len(scores))
        for half in (columns[::2], columns[1::2]):
            rest = np.setdiff1d(columns, half)
            lost = np.zeros(len(columns))
            lost[classes] = losses(self.rule, self.power, classes, half, rest)
            others = np.where(owners[:, None] == half, -np.inf, scores[:, half])
            margins = scores[each, owners] - others.max(axis=1)
            taken += ((margins > 0) * 1.0 - right) / 2
            supposed += ((margins > 0) * 1.0 - (margins > lost[owners])) / 2
        return {
            column: Evidence.of_shifts(Shifts(taken=taken[own].sum(), supposed=supposed[own].sum()))
            for column, own in _by_class(owners)
        }


def losses(rule: Posterior, power: float, columns: Array, known: Array, new: Array) -> Array:
    """What margins of classes lose to ``new`` ones besides ``known`` ones, (columns,).

    A class r takes samples of a class c about as ``exp(-t |m_c - m_r|^2 / 8)``: that is the overlap
    of Gaussians to the power t. If new classes take a share x of what known ones do, the odds of
    the right class fall by 1 + x, and its margins by log(1 + x) / t.
    """
    targets, squares = rule.targets, (rule.targets**2).sum(axis=1)
    length = max(rule.shared.noise * rule.rank + squares.mean(), LEAST_LEAD) ** 0.5
    scale = power / length / max(squares.mean(), LEAST_LEAD) ** 0.5 / 8
    taken = []  # the logarithm of what either takes
    for side in (known, new):
        some = side[:: 1 + len(side) // CLASSES_COMPARED]
        apart = squares[columns][:, None] + squares[some] - 2 * targets[columns] @ targets[some].T
        near = np.where(columns[:, None] == some, np.inf, apart)
        taken.append(_log_sum(-scale * near) + np.log(len(side) / len(some)))
    lost: Array = np.logaddexp(0, taken[1] - taken[0]) / power
    return lost


def _by_class(owners: Array) -> list[tuple[int, Array]]:
    return [(column, owners == column) for column in np.unique(owners).tolist()]


def _log_sum(logs: Array) -> Array:
    top = np.maximum(logs.max(axis=-1), -1e30)
    total: Array = top + np.log(np.exp(logs - top[..., None]).sum(axis=-1) + 1e-300)
    return total
