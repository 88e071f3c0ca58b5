"""Taught rows, all as if none of them had been taught: in closed form, no rule is fitted again.

Rows are held out in folds, a few of each class at a time (:func:`folds_of`, :func:`hold_out`).
Whatever wants to know how samples look that were not taught asks here: how sure answers may be
and how many will be right (:func:`gather_evidence`), what is unknown, and which labels are wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from frugalvae.maths.arrays import Array, logsumexp, principal_axes
from frugalvae.moments.budget import HELD_OUT, HeldOutScatter, evenly_spaced
from frugalvae.moments.evidence import (
    BINS,
    EDGES,
    GRID,
    LEAST_LEAD,
    Evidence,
    MarginCorrections,
    errors_at_most,
    gap_for_coverage,
    lead_for_error,
    margins_of,
    share_above,
    tempered,
)
from frugalvae.moments.rule import Posterior, class_means, lack_of
from frugalvae.moments.sums import CLASSES_COMPARED

LEAST_LEFT = 0.02  # of W along rows that are held out
FOLDS, FOLDS_AND_CLASSES = (3, 10), 600  # at least and at most; their product with the classes
LARGEST_FOLD = 8192  # rows
HELD_OUT_IN_ALL = 500  # samples of a batch that are held out, if its classes are few
COSINE = 4.0  # the weight of the cosine beside the share
EXPECTED = 0.8  # of what is expected of a class, that is taken off
TINY = 1e-12
NEAR, LEAST_DENSITY = 0.04, 0.1  # where margins decide; how many are there, at least
LEAST_NEARER = 1e-4  # by how much fewer samples half of them are than all but the held-out ones
DAMPED = 0.85  # more classes also mean more samples, from which old classes gain
PRIOR = 5.0  # wrong answers due to other classes that are as many as they should be
POOLED = 5.0  # samples that the other classes' margins are worth beside a class's own
UNSURE = 0.4  # of what later classes and more samples have changed: a standard deviation
NINETY = 1.645  # standard deviations on either side that nine in ten are within
ENOUGH = 10  # held-out samples, below which nothing is said of a class, or of all of them


class HeldOutRows(NamedTuple):
    """Rows that a rule was not taught: the rule, the rows as it whitens them, and their scores."""

    rule: Posterior
    white: Array
    scores: Array


def hold_out(
    taught: Posterior,
    white: Array,
    owners: Array,
    cut: Mapping[int, HeldOutScatter] = MappingProxyType({}),
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
    cut
        Classes' scatters that do not contain the rows; needed where rows of a class were cut, for
        which ones are kept depends on the samples.
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
    whitener = DowndatedWhitener.of(gone, max(1.0, counts.sum() - len(counts)))
    left = left[:, 0]
    for label, (total, more) in fewer.items():
        means[label] -= (total - more * means[label]) / (left[label] - more)
        left[label] -= more
    known = taught.shared.noise, taught.prior.weight, taught.prior.off
    centre, parts = class_means(whitener.whiten(means), left, rank, *known)
    rule = replace(
        taught,
        moments=replace(taught.moments, counts=left),
        centre=taught.centre + centre,
        scatters=taught.scatters.with_counts(counts, left),
        lack=lack_of(left),
        **parts,
    )
    rows = whitener.whiten(white) - centre
    linear = rows @ rule.targets.T + rule.constants
    added = taught.from_scatters(white)
    targets = whitener.unwhiten(rule.targets[labels] + centre)
    for label, gap, target in zip(labels, gaps, targets, strict=True):
        mine = owners == label
        if label in cut:
            axes, sizes = cut[label].axes, cut[label].sizes
        else:
            rows_of_class = np.concatenate([own[mine], gap[None]])[:, :rank]
            axes, sizes = taught.scatters.without(label, rows_of_class)
        share = rule.scatters.weights[label] * left[label] / (counts[label] - lost[label])
        away = (white[mine] - target)[:, :rank]
        added[mine, label] = taught.scatters.added_by(axes, sizes, share, away)
    return HeldOutRows(rule, rows, rule.total(linear, added, rows))


@dataclass(frozen=True)
class DowndatedWhitener:
    """Whitens coordinates in which W is the identity less some outer products."""

    axes: Array  # (j, r)
    left: Array  # W along them, (j,)

    @classmethod
    def of(cls, gone: Array, freedom: float) -> DowndatedWhitener:
        """Without the outer products of rows (n, r), divided by ``freedom``."""
        values, axes = principal_axes(gone)
        return cls(axes.T, np.maximum(1 - values / freedom, LEAST_LEFT))

    def whiten(self, rows: Array) -> Array:
        """Rows (n, d) in coordinates in which what is left of W is the identity."""
        return self._scaled(rows, self.left**-0.5)

    def unwhiten(self, rows: Array) -> Array:
        """The inverse."""
        return self._scaled(rows, self.left**0.5)

    def _scaled(self, rows: Array, factors: Array) -> Array:
        rank, scaled = self.axes.shape[1], rows.copy()
        along = rows[:, :rank] @ self.axes.T
        scaled[:, :rank] += (along * (factors - 1)) @ self.axes
        return scaled


def folds_of(rows_of_class: Sequence[Array], count: int) -> list[Array]:
    """Numbers of rows to hold out together: of each class about as many in each fold.

    >>> [fold.tolist() for fold in folds_of([np.arange(4), np.array([7, 8])], 3)]
    [[0, 3, 7], [1, 8], [2]]
    """
    count = max(count, sum(map(len, rows_of_class)) // LARGEST_FOLD)
    folds = [np.concatenate([own[first::count] for own in rows_of_class]) for first in range(count)]
    return [fold for fold in folds if len(fold)]


@dataclass(frozen=True)
class Batch:
    """A batch that was just taught.

    Attributes
    ----------
    rule
        The rule that it gave.
    owners
        The class of each row of the batch: its column in scores, (n,).
    held
        The classes that can be held out.
    cut
        The scatters without some samples of classes whose rows were cut.
    whiten
        Whitened coordinates (m, d) of the means of m groups of rows, given by their numbers.
    power
        To which densities are taken.
    """

    rule: Posterior
    owners: Array
    held: list[int]
    cut: Mapping[int, HeldOutScatter]
    whiten: Callable[[list[Array]], Array]
    power: float

    def rows_of(self, column: int) -> Array:
        """Numbers of rows of a class."""
        return np.flatnonzero(self.owners == column)

    def folds(self) -> list[Array]:
        """Some rows of each class in folds; of one that was cut, those that it was cut without."""
        limit = max(HELD_OUT, HELD_OUT_IN_ALL // len(self.held))
        cut, whole = np.empty(0, np.int64), []
        for column in self.held:
            rows = self.rows_of(column)
            if column in self.cut:
                cut = np.concatenate([cut, rows[self.cut[column].rows]])
            else:
                whole.append(rows[evenly_spaced(len(rows), min(len(rows), limit))])
        count = int(np.clip(FOLDS_AND_CLASSES // len(self.rule.targets), *FOLDS))
        folds = folds_of(whole, count) if whole else []
        return [np.concatenate([cut, *folds[:1]]), *folds[1:]]

    def without_half(self) -> tuple[HeldOutRows, Array]:
        """Some rows where their class has only half of its samples, and their classes (n,)."""
        scored, others = [], {}
        for column in self.held:
            rows, count = self.rows_of(column), int(self.rule.moments.counts[column])
            out = min(len(rows), count // 2)
            kept = self.cut[column].rows if column in self.cut else evenly_spaced(len(rows), out)
            kept = kept[:HELD_OUT][:out]
            scored.append(rows[kept])
            rest = np.delete(rows, kept)[: out - len(kept)]
            if len(rest):
                others[column] = rest
        chosen = np.concatenate(scored)
        white = self.whiten([*(np.array([row]) for row in chosen), *others.values()])
        means = zip(others.items(), white[len(chosen) :], strict=True)
        fewer = {column: (len(rest) * mean, float(len(rest))) for (column, rest), mean in means}
        owners = self.owners[chosen]
        return hold_out(self.rule, white[: len(chosen)], owners, self.cut, fewer), owners


def gather_evidence(batch: Batch, ratios: Array) -> tuple[dict[int, Evidence], Array]:
    """What a batch tells of each of its classes, and how typical each held-out sample was.

    ``ratios`` (k,) are the variances of classes relative to W's.
    """
    found, typical, tempered_scores = dict[int, Evidence](), [], []
    folds = batch.folds()
    left = np.zeros(len(batch.rule.targets))
    rows = batch.whiten([np.array([row]) for row in np.concatenate(folds)])
    ends = np.cumsum([len(fold) for fold in folds])
    for fold, white in zip(folds, np.split(rows, ends[:-1]), strict=True):
        held = hold_out(batch.rule, white, batch.owners[fold], batch.cut)
        typical.append(Typicality.of(held.rule, ratios)(held.white, held.scores))
        tempered_scores.append(tempered(held.scores, held.white))
        np.add.at(left, batch.owners[fold], held.rule.moments.counts[batch.owners[fold]])
    owners, scores = batch.owners[np.concatenate(folds)], np.concatenate(tempered_scores)
    observed, predicted = _with_half_of_the_classes(batch, scores, owners)
    halved, halved_owners = batch.without_half()
    right = margins_of(halved.scores, halved_owners) > 0
    for column in batch.held:
        own, half = owners == column, halved_owners == column
        corrections = MarginCorrections(
            halved=half.sum(),
            halved_right=right[half].sum(),
            halved_fewer=half.sum() / float(halved.rule.moments.counts[column]) ** 0.5,
            observed=observed[own].sum(),
            predicted=predicted[own].sum(),
        )
        evidence = Evidence.of(scores[own], column, left[column] / own.sum())
        found[column] = evidence + Evidence.of_corrections(corrections)
    return found, np.concatenate(typical)


def _with_half_of_the_classes(batch: Batch, scores: Array, owners: Array) -> tuple[Array, Array]:
    """Answers (n,) that either half of the classes makes wrong, and how many it should, halved."""
    columns, each, classes = np.arange(scores.shape[1]), np.arange(len(scores)), np.unique(owners)
    observed, predicted = np.zeros(len(scores)), np.zeros(len(scores))
    if len(columns) < 4:
        return observed, predicted
    right = margins_of(scores, owners) > 0
    for half in (columns[::2], columns[1::2]):
        lost = np.zeros(len(columns))
        rest = np.setdiff1d(columns, half)
        lost[classes] = margin_losses(batch.rule, batch.power, classes, half, rest)
        others = np.where(owners[:, None] == half, -np.inf, scores[:, half])
        margins = scores[each, owners] - others.max(axis=1)
        observed += ((margins > 0) * 1.0 - right) / 2
        predicted += ((margins > 0) * 1.0 - (margins > lost[owners])) / 2
    return observed, predicted


def margin_losses(rule: Posterior, power: float, columns: Array, known: Array, new: Array) -> Array:
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
        near = np.where(columns[:, None] == some, 1e30, apart)
        taken.append(logsumexp(-scale * near) + np.log(len(side) / len(some)))
    lost: Array = np.logaddexp(0, taken[1] - taken[0]) / power
    return lost


# --------------------------------------------------------------------------- typicality


@dataclass(frozen=True)
class Typicality:
    """Judges whitened rows; all of it is derived from the rule and the spread of classes.

    Attributes
    ----------
    rule
        What scores rows.
    gains, floor
        b / (1 + b) for the variance b of class means along each axis of the prior, (j,), and in
        all other directions.
    along
        Class means after the prior, along these axes, (k, j).
    expected
        What to expect of a row of each class, (k,).

    Examples
    --------
    >>> from frugalvae.moments.rule import posterior
    >>> from frugalvae.moments.rule import Moments
    >>> counts, means = np.array([9, 9]), np.array([[-6.0, 0.0], [6.0, 0.0]])
    >>> no_rows = np.empty((0, 2)), np.empty(0, int)
    >>> known = Moments(counts, means, 16 * np.eye(2), *no_rows, other_means=np.empty((2, 0)))
    >>> rule = posterior(known)
    >>> judge = Typicality.of(rule, np.ones(2))
    >>> white = rule.whiten(np.array([[6.0, 0.0], [1.0, 9.0]]), np.empty((2, 0)))
    >>> typical, odd = judge(white, rule.scores(white))
    >>> bool(typical > odd)
    True
    """

    rule: Posterior
    gains: Array
    floor: float
    along: Array
    expected: Array

    @classmethod
    def of(cls, rule: Posterior, ratios: Array) -> Typicality:
        """For a rule, and the variance of each class relative to W's, (k,)."""
        prior = rule.prior
        gains = prior.variances / (prior.off + prior.variances)
        floor = prior.floor / (prior.off + prior.floor)
        along = rule.targets[:, : rule.rank] @ prior.axes  # (k, j)
        judge = cls(rule, gains, floor, along, np.zeros(len(along)))
        return cls(rule, gains, floor, along, judge._of_class(ratios))

    def __call__(self, white: Array, scores: Array) -> Array:
        """How typical rows (n, d) with scores (n, k) are of the class that scores highest, (n,)."""
        columns = scores.argmax(axis=1)
        return self.judged(white, scores, columns, self.along[columns])

    def judged(self, white: Array, scores: Array, columns: Array, along: Array) -> Array:
        """Rows (n, d) beside class means (n, j) along the axes of the prior."""
        rows = white[:, : self.rule.rank] @ self.rule.prior.axes  # (n, j)
        best = scores[np.arange(len(scores)), columns]
        inside = np.einsum("nj,nj->n", rows, along)
        lengths = np.sqrt((rows**2).sum(axis=1) * (along**2).sum(axis=1))
        share = 2 * best / np.maximum(self._between(white, rows), TINY)
        judged: Array = share + COSINE * inside / np.maximum(lengths, TINY)
        return judged - EXPECTED * self.expected[columns]

    def _between(self, white: Array, rows: Array) -> Array:
        """Squares (n,) in the directions in which classes differ, by how much they do."""
        inside, squares = white[:, : self.rule.rank], rows**2
        beyond = (inside**2).sum(axis=1) - squares.sum(axis=1)
        between: Array = squares @ self.gains + self.floor * beyond
        return between

    def _of_class(self, ratios: Array) -> Array:
        """What a row of each class is expected to be, (k,): its mean, and noise around it."""
        rule, prior = self.rule, self.rule.prior
        counts, axes, rank = rule.moments.counts, len(self.gains), rule.rank
        noise = rule.shared.noise * ratios  # (k,)
        new = noise * (1 - 1 / counts)  # a row's own noise; the mean has its part of it
        means = rule.deviations[:, :rank] @ prior.axes  # (k, j)
        off = prior.off / counts  # what each mean is off by, (k,)
        known = prior.variances / (prior.variances + off[:, None])  # (k, j)
        other = prior.floor / (prior.floor + off) * (rank - axes)
        seen = known.sum(axis=1)  # what of the row's own noise is in the class mean, times n
        squares = (rule.targets**2).sum(axis=1)
        score = np.einsum("kd,kd->k", rule.deviations, rule.targets) - squares / 2
        score = score - (seen + other) * noise / counts
        volume = float(self.gains.sum()) + self.floor * (rank - axes)
        between = self._between(rule.deviations, means) + volume * new
        inside = np.einsum("kj,kj->k", means, self.along) - seen * noise / counts
        lengths = np.sqrt(((means**2).sum(axis=1) + axes * new) * (self.along**2).sum(axis=1))
        cosine = inside / np.maximum(lengths, TINY)
        expected: Array = 2 * score / np.maximum(between, TINY) + COSINE * cosine
        return expected


# -------------------------------------------------------------------- what to expect of new samples


@dataclass(frozen=True)
class Forecast:
    """What to expect of new samples that are like those that were taught.

    Attributes
    ----------
    labels
        The classes.
    counts
        How many samples each has, (k,).
    held
        How many of them were held out, (k,).
    bins
        Their margins; with those of all classes, worth five samples, (k, 32).
    lost
        What margins have lost to classes that came later, (k,).
    gained
        What they have gained from samples that came later, or were held out with them, (k,).
    leads
        Leads of wrong answers of all classes, (16,).
    cost
        What margins lose by a class having few samples, times the root of their number.
    """

    labels: list[Any]
    counts: Array
    held: Array
    bins: Array
    lost: Array
    gained: Array
    leads: Array
    cost: float

    @classmethod
    def of(cls, evidence: Mapping[int, Evidence], counts: Mapping[int, int]) -> Forecast | None:
        """Of classes and their numbers of samples; none if nothing was held out."""
        found = [evidence.get(label, Evidence()) for label in counts]
        bins = np.stack([own.margins for own in found])
        held = bins.sum(axis=1)
        if not held.sum():
            return None
        corrections = MarginCorrections(*np.array([own.corrections for own in found]).T)
        totals = MarginCorrections(*(each.sum() for each in corrections))
        number = np.array(list(counts.values()), np.float64)
        crowding = DAMPED * (totals.observed + PRIOR) / (totals.predicted + PRIOR)
        fewer, lost = (
            (own + POOLED * own.sum() / held.sum()) / (held + POOLED)
            for own in (corrections.fewer, corrections.lost)
        )
        cost = _cost(bins.sum(axis=0), totals)
        pooled = bins + POOLED * bins.sum(axis=0) / held.sum()
        gained = cost * (fewer - number**-0.5)
        leads = np.sum([own.leads for own in found], axis=0)
        return cls(list(counts), number, held, pooled, crowding * lost, gained, leads, cost)

    def to_json(self) -> dict[str, Any]:
        """Plain values: shares of samples to expect correct.

        ``enough`` is whether that may be said of all classes; ``intervals`` has those of which it
        may, with their bounds.
        """
        low, high = self.interval
        bounds = zip(self.labels, self.held.tolist(), self.intervals.tolist(), strict=True)
        return {
            "accuracy": self.accuracy,
            "low": low,
            "high": high,
            "held_out": int(self.held.sum()),
            "enough": self.enough,
            "classes": {
                str(y): float(p) for y, p in zip(self.labels, self.of_classes, strict=True)
            },
            "intervals": {str(y): within for y, held, within in bounds if held >= ENOUGH},
        }

    def __repr__(self) -> str:
        low, high = self.interval
        said = f"about {self.accuracy:.0%} ({100 * low:.0f} to {100 * high:.0f})"
        return f"<Forecast: {said if self.enough else 'too few samples'}>"

    @property
    def enough(self) -> bool:
        """Whether so many samples were held out that something may be said of all classes."""
        return bool(self.held.sum() >= ENOUGH)

    def with_more(self, samples: int) -> Forecast:
        """If every class had so many samples more: a rough guess, see ``lab/docs/care.md``."""
        nearer = self.counts**-0.5 - (self.counts + samples) ** -0.5
        return replace(self, gained=self.gained + self.cost * nearer)

    @cached_property
    def of_classes(self) -> Array:
        """The share of each class's samples to expect correct, (k,)."""
        return share_above(self.bins, self.lost - self.gained)

    @cached_property
    def accuracy(self) -> float:
        """The share of all samples, if classes are as frequent as they were taught."""
        return float(self._mean(self.of_classes))

    @cached_property
    def interval(self) -> tuple[float, float]:
        """Bounds that hold nine times in ten."""
        weights, held = self.counts / self.counts.sum(), np.maximum(self.held, 1)
        shares = (held * self.of_classes + 1) / (held + 2)  # a few that were all right may err
        chance = weights**2 * shares * (1 - shares) / held
        changes = [
            float(self._mean(share_above(self.bins, limits))) - self.accuracy
            for limits in (-self.gained, self.lost)
        ]
        reach = NINETY * float(chance.sum() + UNSURE**2 * (np.array(changes) ** 2).sum()) ** 0.5
        return max(0.0, self.accuracy - reach), min(1.0, self.accuracy + reach)

    @cached_property
    def intervals(self) -> Array:
        """The same for each class, (k, 2): Wilson's score interval, and both corrections."""
        held, share = np.maximum(self.held, 1), self.of_classes
        smaller = 1 / (1 + NINETY**2 / held)
        middle = smaller * (share + NINETY**2 / (2 * held))
        chance = smaller**2 * (share * (1 - share) / held + (NINETY / (2 * held)) ** 2)
        changes = [share_above(self.bins, limits) - share for limits in (-self.gained, self.lost)]
        reach = NINETY * np.sqrt(chance + UNSURE**2 * np.square(changes).sum(axis=0))
        return np.stack([np.maximum(0, middle - reach), np.minimum(1, middle + reach)], axis=1)

    def lead_for_error(self, error: float) -> float:
        """The lead over the second best class from which at most so many answers are wrong.

        Those that later classes have made wrong are taken to lead as others that were wrong.
        """
        return lead_for_error(*self._answers, float(self.held.sum()), error)

    @cached_property
    def least_error(self) -> float:
        """The smallest share of wrong answers that can be promised: fewer samples, larger."""
        return float(errors_at_most(*self._answers, float(self.held.sum())).min())

    @cached_property
    def _answers(self) -> tuple[Array, Array]:
        """Shares of samples that are answered wrongly, and answered, for each lead of GRID."""
        right = self._mean(self._above(GRID))
        wrong = (1 - right[0]) * np.interp(GRID, EDGES[BINS // 2 :], self._led)
        return wrong, wrong + right

    def gap_for_coverage(self, coverage: float) -> float:
        """How far below the best class a set reaches to hold the right one so often."""
        missed = self._mean(1 - self._above(-GRID))
        return gap_for_coverage(missed, float(self.held.sum()), coverage)

    @property
    def _led(self) -> Array:
        """The share of wrong answers that led by more than each edge, (17,)."""
        below = np.concatenate([[0.0], np.cumsum(self.leads)])
        share: Array = 1 - below / max(below[-1], 1.0)
        return share

    def _above(self, leads: Array) -> Array:
        """The share of each class's margins above each lead, (k, leads)."""
        limits = self._cautious
        return np.stack([share_above(self.bins, limits + lead) for lead in leads], axis=1)

    @property
    def _cautious(self) -> Array:
        """What margins have lost, if old classes gained nothing from new samples, (k,)."""
        return self.lost / DAMPED

    def _mean(self, of_classes: Array) -> Array:
        mean: Array = self.counts @ of_classes / self.counts.sum()
        return mean


def _cost(bins: Array, corrections: MarginCorrections) -> float:
    """What margins lose by few samples, from answers that half of the samples made wrong.

    ``bins`` (32,) and ``corrections`` are those of all classes. Accuracy falls short by about as
    much as one over the root of the number of samples.
    """
    held = float(bins.sum())
    if not corrections.halved:
        return 0.0
    nearer = float(corrections.halved_fewer / corrections.halved - corrections.fewer / held)
    if nearer < LEAST_NEARER:  # of pairs either leaves one
        return 0.0
    above = share_above(np.stack([bins, bins, bins]), np.array([-NEAR, 0, NEAR]))
    density = max(float(above[0] - above[2]) / (2 * NEAR), LEAST_DENSITY)
    gained = float(above[1]) - float(corrections.halved_right / corrections.halved)
    return max(0.0, gained) / nearer / density
