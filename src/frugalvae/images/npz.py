"""Arrays by their names in an ``.npz``, written at once and read without trust.

Nothing of a file is believed before it is checked: a few bytes can claim any number of entries of
any shape. What a file claims is compared with the bytes that are there before anything is
allocated, nothing is unpickled, and only regular files are opened.
"""

from __future__ import annotations

import io
import math
import stat
import sys
import zipfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from frugalvae.errors import FeatureFileError
from frugalvae.files import write_bytes
from frugalvae.formatting import printable

UNPACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # other methods have no limit on memory
ENDING = ".npy"
ROOM = 100_000_000  # bytes that arrays may have in any case
PACKED = 20  # how many times as large as their file they may be beyond that
HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def write_arrays(path: str | Path, arrays: Mapping[str, Any]) -> None:
    """Write arrays by their names: all of them, or no file."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    write_bytes(path, buffer.getvalue())


def read_arrays(path: Path, wanted: Collection[str]) -> dict[str, NDArray[Any]]:
    """Those of some arrays that a file has; others are not read."""
    with _opened(path) as archive:
        entries = _entries(archive)
        chosen = {name: entry for name, entry in entries.items() if name in wanted}
        claimed, there = sum(entry.file_size for entry in chosen.values()), path.stat().st_size
        if claimed > ROOM + PACKED * there:
            raise ValueError(f"{there:,} bytes claim to be arrays of {claimed:,}")
        return {name: _read(archive, name, entry) for name, entry in chosen.items()}


def array_names(path: Path) -> list[str]:
    """The names of all arrays of a file."""
    with _opened(path) as archive:
        return list(_entries(archive))


@dataclass(frozen=True)
class StoredRows:
    """Rows of an array in a feature file, which are read from it when they are asked for.

    Attributes
    ----------
    path, offset
        The file, and where in it the first row begins.
    dtype, shape
        What is there: any type of floats, (n, d).
    """

    path: Path
    offset: int
    dtype: str
    shape: tuple[int, int]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        dtype, width = np.dtype(self.dtype), self.shape[1]
        found = np.empty((len(rows), width), dtype)
        each = width * dtype.itemsize
        with open(self.path, "rb") as file:
            for place, row in enumerate(rows.tolist()):
                file.seek(self.offset + row * each)
                if file.readinto(found[place].data) < each:
                    raise FeatureFileError(f"{self.path}: it has become shorter; make it again")
        return found.astype(np.float32, copy=False)


def stored_rows(path: Path, name: str) -> StoredRows | None:
    """Where the rows of an array are, unless they are packed or not one after the other."""
    with _opened(path) as archive:
        entry = _entries(archive).get(name)
        if entry is None or entry.compress_type != zipfile.ZIP_STORED:
            return None
        with archive.open(entry) as file:
            shape, dtype, in_columns = _header(file)
            start = file.tell()
        claimed = math.prod(shape) * dtype.itemsize
        if in_columns or len(shape) != 2 or dtype.kind != "f" or claimed + start != entry.file_size:
            return None
    with open(path, "rb") as whole:
        whole.seek(entry.header_offset)
        lengths = whole.read(30)[26:]  # of the name and of more, in a header of their own
    before = 30 + int.from_bytes(lengths[:2], "little") + int.from_bytes(lengths[2:], "little")
    return StoredRows(path, entry.header_offset + before + start, dtype.str, shape)


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """A file that is a zip archive; whatever is wrong with it is one kind of error."""
    shown = printable(str(path))
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise FeatureFileError(f"{shown}: there is no such file; check the path") from error
    try:
        if not stat.S_ISREG(mode):
            raise ValueError("it is not a regular file")
        if not zipfile.is_zipfile(path):
            raise ValueError("it is no zip archive")
        with zipfile.ZipFile(path) as archive:
            yield archive
    except Exception as error:  # a damaged archive fails in zlib, tokenize and elsewhere
        raise FeatureFileError(
            f"{shown}: not a readable .npz file of plain arrays "
            f"({printable(str(error)) or type(error).__name__}); make it again with 'frugalvae "
            "encode' or numpy.savez"
        ) from error


def _entries(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    found: dict[str, zipfile.ZipInfo] = {}
    for entry in archive.infolist():
        name = entry.filename.removesuffix(ENDING)
        if name in found:
            raise ValueError(f"{name} is there twice")
        if name != entry.filename:
            found[name] = entry
    return found


def _read(archive: zipfile.ZipFile, name: str, entry: zipfile.ZipInfo) -> NDArray[Any]:
    """An array, after its shape was found to be that of its bytes."""
    if entry.compress_type not in UNPACKED:
        raise ValueError(f"{name} is packed in a way that is not read here")
    with archive.open(entry) as file:
        shape, dtype, _ = _header(file)
        if dtype.hasobject or dtype.kind == "V":
            raise ValueError(f"{name} holds objects")
        count = math.prod(shape)
        if min(shape, default=0) < 0 or count * dtype.itemsize != entry.file_size - file.tell():
            raise ValueError(f"{name} claims the shape {shape} of {dtype}, which its bytes are not")
        file.seek(0)
        array: NDArray[Any] = npy.read_array(file, allow_pickle=False)
    if dtype.kind == "U" and array.nbytes:
        letters = np.frombuffer(array.tobytes(), np.dtype("u4").newbyteorder(dtype.byteorder))
        if letters.max() > sys.maxunicode:  # NumPy would fail when it is looked at
            raise ValueError(f"{name} holds what is no text")
    return array


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any], bool]:
    """Shape and type of an array, and whether it is written column by column."""
    version = npy.read_magic(file)
    if version not in HEADERS:
        raise ValueError(f"an array in version {version} of its format, expected 1.0 or 2.0")
    shape, in_columns, dtype = HEADERS[version](file)
    return shape, dtype, in_columns
