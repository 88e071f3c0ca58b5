"""Taught rows, all as if none of them had been taught."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from frugalvae.maths.arrays import Array
from frugalvae.maths.posterior import Posterior, class_means, lack_of
from frugalvae.maths.symmetric import principal_axes

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
