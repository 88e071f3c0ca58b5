"""A decoder that learns task after task: what may change, and what must not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from frugalvae.maths.equations import reparametrise
from frugalvae.maths.networks import MLP
from frugalvae.maths.nullspace import LayerInputs, NullSpace
from frugalvae.maths.training import Batch, Training, encode

Update = Literal["null-space", "free", "frozen"]
Projection = Literal["update", "gradient"]
Source = Literal["prior", "prior-mean", "posterior", "posterior-mean", "batch-mean"]

DRAWS = 256  # latents per class that are drawn from the prior


@dataclass(frozen=True)
class UpdateRule:
    """Which parameters a task may change, and the hooks that keep them in the null space."""

    parameters: list[Tensor]
    after_backward: Callable[[], None] = lambda: None
    after_step: Callable[[], None] = lambda: None


@dataclass
class Decoder:
    """A network, and the inputs that old classes give to its layers.

    Attributes
    ----------
    network
        From latents to normalised features.
    inputs
        The sums of inputs of each layer that is kept in its null space.
    tasks
        The number of tasks learned; while it is 0, all parameters may change freely.
    """

    network: MLP
    inputs: list[LayerInputs] = field(default_factory=list)
    tasks: int = 0

    def fork(self) -> Decoder:
        """A decoder with a last layer and biases of its own that shares everything else."""
        return Decoder(self.network.fork(), self.inputs, self.tasks)

    @torch.no_grad()
    def transform_output(self, matrix: Tensor) -> None:
        """Multiply outputs by a matrix (d, d). Layer inputs, and so null spaces, stay."""
        last = self.network.linears[-1]
        last.weight.copy_(matrix.T @ last.weight)
        last.bias.copy_(last.bias @ matrix)

    def null_spaces(self, ratio: float, max_proportion: float | None) -> list[NullSpace]:
        """The null space of each protected layer."""
        return [inputs.null_space(ratio, max_proportion) for inputs in self.inputs]

    def update_rule(
        self, update: Update, spaces: list[NullSpace], dynamic: bool, projection: Projection
    ) -> UpdateRule:
        """What the next task may change.

        Everything in an untrained decoder. Later, always the embeddings of new classes (those
        of old classes get no gradient), and with ``dynamic`` the task's own last layer and
        biases. Shared weights change as ``update`` says. Shared biases stay as the first task
        left them: every old input passes through them, so they have no null space.
        """
        if not self.tasks or update == "free":
            return UpdateRule(list(self.network.parameters()))
        unshared: list[Tensor] = list(self.network.tables)
        if dynamic:
            unshared += [layer.bias for layer in self.network.linears]
            unshared.append(self.network.linears[-1].weight)
        if update == "frozen":
            return UpdateRule(unshared)
        weights = [layer.weight for layer in self.network.linears[: len(self.inputs)]]
        projected = NullSpaceProjection(weights, spaces)
        if projection == "gradient":
            return UpdateRule(unshared + weights, after_backward=projected.project_gradients)
        return UpdateRule(unshared + weights, after_step=projected.project_updates)

    @torch.no_grad()
    def protect(self, latents: Tensor, rows: Tensor | None, average: int = 1) -> None:
        """Add the layer inputs that these latents (n, latent) give to what is protected.

        ``average`` > 1 adds means over that many consecutive inputs instead of the inputs
        themselves, as the public code of Adam-NSCL does.
        """
        fed = self.network.layer_inputs(latents, rows)  # (n, in) for each layer
        for layer, inputs in zip(self.inputs, fed, strict=False):
            if average > 1:
                parts = inputs.tensor_split(max(1, len(inputs) // average))
                inputs = torch.stack([part.mean(dim=0) for part in parts])
            layer.add(inputs)


class NullSpaceProjection:
    """Keeps the change of weights since the start of a task in their null spaces.

    Projecting the gradient, as the paper writes it, is not enough under Adam: Adam divides
    each coordinate by its own running scale, and the quotient leaves the null space.
    Projecting the change itself cannot leak. It is measured from the start of the task, so
    rounding errors do not add up over steps.
    """

    def __init__(self, weights: list[Tensor], spaces: list[NullSpace]) -> None:
        self.weights = weights
        self.starts = [weight.detach().clone() for weight in weights]
        self.spaces = [
            space.to(weight.dtype) for weight, space in zip(weights, spaces, strict=True)
        ]

    @torch.no_grad()
    def project_updates(self) -> None:
        """Project the change of each weight since the start (Eq. 7 for updates)."""
        for weight, start, space in zip(self.weights, self.starts, self.spaces, strict=True):
            torch.add(start, space.project(weight - start), out=weight)

    @torch.no_grad()
    def project_gradients(self) -> None:
        """Project the gradient of each weight (Eq. 7)."""
        for weight, space in zip(self.weights, self.spaces, strict=True):
            if weight.grad is not None:
                weight.grad = space.project(weight.grad)


def new_decoder(
    sizes: list[int], embedding: int, protected_layers: int, rng: torch.Generator
) -> Decoder:
    """An untrained decoder whose first ``protected_layers`` are kept in their null spaces."""
    network = MLP(sizes, embedding, rng=rng)
    widths = [layer.weight.shape[1] for layer in network.linears]
    return Decoder(network, [LayerInputs(width, rng.device) for width in widths[:protected_layers]])


@torch.no_grad()
def latents_to_protect(
    source: Source,
    classes: Batch,
    data: Batch,
    encoder: MLP | None,
    training: Training,
    rng: torch.Generator,
) -> tuple[Tensor, Tensor | None, int]:
    """Latents (., latent), their embedding rows, and how many layer inputs to average over.

    A null space protects the layer inputs that these give. The paper leaves open which.

    Parameters
    ----------
    source
        The setting ``inputs``.
    classes, data
        One row per class, and one per sample.
    """
    if source.startswith("prior"):
        count = 1 if source == "prior-mean" else DRAWS
        rows = None if classes.rows is None else classes.rows.repeat_interleave(count)
        z = classes.prior_means.repeat_interleave(count, dim=0)  # (k count, latent)
        if source == "prior":
            z = z + torch.empty_like(z).normal_(generator=rng)
        return z, rows, 1
    average = 1
    if source == "batch-mean":
        data = data[torch.randperm(len(data), generator=rng, device=rng.device)]
        average = training.batch_size
    assert encoder is not None
    mu, sigma = encode(encoder, data, training.relative)  # (n, latent) each
    if source == "posterior-mean":
        return mu, data.rows, average
    z = reparametrise(mu, sigma, torch.empty_like(mu).normal_(generator=rng))
    return z, data.rows, average
