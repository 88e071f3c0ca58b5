"""Labels of classes as JSON, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from frugalvae.checks import is_plain
from frugalvae.errors import InputError, MemoryFileError

if TYPE_CHECKING:
    from numpy.typing import NDArray

WHOLE = [f"{sign}int{size}" for sign in ("", "u") for size in (8, 16, 32, 64)]
WIDEST = 2**26  # bytes that names of unequal length may be filled up to

#: What labels of a type are in JSON.
TYPES: dict[str, type] = {
    "str": str,
    "object": str,
    "bool": bool,
    **dict.fromkeys(WHOLE, int),
    **dict.fromkeys(["float16", "float32", "float64"], float),
}


def labels_to_json(labels: NDArray[Any]) -> dict[str, Any]:
    """Labels and their type.

    >>> labels_to_json(np.array(["cat", "emu"]))
    {'dtype': 'str', 'values': ['cat', 'emu']}
    """
    dtype = "str" if labels.dtype.kind == "U" else labels.dtype.name
    values = labels.tolist()
    if dtype not in TYPES or not all(type(label) is TYPES[dtype] for label in values):
        raise InputError(
            f"labels like {values[0]!r} of type {labels.dtype} cannot be saved; "
            "teach names or whole numbers"
        )
    return {"dtype": dtype, "values": values}


def labels_from_json(written: Any) -> NDArray[Any]:
    """The labels that were written: distinct, and the same after they became an array.

    >>> labels_from_json({"dtype": "int8", "values": [7, 300]})
    Traceback (most recent call last):
    ...
    frugalvae.errors.MemoryFileError: a label of it is not of the type 'int8' ...
    """
    match written:
        case {"dtype": str(dtype), "values": list(values), **others} if (
            dtype in TYPES and not others
        ):
            right = all(type(label) is TYPES[dtype] for label in values)
        case _:
            raise MemoryFileError("its labels are none of a type that this version knows")
    if not right:
        raise MemoryFileError(f"its labels are not of the type {dtype!r} that they should be")
    if not values or len(set(values)) < len(values):
        raise MemoryFileError("it has no labels, or one of them twice")
    if TYPES[dtype] is str:
        _check_names(values)
    try:
        labels = np.array(values, dtype=dtype)
    except OverflowError:
        labels = np.array([])
    if labels.tolist() != values:
        raise MemoryFileError(f"a label of it is not of the type {dtype!r} that it should be")
    return labels


def _check_names(names: list[str]) -> None:
    for name in names:
        if not is_plain(name):
            raise MemoryFileError(f"its label {name[:40]!r} has control characters, or no end")
    longest = max(map(len, names))
    if 4 * longest * len(names) > max(WIDEST, 64 * sum(map(len, names))):
        raise MemoryFileError(f"a label of it has {longest:,} characters")
