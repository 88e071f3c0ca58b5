"""Typicality: how well a row fits its class, next to what rows of that class are expected to.

Two shares say whether a row belongs to the class that scores highest. In whitened coordinates
around the centre of all classes:

1. The relative Mahalanobis distance, as a share. Log density of the class against that of all
   classes as one Gaussian N(g, W + B), divided by what lies in the directions in which classes
   differ. (Ren et al., "A simple fix to Mahalanobis distance for improving near-OOD detection",
   2021, have the difference.)
2. The cosine between the row and the class mean within the span of all class means.

Both are larger for classes that are far from the centre, whatever the row. So what they are
expected to be for a row of the class is taken off. That follows from the moments: nothing else
needs to be kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from frugalvae.maths.arrays import Array
from frugalvae.moments.rule import Posterior

COSINE = 4.0  # the weight of the cosine beside the share
EXPECTED = 0.8  # of what is expected of a class, that is taken off
TINY = 1e-12


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
