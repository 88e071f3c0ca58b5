"""The prior of class means: how far apart classes lie, from the means themselves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from frugalvae.maths.arrays import Array, side_by_side
from frugalvae.maths.symmetric import principal_axes

NOISE = 6.0  # times the variance of a sample is what means are taken to be off by; at most one
LEAST_OFF = 1e-9  # the same, where all samples of a class are equal
STEPS = 10  # of the fixed point of g and b
LEAST_VARIANCE = 1e-3  # of class means, relative to the variance within classes


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
    samples, classes = float(counts.sum()), len(counts)
    reliable, centre, spread = _centre(white[:, :rank], counts, noise)
    inside = white[:, :rank] - centre
    total = float(reliable.sum())
    values, axes = principal_axes(np.sqrt(reliable)[:, None] * inside)
    variances = np.maximum(values / total - noise * float((reliable / counts).sum()) / total, 0)
    variances = variances * (spread * rank / max(float(variances.sum()), 1e-12))
    freedom = samples - classes
    share = total / (total + rank) * freedom / (freedom + 0.1 * classes)
    other, beside = 0.0, white[:, rank:]
    if beside.shape[1]:
        _, centre_beside, other = _centre(beside / weight**0.5, counts, noise)
        beside = beside - weight**0.5 * centre_beside
        centre = np.concatenate([centre, weight**0.5 * centre_beside])
    floor = (1 - share) * spread
    off = _off(noise, rank, freedom) if off is None else off
    prior = MeanPrior(axes, share * variances + floor, floor, other, weight, off)
    return centre, side_by_side(inside, beside), prior


def _off(noise: float, rank: int, freedom: float) -> float:
    """The variance of the mean of a single sample, where samples have a variance of ``noise``.

    W was fitted to the samples, which so have less than others; its ridge makes both small.
    """
    if freedom <= 0:
        return 1.0
    of_others = noise / max(1 - rank / freedom * noise, 0.1)
    return float(np.clip(NOISE * of_others, LEAST_OFF, 1.0))


def _centre(white: Array, counts: Array, noise: float) -> tuple[Array, Array, float]:
    """How far each class mean is to be relied on (k,), their centre (d,), and their variance.

    ``noise`` is the variance of a sample. A fixed point: each follows from the others.
    """
    spread = 0.5
    for _ in range(STEPS):
        reliable = counts * spread / (counts * spread + noise)
        centre = reliable @ white / reliable.sum()
        squares = ((white - centre) ** 2).mean(axis=1) - noise / counts
        spread = max(LEAST_VARIANCE, float(reliable @ squares / reliable.sum()))
    return reliable, centre, spread
