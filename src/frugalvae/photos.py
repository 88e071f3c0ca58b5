"""A classifier of photographs: an encoder, and a classifier of the features that it makes."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from frugalvae.classifier import FrugalClassifier
from frugalvae.encoders import Choice, load_encoder
from frugalvae.errors import InputError
from frugalvae.labels import as_label, nearly_known
from frugalvae.model import naming

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from frugalvae.care.explanations import Explanation
    from frugalvae.images.photographs import Photograph
    from frugalvae.parts.protocols import Encoder

logger = logging.getLogger(__name__)

#: Methods of a classifier that take photographs here, in place of features.
OF_PHOTOGRAPHS = ("predict_log_proba", "familiarity", "is_known", "is_reliable", "predict_set")


class PhotoClassifier:
    """Learns classes from folders of photographs as they come, and names photographs.

    All that a :class:`~frugalvae.FrugalClassifier` can do it can, too: what it does not do itself
    is its classifier's, where ``predict_log_proba``, ``familiarity``, ``is_known``,
    ``is_reliable`` and ``predict_set`` take photographs.

    Parameters
    ----------
    encoder, model, settings
        What makes features of photographs, chosen with the first of them and remembered from
        then on: a name (see ``frugalvae.encoders.ENCODERS``; by default EfficientNet-Lite0), which
        model of that kind, and any of its settings, such as ``views=4``.
    classifier
        What classifies features; by default a new one.
    trust
        What a file may name, as in :meth:`load`.

    Attributes
    ----------
    classifier
        What was learned.
    left_out_
        What the last :meth:`learn` did not learn from, and why.

    Examples
    --------
    >>> import tempfile
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as name:
    ...     for colour in ("red", "blue"):
    ...         Path(name, colour).mkdir()
    ...         Image.new("RGB", (80, 60), colour).save(Path(name, colour, "one.png"))
    ...     clf = PhotoClassifier(size=64).learn(name)
    >>> clf.predict(Image.new("RGB", (60, 80), "blue")).tolist(), clf.classes_.tolist()
    (['blue'], ['blue', 'red'])
    """

    left_out_: dict[str, Any]

    def __init__(
        self,
        encoder: str | None = None,
        model: str | None = None,
        *,
        classifier: FrugalClassifier | None = None,
        trust: Collection[str] = (),
        **settings: Any,
    ) -> None:
        self.classifier = FrugalClassifier() if classifier is None else classifier
        named = (trust,) if isinstance(trust, str) else tuple(trust)
        self._choice = Choice(encoder, model, settings, named)
        self._loaded: tuple[Encoder, dict[str, Any]] | None = None

    def learn(
        self,
        folder: str | Path,
        *,
        depth: int | None = None,
        strict: bool = True,
        again: Collection[str] = (),
    ) -> Self:
        """Learn the classes of a folder of photographs: each folder in it is a class.

        Photographs that were taught before are recognised by a digest of their file and not
        counted again, so that a folder that grows can be given again and again; forgotten classes
        are left out, and renamed ones keep their new label. What is assumed of folders and what is
        left out is logged, and kept in ``left_out_`` with the names of ``frugalvae learn --json``.

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
            without digests, by :meth:`FrugalClassifier.partial_fit`.
        """
        from frugalvae.samples import counted, named, open_samples
        from frugalvae.verbs.learn import learn

        before = self.classifier._model()
        again = list(map(as_label, [again] if isinstance(again, str) else again))
        known = [*map(str, before.classes.tolist()), *before.aliases]
        opened = open_samples(folder, "learning", depth=depth, known=known)
        with self.classifier._changing() as change, opened as samples:
            given = (change.before, samples, self._choice, "this classifier")
            lesson = learn(*given, again=again, load=self._load)
            problems = lesson.unreadable if strict else {}
            for name, why in problems.items():
                raise InputError(
                    f"{len(problems)} of {sum(lesson.learned.values()) + len(problems)} "
                    f"photographs cannot be read, the first is {name}: {why}; strict=False leaves "
                    "out what cannot be read"
                )
            twins = nearly_known(map(str, lesson.plan.new), known)
            lines = [*samples.notes, *counted(samples.skipped), *lesson.plan.left_out, *twins]
            if lesson.unreadable:
                lines += ["left out as unreadable:", *named(lesson.unreadable)]
            for line in lines:
                logger.warning("%s: %s", samples.name, line)
            change.after = lesson.model
        self.left_out_ = lesson.to_json()
        return self

    def learn_names(self, names: Iterable[str]) -> Self:
        """Learn classes by their names alone, without any photograph.

        The encoder must read, as CLIP and SigLIP do; it also reads the names of classes that were
        taught without. Known classes keep what they know. See
        :meth:`FrugalClassifier.learn_names`.
        """
        with self.classifier._changing() as change:
            given = list(map(as_label, [names] if isinstance(names, str) else names))
            made, remembered = self._load(change.before.remembered, self._choice, "this classifier")
            text = naming.read_names(made, [*given, *naming.unread(change.before)])
            change.after = replace(naming.teach_names(change.before, text), encoder=remembered)
        return self

    def encode(self, photographs: Photograph | Iterable[Photograph]) -> NDArray[Any]:
        """Features (n, d) of photographs: paths, images of Pillow, or arrays of colours."""
        from frugalvae.images.photographs import encode_photographs

        return encode_photographs(self._encoder(), photographs)

    def predict(self, photographs: Photograph | Iterable[Photograph]) -> NDArray[Any]:
        """The most probable class of each photograph."""
        return self.classifier.predict(self.encode(photographs))

    def predict_proba(self, photographs: Photograph | Iterable[Photograph]) -> NDArray[Any]:
        """Probability of each class, columns in the order of ``classes_``."""
        return self.classifier.predict_proba(self.encode(photographs))

    def explain(self, photograph: Photograph, against: Any = None) -> Explanation:
        """Which parts of a photograph speak for its most probable class.

        Parts are hidden in turn; see :func:`frugalvae.care.explanations.explain`. ``against`` is
        the class to compare with, by default the next probable. ``explain(...).picture()`` shows
        it.
        """
        from frugalvae.care.explanations import explain

        return explain(self.classifier.model_, self._encoder(), photograph, against)

    def merge(self, other: PhotoClassifier | FrugalClassifier, **how: Any) -> Self:
        """Add all that another classifier was taught; see :meth:`FrugalClassifier.merge`."""
        features = other.classifier if isinstance(other, PhotoClassifier) else other
        self.classifier.merge(features, **how)
        return self

    @classmethod
    def load(
        cls, path: str | Path, *, device: str | None = None, trust: Collection[str] = ()
    ) -> PhotoClassifier:
        """The classifier of a file, with its encoder; see :meth:`FrugalClassifier.load`."""
        return cls(classifier=FrugalClassifier.load(path, device=device, trust=trust), trust=trust)

    def _encoder(self) -> Encoder:
        model = self.classifier.model_
        return self._load(model.remembered, self._choice, "this classifier")[0]

    def _load(
        self, remembered: dict[str, Any] | None, choice: Choice, file: Path | str
    ) -> tuple[Encoder, dict[str, Any]]:
        """The encoder; it is loaded once, unless the classifier remembers another."""
        if self._loaded is None or (remembered and remembered != self._loaded[1]):
            self._loaded = load_encoder(remembered, choice, file)
        return self._loaded

    def __getattr__(self, name: str) -> Any:
        """What the classifier has; methods that change it give this one back."""
        if name.startswith("_") or name == "classifier":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        found = getattr(self.classifier, name)
        if not callable(found):
            return found

        @wraps(found)
        def delegated(*given: Any, **named: Any) -> Any:
            if name in OF_PHOTOGRAPHS and given:
                given = (self.encode(given[0]), *given[1:])
            result = found(*given, **named)
            return self if result is self.classifier else result

        return delegated

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *dir(self.classifier)]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.classifier!r})"
