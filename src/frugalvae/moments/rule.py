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

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from frugalvae.maths.arrays import Array, principal_axes, side_by_side
from frugalvae.moments.covariance import (
    HALF_WEIGHT,
    WEIGHT,
    Moments,
    Scatters,
    SharedCovariance,
    guessed_share,
    low_dimension_gain,
    own_weight,
    variance_of_means,
)

NOISE = 6.0  # times the variance of a sample is what means are taken to be off by; at most one
LEAST_OFF = 1e-9  # the same, where all samples of a class are equal
USUAL_VARIANCE = 0.5  # of class means, to tell how far each is to be relied on
LEAST_VARIANCE = 1e-3  # of class means, relative to the variance within classes
CREDIT = 0.1  # of what not knowing a mean costs
LEAST_LACK = 0.01  # below it a class borrows nothing
LENDING_LACK = 0.5  # up to it a class lends


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
            self.total(scores, self.from_scatters(white), white) if len(self.scatters) else scores
        )

    def from_scatters(self, white: Array) -> Array:
        """What the classes' own scatters add to their scores, (n, k)."""
        rank = self.rank
        return self.scatters.added(white[:, :rank], self.targets[:, :rank], self._offsets)

    @cached_property
    def _offsets(self) -> Array:
        return self.scatters.offsets(self.targets[:, : self.rank])

    def total(self, linear: Array, added: Array, white: Array) -> Array:
        """Scores (n, k) from means and from scatters; classes of few samples borrow the latter.

        Scatters tell classes that have them from each other. They must not tell them from classes
        that have none: so these get what scatters add to the best score of the others.
        """
        scores: Array = linear + added
        few, rich = np.flatnonzero(self.lack), np.flatnonzero(self.lack <= LENDING_LACK)
        if len(few):
            lent = scores[:, rich].max(axis=1) - linear[:, rich].max(axis=1)
            scores[:, few] += lent[:, None] * self.lack[few]
        return scores


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
        number of coordinates per sample, and at least 0.03.
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
    centre, parts = class_means(white, counts, rank, shared.noise, share)
    rows = shared.whiten(moments.roots.astype(np.float32, copy=False))  # (m, r)
    limit = low_dimension_gain(rank + others) if own is None else own / WEIGHT
    scatters = Scatters.of(rows, moments.owners, limit * own_weight(counts) / counts)
    return Posterior(
        moments=moments,
        shared=shared,
        scale=scale,
        centre=centre,
        scatters=scatters,
        lack=lack_of(counts),
        **parts,
    )


def class_means(
    white: Array, counts: Array, rank: int, noise: float, weight: float, off: float | None = None
) -> tuple[Array, dict[str, Any]]:
    """The centre of whitened class means (k, d), and what a rule has of them around it."""
    centre, deviations, prior = mean_prior(white, counts, rank, noise, weight, off)
    targets = prior.shrunk(deviations, counts)
    expected, unknown = prior.squares(counts, white.shape[1] - rank)
    drawn = len(counts) / float(counts.sum())
    squares = np.maximum((targets**2).sum(axis=1), 1e-30)
    targets *= ((expected / squares) ** (drawn / 2))[:, None]
    constants = (CREDIT * unknown - (targets**2).sum(axis=1)) / 2
    parts = {"deviations": deviations, "prior": prior, "targets": targets}
    return centre, parts | {"constants": constants}


def lack_of(counts: Array) -> Array:
    """How much of the scatter that a usual sample's class has each class lacks, (k,)."""
    known = counts / (counts + HALF_WEIGHT)
    usual = float(known @ counts / counts.sum())
    lack = 1 - known / usual
    return np.where(lack < LEAST_LACK, 0.0, lack)


@dataclass(frozen=True)
class MeanPrior:
    """The distribution N(0, B) of class means around their centre, in whitened coordinates.

    Attributes
    ----------
    axes, variances
        Directions in which classes differ, (r, j), and variances of B along them, (j,).
    floor
        The variance of B in all other directions of the r coordinates.
    other, weight
        The variance in coordinates without a covariance, and how much these count.
    off
        What the mean of a single sample is taken to be off by, as a variance.
    """

    axes: Array
    variances: Array
    floor: float
    other: float
    weight: float
    off: float

    def shrunk(self, deviations: Array, counts: Array) -> Array:
        """Posterior means (k, d) of class means (k, d) around the centre, of so many samples."""
        rank, per_sample = len(self.axes), self.off / counts[:, None]
        known = self.floor / (self.floor + per_sample)  # (k, 1)
        along = (self.variances / (self.variances + per_sample) - known) * (
            deviations[:, :rank] @ self.axes
        )
        inside = known * deviations[:, :rank] + along @ self.axes.T
        beside = self.other / (self.other + per_sample) * deviations[:, rank:]
        return np.concatenate([inside, beside], axis=1)

    def squares(self, counts: Array, others: int) -> tuple[Array, Array]:
        """The expected square of a posterior mean, and the variance that is left, (k,) each."""
        rank, per_sample = len(self.axes), self.off / counts[:, None]
        variances = np.append(self.variances, [self.floor, self.other])
        times = np.append(
            np.ones(len(self.variances)), [rank - len(self.variances), self.weight * others]
        )
        known = variances / (variances + per_sample)  # (k, j + 2)
        return (known * variances) @ times, ((1 - known) * variances) @ times


def mean_prior(
    white: Array, counts: Array, rank: int, noise: float, weight: float, off: float | None = None
) -> tuple[Array, Array, MeanPrior]:
    """The centre (d,), class means around it (k, d), and their distribution, by moments.

    ``off`` is what the mean of a single sample is off by, if that is known already.
    """
    freedom = float(counts.sum()) - len(counts)
    reliable, centre, spread = _centre(white[:, :rank], counts, noise)
    inside = white[:, :rank] - centre
    total = float(reliable.sum())
    values, axes = principal_axes(np.sqrt(reliable)[:, None] * inside)
    variances = np.maximum(values / total - noise * float((reliable / counts).sum()) / total, 0)
    variances = variances * (spread * rank / max(float(variances.sum()), 1e-12))
    share = total / (total + rank) if freedom > 0 else 0.0
    other, beside = 0.0, white[:, rank:]
    if beside.shape[1]:
        _, centre_beside, other = _centre(beside / weight**0.5, counts, noise)
        beside = beside - weight**0.5 * centre_beside
        centre = np.concatenate([centre, weight**0.5 * centre_beside])
    floor = (1 - share) * spread
    if off is None:  # W was fitted to the samples, which so vary less than others
        off = float(np.clip(NOISE * noise, LEAST_OFF, 1.0)) if freedom > 0 else 1.0
    prior = MeanPrior(axes, share * variances + floor, floor, other, weight, off)
    return centre, side_by_side(inside, beside), prior


def _centre(white: Array, counts: Array, noise: float) -> tuple[Array, Array, float]:
    """How far each class mean is to be relied on (k,), their centre (d,), and their variance.

    ``noise`` is the variance of a sample.
    """
    reliable = counts * USUAL_VARIANCE / (counts * USUAL_VARIANCE + noise)
    centre = reliable @ white / reliable.sum()
    squares = ((white - centre) ** 2).mean(axis=1) - noise / counts
    return reliable, centre, max(LEAST_VARIANCE, float(reliable @ squares / reliable.sum()))
