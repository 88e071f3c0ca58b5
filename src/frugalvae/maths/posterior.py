"""Bayes' rule for classes of few, of many and of unequal numbers of samples.

Classes are Gaussians. What is known of them are counts, means and scatters. Where samples are
few, a prior that all classes share fills in; its parameters follow from the means themselves
(empirical Bayes):

1. The covariance of a class is W + w S_c / n_c. W is the shared covariance with a ridge, S_c the
   scatter of the class, and w its weight, which grows with n_c. Of classes of one sample there is
   no scatter: W is then guessed from how the class means differ.
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

from frugalvae.maths.arrays import Array
from frugalvae.maths.symmetric import invert_lower

LEAST_RIDGE = 0.03  # of the mean variance
GUESS = 0.6  # of the variance of class means: a guess of the variance within them
GUESSED = 0.2  # of the covariance of class means: a guess of its shape within them
LEAST_GUESSED = 0.01  # less of it is left out
WEIGHT, HALF_WEIGHT = 0.1, 25  # w = WEIGHT n / (n + HALF_WEIGHT)
DRAWN, HALF_DRAWN = 0.5, 10  # how far lengths are drawn to expected ones, and at how many samples
CREDIT = 0.1  # of what not knowing a mean costs
LENT_POWER = 10  # of densities, times the length of a row, where scatters are lent
LEAST_LACK = 0.01  # below it a class borrows nothing
LENDING_LACK = 0.5  # up to it a class lends
STEPS = 10  # of the fixed point of g and b
LEAST_LEFT = 0.02  # of W along rows that are held out
LEAST_VARIANCE = 1e-3  # of class means, relative to the variance within classes


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
        L^-T, with L L^T = W, (r, r); or, where there are fewer rows than coordinates, the axes
        along which W is more than its ridge, (r, q).
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
        amount = max(LEAST_RIDGE, rank / samples) if ridge is None else ridge
        added = amount * _level(moments, freedom)
        rows, scatter = moments.roots, moments.scatter
        guessed = _guessed_rows(moments, freedom)  # (k, r), or none
        if scatter is None and len(rows) + len(guessed) < rank:
            own = rows.astype(np.float64) / max(freedom, 1) ** 0.5
            both = np.concatenate([own, guessed])
            values, axes = _principal_axes(both)
            variances = values + added  # (q,)
            gains = variances**-0.5 - added**-0.5
            inverse = float((1 / variances).sum()) + (rank - len(values)) / added
            return cls(axes, gains, added, max(0.0, 1 - added * inverse / rank))
        if scatter is None:
            rows = rows.astype(np.float64)
            scatter = rows.T @ rows
        matrix = _whitening(scatter / max(freedom, 1) + guessed.T @ guessed, added)
        noise = 1 - added * float((matrix**2).sum()) / rank
        return cls(matrix, None, added, max(0.0, noise))

    def whiten(self, rows: Array) -> Array:
        """Whitened coordinates (n, r) of rows (n, r), in their precision."""
        matrix = self.matrix.astype(rows.dtype)
        white: Array = rows @ matrix
        if self.gains is not None:
            along = (white * self.gains.astype(rows.dtype)) @ matrix.T
            white = rows.dtype.type(self.ridge**-0.5) * rows + along
        return white


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
    """

    axes: Array
    variances: Array
    floor: float
    other: float
    weight: float

    def shrunk(self, deviations: Array, counts: Array) -> Array:
        """Posterior means (k, d) of class means (k, d) around the centre, of so many samples."""
        rank, per_sample = len(self.axes), 1 / counts[:, None]
        known = self.floor / (self.floor + per_sample)  # (k, 1)
        along = (self.variances / (self.variances + per_sample) - known) * (
            deviations[:, :rank] @ self.axes
        )
        inside = known * deviations[:, :rank] + along @ self.axes.T
        beside = self.other / (self.other + per_sample) * deviations[:, rank:]
        return np.concatenate([inside, beside], axis=1)

    def squares(self, counts: Array, others: int) -> tuple[Array, Array]:
        """The expected square of a posterior mean, and the variance that is left, (k,) each."""
        rank, per_sample = len(self.axes), 1 / counts[:, None]
        variances = np.append(self.variances, [self.floor, self.other])
        times = np.append(
            np.ones(len(self.variances)), [rank - len(self.variances), self.weight * others]
        )
        known = variances / (variances + per_sample)  # (k, j + 2)
        return (known * variances) @ times, ((1 - known) * variances) @ times


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
    axes, sizes, owners
        Directions (m, r) of unit length, the scatter of their class along them, and their class.
    weights
        w / n of each class, (k,).
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
    axes: Array
    sizes: Array
    owners: Array
    weights: Array
    lack: Array

    @property
    def rank(self) -> int:
        """The number of coordinates that have a covariance."""
        return int(self.moments.means.shape[1])

    def whiten(self, rows: Array, others: Array) -> Array:
        """Whitened coordinates (n, d) of rows (n, r) and their other coordinates, around g."""
        white = _side_by_side(self.shared.whiten(rows), self.scale * others)
        return (white - self.centre).astype(rows.dtype)

    def scores(self, white: Array) -> Array:
        """Log densities (n, k) of whitened rows (n, d), up to a term that all classes share."""
        scores: Array = white @ self.targets.T + self.constants
        if len(self.owners):
            return self._sum(scores, self._from_scatter(white), white)
        return scores

    def _from_scatter(self, white: Array) -> Array:
        """What the classes' own scatters add to their scores, (n, k)."""
        white = white[:, : self.rank].astype(np.float32)
        shares = self.sizes * self.weights[self.owners]  # (m,)
        along = white @ self.axes.T  # (n, m)
        along -= self._offsets
        along *= along
        along *= (0.5 * shares / (1 + shares)).astype(np.float32)
        first = np.flatnonzero(np.diff(self.owners, prepend=-1))
        found = np.zeros((len(white), len(self.targets)))
        found[:, self.owners[first]] = np.add.reduceat(along, first, axis=1)
        volumes: Array = 0.5 * np.bincount(self.owners, np.log1p(shares), len(self.targets))
        return found - volumes

    @cached_property
    def _offsets(self) -> Array:
        rank = self.rank
        offsets = np.einsum("mr,mr->m", self.axes, self.targets[self.owners, :rank])
        short: Array = offsets.astype(np.float32)
        return short

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
        others = self._from_scatter(white) if len(self.owners) else np.zeros_like(scores)
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
            own = self.owners == label
            axes, sizes = self.axes[own], self.sizes[own]
            around = gone[:, :rank] @ axes.T
            away = (x - target)[:, :rank] @ axes.T
            added[:, label] = self._own_without(around, away, sizes, label)
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
        rows, and classes. The ridge, and what other classes' own scatters say, are left as they
        are. Each class must have more samples than rows.

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
        around_new, parts = _class_means(
            stretch(means), left, rank, self.shared.noise, self.prior.weight
        )
        rule = replace(
            self,
            moments=replace(self.moments, counts=left),
            centre=self.centre + around_new,
            weights=self.weights / (_weight(counts) / counts) * (_weight(left) / left),
            lack=_lack(left),
            **parts,
        )
        rows = stretch(white) - around_new
        linear = rows @ rule.targets.T + rule.constants
        added = self._from_scatter(white) if len(self.owners) else np.zeros_like(linear)
        targets = stretch.back(rule.targets[labels] + around_new)
        for label, gap, target in zip(labels, gaps, targets, strict=True):
            mine = owners == label
            axes, sizes = without.get(label) or self._scatter_without(
                label, np.concatenate([own[mine], gap[None]])[:, :rank]
            )
            kept = left[label] / (counts[label] - lost[label])
            shares = rule.weights[label] * kept * sizes
            along = (white[mine] - target)[:, :rank] @ axes.T
            quadratic = (along**2 * (shares / (1 + shares))).sum(axis=1)
            added[mine, label] = (quadratic - np.log1p(shares).sum()) / 2
        return HeldOutRows(rule, rows, rule._sum(linear, added, rows))

    def _scatter_without(self, label: int, gone: Array) -> tuple[Array, Array]:
        """Axes and sizes of a class's scatter without the outer products of some rows (m, r)."""
        own = self.owners == label
        axes, sizes = self.axes[own].astype(np.float64), self.sizes[own]
        along = gone @ axes.T  # (m, q)
        left, vectors = np.linalg.eigh(np.diag(sizes) - along.T @ along)
        return vectors.T @ axes, np.maximum(left, 0.0)

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

    def _own_without(self, gone: Array, away: Array, sizes: Array, label: int) -> Array:
        """What a class's own scatter adds without each of some rows, (n,).

        ``gone`` and ``away`` (n, m) are the rows around their class mean and around the class
        mean without them, along axes of which the scatter has ``sizes`` (m,).
        """
        count = self.moments.counts[label]
        weight = _weight(count - 1) * self.weights[label] / _weight(count) * count / (count - 1)
        all_rows = 1 + weight * sizes  # (m,)
        lost = weight * count / (count - 1)
        left = np.maximum(1 - lost * (gone**2 / all_rows).sum(axis=1), 1e-3)
        quadratic = ((1 - 1 / all_rows) * away**2).sum(axis=1)
        quadratic -= lost * (gone * away / all_rows).sum(axis=1) ** 2 / left
        added: Array = (quadratic - np.log(all_rows).sum() - np.log(left)) / 2
        return added


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
        values, axes = _principal_axes(gone)
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
        The weight that a class's own scatter tends to as samples come. By default 0.1.
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
    others, weight = moments.other_means.shape[1], classes / samples
    guessed = _guessed_share(samples - classes) * _variance(moments.other_means)
    level = moments.other_squares / max(others, 1) / freedom + guessed + shared.ridge
    scale = (weight / level) ** 0.5
    white = _side_by_side(shared.whiten(moments.means), scale * moments.other_means)
    centre, parts = _class_means(white, counts, rank, shared.noise, weight)
    rows = shared.whiten(moments.roots.astype(np.float32))  # (m, r)
    axes, sizes, owners = _principal_rows(rows, moments.owners)
    limit = WEIGHT if own is None else own
    return Posterior(
        moments=moments,
        shared=shared,
        scale=scale,
        centre=centre,
        axes=axes,
        sizes=sizes,
        owners=owners,
        weights=limit / WEIGHT * _weight(counts) / counts,
        lack=_lack(counts),
        **parts,
    )


def _class_means(
    white: Array, counts: Array, rank: int, noise: float, weight: float
) -> tuple[Array, dict[str, Any]]:
    """The centre of whitened class means (k, d), and what a rule has of them around it."""
    centre, deviations, prior = _mean_prior(white, counts, rank, noise, weight)
    targets = prior.shrunk(deviations, counts)
    expected, unknown = prior.squares(counts, white.shape[1] - rank)
    drawn = DRAWN * counts / (counts + HALF_DRAWN)
    drawn = np.maximum(drawn, len(counts) / float(counts.sum()))
    squares = np.maximum((targets**2).sum(axis=1), 1e-30)
    targets *= ((expected / squares) ** (drawn / 2))[:, None]
    constants = (CREDIT * unknown - (targets**2).sum(axis=1)) / 2
    parts = {"deviations": deviations, "prior": prior, "targets": targets}
    return centre, parts | {"constants": constants}


def _weight(counts: Any) -> Any:
    """The weight of a scatter of so many samples."""
    return WEIGHT * counts / (counts + HALF_WEIGHT)


def _level(moments: Moments, freedom: float) -> float:
    """The mean variance within classes; a guess counts as much as one sample."""
    apart = _variance(_side_by_side(moments.means, moments.other_means))
    total = float(moments.variances.mean())
    return float((total + GUESS * apart) / (freedom + 1)) or 1.0


def _variance(means: Array) -> float:
    """The mean variance of class means (k, d)."""
    squares = float(((means - means.mean(axis=0)) ** 2).sum())
    size = max(1, len(means) - 1) * int(max(1, means.shape[1]))
    return squares / size


def _guessed_rows(moments: Moments, freedom: float) -> Array:
    """Rows (k, r) whose outer products are a guess of the covariance within classes, or none.

    Samples of a class differ most where class means do.
    """
    means, share = moments.means.astype(np.float64), _guessed_share(freedom)
    if not share:
        return means[:0]
    rows: Array = (share / max(1, len(means) - 1)) ** 0.5 * (means - means.mean(axis=0))
    return rows


def _guessed_share(freedom: float) -> float:
    """The share of the covariance of class means in the guess, which counts as one sample."""
    share = GUESSED / (freedom + 1)
    return share if share > LEAST_GUESSED else 0.0


def _whitening(covariance: Array, added: float) -> Array:
    """L^-T (r, r), with L L^T the covariance plus ``added`` times the identity."""
    try:
        root = np.linalg.cholesky(covariance + added * np.eye(len(covariance)))
    except np.linalg.LinAlgError:  # rounding, or samples taken out, left negative variances
        values, vectors = np.linalg.eigh(covariance)
        matrix: Array = vectors / np.sqrt(np.maximum(values, 0) + added)
        return matrix
    return np.ascontiguousarray(invert_lower(root).T)


def _mean_prior(
    white: Array, counts: Array, rank: int, noise: float, weight: float
) -> tuple[Array, Array, MeanPrior]:
    """The centre (d,), class means around it (k, d), and their distribution, by moments."""
    samples, classes = float(counts.sum()), len(counts)
    reliable, centre, spread = _centre(white[:, :rank], counts, noise)
    inside = white[:, :rank] - centre
    total = float(reliable.sum())
    values, axes = _principal_axes(np.sqrt(reliable)[:, None] * inside)
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
    prior = MeanPrior(axes, share * variances + floor, floor, other, weight)
    return centre, _side_by_side(inside, beside), prior


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


def _principal_axes(rows: Array) -> tuple[Array, Array]:
    """Eigenvalues (j,) of ``rows.T @ rows`` above rounding, and eigenvectors (d, j)."""
    if len(rows) < rows.shape[1]:
        values, vectors = np.linalg.eigh(rows @ rows.T)
        kept = values > 1e-10 * values.max(initial=1e-30)
        return values[kept], rows.T @ vectors[:, kept] / np.sqrt(values[kept])
    values, vectors = np.linalg.eigh(rows.T @ rows)
    kept = values > 1e-10 * values.max(initial=1e-30)
    return values[kept], vectors[:, kept]


def _principal_rows(white: Array, owners: Array) -> tuple[Array, Array, Array]:
    """Principal axes (m, r) of each class's rows, the squares along them (m,), and owners (m,)."""
    counts = np.bincount(owners) if len(owners) else np.zeros(0, np.int64)
    first, axes, sizes = np.cumsum(counts) - counts, np.zeros_like(white), np.zeros(len(white))
    for size in set(counts.tolist()) - {0}:  # classes of as many rows together
        rows = first[counts == size][:, None] + np.arange(size)  # (classes, size)
        own = white[rows]  # (classes, size, r)
        values, vectors = np.linalg.eigh((own @ own.swapaxes(1, 2)).astype(np.float64))
        values = np.maximum(values, 1e-30)
        vectors = (vectors / np.sqrt(values)[:, None]).astype(np.float32)
        axes[rows] = vectors.swapaxes(1, 2) @ own
        sizes[rows] = values
    kept = sizes > 1e-6 * sizes.max(initial=0)
    return axes[kept], sizes[kept], owners[kept]


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


def _side_by_side(rows: Array, others: Array) -> Array:
    return np.concatenate([rows, others], axis=1) if others.shape[1] else rows
