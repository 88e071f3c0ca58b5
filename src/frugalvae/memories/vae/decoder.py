"""A decoder that learns task after task: what may change, and what must not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from frugalvae.maths.networks import MLP
from frugalvae.maths.nullspace import LayerInputs, NullSpace

Update = Literal["null-space", "free", "frozen"]
Projection = Literal["update", "gradient"]


@dataclass(frozen=True)
class Freedom:
    """What training may change, and what keeps the changes within bounds."""

    parameters: list[Tensor]
    after_backward: Callable[[], None] = lambda: None
    after_step: Callable[[], None] = lambda: None


@dataclass
class Decoder:
    """A network, and what its layers have been fed by the tasks it knows.

    Attributes
    ----------
    network
        Latents in, normalised features out.
    inputs
        One for each layer that is kept in its null space.
    tasks
        How many tasks it has learned; 0 while it may still change at will.
    """

    network: MLP
    inputs: list[LayerInputs] = field(default_factory=list)
    tasks: int = 0

    def fork(self) -> Decoder:
        """A decoder for the next task with its own last layer and biases, sharing the rest."""
        return Decoder(self.network.fork(), self.inputs, self.tasks)

    @torch.no_grad()
    def turn_output(self, matrix: Tensor) -> None:
        """Decode to rows times the matrix. Inputs, and so null spaces, stay what they are."""
        last = self.network.linears[-1]
        last.weight.copy_(matrix.T @ last.weight)
        last.bias.copy_(last.bias @ matrix)

    def null_spaces(self, ratio: float, max_proportion: float | None) -> list[NullSpace]:
        """The null space of each protected layer."""
        return [inputs.null_space(ratio, max_proportion) for inputs in self.inputs]

    def freedom(
        self, update: Update, spaces: list[NullSpace], dynamic: bool, projection: Projection
    ) -> Freedom:
        """What the next task may change.

        A decoder that knows nothing yet is free. Later, embeddings of new classes
        always train (those of old classes get no gradient), and so do a task's own
        last layer and biases if the decoder is ``dynamic``. Shared weights move as
        ``update`` says. Shared biases stay as the first task left them: every old
        input passes through them, so they have no null space.
        """
        if not self.tasks or update == "free":
            return Freedom(list(self.network.parameters()))
        own: list[Tensor] = list(self.network.tables)
        if dynamic:
            own += [layer.bias for layer in self.network.linears]
            own.append(self.network.linears[-1].weight)
        if update == "frozen":
            return Freedom(own)
        weights = [layer.weight for layer in self.network.linears[: len(self.inputs)]]
        confine = Confinement(weights, spaces)
        if projection == "gradient":
            return Freedom(own + weights, after_backward=confine.gradients)
        return Freedom(own + weights, after_step=confine.updates)

    @torch.no_grad()
    def remember(self, latents: Tensor, rows: Tensor | None, average: int = 1) -> None:
        """Count what these latents feed the protected layers.

        ``average`` > 1 counts means over that many consecutive inputs instead of
        the inputs themselves, as Adam-NSCL's public code does.
        """
        fed = self.network.layer_inputs(latents, rows)
        for layer, inputs in zip(self.inputs, fed, strict=False):
            if average > 1:
                parts = inputs.tensor_split(max(1, len(inputs) // average))
                inputs = torch.stack([part.mean(dim=0) for part in parts])
            layer.add(inputs)


class Confinement:
    """Keeps weights in the null space around where they started.

    Projecting the gradient, as the paper writes it, is not enough under Adam: it
    divides each coordinate by its own running scale, and the quotient leaves the
    null space. Projecting the change itself cannot leak. The change is taken from
    the start of the task, so rounding does not add up over steps.
    """

    def __init__(self, weights: list[Tensor], spaces: list[NullSpace]) -> None:
        self.weights = weights
        self.starts = [weight.detach().clone() for weight in weights]
        self.spaces = [
            space.to(weight.dtype) for weight, space in zip(weights, spaces, strict=True)
        ]

    @torch.no_grad()
    def updates(self) -> None:
        """Project how far each weight has moved since the start."""
        for weight, start, space in zip(self.weights, self.starts, self.spaces, strict=True):
            weight.copy_(start + space.project(weight - start))

    @torch.no_grad()
    def gradients(self) -> None:
        """Eq. 7: project each weight's gradient."""
        for weight, space in zip(self.weights, self.spaces, strict=True):
            if weight.grad is not None:
                weight.grad = space.project(weight.grad)


def fresh_decoder(sizes: list[int], embedding: int, protect: int, rng: torch.Generator) -> Decoder:
    """An untrained decoder, of which the first ``protect`` layers are kept in a null space."""
    network = MLP(sizes, embedding, rng=rng)
    widths = [layer.weight.shape[1] for layer in network.linears]
    return Decoder(network, [LayerInputs(width, rng.device) for width in widths[:protect]])
