"""What is kept of a classifier, and how one is made of it again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch

from frugalvae import __version__
from frugalvae.checks import check_learned
from frugalvae.confidence import Confidence
from frugalvae.errors import MemoryFileError, check_choice, check_number
from frugalvae.files import check_place, write_bytes
from frugalvae.heads import HEADS
from frugalvae.memories import MEMORIES
from frugalvae.memories.gaussian import GaussianMemory
from frugalvae.saving.classes import parts_of
from frugalvae.saving.container import GET_ANOTHER, from_bytes, to_bytes
from frugalvae.saving.labels import labels_from_json, labels_to_json
from frugalvae.saving.reader import Reader
from frugalvae.saving.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Callable

    from frugalvae.heads.base import Head
    from frugalvae.learner import FrugalClassifier
    from frugalvae.memories.base import Memory
    from frugalvae.registry import Registry

    Classifier = TypeVar("Classifier", bound=FrugalClassifier)


PARAMETERS = ("memory", "head", "random_state")  # but for the device, which is the reader's


def save(classifier: FrugalClassifier, path: str | Path, dtype: str) -> None:
    """Write a classifier, all at once or not at all."""
    check_choice("dtype", dtype, ("float32", "float16"))
    check_place(path)
    check_learned(classifier.memory_)
    if not classifier.head_due_:
        check_learned(classifier.head_)  # which settles what the head still waits with
    writer = Writer(half=dtype == "float16")
    document = describe(classifier, writer)
    write_bytes(path, to_bytes(document, writer.tensors))


def load(
    kind: type[Classifier],
    path: str | Path,
    device: str | None,
    check: Callable[[Classifier, Reader], None] | None = None,
) -> Classifier:
    """A classifier from a file, after it has shown that it can answer.

    Another ``check`` is for a kind that answers other questions than all of them.
    """
    classifier = kind(device=device)
    classifier._device()  # a wrong device is no fault of the file
    content = _content(Path(path))
    try:
        document, tensors = from_bytes(content)
        reader = Reader(tensors, classifier._device())
        revive(classifier, document, reader)
        (check or check_answers)(classifier, reader)
    except MemoryFileError as error:
        raise MemoryFileError(f"{path}: {error}") from error
    except Exception as error:  # a file can be wrong in more ways than can be foreseen
        raise MemoryFileError(
            f"{path}: its parts do not fit together ({type(error).__name__}: {error}); "
            f"{GET_ANOTHER}"
        ) from error
    return classifier


def describe(classifier: FrugalClassifier, writer: Writer) -> dict[str, Any]:
    """A classifier as JSON; its tensors go to the writer."""
    names = getattr(classifier, "feature_names_in_", None)
    return {
        "library": __version__,
        "classes": labels_to_json(classifier.classes_),
        "numbers": classifier.numbers_.tolist(),
        "task_of_class": classifier.task_of_class_.tolist(),
        "n_samples_of_class": classifier.n_samples_of_class_.tolist(),
        "n_tasks": classifier.n_tasks_,
        "n_taught": classifier.n_taught_,
        "n_features": classifier.n_features_in_,
        "feature_names": None if names is None else names.tolist(),
        "head_due": classifier.head_due_,
        "parameters": {
            name: writer.write(getattr(classifier, name), f"parameters.{name}")
            for name in PARAMETERS
        }
        | {"calibrate": bool(classifier.calibrate)},
        "memory": writer.write(classifier.memory_, "memory"),
        "head": writer.write(classifier.head_, "head"),
        "confidence": classifier.confidence_.to_json(),
        "encoder": getattr(classifier, "encoder_", None),
        "history": getattr(classifier, "history_", []),
    }


def revive(classifier: FrugalClassifier, document: dict[str, Any], reader: Reader) -> None:
    """Give a new classifier what the document says."""
    for name in PARAMETERS:
        setattr(classifier, name, reader.read(document["parameters"][name], f"parameters.{name}"))
    classifier.calibrate = document["parameters"].get("calibrate", False)
    classifier.memory_ = reader.read(document["memory"], "memory")
    classifier.head_ = reader.read(document["head"], "head")
    classifier.classes_ = labels_from_json(document["classes"])
    classifier.task_of_class_ = np.array(document["task_of_class"], dtype=int)
    classes = len(classifier.classes_)
    classifier.numbers_ = np.array(document.get("numbers", range(classes)), dtype=int)
    classifier.n_samples_of_class_ = np.array(
        document.get("n_samples_of_class", [0] * classes), dtype=int
    )
    classifier.n_tasks_ = document["n_tasks"]
    classifier.n_taught_ = document.get("n_taught", classes)
    classifier.n_features_in_ = document["n_features"]
    classifier.head_due_ = document["head_due"]
    classifier.confidence_ = Confidence(**document.get("confidence", {}))
    classifier.device_ = str(classifier._device())
    for attribute, value in _optional(document).items():
        setattr(classifier, attribute, value)


def _optional(document: dict[str, Any]) -> dict[str, Any]:
    """What a classifier has only if it was given it."""
    names, encoder, history = (document[key] for key in ("feature_names", "encoder", "history"))
    found: dict[str, Any] = {}
    if names is not None:
        if len(names) != document["n_features"] or {type(name) for name in names} != {str}:
            raise MemoryFileError("its names of features are not as many as there are features")
        found["feature_names_in_"] = np.array(names, dtype=object)
    if not isinstance(encoder, dict | None) or not isinstance(history, list):
        raise MemoryFileError("its encoder is no JSON object, or its history no list")
    return found | {f"{k}_": v for k, v in (("encoder", encoder), ("history", history)) if v}


def check_answers(classifier: FrugalClassifier, reader: Reader) -> None:
    """Refuse a classifier that does not know what it claims to know."""
    if reader.unused:
        raise MemoryFileError(f"nothing uses its tensors {', '.join(sorted(reader.unused)[:3])}")
    _check_numbers(classifier)
    _check_part("memory", classifier.memory, classifier.memory_, MEMORIES)
    _check_part("head", classifier.head, classifier.head_, HEADS)
    numbers, classes = classifier.numbers_.tolist(), len(classifier.classes_)
    _check_taught(classifier.memory_, numbers)
    _check_samples(classifier)
    if classifier.head_due_ and classifier.head_.needs_every_task:
        raise MemoryFileError("its head is said to be due, and is one that never is")
    if not classifier.head_due_:
        _check_taught(classifier.head_, numbers)
        zero = torch.zeros(1, classifier.n_features_in_, device=classifier._device())
        _check_finite(classifier.head_.logits(zero.double()).cpu().numpy(), classes)


def _check_numbers(classifier: FrugalClassifier) -> None:
    check_number("random_state", classifier.random_state, 0, whole=True)
    check_number("n_features", classifier.n_features_in_, 1, whole=True)
    check_number("n_tasks", classifier.n_tasks_, 1, whole=True)
    check_number("n_taught", classifier.n_taught_, classifier.n_tasks_, whole=True)
    check_choice("head_due", classifier.head_due_, (True, False))
    check_choice("calibrate", classifier.calibrate, (True, False))
    tasks, numbers = classifier.task_of_class_.tolist(), classifier.numbers_.tolist()
    counts, classes = classifier.n_samples_of_class_.tolist(), len(classifier.classes_)
    in_order = tasks == sorted(tasks) and numbers == sorted(set(numbers))
    within = 0 <= tasks[0] <= tasks[-1] < classifier.n_tasks_
    within = within and 0 <= numbers[0] <= numbers[-1] < classifier.n_taught_
    if not in_order or not within or not len(tasks) == len(numbers) == len(counts) == classes:
        raise MemoryFileError("its classes and the tasks that taught them do not belong together")
    if min(counts) < 0:
        raise MemoryFileError("a class of it has fewer samples than none")


def _check_part(role: str, template: Any, taught: Any, registry: Registry) -> None:
    kinds = parts_of(registry)
    named = template in registry if isinstance(template, str) else template is None
    fresh = isinstance(template, kinds) and getattr(template, "classes", None) == []
    if not (named or fresh) or not isinstance(taught, kinds):
        raise MemoryFileError(f"its {role} is none that this version knows")


def _check_taught(part: Memory | Head, numbers: list[int]) -> None:
    """Sizes first: then nothing that is made from the settings can be out of proportion."""
    stored = sum(component.bytes for component in part.components())
    if stored != sum(tensor.nbytes for tensor in part.tensors().values()):
        raise MemoryFileError(f"its {type(part).__name__} is not of the size that it should be")
    if sorted(part.classes) != numbers:
        raise MemoryFileError(f"its {type(part).__name__} does not know its {len(numbers)} classes")
    check_learned(part)


def _check_samples(classifier: FrugalClassifier) -> None:
    memory, labels = classifier.memory_, classifier.classes_.tolist()
    if not memory.tensors():  # it keeps nothing, and says so when it is asked
        return
    if isinstance(memory, GaussianMemory) and memory.covariance == "full":
        labels = labels[:1]  # each takes an eigendecomposition, and keeps it
    for label in labels:
        _check_finite(classifier.sample(label), classifier.n_features_in_)


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
