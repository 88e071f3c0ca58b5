"""Taught rows, each as if its class had been taught without it: all in closed form.

By Sherman and Morrison's identity: without the row the class mean moves, and the scatters lose one
outer product. The prior of class means still contains the row, so this flatters where samples are
few; :func:`~frugalvae.maths.held_out.hold_out` does not. What other classes' own scatters say is
left as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from frugalvae.maths.arrays import Array
from frugalvae.maths.posterior import Posterior

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
