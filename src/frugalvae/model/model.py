"""A model: labels, a memory, a head, and how far to trust it.

It learns, forgets, renames and answers, on NumPy arrays. A model never changes: each
verb gives another one, and shares with it what stayed the same. So whoever holds a model may go
on asking it while another thread teaches, and whatever goes wrong leaves it as it was.
"""

from __future__ import annotations

import copy
import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from frugalvae.digests import (
    BYTES,
    NONE,
    Aliases,
    Digests,
    renamed,
    with_digests,
    without,
    without_digests,
)
from frugalvae.errors import InputError, KnownClassError, check_choice, check_number
from frugalvae.labels import check_label
from frugalvae.maths.arrays import Array, computing_on, in_blocks
from frugalvae.model.confidence import Calibration, TaughtNovelty, novelty_reference
from frugalvae.parts import HEADS, MEMORIES, make_head, make_memory, usual_head
from frugalvae.parts.checks import (
    check_features,
    check_kind,
    check_labels,
    check_learned,
    check_named,
    check_names,
    check_text,
    check_together,
    position_of,
)
from frugalvae.parts.protocols import Component, MemoryReport, Replay, Task, is_tempered

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from frugalvae.model.confidence import DistanceReference, FitReference
    from frugalvae.moments.held_out import Forecast
    from frugalvae.parts.protocols import Head, Memory
    from frugalvae.parts.registry import Registry

logger = logging.getLogger(__name__)

LIKELY = 0.5  # an answer that is more likely wrong than right is never sure
CLASSES_COMPARED = 1000  # with which taught samples are compared, besides their own

#: Attributes with one entry for each class, in the order of ``classes``.
BY_CLASS = ("classes", "numbers", "task_of_class", "n_samples_of_class")

#: Samples of each known class, and how many it had before.
KnownParts = list[tuple[Task, int]]


@dataclass(frozen=True)
class Recipe:
    """What a model is made of before it has learned anything.

    The parameters are those of :class:`frugalvae.FrugalClassifier`.
    """

    memory: str | Memory = "moments"
    head: str | Head | None = None
    calibrate: bool = False
    random_state: int = 0
    device: str | None = None

    def parts(self) -> tuple[Memory, Head]:
        """A memory and a head that know nothing yet."""
        memory = make_memory(self.memory) if isinstance(self.memory, str) else self.memory
        _check_new("memory", memory, MEMORIES)
        chosen = usual_head(memory) if self.head is None else self.head
        head = make_head(chosen) if isinstance(chosen, str) else chosen
        _check_new("head", head, HEADS)
        check_together(memory, head)
        return copy.deepcopy((memory, head))

    def generator(self, purpose: str, number: int, seed: int | None = None) -> np.random.Generator:
        """A stream of its own for each task and class: no draw depends on earlier calls."""
        base = self.random_state if seed is None else seed
        check_number("random_state", base, 0, whole=True)
        return np.random.default_rng([int(base), number, *purpose.encode()])


def _check_new(kind: str, part: Any, registry: Registry) -> None:
    """Refuse what is no part of that kind, or has learned something."""
    if hasattr(part, "learn"):  # or it is no part at all, which the next line says
        registry.check(part, type(part).__name__)
    if len(getattr(part, "classes", "?")):
        raise InputError(
            f"{kind} is {part!r}; expected a name or a {kind} that knows no class yet, as "
            f"make_{kind}(...) gives it"
        )


@dataclass(frozen=True, eq=False)
class Sums:
    """Samples that were summed elsewhere: what a memory of their kind keeps of them.

    Attributes
    ----------
    labels
        The label of each class, by its number in the memory.
    memory
        A memory that can be merged, taught these samples alone.
    counts
        How many samples of each class there are, by its number in the memory.
    """

    labels: NDArray[Any]
    memory: Memory
    counts: Mapping[int, int]

    @property
    def present(self) -> NDArray[Any]:
        """The labels of classes that have samples."""
        return self.labels[list(self.counts)]


@dataclass(frozen=True, eq=False)
class Model:
    """What was learned, and what it was learned with.

    Attributes
    ----------
    recipe
        The settings.
    memory, head
        What was learned; ``None`` before the first task, and when all is forgotten.
    classes, numbers, task_of_class, n_samples_of_class
        Of each class: its label; the number by which memory and head know it, never given to
        another; the task that taught it, from 0; and how many samples: 0 if it is known by name
        alone.
    n_features, n_tasks, n_taught
        Width of a feature; tasks so far; and how many classes they taught, forgotten ones too.
    head_stale
        Whether the head has not been fitted since the last task, and cannot predict until it is.
    calibration
        The temperature of probabilities.
    taught_novelty
        How novel taught samples looked, which familiarity is measured against.
    encoder
        What makes features of images, if that is known, as plain JSON.
    history
        Every change so far, as plain JSON.
    feature_names
        Names of the columns, if features came with names.
    digests
        By the number of a class, digests of the photographs that it was taught.
    withheld
        The same of photographs that were taken out of it, or left out by a list: they are not to
        be taught to it by going over a folder again.
    aliases
        Names that classes had, and the labels they have now; ``None`` for forgotten classes.

    Examples
    --------
    >>> model = Model().learn([[0.0, 1.0], [0.1, 1.0]], ["cat", "cat"])
    >>> more = model.learn([[1.0, 0.0], [1.0, 0.1]], ["emu", "emu"])
    >>> more.predict([[0.9, 0.0]]).tolist(), model.classes.tolist()
    (['emu'], ['cat'])
    """

    recipe: Recipe = field(default_factory=Recipe)
    memory: Memory | None = None
    head: Head | None = None
    classes: NDArray[Any] = field(default_factory=lambda: np.empty(0, "U1"))
    numbers: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    task_of_class: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    n_samples_of_class: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    n_features: int = 0
    n_tasks: int = 0
    n_taught: int = 0
    head_stale: bool = False
    calibration: Calibration = field(default_factory=Calibration)
    taught_novelty: TaughtNovelty = field(default_factory=TaughtNovelty)
    encoder: dict[str, Any] | None = None
    history: tuple[dict[str, Any], ...] = ()
    feature_names: tuple[str, ...] | None = None
    digests: Digests = field(default_factory=dict)
    withheld: Digests = field(default_factory=dict)
    aliases: Aliases = field(default_factory=dict)

    def learn(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        text: Mapping[Any, ArrayLike] | None = None,
        names: Mapping[Any, str] | None = None,
        defer_head: bool = False,
        digests: Mapping[Any, NDArray[np.bytes_]] | None = None,
        sums: Sums | None = None,
    ) -> Model:
        """With more samples, of new classes and known; see ``FrugalClassifier.partial_fit``.

        ``digests`` are those of the samples, by label. ``sums`` are more samples, which were
        summed before: memories that add up learn them as if they were among X and y.
        """
        nothing = sums is not None and not np.size(X)  # but sums
        features = np.asarray(X) if nothing else check_features(X, self.n_features or None)
        labels = check_labels(y, len(features))
        check_choice("calibrate", self.recipe.calibrate, (True, False))
        present = np.unique(labels if sums is None else np.concatenate([labels, sums.present]))
        check_kind(present, self.classes)
        new = present[~np.isin(present, self.classes)]
        for label in new.tolist():
            check_label(label)
        width = features.shape[1]
        task = Task(
            features,
            self._numbers_of(labels, new),
            check_text(text, new, self.n_taught, width),
            check_names(names, new, self.n_taught),
        )
        with self.computing():
            summed = {} if sums is None else self._summed(sums, new)
            model = self._learned(task, defer_head, sums, summed)
            counts = {} if sums is None else {summed[n]: c for n, c in sums.counts.items()}
            model = model._counted(new, task, counts)._noted(digests or {}, new)
            model = replace(model, n_features=width)._familiar(task)
        logger.info("%d new classes, %d in all", len(new), len(model.classes))
        return model

    @property
    def remembered(self) -> dict[str, Any] | None:
        """What is known of the encoder; an empty one if nothing was taught that needs one."""
        return self.encoder if self.n_tasks else {}

    @cached_property
    def ascending(self) -> slice | NDArray[np.intp]:
        """What puts classes, which are in the order of teaching, into the order of their labels."""
        order = np.argsort(self.classes)
        return slice(None) if (np.diff(order) == 1).all() else order

    @cached_property
    def number_of(self) -> dict[Any, int]:
        """The number of each class, by its label."""
        return dict(zip(self.classes.tolist(), self.numbers.tolist(), strict=True))

    @cached_property
    def count_of(self) -> dict[int, int]:
        """The samples of each class, by its number."""
        return dict(zip(self.numbers.tolist(), self.n_samples_of_class.tolist(), strict=True))

    @cached_property
    def by_name(self) -> list[Any]:
        """Labels of classes that are known by name alone."""
        alone = set(getattr(self.head, "by_name", ()))
        return [label for label, number in self.number_of.items() if number in alone]

    def _numbers_of(self, labels: NDArray[Any], new: NDArray[Any]) -> NDArray[np.int64]:
        """The number of each label; new ones follow those that were ever taught."""
        added = {label: self.n_taught + row for row, label in enumerate(new.tolist())}
        known = self.number_of | added
        present, places = np.unique(labels, return_inverse=True)
        return np.array([known[label] for label in present.tolist()], np.int64)[places]

    def _summed(self, sums: Sums, new: NDArray[Any]) -> dict[int, int]:
        """Our number of each class of some sums, by the number that it has there."""
        ours = self._numbers_of(sums.present, new)
        return dict(zip(sums.counts, ours.tolist(), strict=True))

    def _named(self, task: Task, summed: Mapping[int, int]) -> Task:
        """What a head is told of new classes, those of sums included: no samples."""
        numbers = {*task.classes, *summed.values()} - set(self.numbers.tolist())
        return replace(task, features=task.features[:0], labels=np.array(sorted(numbers), np.int64))

    def _noted(self, digests: Mapping[Any, NDArray[np.bytes_]], new: NDArray[Any]) -> Model:
        """With the digests of samples; names of new classes are no other names any more."""
        numbers = self.number_of
        more = {numbers[label]: found for label, found in digests.items()}
        return replace(
            self,
            digests=with_digests(self.digests, more),
            withheld=without_digests(self.withheld, more),
            aliases=without(self.aliases, new.tolist()),
        )

    def withholding(self, digests: Mapping[Any, NDArray[np.bytes_]]) -> Model:
        """With digests, by label, of photographs that known classes are not to be taught."""
        numbers = self.number_of
        more = {
            numbers[label]: np.unique(found[found != NONE])
            for label, found in digests.items()
            if label in numbers
        }
        before = without_digests(self.withheld, more)
        return replace(self, withheld=with_digests(before, more))

    def _learned(
        self,
        task: Task,
        defer_head: bool,
        sums: Sums | None = None,
        summed: Mapping[int, int] | None = None,
    ) -> Model:
        """With a task's samples in memory and head: Algorithm 1 of the paper.

        Known classes get more samples first. Whatever can add them all at once does so.
        """
        memory, head = self.parts()
        known, new = self._divided(task)
        if sums is not None:
            memory.merge(sums.memory, summed)  # type: ignore[attr-defined]
        head.register(new if sums is None else self._named(task, summed or {}))
        calibration = self.calibration if defer_head else self._calibrated(memory, head, new)
        self._teach_memory(memory, task, known, new)
        deferred = defer_head or (self.head_stale and not new.classes)
        due = deferred and not head.needs_every_task
        if not due:
            self._teach_head(head, memory, task, known, new)  # adapt the classifier
        check_learned(memory, *([] if deferred else [head]))
        if self.by_name:
            check_named(memory, head)
        return replace(self, memory=memory, head=head, head_stale=due, calibration=calibration)

    def _divided(self, task: Task) -> tuple[KnownParts, Task]:
        """The samples of each known class with how many it had before, and those of new classes.

        A class that is known by name alone had none, and counts as new.
        """
        alone = set(self.by_name)
        counts = {
            number: self.count_of[number]
            for label, number in self.number_of.items()
            if label not in alone
        }
        known, new = task.split(counts)
        return [(part, counts[part.classes[0]]) for part in known], new

    def _calibrated(self, memory: Memory, head: Head, new: Task) -> Calibration:
        """Fitted again with the samples of new classes, where answers need it."""
        if not (self.recipe.calibrate and new.classes) or _is_calibrated(memory, head):
            return self.calibration
        spare, rng = copy.deepcopy((memory, head)), self._generator("calibration", self.n_tasks)
        return self.calibration.refitted(*spare, new, rng)

    def _teach_memory(self, memory: Memory, task: Task, known: KnownParts, new: Task) -> None:
        """More samples of known classes, then new classes; all at once, if that is the same."""
        learn = "learn", self.n_tasks
        rng = self._generator(*learn if new.classes else ("update", len(self.history)))
        if getattr(memory, "streams", False):
            if task.classes:  # or there are sums alone
                memory.learn(task, rng)
            return
        for part, count in known:
            memory.update(part, count, rng)
        if new.classes:
            memory.learn(new, rng)  # Gaussians, training

    def _teach_head(
        self, head: Head, memory: Memory, task: Task, known: KnownParts, new: Task
    ) -> None:
        """More samples of known classes, then new classes; fitted on replay, all at once."""
        last = self.n_tasks if new.classes else max(0, self.n_tasks - 1)
        replay = self.replay(memory, last)
        if not head.needs_every_task:
            head.learn(task, replay)
            return
        for part, count in known:
            head.update(part, count, replay)
        if new.classes:
            head.learn(new, replay)

    def _counted(
        self, new: NDArray[Any], task: Task, summed: Mapping[int, int] | None = None
    ) -> Model:
        """With new classes on the list, and the samples of a task and of sums counted."""
        grown = self._with_classes(new)
        numbers, before = grown.numbers, grown.n_samples_of_class
        added = Counter(task.labels.tolist()) + Counter(summed)
        more = np.array([added[number] for number in numbers.tolist()], np.int64)
        is_new = numbers >= self.n_taught
        grown = replace(grown, n_samples_of_class=before + more)
        changed = is_new | (more > 0)
        counts = dict(zip(grown.classes[changed], more[changed], strict=True))
        return grown.recorded("learn", counts, **({"task": self.n_tasks} if len(new) else {}))

    def _with_classes(self, new: NDArray[Any]) -> Model:
        """With new classes on the list, without samples."""
        count = len(new)
        numbers = np.arange(self.n_taught, self.n_taught + count)
        of_new = new, numbers, np.full(count, self.n_tasks), np.zeros(count, np.int64)
        lists: dict[str, Any] = dict(zip(BY_CLASS, of_new, strict=True))
        if len(self.classes):  # or new labels would become of the kind that an empty list has
            lists = {name: np.concatenate([getattr(self, name), lists[name]]) for name in BY_CLASS}
        tasks, taught = self.n_tasks + bool(count), self.n_taught + count
        return replace(self, **lists, n_tasks=tasks, n_taught=taught)

    def listed(self, new: NDArray[Any]) -> Model:
        """With new classes on the list of which there are no samples."""
        return self._counted(new, Task.empty(self.n_features))._noted({}, new)

    def _familiar(self, task: Task) -> Model:
        """With samples that were just taught counted, if the memory can compare with any."""
        assert self.memory is not None
        if not self.memory.components():
            return self
        task = task.some(CLASSES_COMPARED)
        reference = self._reference(None, task)
        novelty = reference.novelty_of_taught(task, self.count_of)
        taught = self.taught_novelty.with_samples(novelty, reference.score)
        return replace(self, taught_novelty=taught)

    def fit_head(self) -> Model:
        """With the head fitted that :meth:`learn` deferred; itself if none is due."""
        if not self.head_stale:
            return self
        memory, head = self.parts()
        with self.computing():
            head.learn(Task.empty(self.n_features), self.replay(memory, self.n_tasks - 1))
        check_learned(head)
        return replace(self, memory=memory, head=head, head_stale=False)

    def rename(self, old: Any, new: Any) -> Model:
        """With another label for a class, and in its prompt if that was the label."""
        position = position_of(old, self.classes)
        if np.ndim(new):
            raise InputError(f"the new label is {new!r}; expected one label, such as 'emu' or 7")
        new = check_label(new)
        label = np.array([new])
        check_kind(label, self.classes)
        if label[0] in self.classes:
            raise KnownClassError(
                f"class {new!r} is already known; choose another name, or make one class of both "
                "by merge-classes (in Python merge_classes)"
            )
        before, after = self.classes[position], label[0]
        parts = [self.classes[:position], label, self.classes[position + 1 :]]
        memory, head = self.parts()
        names, number = getattr(head, "names_", {}), int(self.numbers[position])
        if names.get(number) == before:
            names[number] = str(after)
        model = replace(self, memory=memory, head=head, classes=np.concatenate(parts))
        labels = {"from": plain(before), "to": plain(after)}
        model = replace(model, aliases=renamed(self.aliases, labels["from"], labels["to"]))
        return model.recorded("rename", {after: self.n_samples_of_class[position]}, **labels)

    def logits(self, X: ArrayLike) -> NDArray[np.float64]:
        """Scores (n, k), columns in the order of ``classes``."""
        head, features = self._answering_head(), check_features(X, self.n_features)
        with self.computing(), np.errstate(all="ignore"):  # what comes of it is looked at below
            scores = np.concatenate([head.logits(block) for block in in_blocks(features)])
        if not np.isfinite(scores.max(axis=1)).all():
            raise InputError(
                "some answers are no finite numbers: what was learned is out of proportion; leave "
                "out samples that are far larger than others, or scale the features to about 1"
            )
        return scores[:, np.argsort(head.classes)]  # numbers ascend

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The most probable class of each row."""
        return self.classes[self.logits(X).argmax(axis=1)]

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probability of each class, (n, k), columns in the order of ``classes``."""
        return self.calibration.probabilities(self.logits(X))

    def is_reliable(self, X: ArrayLike, error: float) -> NDArray[np.bool_]:
        """See :meth:`frugalvae.FrugalClassifier.is_reliable`."""
        check_number("error", error, 0, 1)
        lead, scores = self._promised().lead_for_error(error), self._in_margins(X)
        best = np.sort(scores)[:, -2:]
        likely = self._probabilities(scores).max(axis=1) >= min(LIKELY, 1 - error)
        sure: NDArray[np.bool_] = (best[:, 1] - best[:, 0] >= lead) & likely
        return sure

    def predict_set(self, X: ArrayLike, coverage: float) -> list[list[Any]]:
        """See :meth:`frugalvae.FrugalClassifier.predict_set`."""
        check_number("coverage", coverage, 0, 1)
        gap, scores = self._promised().gap_for_coverage(coverage), self._in_margins(X)
        order = np.argsort(-scores)
        likely = np.take_along_axis(self._probabilities(scores), order, 1).cumsum(axis=1)
        sizes = np.maximum(
            (scores >= scores.max(axis=1, keepdims=True) - gap).sum(axis=1),
            1 + (likely < min(LIKELY, coverage)).sum(axis=1),
        )
        return [self.classes[row[:size]].tolist() for row, size in zip(order, sizes, strict=True)]

    def _promised(self) -> Forecast:
        """The forecast, where answers are those that it was measured on."""
        if getattr(self.head, "text_", None):
            raise InputError(
                "class names take part in answers, and how often these are right was not "
                "measured; ask for probabilities, or teach without names"
            )
        found = self.forecast
        if found is None or not getattr(self.head, "needs_density", False):
            raise InputError(
                "no samples were held out, so nothing can be promised; that needs memory "
                "'moments' with head 'bayes', two classes, classes of more than one sample, and a "
                "budget of at least 4,000 bytes per class"
            )
        return found

    def _in_margins(self, X: ArrayLike) -> Array:
        """Scores (n, k) in the units of margins."""
        power: float = self.memory.tempering  # type: ignore[union-attr]
        return self.logits(X) / power

    def _probabilities(self, margins: Array) -> Array:
        """Probabilities (n, k) of scores in the units of margins."""
        power: float = self.memory.tempering  # type: ignore[union-attr]
        return self.calibration.probabilities(margins * power)

    def expected_accuracy(self) -> dict[Any, float]:
        """The accuracy to expect of each class, by label; none if nothing was held out."""
        found = self.forecast
        if found is None:
            return {}
        return dict(zip(found.labels, found.of_classes.tolist(), strict=True))

    @cached_property
    def forecast(self) -> Forecast | None:
        """See :meth:`frugalvae.FrugalClassifier.forecast`; none if nothing was held out."""
        found: Forecast | None = getattr(self.memory, "forecast", lambda: None)()
        if found is None:
            return None
        labels = dict(zip(self.numbers.tolist(), self.classes.tolist(), strict=True))
        return replace(found, labels=[labels[number] for number in found.labels])

    def familiarity(self, X: ArrayLike) -> NDArray[np.float64]:
        """See :meth:`frugalvae.FrugalClassifier.familiarity`."""
        features, taught = check_features(X, self.n_features), self.taught_novelty
        assert self.memory is not None
        if not self.memory.classes:
            raise InputError(
                "all classes are known by name alone: there are no samples that others could be "
                "compared with; teach some, or ask for probabilities only"
            )
        if self.n_samples_of_class.max() == 1:  # nothing shows how samples of a class differ
            return np.ones(len(features))
        with self.computing():
            reference = self.reference
        if not taught.quantiles or taught.score != reference.score:
            taught = taught.with_samples(reference.of_replay, reference.score)
        familiar = taught.familiarity(reference.novelty(features))
        if self.by_name:  # like samples that were taught, or like a name
            named = self.predict_proba(features)[:, np.isin(self.classes, self.by_name)]
            familiar = 1 - (1 - familiar) * (1 - named.sum(axis=1))
        return familiar

    @cached_property
    def reference(self) -> FitReference | DistanceReference:
        """What novelty is measured by: as that of taught samples was, if it is known."""
        return self._reference(self.taught_novelty.score if self.taught_novelty.quantiles else None)

    def _reference(
        self, score: str | None, task: Task | None = None
    ) -> FitReference | DistanceReference:
        """For a task that was just taught, some classes stand for the others if there are many."""
        memory, rng = self.memory, self._generator("familiarity", 0)
        assert memory is not None
        step = 1 + len(memory.classes) // CLASSES_COMPARED
        if task is not None and step > 1 and hasattr(memory, "restricted_to"):
            memory = memory.restricted_to({*memory.classes[::step], *task.classes})
        return novelty_reference(memory, rng, score)

    def sample(self, label: Any, n_samples: int = 1, seed: int | None = None) -> Array:
        """Features (n_samples, d) of a class as the memory recalls them."""
        check_number("n_samples", n_samples, 1, whole=True)
        position = position_of(label, self.classes)
        number = int(self.numbers[position])
        assert self.memory is not None
        if self.classes[position] in self.by_name:
            raise InputError(f"class {label!r} is known by name alone: there is nothing to sample")
        with self.computing():
            return self.memory.sample(number, n_samples, self._generator("sample", number, seed))

    def memory_report(self) -> MemoryReport:
        """What is kept, by component: as the paper counts, as stored, and in bytes."""
        head, memory = self._answering_head(), self.memory
        assert memory is not None
        name = getattr(memory, "name", type(memory).__name__)
        parts = memory.components() + head.components()
        kept = sum(len(of) for by in (self.digests, self.withheld) for of in by.values())
        parts += [Component("digests of photographs", 0, kept, BYTES * kept)] if kept else []
        return MemoryReport(name, len(self.classes), self.n_tasks, tuple(parts))

    @contextmanager
    def computing(self) -> Iterator[None]:
        """On the device that is asked for; what becomes infinite is told by ``check_learned``."""
        try:
            with computing_on(self.recipe.device), np.errstate(over="ignore", invalid="ignore"):
                yield
        except np.linalg.LinAlgError as error:
            raise InputError(
                f"what was learned cannot be computed with ({error}): some features are far "
                "larger than others; scale them to about 1, or leave out the samples with the "
                "largest"
            ) from error

    def _answering_head(self) -> Head:
        if self.head_stale or self.head is None:
            raise InputError(
                "the head was not fitted after the last task, which was taught with "
                "defer_head=True; call fit_head() first"
            )
        return self.head

    def parts(self) -> tuple[Memory, Head]:
        """Copies to learn on."""
        if self.memory is None or self.head is None:
            return self.recipe.parts()
        return copy.deepcopy((self.memory, self.head))

    def replay(self, memory: Memory, task: int) -> Replay:
        """Replay with draws of its own: the same whether the head was deferred or not."""
        return Replay(memory, self._generator("head", task))

    def _generator(self, purpose: str, number: int, seed: int | None = None) -> np.random.Generator:
        return self.recipe.generator(purpose, number, seed)

    def recorded(self, action: str, counts: Mapping[Any, int], **more: Any) -> Model:
        """With an event in the history: what was done when, to how many samples of which."""
        event = {
            "action": action,
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
            "classes": {str(label): int(count) for label, count in counts.items()},
            **more,
        }
        return replace(self, history=(*self.history, event))


def _is_calibrated(memory: Memory, head: Head) -> bool:
    """Whether answers are as sure as they should be without a temperature."""
    return is_tempered(memory) and getattr(head, "needs_density", False)


def plain(label: Any) -> Any:
    """A label as JSON knows it."""
    return label.item() if isinstance(label, np.generic) else label
