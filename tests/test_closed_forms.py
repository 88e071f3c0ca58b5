"""Parts whose result is known in closed form, against independent implementations."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge

from frugalvae.heads.closed_form import NearestMeanHead, RidgeHead, StreamingLDAHead
from frugalvae.heads.cosine import CosineHead
from frugalvae.heads.ranpac import RanPACHead
from frugalvae.memories.base import Memory
from frugalvae.memories.gaussian import Covariance, GaussianMemory
from frugalvae.memories.mixture import MixtureMemory
from frugalvae.memories.store_all import NoMemory, StoreAllMemory
from frugalvae.tasks import Replay, Task
from tests.conftest import blobs

COVARIANCES: list[Covariance] = ["diagonal", "shared", "full"]


def replay_of(memory: Memory, *tasks: Task, seed: int = 0) -> Replay:
    rng = torch.Generator().manual_seed(seed)
    for task in tasks:
        memory.learn(task, rng)
    return Replay(memory, rng)


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_gaussian_samples_have_the_mean_and_covariance_of_the_data(
    covariance: Covariance, rng: torch.Generator
) -> None:
    x = torch.randn(40, 3, generator=rng) @ torch.tensor([[2.0, 1, 0], [0, 1, 1], [0, 0, 0.5]]) + 4
    memory = GaussianMemory(covariance)
    memory.learn(Task(x, torch.zeros(40, dtype=torch.long)), rng)
    drawn = memory.sample(0, 100_000, rng)
    expected = torch.cov(x.T, correction=0)
    if covariance == "diagonal":
        expected = expected.diag().diag()
    torch.testing.assert_close(drawn.mean(dim=0), x.mean(dim=0), atol=0.03, rtol=0)
    torch.testing.assert_close(torch.cov(drawn.T), expected, atol=0.1, rtol=0)


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_gaussians_learned_task_by_task_equal_those_learned_at_once(
    covariance: Covariance, rng: torch.Generator
) -> None:
    parts = [blobs([0, 1]), blobs([2]), blobs([3, 4])]
    stream, batch = GaussianMemory(covariance), GaussianMemory(covariance)
    for part in parts:
        stream.learn(part, rng)
    batch.learn(
        Task(torch.cat([p.features for p in parts]), torch.cat([p.labels for p in parts])), rng
    )
    for key, value in batch.arrays().items():
        torch.testing.assert_close(stream.arrays()[key], value)


def test_a_full_covariance_of_few_samples_never_leaves_their_span(rng: torch.Generator) -> None:
    memory = GaussianMemory("full")
    x = torch.randn(3, 10, generator=rng)
    memory.learn(Task(x, torch.zeros(3, dtype=torch.long)), rng)
    centred = memory.sample(0, 50, rng) - x.mean(dim=0)
    assert torch.linalg.matrix_rank(centred, rtol=1e-3) == 2


def test_mixture_finds_separate_parts(rng: torch.Generator) -> None:
    x = torch.cat([torch.randn(50, 2, generator=rng) * 0.1 + 5 * k for k in range(3)])
    memory = MixtureMemory(parts=3)
    memory.learn(Task(x, torch.zeros(150, dtype=torch.long)), rng)
    drawn = memory.sample(0, 3000, rng)
    nearest = (drawn[:, 0] / 5).round()
    assert ((drawn[:, 0] - 5 * nearest).abs() < 0.6).all()
    assert torch.bincount(nearest.long(), minlength=3).float().std() < 100


def test_streaming_lda_is_linear_discriminant_analysis() -> None:
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(6, 6))
    x = np.concatenate([rng.normal(size=(40, 6)) @ mixing + rng.normal(size=6) for _ in range(4)])
    y = np.repeat(np.arange(4), 40)
    head = StreamingLDAHead(shrinkage=0.0)
    for label in range(4):
        rows = torch.as_tensor(x[y == label], dtype=torch.float64)
        head.learn(Task(rows, torch.full((40,), label)), None)
    oracle = LinearDiscriminantAnalysis(solver="lsqr").fit(x, y)
    ours = head.logits(torch.as_tensor(x)).log_softmax(dim=1).numpy()
    np.testing.assert_allclose(ours, oracle.predict_log_proba(x), atol=1e-6)


def test_ridge_agrees_with_scikit_learn() -> None:
    replay = replay_of(StoreAllMemory(), blobs([0, 1]), blobs([2]))
    head = RidgeHead(samples=50, penalty=0.1, scale=1.0)
    state = replay.rng.get_state()
    head.learn(blobs([2]), replay)
    replay.rng.set_state(state)
    x, y = (part.numpy() for part in replay.draw(50))
    centred = x - x.mean(axis=0)
    penalty = 0.1 * np.mean(np.sum(centred.astype(float) ** 2, axis=0))
    oracle = Ridge(alpha=penalty).fit(x.astype(float), np.eye(3)[y])
    np.testing.assert_allclose(head.logits(torch.as_tensor(x)), oracle.predict(x), atol=1e-4)


def test_ranpac_is_ridge_regression_on_random_features() -> None:
    tasks = [blobs([0, 1]), blobs([2])]
    head = RanPACHead(width=30, penalties=(3.0,), scale=1.0)
    replay = Replay(NoMemory(), torch.Generator().manual_seed(0))
    for task in tasks:
        head.learn(task, replay)
    x = torch.cat([task.features for task in tasks])
    hidden = head._hidden(x).double()
    targets = torch.eye(3, dtype=torch.float64)[torch.cat([task.labels for task in tasks])]
    gram = hidden.T @ hidden + 3.0 * torch.eye(30)
    oracle = hidden @ torch.linalg.solve(gram, hidden.T @ targets)
    torch.testing.assert_close(head.logits(x).double(), oracle, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_ranpac_passes_over_penalties_that_rounding_swallows(scale: float) -> None:
    """At a large scale the small penalties leave the Gram matrix singular in float32."""
    head = RanPACHead(width=300)
    replay = Replay(NoMemory(), torch.Generator().manual_seed(0))
    for classes in ([0, 1], [2]):
        task = blobs(classes)
        head.learn(Task(scale * task.features, task.labels), replay)
    test = blobs([0, 1, 2], seed=9)
    logits = head.logits(scale * test.features)
    assert logits.isfinite().all()
    assert torch.equal(logits.argmax(dim=1), test.labels)


def test_nearest_mean_is_nearest() -> None:
    head = NearestMeanHead()
    head.learn(Task(torch.tensor([[0.0, 0], [2, 0], [9, 9]]), torch.tensor([0, 0, 1])), None)
    torch.testing.assert_close(
        head.logits(torch.tensor([[1.0, 1.0]])), torch.tensor([[-0.5, -64.0]])
    )


class CountingMemory(StoreAllMemory):
    """Counts how often it is asked for samples."""

    calls = 0

    def sample(self, label: int, count: int, rng: torch.Generator) -> torch.Tensor:
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
        logits = head.logits(task.features)
        losses.append(float(torch.nn.functional.cross_entropy(logits, task.labels)))
    assert losses[1] < losses[0] - 0.05
