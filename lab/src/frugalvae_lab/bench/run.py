"""One run: teach a classifier a stream of tasks, measure it after each, and record it."""

from __future__ import annotations

import base64
import math
import os
import platform
import time
import warnings
import zlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from importlib import metadata as installed
from typing import Any

import numpy as np
from numpy.typing import NDArray

import frugalvae
from frugalvae.classifier import FrugalClassifier
from frugalvae.files import json_digest
from frugalvae.images.feature_file import Features
from frugalvae.verbs.evaluate import calibration_error, confusion
from frugalvae_lab.bench import metrics
from frugalvae_lab.bench.grid import Cell
from frugalvae_lab.bench.observe import make_observer
from frugalvae_lab.bench.tasks import drawn, split_classes
from frugalvae_lab.images.dataset import Images

LARGEST_COUNT = 2**16 - 1  # of test samples of one class that get one answer


@dataclass
class Record:
    """What happened in a run.

    Attributes
    ----------
    settings
        Everything that decides the result: data, tasks, memory, head, seed.
    versions
        Versions of Python and packages, and the machine.
    tasks
        The classes of each task.
    accuracy
        Shape (tasks, tasks): row ``t`` after task ``t``, NaN above the diagonal.
    metrics
        Scores computed from that matrix, and of the predictions after the last task.
    confusion
        Confusion matrix after the last task: number of test samples by true class (rows) and
        predicted class (columns), classes in the order of ``tasks``; see :func:`pack_counts`.
    layers
        For each task and layer of a null-space decoder, R, the free directions and the size.
    priors
        For each task, how its class means were placed.
    memory
        Parameters and bytes by component.
    seconds
        For each task, the time that the process worked to learn it, until it can answer, and to
        predict all test samples so far.
    observed
        What an observer recorded besides; see :mod:`frugalvae_lab.bench.observe`.
    """

    settings: dict[str, Any]
    versions: dict[str, str]
    tasks: list[list[Any]]
    accuracy: list[list[float]] = field(default_factory=list)
    metrics: dict[str, float] = field(default_factory=dict)
    confusion: str = ""
    layers: list[dict[str, Any]] = field(default_factory=list)
    priors: list[dict[str, Any]] = field(default_factory=list)
    memory: dict[str, Any] = field(default_factory=dict)
    seconds: list[dict[str, float]] = field(default_factory=list)
    observed: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; NaN becomes null."""
        return _plain(asdict(self))

    @property
    def total_seconds(self) -> float:
        """Time to learn and to answer in all tasks."""
        return sum(sum(task.values()) for task in self.seconds)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value.item() if isinstance(value, np.generic) else value


def pack_counts(counts: NDArray[np.int64]) -> str:
    """A matrix of counts as text: 16-bit integers, deflated, in base 64.

    >>> unpack_counts(pack_counts(np.eye(2, dtype=int)))
    array([[1, 0],
           [0, 1]])
    """
    if counts.max(initial=0) > LARGEST_COUNT:
        raise ValueError(f"a count of {counts.max()} does not fit 16 bits")
    packed = zlib.compress(counts.astype("<u2").tobytes(), 9)
    return base64.b64encode(packed).decode()


def unpack_counts(text: str) -> NDArray[np.int64]:
    """The square matrix that :func:`pack_counts` packed."""
    flat = np.frombuffer(zlib.decompress(base64.b64decode(text)), "<u2")
    return flat.reshape(math.isqrt(len(flat)), -1).astype(np.int64)


def versions() -> dict[str, str]:
    """Versions of Python and packages, and the machine."""

    def version(package: str) -> str:
        try:
            return installed.version(package)
        except installed.PackageNotFoundError:
            return "not installed"

    threads = os.environ.get("OMP_NUM_THREADS") or os.cpu_count()
    return {
        "frugalvae": frugalvae.__version__,
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "torch", "scikit-learn")},
        "machine": f"{platform.machine()}, {threads} threads",
    }


# --------------------------------------------------------------------------- a stream


def run_stream(
    classifier: FrugalClassifier,
    features: Features,
    tasks: int | Sequence[int],
    seed: int,
    after_task: Callable[[FrugalClassifier, Record], None] | None = None,
    settings: dict[str, Any] | None = None,
    *,
    every_task: bool = True,
) -> Record:
    """Teach the tasks one after the other; after each, measure accuracy on all classes so far.

    Parameters
    ----------
    seed
        Decides the order of the classes. The classifier has its own seed.
    after_task
        Called after each task with the classifier and the record so far.
    settings
        Recorded besides the data, task sizes and seed.
    every_task
        Measure after each task; otherwise only after the last one, which saves fitting the
        head in between. The last row of accuracies is the same.
    """
    parts = split_classes(features.classes, tasks, seed)
    record = Record(
        settings={
            "data": features.name,
            "task_sizes": [len(part) for part in parts],
            "seed": seed,
            **(settings or {}),
        },
        versions=versions(),
        tasks=[part.tolist() for part in parts],
    )
    for number, part in enumerate(parts, start=1):
        measured = every_task or number == len(parts)
        tested = parts[:number] if measured else []
        truth, prediction, confidence = _teach(classifier, features, part, tested, record)
        row = metrics.accuracy_row(truth, prediction, parts[:number], len(parts))
        record.accuracy.append(row.tolist())
        if after_task is not None:
            after_task(classifier, record)
    record.confusion = pack_counts(confusion(truth, prediction, np.concatenate(parts)))
    counts = [int(np.isin(features.y_test, part).sum()) for part in parts]
    record.metrics = {
        "final_average_accuracy": metrics.final_average_accuracy(record.accuracy),
        "accuracy": float(np.mean(prediction == truth)),
        "macro_accuracy": metrics.macro_accuracy(truth, prediction),
        "calibration_error": calibration_error(confidence, prediction == truth),
    }
    if every_task:
        record.metrics |= {
            "average_incremental_accuracy": metrics.average_incremental_accuracy(
                record.accuracy, counts
            ),
            "forgetting": metrics.forgetting(record.accuracy),
            "backward_transfer": metrics.backward_transfer(record.accuracy),
        }
    record.layers = [asdict(state) for state in getattr(classifier.memory_, "layers_", [])]
    record.priors = [asdict(prior) for prior in getattr(classifier.memory_, "priors_", [])]
    record.memory = classifier.memory_report().to_json()
    return record


def _teach(
    classifier: FrugalClassifier,
    features: Features,
    part: NDArray[Any],
    tested: list[NDArray[Any]],
    record: Record,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float64]]:
    """Teach a task; labels, predictions and their probabilities of all test samples of some tasks.

    A head may put off work until it is asked: the first question counts as learning.
    """
    rows = np.isin(features.y_train, part)
    x, y = features.x_train[rows], features.y_train[rows]
    seen = np.isin(features.y_test, np.concatenate([part[:0], *tested]))
    truth, asked = features.y_test[seen], features.x_test[seen]
    started = time.process_time()
    classifier.partial_fit(x, y, text=features.text, defer_head=not tested)
    if len(truth):
        classifier.predict(asked[:1])
    learned = time.process_time()
    prediction, confidence = truth, np.zeros(0)
    if len(truth):
        probabilities = classifier.predict_proba(asked)  # (n, k)
        prediction = classifier.classes_[probabilities.argmax(axis=1)]
        confidence = probabilities.max(axis=1)
    record.seconds.append({"learn": learned - started, "predict": time.process_time() - learned})
    return truth, prediction, confidence


# --------------------------------------------------------------------------- a cell


@dataclass(frozen=True)
class Encoding:
    """An encoder, trained on the first task of a stream: several runs share its features."""

    cell: Cell

    @property
    def key(self) -> str:
        """What decides the features: images, encoder, seed, and how many classes come first."""
        return json_digest(
            {
                "data": self.cell.fingerprint,
                "encoder": self.cell.encoder and self.cell.encoder.changed(),
                "seed": self.cell.seed,
                "held_out": self.cell.held_out,
                "first": isinstance(self.cell.tasks, dict) and self.cell.tasks["first"],
                "tasks": None if isinstance(self.cell.tasks, dict) else self.cell.tasks,
            }
        )[:16]

    @property
    def name(self) -> str:
        """What a person calls it."""
        assert self.cell.encoder is not None
        return (
            f"{self.cell.encoder.name} on the first task of {self.cell.data}, seed {self.cell.seed}"
        )


def encode_first_task(encoding: Encoding, images: Images) -> Features:
    """Train the encoder on the first task's images, and encode everything."""
    from frugalvae_lab.encoders.resnet18 import first_task_features

    cell = encoding.cell
    assert cell.encoder is not None
    if cell.held_out is not None:
        images = images.held_out(cell.held_out, seed=0)
    first = split_classes(images.classes, cell.task_sizes(len(images.classes)), cell.seed)[0]
    return first_task_features(images, first.tolist(), cell.encoder.make(), cell.seed)


def make_run(cell: Cell, features: Features) -> dict[str, Any]:
    """Stream the data of a cell through its memory and head; the record as plain JSON."""
    if cell.held_out is not None and cell.encoder is None:
        features = features.held_out(cell.held_out, seed=0)
    features = drawn(features, cell.shots, cell.long_tail, cell.seed)
    observer = make_observer(cell.observe, features)
    memory = observer.memory(cell.memory)
    classifier = FrugalClassifier(memory, cell.head.make(), random_state=cell.seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        record = run_stream(
            classifier,
            features,
            cell.task_sizes(len(features.classes)),
            cell.seed,
            observer.after_task,
            every_task=cell.every_task,
        )
    record.observed = observer.observed
    plain = record.to_json()
    del plain["settings"]  # the cell has them all
    plain["warnings"] = sorted({str(warning.message) for warning in caught})
    return plain
