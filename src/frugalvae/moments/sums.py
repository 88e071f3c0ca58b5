"""Counts, means and scatters of classes as sums: added, merged, taken out, and cut to a size."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from frugalvae.errors import InputError
from frugalvae.formatting import plural
from frugalvae.maths.arrays import (
    Array,
    mixed,
    outer,
    rotate,
    rotate_back,
    signed_root,
    stack,
    sum_of_squares,
    without,
)
from frugalvae.maths.gaussians import RunningSums
from frugalvae.moments.rule import Moments

CLASSES_COMPARED = 2048  # of more, some stand for all where only the scale of means counts
ROWS = 4096  # that are added up in one product
ROUNDED_MEAN = 1e-9  # of its square: the scatter that samples seem to have if all are equal
WHOLE = 1e-3  # a class has lost no rows if they say all but this share of its scatter
EVEN = 30  # samples that variances of features are pulled to their mean by: few fit themselves
BY_CLASS = ("counts", "means", "squares", "roots")


@dataclass
class ClassSums:
    """What is kept of samples of classes.

    Arrays are replaced, never changed in place, so copies can share them.

    Attributes
    ----------
    rooted
        Whether features are replaced by their signed square roots.
    rank
        The number of coordinates that have a covariance. If they are fewer than the features,
        these are rotated, always by the same rotation.
    counts, means
        Number of samples of each class, and the mean of its mapped samples, (d,).
    squares
        Sum of squares of each class's samples around its mean, over all features.
    roots
        Rows of each class, (m, rank), whose outer products add up to its scatter, or to a part.
    scatter
        Scatter of all samples around their class means, (rank, rank); empty while the rows of
        all classes say it.
    other_squares
        The sum of squares in all other coordinates.
    """

    rooted: bool = False
    rank: int = 0
    counts: dict[int, int] = field(default_factory=dict)
    means: dict[int, Array] = field(default_factory=dict)
    squares: dict[int, float] = field(default_factory=dict)
    roots: dict[int, Array] = field(default_factory=dict)
    scatter: Array = field(default_factory=lambda: np.empty((0, 0)))
    other_squares: float = 0.0

    def copy(self) -> ClassSums:
        """Sums of their own, which share arrays."""
        return self._of(lambda kept: dict(kept))

    def restricted_to(self, labels: Collection[int]) -> ClassSums:
        """Sums of some of the classes, and a share of the scatter of all."""
        twin = self._of(lambda kept: {y: own for y, own in kept.items() if y in labels})
        share = twin.freedom / self.freedom
        twin.scatter, twin.other_squares = share * self.scatter, share * self.other_squares
        return twin

    def _of(self, some: Callable[[dict[int, Any]], dict[int, Any]]) -> ClassSums:
        """The same sums with some of the classes."""
        kept: dict[str, Any] = {name: some(getattr(self, name)) for name in BY_CLASS}
        return replace(self, **kept)

    @property
    def dim(self) -> int:
        """The number of features."""
        return len(next(iter(self.means.values())))

    @property
    def is_whole(self) -> bool:
        """Whether the rows of each class say all of its scatter."""
        return not len(self.scatter)

    @property
    def freedom(self) -> int:
        """Samples less their classes, at least one: what scatters are divided by."""
        return max(1, sum(self.counts.values()) - len(self.counts))

    def lost_share(self, label: int) -> float:
        """The share of a class's scatter that its rows do not say, from 0 to 1.

        The rows' outer products never exceed the scatter, and fall short of it by at most this
        share of its trace.
        """
        said = sum_of_squares(self.roots[label])
        return max(0.0, 1 - said / self.squares[label]) if self.squares[label] else 0.0

    # ------------------------------------------------------------ coordinates

    def mapped(self, features: Array) -> Array:
        """Features as they are summed: their square roots, or unchanged."""
        return signed_root(features) if self.rooted else features

    def coordinates(self, rows: Array) -> Array:
        """The coordinates (n, rank) of mapped rows (n, d) that have a covariance."""
        return rows if self.rank == self.dim else rotate(rows, self.rank)

    def parted(self, rows: Array) -> tuple[Array, Array]:
        """Coordinates of mapped rows that have a covariance, and the others."""
        if self.rank == self.dim:
            return rows, rows[:, :0]
        turned = rotate(rows, self.dim)
        return turned[:, : self.rank], turned[:, self.rank :]

    def moments(self) -> Moments:
        """What a rule is derived from."""
        means, others = self.parted(stack(self.means).astype(np.float64))
        sizes = [len(root) for root in self.roots.values()]
        return Moments(
            counts=np.array(list(self.counts.values()), np.float64),
            means=means,
            scatter=None if self.is_whole else self.scatter,
            roots=np.concatenate(list(self.roots.values())),
            owners=np.arange(len(sizes)).repeat(sizes),
            other_means=others,
            other_squares=self.other_squares,
        )

    def moments_of_some(self) -> Moments:
        """The same of some of many classes, without rows: they say how far means are apart."""
        if self.is_whole or len(self.counts) <= CLASSES_COMPARED:
            return self.moments()
        some = list(self.means.values())[:: 1 + len(self.means) // CLASSES_COMPARED]
        means, others = self.parted(np.stack(some).astype(np.float64))
        counts = np.array(list(self.counts.values()), np.float64)
        none = np.empty((0, self.rank)), np.empty(0, int)
        return Moments(counts, means, self.scatter, *none, others, self.other_squares)

    def variances(self) -> tuple[Array, Array]:
        """Variances of features within classes (d,), and of each class relative to them, (k,)."""
        freedom, dim = self.freedom, self.dim
        if self.is_whole:
            rows = np.concatenate(list(self.roots.values()))
            variances = np.einsum("md,md->d", rows, rows, dtype=np.float64) / freedom
        else:
            variances = self.scatter.diagonal() / freedom
        if self.rank < dim:
            scatter = rotate_back(rotate_back(self.scatter, dim).T, dim)
            beside = self.other_squares * (1 - self.rank / dim) / (dim - self.rank)
            variances = (scatter.diagonal() + beside) / freedom
        variances = (freedom * variances + EVEN * variances.mean()) / (freedom + EVEN)
        total = float(variances.sum()) or 1.0
        freedoms = np.maximum(1, np.array(list(self.counts.values())) - 1)
        own = np.array(list(self.squares.values())) / freedoms / total
        return variances, np.where(freedoms > 1, own, 1.0)

    # ---------------------------------------------------------- in and out

    def add(self, samples: Mapping[int, Array]) -> None:
        """Add samples (n, d) of classes, as features."""
        rows = {label: self._add(label, self._exactly(x)) for label, x in samples.items()}
        sizes = {label: len(own) for label, own in rows.items()}
        for labels in batched_classes(sizes):
            coordinates = self._add_scatter(np.concatenate([rows.pop(label) for label in labels]))
            ends = np.cumsum([sizes[label] for label in labels])[:-1]
            for label, new in zip(labels, np.split(coordinates, ends), strict=True):
                old = self.roots.get(label)
                self.roots[label] = new if old is None else np.concatenate([old, new])

    def _add(self, label: int, x: Array) -> Array:
        """Add samples x (n, d) to count, mean and squares; rows that add to the scatter, (., d)."""
        before = self._sums(label)
        rows = before.deviations(x)
        self.counts[label] = before.count + len(x)
        self.means[label] = before.mean_with(x).astype(np.float32)
        self.squares[label] = self.squares.get(label, 0.0) + float((rows**2).sum())
        return rows

    def _add_scatter(self, rows: Array, sign: float = 1.0) -> Array:
        """Add the outer products of rows (n, d) to the scatter, if it is kept; coordinates."""
        coordinates = self.coordinates(rows)  # (n, rank)
        if not self.is_whole:
            self.scatter = self.scatter + sign * (coordinates.T @ coordinates)
            beside = max(0.0, float((rows**2).sum() - (coordinates**2).sum()))
            self.other_squares = max(0.0, self.other_squares + sign * beside)
        return coordinates

    def _sums(self, label: int) -> RunningSums:
        if label not in self.counts:
            return RunningSums()
        return RunningSums(self.counts[label], self.means[label].astype(np.float64))

    def _exactly(self, features: Array) -> Array:
        return self.mapped(features).astype(np.float64)

    def merge(self, other: ClassSums, labels: Mapping[int, int]) -> list[int]:
        """Add other sums, whose class ``label`` is ``labels[label]`` here; classes that changed."""
        if not other.counts:
            return []
        changed = list(labels.values())
        if not self.counts:
            self.rooted, self.rank = other.rooted, other.rank
            self.scatter = np.zeros_like(other.scatter)
        self._check_same_kind(other)
        if not (self.is_whole and other.is_whole):
            rank, other = min(self.rank, other.rank), other.copy()
            changed += list(self.roots) if self.is_whole else []
            for sums in (self, other):
                sums.sum_up()
                sums.lower_rank(rank)
            self.scatter = self.scatter + other.scatter if self.counts else other.scatter
            self.other_squares += other.other_squares
        for label in other.counts:
            self._join(labels[label], other, label)
        return changed

    def _check_same_kind(self, other: ClassSums) -> None:
        if self.counts and self.dim != other.dim:
            raise InputError(f"one memory has {self.dim} features, the other {other.dim}")
        if self.rooted != other.rooted:
            raise InputError(
                "one memory has square roots of features and the other has features as they "
                "are; teach one of them again with root=True or root=False"
            )

    def _join(self, label: int, other: ClassSums, theirs: int) -> None:
        """Join a class of other sums whose scatter was joined already, if there is one."""
        mean, count = other.means[theirs].astype(np.float64), other.counts[theirs]
        rows, squares = [other.roots[theirs]], other.squares[theirs]
        if label in self.counts:
            mine = self._sums(label)
            apart = mean - mine.mean
            gap = (mine.count * count / (mine.count + count)) ** 0.5 * apart[None]
            mean = mine.mean + apart * (count / (mine.count + count))
            squares += self.squares[label] + float((gap**2).sum())
            rows = [self.roots[label], *rows, self._add_scatter(gap)]
        self.counts[label] = self.counts.get(label, 0) + count
        self.means[label] = mean.astype(np.float32)
        self.squares[label] = squares
        self.roots[label] = np.concatenate(rows)

    def join(self, label: int, joined: int) -> None:
        """Make one class of two: ``joined`` becomes a part of ``label``."""
        self._join(label, self, joined)
        for name in BY_CLASS:
            getattr(self, name).pop(joined)

    def subtract(self, label: int, features: Array) -> None:
        """Take out samples of a class that were added before: count, mean and scatter exactly."""
        x = self._exactly(features)
        before, part = self._sums(label), RunningSums(len(x), x.mean(axis=0))
        if len(x) >= before.count:
            raise InputError(
                f"cannot take {plural(len(x), 'sample')} out of a class of {before.count}; to take "
                "out all of them, forget the class"
            )
        left = before.count - len(x)
        mean = part.mean + (before.mean - part.mean) * (before.count / left)
        rows = RunningSums(left, mean).deviations(x)  # what adding them added
        squares = self.squares[label] - float((rows**2).sum())
        root, negative = without(self.roots[label], self.coordinates(rows))
        tolerance = 0.02 * self.squares[label] + ROUNDED_MEAN * float(before.mean @ before.mean)
        if squares < -tolerance or (self.is_whole and negative > tolerance):
            raise InputError(
                f"not all of these were taught ({plural(len(x), 'sample')}): without them the "
                "variance of the class would be negative"
            )
        self._add_scatter(rows, -1.0)
        self.counts[label], self.means[label] = left, mean.astype(np.float32)
        self.squares[label] = max(0.0, squares)
        self.roots[label] = root[: left - 1]  # any further rows are rounding

    def drop(self, label: int) -> None:
        """Drop a class, and its share of the scatter of all classes.

        While rows say all of the scatter, nothing remains. Otherwise its rows are taken out, and
        of what no rows say a part as large as its own.
        """
        root = self.roots.pop(label).astype(np.float64)
        hidden = self.squares.pop(label) - float((root**2).sum())
        del self.counts[label], self.means[label]
        if not self.counts:
            self.scatter, self.other_squares = np.empty((0, 0)), 0.0
        if self.is_whole:
            return
        said = sum((r.astype(np.float64).T @ r for r in self.roots.values()), root.T @ root)
        rest = self.scatter - said
        total = float(rest.trace()) + self.other_squares
        share = min(1.0, max(0.0, hidden / total)) if total > 0 else 0.0
        self.scatter = self.scatter - root.T @ root - share * rest
        self.other_squares *= 1 - share

    def drop_with(self, label: int, features: Array) -> None:
        """Drop a class whose samples are given: what they added is taken out exactly."""
        x = self._exactly(features)
        near = 1e-2 * float(np.abs(x).max())
        if not np.allclose(x.mean(axis=0), self.means[label], rtol=1e-2, atol=near):
            raise InputError("these are not the samples of the class: their mean is another")
        self._add_scatter(x - x.mean(axis=0), -1.0)
        scatter, other = self.scatter, self.other_squares
        self.drop(label)
        if not self.is_whole:
            self.scatter, self.other_squares = scatter, other

    # ------------------------------------------------------------------- size

    def mix(self, labels: Iterable[int]) -> None:
        """Turn rows that may be samples into rows that mix all of them."""
        for label in labels:
            self.roots[label] = mixed(self.roots[label])

    def sum_up(self) -> None:
        """Keep the scatter of all classes as a matrix from now on."""
        if self.is_whole and self.counts:
            parts = batched_classes({label: len(root) for label, root in self.roots.items()})
            scatters = (outer(np.concatenate([self.roots[y] for y in some])) for some in parts)
            self.scatter = sum(scatters, np.zeros((self.rank, self.rank)))

    def lower_rank(self, rank: int) -> None:
        """Keep the first ``rank`` coordinates of the scatter and of all rows."""
        if rank >= self.rank:
            return
        if self.rank == self.dim:  # coordinates were the features themselves so far
            lower = rotate(rotate(self.scatter, rank).T, rank)
            shorter = {label: rotate(own, rank) for label, own in self.roots.items()}
        else:
            lower = self.scatter[:rank, :rank]
            shorter = {label: own[:, :rank] for label, own in self.roots.items()}
        lower = (lower + lower.T) / 2
        self.roots = {y: np.ascontiguousarray(own, np.float32) for y, own in shorter.items()}
        self.other_squares += float(self.scatter.trace() - lower.trace())
        self.scatter, self.rank = lower, rank


def batched_classes(sizes: Mapping[int, int], rows: int = ROWS) -> list[list[int]]:
    """Classes in groups of about so many rows: one product for many small classes.

    >>> batched_classes({7: 3, 8: 2, 9: 4}, rows=4)
    [[7, 8], [9]]
    """
    groups: dict[int, list[int]] = {}
    before = 0
    for label, size in sizes.items():
        groups.setdefault(before // rows, []).append(label)
        before += size
    return list(groups.values())
