"""How rules are checked, and the ones that all parts share."""

from __future__ import annotations

import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from frugalvae.classifier import FrugalClassifier
from frugalvae.errors import InputError
from frugalvae.parts.protocols import Task
from frugalvae.parts.registry import parameters_of, settings_of

if TYPE_CHECKING:
    from frugalvae.parts.protocols import Head, Memory

DIM = 8
ROUNDED = 0.02  # probabilities that a file may change, if a memory says that it rounds

#: Checks one rule on what makes a part.
Rule = Callable[[Callable[[], Any]], None]


class ContractError(AssertionError):
    """A part breaks a rule that all parts keep."""


def check(make: Callable[[], Any], rules: Sequence[Rule]) -> None:
    """Check a part against each rule; one error for all that are broken."""
    if not callable(make):
        raise InputError(
            f"{type(make).__name__} {str(make)[:40]!r} was given; expected the class itself, or a "
            "function that makes a part"
        )
    broken, first = [], None
    for rule in rules:
        try:
            rule(make)
        except Exception as error:  # a part from outside may fail in any way
            what = (
                str(error)
                if isinstance(error, ContractError)
                else f"{type(error).__name__}: {error}"
            )
            broken.append(f"{rule.__name__.replace('_', ' ')}: {what}")
            first = first or error
    if broken:
        name = make if isinstance(make, type) else type(make())
        raise ContractError(
            f"{name.__name__} breaks {len(broken)} of {len(rules)} rules:\n- " + "\n- ".join(broken)
        ) from first


def require(condition: object, message: str) -> None:
    """Raise if a rule is broken."""
    if not condition:
        raise ContractError(message)


def settings_can_be_recorded(make: Callable[[], Any]) -> None:
    """The constructor stores each setting under its own name, and JSON can hold them."""
    part = make()
    settings = settings_of(part)
    require(settings.keys() == parameters_of(type(part)).keys(), f"it lists {list(settings)}")
    json.dumps(settings)


def check_counts(part: Memory | Head) -> None:
    """What is counted is what is there."""
    arrays, counted = part.arrays(), part.components()
    numbers, stored = sum(a.size for a in arrays.values()), sum(c.stored for c in counted)
    size, told = sum(a.nbytes for a in arrays.values()), sum(c.bytes for c in counted)
    require(numbers == stored, f"arrays() holds {numbers} parameters, components() counts {stored}")
    require(size == told, f"arrays() takes {size} bytes, components() counts {told}")


@contextmanager
def importable(kinds: Sequence[type]) -> Iterator[list[str]]:
    """The modules of classes. Those of a script or a function are given one for the time being."""
    module = ModuleType("frugalvae_checked_parts")
    sys.modules[module.__name__] = module
    unnamed = [kind for kind in kinds if is_unnamed(kind)]
    before = [(kind.__module__, kind.__qualname__) for kind in unnamed]
    for kind in unnamed:
        setattr(module, kind.__name__, kind)
        kind.__module__, kind.__qualname__ = module.__name__, kind.__name__
    try:
        yield sorted({kind.__module__ for kind in kinds})
    finally:
        for kind, (where, name) in zip(unnamed, before, strict=True):
            kind.__module__, kind.__qualname__ = where, name
        del sys.modules[module.__name__]


def is_unnamed(kind: type) -> bool:
    """Whether a file could not name a class: it belongs to a script or a function."""
    return kind.__module__ == "__main__" or "<locals>" in kind.__qualname__


def check_file(classifier: FrugalClassifier) -> None:
    """A classifier that is taught, saved and loaded is the same.

    A memory whose files keep fewer digits says ``rounds = True``. Then what was loaded is the
    same from the second file on, and the first one changes answers hardly.
    """
    task, x = blobs([0, 1, 2]), blobs([0, 1, 2], seed=9).features
    with quiet():
        classifier.fit(task.features, task.labels, names=task.names)
    loaded = _saved_and_loaded(classifier)
    if getattr(classifier.memory_, "rounds", False):
        before, after = classifier.predict_proba(x), loaded.predict_proba(x)
        same = np.array_equal(before.argmax(axis=1), after.argmax(axis=1))
        apart = float(np.abs(before - after).max())
        require(
            same and apart <= ROUNDED,
            f"saved and loaded, its probabilities differ by {apart:.3f}; rounding may change them "
            f"by {ROUNDED}, and no prediction",
        )
        classifier, loaded = loaded, _saved_and_loaded(loaded)
    require(
        np.array_equal(classifier.predict_proba(x), loaded.predict_proba(x)),
        "saved and loaded, it predicts otherwise",
    )
    if classifier.memory_.arrays():
        one, other = classifier.sample(1, 5), loaded.sample(1, 5)
        require(np.array_equal(one, other), "saved and loaded, it gives other samples")


def _saved_and_loaded(classifier: FrugalClassifier) -> FrugalClassifier:
    kinds = [type(part) for part in (classifier.memory_, classifier.head_)]
    with tempfile.TemporaryDirectory() as folder, importable(kinds) as modules:
        path = Path(folder, "saved.frugal")
        classifier.save(path)
        return FrugalClassifier.load(path, trust=modules)


def quiet() -> warnings.catch_warnings[None]:
    """Tasks as small as these may saturate a null space, or not converge."""
    return warnings.catch_warnings(action="ignore")


def blobs(
    classes: list[int], per_class: int = 20, dim: int = DIM, seed: int = 0, spread: float = 0.3
) -> Task:
    """Well separated classes: class ``c`` has a centre of its own, whatever the task."""
    rng = np.random.default_rng(seed + 1000)
    x = []
    for label in classes:
        centre = np.random.default_rng(label).normal(size=dim) * 3
        x.append(centre + spread * rng.normal(size=(per_class, dim)))
    return Task(
        np.concatenate(x).astype(np.float32),
        np.repeat(classes, per_class),
        names={label: f"class {label}" for label in classes},
    )
