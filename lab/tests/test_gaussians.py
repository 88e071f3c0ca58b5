"""Gaussians of low rank, against dense ones."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from frugalvae.maths.arrays import Array
from frugalvae.maths.gaussians import Whitener
from frugalvae_lab.memories.gaussians import Gaussians


def normal(*shapes: tuple[int, ...]) -> list[Array]:
    rng = np.random.default_rng(0)
    return [rng.normal(size=shape) for shape in shapes]


@pytest.mark.parametrize("own", [0.0, 0.2, 1.0])
def test_low_rank_covariances_by_woodbury_are_the_dense_ones(own: float) -> None:
    root, means, factors, x = normal((9, 9), (4, 9), (4, 3, 9), (20, 9))
    factors[1] = 0  # a class without directions, and one with fewer
    factors[2, 1:] = 0
    shared = root @ root.T
    found = Gaussians.of(Whitener.of(shared, 0.0), means, factors, own).log_density(x)
    for label in range(4):
        twin = multivariate_normal(means[label], shared + own * factors[label].T @ factors[label])
        np.testing.assert_allclose(found[:, label], twin.logpdf(x), rtol=1e-5)


@pytest.mark.parametrize("rows", [1, 60])
@pytest.mark.parametrize("own", [0.0, 0.2, 1.0])
def test_scores_are_densities_up_to_one_number_a_row(own: float, rows: int) -> None:
    """By way of white coordinates, folded for rows themselves, and of rows that are turned."""
    root, means, factors, turn, x = normal((9, 9), (4, 9), (4, 3, 9), (20, 9), (rows, 20))
    factors[1], factors[2, 1:] = 0, 0
    gaussians = Gaussians.of(Whitener.of(root @ root.T, 0.1), means, factors, own)
    inside = x @ turn
    folded = gaussians.folded()
    turned = folded.mapped(lambda vectors: vectors @ turn.T)
    for scores in (gaussians.scores(inside), folded.of(inside), turned.of(x)):
        off = gaussians.log_density(inside) - scores
        np.testing.assert_allclose(off, off[:, :1].repeat(4, axis=1), rtol=1e-9, atol=1e-9)
    slopes, constants = normal((4, 9), (4,))
    more = folded.plus(slopes, constants).of(inside)
    np.testing.assert_allclose(more - folded.of(inside), inside @ slopes.T - constants, atol=1e-9)


class Counted(np.ndarray):
    """Rows that count the multiplications of matrix products that they are in."""

    products: ClassVar[list[int]] = []

    def __array_ufunc__(self, ufunc: Any, method: str, *given: Any, **named: Any) -> Any:
        plain = [np.asarray(each) for each in given]
        result = getattr(ufunc, method)(*plain, **named)
        if ufunc is np.matmul:
            self.products.append(result.size * plain[0].shape[-1])
        return result.view(Counted)


def test_rows_are_whitened_once_and_multiplied_once_whatever_the_number_of_classes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows, classes, most, dim = 50, 20, 4, 33
    factors, means, x = normal((classes, most, dim), (classes, dim), (rows, dim))
    gaussians = Gaussians.of(Whitener.of(np.eye(dim), 0.1), means, factors)
    whitened, whiten = list[tuple[int, ...]](), Whitener.whiten

    def counting(whitener: Whitener, given: Array) -> Array:
        whitened.append(given.shape)
        return whiten(whitener, given).view(Counted)

    monkeypatch.setattr(Whitener, "whiten", counting)
    for ask in (gaussians.log_density, gaussians.scores):
        monkeypatch.setattr(Counted, "products", [])
        whitened.clear()
        assert ask(x).shape == (rows, classes)
        assert whitened == [(rows, dim)]
        assert Counted.products == [rows * classes * (1 + most) * dim]
