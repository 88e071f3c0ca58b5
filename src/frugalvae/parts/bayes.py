"""Bayes head: the class under whose density a feature is most probable."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import numpy as np

from frugalvae.errors import check_choice, check_number
from frugalvae.maths.arrays import Array, columns_of, stack
from frugalvae.maths.gaussians import Shrinkage
from frugalvae.parts.checks import check_together
from frugalvae.parts.defaults import HeadDefaults
from frugalvae.parts.protocols import Replay, Task, is_tempered

if TYPE_CHECKING:
    from frugalvae.parts.names import NameEvidence, Names
    from frugalvae.parts.protocols import DensityMemory, TemperedMemory

TEMPERING = 3.0  # where a memory does not know better
HELD_OUT = 25  # samples of a class, in one batch, that tell whether names help
CLASSES_PER_SAMPLE = 10  # if there are more, a batch tells little and takes long: it is not asked


class BayesHead(HeadDefaults):
    """Classifies by the memory's densities: no replay, nothing to fit, nothing to keep.

    All classes have the same prior probability.

    Parameters
    ----------
    own, ridge
        How far class covariances are shrunk towards the shared one; see
        :class:`~frugalvae.maths.gaussians.Shrinkage`. By default as the memory sees fit.
    tempering
        Features are correlated in ways the Gaussian ignores, which makes it overconfident, the
        more so the more coordinates there are. So densities are raised to a power, which changes
        no prediction. With the memory ``moments`` it is by default what held-out samples ask for
        (:func:`~frugalvae.moments.evidence.tempered`); a number that you give is divided by
        the length of the whitened row. With other memories it is divided by the root of the
        number of coordinates, and 3 by default; ``calibrate=True`` of the classifier fits the rest.
    names
        Use the text features of class names where they fit the classes' samples, and if held-out
        samples show that they help; with the memory ``moments`` only. Classes may be known by
        name alone. See :mod:`frugalvae.parts.names`.

    Examples
    --------
    >>> import numpy as np
    >>> from frugalvae.parts.gaussian import GaussianMemory
    >>> memory, rng = GaussianMemory("diagonal"), np.random.default_rng(0)
    >>> x = np.array([[0.0], [1.0], [5.0], [9.0]])
    >>> memory.learn(Task(x, np.array([0, 0, 1, 1])), rng)
    >>> head = BayesHead(own=1.0)
    >>> head.learn(Task.empty(1), Replay(memory, rng))
    >>> int(head.logits(np.array([[-4.0]])).argmax())  # far from both, and the second is wider
    1
    """

    needs_density = True
    needs_every_task = False  # it reads the memory as it is

    def __init__(
        self,
        *,
        own: float | None = None,
        ridge: float | None = None,
        tempering: float | None = None,
        names: bool = True,
    ) -> None:
        check_choice("names", names, (True, False))
        if tempering is not None:
            check_number("tempering", tempering, 1e-6)
        self.own, self.ridge = own, ridge
        self._shrinkage = Shrinkage(own, ridge)
        self.tempering = tempering
        self.names = names
        self.text_: dict[int, Array] = {}
        self.evidence_: Array | None = None  # how much names helped, if there are any
        self.memory_: DensityMemory | None = None  # the classifier's: a file holds it once
        self._derived: dict[str, Names] = {}  # what names say; never stored

    @property
    def classes(self) -> list[int]:
        """The classes that the memory knows, and those that are known by name alone."""
        return [] if self.memory_ is None else [*self.memory_.classes, *self.by_name]

    @property
    def by_name(self) -> list[int]:
        """Classes of which there is a text feature and no sample."""
        taught = set() if self.memory_ is None else set(self.memory_.classes)
        return [label for label in self.text_ if label not in taught]

    def register(self, task: Task) -> None:
        """Record the text features of classes, if they have any."""
        self._derived = {}
        if self.names:
            self.text_ |= {label: task.text[label] for label in task.classes if label in task.text}

    def learn(self, task: Task, replay: Replay) -> None:
        """Keep a reference to the memory, and see whether names help with these samples."""
        check_together(replay.memory, self)
        memory = self.memory_ = cast("DensityMemory", replay.memory)
        self._derived = {}
        if self._reads and 1 < len(memory.classes) <= CLASSES_PER_SAMPLE * len(task.labels):
            self._gather_evidence(cast("TemperedMemory", memory), task)

    def update(self, task: Task, count: int, replay: Replay) -> None:
        """The same with more samples of a class."""
        self.learn(task, replay)

    @property
    def _reads(self) -> bool:
        """Whether names can be used: there are text features."""
        return self.memory_ is not None and bool(self.text_) and is_tempered(self.memory_)

    @property
    def _names(self) -> Names:
        """What names say of all classes."""
        from frugalvae.parts.names import Names

        derived = self._derived  # another thread may replace it
        if "names" not in derived:
            memory = cast("TemperedMemory", self.memory_)
            none = np.zeros_like(next(iter(self.text_.values())))
            text = np.stack([self.text_.get(label, none) for label in self.classes])
            counts = np.array([memory.counts_[label] for label in memory.classes], np.float64)
            derived["names"] = Names.of(text, memory.feature_means(), counts)
        return derived["names"]

    @property
    def _evidence(self) -> NameEvidence:
        from frugalvae.parts.names import NameEvidence

        return NameEvidence() if self.evidence_ is None else NameEvidence(self.evidence_)

    def _gather_evidence(self, memory: TemperedMemory, task: Task) -> None:
        """Classify some samples of each class with and without names, each held out."""
        chosen = [np.flatnonzero(task.labels == label)[:HELD_OUT] for label in task.classes]
        chosen = [own for own in chosen if memory.counts_[int(task.labels[own[0]])] > 1]
        if chosen:
            x, y = task.features[np.concatenate(chosen)], task.labels[np.concatenate(chosen)]
            taught, columns = memory.held_out_logits(Task(x, y)), columns_of(y, memory.classes)
            self.evidence_ = self._evidence.with_samples(taught, self._names, x, columns).sums

    def merge(
        self, other: BayesHead, labels: Mapping[int, int], counts: object, others: object
    ) -> None:
        """Add text features and evidence of another head."""
        for label, vector in other.text_.items():
            self.text_.setdefault(labels[label], vector)
        if other.evidence_ is not None:
            self.evidence_ = (self._evidence + other._evidence).sums
        self._derived = {}

    def forget(self, label: int) -> list[str]:
        """Drop the text feature of a class."""
        self.text_.pop(label, None)
        self._derived = {}
        return []

    def logits(self, features: Array) -> Array:
        """Tempered log densities, (n, k), and what names add."""
        memory = self.memory_
        assert memory is not None
        if not is_tempered(memory):
            tempering = TEMPERING if self.tempering is None else self.tempering
            power = min(1.0, tempering / math.sqrt(memory.density_width))
            return power * memory.log_density(features, self._shrinkage)
        taught = np.empty((len(features), 0))
        if memory.classes:
            taught = memory.logits(features, self._shrinkage, self.tempering)
        if not self._reads:
            return taught
        return self._names.logits(features, taught, self._evidence.multiple)

    def unlearn(self, task: Task, count: int) -> None:
        """Nothing but what follows: the memory takes samples out."""
        self._derived = {}

    def forget_with(self, task: Task) -> list[str]:
        """Drop the text feature: the memory takes samples out."""
        return self.forget(*task.classes)

    def arrays(self) -> dict[str, Array]:
        """Text features and how much they helped, if there are any."""
        text = {"text": stack(self.text_)} if self.text_ else {}
        return text if self.evidence_ is None else text | {"evidence": self.evidence_}
