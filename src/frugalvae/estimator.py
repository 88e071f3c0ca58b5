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

from frugalvae.checks import EXPECTED, check_features, check_finite, check_labels, check_one_kind
from frugalvae.errors import InputError

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

        def check_samples(
            self, X: ArrayLike, y: ArrayLike, first: bool
        ) -> tuple[NDArray[np.float32], NDArray[Any]]:
            """Features (n, d) and labels (n,); the ``first`` ones decide the width."""
            check_one_kind(y)
            try:
                features, labels = validate_data(
                    self, X, y, dtype=np.float32, reset=first, ensure_all_finite=False
                )
            except ValueError as error:
                raise InputError(f"{str(error).rstrip('.')}. {EXPECTED}") from error
            try:
                labels = column_or_1d(labels, warn=True)
                with warnings.catch_warnings():  # a sample per class is no regression problem
                    warnings.filterwarnings("ignore", "The number of unique classes is greater")
                    check_classification_targets(labels)
            except (ValueError, TypeError) as error:  # names beside numbers cannot be compared
                raise InputError(f"{str(error).rstrip('.')}. {EXPECTED}") from error
            return check_finite(features), labels

        def check_features(self, X: ArrayLike) -> NDArray[np.float32]:
            """Features (n, d), as wide as those that were learned."""
            try:
                features = validate_data(
                    self, X, dtype=np.float32, reset=False, ensure_all_finite=False
                )
            except ValueError as error:
                told, width = str(error).rstrip("."), self.n_features_in_
                raise InputError(f"{told}. Give X of shape (n, {width}), n at least 1") from error
            return check_finite(features)

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
            for name, value in settings.items():
                if name not in known:
                    raise InputError(f"no setting is called {name!r}; there are {', '.join(known)}")
                setattr(self, name, value)
            return self

        def score(self, X: ArrayLike, y: ArrayLike) -> float:
            """The share of rows that are classified correctly."""
            return float(np.mean(self.predict(X) == np.asarray(y)))  # type: ignore[attr-defined]

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
