"""A model to a file and back.

:func:`read_file` is the one way into a file, for every verb: it checks all that can be checked
without making the parts. :func:`load` makes them of what it gives, and checks what they hold.
:func:`save` loads what it is going to write by the same two, and lets the outcome answer, before
it replaces anything: a file that was written can be loaded.
"""

from __future__ import annotations

import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
from frugalvae.files import write_bytes
from frugalvae.maths.arrays import Array
from frugalvae.maths.devices import computing_on
from frugalvae.model.model import Model, Recipe
from frugalvae.parts.checks import check_kept, check_learned
from frugalvae.storage.container import from_bytes, to_bytes
from frugalvae.storage.document import (
    GET_ANOTHER,
    as_kept,
    check_document,
    labels_from_json,
    labels_to_json,
    read_confidence,
    read_digests,
)
from frugalvae.storage.model_checks import check_answers, check_model, check_roles, parts_of
from frugalvae.storage.objects import Reader, Writer

PARAMETERS = ("memory", "head", "random_state")  # but for the device, which is the reader's


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
    return Contents(as_kept(document), arrays, len(content))


def load(path: str | Path, device: str | None = None, *, trust: Collection[str] = ()) -> Model:
    """A model from a file, checked: it knows what it claims to know, and can answer.

    Parameters
    ----------
    device
        Where parts that need PyTorch compute.
    trust
        Modules that parts from outside may be imported from.
    """
    return make(read_file(Path(path)), path, device, [trust] if isinstance(trust, str) else trust)


def make(
    contents: Contents, named: str | Path, device: str | None = None, trust: Collection[str] = ()
) -> Model:
    """The model of a file that was read; ``named`` is what errors call the file."""
    with _faults_of(named), computing_on(device):
        reader = Reader(contents.arrays, trust)
        check_roles(contents.document, trust)
        model = revive(contents.document, reader, device)
        check_model(model, reader)
    return model


def verify(model: Model, named: str | Path) -> None:
    """The self-test: draw samples from the model of a file, and let it classify them."""
    with _faults_of(named), computing_on(model.recipe.device):
        check_answers(model)


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


def describe(model: Model, writer: Writer) -> dict[str, Any]:
    """A model as JSON; its arrays go to the writer."""
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
    } | taught(model, writer)


def taught(model: Model, writer: Writer) -> dict[str, Any]:
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


def revive(document: dict[str, Any], reader: Reader, device: str | None) -> Model:
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
