"""What a worker does: train an encoder, or make a run."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

from frugalvae.classifier import FrugalClassifier
from frugalvae.files import json_digest
from frugalvae.images.feature_file import Features
from frugalvae_lab.bench.draw import drawn
from frugalvae_lab.bench.grid import Cell
from frugalvae_lab.bench.observe import make_observer
from frugalvae_lab.bench.sharing import LearnedStream
from frugalvae_lab.bench.stream_run import run_stream
from frugalvae_lab.bench.task_split import split_classes
from frugalvae_lab.images.dataset import Images

LAST_STREAM = LearnedStream()  # of the run that this process made last


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
    classifier = FrugalClassifier(
        LAST_STREAM.share(memory, cell),
        cell.head.make(),
        random_state=cell.seed,
    )
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
    for spent, saved in zip(record.seconds, LAST_STREAM.saved, strict=False):
        spent["learn"] += saved
    record.observed = observer.observed
    plain = record.to_json()
    del plain["settings"]  # the cell has them all
    plain["warnings"] = sorted({str(warning.message) for warning in caught})
    return plain
