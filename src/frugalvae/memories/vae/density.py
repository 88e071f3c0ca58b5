"""How likely a sample is under a decoder: Gaussians of few directions, and a bound by draws."""

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
        """For each row of x, shape (n, d)."""
        x = x / self.noise
        inside = torch.linalg.solve_triangular(self.root, (x @ self.factors).T, upper=False)
        squared: Tensor = x.square().sum(dim=1) - inside.square().sum(dim=0)
        return -0.5 * squared - self.half_log_volume

    def solve(self, x: Tensor) -> Tensor:
        """Each row times the inverse of the covariance."""
        inside = torch.cholesky_solve((x @ self.factors).T, self.root)
        return (x - inside.T @ self.factors.T) / self.noise**2


@dataclass(frozen=True)
class LocalDecoder:
    """A decoder around the latent mean of one class: what it adds to what the mean becomes.

    Attributes
    ----------
    decode
        From latents (n, m), relative to the mean, to what they add, (n, p).
    jacobian
        The derivative at the mean, (p, m).
    factors, noise
        The observation's covariance, noise^2 I + F F^T.
    span
        All that is decoded, and F, are coordinates in this orthonormal basis, (d, p): beside it
        there is noise alone.
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
        """A network around ``mean``, with a share of what varies there and of the factors' too.

        The last layer has more outputs than inputs, and so they lie in the span of its columns:
        there a sample has far fewer coordinates than it has features.
        """
        span = torch.linalg.qr(torch.cat([network.linears[-1].weight, factors], dim=1)).Q
        inner, root = network.turned(span), math.sqrt(share)
        centre = inner(mean[None], row)

        def decode(z: Tensor) -> Tensor:
            added: Tensor = inner(mean + z, None if row is None else row.expand(len(z))) - centre
            return root * added

        jacobian = root * inner.jacobian(mean[None], row)
        return cls(decode, jacobian, root * (span.T @ factors), noise, span)

    def log_density(self, x: Tensor, draws: Tensor) -> Tensor:
        r"""The importance-weighted bound, (n,), by standard normal ``draws`` (s, m).

        .. math:: \log \frac1S \sum_s p(x|z_s) p(z_s) / q(z_s|x)

        Samples are relative to what the mean is decoded to, (n, d). q is the posterior of the
        decoder's linear part. It comes with the decoder, so it fits old classes as well as new
        ones, which an encoder that trained on since does not; and where the decoder is linear,
        the bound is exact whatever the draws. With no draws the decoder is taken as linear.
        """
        within = x @ self.span
        beside = (x.square().sum(dim=1) - within.square().sum(dim=1)).clamp(min=0)
        beside = beside / self.noise**2 / 2
        others = len(self.span) - self.span.shape[1]
        beside = beside + others * (math.log(self.noise) + 0.5 * math.log(2 * math.pi))
        if len(draws):
            return self._bound(within, draws) - beside
        whole = torch.cat([self.jacobian, self.factors], dim=1)
        return LowRankGaussian(whole, self.noise).log_density(within) - beside

    def _bound(self, x: Tensor, draws: Tensor) -> Tensor:
        seen = LowRankGaussian(self.factors, self.noise)
        pull = seen.solve(self.jacobian.T)  # (m, p)
        precision = torch.eye(len(pull)).to(pull) + pull @ self.jacobian
        root = torch.linalg.cholesky(precision)
        mean = torch.cholesky_solve(pull @ x.T, root).T  # of q, (n, m)
        steps = torch.linalg.solve_triangular(root.T, draws.T, upper=True).T  # (s, m)
        log_q = root.diagonal().log().sum() - 0.5 * draws.square().sum(dim=1)
        weights = []
        for step, log_proposal in zip(steps, log_q, strict=True):
            z = mean + step
            log_prior = -0.5 * z.square().sum(dim=1)  # both without their log(2 pi)
            weights.append(seen.log_density(x - self.decode(z)) + log_prior - log_proposal)
        return torch.stack(weights).logsumexp(dim=0) - math.log(len(draws))
