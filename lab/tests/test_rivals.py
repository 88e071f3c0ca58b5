"""Rivals from the literature, against plain NumPy twins of their formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.covariance import OAS
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from tests.conftest import blobs
from tests.test_bayes import SHRINKAGE, drawn, learned

from frugalvae import FrugalClassifier, make_head, make_memory
from frugalvae.errors import InputError
from frugalvae.maths.arrays import Array, softmax, unit
from frugalvae.parts.protocols import Replay, Task
from frugalvae.parts.store_all import NoMemory, StoreAllMemory
from frugalvae_lab.heads.anacp import gelu, spread
from frugalvae_lab.heads.fecam import inverse_correlation
from frugalvae_lab.heads.fourier_lda import oas
from frugalvae_lab.heads.linear import held_out_parts
from frugalvae_lab.heads.projection import normal_matrix
from frugalvae_lab.heads.random_features import PENALTIES, RanPACHead, RidgePath
from frugalvae_lab.heads.ridge import solve_ridge
from frugalvae_lab.memories.mixture import MixtureMemory

#: Heads that keep sums of real features.
SUMS = ["ranpac", "fly-cl", "acil", "gacl", "klda", "klda-e", "randumb", "anacp"]


def taught(head: Any, *tasks: Task, memory: Any = None, seed: int = 0) -> Any:
    memory, rng = memory or NoMemory(), np.random.default_rng(seed)
    for task in tasks:
        memory.learn(task, rng)
        head.learn(task, Replay(memory, rng))
    return head


def joined(*tasks: Task) -> Task:
    x, y = ([getattr(task, name) for task in tasks] for name in ("features", "labels"))
    return Task(np.concatenate(x), np.concatenate(y))


def close(spread: float = 2.0, seed: int = 0) -> list[Task]:
    """Three tasks of classes that overlap."""
    return [blobs([0, 1], spread=spread, seed=seed), blobs([2], spread=spread, seed=seed + 1),
            blobs([3, 4], spread=spread, seed=seed + 2)]  # fmt: skip


# --------------------------------------------------------------------------- ridge regression


@pytest.mark.parametrize("shape", [(12, 30), (30, 12)], ids=["dual", "primal"])
def test_one_eigendecomposition_serves_every_penalty(
    shape: tuple[int, int], rng: np.random.Generator
) -> None:
    hidden, targets = rng.normal(size=shape), rng.normal(size=(shape[0], 3))
    rows, penalties = rng.normal(size=(5, shape[1])), [1e-4, 0.1, 3.0, 1e6]
    found = RidgePath.of(hidden, targets).predict(rows, penalties)
    for penalty, predicted in zip(penalties, found, strict=True):
        tall = np.concatenate([hidden, np.sqrt(penalty) * np.eye(shape[1])])
        right = np.concatenate([targets, np.zeros((shape[1], 3))])
        oracle = rows @ np.linalg.lstsq(tall, right, rcond=None)[0]
        np.testing.assert_allclose(predicted, oracle, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("shape", [(12, 30), (30, 12)], ids=["dual", "primal"])
def test_generalised_cross_validation_is_its_formula(
    shape: tuple[int, int], rng: np.random.Generator
) -> None:
    hidden, targets = rng.normal(size=shape), rng.normal(size=(shape[0], 3))
    penalties = [0.01, 1.0, 100.0]
    for penalty, score in zip(
        penalties, RidgePath.of(hidden, targets).cross_validation(penalties), strict=True
    ):
        gram = hidden.T @ hidden + penalty * np.eye(shape[1])
        hat = hidden @ np.linalg.solve(gram, hidden.T)
        left = np.sum((targets - hat @ targets) ** 2) / shape[0]
        assert score == pytest.approx(left / (1 - np.trace(hat) / shape[0]) ** 2, rel=1e-6)


def test_a_penalty_that_rounding_swallows_is_raised() -> None:
    gram = np.full((3, 3), 1e20)
    weights, penalty = solve_ridge(gram, np.ones((3, 1)), 1e-8)
    assert penalty > 1e3
    assert np.isfinite(weights).all()


def test_ranpac_takes_the_penalty_with_the_least_error_on_the_newest_task() -> None:
    head = make_head("ranpac", width=40)
    for number, task in enumerate(close()):
        rng = np.random.default_rng(number)
        head.learn(task, Replay(NoMemory(), rng))
    head.arrays()  # the penalty is settled
    rng = np.random.default_rng(2)  # the last task's
    order = rng.permutation(len(task.features))
    hidden = np.maximum(task.features @ normal_matrix(head.seed_, (8, 40)), 0)[order].astype(float)
    targets = np.eye(2)[(task.labels == 4).astype(int)][order]
    errors = {}
    for penalty in PENALTIES:
        gram = hidden[:32].T @ hidden[:32] + penalty * np.eye(40)
        weights = np.linalg.solve(gram, hidden[:32].T @ targets[:32])
        errors[penalty] = np.mean((hidden[32:] @ weights - targets[32:]) ** 2)
    assert head.penalty_ == min(errors, key=errors.__getitem__)


@pytest.mark.parametrize("name", ["acil", "gacl"])
def test_the_recursion_of_the_papers_gives_the_same(name: str) -> None:
    """Equations 9 and 10 of ACIL: the inverse and the weights are updated with each batch."""
    head = taught(make_head(name, width=30, penalty=0.5, scale=1.0), *close())
    x = joined(*close()).features.astype(np.float64)
    inverse, weights = np.eye(30) / 0.5, np.zeros((30, 5))
    for task in close():
        hidden = head._hidden(task.features.astype(np.float64))
        targets = np.eye(5)[task.labels]
        middle = np.linalg.inv(np.eye(len(hidden)) + hidden @ inverse @ hidden.T)
        inverse = inverse - inverse @ hidden.T @ middle @ hidden @ inverse
        weights = weights + inverse @ hidden.T @ (targets - hidden @ weights)
    np.testing.assert_allclose(head.logits(x), head._hidden(x) @ weights, atol=1e-6)


def test_fly_keeps_the_largest_of_sparse_random_features() -> None:
    head = taught(make_head("fly-cl", width=20, degree=3, level=0.3), *close())
    assert ((head._projection != 0).sum(axis=0) == 3).all()
    x = blobs([0]).features.astype(np.float64)
    plain, kept = x @ head._projection, head._hidden(x)
    assert ((kept != 0).sum(axis=1) == 6).all()
    np.testing.assert_array_equal(np.sort(kept, axis=1)[:, -1], plain.max(axis=1))


# --------------------------------------------------------------------------- sums


@pytest.mark.parametrize("name", SUMS)
def test_a_known_class_may_come_in_parts(name: str) -> None:
    """Tasks, then more samples of a class, give what all at once gives."""
    tasks, more = close(), blobs([2], seed=7, spread=2.0)
    settings = {"width": 50} | ({"penalties": (1.0,)} if name in ("ranpac", "fly-cl") else {})
    first = blobs([0, 1], spread=2.0)
    parts = taught(make_head(name, **settings), first, *tasks[1:])
    parts.update(more, 20, Replay(NoMemory(), np.random.default_rng(0)))
    whole = taught(make_head(name, **settings), first, joined(tasks[1], more), tasks[2])
    x = joined(*tasks).features
    np.testing.assert_allclose(parts.logits(x), whole.logits(x), rtol=2e-3, atol=2e-3)


# --------------------------------------------------------------------------- discriminants


@pytest.mark.parametrize("name", ["klda", "randumb"])
def test_fourier_heads_are_discriminant_analysis_of_their_features(name: str) -> None:
    head, all_of_it = taught(make_head(name, width=30), *close()), joined(*close())
    hidden = head._hidden(all_of_it.features.astype(np.float64), 0)
    means = np.stack([hidden[all_of_it.labels == label].mean(axis=0) for label in range(5)])
    centred = hidden - means[all_of_it.labels]
    covariance = centred.T @ centred / len(hidden)
    if name == "klda":
        covariance += head.ridge * np.trace(covariance) / 30 * np.eye(30)
    else:
        covariance = OAS(assume_centered=True).fit(centred).covariance_ * (1 - 1e-4)
        covariance += 1e-4 * np.eye(30)
    distances = np.stack([np.einsum("nd,de,ne->n", hidden - mean, np.linalg.inv(covariance),
                                    hidden - mean) for mean in means], axis=1)  # fmt: skip
    logits = head.logits(all_of_it.features)
    apart = logits - logits[:, :1], -0.5 * (distances - distances[:, :1])
    np.testing.assert_allclose(*apart, rtol=2e-3, atol=2e-3)


def test_random_features_approximate_the_kernel() -> None:
    head = taught(make_head("klda", width=3000, gamma=2.0), close()[0])
    x = close()[0].features
    hidden = head._hidden(x, 0)
    distances = ((x[:, None] - x) ** 2).sum(axis=2)
    spread = 2.0 / x.var(axis=0).sum()
    np.testing.assert_allclose(hidden @ hidden.T, np.exp(-spread * distances), atol=0.1)


def test_shrinkage_agrees_with_scikit_learn(rng: np.random.Generator) -> None:
    x = rng.normal(size=(12, 5)) * [3, 1, 1, 1, 0.1]
    x -= x.mean(axis=0)
    oracle = OAS(assume_centered=True).fit(x).covariance_
    np.testing.assert_allclose(oas(x.T @ x / 12, 12), oracle)


def test_low_rank_discriminants_are_those_of_dense_covariances() -> None:
    """Woodbury's identity against inverses and determinants of (d, d) matrices."""
    head, all_of_it = taught(make_head("lr-rgda", rank=3), *close()), joined(*close())
    x = all_of_it.features.astype(np.float64)
    of_class = [x[all_of_it.labels == label] for label in range(5)]
    covariances = [np.cov(own.T) for own in of_class]
    shared = np.mean(covariances, axis=0)
    columns = []
    for own, covariance in zip(of_class, covariances, strict=True):
        values, vectors = np.linalg.eigh(covariance)
        low = (vectors[:, -3:] * values[-3:]) @ vectors[:, -3:].T
        full = 0.2 * low + 2 * shared + 0.5 * np.trace(shared) / 8 * np.eye(8)
        rows = x - own.mean(axis=0)
        distance = np.einsum("nd,de,ne->n", rows, np.linalg.inv(full), rows)
        columns.append(-0.5 * (distance + np.linalg.slogdet(full)[1]))
    oracle, logits = np.stack(columns, axis=1), head.logits(x)
    difference = logits - logits[:, :1] - (oracle - oracle[:, :1])
    assert np.abs(difference).max() < 1e-3


@pytest.mark.parametrize("alphas", [(1.0, 0.0), (1.0, 1.0), (10.0, 10.0)])
@pytest.mark.parametrize("count", [6, 30])
def test_fecam_agrees_with_dense_formulas(
    alphas: tuple[float, float], count: int, rng: np.random.Generator
) -> None:
    x = rng.normal(size=(count, 9)) + rng.normal(size=(count, 1))  # covariances above and below 0
    covariance = np.cov(x.T)
    off = (covariance.sum() - np.trace(covariance)) / (9 * 8)
    shrunk = covariance + alphas[0] * np.trace(covariance) / 9 * np.eye(9)
    shrunk += alphas[1] * off * (1 - np.eye(9))
    deviations = np.sqrt(shrunk.diagonal())
    oracle = np.linalg.inv(shrunk / np.outer(deviations, deviations))
    root = (x - x.mean(axis=0)) / np.sqrt(count - 1)
    scales, directions, signs = inverse_correlation(root, *alphas)
    inverse = np.eye(9) - (directions.T * signs) @ directions
    np.testing.assert_allclose(scales[:, None] * inverse * scales, oracle, atol=1e-8)


def test_fecam_keeps_no_more_rows_than_samples_and_transforms_what_is_not_negative() -> None:
    task = Task(np.abs(blobs([0, 1], per_class=5).features), np.repeat([0, 1], 5))
    head = taught(make_head("fecam"), task)
    assert [len(root) for root in head.roots_.values()] == [4, 4]
    np.testing.assert_allclose(head._mapped(task.features), unit(np.sqrt(task.features)), rtol=1e-6)
    assert taught(make_head("fecam"), *close()).powered_ == 0


# --------------------------------------------------------------------------- AnaCP


def test_anacp_is_what_its_equations_say() -> None:
    head = taught(make_head("anacp", width=40, layers=2, samples=7, scale=1.0), *close())
    all_of_it = joined(*close())
    x = unit(all_of_it.features.astype(np.float64))
    means = np.stack([x[all_of_it.labels == label].mean(axis=0) for label in range(5)])
    centred = x - means[all_of_it.labels]
    covariance = centred.T @ centred / len(x) + 1e-4 * np.eye(8)
    targets = spread(means, covariance)
    layers = [normal_matrix(head.seed_ + 1 + row, (8, 40)).astype(float) for row in range(3)]

    def ridge(hidden: Array, right: Array) -> Array:
        return np.linalg.solve(hidden.T @ hidden + 100 * np.eye(40), hidden.T @ right)

    fitted = [ridge(gelu(x @ layer), targets[all_of_it.labels]) for layer in layers[:2]]

    def last(rows: Array) -> Array:
        mapped = [
            unit(gelu(rows @ layer) @ one) for layer, one in zip(layers, fitted, strict=False)
        ]
        return gelu(np.mean(mapped, axis=0) @ layers[2])

    noise = normal_matrix(head.seed_, (35, 8)) @ np.linalg.cholesky(covariance).T
    drawn = last(noise + means.repeat(7, axis=0))
    oracle = last(x) @ ridge(drawn, np.eye(5).repeat(7, axis=0))
    np.testing.assert_allclose(head.logits(all_of_it.features), oracle, atol=1e-4)


def test_targets_are_pushed_apart() -> None:
    means = np.array([[3.0, 4.0], [3.0, -4.0]])
    targets = spread(means, 4.0 * np.eye(2))
    # whitened by 2, means are 2 from their centre; a singular value of 2 sqrt(2) grows by one; and
    # whitened by 2 again, as the authors have it
    assert targets[0, 1] / targets[0, 0] == pytest.approx((2 + 1 / np.sqrt(2)) / 2 / 3, rel=1e-6)
    np.testing.assert_allclose(np.linalg.norm(targets, axis=1), 1)


# --------------------------------------------------------------------------- stored features


@pytest.mark.parametrize(
    ("name", "strength", "oracle"),
    [
        ("logistic", 2.0, LogisticRegression(C=2.0, tol=1e-8, max_iter=10_000)),
        ("svm", 0.5, LinearSVC(C=0.5, intercept_scaling=100, tol=1e-8, max_iter=100_000)),
    ],
)
def test_linear_heads_agree_with_scikit_learn(name: str, strength: float, oracle: Any) -> None:
    head = make_head(name, strengths=(strength,), steps=1000)
    taught(head, *close(), memory=StoreAllMemory())
    all_of_it = joined(*close())
    x = all_of_it.features - all_of_it.features.mean(axis=0)
    x = x / np.sqrt((x**2).sum(axis=1).mean())
    scores = oracle.fit(x, all_of_it.labels).decision_function(x)
    logits = head.logits(all_of_it.features) / head.scale
    if name == "logistic":
        scores, logits = softmax(scores), softmax(logits)
    np.testing.assert_allclose(logits, scores, atol=5e-3)


def test_balanced_classes_agree_with_scikit_learn() -> None:
    """Thrice as many samples of some classes as of others, and all classes count as much."""
    few, *others = close()
    task = joined(few, *others, *others, *others)
    head = make_head("logistic", strengths=(2.0,), steps=1000, balanced=True)
    taught(head, task, memory=StoreAllMemory())
    x = task.features - task.features.mean(axis=0)
    x = x / np.sqrt((x**2).sum(axis=1).mean())
    oracle = LogisticRegression(C=2.0, tol=1e-8, max_iter=10_000, class_weight="balanced")
    expected = oracle.fit(x, task.labels).predict_proba(x)
    np.testing.assert_allclose(softmax(head.logits(task.features)), expected, atol=5e-3)


@pytest.mark.parametrize("name", ["logistic", "svm"])
def test_the_strength_is_chosen_on_samples_that_were_held_out(name: str) -> None:
    """With the smaller one, weights stay so near zero that the largest class is the answer."""
    most = Task(blobs([0], per_class=60).features, np.zeros(60, int))
    task = joined(most, blobs([1]), blobs([2]))
    head = taught(make_head(name, strengths=(1e-9, 10.0)), task, memory=StoreAllMemory())
    assert head.strength_ == 10.0
    weak = taught(make_head(name, strengths=(1e-9,)), task, memory=StoreAllMemory())
    assert set(weak.logits(task.features).argmax(axis=1).tolist()) == {0}


def test_nearest_neighbours_agree_with_scikit_learn() -> None:
    head = taught(make_head("knn", neighbours=1), *close(), memory=StoreAllMemory())
    all_of_it, test = joined(*close()), joined(*close(seed=50)).features
    oracle = KNeighborsClassifier(1, metric="cosine").fit(all_of_it.features, all_of_it.labels)
    assert head.logits(test).argmax(axis=1).tolist() == oracle.predict(test).tolist()


def test_stored_features_are_all_used_once() -> None:
    memory = StoreAllMemory()
    memory.learn(blobs([0], per_class=3), np.random.default_rng(0))
    memory.learn(blobs([1], per_class=5), np.random.default_rng(0))
    x, y = Replay(memory, np.random.default_rng(0)).everything(99)
    assert y.tolist() == [0] * 3 + [1] * 5
    np.testing.assert_array_equal(x[3:], blobs([1], per_class=5).features)


# --------------------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("name", "settings", "text"),
    [
        ("ranpac", {"penalties": ()}, r"penalties is \(\); expected numbers, such as"),
        ("fly-cl", {"level": 2.0}, "level is 2.0; expected a number, from 1e-06 to 1"),
        ("acil", {"penalty": 0.0}, "penalty is 0.0; expected a number, at least 1e-12"),
        ("klda", {"gamma": -1.0}, "gamma is -1.0; expected a number, at least 1e-12"),
        ("randumb", {"shrinkage": 2}, "shrinkage is 2; expected a number, from 1e-12 to 1"),
        ("anacp", {"layers": 0}, "layers is 0; expected a whole number, from 1 to 64"),
        ("lr-rgda", {"own": -0.1}, "own is -0.1; expected a number, at least 0"),
        ("fecam", {"power": 2}, "power is 2; expected a number, from 0.001 to 1"),
        ("logistic", {"strengths": "x"}, "strengths is 'x'; expected numbers, such as"),
        ("knn", {"neighbours": 0}, "neighbours is 0; expected a whole number, from 1 to 65536"),
    ],
)
def test_bad_settings_are_refused(name: str, settings: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError, match=text):
        make_head(name, **settings)


@pytest.mark.parametrize("scale", [1e-2, 1.0, 1e3])
@pytest.mark.parametrize("head", ["klda", "randumb"])
def test_kernels_fit_where_the_first_lesson_is_one_sample(head: str, scale: float) -> None:
    rng = np.random.default_rng(0)
    means = rng.normal(size=(5, 40))
    near = means + 0.1 * rng.normal(size=(5, 40))
    clf = FrugalClassifier("none", make_head(head, width=500))
    for label, mean in enumerate(means):
        clf.partial_fit(scale * mean[None], [label])
    assert clf.predict(scale * near).tolist() == [0, 1, 2, 3, 4]
    margins = np.sort(clf.predict_proba(scale * near), axis=1)
    assert (margins[:, -1] > margins[:, -2] + 1e-3).all()


@pytest.mark.parametrize("name", ["ranpac", "fly-cl"])
def test_a_task_of_one_sample_per_class_chooses_no_penalty(name: str) -> None:
    """Without its only sample a class is unknown, and any penalty is as bad as another."""
    task = Task(np.random.default_rng(0).normal(size=(12, 8)), np.arange(12))
    head = taught(make_head(name, width=64), task)
    head.logits(task.features)
    assert head.penalty_ == 1.0


def test_with_two_samples_per_class_the_strength_is_chosen_on_most_of_them() -> None:
    labels = np.arange(60) % 30
    parts = held_out_parts(labels)
    assert np.sum(parts, axis=0).tolist() == [1] * 60  # each is tested once
    for part in parts:
        assert part.sum() == 12
        assert set(labels[~part]) == set(range(30))  # no class is lost


def test_of_a_class_of_one_sample_lr_rgda_keeps_its_mean_alone() -> None:
    task = Task(np.random.default_rng(0).normal(size=(5, 80)), np.arange(5))
    head = taught(make_head("lr-rgda"), task)
    assert head.arrays()["directions"].shape == (0, 80)
    assert (head.logits(task.features).argmax(axis=1) == np.arange(5)).all()


# --------------------------------------------------------------------------- closed forms


def test_ranpac_is_ridge_regression_on_random_features() -> None:
    tasks = [blobs([0, 1]), blobs([2])]
    head = RanPACHead(width=30, penalties=(3.0,), scale=1.0)
    replay = Replay(NoMemory(), np.random.default_rng(0))
    for task in tasks:
        head.learn(task, replay)
    x = np.concatenate([task.features for task in tasks])
    hidden = np.maximum(x.astype(np.float64) @ normal_matrix(head.seed_, (8, 30)), 0)
    targets = np.eye(3)[np.concatenate([task.labels for task in tasks])]
    gram = hidden.T @ hidden + 3.0 * np.eye(30)
    oracle = hidden @ np.linalg.solve(gram, hidden.T @ targets)
    np.testing.assert_allclose(head.logits(x), oracle, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_ranpac_passes_over_penalties_that_rounding_swallows(scale: float) -> None:
    """At a large scale the small penalties leave the Gram matrix singular in float32."""
    head = RanPACHead(width=300)
    replay = Replay(NoMemory(), np.random.default_rng(0))
    for classes in ([0, 1], [2]):
        task = blobs(classes)
        head.learn(Task(scale * task.features, task.labels), replay)
    test = blobs([0, 1, 2], seed=9)
    logits = head.logits(scale * test.features)
    assert np.isfinite(logits).all()
    assert np.array_equal(logits.argmax(axis=1), test.labels)


def test_mixture_finds_separate_parts(rng: np.random.Generator) -> None:
    x = np.concatenate([rng.normal(size=(50, 2)) * 0.1 + 5 * k for k in range(3)])
    memory = MixtureMemory(parts=3)
    memory.learn(Task(x, np.zeros(150, int)), rng)
    drawn = memory.sample(0, 3000, rng)
    nearest = (drawn[:, 0] / 5).round()
    assert (np.abs(drawn[:, 0] - 5 * nearest) < 0.6).all()
    assert np.bincount(nearest.astype(int), minlength=3).std(ddof=1) < 100


def test_a_mixture_sums_its_parts() -> None:
    task = blobs([0, 1], 30, spread=1.0)
    memory = learned(make_memory("mixture", parts=3), task)
    parts = [part for mixture in memory.mixtures_.values() for part in mixture.variances]  # type: ignore[attr-defined]
    shared = np.mean(parts, axis=0, dtype=np.float64)
    found = np.exp(memory.log_density(task.features, SHRINKAGE))  # type: ignore[attr-defined]
    for label in task.classes:
        mixture = memory.mixtures_[label]  # type: ignore[attr-defined]
        expected = sum(
            float(weight)
            * multivariate_normal(mean, drawn(np.diag(variance), np.diag(shared))).pdf(
                task.features
            )
            for weight, mean, variance in zip(
                mixture.weights, mixture.means, mixture.variances, strict=True
            )
        )
        np.testing.assert_allclose(found[:, label], expected, rtol=1e-3)
