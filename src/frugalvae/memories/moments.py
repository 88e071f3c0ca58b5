"""The default memory: counts, means and scatters of classes, which add up.

Everything that is kept is a sum. So samples may come in any order and in batches of any size,
two memories that were taught apart can be joined, and samples can be taken out again.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from frugalvae.cost import Component
from frugalvae.errors import InputError, MemoryFileError, check_choice, check_number
from frugalvae.interfaces import Task
from frugalvae.maths.arrays import Array, signed_root, stack
from frugalvae.maths.gaussians import SHRINKAGE, Shrinkage
from frugalvae.maths.posterior import Moments, Posterior, SharedCovariance, posterior
from frugalvae.maths.rotation import rotate, rotate_back
from frugalvae.maths.rounding import (
    LIMITS,
    restore_rows,
    restore_symmetric,
    round_rows,
    round_symmetric,
)
from frugalvae.maths.running_sums import RunningSums
from frugalvae.maths.symmetric import add_ridge
from frugalvae.memories.defaults import MemoryDefaults
from frugalvae.memories.evidence import Evidence
from frugalvae.memories.room import Room, usual_bytes

if TYPE_CHECKING:
    from frugalvae.memories.factors import FactorMemory

ROUNDING = 1e-6  # of the mean variance, to draw samples: few leave most variances at zero
DRAWN = 32  # directions of a class that samples vary along, besides what all classes share
HELD_OUT = 25  # samples of a class, in one batch, that tell how sure answers may be,
CLASSES_HELD_OUT = 200  # and of so many classes
WORTH = 10  # known classes per sample up to which it is worth to hold samples out
LARGEST = float(np.finfo(np.float32).max)
WHOLE = 1e-3  # a class has lost no rows if they say all but this share of its scatter


class HeldOut(NamedTuple):
    """The scatter of a class without its first new samples: axes, sizes, how many were left out."""

    axes: Array
    sizes: Array
    left_out: int

    @classmethod
    def of(cls, white: Array, leading: Array, first: int) -> HeldOut:
        """Of whitened rows (n, r), new from the row ``first`` on, and the leading ones (m, r).

        The leading axes of the other rows are found by two steps of orthogonal iteration.
        """
        count = min(HELD_OUT, max(1, (len(white) - first) // 5))
        rest = np.delete(white, np.s_[first : first + count], axis=0)
        axes = leading.T  # (r, m)
        for _ in range(2):
            axes = np.linalg.qr(rest.T @ (rest @ axes))[0]
        along = rest @ axes  # (n - count, m)
        sizes, vectors = np.linalg.eigh((along.T @ along).astype(np.float64))
        share = len(white) / max(1, len(rest))
        return cls((axes @ vectors.astype(np.float32)).T, np.maximum(sizes, 0) * share, count)


class MomentMemory(MemoryDefaults):
    """Counts, means and scatters of classes, within a budget.

    Neither the classes nor their number need be known in advance. Of each class the count, the
    mean and its *root* are kept: rows whose outer products add up to the scatter of its samples.
    The rows mix all samples of the class; none is stored. While all rows fit into the budget,
    nothing is lost: any order, any batches and any merging give the same memory, up to rounding.

    When they do not fit, the scatter of all classes together is kept as one matrix, still
    exactly, and of each class the leading rows. ``lost(label)`` says how much of a class's
    scatter was cut. If even the matrix does not fit, features are rotated, always by the same
    rotation, and only the first coordinates keep a covariance.

    Parameters
    ----------
    budget
        The most to keep: bytes, such as ``"3MB"``, or a number of parameters. By default 0.7 MB
        plus 2,560 bytes per feature (2 MB for 512 features, 4 MB for 1280); from 200 classes on,
        each further one adds room for its mean and two rows. Means are kept even if they alone
        exceed the budget.
    directions
        The most rows per class. By default as many as fit.
    root
        Replace features by their signed square roots: the variance of non-negative activations
        grows with their mean, and that of their roots does not. By default this is done if the
        first batch has no negative features.

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

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(60, 4)), np.arange(60) % 3
    >>> x[:, 0] += 9 * y
    >>> memory, other = MomentMemory(), MomentMemory()
    >>> memory.learn(Task(x[:30], y[:30]), rng)
    >>> memory.learn(Task(x[30:40], y[30:40]), rng)  # more samples of the same classes
    >>> other.learn(Task(x[40:], y[40:]), rng)  # taught elsewhere
    >>> memory.merge(other, {0: 0, 1: 1, 2: 2})
    >>> bool(np.allclose(memory.means_[2], x[y == 2].mean(axis=0), atol=1e-6))
    True
    >>> int(memory.log_density(np.array([[9.0, 0.0, 0.0, 0.0]])).argmax())
    1
    """

    name = "moments"
    usual_head = "bayes"
    streams = True  # learn() takes known classes, too
    rounds = True  # a file keeps fewer digits

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

    def __deepcopy__(self, memo: dict[int, object]) -> MomentMemory:
        """A copy that shares arrays: they are replaced, never changed in place."""
        twin = copy.copy(self)
        for name in ("counts_", "means_", "squares_", "roots_", "evidence_", "_derived"):
            setattr(twin, name, dict(getattr(self, name)))
        return twin

    @classmethod
    def of_factors(cls, factors: FactorMemory, counts: Mapping[int, int]) -> MomentMemory:
        """What the older memory ``factors`` knows, with ``counts`` samples of its classes.

        Counts, means and the shared covariance are the same. A direction, as long as the standard
        deviation it adds, becomes a row. What a class varies like all classes is in no row.
        """
        memory = cls(factors.budget, root=factors.root)
        memory.rooted_, memory.rank_ = factors.rooted_, factors.rank_
        share = sum(counts.values()) / max(1, factors.count_)  # forgotten classes are in there
        memory.scatter_, memory.other_squares_ = factors.scatter_ * share, factors.rest_ * share
        for label, mean in factors.means_.items():
            count, directions = int(counts[label]), factors.factors_[label].astype(np.float64)
            variance = float(factors.spread_[label]) + float((directions**2).sum())
            memory.counts_[label], memory.means_[label] = count, mean
            memory.squares_[label] = max(0, count - 1) * variance
            memory.roots_[label] = (count**0.5 * directions).astype(np.float32)
        return memory

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
        said = float((self.roots_[label].astype(np.float64) ** 2).sum())
        return max(0.0, 1 - said / self.squares_[label]) if self.squares_[label] else 0.0

    # ----------------------------------------------------------------- sums

    def learn(self, task: Task, rng: np.random.Generator) -> None:
        """Add samples, of new classes and of known ones."""
        if not self.counts_:
            self.rooted_ = bool((task.features >= 0).all()) if self.root is None else self.root
            self.rank_ = task.features.shape[1]
        rows = self.mapped(task.features).astype(np.float64)  # (n, d)
        deviations = {label: self._add(label, rows[task.labels == label]) for label in task.classes}
        new = {label: len(self.roots_.get(label, ())) for label in task.classes}
        self._add_rows(deviations)
        apart = self._settle(new)
        self._gather_evidence(rows, task.labels, apart)

    def summed(self, task: Task, rooted: bool | None = None) -> MomentMemory:
        """What samples add to a memory like this one: a memory of them alone, to be merged.

        Nothing is cut, and nothing is held out. ``rooted`` says whether features are replaced
        by their square roots; by default the samples decide.
        """
        part = type(self)(self.budget, directions=self.directions, root=self.root)
        own = bool((task.features >= 0).all()) if self.root is None else self.root
        part.rooted_ = own if rooted is None else rooted
        part.rank_ = task.features.shape[1]
        rows = part.mapped(task.features).astype(np.float64)  # (n, d)
        part._add_rows({y: part._add(y, rows[task.labels == y]) for y in task.classes})
        part._mix(task.classes)
        return part

    def update(self, task: Task, count: int, rng: np.random.Generator) -> None:
        """Add samples of a known class."""
        (label,) = task.classes
        self.counts_[label] = count  # an old file's may be unknown
        self.learn(task, rng)

    def _sums(self, label: int) -> RunningSums:
        if label not in self.counts_:
            return RunningSums()
        return RunningSums(self.counts_[label], self.means_[label].astype(np.float64))

    def _add(self, label: int, x: Array) -> Array:
        """Add samples x (n, d) to count, mean and squares; rows that add to the scatter, (., d)."""
        before = self._sums(label)
        rows = before.deviations(x)
        self.counts_[label] = before.count + len(x)
        self.means_[label] = before.mean_with(x).astype(np.float32)
        self.squares_[label] = self.squares_.get(label, 0.0) + float((rows**2).sum())
        return rows

    def _add_rows(self, deviations: Mapping[int, Array]) -> None:
        """Add rows (., d) of classes to their roots, and to the scatter if that is kept."""
        rows = np.concatenate(list(deviations.values()))
        coordinates = self._coordinates(rows)  # (., rank)
        if not self.is_whole:
            self.scatter_ = self.scatter_ + coordinates.T @ coordinates
            self.other_squares_ += max(0.0, float((rows**2).sum() - (coordinates**2).sum()))
        ends = np.cumsum([len(own) for own in deviations.values()])[:-1]
        for label, new in zip(deviations, np.split(coordinates, ends), strict=True):
            old = self.roots_.get(label)
            self.roots_[label] = new if old is None else np.concatenate([old, new])
        self._derived = {}

    def merge(
        self,
        other: MomentMemory,
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

    def _check_mergeable(self, other: MomentMemory) -> None:
        if not self.counts_ or not other.counts_:
            return
        if self._dim != other._dim:
            raise InputError(f"one memory has {self._dim} features, the other {other._dim}")
        if self.rooted_ != other.rooted_:
            raise InputError(
                "one memory has square roots of features and the other has features as they "
                "are; teach one of them again with root=True or root=False"
            )

    def _join(self, label: int, other: MomentMemory, theirs: int, count: int) -> None:
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

    def unlearn(self, task: Task, count: int) -> list[str]:
        """Take out samples of a class that were added before: count, mean and scatter exactly.

        Returns what cannot be taken out: rows that were cut in favour of others do not come back.
        """
        (label,) = task.classes
        x = self.mapped(task.features).astype(np.float64)
        before, part = self._sums(label), RunningSums(len(x), x.mean(axis=0))
        if len(x) >= before.count:
            raise InputError(
                f"cannot take {len(x)} samples out of a class of {before.count}; to take out all "
                "of them, forget the class"
            )
        left = before.count - len(x)
        mean = part.mean + (before.mean - part.mean) * (before.count / left)
        rows = RunningSums(left, mean).deviations(x)  # what adding them added
        squares = self.squares_[label] - float((rows**2).sum())
        coordinates = self._coordinates(rows)
        root, lost = _without(self.roots_[label], coordinates)
        tolerance = 0.02 * self.squares_[label] + 1e-9
        if squares < -tolerance or (self.is_whole and lost > tolerance):
            raise InputError(
                f"these {len(x)} samples were not all taught: without them the variance of the "
                "class would be negative"
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
        if self.is_whole:
            return []
        said = sum((r.astype(np.float64).T @ r for r in self.roots_.values()), root.T @ root)
        rest = self.scatter_ - said
        total = max(float(rest.trace()) + self.other_squares_, 1e-30)
        share = min(1.0, max(0.0, hidden / total))
        self.scatter_ = self.scatter_ - root.T @ root - share * rest
        self.other_squares_ *= 1 - share
        return [
            "the covariance that all classes share lost the class's rows and an average share of "
            "what no rows say; how the class differed from that average remains"
        ]

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
        allowed = _shared_out(wanted, room.rows(self._dim, classes, self.rank_))
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
            self.roots_[label] = _mixed(self.roots_[label])

    def _wanted(self, label: int) -> int:
        """How many rows a class has, if there is room."""
        rows = min(len(self.roots_[label]), max(0, self.counts_[label] - 1), self.rank_)
        return rows if self.directions is None else min(rows, self.directions)

    @property
    def _room(self) -> Room:
        budget = self.budget
        if budget is None:
            return Room(usual_bytes(self._dim, len(self.counts_)), in_bytes=True)
        return Room.of(budget)

    def _sum_up(self) -> None:
        """Keep the scatter of all classes as a matrix from now on."""
        if self.is_whole and self.counts_:
            self.scatter_ = _outer(np.concatenate(list(self.roots_.values())))
            self._derived = {}

    def _lower_rank(self, rank: int) -> None:
        """Keep the first ``rank`` coordinates of the scatter and of all rows."""
        if rank >= self.rank_:
            return
        if self.rank_ == self._dim:  # coordinates were the features themselves so far
            lower = rotate(rotate(self.scatter_, rank).T, rank)
            rows = {label: rotate(root, rank) for label, root in self.roots_.items()}
        else:
            lower = self.scatter_[:rank, :rank]
            rows = {label: root[:, :rank] for label, root in self.roots_.items()}
        self.other_squares_ += float(self.scatter_.trace() - lower.trace())
        self.scatter_, self.rank_ = (lower + lower.T) / 2, rank
        self.roots_ = {label: np.ascontiguousarray(r, np.float32) for label, r in rows.items()}
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
        shared = self._shared if set(long) & set(new) else None
        for label in long:
            root = self.roots_[label]
            if label in new and shared is not None:
                white = shared.whiten(root.astype(np.float32))
                vectors = np.linalg.eigh((white @ white.T).astype(np.float64))[1]
                leading = vectors[:, ::-1][:, : allowed[label]].astype(np.float32)  # (rows, m)
                root = leading.T @ root
                if hold_out and len(apart) < CLASSES_HELD_OUT and allowed[label]:
                    apart[label] = HeldOut.of(white, leading.T @ white, new[label])
            self.roots_[label] = root[: allowed[label]].copy()
        self._derived = {} if shared is None else {"shared": shared}
        return apart

    # -------------------------------------------------------------- answers

    def mapped(self, features: Array) -> Array:
        """Features as the memory sees them: their square roots, or unchanged."""
        return signed_root(features) if self.rooted_ else features

    def mapped_means(self) -> Array:
        """Class means (k, d), exactly those of all samples."""
        return stack(self.means_)

    def mapped_variances(self) -> tuple[Array, Array]:
        """Variances of features within classes (d,), and of each class relative to them, (k,)."""
        freedom = max(1, sum(self.counts_.values()) - len(self.counts_))
        variances = self._moments.variances / freedom
        if self.rank_ < self._dim:
            scatter = rotate_back(rotate_back(self.scatter_, self._dim).T, self._dim)
            beside = self.other_squares_ * (1 - self.rank_ / self._dim) / (self._dim - self.rank_)
            variances = (scatter.diagonal() + beside) / freedom
        total = float(variances.sum()) or 1.0
        freedoms = [max(1, count - 1) for count in self.counts_.values()]
        own = np.array(list(self.squares_.values())) / freedoms / total
        return variances, np.where(np.array(freedoms) > 1, own, 1.0)

    @property
    def density_width(self) -> int:
        """The number of coordinates that have a covariance."""
        return self.rank_

    def log_density(self, features: Array, shrinkage: Shrinkage = SHRINKAGE) -> Array:
        """Log density of each class at each row, (n, k), up to a term that all classes share."""
        rule = self._posterior(shrinkage)
        return rule.scores(self._white(rule, self.mapped(features).astype(np.float64)))

    def logits(
        self, features: Array, shrinkage: Shrinkage = SHRINKAGE, tempering: float | None = None
    ) -> Array:
        """Tempered log densities (n, k): their softmax are probabilities.

        Densities are taken to a power, for features depend on each other in ways that Gaussians
        do not know. The power is divided by the length of the whitened row: rows far out are
        noisier. It makes answers as sure as they were right when samples were held out.
        """
        rule = self._posterior(shrinkage)
        white = self._white(rule, self.mapped(features).astype(np.float64))
        power = self.tempering if tempering is None else tempering
        tempered: Array = rule.scores(white) * (power / _lengths(white))
        return tempered

    @property
    def tempering(self) -> float:
        """The power of densities, times the length of a whitened row."""
        return sum(self.evidence_.values(), Evidence()).tempering

    def left_out(self, features: Array, labels: Array) -> Array:
        """Logits (n, k) of taught samples, each as if its class had been taught without it."""
        rule = self._posterior(SHRINKAGE)
        white = self._white(rule, self.mapped(features).astype(np.float64))
        position = {label: row for row, label in enumerate(self.counts_)}
        owners = np.array([position[label] for label in labels.tolist()])
        scores: Array = rule.left_out(white, owners) * (self.tempering / _lengths(white))
        return scores

    def _gather_evidence(self, rows: Array, labels: Array, apart: Mapping[int, HeldOut]) -> None:
        """Note how taught samples are classified when they are held out, some of each class.

        Small batches beside many classes are left out: it takes time that grows with the classes.
        """
        if len(self.counts_) < 2 or len(labels) * WORTH < len(self.counts_):
            return
        held = {
            label: HELD_OUT if label not in apart else apart[label].left_out
            for label in np.unique(labels).tolist()
            if self.counts_[label] > 1 and (label in apart or self.lost(label) < WHOLE)
        }
        kept = [np.flatnonzero(labels == y)[: held[y]] for y in list(held)[:CLASSES_HELD_OUT]]
        if not sum(map(len, kept)):
            return
        chosen = np.concatenate(kept)
        rule = self._posterior(SHRINKAGE)
        white = self._white(rule, rows[chosen])
        position = {label: row for row, label in enumerate(self.counts_)}
        owners = np.array([position[label] for label in labels[chosen].tolist()])
        without = {position[label]: (own.axes, own.sizes) for label, own in apart.items()}
        scores = rule.left_out(white, owners, without) / _lengths(white)
        for label in np.unique(labels[chosen]).tolist():
            found = Evidence.of(scores[labels[chosen] == label], position[label])
            self.evidence_[label] = self.evidence_.get(label, Evidence()) + found

    def _white(self, rule: Posterior, rows: Array) -> Array:
        return rule.whiten(*self._parted(rows))

    def _parted(self, rows: Array) -> tuple[Array, Array]:
        """Coordinates of mapped rows that have a covariance, and the others."""
        if self.rank_ == self._dim:
            return rows, rows[:, :0]
        turned = rotate(rows, self._dim)
        return turned[:, : self.rank_], turned[:, self.rank_ :]

    def _coordinates(self, rows: Array) -> Array:
        return rows if self.rank_ == self._dim else rotate(rows, self.rank_)

    def _posterior(self, shrinkage: Shrinkage) -> Posterior:
        derived = self._derived  # another thread may replace it
        if shrinkage not in derived:
            shared = self._shared if shrinkage.ridge is None else None
            derived[shrinkage] = posterior(
                self._moments, shrinkage.own, shrinkage.ridge, shared=shared
            )
        rule: Posterior = derived[shrinkage]
        return rule

    @property
    def _shared(self) -> SharedCovariance:
        derived = self._derived
        if "shared" not in derived:
            derived["shared"] = SharedCovariance.of(self._moments)
        shared: SharedCovariance = derived["shared"]
        return shared

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

    # -------------------------------------------------------------- samples

    def sample(self, label: int, count: int, rng: np.random.Generator) -> Array:
        """Draw from a Gaussian of the class's mean and variance.

        It has the shape of the shared covariance, and the class's leading directions besides.
        """
        root, level = self._sampler
        directions = self._directions(label)
        scale = self._residual(label, directions) ** 0.5

        def noise(width: int) -> Array:
            return rng.standard_normal((count, width), np.float32)

        drawn = np.float32(scale) * noise(root.shape[1]) @ root.T
        drawn = drawn + noise(len(directions)) @ directions
        if self.rank_ < self._dim:
            residual = np.float32(scale * level) * noise(self._dim)
            drawn = residual + rotate_back(drawn - rotate(residual, self.rank_), self._dim)
        return self._unmapped((self.means_[label] + drawn).astype(np.float32))

    @property
    def _sampler(self) -> tuple[Array, float]:
        """A root of W, and the deviation of coordinates that have no covariance."""
        derived = self._derived
        if "sampler" not in derived:
            freedom = max(1, sum(self.counts_.values()) - len(self.counts_))
            rows = self._moments.roots
            if self.is_whole and len(rows) <= self.rank_:
                root = (rows / freedom**0.5).T.astype(np.float32)  # (rank, rows)
            else:
                scatter = _outer(rows) if self.is_whole else self.scatter_
                shared = add_ridge(scatter / freedom, ROUNDING)
                root = np.linalg.cholesky(shared).astype(np.float32)
            level = (self.other_squares_ / freedom / max(1, self._dim - self.rank_)) ** 0.5
            derived["sampler"] = root, level
        sampler: tuple[Array, float] = derived["sampler"]
        return sampler

    def _directions(self, label: int) -> Array:
        """Directions (m, rank) in which a class varies more than W, as long as they add to it."""
        rows = self.roots_[label] / np.float32(max(1, self.counts_[label] - 1) ** 0.5)
        white = self._shared.whiten(rows)
        values, vectors = np.linalg.eigh((white @ white.T).astype(np.float64))
        values, vectors = values[::-1][:DRAWN], vectors[:, ::-1][:, :DRAWN]
        longer = np.sqrt(np.maximum(1 - 1 / np.maximum(values, 1), 0))  # beyond W
        found: Array = ((vectors * longer).T @ rows).astype(np.float32)[longer > 0]
        return found

    def _residual(self, label: int, directions: Array) -> float:
        """The variance of a class beyond its directions, relative to W's."""
        freedom = sum(self.counts_.values()) - len(self.counts_)
        total = sum(self.squares_.values()) / max(1, freedom)
        if self.counts_[label] < 2 or not total:
            return 1.0 if total else 0.0
        own = self.squares_[label] / (self.counts_[label] - 1)
        return max(0.0, own - float((directions**2).sum())) / total

    def _unmapped(self, rows: Array) -> Array:
        """The inverse of :meth:`mapped`; no negative features if real ones had none."""
        if not self.rooted_:
            return rows
        return np.maximum(rows, 0) ** 2 if self.root is None else rows * np.abs(rows)

    # ----------------------------------------------------------------- file

    @property
    def _dim(self) -> int:
        return len(next(iter(self.means_.values())))

    def state(self) -> dict[str, Any]:
        """What a file keeps: settings, and arrays in as few bytes as cost nothing measurable."""
        settings = {"budget": self.budget, "directions": self.directions, "root": self.root}
        learned = {"rooted": self.rooted_, "labels": list(self.counts_), "rank": self.rank_}
        rest = {"other_squares": self.other_squares_}
        return {"settings": settings, **learned, **rest, "arrays": self.arrays()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> MomentMemory:
        """The memory of a file."""
        memory = cls(**_of_kind(state, "settings", dict))
        labels, arrays = _of_kind(state, "labels", list), _of_kind(state, "arrays", dict)
        memory.rooted_ = _of_kind(state, "rooted", bool)
        memory.other_squares_ = _of_kind(state, "other_squares", float)
        memory.rank_ = _of_kind(state, "rank", int)
        if labels or arrays:
            memory._restore(labels, arrays)
        return memory

    def _restore(self, labels: list[int], arrays: dict[str, Array]) -> None:
        """Fill in what was rounded, if the arrays fit together."""
        if {type(label) for label in labels} != {int} or len(set(labels)) < len(labels):
            raise MemoryFileError(f"labels of a MomentMemory are {str(labels)[:40]!r}")
        _check_arrays(arrays, len(labels), self.rank_)
        _check_values(arrays, self.other_squares_)
        means = restore_rows(arrays["means"], arrays["mean_scales"])
        rows = restore_rows(arrays["roots"], arrays["root_scales"])
        roots = np.split(rows, np.cumsum(arrays["root_rows"])[:-1])
        self.counts_ = dict(zip(labels, arrays["counts"].tolist(), strict=True))
        self.means_ = dict(zip(labels, means, strict=True))
        self.squares_ = dict(zip(labels, arrays["squares"].tolist(), strict=True))
        self.roots_ = dict(zip(labels, roots, strict=True))
        held = zip(labels, arrays["evidence"], strict=True)
        self.evidence_ = {label: Evidence(row) for label, row in held if row.any()}
        if "correlations" in arrays:
            self.scatter_ = restore_symmetric(arrays["variances"], arrays["correlations"])

    def arrays(self) -> dict[str, Array]:
        """Everything that is kept, as a file holds it."""
        if not self.counts_:
            return {}
        if "arrays" not in self._derived:
            self._derived["arrays"] = self._rounded()
        return dict(self._derived["arrays"])

    def _rounded(self) -> dict[str, Array]:
        means, mean_scales = round_rows(stack(self.means_), 2)
        roots, root_scales = round_rows(np.concatenate(list(self.roots_.values())), 1)
        none = Evidence()
        found = {
            "counts": np.array(list(self.counts_.values()), np.uint32),
            "means": means,
            "mean_scales": mean_scales,
            "squares": np.array(list(self.squares_.values()), np.float32),
            "evidence": np.stack([self.evidence_.get(y, none).sums for y in self.counts_]),
            "roots": roots,
            "root_scales": root_scales,
            "root_rows": np.array([len(root) for root in self.roots_.values()], np.uint32),
        }
        if not self.is_whole:
            found["variances"], found["correlations"] = round_symmetric(self.scatter_)
        return found

    def components(self) -> list[Component]:
        """Means, the shared covariance, the rows of all classes, and a few numbers of each."""
        if not self.counts_:
            return []
        rows = sum(map(len, self.roots_.values()))
        rank = 0 if self.is_whole else self.rank_
        return Room.components(self._dim, len(self.counts_), self.rank_, rank, rows)

    def cost(
        self, dim: int, classes: int, tasks: int = 1, samples: int | None = None
    ) -> list[Component]:
        """What it will cost; without ``samples``, if every class has as many as fit."""
        limit = usual_bytes(dim, classes)
        room = Room(limit, in_bytes=True) if self.budget is None else Room.of(self.budget)
        most = classes * min(dim, 2**20 if self.directions is None else self.directions)
        rows = most if samples is None else min(most, max(0, samples - classes))
        if room.whole(dim, classes, rows) <= room.limit and self.directions is None:
            return Room.components(dim, classes, dim, 0, rows)
        rank = room.rank(dim, classes, rows)
        rows = min(rows, room.rows(dim, classes, rank))
        return Room.components(dim, classes, rank, rank, rows)

    def derived_bytes(self, dim: int) -> int:
        """About what answers take on the way."""
        rows = sum(map(len, self.roots_.values()))
        inside = rows if self.is_whole and rows < self.rank_ else 5 * self.rank_
        return 8 * (inside + 3 * rows + 4 * len(self.counts_)) * self.rank_


def _mixed(rows: Array) -> Array:
    """As few rows with the same outer products as there can be, float32; each mixes all."""
    rows = rows.astype(np.float64)
    if len(rows) <= rows.shape[1]:
        values, vectors = np.linalg.eigh(rows @ rows.T)
        kept = values > 1e-10 * max(values[-1], 1e-300) if len(values) else values > 0
        mixed = vectors[:, kept].T @ rows
    else:
        values, vectors = np.linalg.eigh(rows.T @ rows)
        kept = values > 1e-10 * max(values[-1], 1e-300)
        mixed = np.sqrt(values[kept])[:, None] * vectors[:, kept].T
    found: Array = mixed[::-1].astype(np.float32)
    return found


def _outer(rows: Array) -> Array:
    """The sum of outer products of rows (n, d), in float64."""
    rows = rows.astype(np.float64)
    return rows.T @ rows


def _without(root: Array, rows: Array) -> tuple[Array, float]:
    """A root of what a root's outer products are without those of rows, and what was negative."""
    both = np.concatenate([root, rows]).astype(np.float64)
    signs = np.repeat([1.0, -1.0], [len(root), len(rows)])
    basis, triangle = np.linalg.qr(both.T)  # (r, q), (q, n)
    values, vectors = np.linalg.eigh((triangle * signs) @ triangle.T)
    kept = values > 1e-10 * max(values[-1], 1e-300)
    left = np.sqrt(values[kept])[:, None] * (basis @ vectors[:, kept]).T
    return left[::-1].astype(np.float32), float(-values[values < 0].sum())


def _shared_out(wanted: Mapping[int, int], room: int) -> dict[int, int]:
    """Rows per class: what each wants, at most equally many, and the rest to the first ones."""
    sizes = np.array(list(wanted.values()))
    limits = np.arange(int(sizes.max(initial=0)) + 1)
    totals = np.minimum(sizes, limits[:, None]).sum(axis=1)  # if no class exceeds the limit
    limit = int(limits[totals <= room].max())
    left = room - int(np.minimum(sizes, limit).sum())
    more = np.flatnonzero(sizes > limit)[: max(0, left)]
    allowed = np.minimum(sizes, limit)
    allowed[more] += 1
    return dict(zip(wanted, allowed.tolist(), strict=True))


def _lengths(white: Array) -> Array:
    lengths: Array = np.sqrt((white**2).sum(axis=1, keepdims=True) + 1e-12)
    return lengths


def _of_kind(state: dict[str, Any], name: str, kind: type) -> Any:
    value = state.get(name)
    if type(value) is not kind:
        raise MemoryFileError(f"{name} of a MomentMemory is {str(value)[:40]!r}")
    return value


def _check_arrays(arrays: dict[str, Array], classes: int, rank: int) -> None:
    """Raise unless arrays have the shapes and types that :meth:`MomentMemory.arrays` gives."""
    if not {"roots", "means"} <= arrays.keys() or arrays["means"].ndim != 2:
        raise MemoryFileError("a MomentMemory without means")
    rows, dim = len(arrays["roots"]), arrays["means"].shape[1]
    expected: dict[str, tuple[tuple[int, ...], type]] = {
        "counts": ((classes,), np.uint32),
        "means": ((classes, dim), np.int16),
        "mean_scales": ((classes,), np.float32),
        "squares": ((classes,), np.float32),
        "evidence": ((classes, len(Evidence().sums)), np.float32),
        "roots": ((rows, rank), np.int8),
        "root_scales": ((rows,), np.float32),
        "root_rows": ((classes,), np.uint32),
    }
    if "variances" not in arrays and rank != dim:
        raise MemoryFileError(f"a MomentMemory with {rank} of {dim} coordinates, and no covariance")
    if "variances" in arrays:
        expected["variances"] = (rank,), np.float32
        expected["correlations"] = (rank * (rank - 1) // 2,), np.int16
    right = arrays.keys() == expected.keys() and all(
        arrays[name].shape == shape and arrays[name].dtype == kind
        for name, (shape, kind) in expected.items()
    )
    right = right and int(arrays["root_rows"].sum()) == rows and bool(arrays["counts"].all())
    if not right or not 1 <= rank <= dim:
        raise MemoryFileError("the arrays of a MomentMemory do not fit together")


def _check_values(arrays: dict[str, Array], other_squares: float) -> None:
    """Raise if a scale or a sum of squares is what none can be."""
    largest = {"mean_scales": LARGEST / LIMITS[2], "root_scales": LARGEST / LIMITS[1]}
    for name, array in {**arrays, "other_squares": np.array([other_squares])}.items():
        possible = (array >= 0) & (array <= largest.get(name, LARGEST))
        if array.dtype.kind == "f" and not possible.all():
            raise MemoryFileError(f"{name} of a MomentMemory are negative, or not finite")
