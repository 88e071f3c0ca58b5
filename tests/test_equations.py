from __future__ import annotations

import ast
import itertools
import math
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from torch import Tensor
from torch.distributions import Independent, MultivariateNormal, Normal, kl_divergence

from frugalvae.maths import equations
from frugalvae.maths.equations import (
    absorbed_condition,
    class_mean,
    class_probabilities,
    conditional_elbo,
    cosine_logits,
    diagonal_kld,
    divergence_gradient,
    elbo,
    final_step,
    fixed_point_objective,
    fixed_point_step,
    gaussian_log_likelihood,
    isolated_mean,
    isotropic_kld,
    kld,
    likelihood_gradient,
    log_kld_gradient,
    negated_condition,
    normalised_condition,
    pair_gradient,
    pair_weight,
    project_gradient,
    projector,
    proportion,
    reparametrise,
    repulsion,
    spectrum,
    summed_condition,
    unit,
)

CLASSES, SAMPLES, LATENT = 4, 5, 3
WEIGHT = 2.0


def normal(*shape: int, seed: int = 0) -> Tensor:
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


def diagonal_normal(mean: Tensor, sigma: Tensor | float) -> Independent:
    return Independent(Normal(mean, torch.as_tensor(sigma).double().expand_as(mean)), 1)


def assert_equal(actual: Tensor, expected: Tensor, tolerance: float = 1e-10) -> None:
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)


# --------------------------------------------------------------------------- Eqs. 1, 2, 3, 6


@pytest.fixture
def posterior() -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of six posteriors, none of them 1."""
    return normal(6, LATENT), normal(6, LATENT, seed=1).exp()


def test_elbo_is_log_likelihood_less_divergence_from_the_standard_normal(
    posterior: tuple[Tensor, Tensor],
) -> None:
    mu, sigma = posterior
    x, x_hat = normal(6, 7, seed=2), normal(6, 7, seed=3)
    prior = diagonal_normal(torch.zeros_like(mu), 1.0)
    expected = diagonal_normal(x_hat, 1.0).log_prob(x)
    expected = expected - kl_divergence(diagonal_normal(mu, sigma), prior)
    assert_equal(elbo(x, x_hat, mu, sigma), expected)


def test_reparametrised_noise_has_the_quantiles_of_the_posterior(
    posterior: tuple[Tensor, Tensor],
) -> None:
    noise = normal(6, LATENT, seed=2)
    expected = Normal(*posterior).icdf(Normal(0.0, 1.0).cdf(noise))
    assert_equal(reparametrise(*posterior, noise), expected)


def test_class_probabilities_equal_a_plain_loop() -> None:
    features, vectors, temperature = normal(5, 4).numpy(), normal(3, 4, seed=1).numpy(), 0.3
    expected = np.empty((5, 3))
    for i, feature in enumerate(features):
        for k, vector in enumerate(vectors):
            cosine = feature @ vector / math.sqrt(feature @ feature) / math.sqrt(vector @ vector)
            expected[i, k] = math.exp(cosine / temperature)
        expected[i] /= sum(expected[i])
    actual = class_probabilities(torch.tensor(features), torch.tensor(vectors), temperature)
    assert_equal(actual, torch.tensor(expected))


def test_logits_are_the_logarithms_of_the_probabilities_up_to_a_constant_a_row() -> None:
    features, vectors = normal(5, 4), normal(3, 4, seed=1)
    logits = cosine_logits(features, vectors, 0.3)
    difference = class_probabilities(features, vectors, 0.3).log() - logits
    assert_equal(difference, difference[:, :1].expand(5, 3))


def test_temperature_may_be_a_tensor_that_learns() -> None:
    temperature = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    logits = cosine_logits(normal(5, 4), normal(3, 4, seed=1), temperature)
    (gradient,) = torch.autograd.grad(logits.sum(), temperature)
    assert_equal(gradient, -logits.detach().sum() / 0.3)


def test_unit_scales_rows_to_length_one_and_leaves_zeros() -> None:
    rows = torch.tensor([[3.0, 4.0], [0.0, 0.0], [0.0, -7.0]], dtype=torch.float64)
    expected = torch.tensor([[0.6, 0.8], [0.0, 0.0], [0.0, -1.0]], dtype=torch.float64)
    assert_equal(unit(rows), expected)


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


# --------------------------------------------------------------------------- Eqs. 4, 5, 23


@pytest.fixture
def latents() -> Tensor:
    return normal(CLASSES * SAMPLES, LATENT, seed=7)


@pytest.fixture
def labels() -> Tensor:
    """Balanced and in no order."""
    return torch.arange(CLASSES).repeat(SAMPLES)


def means_of(latents: Tensor, labels: Tensor) -> Tensor:
    return torch.stack([latents[labels == y].mean(dim=0) for y in range(CLASSES)])


@pytest.fixture
def fixed_point(latents: Tensor, labels: Tensor) -> Tensor:
    data_means = means = means_of(latents, labels)
    for _ in range(2000):
        means = (means + fixed_point_step(data_means, means, WEIGHT)) / 2
    return means


def objective_gradient(latents: Tensor, labels: Tensor, means: Tensor) -> Tensor:
    """Of Eq. 4, with the lambda that corresponds to WEIGHT in Eq. 5."""
    means = means.clone().requires_grad_()
    loss = fixed_point_objective(latents, labels, means, WEIGHT * SAMPLES / 4)
    return torch.autograd.grad(loss, means)[0]


def test_objective_is_likelihood_and_log_divergence_of_all_ordered_pairs(
    latents: Tensor, labels: Tensor
) -> None:
    means = normal(CLASSES, LATENT, seed=8)
    gaussians = [diagonal_normal(mean, 1.0) for mean in means]
    expected = sum(-gaussians[y].log_prob(x) for x, y in zip(latents, labels, strict=True))
    for a, b in itertools.permutations(gaussians, 2):
        expected -= 3.0 * kl_divergence(a, b).log()
    assert_equal(fixed_point_objective(latents, labels, means, 3.0), expected)


def test_fixed_point_stands_still(latents: Tensor, labels: Tensor, fixed_point: Tensor) -> None:
    stepped = fixed_point_step(means_of(latents, labels), fixed_point, WEIGHT)
    assert_equal(stepped, fixed_point, 1e-12)
    assert (fixed_point - means_of(latents, labels)).norm() > 1  # repulsion did something


def test_fixed_point_zeroes_the_gradient_of_the_objective(
    latents: Tensor, labels: Tensor, fixed_point: Tensor
) -> None:
    gradient = objective_gradient(latents, labels, fixed_point)
    assert_equal(gradient, torch.zeros_like(gradient), 1e-9)


def test_fixed_point_zeroes_finite_differences_of_the_objective(
    latents: Tensor, labels: Tensor, fixed_point: Tensor
) -> None:
    step, weight = 1e-5, WEIGHT * SAMPLES / 4
    for y, j in itertools.product(range(CLASSES), range(LATENT)):
        offset = torch.zeros_like(fixed_point)
        offset[y, j] = step
        higher = fixed_point_objective(latents, labels, fixed_point + offset, weight)
        lower = fixed_point_objective(latents, labels, fixed_point - offset, weight)
        assert abs(float(higher - lower)) / (2 * step) < 1e-6


def test_gradient_of_the_objective_is_the_step_not_yet_taken(
    latents: Tensor, labels: Tensor
) -> None:
    """Everywhere, and not only at the fixed point, where factors do not show."""
    means = normal(CLASSES, LATENT, seed=8)
    step = fixed_point_step(means_of(latents, labels), means, WEIGHT) - means
    assert_equal(objective_gradient(latents, labels, means), -SAMPLES * step)


def test_last_equation_of_the_proof_is_the_fixed_point_step(
    latents: Tensor, labels: Tensor
) -> None:
    means, fixed = normal(CLASSES, LATENT, seed=8), normal(2, LATENT, seed=9)
    pushes = torch.tensor(naive_repulsion(means.numpy(), fixed.numpy()))
    expected = means_of(latents, labels) + WEIGHT * pushes
    assert_equal(fixed_point_step(means_of(latents, labels), means, WEIGHT, fixed), expected)
    assert_equal(final_step(latents, labels, means, WEIGHT, fixed), expected)


# --------------------------------------------------------------------------- repulsion


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


# --------------------------------------------------------------------------- Eqs. 7 - 10


@pytest.fixture
def old_inputs() -> Tensor:
    """Nine inputs of a layer of six, in a subspace of four."""
    return normal(9, 4) @ normal(4, 6, seed=1)


@pytest.fixture
def null_basis(old_inputs: Tensor) -> Tensor:
    return spectrum(old_inputs.T @ old_inputs).null_basis(2)


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


def test_projector_is_idempotent_and_symmetric(null_basis: Tensor) -> None:
    projection = projector(null_basis)
    assert_equal(projection @ projection, projection)
    assert_equal(projection.T, projection)
    assert float(projection.trace()) == pytest.approx(2)


def test_projected_update_moves_no_old_input_but_others(
    old_inputs: Tensor, null_basis: Tensor
) -> None:
    weight, update = normal(3, 6, seed=2), normal(3, 6, seed=3)
    changed = weight + project_gradient(update, null_basis)
    assert_equal(old_inputs @ changed.T, old_inputs @ weight.T)
    assert ((changed - weight) @ null_basis).norm() > 0.1


def test_projected_gradient_is_the_gradient_in_coordinates_of_the_null_space(
    null_basis: Tensor,
) -> None:
    weight, inputs = normal(3, 6, seed=2), normal(5, 6, seed=3)
    coordinates = torch.zeros(3, 2, dtype=torch.float64, requires_grad=True)
    confined = weight + coordinates @ null_basis.T
    free = weight.clone().requires_grad_()
    (step,) = torch.autograd.grad((inputs @ confined.T).tanh().sum(), coordinates)
    (gradient,) = torch.autograd.grad((inputs @ free.T).tanh().sum(), free)
    assert_equal(project_gradient(gradient, null_basis), step @ null_basis.T)


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


def test_proportion_of_a_layer_that_was_fed_nothing_is_zero() -> None:
    assert proportion(torch.zeros(3), 3) == 0.0


# --------------------------------------------------------------------------- Eqs. 11 - 22


def test_likelihood_gradient_is_that_of_the_mean_negative_log_likelihood(latents: Tensor) -> None:
    mean = normal(LATENT).requires_grad_()
    loss = -diagonal_normal(mean, 1.0).log_prob(latents).mean()
    assert_equal(likelihood_gradient(latents, mean.detach()), torch.autograd.grad(loss, mean)[0])


def test_class_mean_zeroes_the_likelihood_gradient(latents: Tensor) -> None:
    zero = torch.zeros(LATENT, dtype=torch.float64)
    assert_equal(likelihood_gradient(latents, class_mean(latents)), zero)


def test_kld_equals_that_of_torch_for_full_covariances() -> None:
    a, b = normal(5, 5), normal(5, 5, seed=1)
    covariance = a @ a.T + torch.eye(5)
    other_covariance = 2 * b @ b.T + torch.eye(5)
    mean, other_mean = normal(5, seed=2), normal(5, seed=3)
    expected = kl_divergence(
        MultivariateNormal(mean, covariance), MultivariateNormal(other_mean, other_covariance)
    )
    assert_equal(kld(mean, covariance, other_mean, other_covariance), expected)


def test_isotropic_kld_equals_that_of_torch_for_every_pair() -> None:
    means, others = normal(4, 5), normal(3, 5, seed=1)
    expected = [
        [float(kl_divergence(diagonal_normal(a, 1.0), diagonal_normal(b, 1.0))) for b in others]
        for a in means
    ]
    actual = isotropic_kld(means[:, None, :], others[None, :, :])
    assert_equal(actual, torch.tensor(expected, dtype=torch.float64))


def test_diagonal_kld_equals_that_of_torch(posterior: tuple[Tensor, Tensor]) -> None:
    prior_mean = normal(6, LATENT, seed=2)
    expected = kl_divergence(diagonal_normal(*posterior), diagonal_normal(prior_mean, 1.0))
    assert_equal(diagonal_kld(*posterior, prior_mean), expected)


def log_divergence_gradient(mean: Tensor, other: Tensor, *, reverse: bool = False) -> Tensor:
    mean = mean.clone().requires_grad_()
    pair = diagonal_normal(mean, 1.0), diagonal_normal(other, 1.0)
    loss = -kl_divergence(*(reversed(pair) if reverse else pair)).log()
    return torch.autograd.grad(loss.sum(), mean)[0]


def test_log_kld_gradient_equals_autograd_in_both_orders_of_the_pair() -> None:
    mean, other = normal(4, 5), normal(4, 5, seed=1)
    actual = log_kld_gradient(mean, other)
    assert_equal(actual, log_divergence_gradient(mean, other))
    assert_equal(actual, log_divergence_gradient(mean, other, reverse=True))


def test_pair_gradient_is_both_orders_of_a_pair_without_their_factor_of_four() -> None:
    mean, other = normal(5), normal(5, seed=1)
    both = log_divergence_gradient(mean, other)
    both = both + log_divergence_gradient(mean, other, reverse=True)
    assert_equal(pair_gradient(mean, other, WEIGHT), WEIGHT / 4 * both)


def test_divergence_gradient_sums_the_pairs_of_every_class() -> None:
    means, fixed = normal(4, 3), normal(2, 3, seed=1)
    everyone = torch.cat([means, fixed])
    for y, gradient in enumerate(divergence_gradient(means, WEIGHT, fixed)):
        others = torch.cat([everyone[:y], everyone[y + 1 :]])
        expected = sum(pair_gradient(means[y], other, WEIGHT) for other in others)
        assert_equal(gradient, expected)


@pytest.fixture
def others() -> Tensor:
    return normal(CLASSES - 1, LATENT, seed=9)


def test_summed_condition_is_a_gradient(latents: Tensor, others: Tensor) -> None:
    """Of the likelihood's sum, and of a quarter of both orders of all pairs."""
    mean = normal(LATENT, seed=8).requires_grad_()
    loss = -diagonal_normal(mean, 1.0).log_prob(latents).sum()
    gaussians = diagonal_normal(mean.expand_as(others), 1.0), diagonal_normal(others, 1.0)
    divergences = kl_divergence(*gaussians)
    loss = loss - WEIGHT / 2 * divergences.log().sum()
    actual = summed_condition(latents, mean.detach(), others, WEIGHT)
    assert_equal(actual, torch.autograd.grad(loss, mean)[0])


def test_conditions_of_the_proof_follow_from_each_other(latents: Tensor, others: Tensor) -> None:
    mean, count, pairs = normal(LATENT, seed=8), len(latents), CLASSES * (CLASSES - 1)
    summed = summed_condition(latents, mean, others, WEIGHT * count)
    absorbed = absorbed_condition(latents, mean, others, WEIGHT)
    assert_equal(negated_condition(latents, mean, others, WEIGHT * count), -summed)
    assert_equal(absorbed, -summed / count)
    assert_equal(normalised_condition(latents, mean, others, WEIGHT * pairs), absorbed)
    assert_equal(isolated_mean(latents, mean, others, WEIGHT), mean + absorbed)


def test_isolated_mean_is_one_row_of_the_fixed_point_step(latents: Tensor, labels: Tensor) -> None:
    means = normal(CLASSES, LATENT, seed=8)
    stepped = fixed_point_step(means_of(latents, labels), means, WEIGHT)
    for y in range(CLASSES):
        others = torch.cat([means[:y], means[y + 1 :]])
        assert_equal(isolated_mean(latents[labels == y], means[y], others, WEIGHT), stepped[y])


def test_fixed_point_satisfies_every_condition_of_the_proof(
    latents: Tensor, labels: Tensor, fixed_point: Tensor
) -> None:
    pairs, zero = CLASSES * (CLASSES - 1), torch.zeros(LATENT, dtype=torch.float64)
    for y, mean in enumerate(fixed_point):
        own = latents[labels == y]
        others = torch.cat([fixed_point[:y], fixed_point[y + 1 :]])
        assert_equal(summed_condition(own, mean, others, WEIGHT * SAMPLES), zero, 1e-9)
        assert_equal(negated_condition(own, mean, others, WEIGHT * SAMPLES), zero, 1e-9)
        assert_equal(normalised_condition(own, mean, others, WEIGHT * pairs), zero, 1e-9)
        assert_equal(absorbed_condition(own, mean, others, WEIGHT), zero, 1e-9)
        assert_equal(isolated_mean(own, mean, others, WEIGHT), mean, 1e-9)


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_pair_weight_divides_by_the_number_of_ordered_pairs(n_classes: int) -> None:
    n_pairs = len(list(itertools.permutations(range(n_classes), 2)))
    assert pair_weight(900.0, n_classes) == pytest.approx(900 / n_pairs)


def test_pair_weight_of_a_single_class_is_the_weight() -> None:
    assert pair_weight(900.0, 1) == 900.0


# --------------------------------------------------------------------------- completeness


def test_every_equation_of_the_paper_opens_exactly_one_docstring() -> None:
    tree = ast.parse(Path(equations.__file__).read_text())
    documented = (ast.FunctionDef, ast.ClassDef)
    docstrings = [
        ast.get_docstring(node) or "" for node in ast.walk(tree) if isinstance(node, documented)
    ]
    numbers = [int(found[1]) for text in docstrings if (found := re.match(r"Eq\. (\d+):", text))]
    assert Counter(numbers) == Counter(range(1, 24))


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
