"""The training loop: encoder and decoder, on Eq. 6."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from frugalvae.errors import check_choice, check_number
from frugalvae.maths.equations import conditional_elbo, reparametrise
from frugalvae.maths.networks import MLP
from frugalvae.progress import track

Schedule = Literal["one-cycle", "constant"]

LOG_SIGMA_RANGE = (-7.0, 4.0)  # keeps exp() finite whatever an untrained encoder answers


@dataclass(frozen=True)
class Batch:
    """Samples with what the networks must know of their classes.

    Attributes
    ----------
    x
        Normalised features, (n, d).
    prior_means
        The prior mean of each sample's class, (n, latent).
    rows
        The row of each sample's class in the embedding tables, (n,), if there are any.
    """

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
    """How to train, and for how long.

    Attributes
    ----------
    epochs, batch_size
        Passes over the task, and samples per step.
    max_steps
        The most optimiser steps per task, however many epochs that is.
    warm_up
        The share of the steps over which the weight of the divergence grows from 0 to 1.
        Without a warm-up, an untrained decoder can make the posterior collapse.
    likelihood_std
        Standard deviation of the likelihood around the decoded sample.
    relative
        Whether the encoder describes samples relative to the prior mean of their class.
    schedule
        Whether the learning rate rises and falls over a task (``"one-cycle"``) or is
        ``"constant"``.
    """

    epochs: int
    batch_size: int
    max_steps: int
    warm_up: float
    likelihood_std: float
    relative: bool
    schedule: Schedule = "one-cycle"

    def __post_init__(self) -> None:
        for name, most in (("epochs", 100_000), ("batch_size", 65_536), ("max_steps", 1_000_000)):
            check_number(name, getattr(self, name), 1, most, whole=True)
        check_number("warm_up", self.warm_up, 0, 1)
        check_number("likelihood_std", self.likelihood_std, 1e-12)
        check_choice("relative", self.relative, (True, False))
        check_choice("schedule", self.schedule, get_args(Schedule))

    def epochs_for(self, count: int) -> int:
        """The number of epochs for a task of ``count`` samples."""
        return max(1, min(self.epochs, self.max_steps // batch_count(count, self.batch_size)))

    def kld_weight(self, progress: float) -> float:
        """The weight of the divergence when ``progress``, from 0 to 1, of the steps is done."""
        return min(1.0, progress / self.warm_up) if self.warm_up else 1.0


def encode(encoder: MLP, data: Batch, relative: bool) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of each sample's posterior, (n, latent) each.

    The output of a ``relative`` encoder is the difference from the class's prior mean.
    """
    mu, log_sigma = encoder(data.x, data.rows).chunk(2, dim=1)  # (n, latent) each
    sigma = log_sigma.clamp(*LOG_SIGMA_RANGE).exp()
    return (mu + data.prior_means if relative else mu), sigma


def batch_count(count: int, size: int) -> int:
    """The number of batches of about ``size`` that cover ``count`` samples."""
    return max(1, round(count / size))


def batches(count: int, size: int, rng: torch.Generator) -> Iterator[Tensor]:
    """Random batches of nearly equal size that together cover ``range(count)`` once."""
    order = torch.randperm(count, generator=rng, device=rng.device)
    yield from order.tensor_split(batch_count(count, size))


class ScheduledAdam:
    """Adam over a known number of steps.

    Parameters
    ----------
    groups
        Parameters and peak learning rates: ``{"params": [...], "lr": ...}``.
    steps
        The number of steps.
    schedule
        How the learning rate changes; see :class:`Training`.
    after_backward, after_step
        Called before and after the optimiser's step, to keep updates in the null space.
    """

    def __init__(
        self,
        groups: Sequence[dict[str, Any]],
        steps: int,
        schedule: Schedule,
        after_backward: Callable[[], None] = lambda: None,
        after_step: Callable[[], None] = lambda: None,
    ) -> None:
        groups = [group for group in groups if group["params"]]
        self.optimiser = torch.optim.Adam(groups, fused=True)
        self.schedule = make_schedule(self.optimiser, steps, schedule)
        self.after_backward, self.after_step = after_backward, after_step

    def minimise(self, loss: Tensor) -> None:
        """Take one step down the gradient of the loss."""
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        self.after_backward()
        self.optimiser.step()
        self.after_step()
        self.schedule.step()

    def finish(self) -> None:
        """Drop the gradients, or copies of the memory would carry them."""
        self.optimiser.zero_grad(set_to_none=True)


def make_schedule(
    optimiser: torch.optim.Optimizer, steps: int, schedule: Schedule
) -> torch.optim.lr_scheduler.LRScheduler:
    """What changes the learning rates of an optimiser, from its own ones at the peak."""
    if schedule == "constant":
        return torch.optim.lr_scheduler.ConstantLR(optimiser, factor=1.0)
    return torch.optim.lr_scheduler.OneCycleLR(
        optimiser,
        [group["lr"] for group in optimiser.param_groups],
        total_steps=steps + 1,
        pct_start=max(0.1, 2 / (steps + 1)),  # at least one step up, or it divides by zero
    )


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
    """Maximise Eq. 6 over the given parameters; see :class:`ScheduledAdam`."""
    epochs = training.epochs_for(len(data))
    steps = min(epochs * batch_count(len(data), training.batch_size), training.max_steps)
    hooks = after_backward, after_step
    optimiser = ScheduledAdam(parameter_groups, steps, training.schedule, *hooks)
    step = 0
    for _ in track(range(epochs), "training the VAE"):
        for chosen in batches(len(data), training.batch_size, rng):
            if step == steps:  # a single epoch may be longer
                break
            step += 1
            optimiser.minimise(loss(encoder, decoder, data[chosen], training, step / steps, rng))
    optimiser.finish()


def loss(
    encoder: MLP,
    decoder: MLP,
    data: Batch,
    training: Training,
    progress: float,
    rng: torch.Generator,
) -> Tensor:
    """Minus Eq. 6, averaged over the batch, when ``progress`` of the steps is done."""
    mu, sigma = encode(encoder, data, training.relative)  # (n, latent) each
    z = reparametrise(mu, sigma, torch.empty_like(mu).normal_(generator=rng))  # (n, latent)
    x_hat = decoder(z, data.rows)  # (n, d)
    bound = conditional_elbo(
        data.x,
        x_hat,
        mu,
        sigma,
        data.prior_means,
        likelihood_std=training.likelihood_std,
        kld_weight=training.kld_weight(progress),
    )  # (n,)
    return -bound.mean()
