"""A JSON document and arrays as the bytes of one safetensors file, and back.

The document is the value of ``frugalvae`` in the file's metadata. Its first field is the
SHA-256 of the whole file with the 64 digits of that very field replaced by zeros: no byte
can change unnoticed.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from typing import Any

from frugalvae.errors import InputError, MemoryFileError
from frugalvae.maths.arrays import Array

FORMAT = 2

NO_FILE_OF_OURS = "it is no file that FrugalClassifier.save() wrote, or its beginning is damaged"
GET_ANOTHER = "get another copy, or save the classifier again"


def to_2(document: dict[str, Any]) -> dict[str, Any]:
    """The head ``bayes`` divides its tempering by the root of the width: it was the width."""
    try:
        head, memory = document["head"], document["memory"]
        if head["class"] != "BayesHead":
            return document
        width = memory["learned"].get("rank_", document["n_features"])
        tempering = head["settings"]["tempering"] / math.sqrt(width)
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise MemoryFileError(f"its head is none that this version knows; {GET_ANOTHER}") from error
    settings = {**head["settings"], "tempering": tempering}
    return {**document, "head": {**head, "settings": settings}}


#: For each older format, what makes its document one of the next. Arrays stay as they are.
MIGRATIONS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {1: to_2}


def to_bytes(document: dict[str, Any], arrays: dict[str, Array]) -> bytes:
    """A file with this content."""
    import safetensors.numpy

    whole = {"sha256": "0" * 64, "format": FORMAT, **document}
    try:
        text = json.dumps(whole, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"encoder_ or history_ cannot be written as JSON ({error}); "
            "put only names, finite numbers, lists and dictionaries there"
        ) from error
    content = safetensors.numpy.save(arrays, {"frugalvae": text})
    digest = hashlib.sha256(content).hexdigest()
    return content.replace(_mark("0" * 64), _mark(digest), 1)


def from_bytes(content: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    """The content of a file: of this format, or brought to it."""
    import safetensors.numpy

    return read_document(content), safetensors.numpy.load(content)


def read_document(content: bytes) -> dict[str, Any]:
    """The document alone, after the whole file has been checked."""
    document = _document(content)
    version = document.get("format")
    if type(version) is not int:
        raise MemoryFileError(f"{NO_FILE_OF_OURS}; {GET_ANOTHER}")
    if version > FORMAT:
        raise MemoryFileError(
            f"it was written by a newer version of frugalvae (format {version}, this version "
            f"reads up to {FORMAT}); pip install --upgrade frugalvae"
        )
    _check_digest(content, document.get("sha256"))
    while version < FORMAT:
        if version not in MIGRATIONS:
            raise MemoryFileError(f"there is no format {version}; {GET_ANOTHER}")
        document = MIGRATIONS[version](document)
        version += 1
    return document


def read_sizes(content: bytes) -> dict[str, tuple[int, int]]:
    """How many numbers each tensor of a file has, and how many bytes they take."""
    return {
        name: (math.prod(about["shape"]), about["data_offsets"][1] - about["data_offsets"][0])
        for name, about in _header(content).items()
        if name != "__metadata__"
    }


def is_half(content: bytes) -> bool:
    """Whether a file was written with ``dtype="float16"``."""
    return any(about.get("dtype") == "F16" for about in _header(content).values())


def _header(content: bytes) -> dict[str, Any]:
    size = int.from_bytes(content[:8], "little")
    return {**json.loads(content[8 : 8 + size])}


def _document(content: bytes) -> dict[str, Any]:
    try:
        document = json.loads(_header(content)["__metadata__"]["frugalvae"])
        return {**document}
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise MemoryFileError(f"{NO_FILE_OF_OURS}; {GET_ANOTHER}") from error


def _check_digest(content: bytes, digest: Any) -> None:
    blank = content.replace(_mark(str(digest)), _mark("0" * 64), 1)
    if hashlib.sha256(blank).hexdigest() != digest:
        raise MemoryFileError(f"it is damaged: its checksum does not fit; {GET_ANOTHER}")


def _mark(digest: str) -> bytes:
    """The field as it stands in the header: JSON inside a JSON string."""
    return json.dumps(json.dumps({"sha256": digest})[1:-1])[1:-1].encode()
