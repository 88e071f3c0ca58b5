"""What is kept of a model, and how one is made of it again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from frugalvae import __version__
from frugalvae.checks import check_kept, check_learned
from frugalvae.confidence import Confidence
from frugalvae.errors import (
    DeviceError,
    MemoryFileError,
    MissingPackageError,
    check_choice,
    check_number,
)
from frugalvae.files import check_place, write_bytes
from frugalvae.heads import HEADS
from frugalvae.maths.devices import computing_on
from frugalvae.memories import MEMORIES
from frugalvae.model import Model, Recipe
from frugalvae.storage.container import GET_ANOTHER, from_bytes, to_bytes
from frugalvae.storage.labels import labels_from_json, labels_to_json
from frugalvae.storage.reader import Reader
from frugalvae.storage.writer import Writer

if TYPE_CHECKING:
    from frugalvae.interfaces import Head, Memory
    from frugalvae.plugins import Registry


PARAMETERS = ("memory", "head", "random_state")  # but for the device, which is the reader's


def save(model: Model, path: str | Path, dtype: str = "float32") -> None:
    """Write a model, all at once or not at all."""
    check_choice("dtype", dtype, ("float32", "float16"))
    check_place(path)
    parts = _parts(model)
    check_learned(*(parts[:1] if model.head_due else parts))  # settles what a head waits with
    writer = Writer(half=dtype == "float16")
    document = describe(model, writer)
    write_bytes(path, to_bytes(document, writer.arrays))


def load(path: str | Path, device: str | None = None, *, thorough: bool = True) -> Model:
    """A model from a file, after it has shown that it can answer.

    Parameters
    ----------
    device
        Where parts that need PyTorch compute.
    thorough
        Also draw a sample of each class. Without it, nothing but answers can be relied on.
    """
    content = _content(Path(path))
    try:
        document, arrays = from_bytes(content)
        with computing_on(device):
            reader = Reader(arrays)
            model = revive(document, reader, device)
            check_answers(model, reader, thorough)
    except DeviceError:  # no fault of the file
        raise
    except MissingPackageError as error:
        raise MissingPackageError(f"{path}: {error}") from error
    except MemoryFileError as error:
        raise MemoryFileError(f"{path}: {error}") from error
    except Exception as error:  # a file can be wrong in more ways than can be foreseen
        raise MemoryFileError(
            f"{path}: its parts do not fit together ({type(error).__name__}: {error}); "
            f"{GET_ANOTHER}"
        ) from error
    return model


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
        "head_due": model.head_due,
        "parameters": {
            name: writer.write(getattr(model.recipe, name), f"parameters.{name}")
            for name in PARAMETERS
        }
        | {"calibrate": bool(model.recipe.calibrate)},
        "memory": writer.write(model.memory, "memory"),
        "head": writer.write(model.head, "head"),
        "confidence": model.confidence.to_json(),
        "encoder": model.encoder,
        "history": list(model.history),
    }


def revive(document: dict[str, Any], reader: Reader, device: str | None) -> Model:
    """The model that a document describes."""
    parameters, read = document["parameters"], reader.read
    classes = labels_from_json(document["classes"])
    return Model(
        Recipe(
            **{name: read(parameters[name], f"parameters.{name}") for name in PARAMETERS},
            calibrate=parameters.get("calibrate", False),
            device=device,
        ),
        read(document["memory"], "memory"),
        read(document["head"], "head"),
        classes,
        np.array(document.get("numbers", range(len(classes))), np.int64),
        np.array(document["task_of_class"], np.int64),
        np.array(document.get("n_samples_of_class", [0] * len(classes)), np.int64),
        document["n_features"],
        document["n_tasks"],
        document.get("n_taught", len(classes)),
        document["head_due"],
        Confidence(**document.get("confidence", {})),
        **_optional(document),
    )


def _optional(document: dict[str, Any]) -> dict[str, Any]:
    """What a model has only if it was given it."""
    names, encoder, history = (document[key] for key in ("feature_names", "encoder", "history"))
    if names is not None and (
        len(names) != document["n_features"] or {type(name) for name in names} != {str}
    ):
        raise MemoryFileError("its names of features are not as many as there are features")
    if not isinstance(encoder, dict | None) or not isinstance(history, list):
        raise MemoryFileError("its encoder is no JSON object, or its history no list")
    found = {"feature_names": None if names is None else tuple(names)}
    return found | {"encoder": encoder, "history": tuple(history)}


def check_answers(model: Model, reader: Reader, thorough: bool) -> None:
    """Refuse a model that does not know what it claims to know."""
    if reader.unused:
        raise MemoryFileError(f"nothing uses its tensors {', '.join(sorted(reader.unused)[:3])}")
    _check_numbers(model)
    memory, head = _parts(model)
    _check_part("memory", model.recipe.memory, memory, MEMORIES)
    _check_part("head", model.recipe.head, head, HEADS)
    numbers = model.numbers.tolist()
    _check_taught(memory, numbers)
    if thorough:
        _check_samples(model, memory)
    if model.head_due and head.needs_every_task:
        raise MemoryFileError("its head is said to be due, and is one that never is")
    if not model.head_due:
        _check_taught(head, numbers)
        zero = np.zeros((1, model.n_features))
        _check_finite(model.logits(zero), len(model.classes))


def _parts(model: Model) -> tuple[Memory, Head]:
    assert model.memory is not None
    assert model.head is not None
    return model.memory, model.head


def _check_numbers(model: Model) -> None:
    check_number("random_state", model.recipe.random_state, 0, whole=True)
    check_number("n_features", model.n_features, 1, whole=True)
    check_number("n_tasks", model.n_tasks, 1, whole=True)
    check_number("n_taught", model.n_taught, model.n_tasks, whole=True)
    check_choice("head_due", model.head_due, (True, False))
    check_choice("calibrate", model.recipe.calibrate, (True, False))
    tasks, numbers = model.task_of_class.tolist(), model.numbers.tolist()
    counts, classes = model.n_samples_of_class.tolist(), len(model.classes)
    in_order = tasks == sorted(tasks) and numbers == sorted(set(numbers))
    within = 0 <= tasks[0] <= tasks[-1] < model.n_tasks
    within = within and 0 <= numbers[0] <= numbers[-1] < model.n_taught
    if not in_order or not within or not len(tasks) == len(numbers) == len(counts) == classes:
        raise MemoryFileError("its classes and the tasks that taught them do not belong together")
    if min(counts) < 0:
        raise MemoryFileError("a class of it has fewer samples than none")


def _check_part(role: str, template: Any, taught: Any, registry: Registry) -> None:
    named = template in registry if isinstance(template, str) else template is None
    fresh = _is_of(template, registry) and getattr(template, "classes", None) == []
    if not (named or fresh) or not _is_of(taught, registry):
        raise MemoryFileError(f"its {role} is none that this version knows")


def _is_of(part: Any, registry: Registry) -> bool:
    return registry.modules.get(type(part).__name__) == type(part).__module__


def _check_taught(part: Memory | Head, numbers: list[int]) -> None:
    """Sizes first: then nothing that is made from the settings can be out of proportion."""
    stored, kept = sum(component.bytes for component in part.components()), part.arrays()
    if stored != sum(array.nbytes for array in kept.values()):
        raise MemoryFileError(f"its {type(part).__name__} is not of the size that it should be")
    if sorted(part.classes) != numbers:
        raise MemoryFileError(f"its {type(part).__name__} does not know its {len(numbers)} classes")
    check_kept(part, kept)


def _check_samples(model: Model, memory: Memory) -> None:
    labels = model.classes.tolist()
    if not memory.arrays():  # it keeps nothing, and says so when it is asked
        return
    if getattr(memory, "covariance", None) == "full":
        labels = labels[:1]  # each takes an eigendecomposition, and keeps it
    for label in labels:
        _check_finite(model.sample(label), model.n_features)


def _check_finite(row: Any, width: int) -> None:
    if row.shape != (1, width) or not np.isfinite(row).all():
        raise MemoryFileError("it gives answers of the wrong shape, or that are not finite")


def _content(path: Path) -> bytes:
    if not path.exists():
        raise MemoryFileError(f"{path}: there is no such file; check the path")
    if not path.is_file():
        raise MemoryFileError(f"{path} is a folder or a device; give the name of a file")
    try:
        return path.read_bytes()
    except OSError as error:
        raise MemoryFileError(f"{path} cannot be read ({error.strerror})") from error
