"""The incremental classifier: Algorithm 1 of the paper behind scikit-learn's conventions."""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from frugalvae import changes
from frugalvae.accounting import MemoryReport
from frugalvae.checks import (
    check_features,
    check_learned,
    check_names,
    check_new,
    check_samples,
    check_text,
    check_together,
)
from frugalvae.confidence import Confidence, Reference
from frugalvae.errors import InputError, check_choice, check_number
from frugalvae.heads import make_head
from frugalvae.memories import make_memory, usual_head
from frugalvae.saving.classifier import load, save
from frugalvae.tasks import Replay, Task

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import ArrayLike, NDArray

    from frugalvae.heads.base import Head
    from frugalvae.memories.base import Memory

logger = logging.getLogger(__name__)


class FrugalClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Learns classes as they come, keeps no data, and classifies among all of them.

    Parameters
    ----------
    memory
        What remembers the classes: a name (see ``frugalvae.memories.MEMORIES``),
        or a memory made with settings of your own, which serves as a template
        and is never changed.
    head
        What classifies: a name (see ``frugalvae.heads.HEADS``), or a head. By default what
        suits the memory: ``"bayes"`` for ``"factors"``, ``"cosine"`` for others.
    calibrate
        Fit a temperature for :meth:`predict_proba` with every task: memory and head first learn
        it without a fifth of its samples, on which the temperature is fitted, and then all
        of it. Learning takes twice as long. Predictions stay the same. Where the head is
        deferred, and in :meth:`update` and :meth:`forget`, the temperature stays what it was;
        without ``calibrate`` it is 1.
    random_state
        Seed of everything random. The same seed on the same machine gives the
        same classifier.
    device
        Where to compute; ``None`` takes a GPU if there is one.

    Attributes
    ----------
    classes_
        Labels in the order in which they were learned, ascending within a call.
    numbers_
        For each of them, the number by which memory and head know it: from 0 in the order
        of teaching, and never given to another class.
    task_of_class_
        For each of them, the number of the call that taught it, from 0.
    n_samples_of_class_
        For each of them, how many samples it was taught with; 0 where that is not known,
        in files of older versions.
    n_tasks_, n_taught_
        How many calls of :meth:`partial_fit` there were, and how many classes they taught,
        those that are forgotten included.
    memory_, head_
        What was learned.
    confidence_
        The temperature of :meth:`predict_proba`, and what :meth:`familiarity` compares with.
    history_
        See :meth:`history`.

    Examples
    --------
    >>> from frugalvae import FrugalClassifier
    >>> clf = FrugalClassifier(memory="gaussian-diagonal")
    >>> clf = clf.partial_fit([[0.0, 1.0], [0.1, 1.0]], ["cat", "cat"])
    >>> clf = clf.partial_fit([[1.0, 0.0], [1.0, 0.1]], ["emu", "emu"])
    >>> clf.predict([[0.9, 0.0]]).tolist()
    ['emu']
    >>> clf.sample("cat", 5).shape
    (5, 2)
    """

    classes_: NDArray[Any]
    numbers_: NDArray[np.int64]
    task_of_class_: NDArray[np.int64]
    n_samples_of_class_: NDArray[np.int64]
    n_tasks_: int
    n_taught_: int
    head_due_: bool
    confidence_: Confidence
    history_: list[dict[str, Any]]

    def __init__(
        self,
        memory: str | Memory = "factors",
        head: str | Head | None = None,
        *,
        calibrate: bool = False,
        random_state: int = 0,
        device: str | None = None,
    ) -> None:
        self.memory = memory
        self.head = head
        self.calibrate = calibrate
        self.random_state = random_state
        self.device = device

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        text: Mapping[Any, ArrayLike] | None = None,
        names: Mapping[Any, str] | None = None,
    ) -> FrugalClassifier:
        """Forget everything, then learn the given classes as one task."""
        fresh = copy.copy(self)
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(fresh, name)
        fresh.partial_fit(X, y, text=text, names=names)
        self.__dict__ = fresh.__dict__
        return self

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        text: Mapping[Any, ArrayLike] | None = None,
        names: Mapping[Any, str] | None = None,
        *,
        defer_head: bool = False,
    ) -> FrugalClassifier:
        """Learn new classes. If anything goes wrong, the classifier stays as it was.

        Parameters
        ----------
        X, y
            Features (n, d) and their labels. No label may be known already.
        classes
            Ignored: scikit-learn passes all classes here, we need not know them.
        text
            Text feature of each new class, for heads that start from them.
        names
            Name of each new class, for heads that make prompts of them; labels that are
            names need none.
        defer_head
            Leave a head that is fitted on replay as it is, which saves most of the time
            where nothing is predicted between tasks. :meth:`fit_head` makes up for it, and
            so does the next call that does not defer: the outcome is the same.
        """
        with changes.undone_on_error(self):
            return self._learn(X, y, text, names, defer_head)

    def _learn(
        self,
        X: ArrayLike,
        y: ArrayLike,
        text: Mapping[Any, ArrayLike] | None,
        names: Mapping[Any, str] | None,
        defer_head: bool,
    ) -> FrugalClassifier:
        first = not hasattr(self, "classes_")
        features, labels = check_samples(self, X, y, first)
        new, counts = np.unique(labels, return_counts=True)
        known = np.empty(0, new.dtype) if first else self.classes_
        check_new(new, known, getattr(self, "task_of_class_", None))
        taught = 0 if first else self.n_taught_
        task = Task(
            torch.as_tensor(features, device=self._device()),
            torch.as_tensor(np.searchsorted(new, labels) + taught, device=self._device()),
            check_text(text, new, taught, features.shape[1], self._device()),
            check_names(names, new, taught),
        )

        check_choice("calibrate", self.calibrate, (True, False))
        memory, head = self._parts(first)
        head.meet(task)
        tasks = 0 if first else self.n_tasks_
        confidence = Confidence() if first else self.confidence_
        if self.calibrate and not defer_head:
            spare, rng = copy.deepcopy((memory, head)), self._generator("calibration", tasks)
            confidence = confidence.rehearsed(*spare, task, rng)
        memory.learn(task, self._generator("learn", tasks))  # Algorithm 1: Gaussians, training
        due = defer_head and not head.needs_every_task
        if not due:
            head.learn(task, self._replay(memory, tasks))  # Algorithm 1: adapt the classifier
        check_learned(memory, *([] if defer_head else [head]))

        if first:
            self.n_features_in_ = features.shape[1]
            self.device_ = str(self._device())
        self.memory_, self.head_, self.head_due_ = memory, head, due
        changes.count_in(self, new, counts, tasks, taught)
        self.confidence_ = confidence
        self._measure_familiarity(task)
        logger.info("task %d: %d new classes, %d in all", tasks, len(new), len(self.classes_))
        return self

    def fit_head(self) -> FrugalClassifier:
        """Fit the head that :meth:`partial_fit` deferred; nothing happens if none is due."""
        check_is_fitted(self)
        if self.head_due_:
            head = copy.deepcopy(self.head_)
            head.learn(
                Task.empty(self.n_features_in_), self._replay(self.memory_, self.n_tasks_ - 1)
            )
            check_learned(head)
            self.head_, self.head_due_ = head, False
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The most probable class of each row."""
        columns = self._logits(X).argmax(axis=1)
        predicted: NDArray[Any] = self.classes_[columns]
        return predicted

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probability of each class, columns in the order of ``classes_``."""
        logits = torch.as_tensor(self._logits(X)) / self.confidence_.temperature
        return logits.softmax(dim=1).numpy()

    def familiarity(self, X: ArrayLike) -> NDArray[np.float64]:
        """For each row, the share of taught samples that looked less familiar, from 0 to 1.

        A row is as familiar as it is near to the mean of a class, compared with that class's
        own samples; see :class:`frugalvae.confidence.Reference`. How familiar taught samples
        looked was measured while they were there, each as if its class had been taught
        without it. Only their quantiles are kept. Where these are missing, because every
        class had one sample or the file is of an older version, replayed samples stand for
        them, which are more typical than real ones.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> x, y = rng.normal(size=(100, 8)), np.arange(100) % 2
        >>> x[:, 0] += 9 * y
        >>> x[:, 1] += 9 * (1 - y)
        >>> clf = FrugalClassifier("gaussian-diagonal", "nearest-mean").fit(x, y)
        >>> known, other = x[0], np.array([0, 0, 9, 9, 9, 9, 9, 9])
        >>> clf.knows([known, other]).tolist()
        [True, False]
        """
        check_is_fitted(self)
        features = torch.as_tensor(check_features(self, X), device=self._device())
        reference, confidence = self._reference(), self.confidence_
        if not confidence.quantiles:
            confidence = confidence.with_samples(reference.of_replay)
        blocks = [features[start : start + 8192] for start in range(0, len(features), 8192)]
        strangeness = np.concatenate([reference.strangeness(block) for block in blocks])
        return confidence.familiarity(strangeness)

    def knows(self, X: ArrayLike, threshold: float = 0.05) -> NDArray[np.bool_]:
        """Whether each row is of a class that was taught, by its :meth:`familiarity`.

        About a share of ``threshold`` of rows of known classes are taken for unknown.
        """
        check_number("threshold", threshold, 0, 1)
        return self.familiarity(X) >= threshold

    def sample(
        self, label: Any, n_samples: int = 1, random_state: int | None = None
    ) -> NDArray[np.float32]:
        """Features of a class as the memory recalls them, shape (n_samples, d).

        The same ``random_state`` gives the same samples; by default it is the
        classifier's own.
        """
        check_is_fitted(self)
        check_number("n_samples", n_samples, 1, whole=True)
        number = int(self.numbers_[changes.position_of(label, self.classes_)])
        rng = self._generator("sample", number, random_state)
        return self.memory_.sample(number, n_samples, rng).cpu().numpy()

    def update(self, label: Any, X: ArrayLike) -> FrugalClassifier:
        """Learn more examples of a known class. If anything goes wrong, nothing changes.

        Most memories learn the class anew from the new examples and from as many replayed
        ones as it had before. Gaussians, stored features, and the sums that nearest-mean, LDA
        and RanPAC keep, come out exactly as if old and new examples had come together; so do
        means and the shared covariance of ``factors``, whose directions come from the old ones
        and the new examples. Heads that are fitted on replay are fitted anew.

        What is kept of other classes does not change, with two exceptions: a covariance that
        all classes share takes in the new examples; and the incremental VAE learns the class
        as one more task, which takes room in the decoder's null space and moves others as far
        as that leaks.

        Parameters
        ----------
        label
            A class that :meth:`partial_fit` has taught.
        X
            Features of it, (n, d).

        Examples
        --------
        >>> clf = FrugalClassifier("gaussian-diagonal").fit([[0.0, 1.0], [1.0, 0.0]], ["a", "b"])
        >>> clf = clf.update("a", [[-1.0, 1.0], [-1.1, 0.9], [-0.9, 1.1]])
        >>> clf.n_samples_of_class_.tolist()
        [4, 1]
        """
        check_is_fitted(self)
        advice = "; teach new classes with partial_fit()"
        changes.position_of(label, self.classes_, advice)
        features = check_features(self, X)
        with changes.undone_on_error(self):
            changes.update(self, label, features)
        return self

    def forget(self, label: Any, *, scrub: bool = False) -> list[str]:
        """Remove a class, and say what of it remains.

        Everything that is kept of the class alone goes: mean, statistics, embeddings, class
        vector, prompt, text feature. The others' scores stay what they were. The class can be
        taught again later, as a new one. The history keeps its label.

        Parameters
        ----------
        label
            A class that was taught, but not the only one.
        scrub
            Replace memory or head, where something of the class remains in them, by fresh ones
            that learn the other classes from replay, all as one task: then nothing is left that
            was trained on the class. The others may lose something, for they are learned from
            samples of samples: on digits 1.8 points of accuracy with a VAE, 0.2 with Gaussians
            of shared covariance; see ``docs/verbs.md``.

        Returns
        -------
        remains
            Sentences, such as "the head's shared covariance still contains its samples' scatter".

        Examples
        --------
        >>> clf = FrugalClassifier("gaussian-shared", "nearest-mean")
        >>> clf = clf.fit([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], ["a", "b", "c"])
        >>> clf.forget("b")
        ["the covariance that all classes share still contains its samples' scatter"]
        >>> clf.classes_.tolist()
        ['a', 'c']
        >>> clf.forget("a", scrub=True)
        []
        """
        check_is_fitted(self)
        check_choice("scrub", scrub, (True, False))
        with changes.undone_on_error(self):
            return changes.forget(self, label, scrub)

    def rename(self, old: Any, new: Any) -> FrugalClassifier:
        """Give a class another label, of the same kind.

        A prompt whose name was the label speaks of the new one when the head is next fitted;
        until then its learned token and its class vector stay as they are.

        Examples
        --------
        >>> clf = FrugalClassifier("gaussian-diagonal").fit([[0.0, 1.0], [1.0, 0.0]], ["a", "b"])
        >>> clf.rename("a", "aardvark").predict([[0.0, 1.0]]).tolist()
        ['aardvark']
        """
        check_is_fitted(self)
        with changes.undone_on_error(self):
            changes.rename(self, old, new)
        return self

    def history(self) -> list[dict[str, Any]]:
        """Every change so far, the first one first: plain values that JSON can hold.

        Each has an ``action`` (``"learn"``, ``"update"``, ``"forget"`` or ``"rename"``), the
        time ``when`` it was done, in UTC, and ``classes``: how many samples of each label it
        was about. A task has its number, ``task``; forgetting says ``scrub`` and what
        ``remains``; renaming says ``from`` and ``to`` what.

        Examples
        --------
        >>> clf = FrugalClassifier("gaussian-diagonal").fit([[0.0, 1.0], [1.0, 0.0]], ["a", "b"])
        >>> [(event["action"], event["classes"]) for event in clf.history()]
        [('learn', {'a': 1, 'b': 1})]
        """
        check_is_fitted(self)
        return copy.deepcopy(getattr(self, "history_", []))

    def memory_report(self) -> MemoryReport:
        """What is kept, by component: as the paper counts, as stored, and in bytes."""
        self._check_head()
        name = getattr(self.memory_, "name", type(self.memory_).__name__)
        parts = self.memory_.components() + self.head_.components()
        return MemoryReport(name, len(self.classes_), self.n_tasks_, tuple(parts))

    def save(self, path: str | Path, *, dtype: Literal["float32", "float16"] = "float32") -> None:
        """Write everything that was learned to one file; see ``docs/format.md``.

        A kill at any moment leaves the old file or the new one.

        Parameters
        ----------
        path
            Where to write, customarily a name that ends in ``.frugal``.
        dtype
            ``"float16"`` takes about half the space and rounds to three digits: predictions
            near a boundary may change. Sums and covariances are never rounded.

        Examples
        --------
        >>> import tempfile
        >>> clf = FrugalClassifier("gaussian-diagonal").fit([[0.0, 1.0], [1.0, 0.0]], ["a", "b"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     clf.save(f"{folder}/two.frugal")
        ...     FrugalClassifier.load(f"{folder}/two.frugal").predict([[0.9, 0.2]]).tolist()
        ['b']
        """
        check_is_fitted(self)
        save(self, path, dtype)

    @classmethod
    def load(cls, path: str | Path, *, device: str | None = None) -> FrugalClassifier:
        """The classifier that :meth:`save` wrote, which answers and learns on as if never saved.

        Parameters
        ----------
        path
            Where it was written. No code in a file is ever run, whoever made it.
        device
            Where to compute from now on, wherever it learned; ``None`` takes a GPU if there is one.
        """
        return load(cls, path, device)

    def _reference(self) -> Reference:
        """What the classes look like now; the same whenever it is asked for."""
        made_of, reference = getattr(self, "_looks", (None, None))
        if reference is None or made_of is not self.memory_:
            reference = Reference(self.memory_, self._generator("familiarity", 0))
            self._looks = self.memory_, reference
        return reference

    def _measure_familiarity(self, task: Task) -> None:
        """Count samples that were just taught, if the memory has anything to compare with."""
        if self.memory_.tensors():
            reference = Reference(self.memory_, self._generator("familiarity", 0))
            counts = dict(zip(self.numbers_.tolist(), self.n_samples_of_class_, strict=True))
            strangeness = reference.strangeness_of_taught(task, counts)
            self.confidence_ = self.confidence_.with_samples(strangeness)

    def _logits(self, X: ArrayLike) -> NDArray[np.float64]:
        """Scores in float64: a row's result does not depend on the rows beside it."""
        self._check_head()
        features = check_features(self, X)
        blocks = [features[start : start + 8192] for start in range(0, len(features), 8192)]
        logits = [
            self.head_.logits(torch.as_tensor(x, device=self._device()).double()) for x in blocks
        ]
        order = np.argsort(self.head_.classes)  # numbers_ ascend
        return torch.cat(logits).cpu()[:, order].numpy()

    def _check_head(self) -> None:
        check_is_fitted(self)
        if self.head_due_:
            raise InputError(
                "the head was not fitted after the last task, which was taught with "
                "defer_head=True; call fit_head() first"
            )

    def _parts(self, first: bool) -> tuple[Memory, Head]:
        """Copies to learn on, so that a failure leaves the originals alone."""
        if not first:
            return copy.deepcopy((self.memory_, self.head_))
        memory = make_memory(self.memory) if isinstance(self.memory, str) else self.memory
        asked = usual_head(memory) if self.head is None else self.head
        head = make_head(asked) if isinstance(asked, str) else asked
        for kind, part in (("memory", memory), ("head", head)):
            if getattr(part, "classes", None) != []:
                raise InputError(
                    f"{kind} is {part!r}; expected a name or a {kind} that knows no class yet, "
                    f"as make_{kind}(...) gives it"
                )
        check_together(memory, head)
        return copy.deepcopy((memory, head))

    def _device(self) -> torch.device:
        """Where it learned; before that, what was asked for, or a GPU if there is one."""
        if hasattr(self, "device_"):
            return torch.device(self.device_)
        name = self.device or ("cuda" if torch.cuda.is_available() else "cpu")
        try:
            return torch.empty(0, device=name).device
        except (RuntimeError, AssertionError) as error:
            raise InputError(
                f"device is {name!r}, which cannot be used here ({error}); try device='cpu'"
            ) from error

    def _replay(self, memory: Memory, task: int) -> Replay:
        """Replay with draws of its own: the same whether the head was deferred or not."""
        return Replay(memory, self._generator("head", task))

    def _generator(self, purpose: str, number: int, seed: int | None = None) -> torch.Generator:
        """A stream of its own for each task and class: no draw depends on earlier calls."""
        base = self.random_state if seed is None else seed
        check_number("random_state", base, 0, whole=True)
        entropy = [int(base), number, *purpose.encode()]
        mixed = np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0]
        return torch.Generator(self._device()).manual_seed(int(mixed >> np.uint64(1)))
