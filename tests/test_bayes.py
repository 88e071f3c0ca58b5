"""The Bayes head, and densities of memories, against twins of SciPy and scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import multivariate_normal
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from frugalvae import FrugalClassifier, make_head, make_memory
from frugalvae.errors import InputError
from frugalvae.maths.arrays import Array
from frugalvae.maths.gaussians import Shrinkage
from frugalvae.parts import MEMORIES
from frugalvae.parts.bayes import BayesHead
from frugalvae.parts.protocols import DensityMemory, Memory, Replay, Task
from frugalvae.parts.registry import parameters_of
from tests.conftest import SMALL, accuracy, blobs

SHRINKAGE = Shrinkage(own=0.3, ridge=0.05)


def learned(memory: Memory, *tasks: Task) -> Memory:
    for task in tasks:
        memory.learn(task, np.random.default_rng(0))
    return memory


def drawn(own: Array, shared: Array) -> Array:
    """The covariance that shrinkage makes of a class's own and the shared one."""
    ridge = SHRINKAGE.ridge * np.trace(shared) / len(shared) * np.eye(len(shared))
    return SHRINKAGE.own * own + (1 - SHRINKAGE.own) * shared + ridge


def covariances(task: Task, diagonal: bool) -> list[Array]:
    own = [np.cov(task.of(label).astype(np.float64).T, bias=True) for label in task.classes]
    return [np.diag(np.diag(matrix)) for matrix in own] if diagonal else own


@pytest.mark.parametrize("covariance", ["diagonal", "full"])
def test_gaussians_are_drawn_towards_their_mean(covariance: str) -> None:
    task = blobs([0, 1, 2], spread=1.0)
    memory = learned(make_memory(f"gaussian-{covariance}"), task)
    x = task.features.astype(np.float64)
    found = memory.log_density(x, SHRINKAGE)  # type: ignore[attr-defined]
    own = covariances(task, covariance == "diagonal")
    for label in task.classes:
        mean = x[task.labels == label].mean(axis=0)
        twin = multivariate_normal(mean, drawn(own[label], np.mean(own, axis=0)))
        np.testing.assert_allclose(found[:, label], twin.logpdf(x), rtol=1e-4)


def test_a_shared_covariance_gives_linear_discriminant_analysis() -> None:
    task, x = blobs([0, 1, 2], 60, spread=2.0), blobs([0, 1, 2], seed=5, spread=2.0).features
    memory = learned(make_memory("gaussian-shared"), task)
    found = memory.log_density(x, Shrinkage(ridge=1e-6))  # type: ignore[attr-defined]
    twin = LinearDiscriminantAnalysis(solver="lsqr").fit(
        task.features.astype(np.float64), task.labels
    )
    expected = twin.predict_proba(x.astype(np.float64))
    np.testing.assert_allclose(softmax(found, axis=1), expected, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("name", MEMORIES)
def test_every_memory_with_densities_classifies_by_them(name: str) -> None:
    if not hasattr(MEMORIES.part(name), "log_density"):
        pytest.skip(f"{name} has no densities")
    known = parameters_of(MEMORIES.part(name))
    small = {key: value for key, value in SMALL.items() if key in known}
    memory, rng, head = make_memory(name, **small), np.random.default_rng(0), BayesHead()
    for classes in ([0, 1], [2], [3, 4]):
        memory.learn(blobs(classes), rng)
        head.learn(blobs(classes), Replay(memory, rng))
    test = blobs(list(range(5)), seed=9)
    logits = head.logits(test.features)
    assert np.isfinite(logits).all()
    least = 0.8 if small else 0.95  # a small network of few steps errs at times
    assert accuracy(test.labels, logits.argmax(axis=1)) > least


def test_a_memory_without_densities_is_refused_before_anything_is_learned() -> None:
    classifier = FrugalClassifier("store-all", "bayes")
    with pytest.raises(InputError, match="StoreAllMemory has none; take a memory that has"):
        classifier.fit([[0.0], [1.0]], ["a", "b"])
    assert not hasattr(classifier, "memory_")


def test_a_file_holds_the_memory_once_and_the_head_finds_it_again(tmp_path: Path) -> None:
    task = blobs([0, 1, 2], dim=40)
    x, y = task.features, task.labels
    classifier = FrugalClassifier().fit(x, y)
    classifier.save(tmp_path / "bayes.frugal")
    FrugalClassifier(head="nearest-mean").fit(x, y).save(tmp_path / "means.frugal")
    sizes = [(tmp_path / f"{name}.frugal").stat().st_size for name in ("bayes", "means")]
    assert sizes[0] <= sizes[1]
    again = FrugalClassifier.load(tmp_path / "bayes.frugal")
    assert again.head_.memory_ is again.memory_  # type: ignore[attr-defined]
    np.testing.assert_allclose(again.predict_proba(x), classifier.predict_proba(x), atol=0.02)
    assert np.array_equal(again.predict(x), classifier.predict(x))


def test_the_head_sees_what_is_learned_updated_and_forgotten() -> None:
    task = blobs([0, 1, 2])
    x, y = task.features, task.labels
    classifier = FrugalClassifier().fit(x[y < 2], y[y < 2])
    classifier.predict(x)  # densities are ready, and out of date with the next line
    classifier.partial_fit(x[y == 2], y[y == 2])
    assert (classifier.predict(x) == y).all()
    classifier.forget(1, scrub=True)
    assert set(classifier.predict(x)) == {0, 2}
    assert classifier.head_.memory_ is classifier.memory_  # type: ignore[attr-defined]


def test_tempering_changes_probabilities_and_no_prediction() -> None:
    task = blobs([0, 1, 2], dim=100, spread=3.0)
    x = blobs([0, 1, 2], dim=100, spread=3.0, seed=4).features
    sure, modest = (
        FrugalClassifier(head=make_head("bayes", tempering=power)).fit(task.features, task.labels)
        for power in (10.0, 1.0)
    )
    assert (sure.predict(x) == modest.predict(x)).all()
    assert sure.predict_proba(x).max(axis=1).mean() > modest.predict_proba(x).max(axis=1).mean()


@pytest.mark.parametrize(
    ("dim", "tempering", "power"),
    [(100, None, 0.3), (36, None, 0.5), (4, None, 1.0), (100, 5.0, 0.5), (16, 400.0, 1.0)],
)
def test_densities_are_taken_to_a_power_that_falls_with_the_root_of_the_width(
    dim: int, tempering: float | None, power: float
) -> None:
    task, rng = blobs([0, 1, 2], dim=dim), np.random.default_rng(0)
    memory = cast("DensityMemory", learned(make_memory("gaussian-diagonal"), task))
    head = BayesHead(tempering=tempering)
    assert head.classes == head.by_name == []
    head.learn(task, Replay(memory, rng))
    assert (head.classes, head.by_name, head.arrays()) == ([0, 1, 2], [], {})
    x = task.features[:5]
    np.testing.assert_allclose(head.logits(x), power * memory.log_density(x), rtol=1e-6)


def test_a_head_keeps_the_text_of_classes_and_forgets_it_with_them() -> None:
    rows = np.eye(3, dtype=np.float32)
    task = Task(rows[:0], np.array([0, 2]), {0: rows[0], 1: rows[1]})
    for names, kept in ((True, [0]), (False, [])):
        head = BayesHead(names=names)
        head.register(task)
        assert list(head.text_) == head.by_name == kept
        head.register(Task(rows[:0], np.array([5]), {5: rows[2]}))
        assert list(head.text_) == ([*kept, 5] if names else [])
        assert (
            head.forget(0) == head.forget(7) == head.forget_with(Task(rows[:1], rows[0, :1])) == []
        )
        assert list(head.text_) == ([5] if names else [])
    with pytest.raises(InputError, match="names is 'yes'"):
        BayesHead(names="yes")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="StoreAllMemory has none"):
        BayesHead().learn(task, Replay(make_memory("store-all"), np.random.default_rng(0)))


def test_heads_that_are_merged_have_the_text_and_the_evidence_of_both() -> None:
    one, other = BayesHead(), BayesHead()
    one.text_, other.text_ = {0: np.zeros(2)}, {0: np.ones(2), 1: np.ones(2)}
    one._derived["names"] = cast("Any", 3)
    one.merge(other, {0: 0, 1: 4}, None, None)
    assert {label: text.tolist() for label, text in one.text_.items()} == {0: [0, 0], 4: [1, 1]}
    assert (one.evidence_, one._derived) == (None, {})
    other.evidence_ = np.arange(5.0)
    for count in (1, 2):
        one.merge(other, {0: 0, 1: 4}, None, None)
        assert one.evidence_ is not None
        assert one.evidence_.tolist() == (count * np.arange(5.0)).tolist()
    assert one.arrays()["text"].tolist() == [[0, 0], [1, 1]]
    assert one.arrays()["evidence"] is one.evidence_


def test_the_fewer_samples_the_wider_the_ridge() -> None:
    rng = np.random.default_rng(0)
    memory = cast("DensityMemory", make_memory("gaussian-shared"))
    taught = (np.arange(8) % 2, 2 + np.arange(152) % 2, 4 + np.arange(9000) % 2)
    for labels, ridge in zip(taught, (16 / 8, 16 / 160, 0.03), strict=True):
        memory.learn(Task(rng.normal(size=(len(labels), 16)), labels), rng)
        x = rng.normal(size=(5, 16))
        found, expected = memory.log_density(x), memory.log_density(x, Shrinkage(0.1, ridge))
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("wrong", [{"own": 1.5}, {"ridge": 0.0}, {"tempering": 0}])
def test_bad_settings_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError):
        make_head("bayes", **wrong)
