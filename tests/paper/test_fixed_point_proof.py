"""Why Eq. 5 holds: Eq. 4, whose stationary points it finds, and the proof, Eqs. 11 to 23.

Each equation of the proof is one function, as in the paper. None of them runs in the package.
"""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor
from torch.distributions import Independent, MultivariateNormal, Normal, kl_divergence

from frugalvae.paper.equations import fixed_point_step, gaussian_log_likelihood, repulsion
from frugalvae.paper.priors import FixedPointPrior

CLASSES, SAMPLES, LATENT = 4, 5, 3
WEIGHT = 2.0


def normal(*shape: int, seed: int = 0) -> Tensor:
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


def diagonal_normal(mean: Tensor, sigma: Tensor | float) -> Independent:
    return Independent(Normal(mean, torch.as_tensor(sigma).double().expand_as(mean)), 1)


def assert_equal(actual: Tensor, expected: Tensor, tolerance: float = 1e-10) -> None:
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)


# --------------------------------------------------------------------------- the equations


def fixed_point_objective(latents: Tensor, labels: Tensor, means: Tensor, weight: float) -> Tensor:
    r"""Eq. 4: the loss whose stationary points are the class means.

    .. math::
        \sum_{x,y} -\log N(\mu_{\phi,x,y}; \mu_y, I)
        + \lambda \sum_{y \ne y'} -\log D_{KL}(N_y \| N_{y'})

    The second sum runs over ordered pairs, so every pair counts twice. Eq. 5
    "absorbs" the factors that this leaves: with :math:`n` samples in each class,
    its :math:`\lambda` is :math:`4/n` times the one here.
    """
    likelihood = gaussian_log_likelihood(latents, means[labels]).sum()
    pairwise = isotropic_kld(means[:, None, :], means[None, :, :])  # (k, k)
    apart = ~torch.eye(len(means), dtype=torch.bool, device=means.device)
    return -likelihood - weight * pairwise[apart].log().sum()


def likelihood_gradient(latents: Tensor, mean: Tensor) -> Tensor:
    r"""Eq. 11: :math:`-\frac{1}{N_y} \sum_i (\mu_{\phi,x_i,y_i} - \mu_y)`, for one class."""
    return -(latents - mean).mean(dim=0)


def class_mean(latents: Tensor) -> Tensor:
    r"""Eq. 12: :math:`\mu_y = \frac{1}{N_y} \sum_i \mu_{\phi,x_i,y_i}`, where Eq. 11 is zero."""
    return latents.mean(dim=0)


def kld(mean: Tensor, covariance: Tensor, other_mean: Tensor, other_covariance: Tensor) -> Tensor:
    r"""Eq. 13: divergence between two Gaussians with full covariances.

    .. math::
        \tfrac12 [\log |\Sigma_{y'}| / |\Sigma_y| - d + Tr(\Sigma_{y'}^{-1} \Sigma_y)
        + (\mu_{y'} - \mu_y)^\top \Sigma_{y'}^{-1} (\mu_{y'} - \mu_y)]
    """
    difference = other_mean - mean
    trace: Tensor = torch.linalg.solve(other_covariance, covariance).trace()
    distance = difference @ torch.linalg.solve(other_covariance, difference)
    volume = torch.logdet(other_covariance) - torch.logdet(covariance)
    divergence: Tensor = 0.5 * (volume - len(mean) + trace + distance)
    return divergence


def isotropic_kld(mean: Tensor, other_mean: Tensor) -> Tensor:
    r"""Eq. 14: Eq. 13 with identity covariances, :math:`\tfrac12 \|\mu_{y'} - \mu_y\|^2`."""
    return 0.5 * (other_mean - mean).square().sum(dim=-1)


def log_kld_gradient(mean: Tensor, other_mean: Tensor) -> Tensor:
    r"""Eq. 15: gradient of :math:`-\log KLD(N_y \| N_{y'})` with respect to :math:`\mu_y`.

    .. math:: 2 (\mu_{y'} - \mu_y) / \|\mu_{y'} - \mu_y\|^2
    """
    difference = other_mean - mean
    return 2 * difference / difference.square().sum(dim=-1, keepdim=True)


def pair_gradient(mean: Tensor, other_mean: Tensor, weight: float) -> Tensor:
    r"""Eq. 16: both orders of a pair together, up to the factor 4 that :math:`\lambda` absorbs.

    .. math:: \lambda (\mu_{y'} - \mu_y) / \|\mu_{y'} - \mu_y\|^2
    """
    return weight / 2 * log_kld_gradient(mean, other_mean)


def divergence_gradient(means: Tensor, weight: float, fixed: Tensor | None = None) -> Tensor:
    r"""Eq. 17: Eq. 16 summed over all other classes, for every class of ``means``."""
    return -weight * repulsion(means, fixed)


def summed_condition(latents: Tensor, mean: Tensor, others: Tensor, weight: float) -> Tensor:
    r"""Eq. 18: likelihood term plus KLD term, whose root is the mean of one class.

    .. math:: -\sum_i (\mu_{\phi,x_i,y_i} - \mu_y)
              + \lambda \sum_{y' \ne y} (\mu_{y'} - \mu_y) / \|\mu_{y'} - \mu_y\|^2
    """
    return -(latents - mean).sum(dim=0) + pair_gradient(mean, others, weight).sum(dim=0)


def negated_condition(latents: Tensor, mean: Tensor, others: Tensor, weight: float) -> Tensor:
    r"""Eq. 19: Eq. 18 with both terms' signs turned."""
    return -summed_condition(latents, mean, others, weight)


def normalised_condition(latents: Tensor, mean: Tensor, others: Tensor, weight: float) -> Tensor:
    r"""Eq. 20: Eq. 19 with each term divided by its number of summands.

    .. math:: \frac{1}{N_y} \sum_i \mu_{\phi,x_i,y_i} - \mu_y
              + \frac{\lambda}{K (K-1)} \sum_{y' \ne y}
              (\mu_y - \mu_{y'}) / \|\mu_y - \mu_{y'}\|^2
    """
    return absorbed_condition(latents, mean, others, pair_weight(weight, len(others) + 1))


def pair_weight(weight: float, n_classes: int) -> float:
    r"""The factor of Eq. 20, :math:`\lambda / (K (K - 1))`; a single class has no pair."""
    return weight / max(n_classes * (n_classes - 1), 1)


def absorbed_condition(latents: Tensor, mean: Tensor, others: Tensor, weight: float) -> Tensor:
    r"""Eq. 21: Eq. 20 with the number of pairs absorbed in :math:`\lambda`."""
    return class_mean(latents) - mean - pair_gradient(mean, others, weight).sum(dim=0)


def isolated_mean(latents: Tensor, mean: Tensor, others: Tensor, weight: float) -> Tensor:
    r"""Eq. 22: Eq. 21 solved for the :math:`\mu_y` that stands alone."""
    return mean + absorbed_condition(latents, mean, others, weight)


def final_step(
    latents: Tensor, labels: Tensor, means: Tensor, weight: float, fixed: Tensor | None = None
) -> Tensor:
    r"""Eq. 23: Eq. 22 with time steps, which is Eq. 5 written with the samples themselves."""
    data_means = torch.stack([class_mean(latents[labels == y]) for y in range(len(means))])
    return fixed_point_step(data_means, means, weight, fixed)


# --------------------------------------------------------------------------- Eqs. 4 and 5


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


# --------------------------------------------------------------------------- Eqs. 11 to 23


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


@pytest.mark.parametrize("n_classes", [1, 2, 10])
def test_a_prior_that_divides_by_pairs_uses_the_weight_of_the_proof(n_classes: int) -> None:
    prior = FixedPointPrior(divide_by="pairs")
    assert prior.weight_among(n_classes) == pytest.approx(pair_weight(900.0, n_classes))


def test_last_equation_of_the_proof_is_the_fixed_point_step(
    latents: Tensor, labels: Tensor
) -> None:
    means, fixed = normal(CLASSES, LATENT, seed=8), normal(2, LATENT, seed=9)
    expected = fixed_point_step(means_of(latents, labels), means, WEIGHT, fixed)
    everyone = torch.cat([means, fixed])
    for y in range(CLASSES):
        others = torch.cat([everyone[:y], everyone[y + 1 :]])
        assert_equal(isolated_mean(latents[labels == y], means[y], others, WEIGHT), expected[y])
    assert_equal(final_step(latents, labels, means, WEIGHT, fixed), expected)
