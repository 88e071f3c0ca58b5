"""Steps that replace those of Algorithm 1: the paper's variants and ablations, and our departures.

Most are objects that take the place of one in :class:`~frugalvae.paper.vae_fo.Steps` or
:class:`~frugalvae.paper.vae_fo.Training`; learning rates and noise are numbers.
:data:`DEPARTURES` lists what ``vae-fo`` does otherwise than the paper says; ``vae-fo-literal``
does none of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Generator, Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, OneCycleLR

from frugalvae.errors import check_number
from frugalvae.paper.equations import diagonal_kld, gaussian_log_likelihood, reparametrise
from frugalvae.paper.networks import MLP
from frugalvae.paper.nullspace import (
    Change,
    Decoder,
    LayerInputs,
    NullSpace,
    NullSpaceChange,
    OneDecoder,
    ProjectedGradient,
)
from frugalvae.paper.priors import FixedPointPrior
from frugalvae.paper.records import is_saturated
from frugalvae.paper.vae_fo import (
    Batch,
    FixedPoint,
    Learned,
    Training,
    bound,
    constant,
    posterior,
    posterior_samples,
)
from frugalvae.parts.tensors import batch_count

DRAWS = 256  # decoded samples, or latents, per class from which statistics are estimated

Noise = float | Literal["match"]

# --------------------------------------------------------------------------- training


@dataclass(frozen=True)
class LimitedTraining(Training):
    """Training that stops early: after ``max_steps`` steps of a task."""

    max_steps: int = 500

    def __post_init__(self) -> None:
        for name, most in (("epochs", 100_000), ("batch_size", 65_536), ("max_steps", 1_000_000)):
            check_number(name, getattr(self, name), 1, most, whole=True)

    def steps_for(self, count: int) -> int:
        """Whole epochs within the limit; of a single longer one, a part."""
        each = batch_count(count, self.batch_size)
        epochs = max(1, min(self.epochs, self.max_steps // each))
        return min(epochs * each, self.max_steps)


def relative_posterior(encoder: MLP, data: Batch) -> tuple[Tensor, Tensor]:
    """q(z | x, y) where the encoder's output is the difference from mu_y, (n, latent) each."""
    mu, sigma = posterior(encoder, data)
    return mu + data.prior_means, sigma


@dataclass(frozen=True)
class WarmUp:
    """Eq. 6 with a divergence whose weight grows from 0 to 1 over a ``share`` of the steps.

    Without it, an untrained decoder can make the posterior collapse.
    """

    share: float = 0.3

    def __post_init__(self) -> None:
        check_number("warm_up", self.share, 0, 1)

    def weight(self, progress: float) -> float:
        """The weight when ``progress``, from 0 to 1, of the steps is done."""
        return min(1.0, progress / self.share) if self.share else 1.0

    def __call__(
        self, data: Batch, x_hat: Tensor, mu: Tensor, sigma: Tensor, progress: float
    ) -> Tensor:
        """The bound of each sample, (n,)."""
        divergence = diagonal_kld(mu, sigma, data.prior_means)  # (n,)
        return gaussian_log_likelihood(data.x, x_hat) - self.weight(progress) * divergence


def one_cycle(optimiser: Optimizer, steps: int) -> LRScheduler:
    """Learning rates that rise to their own value and fall to nothing."""
    peaks = [group["lr"] for group in optimiser.param_groups]
    rising = max(0.1, 2 / (steps + 1))  # at least one step, or it divides by zero
    return OneCycleLR(optimiser, peaks, total_steps=steps + 1, pct_start=rising)


# --------------------------------------------------------------------------- decoders


class ProjectedUpdate(NullSpaceChange):
    """The change of each weight since the start of the task is projected.

    Projecting the gradient is not enough under Adam, which divides each coordinate by its own
    running scale: the quotient leaves the null space. The change itself cannot leak. It is
    measured from the start, so rounding errors do not add up over steps.
    """

    def __init__(self, decoder: Decoder, own: list[Tensor], spaces: list[NullSpace]) -> None:
        super().__init__(decoder, own, spaces)
        self.starts = [weight.detach().clone() for weight in self.weights]

    @torch.no_grad()
    def after_step(self) -> None:
        """Eq. 7 for the change."""
        for weight, start, space in zip(self.weights, self.starts, self.spaces, strict=True):
            torch.add(start, space.project(weight - start), out=weight)


class FrozenChange(Change):
    """Nothing that tasks share changes: the paper's frozen decoder."""

    def __init__(self, decoder: Decoder, own: list[Tensor], spaces: list[NullSpace]) -> None:
        super().__init__(decoder, own, spaces)
        self.parameters = [*decoder.network.tables, *own]


class DecoderPerTask(OneDecoder):
    """VAE-FOD: each task has a last layer and biases of its own, and shares all else."""

    protected_layers = 2

    def for_task(self, decoders: list[Decoder], new: Callable[[], Decoder]) -> Decoder:
        """A fork of the last decoder."""
        if not decoders:
            return super().for_task(decoders, new)
        last = decoders[-1]
        decoders.append(Decoder(last.network.fork(), last.inputs, last.tasks))
        return decoders[-1]

    def own(self, network: MLP) -> list[Tensor]:
        """The last layer and all biases."""
        return [*(layer.bias for layer in network.linears), network.linears[-1].weight]


class FreshDecoder(OneDecoder):
    """A new decoder when a null space is used up, as the paper proposes under Limitations."""

    def __init__(self, usual: OneDecoder, null_space: Callable[[LayerInputs], NullSpace]) -> None:
        self.usual, self.null_space = usual, null_space
        self.protected_layers = usual.protected_layers

    def for_task(self, decoders: list[Decoder], new: Callable[[], Decoder]) -> Decoder:
        """The usual one, unless the last is saturated."""
        spaces = map(self.null_space, decoders[-1].inputs if decoders else [])
        if not any(is_saturated(space.proportion, space.rank, space.size) for space in spaces):
            return self.usual.for_task(decoders, new)
        fresh = new()  # a class uses one decoder only, so one set of tables serves all
        fresh.network.tables = decoders[-1].network.tables
        decoders.append(fresh)
        return fresh

    def own(self, network: MLP) -> list[Tensor]:
        """As usual."""
        return self.usual.own(network)


# --------------------------------------------------------------------------- protected inputs


def class_centres(decoder: Decoder, task: Learned, _rng: Generator) -> None:
    """Protect what the centre of each class feeds each layer: one direction per class."""
    decoder.protect(task.centres.prior_means, task.centres.rows)


def prior_samples(decoder: Decoder, task: Learned, rng: Generator) -> None:
    """Protect what draws from N(mu_y, I) feed each layer."""
    rows = None if task.centres.rows is None else task.centres.rows.repeat_interleave(DRAWS)
    means = task.centres.prior_means.repeat_interleave(DRAWS, dim=0)  # (k DRAWS, latent)
    decoder.protect(means + torch.empty_like(means).normal_(generator=rng), rows)


@torch.no_grad()
def posterior_means(decoder: Decoder, task: Learned, _rng: Generator) -> None:
    """Protect what the posterior mean of each sample feeds each layer."""
    decoder.protect(task.training.posterior(task.encoder, task.data)[0], task.data.rows)


@torch.no_grad()
def batch_means(decoder: Decoder, task: Learned, rng: Generator) -> None:
    """Protect means over mini-batches of what samples of the posterior feed each layer.

    The public code of Adam-NSCL does so.
    """
    data = task.data[torch.randperm(len(task.data.x), generator=rng, device=rng.device)]
    mu, sigma = task.training.posterior(task.encoder, data)  # (n, latent) each
    z = reparametrise(mu, sigma, torch.empty_like(mu).normal_(generator=rng))  # (n, latent)
    decoder.protect(z, data.rows, average=task.training.batch_size)


# --------------------------------------------------------------------------- samples


def noise_std(real: Tensor, decoded: Tensor, noise: Noise) -> Tensor:
    """Standard deviation of the noise to add to decoded samples of a class.

    Parameters
    ----------
    real, decoded
        Samples of the class (n, d), and decoded ones.
    noise
        A number is taken as it is. ``"match"`` gives samples the variance of the class,
        averaged over dimensions: the decoder explains only a part of it.

    Examples
    --------
    >>> real, decoded = torch.tensor([[-5.0], [5.0]]), torch.tensor([[-3.0], [3.0]])
    >>> noise_std(real, decoded, "match")
    tensor(4.)
    """
    if noise != "match":
        return real.new_tensor(noise)
    missing = real.var(dim=0, correction=0).mean() - decoded.var(dim=0, correction=0).mean()
    return missing.clamp(min=0).sqrt()


# --------------------------------------------------------------------------- by name

SCHEDULES = {"one-cycle": one_cycle, "constant": constant}
CHANGES: dict[str, type[Change]] = {"update": ProjectedUpdate, "gradient": ProjectedGradient}
INPUTS: dict[str, Callable[..., None]] = {
    "prior": prior_samples,
    "prior-mean": class_centres,
    "posterior": posterior_samples,
    "posterior-mean": posterior_means,
    "batch-mean": batch_means,
}


class Departure(NamedTuple):
    """One step that ``vae-fo`` does otherwise than the paper says; ``docs/paper.md`` says why."""

    setting: str
    literal: Any  # in ``vae-fo-literal``
    step: Callable[..., Any] | None  # the paper's
    ours: Any  # in ``vae-fo``
    replacement: Callable[..., Any] | None  # what takes the step's place; None for other numbers


DEPARTURES = (
    Departure("prior", "fpi-literal", FixedPoint, "fpi", FixedPointPrior),
    Departure("max_steps", 1_000_000, Training, 500, LimitedTraining),
    Departure("learning_rate", 5e-4, None, 1e-3, None),
    Departure("later_learning_rate", 5e-5, None, 1e-3, None),
    Departure("schedule", "constant", constant, "one-cycle", one_cycle),
    Departure("relative", False, posterior, True, relative_posterior),
    Departure("warm_up", 0.0, bound, 0.3, WarmUp),
    Departure("inputs", "posterior", posterior_samples, "prior-mean", class_centres),
    Departure("projection", "gradient", ProjectedGradient, "update", ProjectedUpdate),
    Departure("noise", 0.0, None, "match", noise_std),
)
