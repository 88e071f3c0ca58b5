"""The cosine head: when it draws, and that fitting helps."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import log_softmax

from frugalvae.maths.arrays import Array
from frugalvae.paper.equations import cosine_logits
from frugalvae.parts.cosine import CosineHead
from frugalvae.parts.protocols import Replay, Task
from frugalvae.parts.store_all import StoreAllMemory
from tests.conftest import blobs


def replay_of(memory: StoreAllMemory, task: Task) -> Replay:
    rng = np.random.default_rng(0)
    memory.learn(task, rng)
    return Replay(memory, rng)


class CountingMemory(StoreAllMemory):
    """Counts how often it is asked for samples."""

    calls = 0

    def sample(self, label: int, count: int, rng: np.random.Generator) -> Array:
        self.calls += 1
        return super().sample(label, count, rng)


@pytest.mark.parametrize(("resample", "draws"), [(True, 5), (False, 1)])
def test_the_cosine_head_resamples_every_epoch_or_never(resample: bool, draws: int) -> None:
    memory = CountingMemory()
    replay = replay_of(memory, blobs([0, 1]))
    CosineHead(epochs=5, resample=resample).learn(blobs([0, 1]), replay)
    assert memory.calls == 2 * draws


def test_fitting_improves_on_where_the_cosine_head_starts() -> None:
    task = blobs(list(range(12)), dim=4, spread=1.5, per_class=60)
    losses = []
    for epochs in (0, 30):
        head = CosineHead(epochs=epochs)
        head.learn(task, replay_of(StoreAllMemory(), task))
        log_probabilities = log_softmax(head.logits(task.features), axis=1)
        losses.append(-log_probabilities[np.arange(len(task.labels)), task.labels].mean())
    assert losses[1] < losses[0] - 0.05


def test_predicting_in_numpy_is_equation_3() -> None:
    task = blobs([0, 1, 2])
    head = CosineHead(epochs=2)
    head.learn(task, replay_of(StoreAllMemory(), task))
    x, vectors = torch.tensor(task.features).double(), torch.tensor(head.vectors_).double()
    expected = cosine_logits(x, vectors, float(head.temperature_))
    np.testing.assert_allclose(head.logits(task.features), expected, rtol=1e-9, atol=1e-9)


def anchored(anchor: float, task: Task) -> CosineHead:
    """A head whose class vectors start from text features that know nothing of the samples."""
    rng = np.random.default_rng(1)
    text = {label: rng.normal(size=task.features.shape[1]) for label in task.classes}
    task = Task(task.features, task.labels, text)
    head = CosineHead("text", anchor=anchor, epochs=30, batch_size=64)
    head.register(task)
    head.learn(task, replay_of(StoreAllMemory(), task))
    return head


def test_an_anchor_holds_class_vectors_near_their_text_features() -> None:
    task = blobs([0, 1, 2, 3])
    distances, correct = [], []
    for anchor in (0.0, 1.0, 1000.0):
        head = anchored(anchor, task)
        text = np.stack([head.text_[label] for label in head.classes])
        text /= np.linalg.norm(text, axis=1, keepdims=True)
        distances.append(np.linalg.norm(head.vectors_ - text, axis=1).max())
        correct.append((head.logits(task.features).argmax(axis=1) == task.labels).mean())
    assert distances[0] > distances[1] > distances[2]
    assert distances[2] < 0.01
    assert correct[0] > correct[2]  # held that tightly, it is the zero-shot classifier
