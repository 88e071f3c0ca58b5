"""A model to a file and back.

:func:`read_file` is the one way into a file, for every verb: it checks all that can be checked
without making the parts. :func:`load` makes them of what it gives, and checks what they hold.
:func:`save` loads what it is going to write by the same two, and lets the outcome answer, before
it replaces anything: a file that was written can be loaded. Loading draws no samples: that
self-test is part of saving, and of ``frugalvae status --verify``.

A file is one safetensors file. Its JSON document is the value of ``frugalvae`` in the metadata, and
the document's first field is the SHA-256 of the whole file with the 64 digits of that very field
replaced by zeros: no byte can change unnoticed. A checksum does not make a file honest: sizes,
types and places of all arrays are checked against the bytes that are there, and reading allocates
nothing for them.
"""

from __future__ import annotations

import hashlib
import json
import math
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from frugalvae import __version__
from frugalvae.digests import BY_DIGEST, DIGEST, pack_digests
from frugalvae.errors import (
    DeviceError,
    FrugalError,
    InputError,
    MemoryFileError,
    MissingPackageError,
    UntrustedError,
)
from frugalvae.files import json_object, write_bytes
from frugalvae.maths.arrays import Array, computing_on
from frugalvae.model.model import Model, Recipe
from frugalvae.parts import HEADS, MEMORIES
from frugalvae.parts.checks import check_kept, check_learned
from frugalvae.parts.protocols import is_tempered
from frugalvae.storage.schema import (
    check_document,
    labels_from_json,
    labels_to_json,
    read_confidence,
    read_digests,
)
from frugalvae.storage.states import Reader, Writer, class_named
from frugalvae.storage.tables import check_held, table_of

if TYPE_CHECKING:
    from frugalvae.parts.protocols import Head, Memory

PARAMETERS = ("memory", "head", "random_state")  # but for the device, which is the reader's
DRAWN = 8  # classes that the self-test draws from, of memories that know their means without it
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


# --------------------------------------------------------------------------- writing


def save(model: Model, path: str | Path) -> None:
    """Write a model that can be loaded again, all at once or not at all."""
    if len(model.classes):
        memory, head = parts_of(model)
        check_learned(memory)
        if not model.head_stale:
            with model.computing():
                check_kept(head, head.arrays())  # it may finish its sums here
    writer = Writer()
    with np.errstate(all="ignore"):  # what becomes infinite is refused below
        content = to_bytes(describe(model, writer), writer.arrays)
    try:
        again = make(_checked(content), path, model.recipe.device, modules_of(model, writer))
        verify(again, path)
    except FrugalError as error:
        reason = str(error).removeprefix(f"{path}: ").removesuffix(f"; {GET_ANOTHER}")
        told = f"{path} is not written, as it could not be loaded again: {reason}"
        raise InputError(told) from error
    write_bytes(path, content)


def modules_of(model: Model, writer: Writer) -> list[str]:
    """Modules of parts from outside that a model has: whoever made it had imported them."""
    asked = [name for name in (model.recipe.memory, model.recipe.head) if isinstance(name, str)]
    return [name.partition(":")[0] for name in [*writer.classes, *asked] if ":" in name]


def describe(model: Model, writer: Writer) -> dict[str, Any]:
    """The document of a model; its arrays go to the writer."""
    names = model.feature_names
    return {
        "library": __version__,
        "classes": labels_to_json(model.classes),
        "numbers": model.numbers.tolist(),
        "task_of_class": model.task_of_class.tolist(),
        "n_samples_of_class": model.n_samples_of_class.tolist(),
        "n_tasks": model.n_tasks,
        "n_taught": model.n_taught,
        "n_features": model.n_features,
        "feature_names": None if names is None else list(names),
        "head_due": model.head_stale,
        "parameters": {
            name: writer.write(getattr(model.recipe, name), f"parameters.{name}")
            for name in PARAMETERS
        }
        | {"calibrate": bool(model.recipe.calibrate)},
        "memory": writer.write(model.memory, "memory"),
        "head": writer.write(model.head, "head"),
        "confidence": {
            "temperature": model.calibration.temperature,
            **model.taught_novelty.to_json(),
        },
        "encoder": model.encoder,
        "history": list(model.history),
    } | digests_json(model, writer)


def digests_json(model: Model, writer: Writer) -> dict[str, Any]:
    """Digests and other names of classes, if there are any."""
    found: dict[str, Any] = {}
    for name in BY_DIGEST:
        by_class, none = getattr(model, name), np.empty(0, DIGEST)
        if by_class:
            kept = [by_class.get(number, none) for number in model.numbers.tolist()]
            rows = writer.write(pack_digests(kept), name)
            found[name] = {"counts": [len(of_class) for of_class in kept], "rows": rows}
    if model.aliases:
        found["aliases"] = dict(model.aliases)
    return found


# --------------------------------------------------------------------------- reading


@dataclass(frozen=True)
class Contents:
    """What is in a file, checked.

    Attributes
    ----------
    document
        All but the arrays, as JSON; see ``docs/format.md``.
    arrays
        By name, as views of the file's bytes.
    size
        Bytes of the file.
    """

    document: dict[str, Any]
    arrays: dict[str, Array]
    size: int


def read_file(path: Path, named: Path | None = None) -> Contents:
    """What is in a file; ``named`` is what errors call it."""
    named = named or path
    try:
        plain = stat.S_ISREG(path.stat().st_mode)  # a pipe would never end
        content = path.read_bytes() if plain else b""
    except FileNotFoundError as error:
        raise MemoryFileError(f"{named}: there is no such file; check the path") from error
    except OSError as error:
        raise MemoryFileError(f"{named} cannot be read ({error.strerror})") from error
    if not plain:
        raise MemoryFileError(f"{named} is a folder or a device; give the name of a file")
    try:
        return _checked(content)
    except MemoryFileError as error:
        raise MemoryFileError(f"{named}: {error}") from error


def _checked(content: bytes) -> Contents:
    document, arrays = from_bytes(content)
    check_document(document, len(content))
    return Contents(document, arrays, len(content))


def load(
    path: str | Path,
    device: str | None = None,
    *,
    trust: Collection[str] = (),
    answering: bool = True,
) -> Model:
    """A model from a file, checked: it knows what it claims to know, and can answer.

    Parameters
    ----------
    device
        Where parts that need PyTorch compute.
    trust
        Modules that parts from outside may be imported from.
    answering
        Make what answers need, and see that they are finite. Whoever has other work to do
        meanwhile calls :func:`check_answering` later, before the first answer.
    """
    trust = [trust] if isinstance(trust, str) else trust
    return make(read_file(Path(path)), path, device, trust, answering=answering)


def make(
    contents: Contents,
    named: str | Path,
    device: str | None = None,
    trust: Collection[str] = (),
    *,
    answering: bool = True,
) -> Model:
    """The model of a file that was read; ``named`` is what errors call the file."""
    with _faults_of(named), computing_on(device):
        reader = Reader(contents.arrays, trust)
        _check_roles(contents.document, trust)
        model = model_from_document(contents.document, reader, device)
        _check_model(model, reader)
    if answering:
        check_answering(model, named)
    return model


def check_answering(model: Model, named: str | Path) -> None:
    """Make what the answers of a file's model need, and refuse it if they are not finite."""
    if len(model.classes) and not model.head_stale:
        with _faults_of(named), computing_on(model.recipe.device):
            zero = np.zeros((1, model.n_features))
            _check_finite(model.logits(zero), (1, len(model.classes)))


def model_from_document(document: dict[str, Any], reader: Reader, device: str | None) -> Model:
    """The model that a checked document describes."""
    parameters, read = document["parameters"], reader.read
    names = document["feature_names"]
    return Model(
        Recipe(
            **{name: read(parameters[name], f"parameters.{name}") for name in PARAMETERS},
            calibrate=parameters["calibrate"],
            device=device,
        ),
        read(document["memory"], "memory"),
        read(document["head"], "head"),
        labels_from_json(document["classes"]),
        np.array(document["numbers"], np.int64),
        np.array(document["task_of_class"], np.int64),
        np.array(document["n_samples_of_class"], np.int64),
        document["n_features"],
        document["n_tasks"],
        document["n_taught"],
        document["head_due"],
        *read_confidence(document["confidence"]),
        document["encoder"],
        tuple(document["history"]),
        None if names is None else tuple(names),
        read_digests(document, "digests", read),
        read_digests(document, "withheld", read),
        document.get("aliases", {}),
    )


@contextmanager
def _faults_of(named: str | Path) -> Iterator[None]:
    """Errors inside the block are faults of that file."""
    try:
        with np.errstate(all="ignore"):
            yield
    except DeviceError:  # no fault of the file
        raise
    except (MissingPackageError, UntrustedError, MemoryFileError) as error:
        raise type(error)(f"{named}: {error}") from error
    except Exception as error:  # a file can be wrong in more ways than can be foreseen
        raise MemoryFileError(
            f"{named}: its parts do not fit together ({type(error).__name__}: {error}); "
            f"{GET_ANOTHER}"
        ) from error


# --------------------------------------------------------------------------- checks of every load


def _check_roles(document: dict[str, Any], trust: Collection[str]) -> None:
    """Refuse, before any of it is made, what is no memory or no head."""
    for role, registry in (("memory", MEMORIES), ("head", HEADS)):
        for written in (document[role], document["parameters"][role]):
            name = written["class"] if isinstance(written, dict) else written
            known = registry.modules if isinstance(written, dict) else registry
            if name is not None and ":" in name:
                registry.check(class_named(name, trust), name)
            elif name is not None and name not in known:
                raise MemoryFileError(
                    f"its {role} is {name[:40]!r}, which this version does not know; load it with "
                    "the version that wrote it, or a newer one"
                )


def _check_model(model: Model, reader: Reader) -> None:
    """Refuse a model that does not know what it claims to know."""
    if reader.unused:
        raise MemoryFileError(f"nothing uses its tensors {', '.join(sorted(reader.unused)[:3])}")
    for template in (model.recipe.memory, model.recipe.head):
        if not isinstance(template, str | None) and template.classes != []:
            raise MemoryFileError(f"it starts with a {type(template).__name__} that knows classes")
    if not len(model.classes):
        return
    memory, head = parts_of(model)
    for part in (memory, head):  # before any of it is made
        if hasattr(part, "derived_bytes"):
            reader.spend(part.derived_bytes(model.n_features))
    held: list[Memory | Head] = [memory] if model.head_stale else [memory, head]
    for part in held:
        check_held(part, model.n_features)
    if getattr(head, "memory_", None) not in (None, memory):
        raise MemoryFileError("its head reads another memory than its own")
    numbers, by_name = model.numbers.tolist(), set(getattr(head, "by_name", ()))
    _check_taught(memory, [number for number in numbers if number not in by_name])
    _check_counts(model, by_name)
    if model.head_stale and head.needs_every_task:
        raise MemoryFileError("head_due is set, but its head is never due")
    if not model.head_stale:
        _check_taught(head, numbers)


def parts_of(model: Model) -> tuple[Memory, Head]:
    """Memory and head of a model that was taught."""
    assert model.memory is not None
    assert model.head is not None
    return model.memory, model.head


def _check_taught(part: Memory | Head, numbers: list[int]) -> None:
    """Sizes first: then nothing that is made from the settings can be out of proportion."""
    kept = part.arrays()
    stored = sum(array.nbytes for array in kept.values())
    if stored != sum(component.bytes for component in part.components()):
        raise MemoryFileError(f"its {type(part).__name__} is not of the size that it should be")
    if sorted(part.classes) != numbers:
        raise MemoryFileError(f"its {type(part).__name__} does not know its {len(numbers)} classes")
    if table_of(part) is None:  # else what it holds was checked
        check_kept(part, kept)


def _check_counts(model: Model, by_name: set[int]) -> None:
    """A class has no samples if it is known by name alone; memories that count must agree."""
    memory = parts_of(model)[0]
    counted = memory.counts_ if is_tempered(memory) else None
    for number, count in model.count_of.items():
        expected = 0 if number in by_name else counted and counted.get(number)
        if expected not in (None, count):
            raise MemoryFileError(
                f"its class {number} has {count} samples in the header, {expected} in the memory"
            )


def _check_finite(rows: Any, shape: tuple[int, int]) -> None:
    if rows.shape != shape or not np.isfinite(rows).all():
        raise MemoryFileError("it gives answers of the wrong shape, or that are not finite")


# --------------------------------------------------------------------------- the self-test


def verify(model: Model, named: str | Path) -> None:
    """Draw samples of classes of a file's model, and let it classify what was drawn."""
    with _faults_of(named), computing_on(model.recipe.device):
        check_answers(model)


def check_answers(model: Model) -> None:
    """Draw from each class, and classify what was drawn; where that is slow, of some classes."""
    if not len(model.classes):
        return
    memory, head = parts_of(model)
    if not memory.arrays():  # it keeps nothing, and says so when it is asked
        return
    rng, drawn = np.random.default_rng(0), []
    for number in _drawn_from(memory):
        drawn.append(memory.sample(number, 1, rng))
        _check_finite(drawn[-1], (1, model.n_features))
    if not model.head_stale:
        rows = np.concatenate(drawn)
        _check_finite(head.logits(rows), (len(rows), len(model.classes)))


def _drawn_from(memory: Memory) -> list[int]:
    """The classes that the self-test draws from."""
    numbers = sorted(memory.classes)
    if getattr(memory, "covariance", None) == "full":
        return numbers[:1]  # each takes an eigendecomposition, and keeps it
    if hasattr(memory, "mapped_means"):
        return numbers[:: 1 + len(numbers) // DRAWN]
    return numbers


# --------------------------------------------------------------------------- the bytes of a file


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
