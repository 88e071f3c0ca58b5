from __future__ import annotations

import ast
import math
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from torch import Tensor
from torch.distributions import MultivariateNormal, Normal, kl_divergence
from torch.utils._python_dispatch import TorchDispatchMode

from frugalvae.paper import equations, nullspace, vae_fo
from frugalvae.paper.equations import (
    conditional_elbo,
    cosine_logits,
    diagonal_kld,
    fixed_point_step,
    gaussian_log_likelihood,
    project_gradient,
    projector,
    proportion,
    reparametrise,
    repulsion,
    spectrum,
    unit,
)
from frugalvae.parts import make_memory
from tests.conftest import SMALL, blobs
from tests.paper import test_fixed_point_proof as proof
from tests.paper.test_fixed_point_proof import LATENT, WEIGHT, assert_equal, diagonal_normal, normal

# --------------------------------------------------------------------------- Eqs. 2, 3, 6


@pytest.fixture
def posterior() -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of six posteriors, none of them 1."""
    return normal(6, LATENT), normal(6, LATENT, seed=1).exp()


def elbo(x: Tensor, x_hat: Tensor, mu: Tensor, sigma: Tensor) -> Tensor:
    r"""Eq. 1: :math:`E_{q_\phi(z|x)}[\log p_\theta(x|z)] - D_{KL}(q_\phi(z|x) \| p(z))`."""
    prior = diagonal_normal(torch.zeros_like(mu), 1.0)
    likelihood = diagonal_normal(x_hat, 1.0).log_prob(x)
    return likelihood - kl_divergence(diagonal_normal(mu, sigma), prior)


def test_eq_6_with_a_prior_mean_of_zero_is_eq_1(posterior: tuple[Tensor, Tensor]) -> None:
    x, x_hat = normal(6, 7, seed=2), normal(6, 7, seed=3)
    zero = torch.zeros(6, LATENT, dtype=torch.float64)
    assert_equal(conditional_elbo(x, x_hat, *posterior, zero), elbo(x, x_hat, *posterior))


def test_reparametrised_noise_has_the_quantiles_of_the_posterior(
    posterior: tuple[Tensor, Tensor],
) -> None:
    noise = normal(6, LATENT, seed=2)
    expected = Normal(*posterior).icdf(Normal(0.0, 1.0).cdf(noise))
    assert_equal(reparametrise(*posterior, noise), expected)


def test_the_softmax_of_the_logits_equals_a_plain_loop() -> None:
    features, vectors, temperature = normal(5, 4).numpy(), normal(3, 4, seed=1).numpy(), 0.3
    expected = np.empty((5, 3))
    for i, feature in enumerate(features):
        for k, vector in enumerate(vectors):
            cosine = feature @ vector / math.sqrt(feature @ feature) / math.sqrt(vector @ vector)
            expected[i, k] = math.exp(cosine / temperature)
        expected[i] /= sum(expected[i])
    logits = cosine_logits(torch.tensor(features), torch.tensor(vectors), temperature)
    assert_equal(logits.softmax(dim=1), torch.tensor(expected))


def test_temperature_may_be_a_tensor_that_learns() -> None:
    temperature = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    logits = cosine_logits(normal(5, 4), normal(3, 4, seed=1), temperature)
    (gradient,) = torch.autograd.grad(logits.sum(), temperature)
    assert_equal(gradient, -logits.detach().sum() / 0.3)


def test_unit_scales_rows_to_length_one_and_leaves_zeros() -> None:
    rows = torch.tensor([[3.0, 4.0], [0.0, 0.0], [0.0, -7.0]], dtype=torch.float64)
    expected = torch.tensor([[0.6, 0.8], [0.0, 0.0], [0.0, -1.0]], dtype=torch.float64)
    assert_equal(unit(rows), expected)


def test_the_unit_of_a_row_does_not_depend_on_its_scale_nor_on_other_rows() -> None:
    """Also where its squares are infinite, or zero."""
    row = torch.tensor([3.0, 4.0])  # float32
    scales = torch.tensor([1e-37, 1e-30, 1.0, 1e30, 5e37])
    torch.testing.assert_close(unit(scales[:, None] * row), (row / 5).expand(5, 2))


def test_repulsion_takes_no_tensor_of_all_differences() -> None:
    """Of means that are far apart: k^2 distances, and not k^2 m differences."""

    class Sizes(TorchDispatchMode):
        largest = 0

        def __torch_dispatch__(self, function: Any, types: Any, given: Any, how: Any = None) -> Any:
            found = function(*given, **(how or {}))
            if isinstance(found, Tensor):
                self.largest = max(self.largest, found.numel())
            return found

    with Sizes() as sizes:
        repulsion(normal(40, 30))
    assert sizes.largest == 40**2


def test_conditional_elbo_equals_its_monte_carlo_estimate(
    posterior: tuple[Tensor, Tensor],
) -> None:
    mu, sigma = (part[0] for part in posterior)
    weight, bias = normal(7, LATENT, seed=4), normal(7, seed=5)
    x, prior_mean = normal(7, seed=2), normal(LATENT, seed=3)
    noise = normal(40_000, LATENT, seed=6)
    z = reparametrise(mu, sigma, noise)
    x_hat = z @ weight.T + bias

    likelihood = diagonal_normal(x_hat, 1.0).log_prob(x)
    prior = diagonal_normal(prior_mean, 1.0).log_prob(z)
    ratio = likelihood + prior - diagonal_normal(mu, sigma).log_prob(z)
    bound = conditional_elbo(x, x_hat, mu, sigma, prior_mean)
    error = float((ratio - bound).std()) / math.sqrt(len(noise))
    assert float(bound.mean()) == pytest.approx(float(ratio.mean()), abs=4 * error)


def exact_bound(x: Tensor, weight: Tensor, mu: Tensor, sigma: Tensor, prior_mean: Tensor) -> Tensor:
    """Expectation of Eq. 6 with a linear decoder.

    Such a bound is quadratic in z, so that its mean over these points, whose
    mean is 0 and covariance I, is the mean over the whole Gaussian.
    """
    axes = math.sqrt(len(mu)) * torch.eye(len(mu), dtype=torch.float64)
    z = reparametrise(mu, sigma, torch.cat([axes, -axes]))
    return conditional_elbo(x, z @ weight.T, mu, sigma, prior_mean).mean()


@pytest.fixture
def linear_model() -> tuple[Tensor, Tensor, Tensor]:
    """A decoder with orthogonal columns, whose posteriors therefore are diagonal."""
    directions = torch.linalg.qr(normal(7, LATENT)).Q
    weight = directions * torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
    return weight, normal(7, seed=1), normal(LATENT, seed=2)  # decoder, x, prior mean


def true_posterior(weight: Tensor, x: Tensor, prior_mean: Tensor) -> tuple[Tensor, Tensor]:
    covariance = torch.linalg.inv(torch.eye(LATENT) + weight.T @ weight)
    mean = prior_mean + covariance @ weight.T @ (x - weight @ prior_mean)
    return mean, covariance.diagonal().sqrt()


def evidence(weight: Tensor, x: Tensor, prior_mean: Tensor) -> Tensor:
    covariance = torch.eye(7, dtype=torch.float64) + weight @ weight.T
    return MultivariateNormal(weight @ prior_mean, covariance).log_prob(x)


def test_conditional_elbo_is_the_evidence_at_the_true_posterior(
    linear_model: tuple[Tensor, Tensor, Tensor],
) -> None:
    weight, x, prior_mean = linear_model
    mu, sigma = true_posterior(weight, x, prior_mean)
    bound = exact_bound(x, weight, mu, sigma, prior_mean)
    assert_equal(bound, evidence(weight, x, prior_mean))


@pytest.mark.parametrize(("shift", "stretch"), [(0.1, 1.0), (0.0, 1.1), (0.0, 0.9)])
def test_conditional_elbo_is_below_the_evidence_anywhere_else(
    linear_model: tuple[Tensor, Tensor, Tensor], shift: float, stretch: float
) -> None:
    weight, x, prior_mean = linear_model
    mu, sigma = true_posterior(weight, x, prior_mean)
    other, truth = diagonal_normal(mu + shift, sigma * stretch), diagonal_normal(mu, sigma)
    gap = evidence(weight, x, prior_mean) - exact_bound(
        x, weight, mu + shift, sigma * stretch, prior_mean
    )
    assert gap > 1e-3
    assert_equal(gap, kl_divergence(other, truth))


def test_gaussian_log_likelihood_is_that_of_a_unit_normal() -> None:
    x, mean = normal(6, 7), normal(6, 7, seed=1)
    assert_equal(gaussian_log_likelihood(x, mean), diagonal_normal(mean, 1.0).log_prob(x))


def test_diagonal_kld_equals_that_of_torch(posterior: tuple[Tensor, Tensor]) -> None:
    prior_mean = normal(6, LATENT, seed=2)
    expected = kl_divergence(diagonal_normal(*posterior), diagonal_normal(prior_mean, 1.0))
    assert_equal(diagonal_kld(*posterior, prior_mean), expected)


# --------------------------------------------------------------------------- Eq. 5


def naive_repulsion(means: np.ndarray, fixed: np.ndarray) -> np.ndarray:
    everyone = np.concatenate([means, fixed])
    total = np.zeros_like(means)
    for i, mean in enumerate(means):
        for j, other in enumerate(everyone):
            if j != i and (mean != other).any():
                total[i] += (mean - other) / ((mean - other) ** 2).sum()
    return total


def grid(rows: st.SearchStrategy[int]) -> st.SearchStrategy[np.ndarray]:
    """Points so few that pairs often coincide."""
    return rows.flatmap(lambda k: arrays(np.float64, (k, 2), elements=st.integers(-2, 2)))


@settings(max_examples=60)
@given(means=grid(st.integers(1, 5)), fixed=grid(st.integers(0, 3)))
def test_repulsion_equals_the_double_loop(means: np.ndarray, fixed: np.ndarray) -> None:
    actual = repulsion(torch.tensor(means), torch.tensor(fixed))
    assert_equal(actual, torch.tensor(naive_repulsion(means, fixed)))


def test_coincident_means_do_not_repel_each_other() -> None:
    means = torch.tensor([[1.0, 1.0], [1.0, 1.0], [1.0, 3.0]], dtype=torch.float64)
    expected = torch.tensor([[0.0, -0.5], [0.0, -0.5], [0.0, 1.0]], dtype=torch.float64)
    assert_equal(repulsion(means), expected)


def test_repulsion_of_all_classes_together_is_zero() -> None:
    assert_equal(repulsion(normal(6, 3)).sum(dim=0), torch.zeros(3, dtype=torch.float64))


def test_fixed_means_repel_without_a_row_of_their_own() -> None:
    means, fixed = normal(2, 3), normal(4, 3, seed=1)
    assert_equal(repulsion(means, fixed), repulsion(torch.cat([means, fixed]))[:2])


def test_repulsion_between_close_means_far_from_the_origin_keeps_its_digits() -> None:
    """The matrix form subtracts large numbers; distances must not come from products."""
    means = torch.tensor([[1e4, 0.0], [1e4 + 1e-2, 0.0]], dtype=torch.float64)
    expected = torch.tensor([[-100.0, 0.0], [100.0, 0.0]], dtype=torch.float64)
    torch.testing.assert_close(repulsion(means), expected, rtol=1e-6, atol=1e-6)


def test_the_fixed_point_step_equals_the_double_loop() -> None:
    data_means, means, fixed = normal(4, 3, seed=7), normal(4, 3, seed=8), normal(2, 3, seed=9)
    pushes = torch.tensor(naive_repulsion(means.numpy(), fixed.numpy()))
    assert_equal(fixed_point_step(data_means, means, WEIGHT, fixed), data_means + WEIGHT * pushes)


# --------------------------------------------------------------------------- Eqs. 7 - 10


@pytest.fixture
def old_inputs() -> Tensor:
    """Nine inputs of a layer of six, in a subspace of four."""
    return normal(9, 4) @ normal(4, 6, seed=1)


@pytest.fixture
def bases(old_inputs: Tensor) -> tuple[Tensor, Tensor]:
    """U^B and U^A of Eq. 9."""
    found = spectrum(old_inputs.T @ old_inputs)
    return found.null_basis(2), found.range_basis(2)


def test_spectrum_decomposes_the_covariance(old_inputs: Tensor) -> None:
    covariance = old_inputs.T @ old_inputs
    values, vectors = spectrum(covariance)
    assert_equal(vectors * values @ vectors.T, covariance)
    assert_equal(vectors.T @ vectors, torch.eye(6, dtype=torch.float64))
    assert (values.diff() >= 0).all()


def test_spectrum_is_taken_in_float64_and_never_negative() -> None:
    thin = normal(2, 8).float()
    values, vectors = spectrum(thin.T @ thin)
    assert values.dtype == vectors.dtype == torch.float64
    assert (values >= 0).all()


def test_null_basis_holds_the_smallest_directions() -> None:
    basis = spectrum(torch.diag(torch.tensor([5.0, 1.0, 3.0]))).null_basis(2)
    assert_equal(basis.abs(), torch.tensor([[0.0, 0], [1, 0], [0, 1]], dtype=torch.float64))


@pytest.mark.parametrize("swapped", [False, True])
def test_projector_is_idempotent_symmetric_and_that_of_the_paper(
    bases: tuple[Tensor, Tensor], swapped: bool
) -> None:
    """Whichever basis is the narrower one."""
    null_basis, range_basis = reversed(bases) if swapped else bases
    matrix = projector(torch.eye(6, dtype=torch.float64), null_basis, range_basis)
    assert_equal(matrix, null_basis @ null_basis.T)
    assert_equal(matrix @ matrix, matrix)
    assert_equal(matrix.T, matrix)
    assert float(matrix.trace()) == pytest.approx(4 if swapped else 2)


@pytest.mark.parametrize("size", [2, 4])
def test_projector_reads_the_narrower_basis_alone(old_inputs: Tensor, size: int) -> None:
    """Of 1,280 inputs, 30 of them not free, the other basis would cost forty times as much."""
    found, vectors = spectrum(old_inputs.T @ old_inputs), normal(3, 6, seed=4)
    null_basis, range_basis = found.null_basis(size), found.range_basis(size)
    expected = vectors @ null_basis @ null_basis.T
    (null_basis if size > 3 else range_basis).fill_(math.nan)
    assert_equal(projector(vectors, null_basis, range_basis), expected)


def test_projected_update_moves_no_old_input_but_others(
    old_inputs: Tensor, bases: tuple[Tensor, Tensor]
) -> None:
    weight, update = normal(3, 6, seed=2), normal(3, 6, seed=3)
    changed = weight + project_gradient(update, *bases)
    assert_equal(old_inputs @ changed.T, old_inputs @ weight.T)
    assert ((changed - weight) @ bases[0]).norm() > 0.1


def test_projected_gradient_is_the_gradient_in_coordinates_of_the_null_space(
    bases: tuple[Tensor, Tensor],
) -> None:
    weight, inputs, null_basis = normal(3, 6, seed=2), normal(5, 6, seed=3), bases[0]
    coordinates = torch.zeros(3, 2, dtype=torch.float64, requires_grad=True)
    confined = weight + coordinates @ null_basis.T
    free = weight.clone().requires_grad_()
    (step,) = torch.autograd.grad((inputs @ confined.T).tanh().sum(), coordinates)
    (gradient,) = torch.autograd.grad((inputs @ free.T).tanh().sum(), free)
    assert_equal(project_gradient(gradient, *bases), step @ null_basis.T)


def test_proportion_equals_its_numpy_twin(old_inputs: Tensor) -> None:
    covariance = old_inputs.T @ old_inputs + torch.eye(6)
    values = np.linalg.eigvalsh(covariance.numpy())
    for size in range(7):
        expected = values[:size].sum() / values.sum()
        actual = proportion(spectrum(covariance).eigenvalues, size)
        assert actual == pytest.approx(expected, abs=1e-12)


def test_proportion_is_zero_without_and_one_with_the_whole_space() -> None:
    values = torch.tensor([1.0, 2.0, 5.0])
    assert proportion(values, 0) == 0.0
    assert proportion(values, 3) == 1.0
    assert proportion(values / 1000, 3) == 1.0, "whatever the scale of the features"


def test_proportion_of_a_layer_that_was_fed_nothing_is_zero() -> None:
    assert proportion(torch.zeros(3), 3) == 0.0


def test_the_spectrum_survives_a_solver_that_does_not_converge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = torch.randn(5, 40, generator=torch.Generator().manual_seed(0)).double()
    expected = spectrum(x.T @ x)

    def fail(_: torch.Tensor) -> None:
        raise torch.linalg.LinAlgError("failed to converge")

    monkeypatch.setattr(torch.linalg, "eigh", fail)
    found = spectrum(x.T @ x)
    torch.testing.assert_close(found.eigenvalues, expected.eigenvalues)
    recomposed = found.eigenvectors * found.eigenvalues @ found.eigenvectors.T
    torch.testing.assert_close(recomposed, x.T @ x)
    assert (x @ found.null_basis(35)).abs().max() < 1e-9


# --------------------------------------------------------------------------- completeness


RUNNING = {2, 3, 5, 6, 7, 8, 9, 10}


def numbers_in(module: ModuleType) -> Counter[int]:
    """The equations whose numbers open a docstring."""
    tree = ast.parse(Path(str(module.__file__)).read_text())
    documented = (ast.FunctionDef, ast.ClassDef)
    docstrings = [
        ast.get_docstring(node) or "" for node in ast.walk(tree) if isinstance(node, documented)
    ]
    return Counter(
        int(found[1]) for text in docstrings if (found := re.match(r"Eq\. (\d+):", text))
    )


def test_every_equation_of_the_paper_has_exactly_one_function() -> None:
    assert numbers_in(equations) == Counter(RUNNING)
    here = sys.modules[__name__]
    assert numbers_in(here) + numbers_in(proof) == Counter({1, 4, *range(11, 24)})


def test_the_equations_that_are_tested_are_those_that_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """All but Eq. 3, which the heads call."""
    places = {
        "reparametrise": vae_fo,
        "conditional_elbo": vae_fo,
        "fixed_point_step": vae_fo,
        "project_gradient": nullspace,
        "projector": equations,
        "spectrum": nullspace,
        "proportion": nullspace,
    }
    calls: Counter[str] = Counter()

    def counted(name: str) -> Callable[..., Any]:
        function = getattr(equations, name)

        def call(*given: Any, **named: Any) -> Any:
            calls[name] += 1
            return function(*given, **named)

        return call

    for name, module in places.items():
        monkeypatch.setattr(module, name, counted(name))
    memory, rng = make_memory("vae-fo-literal", **SMALL), np.random.default_rng(0)
    memory.learn(blobs([0, 1]), rng)
    memory.learn(blobs([2]), rng)
    steps = 2 * SMALL["epochs"]  # each task is one batch
    assert calls["conditional_elbo"] == steps
    assert calls["reparametrise"] == steps + 2  # and what each task protects
    assert calls["projector"] == calls["project_gradient"] == 3 * steps / 2  # layers; second task
    assert calls["fixed_point_step"] > 10
    assert calls["proportion"] >= calls["spectrum"] > 0  # which is kept until inputs are added
