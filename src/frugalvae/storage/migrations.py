"""Documents of older formats, brought up to date. Arrays stay as they are."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from frugalvae.errors import MemoryFileError

FORMAT = 2

GET_ANOTHER = "get another copy, or save the classifier again"


def to_2(document: dict[str, Any]) -> dict[str, Any]:
    """The head ``bayes`` divides its tempering by the root of d, the feature dimension: it was d.

    The first versions wrote fewer fields: nothing could be forgotten, and counts were not kept.
    """
    try:
        head, classes = document["head"], len(document["classes"]["values"])
        added: dict[str, Any] = {
            "numbers": list(range(classes)),
            "n_samples_of_class": [0] * classes,
            "n_taught": classes,
            "confidence": {},
        }
        document = {
            **added,
            **document,
            "parameters": {"calibrate": False, **document["parameters"]},
        }
        if head["class"] != "BayesHead":
            return document
        width = document["memory"]["learned"].get("rank_", document["n_features"])
        tempering = head["settings"]["tempering"] / math.sqrt(width)
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise MemoryFileError(f"its head is none that this version knows; {GET_ANOTHER}") from error
    settings = {**head["settings"], "tempering": tempering}
    return {**document, "head": {**head, "settings": settings}}


#: For each older format, what makes its document one of the next.
MIGRATIONS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {1: to_2}


def migrated(document: dict[str, Any], version: int) -> dict[str, Any]:
    """A document of some format as one of this version's."""
    while version < FORMAT:
        if version not in MIGRATIONS:
            raise MemoryFileError(f"there is no format {version}; {GET_ANOTHER}")
        document = MIGRATIONS[version](document)
        version += 1
    return document
