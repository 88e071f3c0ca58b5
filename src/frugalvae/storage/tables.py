"""What our memories and heads may hold: a table for each class, and one function that checks them.

An entry says of an attribute how many there are, what they are, and of which shape::

    "each feature d"     for each class a vector in units of features, as long as they are
    "square d d"         one symmetric matrix, as wide as features

How many: one for ``each`` class, or for ``some``; a ``list``; one, if nothing is said. What they
are: a name in :data:`KINDS`, or the class of an object. Sides: ``d`` is the feature dimension,
``k`` the number of classes; ``*`` may be any length, and ``+`` any but 0; any other is a setting
or an attribute. An entry that ends in ``?`` may be missing, or empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from frugalvae.errors import MemoryFileError
from frugalvae.maths.arrays import Array

LONGEST = 1e15  # of what is in units of features, which are at most 1e14
LARGEST = 1e36  # of any other float: many of them can be added up within float32
MOST = 2**53  # of a whole number: floats are exact up to there
TOGETHER = 2**18  # numbers of small arrays that are compared at once

#: Letters of the types that numbers of a kind may have, and the least and the largest of them.
KINDS: dict[str, tuple[str, float, float]] = {
    "feature": ("f", -LONGEST, LONGEST),
    "float": ("f", -LARGEST, LARGEST),
    "positive": ("f", 0.0, LARGEST),  # or 0
    "scale": ("f", 1e-36, LARGEST),
    "root": ("f", -1e20, 1e20),  # features by the root of a count
    "square": ("f", -LARGEST, LARGEST),  # as wide as high; no entry of the diagonal is negative
    "packed": ("f", -LARGEST, LARGEST),  # the upper triangle of one, row by row
    "count": ("iu", 1, MOST),
    "whole": ("iu", 0, MOST),
    "truth": ("b", 0, 1),
    "number": ("fiu", -np.inf, np.inf),
}

MEANS = {"means_": "each feature d"}
COUNTED = {**MEANS, "count_": "count"}
WEIGHTS = {"weights_": "float d k", "bias_": "float k", "classes_": "classes"}
VAE = {
    "normaliser_": "ClasswiseNormaliser|GlobalNormaliser",
    "encoder_": "MLP d 2*settings.latent",
    "decoders_": "list Decoder",
    "route_": "each decoder",
    "means_": "each float settings.latent",
    "noise_": "each positive",
    "layers_": "list LayerState?",
    "priors_": "list PriorState?",
}

#: Records and settings that are single numbers: checked as soon as they are made.
RECORDS: dict[str, dict[str, str]] = {
    "LayerState": dict.fromkeys(["task", "decoder", "layer", "size"], "count")
    | {"rank": "whole", "proportion": "number"},
    "PriorState": dict.fromkeys(["residual", "smallest_distance", "mean_radius"], "number")
    | {"task": "count", "iterations": "whole", "converged": "truth"},
    "NormalPrior": {"scale": "number"},
    "UniformPrior": {"scale": "number"},
}

#: By class; of Gaussians, by their kind of covariance.
TABLES: dict[str, dict[str, str]] = RECORDS | {
    "MomentMemory": {"sums_": "ClassSums", "evidence_": "some Evidence?"},
    "ClassSums": {
        "rooted": "truth",
        "counts": "each count",
        "means": "each feature d",
        "squares": "each positive",
        "roots": "each root * rank",
        "rank": "rank",
        "scatter": "square * *",  # or empty
        "other_squares": "positive",
    },
    "Evidence": {"sums": "float *"},
    "GaussianMemory diagonal": MEANS
    | {"covariances_": "each positive d", "count_": "whole", "pooled_": "nothing"},
    "GaussianMemory full": MEANS
    | {"covariances_": "each packed triangle", "count_": "whole", "pooled_": "nothing"},
    "GaussianMemory shared": COUNTED | {"covariances_": "nothing", "pooled_": "square d d"},
    "StoreAllMemory": {"features_": "each feature + d"},
    "NoMemory": {"classes_": "classes"},
    "VAEMemory": VAE,
    "LiteralVAEMemory": VAE,
    "ClassVAEMemory": {
        "normaliser_": "ClasswiseNormaliser|GlobalNormaliser",
        "decoders_": "each MLP latent d",
        "noise_": "each positive",
    },
    "ClasswiseNormaliser": {"mean_": "each feature d", "std_": "each positive d"},
    "GlobalNormaliser": {"mean_": "feature d", "std_": "scale d"},
    "Decoder": {
        "network": "MLP settings.latent d",
        "inputs": "list LayerInputs?",
        "tasks": "count",
    },
    "LayerInputs": {"sum_": "square * *"},
    "BayesHead": {"text_": "some float d?", "evidence_": "positive 5?", "memory_": "memory"},
    "NearestMeanHead": MEANS,
    "StreamingLDAHead": COUNTED | {"scatter_": "square d d"},
    "RidgeHead": WEIGHTS,
    "CosineHead": {
        "classes_": "classes",
        "text_": "some float d?",
        "vectors_": "float k d",
        "temperature_": "scale",
    },
    "PromptHead": {
        "classes_": "classes",
        "names_": "names",
        "network_": "MLP * *",
        "tokens_": "float k *",
        "vectors_": "float k d",
        "scale_": "scale",
    },
}


def check_held(part: Any, width: int) -> None:
    """Refuse a memory or a head of ours that holds what its table does not have.

    >>> from frugalvae.parts.store_all import StoreAllMemory
    >>> memory = StoreAllMemory()
    >>> memory.features_ = {7: np.ones((2, 3), np.float32), 8: np.ones((1, 3), np.int32)}
    >>> check_held(memory, 3)
    Traceback (most recent call last):
    ...
    frugalvae.errors.MemoryFileError: features_ of its StoreAllMemory is int32 of shape (1, 3); ...
    """
    if table_of(part) is None:  # one from outside checks itself
        return
    known = list(part.classes)
    if not all(type(label) is int for label in known):
        raise MemoryFileError(f"its {type(part).__name__} numbers its classes {known[:3]}")
    _Held(part, width, known).check()


def check_record(part: Any) -> None:
    """Refuse a record of ours whose fields are not what its table has.

    >>> from frugalvae.parts.gaussian import GaussianMemory
    >>> check_record(GaussianMemory())  # which is no record
    """
    if type(part).__name__ in RECORDS:
        _Held(part, 0, []).check()


def table_of(part: Any) -> dict[str, str] | None:
    """The table of an object's class; None of a class from outside."""
    kind = type(part)
    if not kind.__module__.startswith("frugalvae."):
        return None
    return TABLES.get(f"{kind.__name__} {getattr(part, 'covariance', '')}".strip())


@dataclass(frozen=True)
class _Held:
    """An object that is part of a model, and what sides of its arrays may be called."""

    part: Any
    width: int
    known: list[int]
    holder: _Held | None = None

    def check(self) -> None:
        """Compare all that it holds with its table."""
        table, kind = table_of(self.part), type(self.part).__name__
        if table is None:
            raise MemoryFileError(f"it holds a {kind} where none belongs")
        for name in vars(self.part):
            if name.endswith("_") and not name.startswith("_") and name not in table:
                raise MemoryFileError(f"its {kind} has {name}, which none has")
        for name, entry in table.items():
            self._entry(name, entry)

    def _entry(self, name: str, entry: str) -> None:
        value = getattr(self.part, name, None)
        if entry.endswith("?") and (
            value is None or (isinstance(value, dict | list) and not value)
        ):
            return
        many, kind, sides = parsed(entry)
        found = self._items(value, many)
        if found is None:
            self._refuse(name, value, entry)
        elif kind in KINDS:
            self._arrays(name, found, kind, sides, entry)
        else:
            for one in found:
                if not self._right(one, kind, sides):
                    self._refuse(name, one, entry)

    def _items(self, value: Any, many: str) -> list[Any] | None:
        """What there is several of; None if it is not so many."""
        if many == "one":
            return [value]
        if many == "list":
            return value if isinstance(value, list) and value else None
        if not isinstance(value, dict) or not value.keys() <= set(self.known):
            return None
        enough = len(value) == len(self.known) if many == "each" else value
        return list(value.values()) if enough else None

    def _arrays(self, name: str, found: list[Any], kind: str, sides: list[str], entry: str) -> None:
        letters, least, most = KINDS[kind]
        arrays: list[Array] = []
        for one in found:
            array = numbers(one)
            fits = array is not None and array.dtype.kind in letters and array.ndim == len(sides)
            if array is None or not fits or not all(map(self._is_as_long, sides, array.shape)):
                self._refuse(name, one, entry)
            else:
                arrays.append(array)
        for part in _together(arrays):
            if not (part.min(initial=least) >= least and part.max(initial=least) <= most):
                self._refuse(name, part, entry, f", from {part.min():g} to {part.max():g}")
        for array in arrays if kind in ("square", "packed") else []:
            if kind == "square" and array.shape[0] != array.shape[1]:
                self._refuse(name, array, entry)
            diagonal = array.diagonal() if kind == "square" else packed_diagonal(array)
            if not diagonal.min(initial=0.0) >= 0.0:
                self._refuse(name, diagonal, entry, f", with {diagonal.min():g} in its diagonal")

    def _is_as_long(self, side: str, length: int) -> bool:
        if side in ("*", "+"):
            return side == "*" or length > 0
        return self._length(side) == length

    def _length(self, side: str) -> int:
        """How long a side should be."""
        factor, star, rest = side.partition("*")
        if star:
            return int(factor) * self._length(rest)
        if side.isdigit():
            return int(side)
        known = {"d": self.width, "k": len(self.known)}
        known["triangle"] = self.width * (self.width + 1) // 2
        if side in known:
            return known[side]
        try:
            return int(attrgetter(side)(self.part))
        except AttributeError:
            if self.holder is None:
                raise
            return self.holder._length(side)

    def _right(self, one: Any, kind: str, sides: list[str]) -> bool:
        """Whether an object, or what is no array, is what it should be."""
        if kind == "nothing":
            return one is None or (isinstance(one, dict) and not one)
        if kind == "classes":
            return bool(one == self.known)
        if kind == "rank":
            least = min(1, len(self.known))  # classes known by name alone have none
            return type(one) is int and least <= one <= self.width
        if kind == "decoder":
            return type(one) is int and 0 <= one < len(self.part.decoders_)
        if kind == "names":
            named = isinstance(one, dict) and one.keys() >= set(self.known)
            return named and all(isinstance(name, str) for name in one.values())
        if kind == "memory":
            return hasattr(one, "sample")
        if type(one).__name__ not in kind.split("|"):
            return False
        if kind == "MLP":
            return self._network(one, sides)
        if kind not in RECORDS:  # which were checked when they were made
            _Held(one, self.width, self.known, self).check()
        return kind != "Decoder" or _protects(one)

    def _network(self, network: Any, sides: list[str]) -> bool:
        """Whether each layer takes what the one before gives, and the embeddings of classes."""
        layers, tables = list(network.layers), list(network.tables)
        if not layers or len(tables) not in (0, len(layers)):
            return False
        embedding = tables[0].shape[1] if tables else 0
        before = layers[0].weight.shape[1] - embedding
        right = self._is_as_long(sides[0], before)
        for table in tables:
            right = right and tuple(table.shape) == (len(self.known), embedding) and finite(table)
        for layer in layers:
            out, into = layer.weight.shape
            right = right and into == before + embedding and tuple(layer.bias.shape) == (out,)
            right = right and finite(layer.weight) and finite(layer.bias)
            before = out
        return right and self._is_as_long(sides[1], before)

    def _refuse(self, name: str, value: Any, entry: str, more: str = "") -> None:
        array = numbers(value)
        given = f"{str(value)[:40]!r}" if array is None else f"{array.dtype} of shape {array.shape}"
        raise MemoryFileError(
            f"{name} of its {type(self.part).__name__} is {given}{more}; expected {entry}"
        )


def _protects(decoder: Any) -> bool:
    """Whether a decoder has sums of the inputs of its first layers."""
    widths = [layer.weight.shape[1] for layer in decoder.network.layers]
    sums = [len(inputs.sum_) for inputs in decoder.inputs]
    return sums == widths[: len(sums)]


def parsed(entry: str) -> tuple[str, str, list[str]]:
    """How many, of what kind, and of which sides.

    >>> parsed("each float * rank_"), parsed("whole")
    (('each', 'float', ['*', 'rank_']), ('one', 'whole', []))
    """
    words = entry.rstrip("?").split()
    many = words.pop(0) if words[0] in ("each", "some", "list") else "one"
    return many, words[0], words[1:]


# --------------------------------------------------------------------------- numbers


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor of PyTorch, which need not be installed to ask."""
    return type(value).__module__.startswith("torch") and hasattr(value, "detach")


def as_array(value: Any) -> Array:
    """An array, or a tensor as one."""
    return value.detach().cpu().numpy() if is_tensor(value) else value


def numbers(value: Any) -> Array | None:
    """An array, a tensor or a single number as an array; None of anything else."""
    value = as_array(value)
    if isinstance(value, np.ndarray | np.generic | bool | int | float):
        found = np.asarray(value)
        return found if found.dtype.kind in "biuf" else None
    return None


def finite(tensor: Any) -> bool:
    """Whether all numbers of a network's tensor are floats that may be there."""
    array = as_array(tensor)
    return array.dtype.kind == "f" and bool((np.abs(array) <= LARGEST).all())


def packed_diagonal(triangle: Array) -> Array:
    """The diagonal of a symmetric matrix of which the upper triangle is given, row by row.

    >>> packed_diagonal(np.array([1, 2, 3, 4, 5, 6]))
    array([1, 4, 6])
    """
    size = int((2 * len(triangle)) ** 0.5)
    return triangle[np.cumsum([0, *range(size, 1, -1)])] if size else triangle


def _together(arrays: list[Array]) -> Iterator[Array]:
    """The numbers of arrays, many small ones at once."""
    some: list[Array] = []
    for array in arrays:
        some.append(array.ravel())
        if sum(map(len, some[-2:])) > TOGETHER or len(some) >= 64:
            yield np.concatenate(some) if len(some) > 1 else some[0]
            some = []
    if some:
        yield np.concatenate(some) if len(some) > 1 else some[0]
