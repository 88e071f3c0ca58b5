"""The Bayes head, and densities of memories, against twins of SciPy and scikit-learn."""

from __future__ import annotations

import time
from pathlib import Path
from typing import cast

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from frugalvae import FrugalClassifier, make_head, make_memory
from frugalvae.errors import InputError
from frugalvae.heads.bayes import BayesHead
from frugalvae.memories import MEMORIES
from frugalvae.memories.base import DensityMemory, Memory
from frugalvae.memories.densities import Gaussians, Shrinkage, Whitener
from frugalvae.tasks import Replay, Task
from tests.conftest import blobs

SHRINKAGE = Shrinkage(own=0.3, ridge=0.05)
WITH_DENSITY = [name for name in MEMORIES if hasattr(MEMORIES.part(name), "log_density")]


def learned(memory: Memory, *tasks: Task) -> Memory:
    for task in tasks:
        memory.learn(task, torch.Generator().manual_seed(0))
    return memory


def drawn(own: np.ndarray, shared: np.ndarray) -> np.ndarray:
    """The covariance that shrinkage makes of a class's own and the shared one."""
    ridge = SHRINKAGE.ridge * np.trace(shared) / len(shared) * np.eye(len(shared))
    return SHRINKAGE.own * own + (1 - SHRINKAGE.own) * shared + ridge


def covariances(task: Task, diagonal: bool) -> list[np.ndarray]:
    own = [np.cov(task.of(label).double().numpy().T, bias=True) for label in task.classes]
    return [np.diag(np.diag(matrix)) for matrix in own] if diagonal else own


@pytest.mark.parametrize("covariance", ["diagonal", "full"])
def test_gaussians_are_drawn_towards_their_mean(covariance: str) -> None:
    task = blobs([0, 1, 2], spread=1.0)
    memory = learned(make_memory(f"gaussian-{covariance}"), task)
    found = memory.log_density(task.features.double(), SHRINKAGE)  # type: ignore[attr-defined]
    own = covariances(task, covariance == "diagonal")
    for label in task.classes:
        mean = task.of(label).double().numpy().mean(axis=0)
        twin = multivariate_normal(mean, drawn(own[label], np.mean(own, axis=0)))
        np.testing.assert_allclose(found[:, label], twin.logpdf(task.features.double()), rtol=1e-4)


def test_a_shared_covariance_gives_linear_discriminant_analysis() -> None:
    task, x = blobs([0, 1, 2], 60, spread=2.0), blobs([0, 1, 2], seed=5, spread=2.0).features
    memory = learned(make_memory("gaussian-shared"), task)
    found = memory.log_density(x.double(), Shrinkage(ridge=1e-6))  # type: ignore[attr-defined]
    twin = LinearDiscriminantAnalysis(solver="lsqr").fit(task.features.double(), task.labels)
    np.testing.assert_allclose(
        found.softmax(dim=1), twin.predict_proba(x.double()), rtol=1e-2, atol=1e-3
    )


def test_a_mixture_sums_its_parts() -> None:
    task = blobs([0, 1], 30, spread=1.0)
    memory = learned(make_memory("mixture", parts=3), task)
    parts = [part for mixture in memory.mixtures_.values() for part in mixture.variances]  # type: ignore[attr-defined]
    shared = torch.stack(parts).double().mean(dim=0).numpy()
    found = memory.log_density(task.features.double(), SHRINKAGE).exp()  # type: ignore[attr-defined]
    for label in task.classes:
        mixture = memory.mixtures_[label]  # type: ignore[attr-defined]
        expected = sum(
            float(weight)
            * multivariate_normal(
                mean.double(), drawn(np.diag(variance.double()), np.diag(shared))
            ).pdf(task.features.double())
            for weight, mean, variance in zip(
                mixture.weights, mixture.means, mixture.variances, strict=True
            )
        )
        np.testing.assert_allclose(found[:, label], expected, rtol=1e-3)


@pytest.mark.parametrize("own", [0.0, 0.2, 1.0])
def test_low_rank_covariances_by_woodbury_are_the_dense_ones(own: float) -> None:
    rng = torch.Generator().manual_seed(0)
    root, means, factors = (torch.randn(*s, generator=rng) for s in ((9, 9), (4, 9), (4, 3, 9)))
    factors[1] = 0  # a class without directions, and one with fewer
    factors[2, 1:] = 0
    shared, x = (root @ root.T).double(), torch.randn(20, 9, generator=rng).double()
    found = Gaussians.of(Whitener.of(shared, 0.0), means, factors, own).log_density(x)
    for label in range(4):
        dense = shared + own * factors[label].double().T @ factors[label].double()
        twin = multivariate_normal(means[label].double(), dense)
        np.testing.assert_allclose(found[:, label], twin.logpdf(x), rtol=1e-5)


@pytest.mark.parametrize("name", WITH_DENSITY)
def test_every_memory_with_densities_classifies_by_them(name: str) -> None:
    memory, rng, head = make_memory(name), torch.Generator().manual_seed(0), BayesHead()
    for classes in ([0, 1], [2], [3, 4]):
        memory.learn(blobs(classes), rng)
        head.learn(blobs(classes), Replay(memory, rng))
    test = blobs(list(range(5)), seed=9)
    logits = head.logits(test.features.double())
    assert logits.isfinite().all()
    assert (logits.argmax(dim=1) == test.labels).float().mean() > 0.95


def test_a_memory_without_densities_is_refused_before_anything_is_learned() -> None:
    classifier = FrugalClassifier("store-all", "bayes")
    with pytest.raises(InputError, match="StoreAllMemory has none; take a memory that has"):
        classifier.fit([[0.0], [1.0]], ["a", "b"])
    assert not hasattr(classifier, "memory_")


def test_a_file_holds_the_memory_once_and_the_head_finds_it_again(tmp_path: Path) -> None:
    task = blobs([0, 1, 2], dim=40)
    x, y = task.features.numpy(), task.labels.numpy()
    classifier = FrugalClassifier().fit(x, y)
    classifier.save(tmp_path / "bayes.frugal")
    FrugalClassifier(head="nearest-mean").fit(x, y).save(tmp_path / "means.frugal")
    sizes = [(tmp_path / f"{name}.frugal").stat().st_size for name in ("bayes", "means")]
    assert sizes[0] <= sizes[1]
    again = FrugalClassifier.load(tmp_path / "bayes.frugal")
    assert again.head_.memory_ is again.memory_  # type: ignore[attr-defined]
    assert np.array_equal(again.predict_proba(x), classifier.predict_proba(x))


def test_the_head_sees_what_is_learned_updated_and_forgotten() -> None:
    task = blobs([0, 1, 2])
    x, y = task.features.numpy(), task.labels.numpy()
    classifier = FrugalClassifier().fit(x[y < 2], y[y < 2])
    classifier.predict(x)  # densities are ready, and out of date with the next line
    classifier.partial_fit(x[y == 2], y[y == 2])
    assert (classifier.predict(x) == y).all()
    classifier.forget(1, scrub=True)
    assert set(classifier.predict(x)) == {0, 2}
    assert classifier.head_.memory_ is classifier.memory_  # type: ignore[attr-defined]


def test_tempering_changes_probabilities_and_no_prediction() -> None:
    task = blobs([0, 1, 2], dim=100, spread=3.0)
    x = blobs([0, 1, 2], dim=100, spread=3.0, seed=4).features.numpy()
    sure, modest = (
        FrugalClassifier(head=make_head("bayes", tempering=power)).fit(
            task.features.numpy(), task.labels.numpy()
        )
        for power in (10.0, 1.0)
    )
    assert (sure.predict(x) == modest.predict(x)).all()
    assert sure.predict_proba(x).max(axis=1).mean() > modest.predict_proba(x).max(axis=1).mean()


def test_ten_thousand_features_against_two_hundred_classes_take_seconds() -> None:
    rng = torch.Generator().manual_seed(0)
    factors, means = torch.randn(200, 4, 771, generator=rng), torch.randn(200, 771, generator=rng)
    gaussians = Gaussians.of(Whitener.of(torch.eye(771).double(), 0.1), means, factors)
    x = torch.randn(10_000, 771, generator=rng)
    started = time.process_time()  # of this process: others may be busy, too
    gaussians.log_density(x)
    assert time.process_time() - started < 20  # it takes about one


@pytest.mark.parametrize("name", ["factors", "gaussian-shared"])
def test_the_fewer_samples_the_wider_the_ridge(name: str) -> None:
    rng = torch.Generator().manual_seed(0)
    memory = cast("DensityMemory", make_memory(name))
    for labels, ridge in ((torch.arange(8) % 2, 16 / 8), (2 + torch.arange(152) % 2, 16 / 160)):
        memory.learn(Task(torch.randn(len(labels), 16, generator=rng), labels), rng)
        x = torch.randn(5, 16, generator=rng).double()
        torch.testing.assert_close(
            memory.log_density(x), memory.log_density(x, Shrinkage(0.1, ridge))
        )
    memory.learn(Task(torch.randn(9000, 16, generator=rng), 4 + torch.arange(9000) % 2), rng)
    torch.testing.assert_close(memory.log_density(x), memory.log_density(x, Shrinkage(0.1, 0.03)))


@pytest.mark.parametrize("wrong", [{"own": 1.5}, {"ridge": 0.0}, {"tempering": 0}])
def test_bad_settings_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError):
        make_head("bayes", **wrong)
