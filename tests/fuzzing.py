"""Mutates ``.frugal`` files, with checksums that fit, and shows them to every verb.

Every tenth case is a photograph at the limits of its format instead.

Each case is a seed: the same number always makes the same file. A verb may refuse a file with
one of our errors or answer; what it answers must be what the loaded classifier answers. Memory
and time are bounded. ``make fuzz`` runs thousands of cases, ``make test`` some hundreds.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import functools
import hashlib
import io
import json
import os
import random
import shutil
import struct
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from PIL import Image

from frugalvae import FrugalClassifier, make_head, make_memory
from frugalvae.cli import main as cli
from frugalvae.errors import FrugalError
from frugalvae.images.decode import decode, reading_images
from frugalvae.images.feature_file import Features, write_features
from frugalvae.maths.arrays import Array
from frugalvae.storage.model_file import from_bytes, to_bytes

DIM = 6
kept_parser = functools.cache(cli.parser)  # making one takes longer than most verbs
MEGABYTE = 2**20
LEAST_ROOM, PER_BYTE = 200 * MEGABYTE, 20
SECONDS = 60.0  # of work, after which something hangs

Document = dict[str, Any]
Arrays = dict[str, Array]


def one_parser(*verbs: str, only: Sequence[str] = ()) -> argparse.ArgumentParser:
    """The parser of some verbs, made once."""
    return kept_parser(*verbs, only=tuple(only))


# --------------------------------------------------------------------------- files to begin with


def blobs(classes: int, dim: int = DIM) -> tuple[Array, Array]:
    """Ten samples of each class, far apart."""
    rng = np.random.default_rng(classes)
    y = np.arange(classes).repeat(10)
    centres = 4 * np.random.default_rng(0).normal(size=(20, dim))
    return (centres[y] + rng.normal(size=(len(y), dim))).astype(np.float32), y


NAMED = "moments and names"  # with text features, and a class that is known by name alone
TINY = {"hidden": 12, "latent": 4, "epochs": 2, "max_steps": 4}

#: Memory and head of each file that is mutated.
LIGHT_KINDS: dict[str, tuple[Any, Any]] = {
    "moments": ("moments", "bayes"),
    "moments, cut": (("moments", {"budget": "470B"}), "bayes"),
    NAMED: ("moments", "bayes"),
    "diagonal": ("gaussian-diagonal", "nearest-mean"),
    "full": ("gaussian-full", "ridge"),
    "shared": ("gaussian-shared", "lda"),
    "samples": ("store-all", "ridge"),
}
KINDS_WITH_NETWORKS: dict[str, tuple[Any, Any]] = {
    "vae": (("vae-fo", TINY), ("cosine", {"epochs": 1, "samples": 8})),
    "dynamic vae": (("vae-fodce", TINY), "nearest-mean"),
    "a vae per class": (("vae-cgil", TINY), "nearest-mean"),
}


def kinds() -> dict[str, tuple[Any, Any]]:
    """All of them, or those that need no PyTorch where there is none."""
    from importlib.util import find_spec

    return LIGHT_KINDS | (KINDS_WITH_NETWORKS if find_spec("torch") else {})


def made(part: Any, make: Callable[..., Any]) -> Any:
    """A part by name, or one by name and settings."""
    return part if isinstance(part, str) else make(part[0], **part[1])


def beginning(path: Path, memory: Any, head: Any, named: bool = False) -> bytes:
    """A classifier that has learned, forgotten and renamed, as a file."""
    classifier = FrugalClassifier(made(memory, make_memory), made(head, make_head))
    x, y = blobs(5)
    names = np.array(["ant", "bee", "cat", "dog", "emu"])[y]
    text = {name: x[names == name].mean(axis=0) for name in names} if named else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        classifier.partial_fit(x[:20], names[:20], text=text)
        classifier.partial_fit(x[20:], names[20:], text=text)
        if named:
            classifier.learn_names({"heron": np.ones(DIM)})
        classifier.forget("bee")
        classifier.rename("dog", "dax")
    given = {"name": "colours", "settings": {"size": 8}}
    classifier.encoder_ = {"encoder": "colours", "model": None, "given": given}
    classifier.save(path)
    return path.read_bytes()


# --------------------------------------------------------------------------- mutations


ODD: list[Any] = [
    None, True, False, -1, 0, 1, 2, 3, 7, 255, 2**31, 2 * 10**8, 2**63, 10**30, 0.5, -0.0, 1e308,
    1e-300, "", "a\0", "\x1b[31m", "nan", "inf", "memory", "classes", [], [[]], {}, [0], [0, 0],
    {"dict": []}, {"number": "nan"}, {"number": "inf"}, {"tuple": []}, {"same": "memory"},
    {"tensor": "x"}, {"a": 1}, ["ant", "ant"], "x" * 1000, {"class": "MLP", "state": {}},
    "my_module:Memory", "os:system", {"symmetric": "memory.means_"},
]  # fmt: skip


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths to everything in a document."""
    items: Any = ()
    if isinstance(node, dict):
        items = node.items()
    elif isinstance(node, list):
        items = enumerate(node)
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


def at(document: Any, path: tuple[Any, ...]) -> Any:
    """What a path leads to."""
    for key in path:
        document = document[key]
    return document


def some_place(document: Document, chance: random.Random) -> tuple[Any, ...]:
    """A path; each field of the document as likely as another, however much is in it."""
    field_ = chance.choice(sorted(document))
    return chance.choice([path for path in places(document) if path[0] == field_])


def replace_value(document: Document, arrays: Arrays, chance: random.Random) -> None:
    path = some_place(document, chance)
    at(document, path[:-1])[path[-1]] = copy.deepcopy(chance.choice(ODD))


def nudge(document: Document, arrays: Arrays, chance: random.Random) -> None:
    """Another number that is near, or another text that is like it."""
    path = some_place(document, chance)
    value, holder = at(document, path), at(document, path[:-1])
    if isinstance(value, bool):
        holder[path[-1]] = not value
    elif isinstance(value, int):
        holder[path[-1]] = value + chance.choice([-1, 1, 10, 10**6])
    elif isinstance(value, float):
        holder[path[-1]] = value * chance.choice([-1, 0, 2, 1e10])
    elif isinstance(value, str):
        holder[path[-1]] = value + chance.choice(["x", "\0", " ", "\n", "\u202e"])
    elif isinstance(value, list):
        holder[path[-1]] = value + value[:1]
    elif isinstance(value, dict):
        value["more"] = 1


def remove(document: Document, arrays: Arrays, chance: random.Random) -> None:
    path = some_place(document, chance)
    del at(document, path[:-1])[path[-1]]


def rename_key(document: Document, arrays: Arrays, chance: random.Random) -> None:
    found = [path for path in places(document) if isinstance(path[-1], str)]
    path = chance.choice(found)
    holder = at(document, path[:-1])
    holder[path[-1] + "_"] = holder.pop(path[-1])


def swap(document: Document, arrays: Arrays, chance: random.Random) -> None:
    one, other = some_place(document, chance), some_place(document, chance)
    value = copy.deepcopy(at(document, one))
    at(document, one[:-1])[one[-1]] = copy.deepcopy(at(document, other))
    with contextlib.suppress(LookupError, TypeError):
        at(document, other[:-1])[other[-1]] = value


def one_class_less(document: Document, arrays: Arrays, chance: random.Random) -> None:
    """From some of the lists that have an entry for each class."""
    lists = ["numbers", "task_of_class", "n_samples_of_class"]
    row = chance.randrange(4)
    for name in ["classes", *chance.sample(lists, chance.randrange(4))]:
        values = document[name]["values"] if name == "classes" else document[name]
        del values[row]


def permute(document: Document, arrays: Arrays, chance: random.Random) -> None:
    found = [path for path in places(document) if isinstance(at(document, path), list)]
    chance.shuffle(at(document, chance.choice(found)))


def other_class(document: Document, arrays: Arrays, chance: random.Random) -> None:
    found = [path for path in places(document) if path[-1] == "class"]
    path = chance.choice(found)
    names = [
        "MomentMemory",
        "GaussianMemory",
        "MLP",
        "RidgeHead",
        "NoMemory",
    ]
    names += ["StreamingLDAHead", "os:system", "json:JSONDecoder", "frugalvae.model.model:Model"]
    at(document, path[:-1])["class"] = chance.choice(names)


def huge(document: Document, arrays: Arrays, chance: random.Random) -> None:
    """What would fill all memory if it were believed."""
    name = chance.choice(["n_features", "n_tasks", "n_taught", "empty", "width", "rank"])
    if name in ("n_features", "n_tasks", "n_taught"):
        document[name] = chance.choice([10**5, 10**7, 2 * 10**8, 10**12])
        if name == "n_tasks":
            document["n_taught"] = document["n_tasks"] + 2
    elif name == "width":
        document["head"]["state"]["width"] = 10**6
    elif name == "rank":
        document["memory"]["state"]["rank"] = chance.choice([10**4, 10**6])
    elif arrays:
        tensor = chance.choice(sorted(arrays))
        side = chance.choice([16384, 10**5, 10**7])
        shape = chance.choice([(side, 0), (0, side), (side, 0, side)])
        arrays[tensor] = np.zeros(shape, arrays[tensor].dtype)


def change_array(document: Document, arrays: Arrays, chance: random.Random) -> None:
    if not arrays:
        return
    name = chance.choice(sorted(arrays))
    array = arrays[name]
    changes: list[Callable[[], Array]] = [
        lambda: array.reshape(-1),
        lambda: array.reshape(*array.shape, 1),
        lambda: array.T.copy(),
        lambda: array[:-1].copy() if array.ndim else array,
        lambda: np.concatenate([array, array]) if array.ndim else array,
        lambda: array * np.nan,
        lambda: array - 1e30,
        lambda: -array,
        lambda: array * 0,
        lambda: array.astype(np.int64),
        lambda: array.astype(np.float64),
        lambda: array.astype(np.float16),
        lambda: array.astype(bool),
        lambda: array.astype(np.complex64),
        lambda: array[..., :0].copy() if array.ndim else array,
        lambda: array[::-1].copy() if array.ndim else array,
    ]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arrays[name] = chance.choice(changes)()


def exchange_arrays(document: Document, arrays: Arrays, chance: random.Random) -> None:
    if len(arrays) > 1:
        one, other = chance.sample(sorted(arrays), 2)
        arrays[one], arrays[other] = arrays[other], arrays[one]


def change_moments(document: Document, arrays: Arrays, chance: random.Random) -> None:
    """Moments that fit together and cannot be: of their arrays, each alone or several at once."""
    kept = {name.split(".")[-1]: name for name in arrays if name.startswith("memory.arrays.")}
    if not kept:
        return

    def filled(name: str, value: float) -> None:
        array = arrays[kept[name]].copy()
        array.flat[chance.randrange(array.size)] = value
        arrays[kept[name]] = array

    def another_rank() -> None:
        rank = chance.choice([1, 2, 3, 5, 7, 40])
        rows = len(arrays[kept["roots"]])
        document["memory"]["state"]["rank"] = rank
        arrays[kept["roots"]] = np.ones((rows, rank), np.int8)
        if "variances" in kept:
            arrays[kept["variances"]] = np.ones(rank, np.float32)
            arrays[kept["correlations"]] = np.zeros(rank * (rank - 1) // 2, np.int16)

    def another_width() -> None:
        width = chance.choice([1, 5, 7, 10**5])
        document["n_features"] = width
        means = np.ones((len(arrays[kept["counts"]]), width), np.int16)
        arrays[kept["means"]] = means

    def rows_elsewhere() -> None:
        rows = arrays[kept["root_rows"]].copy()
        chance.shuffle(rows)
        rows[0], rows[-1] = rows[0] + rows[-1], 0
        arrays[kept["root_rows"]] = rows

    def correlated_beyond_reason() -> None:
        if "correlations" in kept:
            array = arrays[kept["correlations"]]
            arrays[kept["correlations"]] = np.full_like(array, chance.choice([32767, -32767]))

    odd = [0.0, -1.0, np.nan, np.inf, 1e-45, 1e30, 3e38]
    floats = [name for name in kept if arrays[kept[name]].dtype == np.float32]
    whole = ["counts", "root_rows"]
    chance.choice(
        [
            lambda: filled(chance.choice(floats), chance.choice(odd)),
            lambda: filled(chance.choice(floats), chance.choice(odd)),
            lambda: filled(chance.choice(whole), chance.choice([0, 1, 2**31, 2**32 - 1])),
            another_rank,
            another_width,
            rows_elsewhere,
            correlated_beyond_reason,
        ]
    )()


def retype(document: Document, arrays: Arrays, chance: random.Random) -> None:
    """The same bytes as numbers of another type."""
    name = chance.choice(sorted(arrays))
    array = arrays[name]
    arrays[name] = array.view(
        f"{chance.choice('iuf' if array.itemsize > 1 else 'iu')}{array.itemsize}"
    )


def change_sign(document: Document, arrays: Arrays, chance: random.Random) -> None:
    """Of one number, of a row, or of all."""
    name = chance.choice(sorted(arrays))
    array = arrays[name].copy()
    rows = array.reshape(len(array), -1) if array.ndim else array.reshape(1, 1)
    row, column = chance.randrange(rows.shape[0]), chance.randrange(rows.shape[1])
    where: Any = chance.choice([(row, column), row, slice(None)])
    with np.errstate(over="ignore"):
        rows[where] = -rows[where]
    arrays[name] = array


def change_counts(document: Document, arrays: Arrays, chance: random.Random) -> None:
    """A number of samples wherever it is told: in the document, and in the memory's arrays."""
    counts = document["n_samples_of_class"]
    row = chance.randrange(len(counts))
    other = chance.choice([0, 1, 2, counts[row] + 1, 10**6, 2**32 - 1, -1])
    for name, array in arrays.items():
        if array.shape == (len(counts),) and array.tolist() == counts:
            changed = array.astype(np.int64)
            changed[row] = other
            arrays[name] = changed.astype(array.dtype)
    counts[row] = other
    for path in places(document["memory"]):
        if path[-1] in ("counts_", "counts") and isinstance(at(document["memory"], path), list):
            at(document["memory"], path)[row] = other


#: Documents and arrays of all files, from which others take what fits.
DONORS: list[tuple[Document, Arrays]] = []


def array_of_another(document: Document, arrays: Arrays, chance: random.Random) -> None:
    """An array of another file, of the same type and shape if there is one."""
    name = chance.choice(sorted(arrays))
    alike = [
        array
        for _, others in DONORS
        for array in others.values()
        if (array.dtype, array.shape) == (arrays[name].dtype, arrays[name].shape)
        and not np.array_equal(array, arrays[name])
    ]
    arrays[name] = chance.choice(alike)


def part_of_another(document: Document, arrays: Arrays, chance: random.Random) -> None:
    """The memory or the head of another file, with all of its arrays."""
    other, theirs = chance.choice(DONORS)
    role = chance.choice(["memory", "head"])
    document[role] = copy.deepcopy(other[role])
    for name in [name for name in arrays if name.startswith(f"{role}.")]:
        del arrays[name]
    arrays.update({name: array for name, array in theirs.items() if name.startswith(f"{role}.")})


#: What payloads would make, and what they would import.
MARK = Path(tempfile.gettempdir()) / f"frugalvae-fuzz-mark-{os.getpid()}"
UNUSED = "this"  # which no program imports
PAYLOADS: list[tuple[str, dict[str, Any]]] = [
    ("subprocess:Popen", {"args": ["touch", str(MARK)]}),
    ("io:FileIO", {"file": str(MARK), "mode": "w"}),
    ("logging:FileHandler", {"filename": str(MARK)}),
    ("zipfile:ZipFile", {"file": str(MARK), "mode": "w"}),
    (f"{UNUSED}:Encoder", {}),
]


def name_code(document: Document, arrays: Arrays, chance: random.Random) -> None:
    """A payload where a text stands, or an object; or as the encoder."""
    name, settings = chance.choice(PAYLOADS)
    path = some_place(document, chance)
    value, holder = at(document, path), at(document, path[:-1])
    if chance.random() < 0.3:
        given = {"name": name, "settings": settings}
        document["encoder"] = {"encoder": name, "given": given}
    elif isinstance(value, str):
        holder[path[-1]] = name
    else:
        holder[path[-1]] = {"class": name, "state": settings}


MUTATIONS = [
    replace_value, replace_value, nudge, nudge, remove, rename_key, swap, one_class_less, permute,
    other_class, huge, change_array, change_array, exchange_arrays,
    change_moments, retype, change_sign, change_counts, array_of_another, part_of_another,
    name_code, name_code,
]  # fmt: skip


def change_header(content: bytes, chance: random.Random) -> bytes:
    """Another shape, type or place of a tensor than there is."""
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8 : 8 + size])
    names = [name for name in header if name != "__metadata__"]
    if names:
        about = header[chance.choice(names)]
        key = chance.choice(["dtype", "shape", "data_offsets"])
        if key == "dtype":
            about[key] = chance.choice(["F64", "I8", "BOOL", "F8_E4M3", "BF16", "X", 3])
        else:
            about[key] = chance.choice([[-1], [10**15], [0, 8], [2**62, 2**62], [], "x", [0.5]])
    encoded = json.dumps(header).encode()
    return struct.pack("<Q", len(encoded)) + encoded + content[8 + size :]


def sign(content: bytes) -> bytes:
    """With a checksum that fits, wherever it stands."""
    mark = rb"\"sha256\": \""
    place = content.find(mark)
    if place < 0:
        return content
    place += len(mark)
    blank = content[:place] + b"0" * 64 + content[place + 64 :]
    digest = hashlib.sha256(blank).hexdigest().encode()
    return content[:place] + digest + content[place + 64 :]


def mutated(content: bytes, chance: random.Random) -> bytes:
    """The file after one to three changes."""
    document, arrays = copy.deepcopy(from_bytes(content))
    for name in ("sha256", "format"):
        document.pop(name, None)
    for _ in range(chance.choice([1, 1, 2, 3])):
        with contextlib.suppress(LookupError, TypeError, ValueError, AttributeError):
            chance.choice(MUTATIONS)(document, arrays, chance)
    document = {key: value for key, value in document.items() if isinstance(key, str)}
    try:
        changed = to_bytes(document, arrays)
    except Exception:  # no file can hold this
        return content
    if chance.random() < 0.1:
        changed = sign(change_header(changed, chance))
    return changed


# --------------------------------------------------------------------------- photographs

#: Longest side of each format, or one that is long enough; modes; and what else is chosen.
LIMITS: dict[str, tuple[int, list[str], dict[str, list[Any]]]] = {
    "JPEG": (65_500, ["L", "RGB", "CMYK"], {"progressive": [False, True]}),
    "PNG": (100_000, ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"], {}),
    "WEBP": (16_383, ["RGB", "RGBA"], {"lossless": [False, True], "method": [0]}),
    "TIFF": (100_000, ["1", "L", "RGB", "CMYK", "I;16"], {"compression": [None, "tiff_lzw"]}),
    "BMP": (100_000, ["1", "L", "RGB"], {}),
    "GIF": (65_535, ["L", "P"], {}),
    "JPEG2000": (65_500, ["L", "RGB", "RGBA"], {"irreversible": [False, True]}),
    "PPM": (100_000, ["1", "L", "RGB"], {}),
}
MOST_PIXELS = 2_000_000
SIDES = [0, 1, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 2**31 - 1, 2**31, 2**32 - 1]


def photograph(chance: random.Random) -> tuple[bytes, str, tuple[int, int] | None]:
    """A photograph at a limit, and its size; or one that claims another size, or is damaged."""
    kind = chance.choice(sorted(LIMITS))
    most, modes, settings = LIMITS[kind]
    size = chance.choice([(1, 1), (1, most), (most, 1), (237, 123), (237, 123)])
    buffer = io.BytesIO()
    chosen = {name: chance.choice(values) for name, values in settings.items()}
    Image.new(chance.choice(modes), size, 1).save(buffer, kind, **chosen)
    content = buffer.getvalue()
    how = chance.choice(["whole", "size", "size", "bytes", "cut", "repeated"])
    if how == "whole":
        return content, f"{kind} of {size}", size
    if how == "size":
        sides = [side for side in size if side > 1] or [1]
        for form in chance.sample([">H", "<H", ">I", "<I"], 4):
            with contextlib.suppress(struct.error):
                old = struct.pack(form, chance.choice(sides))
                new = struct.pack(form, chance.choice(SIDES) % 256 ** len(old))
                content = content.replace(old, new, 1)
    changed = bytearray(content)
    start = chance.randrange(len(changed))
    if how == "bytes":
        for _ in range(chance.choice([1, 3, 10])):
            changed[chance.randrange(min(len(changed), 400))] = chance.randrange(256)
    elif how == "cut":
        del changed[start:]
    elif how == "repeated":
        end = min(len(changed), start + chance.choice([10, 100, 1000]))
        changed[start:start] = changed[start:end] * chance.choice([1, 10, 1000])
    return bytes(changed), f"{kind} of {size}, {how}", None


# --------------------------------------------------------------------------- verbs


@dataclass
class Trial:
    """What became of one file."""

    case: int
    kind: str
    size: int
    loaded: bool = False
    faults: list[str] = field(default_factory=list)
    peak: int = 0
    seconds: float = 0.0
    slowest: str = ""

    def __str__(self) -> str:
        told = "accepted" if self.loaded else "refused"
        return f"case {self.case} ({self.kind}, {told}): {'; '.join(self.faults)}"


class Fuzzer:
    """Files to mutate, in a folder of its own, and rows to classify."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.file = folder, folder / "it.frugal"
        self.undo = folder / "it.frugal.undo"
        parts = kinds().items()
        self.contents = {
            kind: beginning(folder / "first", *made_of, named=kind == NAMED)
            for kind, made_of in parts
        }
        DONORS[:] = [from_bytes(content) for content in self.contents.values()]
        x, y = blobs(5)
        self.rows = x[::10]
        names = np.array(["ant", "bee", "cat", "dog", "emu"])[y]
        self.photograph = folder / "photograph.png"
        Image.new("RGB", (9, 9)).save(self.photograph)
        self.features = folder / "rows.npz"
        np.savez(self.features, x=self.rows)
        self.labelled = folder / "labelled.npz"
        self.truth = Features("labelled", x, names, x[::5], names[::5])
        write_features(self.labelled, self.truth)
        self.try_content(self.contents["diagonal"], "diagonal")  # what is imported counts for none

    def try_case(self, case: int) -> Trial:
        """Make the file of a number, and give it to every verb."""
        chance = random.Random(case)
        if case % 10 == 9:
            return self.try_photograph(case, *photograph(chance))
        kind = chance.choice(sorted(self.contents))
        return self.try_content(mutated(self.contents[kind], chance), kind, case)

    def try_photograph(
        self, case: int, content: bytes, kind: str, size: tuple[int, int] | None
    ) -> Trial:
        """Decode a photograph: whole ones have their size, and none takes more than it may."""
        trial = Trial(case, kind, len(content))

        def decoded() -> None:
            try:
                with reading_images():
                    image = decode(content, 224, MOST_PIXELS)
            except Exception as error:
                if out_of_memory(error) or size is not None:
                    trial.faults.append(f"decode ends in {type(error).__name__}: {error}")
                return
            trial.loaded = True
            whole = size is None or image.size == size or "JPEG " in kind  # which is made smaller
            if image.mode != "RGB" or not whole or image.width * image.height > MOST_PIXELS:
                trial.faults.append(f"decode gives {image.mode} of {image.size}")

        self._watch(trial, "decode", decoded)
        return trial

    def try_content(self, content: bytes, kind: str, case: int = 0) -> Trial:
        """Give a file to every verb."""
        trial = Trial(case, kind, len(content))
        self.file.write_bytes(content)
        classifier = self._loaded(trial)
        verbs = [self._predict, self._status, self._history, self._undo]
        verbs += [self._evaluate] if case % 10 == 0 else []
        verbs += [self._photograph] if case % 2 == 0 else []
        verbs += [self._unknown, self._change] if trial.loaded else []
        verbs += [self._merge] if case % 3 == 0 else []
        verbs += [self._merge_classes, self._subtract, self._names] if trial.loaded else []
        for verb in verbs:
            self._watch(trial, verb.__name__, lambda verb=verb: verb(trial, classifier))
        return trial

    def _watch(self, trial: Trial, name: str, act: Callable[[], None]) -> None:
        """Note an exception that is none of ours, memory and time."""
        before, started = reset_peak(), time.process_time()
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                act()
        except FrugalError as error:
            if out_of_memory(error):
                trial.faults.append(f"{name} runs out of memory")
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(last.filename).name}:{last.lineno}"
            trial.faults.append(f"{name} ends in {type(error).__name__}: {error} ({place})")
        if MARK.exists() or UNUSED in sys.modules:
            trial.faults.append(f"{name} does what the file names")
            MARK.unlink(missing_ok=True)
            sys.modules.pop(UNUSED, None)
        seconds, taken = time.process_time() - started, peak() - before
        trial.peak = max(trial.peak, taken)
        if seconds > trial.seconds:
            trial.seconds, trial.slowest = seconds, name
        if taken > LEAST_ROOM + PER_BYTE * trial.size:
            trial.faults.append(f"{name} takes {taken / MEGABYTE:,.0f} MB for {trial.size:,} bytes")
        if seconds > SECONDS:
            trial.faults.append(f"{name} takes {seconds:.1f} s")

    def _loaded(self, trial: Trial) -> FrugalClassifier | None:
        found: list[FrugalClassifier] = []
        self._watch(trial, "load", lambda: found.append(FrugalClassifier.load(self.file)))
        if not found:
            return None
        trial.loaded = True
        classifier = found[0]
        if not classifier.head_stale_ and classifier.n_features_in_ == DIM:
            chances = classifier.predict_proba(self.rows)
            if not np.isfinite(chances).all():
                trial.faults.append("load gives a classifier whose probabilities are not finite")
        return classifier

    def _run(self, trial: Trial, *words: object) -> Any:
        """The JSON that a verb prints; None if it refuses the file."""
        out, err = io.StringIO(), io.StringIO()
        printing = contextlib.redirect_stdout(out), contextlib.redirect_stderr(err)
        with printing[0], printing[1], mock.patch.object(cli, "parser", one_parser):
            code = cli.main([str(word) for word in words])
        told = err.getvalue()
        if "MemoryError" in told or "ArrayMemoryError" in told:
            trial.faults.append(f"{words[0]} runs out of memory")
        if "Traceback" in told or code not in (0, 1, 2) or (code and not told.strip()):
            trial.faults.append(f"{words[0]} ends with code {code}: {told[-200:]!r}")
        if code:
            return None
        return json.loads(out.getvalue()) if "--json" in words else out.getvalue()

    def _predict(self, trial: Trial, classifier: FrugalClassifier | None) -> None:
        answer = self._run(trial, "predict", self.file, self.features, "--json")
        if answer is None:
            able = classifier is not None and not classifier.head_stale_
            if able and classifier.n_features_in_ == DIM:
                trial.faults.append("predict refuses what load accepts")
        elif classifier is None:
            trial.faults.append("predict answers from a file that load refuses")
        else:
            known, chances = classifier.classes_.tolist(), classifier.predict_proba(self.rows)
            named = [known.index(row["label"]) for row in answer["predictions"]]
            if not np.array_equal(chances[np.arange(len(named)), named], chances.max(axis=1)):
                trial.faults.append("predict answers otherwise than the loaded classifier")

    def _photograph(self, trial: Trial, classifier: FrugalClassifier | None) -> None:
        """There is no such encoder, which is to be said."""
        if self._run(trial, "predict", self.file, self.photograph) is not None:
            trial.faults.append("predict names a photograph without an encoder")

    def _unknown(self, trial: Trial, classifier: FrugalClassifier | None) -> None:
        self._run(trial, "predict", self.file, self.features, "--json", "--unknown")

    def _change(self, trial: Trial, classifier: FrugalClassifier | None) -> None:
        """Rename and forget a class of a copy."""
        assert classifier is not None
        labels, copied = classifier.classes_.tolist(), self.folder / "copy.frugal"
        shutil.copy(self.file, copied)
        name = "gnu" if isinstance(labels[0], str) else 77
        if self._run(trial, "rename", copied, labels[0], name, "--quiet") is None:
            trial.faults.append("rename refuses what load accepts")
        done = self._run(trial, "forget", copied, name, "--quiet") is not None
        left = FrugalClassifier.load(copied).classes_.tolist()
        if left != (labels[1:] if done else sorted([*labels[1:], name])):  # or all is as it was
            trial.faults.append(f"rename and forget leave {left} of {labels}")

    def _copy(self, content: bytes | None = None) -> Path:
        """A file to change: the mutated one, or another."""
        copied = self.folder / "copy.frugal"
        copied.write_bytes(self.file.read_bytes() if content is None else content)
        return copied

    def _known(self, path: Path) -> dict[Any, int]:
        """Samples by class."""
        found = FrugalClassifier.load(path)
        counts = found.n_samples_of_class_.tolist()
        return dict(zip(found.classes_.tolist(), counts, strict=True))

    def _expect(
        self, trial: Trial, verb: str, path: Path, before: bytes, done: Any, now: Any
    ) -> None:
        """What a verb leaves: the samples that it should, or the very file that was there."""
        if done is None and path.read_bytes() != before:
            trial.faults.append(f"{verb} refuses and changes the file all the same")
        if done is not None and (now is None or self._known(path) != now):
            trial.faults.append(f"{verb} leaves {self._known(path)}, expected {now}")

    def _merge(self, trial: Trial, classifier: FrugalClassifier | None) -> None:
        """Into a good file of its kind."""
        good = self.contents[trial.kind]
        target = self._copy(good)
        added = self._known(self.file) if classifier is not None else None
        mine = self._known(target)
        done = self._run(trial, "merge", target, self.file, "--twice", "--json", "--case-matters")
        now = added and {label: mine.get(label, 0) + added.get(label, 0) for label in mine | added}
        self._expect(trial, "merge", target, good, done, now)

    def _merge_classes(self, trial: Trial, classifier: FrugalClassifier | None) -> None:
        path, before = self._copy(), self.file.read_bytes()
        known = self._known(path)
        if len(known) < 2:
            return
        one, other, *rest = known
        done = self._run(trial, "merge-classes", path, one, other, "--json")
        now = {one: known[one] + known[other], **{label: known[label] for label in rest}}
        self._expect(trial, "merge-classes", path, before, done, now)

    def _subtract(self, trial: Trial, classifier: FrugalClassifier | None) -> None:
        """One sample of a class, and then the class with all of its samples."""
        rows = self.folder / "some.npz"
        label = next(iter(self._known(self.file)))
        x = self.truth.x_train[self.truth.y_train == str(label)]
        for verb, taken in ("unlearn", x[:1]), ("forget", x):
            if not len(taken):
                return
            np.savez(rows, x=taken)
            path, before = self._copy(), self.file.read_bytes()
            words = [rows] if verb == "unlearn" else ["--with", rows]
            done = self._run(trial, verb, path, label, *words, "--json")
            now = self._known(self.file)
            now = now | {label: now[label] - len(taken)}
            if verb == "forget":
                now.pop(label)
            self._expect(trial, verb, path, before, done, now)

    def _names(self, trial: Trial, classifier: FrugalClassifier | None) -> None:
        """The command lacks the encoder, which is to be said; in Python there are vectors."""
        path, before = self._copy(), self.file.read_bytes()
        done = self._run(trial, "learn", path, "--names", "heron, egret", "--json")
        self._expect(trial, "learn --names", path, before, done, None)
        assert classifier is not None
        changed = copy.deepcopy(classifier).learn_names({"gull": np.ones(DIM)})
        changed.save(path)
        if self._known(path) != self._known(self.file) | {"gull": 0}:
            trial.faults.append(f"learn_names leaves {self._known(path)}")
        if not np.isfinite(changed.predict_proba(self.rows)).all():
            trial.faults.append("learn_names gives probabilities that are not finite")

    def _status(self, trial: Trial, classifier: FrugalClassifier | None) -> None:
        answer = self._run(trial, "status", self.file, "--json")
        self._run(trial, "status", self.file)
        if classifier is None:
            return
        if answer is None:
            trial.faults.append("status refuses what load accepts")
            return
        told = [name for task in answer["tasks"] for name in task]
        if told != [str(label) for label in classifier.model_.classes.tolist()]:
            trial.faults.append(f"status tells of other classes: {told}")

    def _history(self, trial: Trial, classifier: FrugalClassifier | None) -> None:
        answer = self._run(trial, "history", self.file, "--json")
        self._run(trial, "history", self.file)
        if classifier is not None and answer != list(classifier.history_):
            trial.faults.append("history tells otherwise than the loaded classifier")

    def _undo(self, trial: Trial, classifier: FrugalClassifier | None) -> None:
        """Back to the mutated file, from a good one; a bad one must not replace it."""
        content = self.file.read_bytes()
        good = self.contents["diagonal"]
        self.file.write_bytes(good)
        self.undo.write_bytes(content)
        answer = self._run(trial, "undo", self.file)
        now = self.file.read_bytes()
        if answer is None and now != good:
            trial.faults.append("undo refuses and changes the file all the same")
        if answer is not None and (classifier is None or now != content):
            trial.faults.append("undo puts a file back that cannot be loaded")
        if answer is None and classifier is not None:
            trial.faults.append("undo refuses what load accepts")
        self.undo.unlink(missing_ok=True)
        self.file.write_bytes(content)

    def _evaluate(self, trial: Trial, classifier: FrugalClassifier | None) -> None:
        page = self.folder / "page.html"
        words = ("evaluate", self.file, self.labelled, "-o", page, "--json")
        answer = self._run(trial, *words)
        if answer is None:
            return
        if classifier is None:
            trial.faults.append("evaluate answers from a file that load refuses")
            return
        aliases = classifier.model_.aliases
        meant = np.array([aliases.get(str(y), y) for y in self.truth.y_test.tolist()], object)
        known = np.isin(meant, classifier.classes_.astype(object))
        right = classifier.predict(self.truth.x_test[known]) == meant[known]
        if abs(answer["accuracy"] - right.mean()) > 1e-9:
            trial.faults.append("evaluate finds another accuracy than the loaded classifier has")


def out_of_memory(error: BaseException | None) -> bool:
    """Whether an error came of that, by however many others it was wrapped."""
    while error is not None and not isinstance(error, MemoryError):
        error = error.__cause__
    return error is not None


@contextlib.contextmanager
def limited_memory(more: int = 2**31) -> Iterator[None]:
    """What would take so much more than now fails inside the block, and the machine lives on."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (peak("VmSize") + more, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def reset_peak() -> int:
    """Bytes that the process has in memory, from which its peak is counted now."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return peak("VmRSS")


def peak(what: str = "VmHWM") -> int:
    """Most bytes in memory since then; 0 where the system does not tell."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(what):
                return int(line.split()[1]) * 1024
    return 0


def run() -> int:
    """Try many cases, and name those that went wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=3000)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    wrong = accepted = 0
    most, slowest = 0, 0.0
    try:
        fuzzer = Fuzzer(folder)
        with limited_memory():
            for case in range(options.first, options.first + options.cases):
                trial = fuzzer.try_case(case)
                accepted += trial.loaded
                most, slowest = max(most, trial.peak), max(slowest, trial.seconds)
                if trial.faults:
                    wrong += 1
                    print(trial, flush=True)
    finally:
        shutil.rmtree(folder)
    print(
        f"{options.cases:,} files, {accepted:,} accepted; {wrong:,} with faults; at most "
        f"{most / MEGABYTE:,.0f} MB and {slowest:.2f} s for a verb"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(run())
