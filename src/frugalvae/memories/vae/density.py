"""The density of a sample under a decoder: low-rank Gaussians, and an importance-weighted bound.

Not in the paper: it lets a VAE classify by Bayes' rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from frugalvae.maths.networks import MLP


class LowRankGaussian:
    """N(0, noise^2 I + F F^T) in d dimensions, from F of shape (d, m); nothing is (d, d).

    Examples
    --------
    >>> gaussian = LowRankGaussian(torch.tensor([[1.0], [0.0]]), noise=1.0)
    >>> gaussian.solve(torch.tensor([[2.0, 2.0]]))  # divided by variances 2 and 1
    tensor([[1., 2.]])
    """

    def __init__(self, factors: Tensor, noise: float) -> None:
        self.noise = noise
        self.factors = factors / noise
        inner = self.factors.T @ self.factors  # (m, m)
        inner = inner + torch.eye(len(inner)).to(inner)
        self.root = torch.linalg.cholesky(inner)
        self.half_log_volume = float(self.root.diagonal().log().sum())
        self.half_log_volume += len(factors) * (math.log(noise) + 0.5 * math.log(2 * math.pi))

    def log_density(self, x: Tensor) -> Tensor:
        """Log density (n,) of rows x (n, d)."""
        x = x / self.noise
        inside = torch.linalg.solve_triangular(self.root, (x @ self.factors).T, upper=False)
        squared: Tensor = x.square().sum(dim=1) - inside.square().sum(dim=0)
        return -0.5 * squared - self.half_log_volume

    def solve(self, x: Tensor) -> Tensor:
        """Rows x (n, d) times the inverse of the covariance."""
        inside = torch.cholesky_solve((x @ self.factors).T, self.root)
        return (x - inside.T @ self.factors.T) / self.noise**2


@dataclass(frozen=True)
class LocalDecoder:
    """A decoder around the latent mean of one class, relative to what the mean is decoded to.

    Attributes
    ----------
    decode
        From latents (n, m) relative to the mean to offsets (n, p).
    jacobian
        The derivative at the mean, (p, m).
    factors, noise
        The covariance of an observation, noise^2 I + F F^T, with F of shape (p, .).
    span
        An orthonormal basis (d, p) of all offsets and of F, which are given as coordinates in
        it. Orthogonal to it there is noise alone.
    """

    decode: Callable[[Tensor], Tensor]
    jacobian: Tensor
    factors: Tensor
    noise: float
    span: Tensor

    @classmethod
    def around(
        cls,
        network: MLP,
        mean: Tensor,
        row: Tensor | None,
        share: float,
        factors: Tensor,
        noise: float,
    ) -> LocalDecoder:
        """A network around ``mean`` (m,), with a share of its variance and of that of F (d, .).

        The last layer has more outputs than inputs, so outputs lie in the span of its columns.
        Within the span, a sample has far fewer coordinates than features.
        """
        span = torch.linalg.qr(torch.cat([network.linears[-1].weight, factors], dim=1)).Q
        inner, root = network.transformed(span), math.sqrt(share)
        centre = inner(mean[None], row)

        def decode(z: Tensor) -> Tensor:
            added: Tensor = inner(mean + z, None if row is None else row.expand(len(z))) - centre
            return root * added

        jacobian = root * inner.jacobian(mean[None], row)
        return cls(decode, jacobian, root * (span.T @ factors), noise, span)

    def log_density(self, x: Tensor, draws: Tensor) -> Tensor:
        r"""Importance-weighted bound (n,) on the log density, by standard normal draws (s, m).

        .. math:: \log \frac1S \sum_s p(x|z_s) p(z_s) / q(z_s|x)

        Samples x (n, d) are relative to what the mean is decoded to. The proposal q is the
        posterior of the linearised decoder. It fits old classes as well as new ones; the
        encoder does not, since it has been trained on. For a linear decoder the bound is exact
        whatever the draws. With no draws the decoder is taken to be linear.
        """
        within = x @ self.span  # (n, p)
        outside = (x.square().sum(dim=1) - within.square().sum(dim=1)).clamp(min=0)
        outside = outside / self.noise**2 / 2
        dimensions = len(self.span) - self.span.shape[1]
        outside = outside + dimensions * (math.log(self.noise) + 0.5 * math.log(2 * math.pi))
        if len(draws):
            return self._bound(within, draws) - outside
        factors = torch.cat([self.jacobian, self.factors], dim=1)
        return LowRankGaussian(factors, self.noise).log_density(within) - outside

    def _bound(self, x: Tensor, draws: Tensor) -> Tensor:
        likelihood = LowRankGaussian(self.factors, self.noise)
        pull = likelihood.solve(self.jacobian.T)  # (m, p)
        precision = torch.eye(len(pull)).to(pull) + pull @ self.jacobian  # of q, (m, m)
        root = torch.linalg.cholesky(precision)
        mean = torch.cholesky_solve(pull @ x.T, root).T  # of q, (n, m)
        steps = torch.linalg.solve_triangular(root.T, draws.T, upper=True).T  # (s, m)
        log_q = root.diagonal().log().sum() - 0.5 * draws.square().sum(dim=1)  # (s,)
        weights = []
        for step, log_proposal in zip(steps, log_q, strict=True):
            z = mean + step  # (n, m)
            log_prior = -0.5 * z.square().sum(dim=1)  # without log(2 pi), as is log_proposal
            log_likelihood = likelihood.log_density(x - self.decode(z))
            weights.append(log_likelihood + log_prior - log_proposal)
        return torch.stack(weights).logsumexp(dim=0) - math.log(len(draws))
