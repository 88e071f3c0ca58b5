"""Typicality: against dense Gaussians, against refitting, and against draws."""

from __future__ import annotations

import numpy as np
import pytest

from frugalvae import FrugalClassifier
from frugalvae.maths.gaussians import Shrinkage
from frugalvae.model.confidence import (
    DistanceReference,
    FitReference,
    TaughtNovelty,
    novelty_reference,
)
from frugalvae.moments.held_out import COSINE, EXPECTED, Typicality
from frugalvae.moments.memory import MomentMemory
from frugalvae.moments.rule import posterior
from frugalvae.parts.protocols import Task


def blobs(
    classes: int, count: int, dim: int = 20, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Samples (n, dim), their classes, and the class means."""
    rng = np.random.default_rng(seed)
    means = 2 * rng.standard_normal((classes, dim))
    labels = np.arange(classes * count) % classes
    noise = rng.standard_normal((classes * count, dim)) @ rng.standard_normal((dim, dim)) / dim**0.5
    return (means[labels] + noise).astype(np.float32), labels, means


def taught(x: np.ndarray, y: np.ndarray) -> MomentMemory:
    memory = MomentMemory(root=False)
    memory.learn(Task(x, y), np.random.default_rng(0))
    return memory


def test_the_share_is_the_relative_mahalanobis_distance() -> None:
    """Against distances with dense inverses: to the class, and to all classes as one Gaussian."""
    x, y, _ = blobs(6, 30)
    memory = taught(x, y)
    rule = posterior(memory._moments, own=0.0)
    judge = Typicality.of(rule, np.ones(6))
    white = memory.whitened(blobs(6, 2, seed=1)[0], rule).astype(np.float64)
    prior = rule.prior
    axes = prior.axes * (prior.variances - prior.floor) @ prior.axes.T
    between = np.eye(20) * (1 + prior.floor) + axes  # W + B, whitened
    background = np.einsum("nd,de,ne->n", white, np.linalg.inv(between), white)
    squares = (white**2).sum(axis=1)
    rows = white @ prior.axes
    np.testing.assert_allclose(judge._between(white, rows), squares - background, rtol=1e-9)
    scores = rule.scores(white)
    column = scores.argmax(axis=1)
    distance = ((white - rule.targets[column]) ** 2).sum(axis=1)
    credit = 2 * (rule.constants + (rule.targets**2).sum(axis=1) / 2)[column]
    share = (squares - distance + credit) / (squares - background)
    inside = np.einsum("nj,nj->n", rows, judge.along[column])
    lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(judge.along[column], axis=1)
    expected = share + COSINE * inside / lengths - EXPECTED * judge.expected[column]
    np.testing.assert_allclose(judge(white, scores), expected, rtol=1e-6)


@pytest.mark.parametrize("count", [12, 40])
def test_taught_samples_look_as_if_they_had_not_been_taught(count: int) -> None:
    x, y, _ = blobs(5, count)
    memory = taught(x, y)
    held, refitted = np.empty(len(y)), np.empty(len(y))
    for rows, _ in memory.held_out(Task(x, y)):
        rest = np.delete(np.arange(len(y)), rows)
        refitted[rows] = taught(x[rest], y[rest]).typicality(x[rows])
    memory._derived.pop("held out")
    held = memory.held_out_typicality(Task(x, y))
    as_taught = memory.typicality(x)
    error = np.abs(held - refitted).mean()
    assert error < 0.6 * np.abs(as_taught - refitted).mean()
    assert error < 0.1


def test_what_is_expected_of_a_class_is_what_its_samples_show() -> None:
    x, y, _ = blobs(8, 200, seed=3)
    memory = taught(x, y)
    judge = memory._judge
    shown = [
        float((memory.typicality(x[y == label]) + EXPECTED * judge.expected[label]).mean())
        for label in range(8)
    ]
    assert np.corrcoef(shown, judge.expected)[0, 1] > 0.9
    np.testing.assert_allclose(shown, judge.expected, atol=0.25 * np.mean(shown))


def test_other_classes_are_less_typical() -> None:
    x, y, _ = blobs(12, 40, seed=5)
    known = y < 8
    memory = taught(x[known][:-80], y[known][:-80])
    typical, strange = memory.typicality(x[known][-80:]), memory.typicality(x[~known])
    assert (typical[:, None] > strange).mean() > 0.9  # the area under the ROC curve


def test_quantiles_of_another_score_are_replaced() -> None:
    distance = TaughtNovelty().with_samples(np.array([1.0, 2.0]))
    fit = distance.with_samples(np.array([3.0]), "fit")
    assert (fit.score, fit.count, fit.quantiles[0]) == ("fit", 1, 3.0)
    assert distance.merge(fit) == distance  # it has more samples
    assert fit.merge(distance) == distance


def test_one_class_is_compared_by_distance_and_two_by_fit() -> None:
    x, y, _ = blobs(2, 20)
    rng = np.random.default_rng(0)
    assert isinstance(novelty_reference(taught(x[y == 0], y[y == 0]), rng), DistanceReference)
    assert isinstance(novelty_reference(taught(x, y), rng), FitReference)
    assert isinstance(novelty_reference(taught(x, y), rng, "distance"), DistanceReference)
    classifier = FrugalClassifier().partial_fit(x[y == 0], y[y == 0])
    assert classifier.taught_novelty_.score == "distance"
    assert classifier.is_known(x[y == 0]).mean() > 0.8
    classifier.partial_fit(x[y == 1], y[y == 1])
    assert (classifier.taught_novelty_.score, classifier.taught_novelty_.count) == ("fit", 20)


def test_the_ridge_is_the_rules_own() -> None:
    """Typicality does not depend on what a head asks of densities."""
    x, y, _ = blobs(4, 10)
    memory = taught(x, y)
    before = memory.typicality(x)
    memory.log_density(x, Shrinkage(0.5, 0.5))
    np.testing.assert_array_equal(memory.typicality(x), before)
