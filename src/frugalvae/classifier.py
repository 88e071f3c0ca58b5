"""The incremental classifier behind scikit-learn's conventions."""

from __future__ import annotations

import copy
import logging
import threading
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self
from weakref import WeakKeyDictionary

import numpy as np

from frugalvae import forgetting, merging, naming
from frugalvae.answers import THRESHOLD
from frugalvae.calibration import Calibration
from frugalvae.checks import position_of
from frugalvae.cost import MemoryReport
from frugalvae.errors import InputError, check_number
from frugalvae.estimator import Estimator, NotFittedError
from frugalvae.heads import make_head
from frugalvae.labels import as_label, nearly_known
from frugalvae.memories import make_memory
from frugalvae.memories.forecast import Forecast
from frugalvae.model import Model, Recipe
from frugalvae.novelty import TaughtNovelty
from frugalvae.storage.model_file import load, save

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from frugalvae.care.explain import Explanation
    from frugalvae.care.findings import Finding
    from frugalvae.care.suggest import Suggestion
    from frugalvae.images.photographs import Photograph
    from frugalvae.interfaces import Encoder, Head, Memory

logger = logging.getLogger(__name__)

_TEACHING: WeakKeyDictionary[Any, threading.RLock] = WeakKeyDictionary()  # a lock a classifier
_GUARD = threading.Lock()

PER_CLASS = ("classes_", "numbers_", "task_of_class_", "n_samples_of_class_")


class FrugalClassifier(Estimator):
    """Learns classes as they come, keeps no data, and classifies among all of them.

    Parameters
    ----------
    memory
        What remembers the classes: a name (see ``frugalvae.memories.MEMORIES``), one of your
        own as ``"module:Class"``, or a memory made with settings of your own, which serves as a
        template and is never changed.
    head
        What classifies: a name (see ``frugalvae.heads.HEADS``), ``"module:Class"``, or a head.
        By default what suits the memory: ``"bayes"`` for ``"moments"``, ``"cosine"`` for most.
    calibrate
        Fit a temperature for :meth:`predict_proba` with every task: memory and head first learn
        it without a fifth of its samples, on which the temperature is fitted, and then all
        of it. Learning takes twice as long. Predictions stay the same. Where the head is
        deferred, and in :meth:`update` and :meth:`forget`, the temperature stays what it was;
        without ``calibrate`` it is 1. The default memory needs none: it holds samples out itself.
    random_state
        Seed of everything random. The same seed on the same machine gives the
        same classifier.
    device
        Where parts that train networks compute; ``None`` takes a GPU if there is one. Closed
        forms are NumPy's, and need none.

    Attributes
    ----------
    model_
        What was learned, as a :class:`frugalvae.model.Model`. It is replaced as a whole by
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
        name alone, and where files of older versions do not say.
    n_tasks_, n_taught_
        How many calls of :meth:`partial_fit` there were, and how many classes they taught,
        those that are forgotten included.
    memory_, head_
        What was learned.
    calibration_, taught_novelty_
        The temperature of :meth:`predict_proba`, and what :meth:`familiarity` compares with.
    history_
        See :meth:`history`.
    left_out_
        What the last :meth:`learn_images` did not learn from, and why.

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
        random_state: int = 0,
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
        that keep sums (the default, Gaussians, ``lda``, ``nearest-mean``, ``ranpac``) what is kept
        and predicted is that of all samples at once, up to rounding. How sure the default is
        depends on the batches, for samples are held out of each; and the first batch decides
        whether features are replaced by their square roots. Others learn known classes as
        :meth:`update` does. If anything goes wrong, the classifier stays as it was.

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
            where nothing is predicted between tasks. :meth:`fit_head` makes up for it, and
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

    def learn_names(
        self,
        names: Iterable[str] = (),
        *,
        text: Mapping[Any, ArrayLike] | None = None,
        encoder: str | None = None,
        model: str | None = None,
        **settings: Any,
    ) -> FrugalClassifier:
        """Learn classes by their names alone, without any sample.

        The encoder must read, as CLIP and SigLIP do: the text feature of a name is compared with
        features of images. Such a class is predicted beside all others, and has 0 samples. When
        samples come, by :meth:`partial_fit` or :meth:`learn_images`, it becomes a class like any
        other. Only memory ``moments`` with head ``bayes`` can. If anything goes wrong, nothing
        changes.

        Parameters
        ----------
        names
            Labels to learn; the encoder makes text features of them, and of classes that were
            taught without any. Known classes keep what they know.
        text
            Text features {label: vector} of your own, instead of ``names``.
        encoder, model, settings
            As in :meth:`learn_images`.

        Examples
        --------
        >>> text = {"wren": [0.0, 1.0], "emu": [1.0, 0.0], "heron": [-1.0, 0.0]}
        >>> clf = FrugalClassifier().fit([[0.1, 1.0], [0.9, 0.2]], ["wren", "emu"], text=text)
        >>> clf.learn_names(text={"heron": text["heron"]}).classes_.tolist()
        ['emu', 'heron', 'wren']
        >>> clf.predict([[-0.8, 0.1], [0.0, 1.0]]).tolist(), clf.n_samples_of_class_.tolist()
        (['heron', 'wren'], [1, 0, 1])
        """
        with self._teaching():
            before, remembered = self._model(), None
            if text is None:
                asked = list(map(as_label, [names] if isinstance(names, str) else names))
                made, remembered = self._encoder(encoder, model, settings)
                text = naming.read_names(made, [*asked, *naming.unread(before)])
            learned = naming.learn_names(before, text)
            self.model_ = learned if remembered is None else replace(learned, encoder=remembered)
            self.n_features_in_ = learned.n_features
        return self

    def fit_head(self) -> FrugalClassifier:
        """Fit the head that :meth:`partial_fit` deferred; nothing happens if none is due."""
        with self._teaching():
            self.model_ = self._fitted().fit_head()
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The most probable class of each row."""
        return self._fitted().predict(self._features(X))

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probability of each class, columns in the order of ``classes_``.

        Examples
        --------
        >>> clf = FrugalClassifier().partial_fit([[1.0, 0.0], [1.0, 0.1]], ["wren", "wren"])
        >>> clf = clf.partial_fit([[0.0, 1.0], [0.1, 1.0]], ["emu", "emu"])  # came later
        >>> clf.classes_.tolist(), clf.predict_proba([[0.0, 1.0]]).argmax(axis=1).tolist()
        (['emu', 'wren'], [0])
        """
        model = self._fitted()
        return model.predict_proba(self._features(X))[:, model.ascending]

    def predict_log_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """The logarithms of :meth:`predict_proba`."""
        with np.errstate(divide="ignore"):  # what is impossible to rounding has -inf
            return np.log(self.predict_proba(X))

    def familiarity(self, X: ArrayLike) -> NDArray[np.float64]:
        """For each row, the share of taught samples that looked less familiar, from 0 to 1.

        The default memory tells how typical a row is of its most probable class; see
        :mod:`frugalvae.maths.typicality`. With other memories, a row is as familiar as it is near
        to the mean of a class, compared with that class's own samples; see
        :class:`frugalvae.novelty.DistanceReference`. How familiar taught samples
        looked was measured while they were there, each as if its class had been taught
        without it. Only their quantiles are kept. Where these are missing, because the
        file is of an older version, replayed samples stand for them, which are more typical than
        real ones. While every class has a single sample, nothing shows how samples of a class
        differ, and all rows count as familiar.

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
        return self._fitted().familiarity(self._features(X))

    def expected_accuracy(self) -> dict[Any, float]:
        """For each class, the share of new samples to expect correct; see :meth:`forecast`.

        Empty if nothing was held out.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> x, y = rng.normal(size=(60, 4)), np.arange(60) % 2
        >>> x[:, 0] += 9 * y
        >>> FrugalClassifier().fit(x, y).expected_accuracy()
        {0: 1.0, 1: 1.0}
        """
        return self._fitted().expected_accuracy()

    def forecast(self) -> Forecast | None:
        """What to expect of new samples that are like those that were taught; none are needed.

        Some samples of each batch were held out while they were there. What is kept of each is a
        margin, counted in bins: by how much its own class led. Margins are lowered by classes
        that came later, as far as these lie near, and raised by further samples. Classes of
        which none was held out, such as those of one sample, are expected to be like the others.
        None with memories other than ``moments``, with a single class, where every class has one
        sample, and for files of older versions until they are taught more.

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

    def is_sure(self, X: ArrayLike, error: float = 0.05) -> NDArray[np.bool_]:
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
        >>> sure = clf.is_sure(x[2000:], error=0.1)
        >>> wrong = clf.predict(x[2000:]) != y[2000:]
        >>> bool(wrong.mean() > 0.14), bool(wrong[sure].mean() < 0.1), bool(sure.mean() > 0.2)
        (True, True, True)
        """
        return self._fitted().is_sure(self._features(X), error)

    def predict_set(self, X: ArrayLike, coverage: float = 0.95) -> list[list[Any]]:
        """For each row, the classes among which the right one is with a probability ``coverage``.

        The most probable comes first. Assumes what :meth:`is_sure` does. Together, the classes of
        a set are at least as likely right as wrong.

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
        return self._fitted().predict_set(self._features(X), coverage)

    def knows(self, X: ArrayLike, threshold: float = THRESHOLD) -> NDArray[np.bool_]:
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
        with self._teaching():
            position_of(label, self._fitted().classes, "; teach new classes with partial_fit()")
            self.model_ = self._model().update(label, self._features(X))
        return self

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

    def check(self, X: ArrayLike, y: ArrayLike) -> list[Finding]:
        """What may be wrong with samples before they are taught; nothing is learned.

        Samples that are nearly the same, that look like another class or like none, classes of
        too few samples, and names that are nearly the same; among themselves, and beside what was
        taught. What cannot be checked is logged. See ``docs/care.md``.

        Parameters
        ----------
        X, y
            Features (n, d) and their labels. Nothing need have been taught before.

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
        >>> surest = FrugalClassifier().check(x, y)[0]
        >>> surest.row, surest.kind, surest.other
        (3, 'wrong-label', 'cat')
        """
        from frugalvae.care.check import check
        from frugalvae.images.photographs import digests_of_rows

        model, noted = self._model(), copy.copy(self)
        features, labels = noted.check_samples(X, y, first=not self._is_fitted())
        digests = digests_of_rows(features, np.arange(len(features)))
        checked = check(model, features, labels, digests=digests)
        for note in checked.notes:
            logger.warning("%s", note)
        return checked.findings

    def suggest(self, X: ArrayLike, n: int = 20) -> list[Suggestion]:
        """Which of some unlabelled samples would teach most.

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
            The most telling first, each a :class:`frugalvae.care.suggest.Suggestion`. Those of one
            ``group`` may belong to a new class.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> x, y = rng.normal(size=(60, 8)), np.repeat(["cat", "emu"], 30)
        >>> x[np.arange(60), (y == "emu").astype(int)] += 9
        >>> clf, between = FrugalClassifier().fit(x[5:55], y[5:55]), (x[:1] + x[59:]) / 2
        >>> [suggestion.row for suggestion in clf.suggest(np.r_[x[:5], between], n=1)]
        [5]
        """
        from frugalvae.care.suggest import suggest

        suggested = suggest(self._fitted(), self._features(X), n)
        for note in suggested.notes:
            logger.warning("%s", note)
        return suggested.suggestions

    def history(self) -> list[dict[str, Any]]:
        """Every change so far, the first one first: plain values that JSON can hold.

        Each has an ``action`` (``"learn"``, ``"update"``, ``"unlearn"``, ``"leave out"``,
        ``"forget"``, ``"rename"``, ``"merge"`` or ``"merge-classes"``), the time ``when``
        it was done, in UTC, and ``classes``: how many samples of each label it was about. A
        task has its number, ``task``; forgetting says ``scrub`` and what ``remains``, as
        unlearning does; renaming says ``from`` and ``to`` what. What was merged has its own
        events before that of merging; a file's is told by its name, ``source``, and
        checksum, ``of``.

        Examples
        --------
        >>> clf = FrugalClassifier("gaussian-diagonal").fit([[0.0, 1.0], [1.0, 0.0]], ["a", "b"])
        >>> [(event["action"], event["classes"]) for event in clf.history()]
        [('learn', {'a': 1, 'b': 1})]
        """
        return copy.deepcopy(list(self._fitted().history))

    def learn_images(
        self,
        folder: str | Path,
        *,
        encoder: str | None = None,
        model: str | None = None,
        depth: int | None = None,
        strict: bool = True,
        again: Collection[str] = (),
        **settings: Any,
    ) -> FrugalClassifier:
        """Learn the classes of a folder of photographs: each folder in it is a class.

        Photographs that were taught before are recognised by a digest of their file and not
        counted again, so that a folder that grows can be given again and again; forgotten classes
        are left out, and renamed ones keep their new label. Photographs are encoded and summed a
        share at a time where the memory adds up, as the default does. What is assumed of folders
        and what is left out is logged, and kept in ``left_out_`` with the names of ``frugalvae
        learn --json``: ``unreadable``, ``left_out``, ``skipped``, ``assumed``, ``already``,
        ``copies``, ``forgotten``, ``renamed``, ``unrecognised`` and others.

        Parameters
        ----------
        folder
            With a folder of photographs for each class, or a zip archive of it.
        depth
            How many levels deep the folders of classes are; see ``frugalvae.images.classes``.
        strict
            Raise an error if a photograph cannot be read. ``False`` leaves it out, as
            ``frugalvae learn`` does, and with it a class of which none can be read.
        again
            Names of folders to learn although their class was forgotten or renamed, or was taught
            without digests, by :meth:`partial_fit` or an older version.
        encoder, model, settings
            What makes features of them, chosen with the first photographs and remembered from
            then on: a name (see ``frugalvae.encoders.FROZEN``; by default EfficientNet-Lite0),
            which model of that kind, and any of its settings, such as ``views=4``.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from PIL import Image
        >>> with tempfile.TemporaryDirectory() as name:
        ...     for colour in ("red", "blue"):
        ...         Path(name, colour).mkdir()
        ...         Image.new("RGB", (80, 60), colour).save(Path(name, colour, "one.png"))
        ...     clf = FrugalClassifier().learn_images(name, size=64)
        >>> clf.predict_images(Image.new("RGB", (60, 80), "blue")).tolist()
        ['blue']
        """
        from frugalvae.images.listing import counted, open_images
        from frugalvae.images.photographs import check_complete, digests_of
        from frugalvae.intake import choose_samples
        from frugalvae.shares import take_photographs

        before = self._model()
        known = [*map(str, before.classes.tolist()), *before.aliases]
        opened = open_images(folder, "learning", depth=depth, known=known)
        with self._teaching(), opened as found:
            before = self._model()
            intake = choose_samples(
                before,
                found.labels,
                lambda rows: digests_of(found.at(rows).files),
                again=[again] if isinstance(again, str) else again,
            )
            twins = nearly_known(map(str, intake.new), list(map(str, before.classes.tolist())))
            for line in [*found.notes, *counted(found.skipped), *intake.left_out, *twins]:
                logger.warning("%s: %s", found.name, line)
            told = {"skipped": found.skipped, "assumed": found.notes, **intake.to_json()}
            left_out = {"unreadable": {}, "left_out": [], **told}
            if len(intake.rows):
                made, remembered = self._encoder(encoder, model, settings)
                taken = take_photographs(before, found, intake, made)
                if strict:
                    advice = "; strict=False leaves out what cannot be read"
                    check_complete(taken.reasons, taken.paths, advice)
                taken.check_new(found.name)
                if taken.reasons:
                    logger.warning("%s: left out as unreadable:\n%s", found.name, taken.lines)
                if taken.counts:
                    self.model_ = replace(before.learn(**taken.lesson), encoder=remembered)
                    self.n_features_in_ = self.model_.n_features
                left_out |= {"unreadable": taken.unreadable, "left_out": taken.missing}
                left_out |= intake.to_json()  # what could be read
            self.left_out_ = left_out
        return self

    def predict_images(self, images: Photograph | Iterable[Photograph]) -> NDArray[Any]:
        """The most probable class of each photograph.

        Parameters
        ----------
        images
            One or many: paths, images of Pillow, or arrays (height, width, 3) of uint8. The
            encoder is loaded once, with the first of them.
        """
        return self.predict(self.encode_images(images))

    def encode_images(self, images: Photograph | Iterable[Photograph]) -> NDArray[np.float32]:
        """Features (n, d) of photographs, for any method that takes features."""
        from frugalvae.images.photographs import encode_photographs

        self._fitted()
        return encode_photographs(self._encoder(None, None, {})[0], images)

    def explain(self, image: Photograph, against: Any = None) -> Explanation:
        """Which parts of an image speak for its most probable class.

        Parts are hidden in turn; see :func:`frugalvae.care.explain.explain`. ``against`` is the
        class to compare with, by default the next probable. ``explain(image).picture()`` shows
        it.
        """
        from frugalvae.care.explain import explain

        return explain(self._fitted(), self._encoder(None, None, {})[0], image, against)

    def _encoder(
        self, name: str | None, model: str | None, settings: dict[str, Any]
    ) -> tuple[Encoder, dict[str, Any]]:
        """What makes features of photographs, and what is to be remembered of it."""
        from frugalvae.encoders.remembered import Choice, load_encoder

        remembered = self._model().remembered
        trust, loaded = vars(self).get("_trust", ()), vars(self).get("_loaded")
        asked = Choice(name, model, settings, trust)
        if loaded is None or asked != Choice(trust=trust) or remembered != loaded[1]:
            loaded = load_encoder(remembered, asked, "this classifier")
            self._loaded = loaded
        return loaded

    def memory_report(self) -> MemoryReport:
        """What is kept, by component: as the paper counts, as stored, and in bytes."""
        return self._fitted().memory_report()

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
        save(vars(self).get("model_") or self._fitted(), path, dtype)

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

    def _is_fitted(self) -> bool:
        return "model_" in vars(self) and bool(len(self.model_.classes))

    def _teaching(self) -> threading.RLock:
        """What only one thread holds at a time: whoever teaches builds on what is there."""
        with _GUARD:
            return _TEACHING.setdefault(self, threading.RLock())

    def _recipe(self) -> Recipe:
        return Recipe(self.memory, self.head, self.calibrate, self.random_state, self.device)

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
