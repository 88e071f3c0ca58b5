"""Parts whose result is known in closed form, against independent implementations."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge

from frugalvae.parts.closed_form import NearestMeanHead, RidgeHead, StreamingLDAHead
from frugalvae.parts.gaussian import Covariance, GaussianMemory
from frugalvae.parts.protocols import Memory, Replay, Task
from frugalvae.parts.store_all import StoreAllMemory
from tests.conftest import blobs

COVARIANCES: list[Covariance] = ["diagonal", "shared", "full"]


def replay_of(memory: Memory, *tasks: Task, seed: int = 0) -> Replay:
    rng = np.random.default_rng(seed)
    for task in tasks:
        memory.learn(task, rng)
    return Replay(memory, rng)


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_gaussian_samples_have_the_mean_and_covariance_of_the_data(
    covariance: Covariance, rng: np.random.Generator
) -> None:
    x = rng.normal(size=(40, 3)) @ [[2.0, 1, 0], [0, 1, 1], [0, 0, 0.5]] + 4
    memory = GaussianMemory(covariance)
    memory.learn(Task(x, np.zeros(40, int)), rng)
    drawn = memory.sample(0, 100_000, rng)
    expected = np.cov(x.T, bias=True)
    if covariance == "diagonal":
        expected = np.diag(np.diag(expected))
    np.testing.assert_allclose(drawn.mean(axis=0), x.mean(axis=0), atol=0.03, rtol=0)
    np.testing.assert_allclose(np.cov(drawn.T), expected, atol=0.1, rtol=0)


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_gaussians_learned_task_by_task_equal_those_learned_at_once(
    covariance: Covariance, rng: np.random.Generator
) -> None:
    parts = [blobs([0, 1]), blobs([2]), blobs([3, 4])]
    stream, batch = GaussianMemory(covariance), GaussianMemory(covariance)
    for part in parts:
        stream.learn(part, rng)
    rows, labels = ([getattr(part, name) for part in parts] for name in ("features", "labels"))
    batch.learn(Task(np.concatenate(rows), np.concatenate(labels)), rng)
    assert stream.arrays().keys() == batch.arrays().keys()
    for key, value in batch.arrays().items():
        np.testing.assert_allclose(stream.arrays()[key], value, rtol=1e-7, atol=1e-7)


def test_a_full_covariance_of_few_samples_never_leaves_their_span(rng: np.random.Generator) -> None:
    memory = GaussianMemory("full")
    x = rng.normal(size=(3, 10))
    memory.learn(Task(x, np.zeros(3, int)), rng)
    centred = memory.sample(0, 50, rng) - x.mean(axis=0)
    assert np.linalg.matrix_rank(centred, rtol=1e-3) == 2


def test_streaming_lda_is_linear_discriminant_analysis() -> None:
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(6, 6))
    x = np.concatenate([rng.normal(size=(40, 6)) @ mixing + rng.normal(size=6) for _ in range(4)])
    y = np.repeat(np.arange(4), 40)
    head = StreamingLDAHead(shrinkage=0.0)
    for label in range(4):
        head.learn(Task(x[y == label], np.full(40, label)), None)
    oracle = LinearDiscriminantAnalysis(solver="lsqr").fit(x, y)
    ours = log_softmax(head.logits(x), axis=1)
    np.testing.assert_allclose(ours, oracle.predict_log_proba(x), atol=1e-6)


def test_ridge_agrees_with_scikit_learn() -> None:
    replay = replay_of(StoreAllMemory(), blobs([0, 1]), blobs([2]))
    head = RidgeHead(samples=50, penalty=0.1, scale=1.0)
    twin = Replay(replay.memory, copy.deepcopy(replay.rng))  # draws the same
    head.learn(blobs([2]), replay)
    x, y = twin.draw(50)
    centred = x - x.mean(axis=0)
    penalty = 0.1 * np.mean(np.sum(centred.astype(float) ** 2, axis=0))
    oracle = Ridge(alpha=penalty).fit(x.astype(float), np.eye(3)[y])
    np.testing.assert_allclose(head.logits(x), oracle.predict(x), atol=1e-4)


def test_nearest_mean_is_nearest() -> None:
    head = NearestMeanHead()
    head.learn(Task(np.array([[0.0, 0], [2, 0], [9, 9]]), np.array([0, 0, 1])), None)
    np.testing.assert_allclose(head.logits(np.array([[1.0, 1.0]])), [[-0.5, -64.0]], rtol=1.3e-6)
