"""Arrays as they come: turned around, cut out of others, or not to be written to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from frugalvae import FrugalClassifier
from frugalvae.errors import InputError
from tests.conftest import blobs

Array = NDArray[Any]

PARTS = [
    ("moments", "bayes"),
    ("store-all", "ridge"),
    ("gaussian-shared", "cosine"),
]


def turned(x: Array) -> Array:
    """The same numbers, with negative strides along every axis."""
    flip = (slice(None, None, -1),) * x.ndim
    return np.ascontiguousarray(x[flip])[flip]


def read_only(x: Array) -> Array:
    x = x.copy()
    x.flags.writeable = False
    return x


def read_only_and_turned(x: Array) -> Array:
    x = turned(x)
    x.flags.writeable = False
    return x


def every_other(x: Array) -> Array:
    """The same numbers, with others between the rows."""
    return np.repeat(x, 2, axis=0)[::2]


def by_columns(x: Array) -> Array:
    return np.asfortranarray(x)


def big_endian(x: Array) -> Array:
    return x.astype(x.dtype.newbyteorder(">")) if x.dtype.kind == "f" else x


WAYS = [turned, read_only, read_only_and_turned, every_other, by_columns, big_endian]


def everything(memory: str, head: str, way: Callable[[Array], Array]) -> list[Array]:
    """What every public method makes of arrays that come that way."""
    first, second = (blobs(classes, seed=len(classes)) for classes in ([0, 1, 2], [3, 4]))
    x, y = (way(part) for part in (first.features, first.labels))
    more, names = way(second.features), way(second.labels)
    kept = x.copy(), more.copy()
    whole = FrugalClassifier(memory, head, calibrate=True).fit(x, y)
    told = {label: way(np.eye(8, dtype=np.float32)[label]) for label in range(5)}
    classifier = FrugalClassifier(memory, head)
    classifier.partial_fit(x, y, text={label: told[label] for label in (0, 1, 2)})
    classifier.partial_fit(more, names, text={label: told[label] for label in (3, 4)})
    classifier.partial_fit(way(more[-4:]), [4] * 4)
    answers = [
        whole.predict_proba(more),
        classifier.predict(x),
        classifier.predict_proba(x),
        np.array(classifier.score(x, y)),
    ]
    if memory == "moments":
        answers += [classifier.familiarity(x), classifier.is_known(x)]
    for given, before in zip((x, more), kept, strict=True):
        np.testing.assert_array_equal(given, before)  # nothing was written into
    return answers


@pytest.mark.parametrize(("memory", "head"), PARTS)
@pytest.mark.parametrize("way", WAYS)
def test_every_method_takes_arrays_as_they_come(
    memory: str, head: str, way: Callable[[Array], Array]
) -> None:
    plain = everything(memory, head, np.ascontiguousarray)
    for expected, found in zip(plain, everything(memory, head, way), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_one_row_of_a_turned_array_is_that_row() -> None:
    task = blobs([0, 1, 2])
    x, y = task.features, task.labels
    classifier = FrugalClassifier().fit(x[::-1], y[::-1])
    np.testing.assert_array_equal(classifier.predict(x[::-1]), classifier.predict(x)[::-1])
    np.testing.assert_array_equal(classifier.predict(x[::-1][:1]), y[-1:])


def test_a_text_feature_that_is_a_number_is_refused() -> None:
    task = blobs([0])
    with pytest.raises(
        InputError, match=r"text feature of class 0 has shape \(\); expected \(8,\)"
    ):
        FrugalClassifier().fit(task.features, task.labels, text={0: 1.0})
