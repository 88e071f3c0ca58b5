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

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from frugalvae.maths.arrays import Array, blocks, inverse_root, principal_axes, side_by_side

NOISE = 6.0  # times the variance of a sample is what means are taken to be off by; at most one
LEAST_OFF = 1e-9  # the same, where all samples of a class are equal
USUAL_VARIANCE = 0.5  # of class means, to tell how far each is to be relied on
LEAST_VARIANCE = 1e-3  # of class means, relative to the variance within classes
CREDIT = 0.1  # of what not knowing a mean costs
LEAST_LACK = 0.01  # below it a class borrows nothing
LENDING_LACK = 0.5  # up to it a class lends
LEAST_RIDGE = 0.03  # of the mean variance
GUESS = 0.6  # of the variance of class means: a guess of the variance within them
GUESSED = 0.2  # of the covariance of class means: a guess of its shape within them
LEAST_GUESSED = 0.01  # less of it is left out


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


# --------------------------------------------------------------------------- covariances


@dataclass(frozen=True)
class Moments:
    """Counts, means and scatters of k classes.

    ``r`` coordinates have a covariance. There may be others, which have means and one common
    variance.

    Attributes
    ----------
    counts
        Samples of each class, (k,).
    means
        Class means, (k, r).
    scatter
        Sum of the outer products of samples around their class means, (r, r); ``None`` if the
        outer products of all ``roots`` add up to it.
    roots
        Rows (m, r) whose outer products add up to the scatter of their class, or its largest part.
    owners
        The class of each row, ascending, (m,).
    other_means
        Class means in the other coordinates, (k, d - r).
    other_squares
        The sum of squares around class means in the other coordinates.
    """

    counts: Array
    means: Array
    scatter: Array | None
    roots: Array
    owners: Array
    other_means: Array
    other_squares: float = 0.0

    @property
    def variances(self) -> Array:
        """The diagonal of the scatter, (r,)."""
        if self.scatter is not None:
            return self.scatter.diagonal()
        squares: Array = np.einsum("mr,mr->r", self.roots, self.roots, dtype=np.float64)
        return squares


@dataclass(frozen=True)
class SharedCovariance:
    """W, the covariance that all classes share, with its ridge.

    Attributes
    ----------
    matrix
        L^-1, lower triangular, with L L^T = W, (r, r); or, where there are fewer rows than
        coordinates, the axes along which W is more than its ridge, (r, q).
    gains
        ``None``, or what whitening adds along these axes, (q,).
    ridge
        What was added to each variance.
    noise
        The mean variance of a sample around its class mean in whitened coordinates.
    """

    matrix: Array
    gains: Array | None
    ridge: float
    noise: float

    @classmethod
    def of(cls, moments: Moments, ridge: float | None = None) -> SharedCovariance:
        """W of some moments. ``ridge`` is relative to the mean variance; see :func:`posterior`."""
        samples, rank = float(moments.counts.sum()), moments.means.shape[1]
        freedom = samples - len(moments.counts)
        added = max(LEAST_RIDGE, rank / samples) if ridge is None else ridge
        added *= _level(moments, freedom)
        rows, scatter = moments.roots, moments.scatter
        guessed = _guessed_rows(moments, freedom)  # (k, r), or none
        if scatter is None and len(rows) + len(guessed) < rank:
            own = rows.astype(np.float64) / max(freedom, 1) ** 0.5
            both = np.concatenate([own, guessed])
            values, axes = principal_axes(both)
            variances = values + added  # (q,)
            gains = variances**-0.5 - added**-0.5
            inverse = float((1 / variances).sum()) + (rank - len(values)) / added
            return cls(axes, gains, added, max(0.0, 1 - added * inverse / rank))
        if scatter is None:
            rows = rows.astype(np.float64)
            scatter = rows.T @ rows
        covariance = scatter / max(freedom, 1)
        if len(guessed):
            covariance += guessed.T @ guessed
        matrix = _whitening(covariance, added)
        noise = 1 - added * float(np.einsum("ij,ij->", matrix, matrix)) / rank
        return cls(matrix, None, added, max(0.0, noise))

    def whiten(self, rows: Array) -> Array:
        """Whitened coordinates (n, r) of rows (n, r), in their precision."""
        matrix = self._short if rows.dtype == np.float32 else self.matrix.astype(rows.dtype)
        if self.gains is not None:
            along = (rows @ matrix * self.gains.astype(rows.dtype)) @ matrix.T
            spread: Array = rows.dtype.type(self.ridge**-0.5) * rows + along
            return spread
        white = np.empty_like(rows)
        for _, here in blocks(len(matrix)):  # no product with zeros
            white[:, here] = rows[:, : here.stop] @ matrix[here, : here.stop].T
        return white

    @cached_property
    def _short(self) -> Array:
        """The matrix in float32, which rows of classes and of photographs are whitened by."""
        return self.matrix.astype(np.float32)


def _level(moments: Moments, freedom: float) -> float:
    """The mean variance within classes; a guess counts as much as one sample."""
    apart = variance_of_means(side_by_side(moments.means, moments.other_means))
    total = float(moments.variances.mean())
    return float((total + GUESS * apart) / (freedom + 1)) or 1.0


def variance_of_means(means: Array) -> float:
    """The mean variance of class means (k, d)."""
    squares = float(((means - means.mean(axis=0)) ** 2).sum())
    size = max(1, len(means) - 1) * int(max(1, means.shape[1]))
    return squares / size


def _guessed_rows(moments: Moments, freedom: float) -> Array:
    """Rows (k, r) whose outer products are a guess of the covariance within classes, or none.

    Samples of a class differ most where class means do.
    """
    means, share = moments.means.astype(np.float64), guessed_share(freedom)
    if not share:
        return means[:0]
    rows: Array = (share / max(1, len(means) - 1)) ** 0.5 * (means - means.mean(axis=0))
    return rows


def guessed_share(freedom: float) -> float:
    """The share of the covariance of class means in the guess, which counts as one sample."""
    share = GUESSED / (freedom + 1)
    return share if share > LEAST_GUESSED else 0.0


def _whitening(covariance: Array, added: float) -> Array:
    """L^-1 (r, r), with L L^T the covariance, which is lost, plus ``added`` times the identity."""
    diagonal = np.diag_indices(len(covariance))
    covariance[diagonal] += added
    try:
        return inverse_root(covariance)
    except np.linalg.LinAlgError:  # rounding, or samples taken out, left negative variances
        covariance[diagonal] -= added
        values, vectors = np.linalg.eigh(covariance)
        covariance = (vectors * np.maximum(values, 0)) @ vectors.T
        covariance[diagonal] += added
        return inverse_root(covariance)


# What the scatters of classes say besides W, the covariance that all of them share.


WEIGHT, HALF_WEIGHT = 0.1, 25  # w = WEIGHT n / (n + HALF_WEIGHT)
MANY, LARGEST = 512, 6.0  # in fewer coordinates than so many, w is larger, by this at most


@dataclass(frozen=True)
class Scatters:
    """Principal axes of the scatters of k classes, in r whitened coordinates.

    Attributes
    ----------
    axes, sizes, owners
        Directions (m, r) of unit length, the scatter of their class along them (m,), and their
        class (m,), ascending.
    weights
        w / n of each class, (k,).
    """

    axes: Array
    sizes: Array
    owners: Array
    weights: Array

    @classmethod
    def of(cls, white: Array, owners: Array, weights: Array) -> Scatters:
        """Of whitened rows (m, r) whose outer products add up to the scatter of their class."""
        counts = np.bincount(owners) if len(owners) else np.zeros(0, np.int64)
        first, axes, sizes = np.cumsum(counts) - counts, np.empty_like(white), np.zeros(len(white))
        for size in set(counts.tolist()) - {0}:  # classes of as many rows together
            rows = first[counts == size][:, None] + np.arange(size)  # (classes, size)
            own = white[rows]  # (classes, size, r)
            values, vectors = np.linalg.eigh((own @ own.swapaxes(1, 2)).astype(np.float64))
            values = np.maximum(values, 1e-30)
            vectors = (vectors / np.sqrt(values)[:, None]).astype(np.float32)
            axes[rows] = vectors.swapaxes(1, 2) @ own
            sizes[rows] = values
        kept = sizes > 1e-6 * sizes.max(initial=0)
        if not kept.all():
            axes, sizes, owners = axes[kept], sizes[kept], owners[kept]
        return cls(axes, sizes, owners, weights)

    def __len__(self) -> int:
        return len(self.owners)

    def with_counts(self, before: Array, after: Array) -> Scatters:
        """The same scatters at the weights of other counts of samples, (k,) each."""
        weights = self.weights / (own_weight(before) / before) * (own_weight(after) / after)
        return replace(self, weights=weights)

    def offsets(self, means: Array) -> Array:
        """Class means (k, r) along the axes of their class, (m,)."""
        if not len(self):
            return np.zeros(0, np.float32)
        first = np.flatnonzero(np.diff(self.owners, prepend=-1))
        parts = zip(self.owners[first], np.split(self.axes, first[1:]), strict=True)
        return np.concatenate([axes @ means[own] for own, axes in parts]).astype(np.float32)

    def added(self, white: Array, means: Array, offsets: Array) -> Array:
        """What scatters add to log densities (n, k) of rows (n, r), of classes of means (k, r)."""
        if not len(self):
            return np.zeros((len(white), len(means)))
        shares = self.sizes * self.weights[self.owners]  # (m,)
        along = white.astype(np.float32) @ self.axes.T  # (n, m)
        along -= offsets
        along *= along
        along *= (shares / (1 + shares)).astype(np.float32)
        first = np.flatnonzero(np.diff(self.owners, prepend=-1))
        some = self.owners[first]  # the classes that have rows
        quadratic, around = np.add.reduceat(along, first, axis=1), means[some]
        distances = (white**2).sum(axis=1)[:, None] - 2 * white @ around.T + (around**2).sum(axis=1)
        volumes, traces = (np.add.reduceat(each, first) for each in (np.log1p(shares), shares))
        found = np.zeros((len(white), len(means)))
        found[:, some] = _log_ratio(self.rank, distances, quadratic, volumes, traces)
        return found

    @property
    def rank(self) -> int:
        """The number of coordinates."""
        return int(self.axes.shape[1])

    def added_by(self, axes: Array, sizes: Array, weight: float, away: Array) -> Array:
        """What a single scatter adds, (n,), to rows (n, r) around the mean of its class."""
        shares = weight * sizes
        quadratic = ((away @ axes.T) ** 2 * (shares / (1 + shares))).sum(axis=1)
        distances, volume = (away**2).sum(axis=1), np.log1p(shares).sum()
        return _log_ratio(self.rank, distances, quadratic, volume, shares.sum())

    def without(self, label: int, gone: Array) -> tuple[Array, Array]:
        """Axes and sizes of a class's scatter without the outer products of some rows (j, r)."""
        own = self.owners == label
        axes, sizes = self.axes[own].astype(np.float64), self.sizes[own]
        along = gone @ axes.T  # (j, q)
        left, vectors = np.linalg.eigh(np.diag(sizes) - along.T @ along)
        return vectors.T @ axes, np.maximum(left, 0.0)


def low_dimension_gain(dim: int) -> float:
    """How much more scatters count in so many coordinates than in many.

    As many samples tell more of a scatter that has fewer coordinates.

    >>> low_dimension_gain(1280), low_dimension_gain(128), low_dimension_gain(2)
    (1.0, 2.0, 6.0)
    """
    return min(max(1.0, (MANY / dim) ** 0.5), LARGEST)


def own_weight(counts: Any) -> Any:
    """The weight of a scatter of so many samples."""
    return WEIGHT * counts / (counts + HALF_WEIGHT)


def _log_ratio(rank: int, distances: Array, quadratic: Array, volume: Any, trace: Any) -> Array:
    """The log density under the covariance (1 + V) / (1 + trace(V) / r), less that under 1.

    ``distances`` are squared ones from the mean, ``quadratic`` is how much less they are under
    1 + V, and ``volume`` is the logarithm of its determinant.
    """
    excess = trace / rank
    ratio: Array = (1 + excess) * quadratic - excess * distances - volume + rank * np.log1p(excess)
    return ratio / 2
