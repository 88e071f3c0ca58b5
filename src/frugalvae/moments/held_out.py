"""Samples of a batch are held out, and classified by the rule without them.

In closed form: the rule is not fitted again (:func:`frugalvae.moments.held_out.hold_out`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from frugalvae.maths.arrays import Array
from frugalvae.maths.matrices import principal_axes
from frugalvae.moments.evidence import (
    HELD_OUT,
    LEAST_LEAD,
    Evidence,
    HeldOut,
    Shifts,
    margins_of,
    spread_over,
    tempered,
)
from frugalvae.moments.rule import Posterior, class_means, lack_of
from frugalvae.moments.typicality import Typicality

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


# Taught rows, all as if none of them had been taught.


LEAST_LEFT = 0.02  # of W along rows that are held out


class HeldOutRows(NamedTuple):
    """Rows that a rule was not taught: the rule, the rows as it whitens them, and their scores."""

    rule: Posterior
    white: Array
    scores: Array


def hold_out(
    taught: Posterior,
    white: Array,
    owners: Array,
    without: Mapping[int, tuple[Array, Array]] = MappingProxyType({}),
    fewer: Mapping[int, tuple[Array, float]] = MappingProxyType({}),
) -> HeldOutRows:
    """Scores of taught rows, all as if none of them had been taught.

    W, the class means and their prior, and the scatters of the rows' own classes are those
    without the rows: in whitened coordinates W loses as many outer products as there are
    rows, and classes. The ridge, what a sample is off by, and what other classes' own scatters
    say are left as they are. Each class must have more samples than rows.

    Parameters
    ----------
    taught
        The rule with the rows.
    white
        Whitened rows, (n, d).
    owners
        The class of each, (n,).
    without
        Axes and sizes of classes' scatters that do not contain the rows; needed where rows of
        a class were cut, for which ones are kept depends on the samples.
    fewer
        The sum (d,) and the number of further samples that class means do without.
    """
    rank, counts = taught.rank, taught.moments.counts.astype(np.float64)
    lost, sums = np.bincount(owners, minlength=len(counts)), np.zeros_like(taught.deviations)
    np.add.at(sums, owners, white)
    left, around = (counts - lost)[:, None], sums - lost[:, None] * taught.deviations  # (k, d)
    means = taught.deviations - around / left
    own, labels = white - taught.deviations[owners], np.unique(owners)
    gaps = around[labels] / np.sqrt(left[labels])
    gone = np.concatenate([own, gaps])[:, :rank]  # rows that the scatter loses
    stretch = _Stretch.of(gone, max(1.0, counts.sum() - len(counts)))
    left = left[:, 0]
    for label, (total, more) in fewer.items():
        means[label] -= (total - more * means[label]) / (left[label] - more)
        left[label] -= more
    known = taught.shared.noise, taught.prior.weight, taught.prior.off
    centre, parts = class_means(stretch(means), left, rank, *known)
    rule = replace(
        taught,
        moments=replace(taught.moments, counts=left),
        centre=taught.centre + centre,
        scatters=taught.scatters.with_counts(counts, left),
        lack=lack_of(left),
        **parts,
    )
    rows = stretch(white) - centre
    linear = rows @ rule.targets.T + rule.constants
    added = taught.from_scatters(white)
    targets = stretch.back(rule.targets[labels] + centre)
    for label, gap, target in zip(labels, gaps, targets, strict=True):
        mine = owners == label
        scatter = without.get(label) or taught.scatters.without(
            label, np.concatenate([own[mine], gap[None]])[:, :rank]
        )
        share = rule.scatters.weights[label] * left[label] / (counts[label] - lost[label])
        away = (white[mine] - target)[:, :rank]
        added[mine, label] = taught.scatters.added_by(*scatter, share, away)
    return HeldOutRows(rule, rows, rule.total(linear, added, rows))


@dataclass(frozen=True)
class _Stretch:
    """Whitens coordinates in which W is the identity less some outer products."""

    axes: Array  # (j, r)
    left: Array  # W along them, (j,)

    @classmethod
    def of(cls, gone: Array, freedom: float) -> _Stretch:
        """Without the outer products of rows (n, r), divided by ``freedom``."""
        values, axes = principal_axes(gone)
        return cls(axes.T, np.maximum(1 - values / freedom, LEAST_LEFT))

    def __call__(self, rows: Array) -> Array:
        return self._scaled(rows, self.left**-0.5)

    def back(self, rows: Array) -> Array:
        return self._scaled(rows, self.left**0.5)

    def _scaled(self, rows: Array, factors: Array) -> Array:
        rank, scaled = self.axes.shape[1], rows.copy()
        along = rows[:, :rank] @ self.axes.T
        scaled[:, :rank] += (along * (factors - 1)) @ self.axes
        return scaled


# Taught rows, each as if its class had been taught without it: all in closed form.


MOST_LOST = 0.9  # of W along a row, that the row itself may make


@dataclass(frozen=True)
class LeftOutRows:
    """Whitened rows of classes that have two samples or more.

    Attributes
    ----------
    rule
        What was taught all rows.
    white
        The rows, (n, d). Large products are computed in their type.
    owners
        The class of each, (n,).
    """

    rule: Posterior
    white: Array
    owners: Array

    @cached_property
    def targets(self) -> Array:
        """The mean of each row's class after the prior, without the row, (n, d)."""
        rule, prior, dtype = self.rule, self.rule.prior, self.white.dtype
        counts = rule.moments.counts
        fewer = (counts[self.owners] - 1).astype(dtype)
        plain = prior.shrunk(rule.deviations, counts)
        squares = np.maximum((plain**2).sum(axis=1), 1e-30)
        drawn = np.sqrt((rule.targets**2).sum(axis=1) / squares).astype(dtype)
        cast = replace(
            prior, axes=prior.axes.astype(dtype), variances=prior.variances.astype(dtype)
        )
        mean = rule.deviations.astype(dtype)[self.owners]
        targets: Array = cast.shrunk(mean + (mean - self.white) / fewer[:, None], fewer)
        targets *= drawn[self.owners, None]
        return targets

    @cached_property
    def scores(self) -> Array:
        """Log densities (n, k), up to a term that all classes share."""
        rule, rank = self.rule, self.rule.rank
        linear, added = self.from_means[0], rule.from_scatters(self.white)
        for label in np.unique(self.owners):
            mine = self.owners == label
            away = (self.white[mine] - self.targets[mine])[:, :rank]
            added[mine, label] = rule.scatters.added_without(
                label, rule.moments.counts[label], self._around[mine], away
            )
        return rule.total(linear, added, self.white)

    @cached_property
    def from_means(self) -> tuple[Array, Array]:
        """Scores as if classes had no scatters of their own, and cosines with means, (n, k)."""
        rule, white, inside = self.rule, self.white, self.white[:, : self.rule.rank]
        own = np.arange(len(white)), self.owners
        means = rule.targets.astype(white.dtype)
        products = white @ means.T  # (n, k)
        along = self._around @ means[:, : rule.rank].T  # (n, k)
        products[own], along[own] = _dots(white, self.targets), _dots(self._around, self.targets)
        squares = np.broadcast_to((rule.targets**2).sum(axis=1), products.shape).copy()
        more = (self._part / (1 - self._lost))[:, None]  # of the inverse of W
        scores = products + more * (_dots(inside, self._around)[:, None] * along - along**2 / 2)
        scores += rule.constants + squares / 2
        squares[own] = (self.targets.astype(np.float64) ** 2).sum(axis=1)
        scores -= squares / 2
        lengths = np.linalg.norm(white, axis=1)[:, None]
        return scores, products / np.maximum(lengths * np.sqrt(squares), 1e-30)

    @cached_property
    def rows(self) -> Array:
        """The rows (n, d) as the shared covariance without each of them whitens them.

        It is smaller along the row, so the row is further out.
        """
        rows, rank, around = self.white.copy(), self.rule.rank, self._around
        stretch = (1 / np.sqrt(1 - self._lost) - 1) / np.maximum(_dots(around, around), 1e-30)
        rows[:, :rank] += (stretch * _dots(rows[:, :rank], around))[:, None] * around
        return rows

    def typicality(self, judge: Typicality) -> Array:
        """How typical each row is of the class that scores highest without it, (n,)."""
        columns = self.scores.argmax(axis=1)
        along, own = judge.along[columns], columns == self.owners  # (n, j), (n,)
        along[own] = self.targets[own, : self.rule.rank] @ self.rule.prior.axes
        return judge.judged(self.rows, self.scores, columns, along)

    @cached_property
    def _around(self) -> Array:
        """The rows around their class means, (n, r)."""
        rank = self.rule.rank
        means = self.rule.deviations[:, :rank].astype(self.white.dtype)
        around: Array = self.white[:, :rank] - means[self.owners]
        return around

    @property
    def _part(self) -> Array:
        """What a row's outer product around its class mean is divided by in W, inverted, (n,)."""
        every = self.rule.moments.counts
        counts, freedom = every[self.owners], max(1.0, every.sum() - len(every))
        part: Array = counts / (counts - 1) / freedom
        return part

    @property
    def _lost(self) -> Array:
        """The share (n,) of W along each row around its class mean that the row itself makes."""
        return np.minimum(self._part * _dots(self._around, self._around), MOST_LOST)


def _dots(one: Array, two: Array) -> Array:
    """The products of rows, over the coordinates that both have, (n,)."""
    width = min(one.shape[1], two.shape[1])
    dots: Array = np.einsum("nd,nd->n", one[:, :width], two[:, :width])
    return dots
