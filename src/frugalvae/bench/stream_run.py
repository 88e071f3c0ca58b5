"""Teach a classifier one stream of tasks, and measure it after each."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix

from frugalvae.bench import metrics
from frugalvae.bench.record import Record, pack_counts, versions
from frugalvae.bench.task_split import split_classes
from frugalvae.classifier import FrugalClassifier
from frugalvae.images.feature_file import Features


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
        rows = np.isin(features.y_train, part)
        started = time.perf_counter()
        classifier.partial_fit(
            features.x_train[rows],
            features.y_train[rows],
            text=features.text,
            defer_head=not measured,
        )
        learned = time.perf_counter()
        seen = np.isin(features.y_test, np.concatenate(parts[:number])) & measured
        x_seen, y_seen = features.x_test[seen], features.y_test[seen]
        prediction = classifier.predict(x_seen) if len(y_seen) else y_seen
        record.seconds.append(
            {"learn": learned - started, "predict": time.perf_counter() - learned}
        )
        row = metrics.accuracy_row(y_seen, prediction, parts[:number], len(parts))
        record.accuracy.append(row.tolist())
        if after_task is not None:
            after_task(classifier, record)
    record.confusion = pack_counts(
        confusion_matrix(y_seen, prediction, labels=np.concatenate(parts))
    )
    counts = [int(np.isin(features.y_test, part).sum()) for part in parts]
    record.metrics = scores(record.accuracy, counts, every_task)
    record.layers = [asdict(state) for state in getattr(classifier.memory_, "layers_", [])]
    record.priors = [asdict(prior) for prior in getattr(classifier.memory_, "priors_", [])]
    record.memory = classifier.memory_report().to_json()
    return record


def scores(
    accuracy: list[list[float]], test_counts: Sequence[int], every_task: bool = True
) -> dict[str, float]:
    """All scores of a matrix of accuracies; if only its last row was measured, just one."""
    final = {"final_average_accuracy": metrics.final_average_accuracy(accuracy)}
    if not every_task:
        return final
    return final | {
        "average_incremental_accuracy": metrics.average_incremental_accuracy(accuracy, test_counts),
        "forgetting": metrics.forgetting(accuracy),
        "backward_transfer": metrics.backward_transfer(accuracy),
    }
