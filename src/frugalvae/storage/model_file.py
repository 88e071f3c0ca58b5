"""What is kept of a model, and how one is made of it again.

:func:`read_file` is the one way into a file, for every verb: it checks all that can be checked
without making the parts. :func:`load` makes them of what it gives, and lets them answer.
"""

from __future__ import annotations

import stat
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from frugalvae import __version__
from frugalvae.checks import check_learned
from frugalvae.errors import (
    DeviceError,
    FrugalError,
    InputError,
    MemoryFileError,
    MissingPackageError,
    UntrustedModuleError,
    check_choice,
)
from frugalvae.files import check_place, write_bytes
from frugalvae.maths.arrays import Array
from frugalvae.maths.devices import computing_on
from frugalvae.model import Model, Recipe
from frugalvae.storage.container import from_bytes, to_bytes
from frugalvae.storage.labels import labels_from_json, labels_to_json
from frugalvae.storage.migrations import GET_ANOTHER
from frugalvae.storage.reader import Reader
from frugalvae.storage.schema import check_document, read_confidence
from frugalvae.storage.verify import check_model, parts_of
from frugalvae.storage.writer import Writer

PARAMETERS = ("memory", "head", "random_state")  # but for the device, which is the reader's


def save(model: Model, path: str | Path, dtype: str = "float32") -> None:
    """Write a model, all at once or not at all."""
    check_choice("dtype", dtype, ("float32", "float16"))
    check_place(path)
    parts = parts_of(model)
    check_learned(*(parts[:1] if model.head_stale else parts))  # a head may finish its sums here
    writer = Writer(half=dtype == "float16")
    content = to_bytes(describe(model, writer), writer.arrays)
    try:
        _checked(content)
    except MemoryFileError as error:
        told = f"{path} is not written, as it could not be loaded again: {error}"
        raise InputError(told) from error
    write_bytes(path, content)


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

    @property
    def half(self) -> bool:
        """Whether it was written with ``dtype="float16"``."""
        return any(array.dtype == np.float16 for array in self.arrays.values())


def read_file(path: Path, named: Path | None = None) -> Contents:
    """What is in a file; ``named`` is what errors call it."""
    content = _content(path, named or path)
    try:
        return _checked(content)
    except MemoryFileError as error:
        raise MemoryFileError(f"{named or path}: {error}") from error


def _checked(content: bytes) -> Contents:
    document, arrays = from_bytes(content)
    check_document(document, len(content))
    return Contents(document, arrays, len(content))


def load(path: str | Path, device: str | None = None, *, trust: Collection[str] = ()) -> Model:
    """A model from a file, after it has shown that it can answer.

    Parameters
    ----------
    device
        Where parts that need PyTorch compute.
    trust
        Modules that parts from outside may be imported from.
    """
    if isinstance(trust, str):
        trust = [trust]
    contents = read_file(Path(path))
    try:
        with computing_on(device), np.errstate(all="ignore"):
            reader = Reader(contents.arrays, trust)
            model = revive(contents.document, reader, device)
            check_model(model, reader)
    except DeviceError:  # no fault of the file
        raise
    except (MissingPackageError, UntrustedModuleError, MemoryFileError) as error:
        raise type(error)(f"{path}: {error}") from error
    except Exception as error:  # a file can be wrong in more ways than can be foreseen
        raise MemoryFileError(
            f"{path}: its parts do not fit together ({type(error).__name__}: {error}); "
            f"{GET_ANOTHER}"
        ) from error
    return model


def check_loads(path: Path, named: Path, trust: Collection[str] = ()) -> Contents:
    """What is in a file, after a model was made of it if all of its parts are at hand."""
    contents = read_file(path, named)
    try:
        load(path, trust=trust)
    except MissingPackageError:
        pass
    except FrugalError as error:
        raise type(error)(str(error).replace(str(path), str(named), 1)) from error
    return contents


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
    }


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
    )


def _content(path: Path, named: Path) -> bytes:
    """All bytes of a plain file: a pipe would never end."""
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            raise MemoryFileError(f"{named} is a folder or a device; give the name of a file")
        return path.read_bytes()
    except FileNotFoundError as error:
        raise MemoryFileError(f"{named}: there is no such file; check the path") from error
    except OSError as error:
        raise MemoryFileError(f"{named} cannot be read ({error.strerror})") from error
