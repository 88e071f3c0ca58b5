"""What a model refuses to learn from or to look at, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from frugalvae.errors import InputError, UnknownClassError, suggestion
from frugalvae.labels import as_label, as_labels, by_label, listing
from frugalvae.maths.arrays import Array

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from frugalvae.parts.protocols import Head, Memory


LARGEST = 1e14  # of a feature: the squares of 10^9 of them add up within float32
EXPECTED = (
    "Give X of shape (n, d), n at least 1 and d the same in every call, and y with one label, "
    "a name or a whole number, for each row of X"
)


def check_features(X: ArrayLike, width: int | None = None) -> NDArray[np.float32]:
    """Features (n, d) of finite float32, in rows one after the other; d is ``width`` if known."""
    try:
        with np.errstate(over="ignore"):  # what float32 cannot hold is refused below
            features = np.ascontiguousarray(X, np.float32)
    except (ValueError, TypeError) as error:
        raise InputError(f"X cannot be read as numbers ({error}). {EXPECTED}") from error
    if features.ndim != 2 or not features.size or width not in (None, features.shape[1]):
        expected = f"(n, {'d' if width is None else width}), n at least 1"
        raise InputError(
            f"the features have shape {np.shape(X)}; expected {expected}"
            + (
                ""
                if width is None
                else ": features of the encoder that the classifier was taught with"
            )
        )
    return check_finite(features)


def check_one_kind(y: ArrayLike) -> None:
    """Refuse missing labels, and a list of names and numbers, which would all become names."""
    given = np.asarray(y)
    if given.ndim == 1 and given.dtype.kind in "fO":
        missing = np.flatnonzero((given != given) | (given == None))  # noqa: E711
        if len(missing):
            raise InputError(f"y has no label for row {missing[0]}: None or NaN. {EXPECTED}")
    if isinstance(y, list | tuple) and len({isinstance(label, str) for label in y}) > 1:
        raise InputError(f"y has labels of several kinds. {EXPECTED}")


def check_labels(y: ArrayLike, count: int) -> NDArray[Any]:
    """One label for each of so many rows: names or whole numbers, of one kind."""
    check_one_kind(y)
    labels = np.asarray(y)
    if labels.shape != (count,):
        raise InputError(f"y has shape {labels.shape} for {count} rows of X. {EXPECTED}")
    whole = True
    if labels.dtype.kind == "f":
        whole = bool((np.isfinite(labels) & (labels == np.floor(labels))).all())
    if labels.dtype.kind not in "biufUO" or not whole:
        raise InputError(f"y has labels like {labels.tolist()[0]!r}. {EXPECTED}")
    if labels.dtype.kind == "O" and {type(label) for label in labels} != {str}:
        raise InputError(f"y has labels of several kinds. {EXPECTED}")
    return as_labels(labels)


def check_finite(
    features: NDArray[np.float32], rows: NDArray[np.int64] | None = None
) -> NDArray[np.float32]:
    """The features, if every one of them is a number whose squares can be added up.

    ``rows`` are their numbers, if they are some rows of a table.
    """
    if (np.abs(features) <= LARGEST).all():
        return features
    numbers = np.arange(len(features)) if rows is None else rows
    wrong = ~np.isfinite(features)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        missing = bool(np.isnan(features[row, column]))
        what = "NaN" if missing else "infinity (inf), or what is beyond float32's 3.4e38"
        raise InputError(
            f"X has values that are not finite in {wrong.sum()} of {wrong.size} places, the first "
            f"in row {numbers[row]}, column {column}: {what}; remove those rows, or correct the "
            "features"
        )
    row, column = np.argwhere(np.abs(features) > LARGEST)[0]
    raise InputError(
        f"X has the value {features[row, column]:.1e} in row {numbers[row]}, column {column}; "
        f"expected at most {LARGEST:.0e} in size. Remove that row, or scale the features"
    )


def check_kind(new: NDArray[Any], known: NDArray[Any]) -> None:
    """Refuse labels of another kind than those that are known."""
    if len(known) and _kind(new) != _kind(known):
        raise InputError(
            f"labels like {new.tolist()[0]!r} were given, but labels like "
            f"{known.tolist()[0]!r} were learned; use labels of one kind throughout"
        )
    if _kind(new) == "whole" and len(known) and np.result_type(new, known).kind == "f":
        raise InputError(
            f"labels of type {new.dtype} and {known.dtype} have no whole-number type in "
            "common; use labels below 2**63"
        )


def _kind(labels: NDArray[Any]) -> str:
    """Labels of different kinds would turn into each other: True into 1, 1 into 1.0."""
    return {"b": "truth", "i": "whole", "u": "whole", "f": "real"}.get(labels.dtype.kind, "name")


def position_of(label: Any, classes: NDArray[Any], advice: str = "") -> int:
    """Where a label stands among the known ones.

    >>> position_of("emu", np.array(["cat", "emu"]))
    1
    """
    same = classes == as_label(label) if np.ndim(label) == 0 else np.zeros(0, bool)
    position = np.flatnonzero(same)
    if not len(position):
        near = suggestion(label, classes.tolist())
        raise UnknownClassError(
            f"class {label!r} was never taught.{near} {listing(classes)}{advice}"
        )
    return int(position[0])


def check_text(
    text: Mapping[Any, ArrayLike] | None, new: NDArray[Any], offset: int, dim: int
) -> dict[int, Array]:
    """The text feature of each new class by its number; none if none was given."""
    if text is None:
        return {}
    if not isinstance(text, Mapping):
        raise InputError(f"text is a {type(text).__name__}; expected {{label: vector, ...}}")
    text, vectors = by_label(text), {}
    for number, label in enumerate(new.tolist(), start=offset):
        if label not in text:
            raise InputError(f"text has no entry for class {label!r}; give one for every class")
        vector = np.array(text[label], np.float32)
        if vector.shape != (dim,):
            raise InputError(
                f"text feature of class {label!r} has shape {vector.shape}; "
                f"expected ({dim},), as wide as the image features"
            )
        if not np.isfinite(vector).all():
            raise InputError(f"text feature of class {label!r} holds NaN or infinite values")
        vectors[number] = vector
    return vectors


def check_names(names: Mapping[Any, str] | None, new: NDArray[Any], offset: int) -> dict[int, str]:
    """The name of each new class that has one: a label is a name if it is text."""
    given = {} if names is None else names
    if not isinstance(given, Mapping):
        raise InputError(f"names is a {type(given).__name__}; expected {{label: name, ...}}")
    given, found = by_label(given), {}
    for number, label in enumerate(new.tolist(), start=offset):
        name = given.get(label, label)
        if label in given and not (isinstance(name, str) and name.strip()):
            raise InputError(f"the name of class {label!r} is {name!r}; expected text")
        if isinstance(name, str):
            found[number] = name
    return found


def check_learned(*parts: Memory | Head) -> None:
    """Refuse parts that hold anything but finite numbers.

    A part may say what its last lesson changed, by ``changed_arrays()``: the rest was checked.
    """
    for part in parts:
        check_kept(part, getattr(part, "changed_arrays", part.arrays)())


def check_kept(part: Memory | Head, arrays: Mapping[str, Array]) -> None:
    """The same of a part whose arrays are at hand."""
    for name, kept in arrays.items():
        if not np.isfinite(kept).all():
            raise InputError(
                f"learning gave numbers that are NaN or infinite ({type(part).__name__}, "
                f"{name}); scale the features to about 1; if that does not help, lower the "
                "learning rate of what is trained"
            )


def check_together(memory: Memory, head: Head) -> None:
    """Refuse a head that needs what the memory does not have."""
    if getattr(head, "needs_density", False) and not hasattr(memory, "log_density"):
        raise InputError(
            f"head 'bayes' compares densities, and {type(memory).__name__} has none; take a "
            "memory that has, such as 'moments', or another head, such as 'cosine'"
        )


def check_named(memory: Memory, head: Head) -> None:
    """Refuse classes without a text feature beside classes that are known by name alone."""
    text = getattr(head, "text_", {})
    nameless = sum(label not in text for label in memory.classes)
    if nameless and getattr(head, "by_name", []):
        raise InputError(
            f"{nameless} of the classes with samples have no text feature, which is needed to "
            "compare them with classes that are known by name alone; give text={label: vector} for "
            "every class"
        )
