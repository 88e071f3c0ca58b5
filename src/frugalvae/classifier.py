"""The incremental classifier behind scikit-learn's conventions."""

from __future__ import annotations

import copy
import logging
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakKeyDictionary

import numpy as np

from frugalvae.errors import InputError, check_number
from frugalvae.estimator import Estimator, NotFittedError
from frugalvae.model import forgetting, merging, naming
from frugalvae.model.answers import THRESHOLD
from frugalvae.model.confidence import Calibration, TaughtNovelty
from frugalvae.model.model import Model, Recipe
from frugalvae.moments.held_out import Forecast
from frugalvae.parts import make_head, make_memory
from frugalvae.parts.protocols import MemoryReport
from frugalvae.storage.model_file import load, save

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from frugalvae.care.findings import Finding
    from frugalvae.care.suggestions import Suggestion
    from frugalvae.parts.protocols import Head, Memory

logger = logging.getLogger(__name__)

_TEACHING: WeakKeyDictionary[Any, threading.RLock] = WeakKeyDictionary()  # a lock a classifier
_GUARD = threading.Lock()

PER_CLASS = ("classes_", "numbers_", "task_of_class_", "n_samples_of_class_")


@dataclass
class Change:
    """What was known, and what is known after a change."""

    before: Model
    after: Model


class FrugalClassifier(Estimator):
    """Learns classes as they come, keeps no data, and classifies among all of them.

    Parameters
    ----------
    memory
        What remembers the classes: a name (see ``frugalvae.parts.MEMORIES``), one of your
        own as ``"module:Class"``, or a memory made with settings of your own, which serves as a
        template and is never changed.
    head
        What classifies: a name (see ``frugalvae.parts.HEADS``), ``"module:Class"``, or a head.
        By default what suits the memory: ``"bayes"`` for ``"moments"``, ``"cosine"`` for most.
    calibrate
        Fit a temperature for :meth:`predict_proba` with every task: memory and head first learn
        it without a fifth of its samples, on which the temperature is fitted, and then all
        of it. Learning takes twice as long. Predictions stay the same. Where the head is
        deferred, and in :meth:`forget`, the temperature stays what it was;
        without ``calibrate`` it is 1. The default memory needs none: it holds samples out itself.
    random_state
        Seed of everything random. The same seed on the same machine gives the
        same classifier. ``None`` or a ``RandomState`` draws one with the first task.
    device
        Where parts that train networks compute; ``None`` takes a GPU if there is one. Closed
        forms are NumPy's, and need none.

    Attributes
    ----------
    model_
        What was learned, as a :class:`frugalvae.model.model.Model`. It is replaced as a whole by
        whatever changes the classifier: threads that ask while another teaches get answers of
        the old model or of the new one.
    classes_
        Labels in ascending order, whenever they were learned: what scikit-learn expects.
    numbers_
        For each of them, the number by which memory and head know it: from 0 in the order
        of teaching, and never given to another class.
    task_of_class_
        For each of them, the number of the call that taught it, from 0.
    n_samples_of_class_
        For each of them, how many samples it was taught with; 0 for classes that are known by
        name alone.
    n_tasks_, n_taught_
        How many calls of :meth:`partial_fit` there were, and how many classes they taught,
        those that are forgotten included.
    memory_, head_
        What was learned.
    calibration_, taught_novelty_
        The temperature of :meth:`predict_proba`, and what :meth:`familiarity` compares with.
    history_
        Every change so far, the first one first: plain values that JSON can hold. Each has an
        ``action`` (``"learn"``, ``"unlearn"``, ``"leave out"``, ``"forget"``,
        ``"rename"``, ``"merge"`` or ``"merge-classes"``), the time ``when`` it was done, in UTC,
        and ``classes``: how many samples of each label it was about; see ``docs/format.md``.

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

    model_: Model
    n_features_in_: int
    memory_: Memory
    head_: Head
    classes_: NDArray[Any]
    numbers_: NDArray[np.int64]
    task_of_class_: NDArray[np.int64]
    n_samples_of_class_: NDArray[np.int64]
    n_tasks_: int
    n_taught_: int
    head_stale_: bool
    calibration_: Calibration
    taught_novelty_: TaughtNovelty
    history_: tuple[dict[str, Any], ...]

    def __init__(
        self,
        memory: str | Memory = "moments",
        head: str | Head | None = None,
        *,
        calibrate: bool = False,
        random_state: int | np.random.RandomState | None = 0,
        device: str | None = None,
    ) -> None:
        self.memory = memory
        self.head = head
        self.calibrate = calibrate
        self.random_state = random_state
        self.device = device

    def set_params(self, **settings: Any) -> Self:
        """Change settings, also those of memory and head, such as ``memory__budget``.

        Examples
        --------
        >>> FrugalClassifier().set_params(memory__budget="1MB").memory
        MomentMemory(budget='1MB')
        """
        for part, make in (("memory", make_memory), ("head", make_head)):
            name = settings.get(part, getattr(self, part))
            if isinstance(name, str) and any(key.startswith(f"{part}__") for key in settings):
                settings[part] = make(name)
        super().set_params(**settings)
        return self

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        text: Mapping[Any, ArrayLike] | None = None,
        names: Mapping[Any, str] | None = None,
    ) -> FrugalClassifier:
        """Forget everything, then learn the given classes as one task."""
        with self._teaching():
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
        """Learn samples of new classes, and more of known ones.

        Batches may be of any size, a single sample too, in any order. With memories and heads
        that keep sums (the default, Gaussians, ``lda``, ``nearest-mean``) what is kept
        and predicted is that of all samples at once, up to rounding. How sure the default is
        depends on the batches, for samples are held out of each; and the first batch decides
        whether features are replaced by their square roots. Others learn a
        known class anew from the new samples and from as many replayed ones as it had before, and
        heads that are fitted on replay are fitted anew. If anything goes wrong, the classifier
        stays as it was.

        Parameters
        ----------
        X, y
            Features (n, d) and their labels.
        classes
            Ignored: scikit-learn passes all classes here, we need not know them.
        text
            Text feature of each new class, for heads that start from them.
        names
            Name of each new class, for heads that make prompts of them; labels that are
            names need none.
        defer_head
            Leave a head that is fitted on replay as it is, which saves most of the time
            where nothing is predicted between tasks. The first prediction makes up for it, and
            so does the next call that does not defer: the outcome is the same.
        """
        with self._teaching():
            noted = copy.copy(self)  # scikit-learn notes width and names of features at once
            features, labels = noted.check_samples(X, y, first=not self._is_fitted())
            model = self._model().learn(
                features, labels, text=text, names=names, defer_head=defer_head
            )
            given = getattr(noted, "feature_names_in_", None)
            if given is not None:
                self.feature_names_in_ = given
                model = replace(model, feature_names=tuple(given.tolist()))
            self.n_features_in_ = noted.n_features_in_
            self.model_ = model
        return self

    def learn_names(self, text: Mapping[Any, ArrayLike]) -> FrugalClassifier:
        """Learn classes by their names alone, without any sample.

        The text feature of a name is compared with features of images, as of CLIP and SigLIP. Such
        a class is predicted beside all others, and has 0 samples. When samples come, it becomes a
        class like any other. Only memory ``moments`` with head ``bayes`` can. If anything goes
        wrong, nothing changes.

        Parameters
        ----------
        text
            Text features {label: vector}. Known classes keep what they know.

        Examples
        --------
        >>> text = {"wren": [0.0, 1.0], "emu": [1.0, 0.0], "heron": [-1.0, 0.0]}
        >>> clf = FrugalClassifier().fit([[0.1, 1.0], [0.9, 0.2]], ["wren", "emu"], text=text)
        >>> clf.learn_names({"heron": text["heron"]}).classes_.tolist()
        ['emu', 'heron', 'wren']
        >>> clf.predict([[-0.8, 0.1], [0.0, 1.0]]).tolist(), clf.n_samples_of_class_.tolist()
        (['heron', 'wren'], [1, 0, 1])
        """
        with self._changing() as change:
            change.after = naming.teach_names(change.before, text)
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The most probable class of each row."""
        return self._ready().predict(self._features(X))

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probability of each class, columns in the order of ``classes_``.

        Examples
        --------
        >>> clf = FrugalClassifier().partial_fit([[1.0, 0.0], [1.0, 0.1]], ["wren", "wren"])
        >>> clf = clf.partial_fit([[0.0, 1.0], [0.1, 1.0]], ["emu", "emu"])  # came later
        >>> clf.classes_.tolist(), clf.predict_proba([[0.0, 1.0]]).argmax(axis=1).tolist()
        (['emu', 'wren'], [0])
        """
        model = self._ready()
        return model.predict_proba(self._features(X))[:, model.ascending]

    def predict_log_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """The logarithms of :meth:`predict_proba`."""
        with np.errstate(divide="ignore"):  # what is impossible to rounding has -inf
            return np.log(self.predict_proba(X))

    def familiarity(self, X: ArrayLike) -> NDArray[np.float64]:
        """For each row, the share of taught samples that looked less familiar, from 0 to 1.

        The default memory tells how typical a row is of its most probable class; see
        :mod:`frugalvae.moments.held_out`. With other memories, a row is as familiar as it is near
        to the mean of a class, compared with that class's own samples; see
        :class:`frugalvae.model.confidence.DistanceReference`. How familiar taught samples
        looked was measured while they were there, each as if its class had been taught
        without it. Only their quantiles are kept. While every class has a single sample,
        nothing shows how samples of a class differ, and all rows count as familiar.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> x, y = rng.normal(size=(100, 8)), np.arange(100) % 2
        >>> x[:, 0] += 9 * y
        >>> x[:, 1] += 9 * (1 - y)
        >>> clf = FrugalClassifier("gaussian-diagonal", "nearest-mean").fit(x, y)
        >>> known, other = x[0], np.array([0, 0, 9, 9, 9, 9, 9, 9])
        >>> clf.is_known([known, other]).tolist()
        [True, False]
        """
        return self._ready().familiarity(self._features(X))

    def forecast(self) -> Forecast | None:
        """What to expect of new samples that are like those that were taught; none are needed.

        Some samples of each batch were held out while they were there. What is kept of each is a
        margin, counted in bins: by how much its own class led. Margins are lowered by classes
        that came later, as far as these lie near, and raised by further samples. Classes of
        which none was held out, such as those of one sample, are expected to be like the others.
        None with memories other than ``moments``, with a single class, and where every class has
        one sample.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> x, y = rng.normal(size=(400, 16)), np.arange(400) % 2
        >>> x[:, 0] += 2 * y
        >>> expected = FrugalClassifier().fit(x, y).forecast()
        >>> low, high = expected.interval
        >>> bool(low < 0.84 < high), bool(high - low < 0.1)  # Bayes' rule gives 84 %
        (True, True)
        """
        return self._fitted().forecast

    def is_reliable(self, X: ArrayLike, error: float = 0.05) -> NDArray[np.bool_]:
        """Where answers may be given so that at most a share ``error`` of those given is wrong.

        In the long run, for samples that are like those that were taught; of classes that were
        not taught it promises nothing. The lead of the most probable class over the next decides;
        how large it has to be follows from samples that were held out. The promise allows for
        chance: it holds nineteen times in twenty. An answer that is more likely wrong than right
        is never sure.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> x, y = rng.normal(size=(4000, 16)), np.arange(4000) % 2
        >>> x[:, 0] += 2 * y
        >>> clf = FrugalClassifier().fit(x[:2000], y[:2000])
        >>> sure = clf.is_reliable(x[2000:], error=0.12)
        >>> wrong = clf.predict(x[2000:]) != y[2000:]
        >>> bool(wrong.mean() > 0.14), bool(wrong[sure].mean() < 0.12), bool(sure.mean() > 0.2)
        (True, True, True)
        """
        return self._ready().is_reliable(self._features(X), error)

    def predict_set(self, X: ArrayLike, coverage: float = 0.95) -> list[list[Any]]:
        """For each row, the classes among which the right one is with a probability ``coverage``.

        The most probable comes first. Assumes what :meth:`is_reliable` does. Together, the
        classes of a set are at least as likely right as wrong.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> x, y = rng.normal(size=(400, 16)), np.arange(400) % 2
        >>> x[:, 0] += 2 * y
        >>> clf = FrugalClassifier().fit(x, y)
        >>> sets = clf.predict_set(x)
        >>> sorted({len(found) for found in sets})
        [1, 2]
        """
        return self._ready().predict_set(self._features(X), coverage)

    def is_known(self, X: ArrayLike, threshold: float = THRESHOLD) -> NDArray[np.bool_]:
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
        return self._fitted().sample(label, n_samples, random_state)

    def merge(
        self,
        other: FrugalClassifier,
        rename: Mapping[Any, Any] | None = None,
        *,
        twice: bool = False,
    ) -> FrugalClassifier:
        """Add all that another classifier was taught. If anything goes wrong, nothing changes.

        The result is what one classifier would be that was taught everything, whatever the
        order. Classes of one label become one class.

        Parameters
        ----------
        other
            A classifier with the same memory and head, taught features of the same encoder.
        rename
            Other labels for some of its classes.
        twice
            Whether photographs that both were taught may count twice.

        Examples
        --------
        >>> mine = FrugalClassifier().fit([[0.0, 1.0], [0.1, 1.0], [1.0, 0.0]], ["a", "a", "b"])
        >>> yours = FrugalClassifier().fit([[0.9, 0.1], [2.0, 2.0]], ["b", "wren"])
        >>> mine.merge(yours, rename={"wren": "c"}).classes_.tolist()
        ['a', 'b', 'c']
        >>> mine.n_samples_of_class_.tolist()
        [2, 2, 1]
        """
        if not isinstance(other, FrugalClassifier):
            raise InputError(
                f"{other!r} cannot be merged; expected a classifier, such as "
                "FrugalClassifier.load('other.frugal')"
            )
        with self._teaching():
            self.model_ = merging.merge(self._fitted(), other._fitted(), rename, twice=twice)
        return self

    def merge_classes(self, label: Any, joined: Any) -> FrugalClassifier:
        """Make one class of two: samples of ``joined`` belong to ``label`` from now on.

        Examples
        --------
        >>> clf = FrugalClassifier().fit([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], ["a", "b", "c"])
        >>> clf.merge_classes("a", "c").classes_.tolist()
        ['a', 'b']
        """
        with self._teaching():
            self.model_ = merging.merge_classes(self._fitted(), label, joined)
        return self

    def unlearn(self, label: Any, X: ArrayLike) -> FrugalClassifier:
        """Take samples of a class out again: what they added to sums goes exactly.

        Parameters
        ----------
        label
            A known class.
        X
            Features (n, d) that were taught; not all of the class, for that is :meth:`forget`.

        Examples
        --------
        >>> clf = FrugalClassifier().fit([[0.0, 1.0], [0.4, 1.0], [1.0, 0.0]], ["a", "a", "b"])
        >>> clf.unlearn("a", [[0.4, 1.0]]).n_samples_of_class_.tolist()
        [1, 1]
        """
        with self._teaching():
            self.model_ = forgetting.unlearn(self._fitted(), label, self._features(X))
        return self

    def forget(self, label: Any, X: ArrayLike | None = None, *, scrub: bool = False) -> list[str]:
        """Remove a class, and say what of it remains.

        Everything that is kept of the class alone goes: mean, statistics, embeddings, class
        vector, prompt, text feature. The others' scores stay what they were, but for what all
        classes share. The class can be
        taught again later, as a new one. The history keeps its label.

        Parameters
        ----------
        label
            A class that was taught. After the only one, nothing is known, and any may be taught.
        X
            All samples it was taught, if they are still there: then sums lose exactly what these
            added.
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
        with self._teaching():
            self._fitted()
            self.model_, remains = forgetting.forget(self._model(), label, X, scrub=scrub)
        return remains

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
        with self._teaching():
            self.model_ = self._fitted().rename(old, new)
        return self

    def memory_report(self) -> MemoryReport:
        """What is kept, by component: as the paper counts, as stored, and in bytes."""
        return self._ready().memory_report()

    def save(self, path: str | Path) -> None:
        """Write everything that was learned to one file; see ``docs/format.md``.

        A kill at any moment leaves the old file or the new one.

        Parameters
        ----------
        path
            Where to write, customarily a name that ends in ``.frugal``.

        Examples
        --------
        >>> import tempfile
        >>> clf = FrugalClassifier("gaussian-diagonal").fit([[0.0, 1.0], [1.0, 0.0]], ["a", "b"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     clf.save(f"{folder}/two.frugal")
        ...     FrugalClassifier.load(f"{folder}/two.frugal").predict([[0.9, 0.2]]).tolist()
        ['b']
        """
        save(vars(self).get("model_") or self._fitted(), path)

    @classmethod
    def load(
        cls, path: str | Path, *, device: str | None = None, trust: Collection[str] = ()
    ) -> FrugalClassifier:
        """The classifier that :meth:`save` wrote, which answers and learns on as if never saved.

        Parameters
        ----------
        path
            Where it was written. No code in a file is ever run, whoever made it, and nothing
            that it names is imported, opened or fetched because it says so.
        device
            Where to compute from now on, wherever it learned; ``None`` takes a GPU if there is one.
        trust
            What the file may name: modules of parts that are not ours, such as ``["my_module"]``
            for a memory or an encoder ``my_module:MyPart``, and the model of its encoder, a path
            or a name on the hub such as ``["facebook/dinov2-small"]``.
        """
        model = load(path, device, trust=trust)
        recipe, names = model.recipe, model.feature_names
        classifier = cls(
            recipe.memory,
            recipe.head,
            calibrate=recipe.calibrate,
            random_state=recipe.random_state,
            device=device,
        )
        classifier.model_ = model
        classifier._trust = (trust,) if isinstance(trust, str) else tuple(trust)
        if len(model.classes):
            classifier.n_features_in_ = model.n_features
        if names is not None:
            classifier.feature_names_in_ = np.array(names, dtype=object)
        return classifier

    def __getattr__(self, name: str) -> Any:
        """What was learned, by the names that scikit-learn's users expect."""
        model = vars(self).get("model_")
        if model is not None and name in FrugalClassifier.__annotations__:
            value = model if name == "model_" else getattr(model, name.removesuffix("_"))
            return value[model.ascending] if name in PER_CLASS else value
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        """Attributes, and once something was learned what :meth:`__getattr__` finds."""
        return [
            *super().__dir__(),
            *(FrugalClassifier.__annotations__ if self._is_fitted() else ()),
        ]

    @property
    def encoder_(self) -> dict[str, Any] | None:
        """What makes features of images, if that is known; plain values that JSON can hold."""
        return self._fitted().encoder

    @encoder_.setter
    def encoder_(self, encoder: dict[str, Any] | None) -> None:
        with self._teaching():
            self.model_ = replace(self._fitted(), encoder=encoder)

    def __sklearn_is_fitted__(self) -> bool:
        """Whether anything was learned: what scikit-learn asks for."""
        return self._is_fitted()

    @contextmanager
    def _changing(self) -> Iterator[Change]:
        """One thread at a time makes another model of the one that is there; or nothing changes."""
        with self._teaching():
            change = Change(before := self._model(), before)
            yield change
            if change.after is not before:
                self.model_, self.n_features_in_ = change.after, change.after.n_features

    def _ready(self) -> Model:
        """What was learned, with a head that was fitted."""
        if self._fitted().head_stale:
            with self._changing() as change:
                change.after = change.before.fit_head()
        return self.model_

    def _is_fitted(self) -> bool:
        return "model_" in vars(self) and bool(len(self.model_.classes))

    def _teaching(self) -> threading.RLock:
        """What only one thread holds at a time: whoever teaches builds on what is there."""
        with _GUARD:
            return _TEACHING.setdefault(self, threading.RLock())

    def _recipe(self) -> Recipe:
        return Recipe(self.memory, self.head, self.calibrate, self._seed(), self.device)

    def _seed(self) -> int:
        """The seed of everything random; of None or a RandomState, drawn with the first task."""
        state, model = self.random_state, vars(self).get("model_")
        if state is None or isinstance(state, np.random.RandomState):
            if model is not None:
                return model.recipe.random_state
            state = (state or np.random.RandomState()).randint(2**31 - 1)
        return state

    def _model(self) -> Model:
        """What was learned so far, with the settings as they are now."""
        return replace(vars(self).get("model_") or Model(), recipe=self._recipe())

    def _fitted(self) -> Model:
        if not self._is_fitted():
            raise NotFittedError("not fitted: nothing was taught yet; call fit() or load() first")
        return self.model_

    def _features(self, X: ArrayLike) -> NDArray[np.float32]:
        """Features as wide as those that were learned."""
        self._fitted()
        return self.check_features(X)


def check(X: ArrayLike, y: ArrayLike, classifier: FrugalClassifier | None = None) -> list[Finding]:
    """What may be wrong with samples before they are taught; nothing is learned.

    Samples that are nearly the same, that look like another class or like none, classes of
    too few samples, and names that are nearly the same; among themselves, and beside what a
    classifier was taught. What cannot be checked is logged. See ``docs/care.md``.

    Parameters
    ----------
    X, y
        Features (n, d) and their labels.
    classifier
        What is to learn them, if it was taught before.

    Returns
    -------
    findings
        The surest first, each a :class:`frugalvae.care.findings.Finding`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(60, 32)), np.repeat(["cat", "emu"], 30)
    >>> x[:, 0] += 9 * (y == "emu")
    >>> y[3] = "emu"
    >>> surest = check(x, y)[0]
    >>> surest.row, surest.kind, surest.other
    (3, 'wrong-label', 'cat')
    """
    from frugalvae.care.findings import check as examine
    from frugalvae.images.photographs import digests_of_rows

    learner = FrugalClassifier() if classifier is None else copy.copy(classifier)
    features, labels = learner.check_samples(X, y, first=not learner._is_fitted())
    digests = digests_of_rows(features, np.arange(len(features)))
    checked = examine(learner._model(), features, labels, digests=digests)
    for note in checked.notes:
        logger.warning("%s", note)
    return checked.findings


def suggest(classifier: FrugalClassifier, X: ArrayLike, n: int = 20) -> list[Suggestion]:
    """Which of some unlabelled samples would teach a classifier most.

    Those that cover most doubt: uncertain ones, unknown ones, and such as many uncertain ones
    are near to, unlike each other. See ``docs/care.md``.

    Parameters
    ----------
    X
        Features (m, d).
    n
        How many to suggest.

    Returns
    -------
    suggestions
        Those that teach most first, each a :class:`frugalvae.care.suggestions.Suggestion`. Those of
        one ``group`` may belong to a new class.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(60, 8)), np.repeat(["cat", "emu"], 30)
    >>> x[np.arange(60), (y == "emu").astype(int)] += 9
    >>> clf, between = FrugalClassifier().fit(x[5:55], y[5:55]), (x[:1] + x[59:]) / 2
    >>> [suggestion.row for suggestion in suggest(clf, np.r_[x[:5], between], n=1)]
    [5]
    """
    from frugalvae.care.suggestions import suggest as choose

    suggested = choose(classifier._ready(), classifier._features(X), n)
    for note in suggested.notes:
        logger.warning("%s", note)
    return suggested.suggestions
