"""One loop that trains an encoder and a decoder on Eq. 6."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from frugalvae.errors import check_choice, check_number
from frugalvae.maths.equations import diagonal_kld, gaussian_log_likelihood, reparametrise
from frugalvae.maths.networks import MLP
from frugalvae.progress import track

DRAWS = 256  # samples of a class from which statistics are estimated
LOG_SIGMA_RANGE = (-7.0, 4.0)  # keeps exp() finite whatever the encoder says early on


@dataclass(frozen=True)
class Batch:
    """Samples (n, d), the prior mean of each one's class (n, latent), and its embedding row."""

    x: Tensor
    prior_means: Tensor
    rows: Tensor | None = None

    def __getitem__(self, chosen: Tensor) -> Batch:
        rows = None if self.rows is None else self.rows[chosen]
        return Batch(self.x[chosen], self.prior_means[chosen], rows)

    def __len__(self) -> int:
        return len(self.x)


@dataclass(frozen=True)
class Training:
    """How long and how to train.

    Attributes
    ----------
    epochs, batch_size
        Passes over the task, and samples in a step.
    max_steps
        No task takes more optimiser steps than this, whatever its epochs ask for.
    warm_up
        Part of the steps over which the divergence's weight grows from 0 to 1.
        Without it, a decoder that has learned nothing yet may make the encoder give up.
    likelihood_std
        Standard deviation of the likelihood around what is decoded.
    relative
        Whether the encoder describes samples relative to their class's prior mean.
    """

    epochs: int
    batch_size: int
    max_steps: int
    warm_up: float
    likelihood_std: float
    relative: bool

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "max_steps"):
            check_number(name, getattr(self, name), 1, whole=True)
        check_number("warm_up", self.warm_up, 0, 1)
        check_number("likelihood_std", self.likelihood_std, 1e-12)
        check_choice("relative", self.relative, (True, False))

    def epochs_for(self, count: int) -> int:
        """Epochs for a task of ``count`` samples."""
        return max(1, min(self.epochs, self.max_steps // batch_count(count, self.batch_size)))


def encode(encoder: MLP, data: Batch, relative: bool) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of the posterior of each sample, (n, latent) each.

    A ``relative`` encoder says how a sample differs from its class's prior mean.
    """
    mu, log_sigma = encoder(data.x, data.rows).chunk(2, dim=1)
    sigma = log_sigma.clamp(*LOG_SIGMA_RANGE).exp()
    return (mu + data.prior_means if relative else mu), sigma


def batch_count(count: int, size: int) -> int:
    """How many batches of about ``size`` cover ``count`` samples."""
    return max(1, round(count / size))


def batches(count: int, size: int, rng: torch.Generator) -> Iterator[Tensor]:
    """Random batches of nearly equal size that together cover ``range(count)`` once."""
    order = torch.randperm(count, generator=rng, device=rng.device)
    yield from order.tensor_split(batch_count(count, size))


def train_vae(
    encoder: MLP,
    decoder: MLP,
    data: Batch,
    parameter_groups: Sequence[dict[str, Any]],
    training: Training,
    rng: torch.Generator,
    after_backward: Callable[[], None] = lambda: None,
    after_step: Callable[[], None] = lambda: None,
) -> None:
    """Maximise Eq. 6 over the given parameters.

    Parameters
    ----------
    parameter_groups
        What may change, as Adam takes it: ``{"params": [...], "lr": ...}``.
    after_backward, after_step
        Called around the optimiser's step, to keep updates where they belong.
    """
    epochs = training.epochs_for(len(data))
    steps = min(epochs * batch_count(len(data), training.batch_size), training.max_steps)
    groups = [group for group in parameter_groups if group["params"]]
    optimiser = torch.optim.Adam(groups, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser,
        [group["lr"] for group in groups],
        total_steps=steps + 1,
        pct_start=max(0.1, 2 / (steps + 1)),  # at least one step up, or it divides by zero
    )
    step = 0
    for _ in track(range(epochs), "training the VAE"):
        for chosen in batches(len(data), training.batch_size, rng):
            if step == steps:  # one epoch alone may be longer
                break
            step += 1
            optimiser.zero_grad(set_to_none=True)
            loss = -bound(encoder, decoder, data[chosen], training, step / steps, rng).mean()
            loss.backward()  # type: ignore[no-untyped-call]
            after_backward()
            optimiser.step()
            after_step()
            schedule.step()
    optimiser.zero_grad(set_to_none=True)  # or copies of the memory would carry gradients


def bound(
    encoder: MLP,
    decoder: MLP,
    data: Batch,
    training: Training,
    progress: float,
    rng: torch.Generator,
) -> Tensor:
    """Eq. 6 for each sample, its divergence weighted by how far the warm-up has come."""
    mu, sigma = encode(encoder, data, training.relative)
    z = reparametrise(mu, sigma, torch.empty_like(mu).normal_(generator=rng))
    x_hat = decoder(z, data.rows)
    std = training.likelihood_std
    weight = min(1.0, progress / training.warm_up) if training.warm_up else 1.0
    divergence = diagonal_kld(mu, sigma, data.prior_means)
    return gaussian_log_likelihood(data.x / std, x_hat / std) - weight * divergence


def teach_directions(
    decoder: MLP,
    data: Batch,
    parameters: Sequence[Tensor],
    learning_rate: float,
    training: Training,
    rng: torch.Generator,
    after_backward: Callable[[], None] = lambda: None,
    after_step: Callable[[], None] = lambda: None,
) -> None:
    """Fit a decoder, around the mean of each class, to a linear map that is known.

    Where a decoder is linear around a class's mean, the maximum of Eq. 6 has a closed form:
    its directions are those of the class's covariance, as long as what they have in excess
    of the noise (Tipping and Bishop, "Probabilistic principal component analysis"). This
    fits the decoder to it by regression, and needs no encoder.

    Parameters
    ----------
    data
        The map of each class, (k, m, d), which the first m latents of a class are multiplied
        by; and the prior means and embedding rows of the classes.
    parameters
        What may change.
    """
    optimiser = torch.optim.Adam(parameters, learning_rate, fused=True)
    steps, (classes, width, _) = training.max_steps, data.x.shape
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, learning_rate, total_steps=steps + 1, pct_start=max(0.1, 2 / (steps + 1))
    )
    each = max(1, training.batch_size // classes)
    rows = None if data.rows is None else data.rows.repeat_interleave(each)
    means = data.prior_means.repeat_interleave(each, dim=0)
    for _ in track(range(steps), "training the decoder"):
        e = torch.empty_like(means).normal_(generator=rng)
        target = e[:, :width].reshape(classes, each, width) @ data.x
        centre = decoder(data.prior_means, data.rows).repeat_interleave(each, dim=0)
        offset = decoder(means + e, rows) - centre
        optimiser.zero_grad(set_to_none=True)
        (offset - target.flatten(0, 1)).square().sum(dim=1).mean().backward()
        after_backward()
        optimiser.step()
        after_step()
        schedule.step()
    optimiser.zero_grad(set_to_none=True)


def missing_spread(
    real: Tensor,
    decoded: Tensor,
    noise: float | Literal["match"],
    factors: Tensor | None = None,
    spread: Tensor | None = None,
) -> Tensor:
    """Standard deviation of the noise that samples of a class need.

    ``"match"`` gives samples the variance of the class, averaged over dimensions:
    a decoder explains only a part of it, and class ``factors`` another. A number is taken
    as it is. With ``spread``, it is the factor that noise of that deviation needs.

    >>> real, decoded = torch.tensor([[-5.0], [5.0]]), torch.tensor([[-3.0], [3.0]])
    >>> missing_spread(real, decoded, "match")
    tensor(4.)
    """
    if noise != "match":
        return real.new_tensor(noise)
    lacking = real.var(dim=0, correction=0).mean() - decoded.var(dim=0, correction=0).mean()
    if factors is not None:
        lacking = lacking - factors.square().sum() / len(factors)
    if spread is not None:
        lacking = lacking / spread.square().mean().clamp(min=1e-12)
    return lacking.clamp(min=0).sqrt()
