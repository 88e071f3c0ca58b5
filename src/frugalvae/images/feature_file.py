"""Feature files: what an encoder made of a data set, as one ``.npz``, read without trust.

Nothing of a file is believed before it is checked: a few bytes can claim any number of entries of
any shape. What a file claims is compared with the bytes that are there before anything is
allocated, nothing is unpickled, and only regular files are opened.
"""

from __future__ import annotations

import io
import json
import math
import stat
import sys
import zipfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Literal, Self

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from frugalvae.errors import FeatureFileError, InputError
from frugalvae.files import json_object, write_bytes
from frugalvae.formatting import printable
from frugalvae.images import UNPACKED
from frugalvae.labels import as_labels, check_label
from frugalvae.maths.arrays import held_out_rows

REQUIRED = ("x_train", "y_train", "x_test", "y_test")
OPTIONAL = ("class_names", "text", "encoder")
NAMES = {"y_train", "y_test", "class_names", "label"}  # what may hold names
#: What an encoder's identity is made of, where it has it.
IDENTITY = {
    "encoder": str,
    "model": str,
    "weights": str,
    "preprocessing": {"crop": list | None},
    "given": {"name": str, "settings": dict},
}
HOW = "make one with numpy.savez(path, x_train=..., y_train=..., x_test=..., y_test=...)"

LARGE = 256_000_000  # bytes of features from which on they are read a share at a time
ROOM = 100_000_000  # bytes that arrays may have in any case
PACKED = 20  # how many times as large as their file they may be beyond that
HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


@dataclass(frozen=True)
class Split:
    """Training and test samples of one data set, with labels."""

    name: str
    x_train: NDArray[Any]
    y_train: NDArray[Any]
    x_test: NDArray[Any]
    y_test: NDArray[Any]

    @property
    def classes(self) -> NDArray[Any]:
        """The distinct labels of the training set, in ascending order."""
        return np.unique(self.y_train)

    def held_out(self, part: float, seed: int) -> Self:
        """A split of the training set only: a part of each class becomes the test set.

        For choosing settings without the test set.
        """
        out = held_out_rows(self.y_train, part, seed)
        return replace(
            self,
            name=f"{self.name} (held out)",
            x_train=self.x_train[~out],
            y_train=self.y_train[~out],
            x_test=self.x_train[out],
            y_test=self.y_train[out],
        )


@dataclass(frozen=True)
class Features(Split):
    """Training and test features of one data set.

    Attributes
    ----------
    x_train, x_test
        One row an image, shape (n, d), float32.
    y_train, y_test
        The label of each row: integers, or names where the file has them.
    text
        Text feature of each class, where the file has them.
    encoder
        What made the features, where the file says it: name, model, preprocessing, and a
        digest of the weights.
    """

    text: dict[Any, NDArray[np.float32]] | None = None
    encoder: dict[str, Any] | None = None


def load_features(path: str | Path, part: Literal["train", "test"] | None = None) -> Features:
    """Read a feature file and check it; where one part is wanted, the other may be missing.

    The file is an ``.npz`` with ``x_train`` and ``x_test`` (any float type, shape
    (n, d)), ``y_train`` and ``y_test`` (integers or names, shape (n,)), and optionally
    ``class_names`` (one string a class, if labels are integers), ``text`` (one row a class) and
    ``encoder`` (what made the features, as a JSON object in a string). To be learned, it may also
    be what ``frugalvae sample`` writes: rows ``x`` of one class, its ``label``, and ``encoder``.
    """
    path = Path(path)
    names = set(array_names(path))
    if part == "train" and {"x", "label"} <= names:
        return _load_drawn(path)
    arrays = read_arrays(path, {*REQUIRED, *OPTIONAL})
    other = {"train": "test", "test": "train"}.get(part or "")
    is_alone = {f"x_{part}", f"y_{part}"} <= names and not {f"x_{other}", f"y_{other}"} & names
    if is_alone:  # it is checked as both
        arrays |= {f"{kind}_{other}": arrays[f"{kind}_{part}"] for kind in "xy"}
    arrays = _numbered(arrays)
    _check(path, arrays)
    if is_alone:
        arrays |= {f"{kind}_{other}": arrays[f"{kind}_{other}"][:0] for kind in "xy"}
    return _features(path, arrays)


def open_training(path: Path) -> tuple[Features, StoredRows | NDArray[np.float32]]:
    """A feature file, and its training rows: of a large file, read when they are asked for.

    The features of a large file have no rows of their own; all else of it is there.
    """
    stored = {name: stored_rows(path, name) for name in ("x_train", "x_test")}
    rows, test = stored["x_train"], stored["x_test"]
    if rows is None or test is None or len(rows) * rows.shape[1] * 4 <= LARGE:
        features = load_features(path, "train")
        return features, features.x_train
    arrays = _numbered(read_arrays(path, {*REQUIRED, *OPTIONAL} - set(stored)))
    for name, kept in (("x_train", rows), ("x_test", test)):
        arrays[name] = np.broadcast_to(np.zeros(1, kept.dtype), kept.shape)
    _check(path, arrays)
    return _features(path, arrays | {name: arrays[name][:0] for name in stored}), rows


def _load_drawn(path: Path) -> Features:
    """Samples of one class that a memory drew."""
    x, encoder = read_rows(path, ("x",))
    label = read_arrays(path, {"label"})["label"]
    if label.shape != () or label.dtype.kind not in "Uiu" or not np.isfinite(x).all():
        raise FeatureFileError(
            f"{path}: label is {_describe(label)}, or x holds NaN or infinite values; expected "
            "what 'frugalvae sample' writes"
        )
    wrong = _unfit(label[None].tolist())
    if wrong:
        raise FeatureFileError(f"{path}: {wrong[0]}")
    return Features(path.stem, x, np.full(len(x), label), x[:0], label[None][:0], None, encoder)


def _numbered(arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Labels that are names as numbers of ``class_names``, sorted unless the file has them."""
    labels = [arrays[key] for key in ("y_train", "y_test") if key in arrays]
    if len(labels) < 2 or any(y.dtype.kind != "U" or y.ndim != 1 for y in labels):
        return arrays
    given = np.concatenate(labels)
    names = arrays.get("class_names", np.empty(0) if "text" in arrays else np.unique(given))
    if names.dtype.kind != "U" or names.ndim != 1 or not np.isin(given, names).all():
        return arrays
    order = np.argsort(names)
    numbers = [order[np.searchsorted(names, y, sorter=order)] for y in labels]
    return arrays | {"class_names": names, "y_train": numbers[0], "y_test": numbers[1]}


def _features(path: Path, arrays: dict[str, NDArray[Any]]) -> Features:
    labels, names = {}, arrays.get("class_names")
    for split in ("train", "test"):
        numbers = arrays[f"y_{split}"]
        labels[split] = numbers if names is None else names[numbers]
    text = arrays.get("text")
    keys = (np.arange(len(text)) if names is None else names).tolist() if text is not None else []
    return Features(
        path.stem,
        arrays["x_train"].astype(np.float32),
        labels["train"],
        arrays["x_test"].astype(np.float32),
        labels["test"],
        dict(zip(keys, text.astype(np.float32), strict=True)) if text is not None else None,
        read_encoder(path, arrays),
    )


def read_rows(
    path: Path, names: tuple[str, ...]
) -> tuple[NDArray[np.float32], dict[str, Any] | None]:
    """The first of some arrays that a file has, and the encoder that it names."""
    arrays = read_arrays(path, {*names, "encoder"})
    found = [arrays[name] for name in names if name in arrays]
    if not found or found[0].ndim != 2 or found[0].dtype.kind != "f" or not found[0].size:
        raise FeatureFileError(
            f"{path}: expected floats of shape (n, d) in {' or '.join(names)}, and it has "
            f"{', '.join(array_names(path)) or 'nothing'}; make one with 'frugalvae encode', or "
            f"numpy.savez(path, {names[0]}=...)"
        )
    return found[0].astype(np.float32), read_encoder(path, arrays)


def read_encoder(path: Path, arrays: dict[str, NDArray[Any]]) -> dict[str, Any] | None:
    """What made the features, if the file says it."""
    if "encoder" not in arrays:
        return None
    kept = arrays["encoder"]
    text = kept.shape == () and kept.dtype.kind == "U"
    found = json_object(kept.item()) if text else None
    if found is None:
        shape = _describe(kept)
        raise FeatureFileError(f"{path}: encoder is {shape}, expected a JSON object as string")
    wrong = _malformed(found, IDENTITY)
    if wrong:
        raise FeatureFileError(
            f"{path}: encoder is malformed: {', '.join(wrong)} is not what 'frugalvae encode' "
            "writes; make the file again, or leave encoder out"
        )
    return found


def _malformed(identity: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    """Which entries are not what is expected, where they are there."""
    wrong = []
    for key, kind in expected.items():
        if key not in identity:
            continue
        if not isinstance(identity[key], dict if isinstance(kind, dict) else kind):
            wrong.append(key)
        elif isinstance(kind, dict):
            wrong += [f"{key}.{inner}" for inner in _malformed(identity[key], kind)]
    return wrong


def write_features(path: str | Path, features: Features) -> None:
    """Write a feature file: complete, or not at all."""
    labels = np.concatenate([features.y_train, features.y_test])
    names, numbers = np.unique(labels, return_inverse=True)
    named = names.dtype.kind == "U"
    y_train, y_test = np.split(numbers if named else labels, [len(features.y_train)])
    arrays = {"x_train": features.x_train, "y_train": y_train}
    arrays |= {"x_test": features.x_test, "y_test": y_test}
    if named:
        arrays["class_names"] = names
    if features.text is not None:
        arrays["text"] = np.stack([features.text[name] for name in names.tolist()])
    if features.encoder is not None:
        arrays["encoder"] = np.array(json.dumps(features.encoder))
    write_arrays(path, arrays)


def _check(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    """Refuse what cannot be used, and say all that is wrong with it at once."""
    wrong = [f"{key} is missing" for key in REQUIRED if key not in arrays]
    for split in ("train", "test"):
        x, y = arrays.get(f"x_{split}"), arrays.get(f"y_{split}")
        if x is not None and (x.ndim != 2 or x.dtype.kind != "f" or not x.size):
            wrong.append(f"x_{split} is {_describe(x)}, expected floats of shape (n, d)")
        elif x is not None and not _all_finite(x):
            wrong.append(f"x_{split} holds NaN or infinite values, or larger than float32 can hold")
        if y is not None and y.ndim == 1 and y.dtype.kind == "U":
            wrong.append(
                f"y_{split} holds names, which both y_train and y_test must then hold, and "
                "class_names all of them if the file has it or has text"
            )
        elif y is not None and (y.ndim != 1 or y.dtype.kind not in "iu"):
            wrong.append(f"y_{split} is {_describe(y)}, expected integers or names, shape (n,)")
        elif x is not None and x.ndim and y is not None and len(x) != len(y):
            wrong.append(f"x_{split} has {len(x)} rows but y_{split} has {len(y)} labels")
    if not wrong:
        wrong += _check_together(arrays)
    if wrong:
        raise FeatureFileError(f"{path}: {'; '.join(wrong)}; {HOW}")


def _all_finite(x: NDArray[Any]) -> bool:
    """Whether float32 can hold all; rows that are read later are checked then."""
    known = x[:1] if x.strides[0] == 0 else x
    return bool((np.abs(known) <= np.finfo(np.float32).max).all())


def _check_together(arrays: dict[str, NDArray[Any]]) -> list[str]:
    wrong = []
    train, test = arrays["x_train"].shape[1], arrays["x_test"].shape[1]
    if train != test:
        wrong.append(f"x_train has {train} columns but x_test has {test}")
    unknown = np.setdiff1d(arrays["y_test"], arrays["y_train"])
    if len(unknown):
        names, some = arrays.get("class_names"), unknown[:5].tolist()
        if names is not None and names.ndim and min(some) >= 0 and max(some) < len(names):
            some = names[some].tolist()
        wrong.append(f"y_test has classes that y_train lacks: {some}")
    numbers = np.concatenate([arrays["y_train"], arrays["y_test"]])
    there = [arrays[key] for key in ("class_names", "text") if key in arrays]
    lengths = [len(array) for array in there if array.ndim]
    if len({*lengths}) > 1:
        wrong.append(f"class_names has {lengths[0]} entries but text has {lengths[1]}")
    for key, kind, ndim in (("class_names", "U", 1), ("text", "f", 2)):
        if key not in arrays:
            continue
        if arrays[key].dtype.kind != kind or arrays[key].ndim != ndim:
            shape = "strings of shape (k,)" if kind == "U" else "floats of shape (k, d)"
            wrong.append(f"{key} is {_describe(arrays[key])}, expected {shape}")
        elif key == "class_names" and len(np.unique(arrays[key])) < len(arrays[key]):
            wrong.append("class_names holds a name twice, which would make one class of two")
        elif key == "text" and arrays[key].shape[1] != train:
            wrong.append(f"text has {arrays[key].shape[1]} columns but x_train has {train}")
        elif numbers.min() < 0 or numbers.max() >= len(arrays[key]):
            wrong.append(f"{key} has {len(arrays[key])} entries, labels go to {numbers.max()}")
        elif key == "class_names":
            wrong += _unfit(arrays[key].tolist())
    return wrong


def _unfit(names: list[str]) -> list[str]:
    """What is wrong with the first name that cannot be a label."""
    try:
        for name in names:
            check_label(name)
    except InputError as error:
        return [f"class_names: {error}"]
    return []


def _describe(array: NDArray[Any]) -> str:
    return f"{array.dtype} of shape {array.shape}"


# --------------------------------------------------------------------------- arrays


def write_arrays(path: str | Path, arrays: Mapping[str, Any]) -> None:
    """Write arrays by their names: all of them, or no file."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    write_bytes(path, buffer.getvalue())


def read_arrays(path: Path, wanted: Collection[str]) -> dict[str, NDArray[Any]]:
    """Those of some arrays that a file has, labels as they are kept; others are not read."""
    with _opened(path) as archive:
        entries = _entries(archive)
        chosen = {name: entry for name, entry in entries.items() if name in wanted}
        claimed, there = sum(entry.file_size for entry in chosen.values()), path.stat().st_size
        if claimed > ROOM + PACKED * there:
            raise ValueError(f"{there:,} bytes claim to be arrays of {claimed:,}")
        found = {name: _read(archive, name, entry) for name, entry in chosen.items()}
        return found | {name: as_labels(found[name]) for name in NAMES & found.keys()}


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
        if entry.file_size > path.stat().st_size:
            raise ValueError(f"{name} claims more bytes than its file has")
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
        name = entry.filename.removesuffix(".npy")
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
        if count * dtype.itemsize != entry.file_size - file.tell():
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
    if min(shape, default=0) < 0 or not dtype.itemsize:
        raise ValueError(f"an array of shape {shape} of {dtype.str}, which there is none of")
    return shape, dtype, in_columns
