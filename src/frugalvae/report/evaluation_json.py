"""All scores of an evaluation as JSON, for scripts."""

from __future__ import annotations

from typing import Any

import numpy as np

from frugalvae.report.evaluation import Evaluation


def to_json(evaluation: Evaluation) -> dict[str, Any]:
    """All scores and mistakes, as plain JSON values."""
    return {
        "about": dict(evaluation.about),
        "samples": len(evaluation.truth),
        "accuracy": evaluation.accuracy,
        "interval_95": list(evaluation.interval),
        "mean_class_accuracy": evaluation.mean_class_accuracy,
        "expected_calibration_error": evaluation.calibration_error,
        "tasks": [
            {"task": task, "samples": int(count), "accuracy": _or_none(share)}
            for task, (count, share) in enumerate(
                zip(evaluation.task_counts, evaluation.task_accuracy, strict=True), start=1
            )
        ],
        "classes": [
            {"class": name, "task": int(task) + 1, "samples": int(n), "accuracy": _or_none(a)}
            for name, task, n, a in zip(
                evaluation.classes,
                evaluation.task_of_class,
                evaluation.class_counts,
                evaluation.class_accuracy,
                strict=True,
            )
        ],
        "confused": [
            {
                "truth": evaluation.classes[pair.truth],
                "taken_for": evaluation.classes[pair.taken_for],
                "count": pair.count,
                "of": pair.total,
            }
            for pair in evaluation.pairs
        ],
        "wrong": [
            {
                "sample": evaluation.samples[row],
                "truth": evaluation.classes[evaluation.truth[row]],
                "taken_for": evaluation.classes[evaluation.answers[row]],
                "probability": float(evaluation.confidence[row]),
            }
            for row in evaluation.wrong
        ],
        "unreadable": dict(evaluation.skipped),
        "unknown_classes": dict(evaluation.unknown),
        "memory": evaluation.memory.to_json(),
        "file_size": evaluation.file_size,
    }


def _or_none(share: float) -> float | None:
    return None if np.isnan(share) else float(share)
