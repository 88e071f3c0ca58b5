"""Bayes' rule from moments: against closed forms, SciPy, a plain loop, and teaching anew."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from frugalvae import FrugalClassifier
from frugalvae.maths.arrays import Array
from frugalvae.moments.held_out import hold_out
from frugalvae.moments.memory import MomentMemory
from frugalvae.moments.rule import Moments, Posterior, SharedCovariance, own_weight, posterior


def blobs(
    sizes: list[int], dim: int = 6, apart: float = 1.5, seed: int = 0
) -> tuple[Array, Array, Array]:
    """Samples of classes of these sizes, their labels, and the centres."""
    rng = np.random.default_rng(seed)
    centres = apart * rng.normal(size=(len(sizes), dim))
    labels = np.arange(len(sizes)).repeat(sizes)
    mixing = np.eye(dim) + 0.4 * rng.normal(size=(dim, dim))
    return centres[labels] + rng.normal(size=(len(labels), dim)) @ mixing, labels, centres


def moments_of(x: Array, labels: Array, rank: int | None = None) -> Moments:
    """Counts, means and scatters, as plain sums; rows are R of the samples around their mean."""
    counts = np.bincount(labels)
    means = np.stack([x[labels == label].mean(axis=0) for label in range(len(counts))])
    rows = x - means[labels]
    rank = x.shape[1] if rank is None else rank
    roots = [np.linalg.qr(rows[labels == label, :rank], "r") for label in range(len(counts))]
    return Moments(
        counts=counts.astype(float),
        means=means[:, :rank],
        scatter=rows[:, :rank].T @ rows[:, :rank],
        roots=np.concatenate(roots),
        owners=np.arange(len(counts)).repeat([len(root) for root in roots]),
        other_means=means[:, rank:],
        other_squares=float((rows[:, rank:] ** 2).sum()),
    )


def scores(rule: Posterior, x: Array) -> Array:
    return rule.scores(rule.whiten(x[:, : rule.rank], x[:, rule.rank :]))


def between(found: Array) -> Array:
    """Scores up to what all classes share."""
    return found - found.mean(axis=1, keepdims=True)


# --------------------------------------------------------------------------- limits


@settings(max_examples=10)
@given(seed=st.integers(0, 100), classes=st.integers(3, 6))
def test_classes_of_many_samples_give_linear_discriminant_analysis(seed: int, classes: int) -> None:
    """Where their means are equally far from the centre: lengths are drawn towards a common one."""
    rng = np.random.default_rng(seed)
    mixing, y = np.eye(6) + 0.3 * rng.normal(size=(6, 6)), np.arange(5000 * classes) % classes
    x = (2 * np.eye(6)[y] + rng.normal(size=(len(y), 6))) @ mixing
    test = (1 + rng.normal(size=(100, 6))) @ mixing
    rule = posterior(moments_of(x, y), own=0.0, ridge=1e-9)
    twin = LinearDiscriminantAnalysis(solver="lsqr", priors=np.full(classes, 1 / classes))
    expected, found = twin.fit(x, y).decision_function(test), scores(rule, test)
    np.testing.assert_allclose(between(found), between(expected), rtol=0.05, atol=0.1)
    margin = np.sort(expected, axis=1)
    clear = margin[:, -1] - margin[:, -2] > 0.1
    assert clear.mean() > 0.8
    assert (found.argmax(axis=1) == expected.argmax(axis=1))[clear].all()


@settings(max_examples=20)
@given(seed=st.integers(0, 1000), classes=st.integers(2, 12), dim=st.integers(2, 30))
def test_one_sample_per_class_gives_the_cosine_around_the_centre(
    seed: int, classes: int, dim: int
) -> None:
    """Whitened by a fifth of the covariance of the means, and a ridge of its mean variance."""
    rng = np.random.default_rng(seed)
    x, test = rng.normal(size=(classes, dim)) + 5, rng.normal(size=(50, dim)) + 5
    rule = posterior(moments_of(x, np.arange(classes)))
    around, asked = x - x.mean(axis=0), test - x.mean(axis=0)
    covariance = np.cov(x.T)
    ridge = max(0.03, dim / classes) * 0.6 * np.trace(covariance) / dim
    white = np.linalg.solve(guess(x, 0) + ridge * np.eye(dim), around.T)  # (dim, classes)
    cosine = asked @ white / np.sqrt(np.einsum("kd,dk->k", around, white))
    found = scores(rule, test)
    factor = np.linalg.norm(between(found)) / np.linalg.norm(between(cosine))
    np.testing.assert_allclose(between(found), factor * between(cosine), atol=1e-6 * factor)


@pytest.mark.parametrize(("spare", "share"), [(1, 0.1), (3, 0.05), (300, 0.0)])
def test_the_guess_of_the_shared_covariance_fades_as_samples_come(spare: int, share: float) -> None:
    means, none = 3 * np.eye(3), np.empty((0, 3))
    counts, owners = np.array([1.0, 1, 1 + spare]), np.empty(0, int)
    known = Moments(counts, means, np.zeros((3, 3)), none, owners, np.empty((3, 0)))
    whitener = SharedCovariance.of(known, ridge=1.0).whiten(np.eye(3))
    rest = np.linalg.inv(whitener @ whitener.T) - share * np.cov(means.T)
    np.testing.assert_allclose(rest, rest[0, 0] * np.eye(3), atol=1e-9)


def test_the_covariance_of_a_class_is_the_shared_one_and_a_share_of_its_own() -> None:
    """Differences of SciPy's log densities, around the means that the rule has."""
    x, y, _ = blobs([60, 140], dim=4)
    known = moments_of(x, y)
    rule = replace(posterior(known, ridge=0.1), lack=np.zeros(2))  # nothing is borrowed
    whitener = rule.shared.whiten(np.eye(4))
    shared = np.linalg.inv(whitener @ whitener.T)
    expected_ridge = 0.1 * np.trace(known.scatter) / 4 / (len(x) - 2)
    np.testing.assert_allclose(
        shared, known.scatter / (len(x) - 2) + expected_ridge * np.eye(4), rtol=1e-2, atol=1e-3
    )
    test, _, _ = blobs([10] * 2, dim=4)
    found = scores(rule, test)
    densities = []
    for label, count in enumerate(known.counts):
        rows = known.roots[known.owners == label]
        weight = 6 * own_weight(count)  # four coordinates are few
        own = weight * rows.T @ rows / count
        scale = 1 + np.trace(np.linalg.solve(shared, own)) / 4
        covariance = (shared + own) / scale
        mean = np.linalg.solve(whitener.T, rule.targets[label] + rule.centre)
        densities.append(multivariate_normal(mean, covariance).logpdf(test))
    expected = np.stack(densities, axis=1)
    constants = rule.constants + (rule.targets**2).sum(axis=1) / 2  # the credit
    np.testing.assert_allclose(between(found - constants), between(expected), rtol=1e-4, atol=1e-4)


@given(scale=st.floats(0.1, 10), row=st.integers(0, 3))
def test_a_class_of_another_scale_and_the_same_shape_is_no_more_or_less_probable(
    scale: float, row: int
) -> None:
    """In many coordinates the scale of scatters would outweigh everything else."""
    counts, owners = np.array([40.0, 60.0]), np.repeat([0, 1], 8)
    means, none = np.random.default_rng(0).normal(size=(2, 8)), np.empty((2, 0))
    roots = np.concatenate([np.eye(8) * 40**0.5, np.eye(8) * (scale * 60) ** 0.5])
    known = Moments(counts, means, np.eye(8), roots, owners, none)
    one, other = (posterior(known, own) for own in (0.0, 0.3))
    test = np.random.default_rng(row).normal(size=(20, 8)) * 3
    expected = between(scores(one, test))
    close = 1e-3 * np.abs(expected).max()  # axes are float32
    np.testing.assert_allclose(between(scores(other, test)), expected, atol=close)


def guess(means: Array, freedom: int) -> Array:
    """What class means (k, d) say of the covariance within them."""
    share = 0.2 / (freedom + 1)
    return (share if share > 0.01 else 0) * np.cov(means.T)


def twin_scores(x: Array, y: Array, test: Array) -> Array:
    """The rule again, from samples, with explicit inverses and loops, without whitening."""
    classes, dim = int(y.max()) + 1, x.shape[1]
    counts = np.array([(y == c).sum() for c in range(classes)], float)
    means = np.array([x[y == c].mean(axis=0) for c in range(classes)])
    own = [(x[y == c] - means[c]).T @ (x[y == c] - means[c]) for c in range(classes)]
    freedom = len(x) - classes
    spread_of_means = means.var(axis=0, ddof=1).mean()
    level = (np.trace(sum(own)) / dim + 0.6 * spread_of_means) / (freedom + 1)
    within = sum(own) / freedom + guess(means, freedom)
    ridge = max(0.03, dim / len(x)) * level
    W = within + ridge * np.eye(dim)
    inverse = np.linalg.inv(W)
    root = np.linalg.cholesky(inverse)  # any root serves: nothing depends on which
    noise = 1 - ridge * np.trace(inverse) / dim
    white = means @ root
    reliable = counts * 0.5 / (counts * 0.5 + noise)
    g = reliable @ white / reliable.sum()
    b = reliable @ (((white - g) ** 2).mean(axis=1) - noise / counts) / reliable.sum()
    b = max(1e-3, b)
    total = reliable.sum()
    around = white - g
    between_classes = sum(reliable[c] * np.outer(around[c], around[c]) for c in range(classes))
    values, axes = np.linalg.eigh(between_classes / total)
    kept = values > 1e-10 * values[-1]
    along = np.maximum(values[kept] - noise * (reliable / counts).sum() / total, 0)
    along *= b * dim / along.sum()
    share = total / (total + dim)
    B = (1 - share) * b * np.eye(dim) + share * (axes[:, kept] * along) @ axes[:, kept].T
    targets, credit = np.empty_like(white), np.empty(classes)
    off = min(1, 6 * noise)
    for c in range(classes):
        known = B @ np.linalg.inv(B + off * np.eye(dim) / counts[c])
        target = known @ around[c]
        expected, left = np.trace(known @ B), np.trace(B - known @ B)
        targets[c] = target * (expected / (target @ target)) ** (classes / len(x) / 2)
        credit[c] = 0.1 * left / 2
    linear, added = np.empty((2, len(test), classes))
    for row, z in enumerate(test @ root - g):
        for c in range(classes):
            away = z - targets[c]
            linear[row, c] = -0.5 * away @ away + credit[c]
            weight = 0.1 * min(6, (512 / dim) ** 0.5) / (counts[c] + 25)
            covariance = np.eye(dim) + weight * root.T @ own[c] @ root
            covariance *= dim / np.trace(covariance)
            quadratic = away @ away - away @ np.linalg.solve(covariance, away)
            added[row, c] = 0.5 * (quadratic - np.linalg.slogdet(covariance)[1])
    known_of = counts / (counts + 25)
    usual = known_of @ counts / counts.sum()
    rich = [c for c in range(classes) if known_of[c] >= usual / 2]
    found = linear + added
    for row in range(len(test)):
        lent = (linear + added)[row, rich].max() - linear[row, rich].max()
        for c in range(classes):
            lack = 1 - known_of[c] / usual
            found[row, c] += lack * lent if lack >= 0.01 else 0
    return found


@pytest.mark.parametrize("sizes", [[30, 30, 30], [3, 200, 60, 90, 1], [5, 4, 6], [2, 1, 1, 9, 40]])
def test_scores_are_those_of_a_plain_loop(sizes: list[int]) -> None:
    x, y, _ = blobs(sizes, dim=5)
    test, _, _ = blobs([5] * len(sizes), dim=5, seed=0)
    found = scores(posterior(moments_of(x, y)), test)
    expected = twin_scores(x, y, test)
    scale = np.abs(between(expected)).max()
    np.testing.assert_allclose(between(found), between(expected), atol=1e-4 * scale)


# --------------------------------------------------------------------------- holding out


@pytest.mark.parametrize(
    ("sizes", "dim", "rank"),
    [
        ([25] * 8, 10, None),
        ([25] * 8, 10, 6),
        ([8] * 10, 60, None),
        ([4, 9, 60, 90], 8, None),
        ([4, 9, 60, 90], 8, 6),
    ],
)
def test_holding_samples_out_is_teaching_without_them(
    sizes: list[int], dim: int, rank: int | None
) -> None:
    """Also where the prior of class means would tell the samples, as there are few."""
    x, y, _ = blobs(sizes, dim=dim, apart=0.6)
    rule = posterior(moments_of(x, y, rank))
    white = rule.whiten(x[:, : rule.rank], x[:, rule.rank :])
    first = np.concatenate([np.flatnonzero(y == label) for label in range(len(sizes))])
    gaps, right = [], np.zeros(2)
    for fold in range(4):
        out = np.isin(np.arange(len(y)), first[fold::4][: len(y) // 8])
        out &= np.bincount(y[~out], minlength=len(sizes))[y] > 1
        held = hold_out(rule, white[out], y[out])
        anew = posterior(moments_of(x[~out], y[~out], rank))
        expected = between(scores(anew, x[out]))
        np.testing.assert_allclose(held.rule.moments.counts, np.bincount(y[~out]))
        gaps.append(np.corrcoef(between(held.scores).ravel(), expected.ravel())[0, 1])
        for way, found in enumerate((held.scores, expected)):
            right[way] += (found.argmax(axis=1) == y[out]).sum()
    assert min(gaps) > 0.97  # what other classes' own scatters say is left as it is
    assert abs(right[0] - right[1]) <= 2


def test_nothing_tells_the_class_of_samples_that_were_held_out() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(50, 200)), np.arange(50) % 10  # there is nothing to learn
    rule = posterior(moments_of(x, y))
    white = rule.whiten(x, x[:, :0])
    folds = [slice(start, start + 10) for start in range(0, 50, 10)]
    held = [hold_out(rule, white[fold], y[fold]).scores for fold in folds]
    held_out = np.mean([found.argmax(axis=1) == np.arange(10) for found in held])
    assert held_out < 0.2


def test_classes_with_fewer_samples_are_classified_as_if_taught_with_fewer() -> None:
    x, y, _ = blobs([40] * 5, dim=8, apart=0.8)
    rule = posterior(moments_of(x, y))
    white = rule.whiten(x, x[:, :0])
    out = np.arange(len(y)) % 40 < 5
    more = (np.arange(len(y)) % 40 >= 5) & (np.arange(len(y)) % 40 < 30)
    fewer = {label: (white[more & (y == label)].sum(axis=0), 25.0) for label in range(5)}
    held = hold_out(rule, white[out], y[out], fewer=fewer)
    np.testing.assert_allclose(held.rule.moments.counts, 10)
    anew = posterior(moments_of(x[~out & ~more], y[~out & ~more]))
    expected = between(scores(anew, x[out]))
    assert np.corrcoef(between(held.scores).ravel(), expected.ravel())[0, 1] > 0.88


# --------------------------------------------------------------------------- unequal classes


@pytest.mark.parametrize("dim", [16, 64])
def test_a_rare_class_is_found_as_often_as_others(dim: int) -> None:
    """One class of one sample among classes of 200; recall on new samples."""
    rare, others = [], []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        sizes = np.array([1, *[200] * 7])
        centres = 2.2 * dim**-0.5 * rng.normal(size=(8, dim)) * np.linspace(2, 0.5, dim)
        y, asked = np.arange(8).repeat(sizes), np.arange(8).repeat(50)
        x, test = (centres[labels] + 0.6 * rng.normal(size=(len(labels), dim))
                   for labels in (y, asked))  # fmt: skip
        right = scores(posterior(moments_of(x, y)), test).argmax(axis=1) == asked
        rare.append(right[:50].mean())
        others.append(right[50:].mean())
    assert 0.9 < np.mean(others) < 0.995
    assert np.mean(rare) > np.mean(others) - 0.16


def test_scatters_do_not_tell_classes_that_have_them_from_classes_that_have_none() -> None:
    """Rare classes get what scatters add to the others: whether one wins is up to the means."""
    x, y, _ = blobs([400, 400, 400, 1, 1], dim=6, apart=1.0)
    test, _, _ = blobs([200] * 5, dim=6, apart=1.0)
    rule, plain = posterior(moments_of(x, y), own=5.0), posterior(moments_of(x, y), own=0.0)
    rare = [(scores(one, test).argmax(axis=1) > 2) for one in (rule, plain)]
    alone = scores(replace(rule, lack=np.zeros(5)), test).argmax(axis=1) > 2
    assert (rare[0] == rare[1]).mean() > 0.9
    assert (alone == rare[1]).mean() < (rare[0] == rare[1]).mean() - 0.05


def test_more_samples_do_not_make_a_class_more_probable() -> None:
    """All classes have one prior probability: at the point between them, counts do not matter."""
    rng = np.random.default_rng(0)
    y = np.arange(2).repeat([50, 1000])
    x = rng.normal(size=(len(y), 3)) + np.array([[-1.0, 0, 0], [1.0, 0, 0]])[y]
    asked = rng.normal(size=(2000, 3))
    share = (scores(posterior(moments_of(x, y), own=0.0), asked).argmax(axis=1) == 0).mean()
    assert 0.4 < share < 0.6


# --------------------------------------------------------------------------- other coordinates


def test_coordinates_without_a_covariance_count_by_their_distance() -> None:
    """Many equal classes; the other coordinates add a share k / n of their squared distance."""
    x, y, _ = blobs([400] * 5, dim=8)
    known = moments_of(x, y, rank=5)
    rule = posterior(known, own=0.0)
    inside = posterior(moments_of(x[:, :5], y), own=0.0)
    test, _, _ = blobs([20] * 5, dim=8)
    found = between(scores(rule, test))
    beside = scores(rule, test) - scores(rule, np.concatenate([test[:, :5], np.zeros((100, 3))], 1))
    means = np.stack([x[y == label, 5:].mean(axis=0) for label in range(5)])
    variance = known.other_squares / 3 / (len(x) - 5)
    expected = 5 / 2000 * (test[:, 5:] @ means.T) / variance
    np.testing.assert_allclose(between(beside), between(expected), rtol=0.2, atol=0.02)
    np.testing.assert_allclose(found, between(scores(inside, test[:, :5])), rtol=0.2, atol=2.0)


@pytest.mark.parametrize("rank", [25, 39, 40])
@pytest.mark.parametrize("sizes", [[400] * 3, [2, 1, 3], [1, 1]])
def test_other_coordinates_are_scaled_by_what_is_known_of_their_variance(
    sizes: list[int], rank: int
) -> None:
    x, y, _ = blobs(sizes, dim=40)
    known = moments_of(x, y, rank)
    rule, beyond = posterior(known), len(x) - len(sizes)
    share = 0.2 / (beyond + 1)
    level = (share if share > 0.01 else 0) * known.other_means.var(axis=0, ddof=1).sum()
    level = (level + known.other_squares / max(1, beyond)) / max(1, 40 - rank) + rule.shared.ridge
    assert rule.scale == pytest.approx((len(sizes) / len(x) / level) ** 0.5)
    weights = (512 / 40) ** 0.5 * 0.1 / (known.counts + 25)
    np.testing.assert_allclose(rule.scatters.weights, weights)


def test_with_one_sample_per_class_all_coordinates_count_almost_alike() -> None:
    """What is guessed of the shared covariance whitens some of them, and scales the others."""
    rng = np.random.default_rng(0)
    x, test = rng.normal(size=(9, 8)), rng.normal(size=(40, 8))
    whole, parted = (posterior(moments_of(x, np.arange(9), rank)) for rank in (8, 5))
    one, other = between(scores(whole, test)), between(scores(parted, test))
    assert np.corrcoef(one.ravel(), other.ravel())[0, 1] > 0.95


# --------------------------------------------------------------------------- odd cases


@pytest.mark.parametrize("sizes", [[1], [5], [1, 1], [1, 50]])
def test_few_classes_and_samples_give_finite_scores(sizes: list[int]) -> None:
    x, y, _ = blobs(sizes)
    assert np.isfinite(scores(posterior(moments_of(x, y)), x)).all()


def test_features_that_never_change_give_finite_scores() -> None:
    x, y = np.ones((6, 4)), np.array([0, 0, 0, 1, 1, 1])
    assert np.isfinite(scores(posterior(moments_of(x, y)), x)).all()
    x[:, 1] = y
    found = scores(posterior(moments_of(x, y)), x)
    assert (found.argmax(axis=1) == y).all()


@settings(max_examples=20)
@given(seed=st.integers(0, 100), scale=st.sampled_from([1e-3, 1.0, 1e3]), by=st.integers(-9, 9))
def test_scale_origin_and_axes_of_features_do_not_matter(seed: int, scale: float, by: int) -> None:
    x, y, _ = blobs([9, 20, 4], dim=5, seed=seed)
    test, _, _ = blobs([5] * 3, dim=5, seed=seed)
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(5, 5)))[0]
    plain = scores(posterior(moments_of(x, y)), test)
    moved = scores(posterior(moments_of(scale * (x @ turn + by), y)), scale * (test @ turn + by))
    np.testing.assert_allclose(between(moved), between(plain), atol=1e-3 * np.abs(plain).max())


@pytest.mark.parametrize(("sizes", "dim"), [([50, 70], 6), ([3, 4, 1], 12), ([1, 1], 4)])
def test_the_shared_covariance_whitens(sizes: list[int], dim: int) -> None:
    """Whether its scatter is given, or only rows, which may be fewer than coordinates."""
    x, y, _ = blobs(sizes, dim)
    known = moments_of(x, y)
    assert known.scatter is not None
    for told in (known, replace(known, scatter=None)):
        shared = SharedCovariance.of(told)
        freedom = len(x) - len(sizes)
        covariance = known.scatter / max(1, freedom) + shared.ridge * np.eye(dim)
        covariance += guess(known.means, freedom)
        whitener = shared.whiten(np.eye(dim))
        np.testing.assert_allclose(whitener.T @ covariance @ whitener, np.eye(dim), atol=1e-6)
        noise = 1 - shared.ridge * np.trace(np.linalg.inv(covariance)) / dim
        assert shared.noise == pytest.approx(noise, abs=1e-9)


@pytest.mark.parametrize(("sizes", "dim"), [([9, 20, 4], 5), ([3, 4, 1, 5], 30), ([1, 1], 4)])
def test_rows_say_what_a_scatter_says(sizes: list[int], dim: int) -> None:
    x, y, _ = blobs(sizes, dim)
    known = moments_of(x, y)
    test, _, _ = blobs([6] * len(sizes), dim)
    one, other = (scores(posterior(m), test) for m in (known, replace(known, scatter=None)))
    np.testing.assert_allclose(between(one), between(other), atol=1e-4 * np.abs(one).max())


def test_the_memory_gives_the_rule_its_moments() -> None:
    x, y, _ = blobs([20, 9, 4])
    clf = FrugalClassifier(MomentMemory(root=False)).fit(x, y)
    memory: Any = clf.memory_
    x32 = x.astype(np.float32).astype(float)
    expected = scores(posterior(moments_of(x32, y)), x32)
    np.testing.assert_allclose(memory.log_density(x32), expected, atol=1e-3)
    np.testing.assert_array_equal(clf.predict(x), expected.argmax(axis=1))
