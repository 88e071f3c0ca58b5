"""Bayes' rule for classes of few, of many and of unequal numbers of samples.

Classes are Gaussians. What is known of them are counts, means and scatters. Where samples are
few, a prior that all classes share fills in; its parameters follow from the means themselves
(empirical Bayes):

1. The covariance of a class is W + w S_c / n_c, at the scale of W. W is the shared covariance with
   a ridge, S_c the scatter of the class, and w its weight, which grows with n_c. Of classes of one
   sample there is no scatter: W is then guessed from how the class means differ.
2. The class means have a prior N(g, B). A mean of few samples keeps the directions in which
   classes differ, and loses the others.
3. Means are drawn towards the length that the prior expects. With one sample in every class this
   is the cosine similarity around g, whitened by what is guessed of W.
4. A class gets back a part of what not knowing its mean costs it. A class that has too few
   samples for a scatter of its own borrows what scatters add to the classes that a row is like.

With many samples the prior fades, and this is quadratic discriminant analysis with shrunk
covariances, but for the lengths of means.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from frugalvae.maths.arrays import Array, side_by_side
from frugalvae.maths.mean_prior import MeanPrior, mean_prior
from frugalvae.maths.scatters import HALF_WEIGHT, WEIGHT, Scatters, narrow, own_weight
from frugalvae.maths.shared_covariance import (
    Moments,
    SharedCovariance,
    guessed_share,
    variance_of_means,
)
from frugalvae.maths.symmetric import principal_axes

DRAWN, HALF_DRAWN = 0.5, 10  # how far lengths are drawn to expected ones, and at how many samples
CREDIT = 0.1  # of what not knowing a mean costs
LENT_POWER = 10  # of densities, times the length of a row, where scatters are lent
LEAST_LACK = 0.01  # below it a class borrows nothing
LENDING_LACK = 0.5  # up to it a class lends
LEAST_LEFT = 0.02  # of W along rows that are held out


@dataclass(frozen=True)
class Posterior:
    """What scores rows of coordinates; all of it is derived from moments.

    Attributes
    ----------
    shared
        W, which whitens the r coordinates.
    scale
        What the other coordinates are multiplied by.
    centre
        g, (d,), in whitened coordinates; so are the following.
    deviations
        Class means around g, (k, d).
    targets
        The same after the prior, (k, d).
    constants
        What is added to each class's score, (k,).
    scatters
        Those of classes.
    lack
        How much of a usual scatter each class lacks, and borrows, from 0 to 1, (k,).
    """

    moments: Moments
    prior: MeanPrior
    shared: SharedCovariance
    scale: float
    centre: Array
    deviations: Array
    targets: Array
    constants: Array
    scatters: Scatters
    lack: Array

    @property
    def rank(self) -> int:
        """The number of coordinates that have a covariance."""
        return int(self.moments.means.shape[1])

    def whiten(self, rows: Array, others: Array) -> Array:
        """Whitened coordinates (n, d) of rows (n, r) and their other coordinates, around g."""
        white = side_by_side(self.shared.whiten(rows), self.scale * others)
        return (white - self.centre).astype(rows.dtype)

    def scores(self, white: Array) -> Array:
        """Log densities (n, k) of whitened rows (n, d), up to a term that all classes share."""
        scores: Array = white @ self.targets.T + self.constants
        return (
            self._sum(scores, self._from_scatters(white), white) if len(self.scatters) else scores
        )

    def _from_scatters(self, white: Array) -> Array:
        """What the classes' own scatters add to their scores, (n, k)."""
        rank = self.rank
        return self.scatters.added(white[:, :rank], self.targets[:, :rank], self._offsets)

    @cached_property
    def _offsets(self) -> Array:
        return self.scatters.offsets(self.targets[:, : self.rank])

    def _sum(self, linear: Array, added: Array, white: Array) -> Array:
        """Scores (n, k) from means and from scatters; classes of few samples borrow the latter.

        Scatters tell classes that have them from each other. They must not tell them from classes
        that have none: so these get what scatters add to the others, on average over the classes
        that the row may be of.
        """
        scores: Array = linear + added
        few, rich = np.flatnonzero(self.lack), np.flatnonzero(self.lack <= LENDING_LACK)
        if len(few):
            power = LENT_POWER / np.sqrt((white**2).sum(axis=1) + 1e-12)  # (n,)
            lent = _log_sum(scores[:, rich], power) - _log_sum(linear[:, rich], power)
            scores[:, few] += lent[:, None] * self.lack[few]
        return scores

    def left_out(self, white: Array, owners: Array) -> Array:
        """Scores (n, k) of taught rows (n, d), each as if its class had been taught without it.

        In closed form, by Sherman and Morrison's identity: without the row the class mean
        moves, and the scatters lose one outer product. The prior of class means still contains
        the row, so this flatters where samples are few; :meth:`held_out` does not. What other
        classes' own scatters say is left as it is. The classes are ``owners`` (n,); those of one
        sample cannot lose it.
        """
        scores, rank = np.empty((len(white), len(self.targets))), self.rank
        freedom = max(1.0, self.moments.counts.sum() - len(self.targets))
        others = self._from_scatters(white)
        squares = (self.targets**2).sum(axis=1)
        for label in np.unique(owners):
            rows, count = owners == label, self.moments.counts[label]
            x, added = white[rows], others[rows]
            gone = x - self.deviations[label]  # (n, d): the row around its class mean
            drop = self._lost(gone, count)
            extra = (count / (count - 1) / freedom / (1 - drop))[:, None]  # of the inverse of W
            target = self._target_without(label, gone, count)
            along = gone[:, :rank] @ self.targets[:, :rank].T  # (n, k)
            along[:, label] = np.einsum("nr,nr->n", gone[:, :rank], target[:, :rank])
            linear = x @ self.targets.T
            linear[:, label] = np.einsum("nd,nd->n", x, target)
            square = np.broadcast_to(squares, linear.shape).copy()
            square[:, label] = (target**2).sum(axis=1)
            reach = np.einsum("nr,nr->n", x[:, :rank], gone[:, :rank])[:, None]
            linear += extra * (reach * along - along**2 / 2) - square / 2
            parts = gone[:, :rank], (x - target)[:, :rank]
            added[:, label] = self.scatters.added_without(label, count, *parts)
            scores[rows] = self._sum(linear + (self.constants + squares / 2), added, x)
        return scores

    def held_out(
        self,
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
        rank, counts = self.rank, self.moments.counts.astype(np.float64)
        lost, sums = np.bincount(owners, minlength=len(counts)), np.zeros_like(self.deviations)
        np.add.at(sums, owners, white)
        left, around = (counts - lost)[:, None], sums - lost[:, None] * self.deviations  # (k, d)
        means = self.deviations - around / left
        own, labels = white - self.deviations[owners], np.unique(owners)
        gaps = around[labels] / np.sqrt(left[labels])
        gone = np.concatenate([own, gaps])[:, :rank]  # rows that the scatter loses
        stretch = _Stretch.of(gone, max(1.0, counts.sum() - len(counts)))
        left = left[:, 0]
        for label, (total, more) in fewer.items():
            means[label] -= (total - more * means[label]) / (left[label] - more)
            left[label] -= more
        known = self.shared.noise, self.prior.weight, self.prior.off
        around_new, parts = _class_means(stretch(means), left, rank, *known)
        rule = replace(
            self,
            moments=replace(self.moments, counts=left),
            centre=self.centre + around_new,
            scatters=self.scatters.with_counts(counts, left),
            lack=_lack(left),
            **parts,
        )
        rows = stretch(white) - around_new
        linear = rows @ rule.targets.T + rule.constants
        added = self._from_scatters(white)
        targets = stretch.back(rule.targets[labels] + around_new)
        for label, gap, target in zip(labels, gaps, targets, strict=True):
            mine = owners == label
            scatter = without.get(label) or self.scatters.without(
                label, np.concatenate([own[mine], gap[None]])[:, :rank]
            )
            share = rule.scatters.weights[label] * left[label] / (counts[label] - lost[label])
            away = (white[mine] - target)[:, :rank]
            added[mine, label] = self.scatters.added_by(*scatter, share, away)
        return HeldOutRows(rule, rows, rule._sum(linear, added, rows))

    def without(self, white: Array, owners: Array) -> tuple[Array, Array]:
        """Taught rows (n, d) and the means (n, d) of their classes, as if each had not been taught.

        Without a row the shared covariance is smaller along it, so the row is further out. The
        classes are ``owners`` (n,); those of one sample cannot lose it.
        """
        rows, targets, rank = white.copy(), np.empty_like(white), self.rank
        for label in np.unique(owners):
            own, count = owners == label, self.moments.counts[label]
            gone = white[own] - self.deviations[label]
            targets[own] = self._target_without(label, gone, count)
            inside, drop = gone[:, :rank], self._lost(gone, count)
            stretch = (1 / np.sqrt(1 - drop) - 1) / np.maximum((inside**2).sum(axis=1), 1e-30)
            along = np.einsum("nr,nr->n", white[own, :rank], inside)
            rows[own, :rank] += (stretch * along)[:, None] * inside
        return rows, targets

    def _lost(self, gone: Array, count: float) -> Array:
        """The share (n,) of W along each row around its class mean that the row itself makes."""
        freedom = max(1.0, self.moments.counts.sum() - len(self.targets))
        squares = (gone[:, : self.rank] ** 2).sum(axis=1)
        share: Array = np.minimum(count / (count - 1) / freedom * squares, 0.9)
        return share

    def _target_without(self, label: int, gone: Array, count: float) -> Array:
        """Posterior means (n, d) of a class without each of some rows."""
        fewer = np.full(len(gone), count - 1)
        without = self.prior.shrunk(self.deviations[label] - gone / (count - 1), fewer)
        plain = self.prior.shrunk(self.deviations[[label]], np.array([count]))
        length = np.sqrt((self.targets[label] ** 2).sum() / max((plain**2).sum(), 1e-30))
        target: Array = length * without
        return target


class HeldOutRows(NamedTuple):
    """Rows that a rule was not taught: the rule, the rows as it whitens them, and their scores."""

    rule: Posterior
    white: Array
    scores: Array


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


def posterior(
    moments: Moments,
    own: float | None = None,
    ridge: float | None = None,
    *,
    shared: SharedCovariance | None = None,
) -> Posterior:
    """The rule that moments give.

    Parameters
    ----------
    moments
        What is known of the classes.
    own
        The weight that a class's own scatter tends to as samples come. By default 0.1, and more
        in fewer than 512 coordinates.
    ridge
        What is added to each variance of W, as a share of the mean variance. By default the
        number of coordinates per sample, less where samples vary along few directions, and at
        least 0.03.
    shared
        W, if it is known already.

    Examples
    --------
    >>> counts, means = np.array([9, 9]), np.array([[-1.0, 0.0], [1.0, 0.0]])
    >>> no_rows = np.empty((0, 2)), np.empty(0, int)
    >>> known = Moments(counts, means, np.eye(2), *no_rows, other_means=np.empty((2, 0)))
    >>> rule = posterior(known)
    >>> white = rule.whiten(np.array([[0.5, 3.0]]), np.empty((1, 0)))
    >>> int(rule.scores(white).argmax())
    1
    """
    counts, rank = moments.counts.astype(np.float64), moments.means.shape[1]
    classes, samples = len(counts), float(counts.sum())
    freedom = max(1.0, samples - classes)
    shared = SharedCovariance.of(moments, ridge) if shared is None else shared
    others, share = moments.other_means.shape[1], classes / samples
    guessed = guessed_share(samples - classes) * variance_of_means(moments.other_means)
    level = moments.other_squares / max(others, 1) / freedom + guessed + shared.ridge
    scale = (share / level) ** 0.5
    white = side_by_side(shared.whiten(moments.means), scale * moments.other_means)
    centre, parts = _class_means(white, counts, rank, shared.noise, share)
    rows = shared.whiten(moments.roots.astype(np.float32))  # (m, r)
    limit = narrow(rank + others) if own is None else own / WEIGHT
    scatters = Scatters.of(rows, moments.owners, limit * own_weight(counts) / counts)
    return Posterior(
        moments=moments,
        shared=shared,
        scale=scale,
        centre=centre,
        scatters=scatters,
        lack=_lack(counts),
        **parts,
    )


def _class_means(
    white: Array, counts: Array, rank: int, noise: float, weight: float, off: float | None = None
) -> tuple[Array, dict[str, Any]]:
    """The centre of whitened class means (k, d), and what a rule has of them around it."""
    centre, deviations, prior = mean_prior(white, counts, rank, noise, weight, off)
    targets = prior.shrunk(deviations, counts)
    expected, unknown = prior.squares(counts, white.shape[1] - rank)
    drawn = DRAWN * counts / (counts + HALF_DRAWN)
    drawn = np.maximum(drawn, len(counts) / float(counts.sum()))
    squares = np.maximum((targets**2).sum(axis=1), 1e-30)
    targets *= ((expected / squares) ** (drawn / 2))[:, None]
    constants = (CREDIT * unknown - (targets**2).sum(axis=1)) / 2
    parts = {"deviations": deviations, "prior": prior, "targets": targets}
    return centre, parts | {"constants": constants}


def _lack(counts: Array) -> Array:
    """How much of the scatter that a usual sample's class has each class lacks, (k,)."""
    known = counts / (counts + HALF_WEIGHT)
    usual = float(known @ counts / counts.sum())
    lack = 1 - known / usual
    return np.where(lack < LEAST_LACK, 0.0, lack)


def _log_sum(scores: Array, power: Array) -> Array:
    """The logarithm of the sum of densities to a power, over it: (n,), of scores (n, k)."""
    top = scores.max(axis=1)
    below = np.exp(power[:, None] * (scores - top[:, None]))
    total: Array = top + np.log(below.sum(axis=1)) / power
    return total
