"""A JSON document and arrays as the bytes of one safetensors file, and back.

The document is the value of ``frugalvae`` in the file's metadata. Its first field is the
SHA-256 of the whole file with the 64 digits of that very field replaced by zeros: no byte
can change unnoticed. A checksum does not make a file honest: sizes, types and places of all
arrays are checked against the bytes that are there, and reading allocates nothing for them.
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

import numpy as np

from frugalvae.errors import InputError, MemoryFileError
from frugalvae.files import json_object
from frugalvae.maths.arrays import Array

FORMAT = 3
GET_ANOTHER = "get another copy, or save the classifier again"

LONGEST_HEADER = 2**25  # bytes: parsed, JSON takes up to twenty times as many
MOST_AXES = 8

#: What safetensors calls the types of numbers that a file may hold.
DTYPES = {
    "BOOL": "?",
    **{f"F{8 * size}": f"<f{size}" for size in (4, 8)},
    **{f"I{8 * size}": f"<i{size}" for size in (1, 2, 4, 8)},
    **{f"U{8 * size}": f"<u{size}" for size in (1, 2, 4, 8)},
}


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
    """The document and the arrays, as views of the bytes, of a file of this version's format."""
    document, table, start = _header(content)
    _check_format(document["format"])
    digest = document.get("sha256")
    if _digest(content, str(digest)) != digest:
        raise MemoryFileError(f"it is damaged: its checksum does not fit; {GET_ANOTHER}")
    return document, _arrays(table, content, start)


def _header(content: bytes) -> tuple[dict[str, Any], dict[str, Any], int]:
    """The document, the table of arrays, and where these begin."""
    size = int.from_bytes(content[:8], "little")
    if size <= min(len(content) - 8, LONGEST_HEADER):
        table = json_object(content[8 : 8 + size]) or {}
        metadata = table.pop("__metadata__", None)
        text = metadata.get("frugalvae") if isinstance(metadata, dict) else None
        document = json_object(text) if isinstance(text, str) else None
        if document is not None and type(document.get("format")) is int:
            return document, table, 8 + size
    raise MemoryFileError(f"it is not a .frugal file, or its beginning is damaged; {GET_ANOTHER}")


def _check_format(found: int) -> None:
    if found > FORMAT:
        raise MemoryFileError(
            f"it was written by a newer version of frugalvae (format {found}, this version reads "
            f"format {FORMAT}); pip install --upgrade frugalvae"
        )
    if found < FORMAT:
        raise MemoryFileError(
            f"it was written by an earlier version of frugalvae (format {found}, this version "
            f"reads format {FORMAT}); convert it with python -m lab.benchmarks.convert OLD NEW, "
            "in the folder of FrugalVAE"
        )


def _arrays(table: dict[str, Any], content: bytes, start: int) -> dict[str, Array]:
    """Arrays that lie one after the other and fill the file, without a gap."""
    found, end = {}, 0
    for name, (first, last), shape, dtype in sorted(
        (_table_row(name, about, len(content)) for name, about in table.items()),
        key=lambda row: row[1],
    ):
        count = math.prod(shape)
        if first != end or last - first != count * dtype.itemsize or start + last > len(content):
            raise MemoryFileError(f"its tensor {name!r} is not of the size that is there")
        found[name] = np.frombuffer(content, dtype, count, start + first).reshape(shape)
        end = last
    if start + end != len(content):
        raise MemoryFileError("it has more bytes than its tensors")
    return found


def _table_row(
    name: str, about: Any, most: int
) -> tuple[str, tuple[int, int], tuple[int, ...], np.dtype[Any]]:
    """Place, shape and type of a tensor. No side of it is longer than the file."""
    match about:
        case {"dtype": str(dtype), "shape": list(shape), "data_offsets": [int(first), int(last)]}:
            whole = all(type(side) is int and 0 <= side <= most for side in shape)
            if dtype in DTYPES and whole and len(shape) <= MOST_AXES and 0 <= first <= last:
                return name, (first, last), tuple(shape), np.dtype(DTYPES[dtype])
    raise MemoryFileError(f"its tensor {name!r} has a shape or a type that no tensor has")


def _digest(content: bytes, digest: str) -> str:
    """SHA-256 of a file with zeros in place of its digest; no copy of the file is made."""
    mark, whole = _mark(digest), memoryview(content)
    place = content.find(mark)
    if place < 0:  # it has none: then that of the file as it is, which cannot be what it says
        return hashlib.sha256(whole).hexdigest()
    found = hashlib.sha256(whole[:place])
    found.update(_mark("0" * 64))
    found.update(whole[place + len(mark) :])
    return found.hexdigest()


def _mark(digest: str) -> bytes:
    """The field as it stands in the header: JSON inside a JSON string."""
    return json.dumps(f'"sha256": "{digest}"')[1:-1].encode()
