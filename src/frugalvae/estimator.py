"""What scikit-learn's users expect of a classifier; all of it works without scikit-learn, too.

Where scikit-learn is installed, :class:`Estimator` is one of its classifiers. Elsewhere it has the
same methods, so that a small machine need not install it (200 MB with SciPy).
"""

from __future__ import annotations

import inspect
import warnings
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from frugalvae.errors import InputError
from frugalvae.labels import as_labels
from frugalvae.parts.checks import (
    EXPECTED,
    check_features,
    check_finite,
    check_labels,
    check_one_kind,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Estimator", "NotFittedError"]

if find_spec("sklearn"):
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import column_or_1d, validate_data

    class Estimator(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
        """A classifier of scikit-learn that notes width and names of features."""

        n_features_in_: int

        def score(self, X: ArrayLike, y: ArrayLike, sample_weight: Any = None) -> float:
            """The share of rows that are classified correctly."""
            return float(super().score(X, as_labels(np.asarray(y)), sample_weight))

        def check_samples(
            self, X: ArrayLike, y: ArrayLike, first: bool
        ) -> tuple[NDArray[np.float32], NDArray[Any]]:
            """Features (n, d) and labels (n,); the ``first`` ones decide the width."""
            check_one_kind(y)
            try:
                with np.errstate(over="ignore"):  # what float32 cannot hold is refused below
                    features, labels = validate_data(
                        self, X, y, dtype=np.float32, reset=first, ensure_all_finite=False
                    )
            except ValueError as error:
                raise InputError(_message(error, EXPECTED)) from error
            try:
                labels = column_or_1d(labels, warn=True)
                with warnings.catch_warnings():  # a sample per class is no regression problem
                    warnings.filterwarnings("ignore", "The number of unique classes is greater")
                    check_classification_targets(labels)
            except (ValueError, TypeError) as error:  # names beside numbers cannot be compared
                raise InputError(_message(error, EXPECTED)) from error
            return check_finite(features), labels

        def check_features(self, X: ArrayLike) -> NDArray[np.float32]:
            """Features (n, d), as wide as those that were learned."""
            try:
                with np.errstate(over="ignore"):
                    features = validate_data(
                        self, X, dtype=np.float32, reset=False, ensure_all_finite=False
                    )
            except ValueError as error:
                expected = f"Give X of shape (n, {self.n_features_in_}), n at least 1"
                raise InputError(_message(error, expected)) from error
            return check_finite(features)

    def _message(error: Exception, expected: str) -> str:
        """What scikit-learn says, without the numbers of an array, and what was expected."""
        text = str(error).strip().rstrip(".")
        if "feature names" in text.lower():  # their number may be right
            return f"{text}."
        before, array, _ = text.partition(":\narray=")
        single = ". Reshape your data: a single row x is x[None]" if array else ""
        return f"{before}. {expected}{single}"

else:

    class NotFittedError(InputError, AttributeError):  # type: ignore[no-redef]
        """Something was asked of a classifier that has learned nothing."""

    class Estimator:  # type: ignore[no-redef]
        """The conventions of scikit-learn's classifiers, where scikit-learn is not installed."""

        n_features_in_: int

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """The settings, by name."""
            names = list(inspect.signature(type(self)).parameters)
            return {name: getattr(self, name) for name in names}

        def set_params(self, **settings: Any) -> Self:
            """Change some settings."""
            known = self.get_params()
            for key, value in settings.items():
                name, _, inner = key.partition("__")
                if name not in known or (inner and not hasattr(known[name], "set_params")):
                    raise InputError(f"no setting is called {key!r}; there are {', '.join(known)}")
                if inner:
                    getattr(self, name).set_params(**{inner: value})
                else:
                    setattr(self, name, value)
            return self

        def score(self, X: ArrayLike, y: ArrayLike) -> float:
            """The share of rows that are classified correctly."""
            return float(np.mean(self.predict(X) == as_labels(np.asarray(y))))  # type: ignore[attr-defined]

        def check_samples(
            self, X: ArrayLike, y: ArrayLike, first: bool
        ) -> tuple[NDArray[np.float32], NDArray[Any]]:
            """Features (n, d) and labels (n,); the ``first`` ones decide the width."""
            features = check_features(X, None if first else self.n_features_in_)
            labels = check_labels(y, len(features))
            self.n_features_in_ = features.shape[1]
            return features, labels

        def check_features(self, X: ArrayLike) -> NDArray[np.float32]:
            """Features (n, d), as wide as those that were learned."""
            return check_features(X, self.n_features_in_)
