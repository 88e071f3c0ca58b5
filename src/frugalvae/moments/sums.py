"""Counts, means and scatters of classes as sums: added, merged, taken out, and cut to a budget."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from frugalvae.errors import InputError, check_choice, check_number
from frugalvae.formatting import plural
from frugalvae.maths.arrays import Array, signed_root, stack, sum_of_squares
from frugalvae.maths.matrices import leading, mixed, outer, rotate, rotate_back, without
from frugalvae.maths.running_sums import RunningSums
from frugalvae.moments.budget import Room, shared_out, usual_bytes
from frugalvae.moments.covariance import Moments, SharedCovariance
from frugalvae.moments.evidence import SURE, Evidence, HeldOut
from frugalvae.parts.protocols import Task

CLASSES_HELD_OUT = 200  # whose rows are also found without some samples
CLASSES_COMPARED = 2048  # of more, some stand for all where only the scale of means counts
ROWS = 4096  # that are added up in one product
ROUNDED_MEAN = 1e-9  # of its square: the scatter that samples seem to have if all are equal
WHOLE = 1e-3  # a class has lost no rows if they say all but this share of its scatter


class MappedFeatures:
    """What memories share that map features, and keep a covariance of the first coordinates.

    Attributes
    ----------
    root, rooted_
        Whether features are to be replaced by their signed square roots, and whether they are.
    means_
        The mean of each class's mapped samples, (d,).
    rank_
        The number of coordinates that have a covariance. If they are fewer than the features,
        these are rotated, always by the same rotation.
    """

    root: bool | None
    rooted_: bool
    means_: dict[int, Array]
    rank_: int

    @property
    def density_width(self) -> int:
        """The number of coordinates that have a covariance."""
        return self.rank_

    def mapped(self, features: Array) -> Array:
        """Features as the memory sees them: their square roots, or unchanged."""
        return signed_root(features) if self.rooted_ else features

    def mapped_means(self) -> Array:
        """Class means (k, d), exactly those of all samples."""
        return stack(self.means_)

    def _map_like(self, features: Array) -> None:
        """Map features as these first ones (n, d) ask for, and keep all coordinates."""
        self.rooted_ = bool((features >= 0).all()) if self.root is None else self.root
        self.rank_ = features.shape[1]

    def _unmapped(self, rows: Array) -> Array:
        """The inverse of :meth:`mapped`; no negative features if real ones had none."""
        if not self.rooted_:
            return rows
        return np.maximum(rows, 0) ** 2 if self.root is None else rows * np.abs(rows)

    @property
    def _dim(self) -> int:
        return len(next(iter(self.means_.values())))

    def _coordinates(self, rows: Array) -> Array:
        """The coordinates (n, rank) of mapped rows (n, d) that have a covariance."""
        return rows if self.rank_ == self._dim else rotate(rows, self.rank_)

    def _lowered(
        self, scatter: Array, rows: dict[int, Array], rank: int
    ) -> tuple[Array, dict[int, Array]]:
        """The first ``rank`` coordinates of a scatter (r, r) and of rows of classes, (., r)."""
        if self.rank_ == self._dim:  # coordinates were the features themselves so far
            lower = rotate(rotate(scatter, rank).T, rank)
            shorter = {label: rotate(own, rank) for label, own in rows.items()}
        else:
            lower = scatter[:rank, :rank]
            shorter = {label: own[:, :rank] for label, own in rows.items()}
        cut = {label: np.ascontiguousarray(own, np.float32) for label, own in shorter.items()}
        return (lower + lower.T) / 2, cut

    def _drawn(
        self,
        label: int,
        count: int,
        root: Array,
        directions: Array,
        scale: float,
        level: float,
        rng: np.random.Generator,
    ) -> Array:
        """Draws from a Gaussian around a class mean, as features (count, d).

        Its covariance is ``scale**2`` times that of ``root`` (rank, .), and the outer products of
        ``directions`` (., rank) besides. Coordinates without a covariance deviate by ``level``.
        """

        def noise(width: int) -> Array:
            return rng.standard_normal((count, width), np.float32)

        drawn = np.float32(scale) * noise(root.shape[1]) @ root.T
        drawn = drawn + noise(len(directions)) @ directions
        if self.rank_ < self._dim:
            residual = np.float32(scale * level) * noise(self._dim)
            drawn = residual + rotate_back(drawn - rotate(residual, self.rank_), self._dim)
        return self._unmapped((self.means_[label] + drawn).astype(np.float32))


class ClassSums(MappedFeatures):
    """The sums that :class:`frugalvae.moments.memory.MomentMemory` keeps; see there.

    Arrays are replaced, never changed in place, so copies can share them.

    Attributes
    ----------
    counts_, means_
        Number of samples of each class, and their mean, (d,).
    squares_
        Sum of squares of each class's samples around its mean, over all features.
    roots_
        Rows of each class, (m, rank).
    evidence_
        How samples of each class were classified when they were held out.
    rank_
        The number of coordinates that have a covariance.
    scatter_
        Scatter of all samples around their class means, (rank, rank); empty while the rows of
        all classes say it.
    other_squares_
        The sum of squares in all other coordinates.
    """

    def __init__(
        self,
        budget: int | str | None = None,
        *,
        directions: int | None = None,
        root: bool | None = None,
    ) -> None:
        if budget is not None:
            Room.of(budget)
        if directions is not None:
            check_number("directions", directions, 0, 2**20, whole=True)
        check_choice("root", root, (True, False, None))
        self.budget = budget
        self.directions = directions
        self.root = root
        self.rooted_ = False
        self.counts_: dict[int, int] = {}
        self.means_: dict[int, Array] = {}
        self.squares_: dict[int, float] = {}
        self.roots_: dict[int, Array] = {}
        self.evidence_: dict[int, Evidence] = {}
        self.rank_ = 0
        self.scatter_: Array = np.empty((0, 0))
        self.other_squares_ = 0.0
        self._derived: dict[Any, Any] = {}  # what answers and samples; never stored

    def __deepcopy__(self, memo: dict[int, object]) -> ClassSums:
        """A copy that shares arrays: they are replaced, never changed in place."""
        twin = copy.copy(self)
        for name in ("counts_", "means_", "squares_", "roots_", "evidence_", "_derived"):
            setattr(twin, name, dict(getattr(self, name)))
        return twin

    def __getstate__(self) -> dict[str, Any]:
        """What a pickle holds: what follows from it is several times as large, and soon made."""
        return vars(self) | {"_derived": {}}

    def among(self, labels: Collection[int]) -> ClassSums:
        """A memory of some of the classes, with the shared covariance of all."""
        twin = copy.copy(self)
        for name in ("counts_", "means_", "squares_", "roots_", "evidence_"):
            kept = getattr(self, name)
            setattr(
                twin,
                name,
                {label: kept[label] for label in self.counts_ if label in labels and label in kept},
            )
        freedoms = [sum(part.counts_.values()) - len(part.counts_) for part in (twin, self)]
        share = max(1, freedoms[0]) / max(1, freedoms[1])
        twin.scatter_, twin.other_squares_ = share * self.scatter_, share * self.other_squares_
        twin._derived = {} if self.is_whole else {"shared": self._shared_of_some}
        return twin

    @property
    def classes(self) -> list[int]:
        """The classes known so far."""
        return list(self.counts_)

    @property
    def is_whole(self) -> bool:
        """Whether the rows of each class say all of its scatter."""
        return not len(self.scatter_)

    def lost(self, label: int) -> float:
        """The share of a class's scatter that its rows do not say, from 0 to 1.

        The rows' outer products never exceed the scatter, and fall short of it by at most this
        share of its trace.
        """
        said = sum_of_squares(self.roots_[label])
        return max(0.0, 1 - said / self.squares_[label]) if self.squares_[label] else 0.0

    @property
    def has_margins(self) -> bool:
        """Whether margins of samples that were held out are kept: there are some, and room."""
        found = any(own.sums[SURE:].any() for own in self.evidence_.values())
        return found and self._room.has_margins(len(self.counts_))

    def _sums(self, label: int) -> RunningSums:
        if label not in self.counts_:
            return RunningSums()
        return RunningSums(self.counts_[label], self.means_[label].astype(np.float64))

    def _exactly(self, features: Array) -> Array:
        """Features as the memory sees them, in float64."""
        return self.mapped(features).astype(np.float64)

    def _add_samples(self, task: Task) -> None:
        """Add samples to counts, means, squares, roots and the scatter."""
        self._add_rows({y: self._add(y, self._exactly(task.of(y))) for y in task.classes})

    def _add(self, label: int, x: Array) -> Array:
        """Add samples x (n, d) to count, mean and squares; rows that add to the scatter, (., d)."""
        before = self._sums(label)
        rows = before.deviations(x)
        self.counts_[label] = before.count + len(x)
        self.means_[label] = before.mean_with(x).astype(np.float32)
        self.squares_[label] = self.squares_.get(label, 0.0) + float((rows**2).sum())
        return rows

    def _add_rows(self, deviations: dict[int, Array]) -> None:
        """Move rows (., d) of classes to their roots, and add them to the scatter if it is kept."""
        sizes = {label: len(own) for label, own in deviations.items()}
        for labels in together(sizes):
            rows = np.concatenate([deviations.pop(label) for label in labels])
            coordinates = self._coordinates(rows)  # (., rank)
            if not self.is_whole:
                self.scatter_ = self.scatter_ + coordinates.T @ coordinates
                self.other_squares_ += max(0.0, float((rows**2).sum() - (coordinates**2).sum()))
            ends = np.cumsum([sizes[label] for label in labels])[:-1]
            for label, new in zip(labels, np.split(coordinates, ends), strict=True):
                old = self.roots_.get(label)
                self.roots_[label] = new if old is None else np.concatenate([old, new])
        self._derived = {}

    def merge(
        self,
        other: ClassSums,
        labels: Mapping[int, int],
        counts: object = None,
        others: object = None,
    ) -> None:
        """Add what another memory was taught: its class ``label`` is ``labels[label]`` here.

        The result is what one memory would be that was taught all samples: exactly while all
        rows fit, otherwise but for the rows that were cut.
        """
        self._check_mergeable(other)
        if not other.counts_:
            return
        changed = dict.fromkeys(labels.values(), 0)
        if not self.counts_:
            self.rooted_, self.rank_ = other.rooted_, other.rank_
            self.scatter_ = np.zeros_like(other.scatter_)
        other = copy.deepcopy(other)
        if not (self.is_whole and other.is_whole):
            rank = min(self.rank_, other.rank_)
            changed |= dict.fromkeys(self.roots_ if self.is_whole else (), 0)
            for memory in (self, other):
                memory._sum_up()
                memory._lower_rank(rank)
            self.scatter_ = self.scatter_ + other.scatter_ if self.counts_ else other.scatter_
            self.other_squares_ += other.other_squares_
        for label, count in other.counts_.items():
            self._join(labels[label], other, label, count)
        self._settle(changed, hold_out=False)

    def _check_mergeable(self, other: ClassSums) -> None:
        if not self.counts_ or not other.counts_:
            return
        if self._dim != other._dim:
            raise InputError(f"one memory has {self._dim} features, the other {other._dim}")
        if self.rooted_ != other.rooted_:
            raise InputError(
                "one memory has square roots of features and the other has features as they "
                "are; teach one of them again with root=True or root=False"
            )

    def _join(self, label: int, other: ClassSums, theirs: int, count: int) -> None:
        """Join a class of another memory whose scatter was joined already, if there is one."""
        mean, root = other.means_[theirs].astype(np.float64), other.roots_[theirs]
        rows, squares = [root], other.squares_[theirs]
        if label in self.counts_:
            mine = self._sums(label)
            apart = mean - mine.mean
            gap = (mine.count * count / (mine.count + count)) ** 0.5 * apart[None]
            mean = mine.mean + apart * (count / (mine.count + count))
            squares += self.squares_[label] + float((gap**2).sum())
            gap_rows = self._coordinates(gap)
            if not self.is_whole:
                self.scatter_ = self.scatter_ + gap_rows.T @ gap_rows
                self.other_squares_ += max(0.0, float((gap**2).sum() - (gap_rows**2).sum()))
            rows = [self.roots_[label], root, gap_rows]
        self.counts_[label] = self.counts_.get(label, 0) + count
        self.means_[label] = mean.astype(np.float32)
        self.squares_[label] = squares
        self.roots_[label] = np.concatenate(rows)
        self.evidence_[label] = self.evidence_.get(label, Evidence()) + other.evidence_.get(
            theirs, Evidence()
        )
        self._derived = {}

    def join(self, label: int, joined: int) -> None:
        """Make one class of two: ``joined`` becomes a part of ``label``."""
        self._join(label, self, joined, self.counts_[joined])
        for kept in (self.counts_, self.means_, self.squares_, self.roots_, self.evidence_):
            kept.pop(joined, None)
        self._settle({label: 0})

    def unlearn(self, task: Task, count: int) -> list[str]:
        """Take out samples of a class that were added before: count, mean and scatter exactly.

        Returns what cannot be taken out: rows that were cut in favour of others do not come back.
        """
        (label,) = task.classes
        x = self.mapped(task.features).astype(np.float64)
        before, part = self._sums(label), RunningSums(len(x), x.mean(axis=0))
        if len(x) >= before.count:
            raise InputError(
                f"cannot take {plural(len(x), 'sample')} out of a class of {before.count}; to take "
                "out all of them, forget the class"
            )
        left = before.count - len(x)
        mean = part.mean + (before.mean - part.mean) * (before.count / left)
        rows = RunningSums(left, mean).deviations(x)  # what adding them added
        squares = self.squares_[label] - float((rows**2).sum())
        coordinates = self._coordinates(rows)
        root, lost = without(self.roots_[label], coordinates)
        tolerance = 0.02 * self.squares_[label] + ROUNDED_MEAN * float(before.mean @ before.mean)
        if squares < -tolerance or (self.is_whole and lost > tolerance):
            raise InputError(
                f"not all of these were taught ({plural(len(x), 'sample')}): without them the "
                "variance of the class would be negative"
            )
        if not self.is_whole:
            self.scatter_ = self.scatter_ - coordinates.T @ coordinates
            beside = float((rows**2).sum() - (coordinates**2).sum())
            self.other_squares_ = max(0.0, self.other_squares_ - beside)
        self.counts_[label], self.means_[label] = left, mean.astype(np.float32)
        self.squares_[label] = max(0.0, squares)
        self.roots_[label] = root[: left - 1]  # any further rows are rounding
        self._derived = {}
        if self.lost(label) < WHOLE:
            return []
        return ["rows of the class that were cut before do not come back"]

    def forget(self, label: int) -> list[str]:
        """Drop a class, and its share of the scatter of all classes.

        While rows say all of the scatter, nothing remains. Otherwise its rows are taken out, and
        of what no rows say a part as large as its own.
        """
        root = self.roots_.pop(label).astype(np.float64)
        hidden = self.squares_.pop(label) - float((root**2).sum())
        self.evidence_.pop(label, None)
        del self.counts_[label], self.means_[label]
        self._derived = {}
        if not self.counts_:
            self.scatter_, self.other_squares_ = np.empty((0, 0)), 0.0
        if self.is_whole:
            return []
        said = sum((r.astype(np.float64).T @ r for r in self.roots_.values()), root.T @ root)
        rest = self.scatter_ - said
        total = float(rest.trace()) + self.other_squares_
        share = min(1.0, max(0.0, hidden / total)) if total > 0 else 0.0
        self.scatter_ = self.scatter_ - root.T @ root - share * rest
        self.other_squares_ *= 1 - share
        return [
            "the covariance that all classes share lost the class's rows and an average share of "
            "what no rows say; how the class differed from that average remains"
        ]

    def forget_with(self, task: Task) -> list[str]:
        """Drop a class whose samples are given: what they added is taken out exactly."""
        (label,) = task.classes
        x = self.mapped(task.features).astype(np.float64)
        near = 1e-2 * float(np.abs(x).max())
        if not np.allclose(x.mean(axis=0), self.means_[label], rtol=1e-2, atol=near):
            raise InputError("these are not the samples of the class: their mean is another")
        rows = x - x.mean(axis=0)
        coordinates, scatter = self._coordinates(rows), self.scatter_
        beside = float((rows**2).sum() - (coordinates**2).sum())
        other = max(0.0, self.other_squares_ - beside)
        remains = self.forget(label)
        if self.is_whole:
            return remains
        self.scatter_, self.other_squares_ = scatter - coordinates.T @ coordinates, other
        return []

    # --------------------------------------------------------------- budget

    def _settle(self, new: Mapping[int, int], hold_out: bool = True) -> dict[int, HeldOut]:
        """Cut what exceeds the budget, and mix the rows of each class.

        ``new`` are the classes that have changed, and from which row on. Returns what their rows
        look like without some of the new ones, where rows were cut. Warns if the means alone
        exceed the budget.
        """
        room, classes = self._room, len(self.counts_)
        wanted = {label: self._wanted(label) for label in self.roots_}
        uncut = self.directions is None or max(self.counts_.values()) - 1 <= self.directions
        rows = sum(wanted.values())
        if self.is_whole and uncut and room.whole(self._dim, classes, rows) <= room.limit:
            self._mix(new)
            return {}
        if self.is_whole:
            new = dict.fromkeys(self.roots_, 0) | dict(new)
        self._sum_up()
        self._lower_rank(room.rank(self._dim, classes, rows))
        allowed = shared_out(wanted, room.rows(self._dim, classes, self.rank_))
        spent = room.summed(self._dim, classes, self.rank_, 0)
        if spent > room.limit:
            warnings.warn(
                f"{classes} classes of {self._dim} features take {room.said(spent)} without any "
                f"row of their own: more than the budget of {room.said(room.limit)}",
                stacklevel=2,
            )
        return self._cut_rows(allowed, new, hold_out)

    def _mix(self, labels: Iterable[int]) -> None:
        """Turn rows that may be samples into rows that mix all of them."""
        for label in labels:
            self.roots_[label] = mixed(self.roots_[label])

    def _wanted(self, label: int) -> int:
        """How many rows a class has, if there is room."""
        rows = min(len(self.roots_[label]), max(0, self.counts_[label] - 1), self.rank_)
        return rows if self.directions is None else min(rows, self.directions)

    @property
    def _room(self) -> Room:
        budget = self.budget
        if budget is None:
            return Room(usual_bytes(self._dim, len(self.counts_)), in_bytes=True, usual=True)
        return Room.of(budget)

    def _sum_up(self) -> None:
        """Keep the scatter of all classes as a matrix from now on."""
        if self.is_whole and self.counts_:
            roots = self.roots_
            parts = together({label: len(root) for label, root in roots.items()})
            scatters = (outer(np.concatenate([roots[label] for label in some])) for some in parts)
            self.scatter_ = sum(scatters, np.zeros((self.rank_, self.rank_)))
            self._derived = {}

    def _lower_rank(self, rank: int) -> None:
        """Keep the first ``rank`` coordinates of the scatter and of all rows."""
        if rank >= self.rank_:
            return
        lower, self.roots_ = self._lowered(self.scatter_, self.roots_, rank)
        self.other_squares_ += float(self.scatter_.trace() - lower.trace())
        self.scatter_, self.rank_ = lower, rank
        self._derived = {}

    def _cut_rows(
        self, allowed: Mapping[int, int], new: Mapping[int, int], hold_out: bool
    ) -> dict[int, HeldOut]:
        """Keep of each class the combinations of rows in which it varies most beyond the others.

        Rows of classes that did not change are in that order already.
        """
        long = [label for label, root in self.roots_.items() if len(root) > allowed[label]]
        self._mix(set(new) - set(long))
        apart: dict[int, HeldOut] = {}
        changed = [label for label in long if label in new and allowed[label]]
        shared = self._shared_of_some if changed else None
        for label, white in () if shared is None else self._whitened(changed, shared):
            longest = leading(white, allowed[label])  # (rows, m)
            self.roots_[label] = longest.T @ self.roots_[label]
            if hold_out and len(apart) < CLASSES_HELD_OUT:
                apart[label] = HeldOut.of(white, longest.T @ white, new[label])
        for label in long:
            self.roots_[label] = self.roots_[label][: allowed[label]].copy()
        few = shared is not None and len(self.counts_) <= CLASSES_COMPARED
        self._derived = {"shared": shared} if few else {}
        return apart

    def _whitened(self, labels: list[int], shared: SharedCovariance) -> Iterator[tuple[int, Array]]:
        """Some classes with their whitened rows, (., rank) each, in few products."""
        for some in together({label: len(self.roots_[label]) for label in labels}):
            rows = [self.roots_[label].astype(np.float32) for label in some]
            ends = np.cumsum([len(own) for own in rows])[:-1]
            yield from zip(some, np.split(shared.whiten(np.concatenate(rows)), ends), strict=True)

    # ------------------------------------------------------- what they say

    def _parted(self, rows: Array) -> tuple[Array, Array]:
        """Coordinates of mapped rows that have a covariance, and the others."""
        if self.rank_ == self._dim:
            return rows, rows[:, :0]
        turned = rotate(rows, self._dim)
        return turned[:, : self.rank_], turned[:, self.rank_ :]

    @property
    def _shared(self) -> SharedCovariance:
        derived = self._derived
        if "shared" not in derived:
            derived["shared"] = SharedCovariance.of(self._moments)
        shared: SharedCovariance = derived["shared"]
        return shared

    @property
    def _shared_of_some(self) -> SharedCovariance:
        """W by which new rows are whitened; some of many classes say how far means are apart."""
        if self.is_whole or len(self.counts_) <= CLASSES_COMPARED:
            return self._shared
        some = list(self.means_.values())[:: 1 + len(self.means_) // CLASSES_COMPARED]
        means, others = self._parted(np.stack(some).astype(np.float64))
        counts = np.array(list(self.counts_.values()), np.float64)
        none = np.empty((0, self.rank_)), np.empty(0, int)
        known = Moments(counts, means, self.scatter_, *none, others, self.other_squares_)
        return SharedCovariance.of(known)

    @property
    def _moments(self) -> Moments:
        derived = self._derived
        if "moments" not in derived:
            means, others = self._parted(stack(self.means_).astype(np.float64))
            sizes = [len(root) for root in self.roots_.values()]
            rows = np.concatenate(list(self.roots_.values()))
            derived["moments"] = Moments(
                counts=np.array(list(self.counts_.values()), np.float64),
                means=means,
                scatter=None if self.is_whole else self.scatter_,
                roots=rows,
                owners=np.arange(len(sizes)).repeat(sizes),
                other_means=others,
                other_squares=self.other_squares_,
            )
        moments: Moments = derived["moments"]
        return moments


def together(sizes: Mapping[int, int], rows: int = ROWS) -> list[list[int]]:
    """Classes in groups of about so many rows: one product for many small classes.

    >>> together({7: 3, 8: 2, 9: 4}, rows=4)
    [[7, 8], [9]]
    """
    groups: dict[int, list[int]] = {}
    before = 0
    for label, size in sizes.items():
        groups.setdefault(before // rows, []).append(label)
        before += size
    return list(groups.values())
