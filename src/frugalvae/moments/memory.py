"""The default memory: counts, means and scatters of classes, which add up.

Everything that is kept is a sum. So samples may come in any order and in batches of any size,
two memories that were taught apart can be joined, and samples can be taken out again.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from frugalvae.errors import check_choice, check_number
from frugalvae.maths.arrays import Array, columns_of, stack
from frugalvae.maths.gaussians import SHRINKAGE, Shrinkage
from frugalvae.moments.budget import CLASSES_HELD_OUT, Budget, HeldOutScatter, cut_to_budget
from frugalvae.moments.evidence import (
    SURE,
    Evidence,
    MarginCorrections,
    lengths,
    tempered,
    tempering_of,
)
from frugalvae.moments.rule import Moments, Posterior, SharedCovariance, posterior
from frugalvae.moments.sums import CLASSES_COMPARED, WHOLE, ClassSums, restored, rounded
from frugalvae.parts.defaults import MemoryDefaults
from frugalvae.parts.protocols import Component, Task

if TYPE_CHECKING:  # what a photograph's name does not need is imported where it is used
    from frugalvae.moments.held_out import Forecast, HeldOutRows, Typicality
    from frugalvae.moments.sampling import Sampler

HELD_OUT_FOLDS = 25  # of samples that are looked at again: nearly each by itself
LEAST_TYPICAL = 50  # held-out samples that tell how typical others are; few are left out one by one


class MomentMemory(MemoryDefaults):
    """Counts, means and scatters of classes, within a budget.

    Neither the classes nor their number need be known in advance. Of each class the count, the
    mean and its *root* are kept: rows whose outer products add up to the scatter of its samples.
    The rows mix all samples of the class; none is stored. While all rows fit into the budget,
    nothing is lost: any order, any batches and any merging give the same memory, up to rounding.

    When they do not fit, the scatter of all classes together is kept as one matrix, still
    exactly, and of each class the leading rows. ``sums_.lost_share(label)`` is how much of a
    class's scatter was cut. If even the matrix does not fit, features are rotated, always by the
    same rotation, and only the first coordinates keep a covariance.

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
    sums_
        What is kept of samples.
    evidence_
        How samples of each class were classified when they were held out.

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
    >>> bool(np.allclose(memory.sums_.means[2], x[y == 2].mean(axis=0), atol=1e-6))
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
            Budget.of(budget)
        if directions is not None:
            check_number("directions", directions, 0, 2**20, whole=True)
        check_choice("root", root, (True, False, None))
        self.budget = budget
        self.directions = directions
        self.root = root
        self.sums_ = ClassSums()
        self.evidence_: dict[int, Evidence] = {}
        self._derived: dict[Any, Any] = {}  # what answers and samples; never stored

    def __deepcopy__(self, memo: dict[int, object]) -> MomentMemory:
        """A copy that shares arrays: they are replaced, never changed in place."""
        twin = copy.copy(self)
        twin.sums_, twin.evidence_ = self.sums_.copy(), dict(self.evidence_)
        twin._derived = dict(self._derived)
        return twin

    def __getstate__(self) -> dict[str, Any]:
        """What a pickle holds: what follows from it is several times as large, and soon made."""
        return vars(self) | {"_derived": {}}

    def restricted_to(self, labels: Collection[int]) -> MomentMemory:
        """A memory of some of the classes, with the shared covariance of all."""
        twin = copy.copy(self)
        twin.sums_ = self.sums_.restricted_to(labels)
        twin.evidence_ = {y: own for y, own in self.evidence_.items() if y in labels}
        twin._derived = {} if self.sums_.is_whole else {"shared": self._shared_of_some}
        return twin

    @property
    def classes(self) -> list[int]:
        """The classes known so far."""
        return list(self.sums_.counts)

    @property
    def counts_(self) -> dict[int, int]:
        """The number of samples of each class."""
        return self.sums_.counts

    @property
    def rooted_(self) -> bool:
        """Whether features are replaced by their signed square roots."""
        return self.sums_.rooted

    @property
    def density_width(self) -> int:
        """The number of coordinates that have a covariance."""
        return self.sums_.rank

    @property
    def has_margins(self) -> bool:
        """Whether margins of samples that were held out are kept: there are some, and room."""
        found = any(own.sums[SURE:].any() for own in self.evidence_.values())
        return found and self._budget.has_margins(len(self.counts_))

    # --------------------------------------------------------------- learning

    def learn(self, task: Task, rng: np.random.Generator) -> None:
        """Add samples, of new classes and of known ones."""
        new = {label: len(self.sums_.roots.get(label, ())) for label in task.classes}
        self._add(task)
        cut = self._settle(new)
        self._gather_evidence(task, cut)
        self._derived["changed"] = task.classes

    def summed(self, task: Task, rooted: bool | None = None) -> MomentMemory:
        """What samples add to a memory like this one: a memory of them alone, to be merged.

        Nothing is cut, and nothing is held out. ``rooted`` says whether features are replaced
        by their square roots; by default the samples decide.
        """
        part = type(self)(self.budget, directions=self.directions, root=self.root)
        part._add(task, rooted)
        part.sums_.mix(task.classes)
        return part

    def _add(self, task: Task, rooted: bool | None = None) -> None:
        """Add samples to the sums; the first ones decide whether features are mapped."""
        if not self.counts_:
            decided = self.root if rooted is None else rooted
            self.sums_.rooted = bool((task.features >= 0).all()) if decided is None else decided
            self.sums_.rank = task.features.shape[1]
        self.sums_.add({label: task.of(label) for label in task.classes})
        self._derived = {}

    def update(self, task: Task, count: int, rng: np.random.Generator) -> None:
        """Add samples of a known class."""
        (label,) = task.classes
        self.counts_[label] = count  # an old file's may be unknown
        self.learn(task, rng)

    def merge(
        self,
        other: MomentMemory,
        labels: Mapping[int, int],
        counts: object = None,
        others: object = None,
    ) -> None:
        """Add what another memory was taught: its class ``label`` is ``labels[label]`` here.

        The result is what one memory would be that was taught all samples: exactly while all
        rows fit, otherwise but for the rows that were cut. Margins were measured among the
        classes of each: those of the other lower them.
        """
        nothing, mine, counted = Evidence(), list(self.counts_), self._accounted_for
        theirs = [labels[label] for label in other._accounted_for]
        changed = self.sums_.merge(other.sums_, labels)
        for label in other.counts_:
            self._note(labels[label], other.evidence_.get(label, nothing))
        self._derived = {}
        if changed:
            self._settle(dict.fromkeys(changed, 0), hold_out=False)
        if counted and theirs:
            known, before = set(mine), set(counted)
            self._lower_margins(counted, [y for y in theirs if y not in known])
            self._lower_margins([y for y in theirs if y not in before], counted)

    def join(self, label: int, joined: int) -> None:
        """Make one class of two: ``joined`` becomes a part of ``label``."""
        self.sums_.join(label, joined)
        self._note(label, self.evidence_.pop(joined, Evidence()))
        self._derived = {}
        self._settle({label: 0})

    def unlearn(self, task: Task, count: int) -> list[str]:
        """Take out samples of a class that were added before: count, mean and scatter exactly.

        Returns what cannot be taken out: rows that were cut in favour of others do not come back.
        """
        (label,) = task.classes
        self.sums_.subtract(label, task.features)
        self._derived = {}
        if self.sums_.lost_share(label) < WHOLE:
            return []
        return ["rows of the class that were cut before do not come back"]

    def forget(self, label: int) -> list[str]:
        """Drop a class, and its share of the scatter of all classes."""
        self.sums_.drop(label)
        self.evidence_.pop(label, None)
        self._derived = {}
        if self.sums_.is_whole:
            return []
        return [
            "the covariance that all classes share lost the class's rows and an average share of "
            "what no rows hold; how the class differed from that average remains"
        ]

    def forget_with(self, task: Task) -> list[str]:
        """Drop a class whose samples are given: what they added is taken out exactly."""
        (label,) = task.classes
        self.sums_.drop_with(label, task.features)
        self.evidence_.pop(label, None)
        self._derived = {}
        return []

    @property
    def _budget(self) -> Budget:
        if self.budget is None:
            return Budget.usual_for(self.sums_.dim, len(self.counts_))
        return Budget.of(self.budget)

    def _settle(self, new: Mapping[int, int], hold_out: bool = True) -> dict[int, HeldOutScatter]:
        """Cut what exceeds the budget; see :func:`cut_to_budget`."""
        cut, shared = cut_to_budget(self.sums_, self._budget, self.directions, new, hold_out)
        if shared is not None and len(self.counts_) <= CLASSES_COMPARED:
            self._derived["shared"] = shared
        return cut

    # ---------------------------------------------------------------- answers

    def mapped(self, features: Array) -> Array:
        """Features as the memory sees them: their square roots, or unchanged."""
        return self.sums_.mapped(features)

    def mapped_means(self) -> Array:
        """Class means (k, d), exactly those of all samples."""
        return stack(self.sums_.means)

    def mapped_variances(self) -> tuple[Array, Array]:
        """Variances of features within classes (d,), and of each class relative to them, (k,)."""
        return self.sums_.variances()

    def feature_means(self) -> Array:
        """Class means (k, d) as features: where these were mapped to roots, nearly their means."""
        return self._unmapped(self.mapped_means()) if self.counts_ else np.empty((0, 0))

    def _unmapped(self, rows: Array) -> Array:
        """The inverse of :meth:`mapped`; no negative features if real ones had none."""
        if not self.sums_.rooted:
            return rows
        return np.maximum(rows, 0) ** 2 if self.root is None else rows * np.abs(rows)

    @property
    def rule(self) -> Posterior:
        """What scores rows, with the usual settings."""
        return self._posterior(SHRINKAGE)

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
    def _moments(self) -> Moments:
        derived = self._derived
        if "moments" not in derived:
            derived["moments"] = self.sums_.moments()
        moments: Moments = derived["moments"]
        return moments

    @property
    def _shared(self) -> SharedCovariance:
        derived = self._derived
        if "shared" not in derived:
            derived["shared"] = SharedCovariance.of(self._moments)
        shared: SharedCovariance = derived["shared"]
        return shared

    @property
    def _shared_of_some(self) -> SharedCovariance:
        if len(self.counts_) <= CLASSES_COMPARED:
            return self._shared
        return SharedCovariance.of(self.sums_.moments_of_some())

    def whitened(self, features: Array, rule: Posterior | None = None) -> Array:
        """Features (n, d) around the centre of all classes; W is the identity there."""
        rows = self.mapped(features).astype(np.float32)
        return (rule or self.rule).whiten(*self.sums_.parted(rows))

    def whitened_means(self) -> tuple[Array, float]:
        """Whitened class means (k, d), and the expected square of a sample around its own."""
        return self.rule.deviations, self.rule.shared.noise * self.sums_.rank

    def log_density(self, features: Array, shrinkage: Shrinkage = SHRINKAGE) -> Array:
        """Log density of each class at each row, (n, k), up to a term that all classes share."""
        rule = self._posterior(shrinkage)
        return rule.scores(self.whitened(features, rule))

    def logits(
        self, features: Array, shrinkage: Shrinkage = SHRINKAGE, tempering: float | None = None
    ) -> Array:
        """Tempered log densities (n, k): their softmax are probabilities.

        Densities are taken to a power, for features depend on each other in ways that Gaussians
        do not know. It makes answers as sure as they were right when samples were held out; see
        :func:`tempered`. A given ``tempering`` is divided by the length of the whitened row.
        """
        rule = self._posterior(shrinkage)
        white = self.whitened(features, rule)
        return self._tempered(rule.scores(white), white, tempering)

    def _tempered(self, scores: Array, white: Array, tempering: float | None) -> Array:
        if tempering is not None:
            return tempering / lengths(white) * scores
        return self.tempering * tempered(scores, white)

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

    def typicality(self, features: Array) -> Array:
        """How typical rows (n, d) are of the class that scores highest, (n,)."""
        white = self.whitened(features).astype(np.float64)
        return self._judge(white, self.rule.scores(white))

    @property
    def _judge(self) -> Typicality:
        derived = self._derived
        if "judge" not in derived:
            from frugalvae.moments.held_out import Typicality

            derived["judge"] = Typicality.of(self.rule, self.mapped_variances()[1])
        judge: Typicality = derived["judge"]
        return judge

    def sample(self, label: int, count: int, rng: np.random.Generator) -> Array:
        """Draw from a Gaussian of the class's mean and variance.

        It has the shape of the shared covariance, and the class's leading directions besides.
        """
        return self._unmapped(self._sampler.draw(self.sums_, label, count, rng))

    @property
    def _sampler(self) -> Sampler:
        derived = self._derived
        if "sampler" not in derived:
            from frugalvae.moments.sampling import Sampler

            derived["sampler"] = Sampler.of(self.sums_, self._shared)
        sampler: Sampler = derived["sampler"]
        return sampler

    # ----------------------------------------------------------- held-out rows

    def held_out(self, task: Task) -> Iterator[tuple[Array, HeldOutRows]]:
        """Taught samples in folds, each scored as if none of its fold had been taught.

        Of each fold the rows of the task, and what was found of them. Classes that have one
        sample must not be among them.
        """
        from frugalvae.moments.held_out import folds_of, hold_out

        owners = columns_of(task.labels, self.counts_)
        rows_of_class = [np.flatnonzero(owners == column) for column in np.unique(owners)]
        for rows in folds_of(rows_of_class, HELD_OUT_FOLDS):
            white = self.whitened(task.features[rows]).astype(np.float64)
            yield rows, hold_out(self.rule, white, owners[rows])

    def held_out_logits(self, task: Task, tempering: float | None = None) -> Array:
        """Logits (n, k) of taught samples, as if they had not been taught."""
        logits = np.empty((len(task.labels), len(self.counts_)))
        for rows, held in self.held_out(task):
            logits[rows] = self._tempered(held.scores, held.white, tempering)
        return logits

    def held_out_typicality(self, task: Task) -> Array:
        """How typical taught samples are, as if they had not been taught, (m,).

        Of a task that was just taught, many of its samples are known.
        """
        if "held out" in self._derived:
            found: Array = self._derived["held out"]
            return found
        ratios = self.mapped_variances()[1]
        typical = np.empty(len(task.labels))
        for rows, held in self.held_out(task):
            typical[rows] = type(self._judge).of(held.rule, ratios)(held.white, held.scores)
        return typical

    def _gather_evidence(self, task: Task, cut: Mapping[int, HeldOutScatter]) -> None:
        """Note how taught samples are classified when they are held out, some of each class.

        Batches of fewer samples than there are classes are left out: it takes time that grows
        with the classes.
        """
        if len(self.counts_) < 2 or len(task.labels) < len(self.counts_):
            return
        whole = [y for y in task.classes if self.counts_[y] > 1]
        held = [y for y in whole if y in cut or self.sums_.lost_share(y) < WHOLE][:CLASSES_HELD_OUT]
        if not held:
            return
        from frugalvae.moments.held_out import Batch, gather_evidence

        names = list(self.counts_)
        columns = {label: column for column, label in enumerate(names)}

        def whiten(groups: list[Array]) -> Array:
            rows = self.mapped(task.features)
            means = np.stack([rows[group].astype(np.float64).mean(axis=0) for group in groups])
            white = self.rule.whiten(*self.sums_.parted(means.astype(np.float32)))
            return white.astype(np.float64)

        batch = Batch(
            rule=self.rule,
            owners=columns_of(task.labels, self.counts_),
            held=[columns[label] for label in held],
            cut={columns[label]: scatter for label, scatter in cut.items()},
            whiten=whiten,
            power=self.tempering,
        )
        found, typical = gather_evidence(batch, self.mapped_variances()[1])
        self._account_for_new_classes()
        for column, own in found.items():
            self._note(names[column], own)
        if len(typical) >= LEAST_TYPICAL:
            self._derived["held out"] = typical

    def _note(self, label: int, more: Evidence) -> None:
        """Add evidence to that of a class."""
        self.evidence_[label] = self.evidence_.get(label, Evidence()) + more
        for stale in ("tempering", "arrays"):
            self._derived.pop(stale, None)

    @property
    def _accounted_for(self) -> list[int]:
        """Classes that the others' margins account for."""
        kept = self.evidence_
        return [y for y in self.counts_ if y in kept and kept[y].is_accounted_for]

    def _account_for_new_classes(self) -> None:
        """Lower the margins of known classes by what new ones take from them."""
        known = self._accounted_for
        new = [label for label in self.counts_ if label not in set(known)]
        self._lower_margins(known, new)
        for label in new:
            self._note(label, Evidence.of_corrections(MarginCorrections(accounted_for=True)))

    def _lower_margins(self, known: list[int], new: list[int]) -> None:
        """Note what the margins of some classes lose to others that came later."""
        held = [label for label in known if self.evidence_[label].held_out]
        if len(known) < 2 or not held or not new:
            return
        from frugalvae.moments.held_out import margin_losses

        rule, power = self.rule, self.tempering
        sides = [columns_of(np.array(side), self.counts_) for side in (known, new)]
        for start in range(0, len(held), CLASSES_COMPARED):
            some = held[start : start + CLASSES_COMPARED]
            columns = columns_of(np.array(some), self.counts_)
            lost = margin_losses(rule, power, columns, *sides)
            for label, each in zip(some, lost.tolist(), strict=True):
                margins = float(self.evidence_[label].margins.sum())
                self._note(label, Evidence.of_corrections(MarginCorrections(lost=margins * each)))

    def forecast(self) -> Forecast | None:
        """What to expect of new samples; none if nothing was held out, or there is no room.

        Nor is there one for a single class, be it all that is left of several.
        """
        if len(self.counts_) < 2 or not self.has_margins:
            return None
        from frugalvae.moments.held_out import Forecast

        twin = copy.deepcopy(self)
        twin._account_for_new_classes()
        return Forecast.of(twin.evidence_, twin.counts_)

    # ------------------------------------------------------------------- file

    def state(self) -> dict[str, Any]:
        """What a file keeps: settings, and arrays in as few bytes as cost nothing measurable."""
        return {
            "budget": self.budget,
            "directions": self.directions,
            "root": self.root,
            "rooted": self.sums_.rooted,
            "labels": list(self.counts_),
            "rank": self.sums_.rank,
            "other_squares": self.sums_.other_squares,
            "arrays": self.arrays(),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> MomentMemory:
        """The memory of a file."""
        memory = cls(**{name: state[name] for name in ("budget", "directions", "root")})
        memory.sums_, memory.evidence_ = restored(state)
        if cls is MomentMemory and memory.counts_:  # others may change what they were given
            memory._derived["arrays"] = state["arrays"]  # rounding takes as long as all of a load
        return memory

    def arrays(self) -> dict[str, Array]:
        """Everything that is kept, as a file holds it."""
        if not self.counts_:
            return {}
        if "arrays" not in self._derived:
            self._derived["arrays"] = rounded(self.sums_, self.evidence_, self.has_margins)
        return dict(self._derived["arrays"])

    def changed_arrays(self) -> dict[str, Array]:
        """What the last samples changed, as it is in memory; everything if that is not known."""
        if "changed" not in self._derived:
            return self.arrays()
        sums = self.sums_
        found = {"shared covariance": sums.scatter, "other": np.array([sums.other_squares])}
        for label in self._derived["changed"]:
            found |= {f"mean {label}": sums.means[label], f"rows {label}": sums.roots[label]}
            found |= {f"squares {label}": np.array([sums.squares[label]])}
        return found

    def components(self) -> list[Component]:
        """Means, the shared covariance, the rows of all classes, and a few numbers of each."""
        if not self.counts_:
            return []
        sums, rows = self.sums_, sum(map(len, self.sums_.roots.values()))
        rank = 0 if sums.is_whole else sums.rank
        shape = sums.dim, len(self.counts_), sums.rank, rank, rows
        return Budget.components(*shape, self.has_margins)

    def cost(
        self, dim: int, classes: int, tasks: int = 1, samples: int | None = None
    ) -> list[Component]:
        """What it will cost; without ``samples``, if every class has as many as fit."""
        given, usual = self.budget, Budget.usual_for(dim, classes)
        budget = usual if given is None else Budget.of(given)
        most = classes * min(dim, 2**20 if self.directions is None else self.directions)
        rows = most if samples is None else min(most, max(0, samples - classes))
        margins = budget.has_margins(classes)
        if budget.whole(dim, classes, rows) <= budget.limit and self.directions is None:
            return Budget.components(dim, classes, dim, 0, rows, margins)
        rank = budget.rank(dim, classes, rows)
        rows = min(rows, budget.rows(dim, classes, rank))
        return Budget.components(dim, classes, rank, rank, rows, margins)

    def derived_bytes(self, dim: int) -> int:
        """About what answers take on the way."""
        rows, rank = sum(map(len, self.sums_.roots.values())), self.sums_.rank
        inside = rows if self.sums_.is_whole and rows < rank else 5 * rank
        return 8 * (inside + 3 * rows + 4 * len(self.counts_)) * rank
