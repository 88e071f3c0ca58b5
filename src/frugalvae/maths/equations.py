"""Every numbered equation of the paper, one pure function each.

"Frugal Incremental Generative Modeling using Variational Autoencoders"
(Enescu and Sahbi). Functions are in the order of the paper and carry its
numbers; Eqs. 11-23 are the appendix's proof of the fixed-point iteration.
Nothing here holds state, draws random numbers or knows about tasks: the
classes of this package do that and call these functions.

Shapes: ``n`` samples, ``d`` features, ``m`` latent dimensions, ``k`` classes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

# --------------------------------------------------------------------------- background


def elbo(x: Tensor, x_hat: Tensor, mu: Tensor, sigma: Tensor) -> Tensor:
    r"""Eq. 1: evidence lower bound of a VAE with prior N(0, I), one value a sample.

    .. math:: E_{q_\phi(z|x)}[\log p_\theta(x|z)] - D_{KL}(q_\phi(z|x) \| p(z))

    The expectation is estimated by the single latent that ``x_hat`` was decoded from.
    """
    return conditional_elbo(x, x_hat, mu, sigma, prior_mean=torch.zeros_like(mu))


def reparametrise(mu: Tensor, sigma: Tensor, noise: Tensor) -> Tensor:
    r"""Eq. 2: :math:`z = \mu_{\phi,x} + \sigma_{\phi,x} \odot \epsilon`."""
    return mu + sigma * noise


def cosine_logits(features: Tensor, class_vectors: Tensor, temperature: float | Tensor) -> Tensor:
    r"""The exponents of Eq. 3: :math:`S_C(z^{img}, z^{txt}_k)/\beta`, shape (n, k)."""
    return unit(features) @ unit(class_vectors).T / temperature


def class_probabilities(
    features: Tensor, class_vectors: Tensor, temperature: float | Tensor
) -> Tensor:
    r"""Eq. 3: softmax over classes of the cosine similarity divided by :math:`\beta`."""
    return cosine_logits(features, class_vectors, temperature).softmax(dim=1)


def unit(vectors: Tensor) -> Tensor:
    """Rows scaled to length one; a row of zeros stays zero."""
    return torch.nn.functional.normalize(vectors, dim=-1)


# --------------------------------------------------------------------------- priors


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


def fixed_point_step(
    data_means: Tensor, means: Tensor, weight: float, fixed: Tensor | None = None
) -> Tensor:
    r"""Eq. 5: one iteration for all classes of the task, shape (k, m).

    .. math::
        \mu_y^{(\tau)} = \frac{1}{N_y} \sum_i \mu_{\phi,x_i,y_i}
        + \lambda \sum_{y' \ne y} \frac{\mu_y^{(\tau-1)} - \mu_{y'}^{(\tau-1)}}
        {\|\mu_y^{(\tau-1)} - \mu_{y'}^{(\tau-1)}\|^2}

    Means in ``fixed`` (classes of earlier tasks) repel and do not move.
    """
    return data_means + weight * repulsion(means, fixed)


def conditional_elbo(
    x: Tensor, x_hat: Tensor, mu: Tensor, sigma: Tensor, prior_mean: Tensor
) -> Tensor:
    r"""Eq. 6: evidence lower bound under the class's own prior, one value a sample.

    .. math::
        E_{q_\phi(z|x,y)}[\log p_\theta(x|z,y)]
        - D_{KL}(N(\mu_{\phi,x,y}, \sigma_{\phi,x,y}) \| N(\mu_y, I))

    The likelihood is :math:`N(\hat x, I)`. To be maximised.
    """
    return gaussian_log_likelihood(x, x_hat) - diagonal_kld(mu, sigma, prior_mean)


def gaussian_log_likelihood(x: Tensor, mean: Tensor) -> Tensor:
    """Logarithm of N(x; mean, I), summed over the last dimension."""
    squared = (x - mean).square().sum(dim=-1)
    return -0.5 * (squared + x.shape[-1] * math.log(2 * math.pi))


def diagonal_kld(mu: Tensor, sigma: Tensor, prior_mean: Tensor) -> Tensor:
    """Divergence of N(mu, diag sigma^2) from N(prior_mean, I): Eq. 13 for these two."""
    variance = sigma.square()
    return 0.5 * ((mu - prior_mean).square() + variance - variance.log() - 1).sum(dim=-1)


# --------------------------------------------------------------------------- null space


def project_gradient(gradient: Tensor, null_basis: Tensor) -> Tensor:
    r"""Eq. 7: :math:`\bar g_l = \pi_l(g_l)` for a weight of shape (out, in).

    The paper writes the weight as (in, out), so its projector stands on the left.
    """
    return gradient @ projector(null_basis)


def projector(null_basis: Tensor) -> Tensor:
    r"""Eq. 8: the matrix of :math:`\pi_l(v) = U^B_l (U^B_l)^\top v`."""
    return null_basis @ null_basis.T


class Spectrum(NamedTuple):
    """What Eq. 9 gives: eigenvalues in ascending order, and eigenvectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor

    def null_basis(self, size: int) -> Tensor:
        r""":math:`U^B`: the eigenvectors of the ``size`` smallest eigenvalues."""
        return self.eigenvectors[:, :size]


def spectrum(covariance: Tensor) -> Spectrum:
    r"""Eq. 9: :math:`U_l \Lambda_l U_l^\top = \Sigma_l`, in float64."""
    covariance = covariance.double()
    try:
        eigenvalues, eigenvectors = torch.linalg.eigh(covariance)
    except torch.linalg.LinAlgError:  # type: ignore[attr-defined]  # on some repeated eigenvalues
        import scipy.linalg  # slow to import, and seldom needed

        found = scipy.linalg.eigh(covariance.cpu().numpy(), driver="ev")
        eigenvalues, eigenvectors = (torch.tensor(part).to(covariance) for part in found)
    return Spectrum(eigenvalues.clamp(min=0), eigenvectors)


def proportion(eigenvalues: Tensor, null_size: int) -> float:
    r"""Eq. 10: :math:`R = \sum_{\nu \in \Lambda^B} \nu / \sum_{\nu \in \Lambda} \nu`.

    The part of the old inputs' energy that lies in the null space: 0 is no
    forgetting, 1 is no protection. Eigenvalues are in ascending order.
    """
    total = float(eigenvalues.sum())
    return float(eigenvalues[:null_size].sum()) / total if total > 0 else 0.0


# --------------------------------------------------------------------------- proof of Eq. 5


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


def repulsion(means: Tensor, fixed: Tensor | None = None) -> Tensor:
    r"""The sum in Eq. 5, :math:`\sum_{y' \ne y} (\mu_y - \mu_{y'}) / \|\mu_y - \mu_{y'}\|^2`.

    Written as matrix products: the differences themselves would take k^2 m numbers.
    A pair that coincides has no direction to repel in and contributes nothing.
    """
    everyone = means if fixed is None else torch.cat([means, fixed])
    lengths = means.square().sum(dim=1)[:, None] + everyone.square().sum(dim=1)
    squared = lengths - 2 * means @ everyone.T  # (k, k + old)
    row, column = (squared < 1e-3 * lengths).nonzero(as_tuple=True)  # close pairs: exactly
    squared[row, column] = (means[row] - everyone[column]).square().sum(dim=1)
    apart = squared > torch.finfo(squared.dtype).tiny
    inverse = torch.where(apart, 1 / squared, 0.0)
    return inverse.sum(dim=1, keepdim=True) * means - inverse @ everyone
