"""Labels of classes as JSON, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from frugalvae.errors import InputError, MemoryFileError

if TYPE_CHECKING:
    from numpy.typing import NDArray

WHOLE = [f"{sign}int{size}" for sign in ("", "u") for size in (8, 16, 32, 64)]

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
    """The labels that were written."""
    dtype, values = written["dtype"], written["values"]
    if dtype not in TYPES or not all(type(label) is TYPES[dtype] for label in values):
        raise MemoryFileError(f"its labels are not of the type {dtype!r} that they should be")
    if not values or len(set(values)) < len(values):
        raise MemoryFileError("it has no labels, or one of them twice")
    return np.array(values, dtype=dtype)
