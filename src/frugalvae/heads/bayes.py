"""Bayes head: the class under whose density a feature is most probable."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import numpy as np

from frugalvae.checks import check_together
from frugalvae.errors import check_choice, check_number
from frugalvae.heads.defaults import HeadDefaults
from frugalvae.heads.names import NameEvidence, name_logits, weight
from frugalvae.interfaces import Replay, Task, is_tempered
from frugalvae.maths.arrays import Array, stack
from frugalvae.maths.gaussians import Shrinkage

if TYPE_CHECKING:
    from frugalvae.interfaces import DensityMemory, TemperedMemory

TEMPERING = 3.0  # where a memory does not know better
HELD_OUT = 25  # samples of a class, in one batch, that tell whether names help


class BayesHead(HeadDefaults):
    """Classifies by the memory's densities: no replay, nothing to fit, nothing to keep.

    All classes have the same prior probability.

    Parameters
    ----------
    own, ridge
        How far class covariances are shrunk towards the shared one; see
        :class:`~frugalvae.maths.gaussians.Shrinkage`. By default as the memory sees fit.
    tempering
        Densities of d coordinates are raised to the power ``tempering / sqrt(d)``. Features are
        correlated in ways the Gaussian ignores, which makes it overconfident; the effect grows
        with d. By default 3, or what held-out samples tell the memory. Tempering changes no
        prediction; ``calibrate=True`` of the classifier fits the rest.
    names
        Use the text features of class names, if every class came with one and held-out samples
        show that they help; with the memory ``moments`` only. See :mod:`frugalvae.heads.names`.

    Examples
    --------
    >>> import numpy as np
    >>> from frugalvae.memories.gaussian import GaussianMemory
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

    @property
    def classes(self) -> list[int]:
        """The classes that the memory knows."""
        return [] if self.memory_ is None else self.memory_.classes

    def register(self, task: Task) -> None:
        """Record the text features of new classes, if they have any."""
        if self.names:
            self.text_ |= {label: task.text[label] for label in task.classes if label in task.text}

    def learn(self, task: Task, replay: Replay) -> None:
        """Keep a reference to the memory, and see whether names help with these samples."""
        check_together(replay.memory, self)
        memory = self.memory_ = cast("DensityMemory", replay.memory)
        if len(task.labels) and self._reads and len(memory.classes) > 1:
            self._gather_evidence(cast("TemperedMemory", memory), task)

    def update(self, task: Task, count: int, replay: Replay) -> None:
        """The same with more samples of a class."""
        self.learn(task, replay)

    @property
    def _reads(self) -> bool:
        """Whether names can be used: every class has a text feature."""
        memory = self.memory_
        if memory is None or not self.text_ or not is_tempered(memory):
            return False
        return set(memory.classes) <= self.text_.keys()

    @property
    def _evidence(self) -> NameEvidence:
        return NameEvidence() if self.evidence_ is None else NameEvidence(self.evidence_)

    def _gather_evidence(self, memory: TemperedMemory, task: Task) -> None:
        """Classify some samples of each class with and without names, each held out."""
        labels = memory.classes
        counts = np.array([memory.counts_[label] for label in labels], np.float64)
        chosen = [np.flatnonzero(task.labels == label)[:HELD_OUT] for label in task.classes]
        for lone in (False, True):
            rows = [own for own in chosen if (memory.counts_[int(task.labels[own[0]])] < 2) == lone]
            if rows:
                x, y = task.features[np.concatenate(rows)], task.labels[np.concatenate(rows)]
                columns = np.array([labels.index(label) for label in y.tolist()])
                taught = None if lone else memory.left_out(x, y)
                scores = name_logits(x, self.text_, labels)
                more = self._evidence.with_samples(taught, scores, counts, columns)
                self.evidence_ = more.sums

    def merge(
        self, other: BayesHead, labels: Mapping[int, int], counts: object, others: object
    ) -> None:
        """Add text features and evidence of another head."""
        for label, vector in other.text_.items():
            self.text_.setdefault(labels[label], vector)
        if other.evidence_ is not None:
            self.evidence_ = (self._evidence + other._evidence).sums

    def forget(self, label: int) -> list[str]:
        """Drop the text feature of a class."""
        self.text_.pop(label, None)
        return []

    def logits(self, features: Array) -> Array:
        """Tempered log densities, (n, k), and what names add."""
        memory = self.memory_
        assert memory is not None
        if not is_tempered(memory):
            tempering = TEMPERING if self.tempering is None else self.tempering
            power = min(1.0, tempering / math.sqrt(memory.density_width))
            return power * memory.log_density(features, self._shrinkage)
        logits = memory.logits(features, self._shrinkage, self.tempering)
        multiple = self._evidence.multiple if self._reads else 0.0
        if multiple:
            counts = np.array(list(memory.counts_.values()), np.float64)
            added = name_logits(features, self.text_, memory.classes)
            logits = logits + multiple * weight(counts) * added
        return logits

    def unlearn(self, task: Task, count: int) -> None:
        """Nothing: the memory takes samples out."""

    def forget_with(self, task: Task) -> list[str]:
        """Drop the text feature: the memory takes samples out."""
        return self.forget(*task.classes)

    def arrays(self) -> dict[str, Array]:
        """Text features and how much they helped, if there are any."""
        text = {"text": stack(self.text_)} if self.text_ else {}
        return text if self.evidence_ is None else text | {"evidence": self.evidence_}
