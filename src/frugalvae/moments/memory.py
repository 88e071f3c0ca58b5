"""The default memory: counts, means and scatters of classes, which add up.

Everything that is kept is a sum. So samples may come in any order and in batches of any size,
two memories that were taught apart can be joined, and samples can be taken out again.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from frugalvae.maths.arrays import Array, columns_of, sum_of_squares
from frugalvae.maths.gaussians import SHRINKAGE, Shrinkage
from frugalvae.maths.matrices import add_ridge, outer, rotate_back
from frugalvae.moments.budget import Room, usual_bytes
from frugalvae.moments.evidence import (
    Evidence,
    HeldOut,
    Shifts,
    lengths,
    tempered,
    tempering_of,
)
from frugalvae.moments.files import of_kind, restore, rounded
from frugalvae.moments.rule import Posterior, posterior
from frugalvae.moments.sums import CLASSES_COMPARED, CLASSES_HELD_OUT, WHOLE, ClassSums
from frugalvae.parts.cost import Component
from frugalvae.parts.defaults import MemoryDefaults
from frugalvae.parts.protocols import Task

if TYPE_CHECKING:  # what a photograph's name does not need is imported where it is used
    from frugalvae.moments.forecast import Forecast
    from frugalvae.moments.typicality import Typicality

ROUNDING = 1e-6  # of the mean variance, to draw samples: few leave most variances at zero
DRAWN = 32  # directions of a class that samples vary along, besides what all classes share
EVEN = 30  # samples that variances of features are pulled to their mean by: few fit themselves
LEAST_TYPICAL = 50  # held-out samples that tell how typical others are; few are left out one by one


class MomentMemory(ClassSums, MemoryDefaults):
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

    def learn(self, task: Task, rng: np.random.Generator) -> None:
        """Add samples, of new classes and of known ones."""
        if not self.counts_:
            self._map_like(task.features)
        new = {label: len(self.roots_.get(label, ())) for label in task.classes}
        self._add_samples(task)
        apart = self._settle(new)
        self._gather_evidence(task, apart)
        self._derived["changed"] = task.classes

    def summed(self, task: Task, rooted: bool | None = None) -> MomentMemory:
        """What samples add to a memory like this one: a memory of them alone, to be merged.

        Nothing is cut, and nothing is held out. ``rooted`` says whether features are replaced
        by their square roots; by default the samples decide.
        """
        part = type(self)(self.budget, directions=self.directions, root=self.root)
        part._map_like(task.features)
        part.rooted_ = part.rooted_ if rooted is None else rooted
        part._add_samples(task)
        part._mix(task.classes)
        return part

    def update(self, task: Task, count: int, rng: np.random.Generator) -> None:
        """Add samples of a known class."""
        (label,) = task.classes
        self.counts_[label] = count  # an old file's may be unknown
        self.learn(task, rng)

    def merge(
        self,
        other: ClassSums,
        labels: Mapping[int, int],
        counts: object = None,
        others: object = None,
    ) -> None:
        """Add what another memory was taught; see :meth:`ClassSums.merge`.

        Margins were measured among the classes of each: those of the other lower them.
        """
        mine = list(self.counts_)
        met = [y for y in mine if self.evidence_.get(y, Evidence()).met]
        theirs = [labels[y] for y in other.counts_ if other.evidence_.get(y, Evidence()).met]
        super().merge(other, labels, counts, others)
        if met and theirs:
            known, measured = set(mine), set(met)
            self._crowd(met, [y for y in theirs if y not in known])
            self._crowd([y for y in theirs if y not in measured], met)

    # -------------------------------------------------------------- answers

    def feature_means(self) -> Array:
        """Class means (k, d) as features: where these were mapped to roots, nearly their means."""
        return self._unmapped(self.mapped_means()) if self.counts_ else np.empty((0, 0))

    def mapped_variances(self) -> tuple[Array, Array]:
        """Variances of features within classes (d,), and of each class relative to them, (k,)."""
        freedom = max(1, sum(self.counts_.values()) - len(self.counts_))
        if self.is_whole:
            rows = np.concatenate(list(self.roots_.values()))
            variances = np.einsum("md,md->d", rows, rows, dtype=np.float64) / freedom
        else:
            variances = self.scatter_.diagonal() / freedom
        if self.rank_ < self._dim:
            scatter = rotate_back(rotate_back(self.scatter_, self._dim).T, self._dim)
            beside = self.other_squares_ * (1 - self.rank_ / self._dim) / (self._dim - self.rank_)
            variances = (scatter.diagonal() + beside) / freedom
        variances = (freedom * variances + EVEN * variances.mean()) / (freedom + EVEN)
        total = float(variances.sum()) or 1.0
        freedoms = [max(1, count - 1) for count in self.counts_.values()]
        own = np.array(list(self.squares_.values())) / freedoms / total
        return variances, np.where(np.array(freedoms) > 1, own, 1.0)

    def log_density(self, features: Array, shrinkage: Shrinkage = SHRINKAGE) -> Array:
        """Log density of each class at each row, (n, k), up to a term that all classes share."""
        rule = self._posterior(shrinkage)
        return rule.scores(self._white(rule, self.mapped(features).astype(np.float32)))

    def logits(
        self, features: Array, shrinkage: Shrinkage = SHRINKAGE, tempering: float | None = None
    ) -> Array:
        """Tempered log densities (n, k): their softmax are probabilities.

        Densities are taken to a power, for features depend on each other in ways that Gaussians
        do not know. It makes answers as sure as they were right when samples were held out; see
        :func:`tempered`. A given ``tempering`` is divided by the length of the whitened row.
        """
        rule = self._posterior(shrinkage)
        white = self._white(rule, self.mapped(features).astype(np.float32))
        scores = rule.scores(white)
        if tempering is not None:
            return tempering / lengths(white) * scores
        return self.tempering * tempered(scores, white)

    def forecast(self) -> Forecast | None:
        """What to expect of new samples; none if nothing was held out, or there is no room.

        Nor is there one for a single class, be it all that is left of several.
        """
        if len(self.counts_) < 2 or not self.has_margins:
            return None
        from frugalvae.moments.forecast import Forecast

        twin = copy.deepcopy(self)
        twin._meet()
        return Forecast.of(twin.evidence_, twin.counts_)

    @property
    def tempering(self) -> float:
        """The power of densities, relative to :func:`tempered`."""
        derived = self._derived
        if "tempering" not in derived:
            if self.has_margins:
                derived["tempering"] = tempering_of(self.evidence_, self.counts_)
            else:  # nor is it known how many samples classes had
                derived["tempering"] = sum(self.evidence_.values(), Evidence()).tempering
        power: float = derived["tempering"]
        return power

    def _note(self, label: int, more: Evidence) -> None:
        """Add evidence to that of a class."""
        self.evidence_[label] = self.evidence_.get(label, Evidence()) + more
        for stale in ("tempering", "arrays"):
            self._derived.pop(stale, None)

    def left_out(self, features: Array, labels: Array, tempering: float | None = None) -> Array:
        """Logits (n, k) of taught samples, each as if its class had been taught without it."""
        from frugalvae.moments.held_out import LeftOutRows

        rule = self._posterior(SHRINKAGE)
        white = self._white(rule, self.mapped(features).astype(np.float64))
        scores = LeftOutRows(rule, white, columns_of(labels, self.counts_)).scores
        if tempering is not None:
            return tempering / lengths(white) * scores
        return self.tempering * tempered(scores, white)

    def whitened(self, features: Array) -> Array:
        """Features (n, d) around the centre of all classes; W is the identity there."""
        rule = self._posterior(SHRINKAGE)
        return self._white(rule, self.mapped(features).astype(np.float32))

    def whitened_means(self) -> tuple[Array, float]:
        """Whitened class means (k, d), and the expected square of a sample around its own."""
        rule = self._posterior(SHRINKAGE)
        return rule.deviations, rule.shared.noise * self.rank_

    def typicality(self, features: Array, taught: Array | None = None) -> Array:
        """How typical rows (n, d) are of the class that scores highest, (n,).

        ``taught`` are the classes of rows that were taught: each counts as if it had not been.
        """
        rule, judge = self._posterior(SHRINKAGE), self._judge
        white = self._white(rule, self.mapped(features).astype(np.float32)).astype(np.float64)
        if taught is None:
            return judge(white, rule.scores(white))
        from frugalvae.moments.held_out import LeftOutRows

        return LeftOutRows(rule, white, columns_of(taught, self.counts_)).typicality(judge)

    @property
    def rule(self) -> Posterior:
        """What scores rows, with the usual settings."""
        return self._posterior(SHRINKAGE)

    @property
    def held_out_typicality(self) -> Array | None:
        """The typicality of the last samples that were held out, if that was just now."""
        found: Array | None = self._derived.get("held out")
        return found

    @property
    def _judge(self) -> Typicality:
        derived = self._derived
        if "judge" not in derived:
            from frugalvae.moments.typicality import Typicality

            _, ratios = self.mapped_variances()
            derived["judge"] = Typicality.of(self._posterior(SHRINKAGE), ratios)
        judge: Typicality = derived["judge"]
        return judge

    def _gather_evidence(self, task: Task, apart: Mapping[int, HeldOut]) -> None:
        """Note how taught samples are classified when they are held out, some of each class.

        Batches of fewer samples than there are classes are left out: it takes time that grows
        with the classes.
        """
        if len(self.counts_) < 2 or len(task.labels) < len(self.counts_):
            return
        taught = [
            label
            for label in np.unique(task.labels).tolist()
            if self.counts_[label] > 1 and (label in apart or self.lost(label) < WHOLE)
        ][:CLASSES_HELD_OUT]
        if not taught:
            return
        from frugalvae.moments.held_out import HeldOutBatch

        rule, names = self._posterior(SHRINKAGE), list(self.counts_)
        columns = {label: column for column, label in enumerate(names)}

        def whiten(groups: list[Array]) -> Array:
            means = np.stack([self._exactly(task.features[rows]).mean(axis=0) for rows in groups])
            return self._white(rule, means.astype(np.float32)).astype(np.float64)

        batch = HeldOutBatch(
            rule,
            columns_of(task.labels, self.counts_),
            [columns[label] for label in taught],
            {columns[label]: own for label, own in apart.items()},
            whiten,
            self.tempering,
        )
        found, typical = batch.evidence(self.mapped_variances()[1])
        self._meet()
        for column, own in found.items():
            self._note(names[column], own)
        if len(typical) >= LEAST_TYPICAL:
            self._derived["held out"] = typical

    def _meet(self) -> None:
        """Lower the margins of known classes by what new ones take from them."""
        met = {label for label, own in self.evidence_.items() if own.met}
        new = [label for label in self.counts_ if label not in met]
        if new:
            known = [label for label in self.counts_ if label in met]
            self._crowd(known, new)
            for label in new:
                self._note(label, Evidence.of_shifts(Shifts(met=True)))

    def _crowd(self, known: list[int], new: list[int]) -> None:
        """Note what the margins of some classes lose to others that came later."""
        held = [label for label in known if self.evidence_[label].held_out]
        if len(known) < 2 or not held or not new:
            return
        from frugalvae.moments.held_out import losses

        rule, power = self._posterior(SHRINKAGE), self.tempering
        sides = [columns_of(np.array(side), self.counts_) for side in (known, new)]
        for start in range(0, len(held), CLASSES_COMPARED):
            some = held[start : start + CLASSES_COMPARED]
            lost = losses(rule, power, columns_of(np.array(some), self.counts_), *sides)
            for label, each in zip(some, lost.tolist(), strict=True):
                margins = float(self.evidence_[label].margins.sum())
                self._note(label, Evidence.of_shifts(Shifts(lost=margins * each)))

    def _white(self, rule: Posterior, rows: Array) -> Array:
        return rule.whiten(*self._parted(rows))

    def _posterior(self, shrinkage: Shrinkage) -> Posterior:
        derived = self._derived  # another thread may replace it
        if shrinkage not in derived:
            shared = self._shared if shrinkage.ridge is None else None
            derived[shrinkage] = posterior(
                self._moments, shrinkage.own, shrinkage.ridge, shared=shared
            )
        rule: Posterior = derived[shrinkage]
        return rule

    # -------------------------------------------------------------- samples

    def sample(self, label: int, count: int, rng: np.random.Generator) -> Array:
        """Draw from a Gaussian of the class's mean and variance.

        It has the shape of the shared covariance, and the class's leading directions besides.
        """
        root, level = self._sampler
        directions = self._directions(label)
        scale = self._residual(label, directions) ** 0.5
        return self._drawn(label, count, root, directions, scale, level, rng)

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
                scatter = outer(rows) if self.is_whole else self.scatter_
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
        return max(0.0, own - sum_of_squares(directions)) / total

    # ----------------------------------------------------------------- file

    def state(self) -> dict[str, Any]:
        """What a file keeps: settings, and arrays in as few bytes as cost nothing measurable."""
        return {
            "budget": self.budget,
            "directions": self.directions,
            "root": self.root,
            "rooted": self.rooted_,
            "labels": list(self.counts_),
            "rank": self.rank_,
            "other_squares": self.other_squares_,
            "arrays": self.arrays(),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> MomentMemory:
        """The memory of a file."""
        memory = cls(**{name: state[name] for name in ("budget", "directions", "root")})
        labels, arrays = of_kind(state, "labels", list), of_kind(state, "arrays", dict)
        memory.rooted_ = of_kind(state, "rooted", bool)
        memory.other_squares_ = of_kind(state, "other_squares", float)
        memory.rank_ = of_kind(state, "rank", int)
        if labels or arrays:
            restore(memory, labels, arrays)
            if cls is MomentMemory:  # others may change what they were given
                memory._derived["arrays"] = arrays  # rounding takes as long as all else of a load
        return memory

    def arrays(self) -> dict[str, Array]:
        """Everything that is kept, as a file holds it."""
        if not self.counts_:
            return {}
        if "arrays" not in self._derived:
            self._derived["arrays"] = rounded(self)
        return dict(self._derived["arrays"])

    def changed_arrays(self) -> dict[str, Array]:
        """What the last samples changed, as it is in memory; everything if that is not known."""
        if "changed" not in self._derived:
            return self.arrays()
        found = {"shared covariance": self.scatter_, "other": np.array([self.other_squares_])}
        for label in self._derived["changed"]:
            found |= {f"mean {label}": self.means_[label], f"rows {label}": self.roots_[label]}
            found |= {f"squares {label}": np.array([self.squares_[label]])}
        return found

    def components(self) -> list[Component]:
        """Means, the shared covariance, the rows of all classes, and a few numbers of each."""
        if not self.counts_:
            return []
        rows = sum(map(len, self.roots_.values()))
        rank = 0 if self.is_whole else self.rank_
        return Room.components(
            self._dim, len(self.counts_), self.rank_, rank, rows, self.has_margins
        )

    def cost(
        self, dim: int, classes: int, tasks: int = 1, samples: int | None = None
    ) -> list[Component]:
        """What it will cost; without ``samples``, if every class has as many as fit."""
        usual = Room(usual_bytes(dim, classes), in_bytes=True, usual=True)
        room = usual if self.budget is None else Room.of(self.budget)
        most = classes * min(dim, 2**20 if self.directions is None else self.directions)
        rows = most if samples is None else min(most, max(0, samples - classes))
        if room.whole(dim, classes, rows) <= room.limit and self.directions is None:
            return Room.components(dim, classes, dim, 0, rows, room.has_margins(classes))
        rank = room.rank(dim, classes, rows)
        rows = min(rows, room.rows(dim, classes, rank))
        return Room.components(dim, classes, rank, rank, rows, room.has_margins(classes))

    def derived_bytes(self, dim: int) -> int:
        """About what answers take on the way."""
        rows = sum(map(len, self.roots_.values()))
        inside = rows if self.is_whole and rows < self.rank_ else 5 * self.rank_
        return 8 * (inside + 3 * rows + 4 * len(self.counts_)) * self.rank_
