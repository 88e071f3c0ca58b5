"""The paper's numbered equations that run, one pure function each.

"Frugal Incremental Generative Modeling using Variational Autoencoders" (Enescu and Sahbi).
Functions follow the order of the paper and carry its numbers. The training loop, the null
spaces, the priors and prompts call these functions. Only ``parts/cosine.py`` repeats one, Eq. 3:
it must not need this room, nor PyTorch to predict. Eq. 1 is Eq. 6
with a prior mean of zero. Eqs. 4 and 11 to 23 only derive Eq. 5; they are in the test that
proves it, ``tests/paper/test_fixed_point_proof.py``.

Nothing here holds state, draws random numbers or knows about tasks.

Shapes: ``n`` samples, ``d`` features, ``m`` latent dimensions, ``k`` classes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from frugalvae.parts.tensors import unit

# --------------------------------------------------------------------------- background


def reparametrise(mu: Tensor, sigma: Tensor, noise: Tensor) -> Tensor:
    r"""Eq. 2: :math:`z = \mu_{\phi,x} + \sigma_{\phi,x} \odot \epsilon`, shape (n, m)."""
    return mu + sigma * noise


def cosine_logits(features: Tensor, class_vectors: Tensor, temperature: float | Tensor) -> Tensor:
    r"""Eq. 3: logits (n, k) whose softmax over classes is :math:`p(y|x)`.

    .. math:: p(y_i|x_i) = \frac{\exp(S_C(z_i^{img}, z_i^{txt})/\beta)}
              {\sum_k \exp(S_C(z_i^{img}, z_k^{txt})/\beta)}

    The logits are the exponents, cosine similarity divided by the temperature :math:`\beta`:
    the cross-entropy loss takes logits.
    """
    return unit(features) @ unit(class_vectors).T / temperature  # (n, k)


# --------------------------------------------------------------------------- priors


def fixed_point_step(
    data_means: Tensor, means: Tensor, weight: float, fixed: Tensor | None = None
) -> Tensor:
    r"""Eq. 5: one iteration for all classes of the task, shape (k, m).

    .. math::
        \mu_y^{(\tau)} = \frac{1}{N_y} \sum_i \mu_{\phi,x_i,y_i}
        + \lambda \sum_{y' \ne y} \frac{\mu_y^{(\tau-1)} - \mu_{y'}^{(\tau-1)}}
        {\|\mu_y^{(\tau-1)} - \mu_{y'}^{(\tau-1)}\|^2}

    The means in ``fixed``, those of earlier tasks, repel but do not move.
    """
    return data_means + weight * repulsion(means, fixed)


def repulsion(means: Tensor, fixed: Tensor | None = None) -> Tensor:
    r"""The sum in Eq. 5, :math:`\sum_{y' \ne y} (\mu_y - \mu_{y'}) / \|\mu_y - \mu_{y'}\|^2`.

    Computed by matrix products, since the differences themselves would take k^2 m numbers.
    Two means that coincide have no direction to repel in; such a pair contributes zero.
    """
    everyone = means if fixed is None else torch.cat([means, fixed])  # (k + old, m)
    lengths = means.square().sum(dim=1)[:, None] + everyone.square().sum(dim=1)
    squared = lengths - 2 * means @ everyone.T  # (k, k + old)
    row, column = (squared < 1e-3 * lengths).nonzero(as_tuple=True)  # close pairs: exactly
    squared[row, column] = (means[row] - everyone[column]).square().sum(dim=1)
    apart = squared > torch.finfo(squared.dtype).tiny
    inverse = torch.where(apart, 1 / squared, 0.0)
    return inverse.sum(dim=1, keepdim=True) * means - inverse @ everyone  # (k, m)


# --------------------------------------------------------------------------- loss


def conditional_elbo(
    x: Tensor, x_hat: Tensor, mu: Tensor, sigma: Tensor, prior_mean: Tensor
) -> Tensor:
    r"""Eq. 6: evidence lower bound under the prior of the sample's class, shape (n,).

    .. math::
        E_{q_\phi(z|x,y)}[\log p_\theta(x|z,y)]
        - D_{KL}(N(\mu_{\phi,x,y}, \sigma_{\phi,x,y}) \| N(\mu_y, I))

    To be maximised. The expectation is estimated by the one latent that ``x_hat`` was decoded
    from. The paper names no likelihood: here it is :math:`N(\hat x, I)`.
    """
    return gaussian_log_likelihood(x, x_hat) - diagonal_kld(mu, sigma, prior_mean)


def gaussian_log_likelihood(x: Tensor, mean: Tensor) -> Tensor:
    """Logarithm of N(x; mean, I), summed over the last dimension."""
    squared = (x - mean).square().sum(dim=-1)
    return -0.5 * (squared + x.shape[-1] * math.log(2 * math.pi))


def diagonal_kld(mu: Tensor, sigma: Tensor, prior_mean: Tensor) -> Tensor:
    """Divergence of N(mu, diag sigma^2) from N(prior_mean, I), summed over the last dimension."""
    variance = sigma.square()
    return 0.5 * ((mu - prior_mean).square() + variance - variance.log() - 1).sum(dim=-1)


# --------------------------------------------------------------------------- null space


def project_gradient(gradient: Tensor, null_basis: Tensor, range_basis: Tensor) -> Tensor:
    r"""Eq. 7: :math:`\bar g_l = \pi_l(g_l)` for the gradient, or change, of a weight (out, in).

    The paper writes weights as (in, out). Here each row is one of its columns.
    """
    return projector(gradient, null_basis, range_basis)


def projector(vectors: Tensor, null_basis: Tensor, range_basis: Tensor) -> Tensor:
    r"""Eq. 8: :math:`\pi_l(v) = U^B_l (U^B_l)^\top v` for each row v of ``vectors`` (n, in).

    ``null_basis`` is :math:`U^B` (in, b) and ``range_basis`` :math:`U^A` (in, a). Together they
    are orthonormal, so :math:`U^B (U^B)^\top = I - U^A (U^A)^\top`: the narrower one is used.
    """
    if null_basis.shape[1] <= range_basis.shape[1]:
        return (vectors @ null_basis) @ null_basis.T
    return torch.addmm(vectors, vectors @ range_basis, range_basis.T, alpha=-1)


class Spectrum(NamedTuple):
    """What Eq. 9 gives: eigenvalues in ascending order, and eigenvectors as columns."""

    eigenvalues: Tensor  # (in,)
    eigenvectors: Tensor  # (in, in)

    def null_basis(self, size: int) -> Tensor:
        r""":math:`U^B`, (in, size): the eigenvectors of the ``size`` smallest eigenvalues."""
        return self.eigenvectors[:, :size]

    def range_basis(self, size: int) -> Tensor:
        r""":math:`U^A`, (in, in - size): all other eigenvectors."""
        return self.eigenvectors[:, size:]


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

    The share of the old inputs' energy that lies in the null space: 0 means no forgetting,
    1 no protection. Eigenvalues are in ascending order.
    """
    total = float(eigenvalues.sum())
    return float(eigenvalues[:null_size].sum()) / total if total > 0 else 0.0
