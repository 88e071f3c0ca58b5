"""What a classifier refuses to learn from, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from frugalvae.errors import InputError, KnownClassError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from frugalvae.heads.base import Head
    from frugalvae.learner import FrugalClassifier
    from frugalvae.memories.base import Memory


EXPECTED = (
    "Give X of shape (n, d), n at least 1 and d the same in every call, and y with one label, "
    "a name or a whole number, for each row of X"
)


def check_samples(
    classifier: FrugalClassifier, X: ArrayLike, y: ArrayLike, first: bool
) -> tuple[NDArray[np.float32], NDArray[Any]]:
    """Features and labels that can be learned from; the ``first`` ones decide the width."""
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import column_or_1d, validate_data

    try:
        features, labels = validate_data(
            classifier, X, y, dtype=np.float32, reset=first, ensure_all_finite=False
        )
    except ValueError as error:
        raise InputError(f"{str(error).rstrip('.')}. {EXPECTED}") from error
    try:
        labels = column_or_1d(labels, warn=True)
        check_classification_targets(labels)
    except (ValueError, TypeError) as error:  # names beside numbers cannot be compared
        raise InputError(f"{str(error).rstrip('.')}. {EXPECTED}") from error
    return laid_out(check_finite(features)), labels


def check_features(classifier: FrugalClassifier, X: ArrayLike) -> NDArray[np.float32]:
    """Features as wide as those that were learned."""
    from sklearn.utils.validation import validate_data

    try:
        features = validate_data(
            classifier, X, dtype=np.float32, reset=False, ensure_all_finite=False
        )
    except ValueError as error:
        told, width = str(error).rstrip("."), classifier.n_features_in_
        raise InputError(f"{told}. Give X of shape (n, {width}), n at least 1") from error
    return laid_out(check_finite(features))


def laid_out(array: NDArray[np.float32]) -> NDArray[np.float32]:
    """Row by row, forwards and open to writing: the array itself, or a copy.

    >>> laid_out(np.ones((1, 2), np.float32)[::-1]).strides  # a lone row can run backwards too
    (8, 4)
    """
    forwards = all(stride >= 0 for stride in array.strides)
    plain = forwards and array.flags.c_contiguous and array.flags.writeable
    return array if plain else array.copy(order="C")


def check_finite(features: NDArray[np.float32]) -> NDArray[np.float32]:
    """The features, if every one of them is a number."""
    wrong = ~np.isfinite(features)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise InputError(
            f"X holds NaN or infinity (inf) in {wrong.sum()} of {wrong.size} places, the first in "
            f"row {row}, column {column}; remove those rows or mend the features"
        )
    return features


def check_new(
    new: NDArray[Any], known: NDArray[Any], task_of_class: NDArray[np.int64] | None
) -> None:
    """Refuse labels that are known already, or of another kind than those that are."""
    check_kind(new, known)
    for label in new.tolist():
        if label in known:
            assert task_of_class is not None
            task = task_of_class[known == label][0] + 1
            raise KnownClassError(
                f"class {label!r} is already known (learned in task {task}); leave its rows out, "
                "give them to update(), or call fit() to start over"
            )


def check_kind(new: NDArray[Any], known: NDArray[Any]) -> None:
    """Refuse labels of another kind than those that are known."""
    if len(known) and _kind(new) != _kind(known):
        raise InputError(
            f"labels like {new.tolist()[0]!r} were given, but labels like "
            f"{known.tolist()[0]!r} were learned; use labels of one kind throughout"
        )
    if _kind(new) == "whole" and np.result_type(new, known).kind == "f":
        raise InputError(
            f"labels of type {new.dtype} and {known.dtype} have no whole-number type in "
            "common; use labels below 2**63"
        )


def _kind(labels: NDArray[Any]) -> str:
    """Labels of different kinds would turn into each other: True into 1, 1 into 1.0."""
    return {"b": "truth", "i": "whole", "u": "whole", "f": "real"}.get(labels.dtype.kind, "name")


def check_text(
    text: Mapping[Any, ArrayLike] | None,
    new: NDArray[Any],
    offset: int,
    dim: int,
    device: torch.device,
) -> dict[int, torch.Tensor]:
    """The text feature of each new class by its number; none if none was given."""
    if text is None:
        return {}
    if not isinstance(text, Mapping):
        raise InputError(f"text is a {type(text).__name__}; expected {{label: vector, ...}}")
    vectors = {}
    for number, label in enumerate(new.tolist(), start=offset):
        if label not in text:
            raise InputError(f"text has no entry for class {label!r}; give one for every class")
        vector = torch.as_tensor(laid_out(np.asarray(text[label], np.float32)))
        if vector.shape != (dim,):
            raise InputError(
                f"text feature of class {label!r} has shape {tuple(vector.shape)}; "
                f"expected ({dim},), as wide as the image features"
            )
        if not vector.isfinite().all():
            raise InputError(f"text feature of class {label!r} holds NaN or infinite values")
        vectors[number] = vector.to(device)
    return vectors


def check_names(names: Mapping[Any, str] | None, new: NDArray[Any], offset: int) -> dict[int, str]:
    """The name of each new class that has one: a label is a name if it is text."""
    given = {} if names is None else names
    if not isinstance(given, Mapping):
        raise InputError(f"names is a {type(given).__name__}; expected {{label: name, ...}}")
    found = {}
    for number, label in enumerate(new.tolist(), start=offset):
        name = given.get(label, label)
        if label in given and not (isinstance(name, str) and name.strip()):
            raise InputError(f"the name of class {label!r} is {name!r}; expected text")
        if isinstance(name, str):
            found[number] = name
    return found


def check_learned(*parts: Memory | Head) -> None:
    """Refuse parts that hold anything but finite numbers."""
    for part in parts:
        for name, kept in part.tensors().items():
            if not kept.isfinite().all():
                raise InputError(
                    f"learning gave numbers that are NaN or infinite ({type(part).__name__}, "
                    f"{name}); scale the features to about 1; if that does not help, lower the "
                    "learning rate of what is trained"
                )


def listing(labels: NDArray[Any], most: int = 8) -> str:
    """The first few labels, and how many more there are.

    >>> listing(np.arange(5), most=2)
    'Known: 0, 1 and 3 more'
    """
    shown = ", ".join(map(repr, labels[:most].tolist()))
    return f"Known: {shown}" + (f" and {len(labels) - most} more" if len(labels) > most else "")


def check_together(memory: Memory, head: Head) -> None:
    """Refuse a head that needs what the memory does not have."""
    if getattr(head, "needs_density", False) and not hasattr(memory, "log_density"):
        raise InputError(
            f"head 'bayes' compares densities, and {type(memory).__name__} has none; take a "
            "memory that has, such as 'factors', or another head, such as 'cosine'"
        )
