"""What a task may change in a decoder: the null space of what old classes feed its layers.

A weight W may change in directions alone that no old input has a component in. If D x = 0 for
every old input x, then W + D gives the old outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Generator, Tensor

from frugalvae.paper.equations import (
    Spectrum,
    project_gradient,
    projector,
    proportion,
    spectrum,
)
from frugalvae.paper.networks import MLP


@dataclass(frozen=True)
class NullSpace:
    """The approximate null space of one layer's old inputs.

    Attributes
    ----------
    null_basis, range_basis
        Orthonormal columns: the null space (U^B of Eq. 9), shape (in, rank), and the directions
        that old inputs use (U^A), shape (in, in - rank).
    proportion
        R of Eq. 10: the share of the old inputs' energy inside the null space.
    """

    null_basis: Tensor
    range_basis: Tensor
    proportion: float

    @property
    def rank(self) -> int:
        """The number of directions in which the weight may still change."""
        return self.null_basis.shape[1]

    @property
    def size(self) -> int:
        """The layer's input dimension."""
        return len(self.null_basis)

    @property
    def matrix(self) -> Tensor:
        """Eq. 8 as a matrix, shape (in, in)."""
        identity = torch.eye(self.size).to(self.null_basis)
        return projector(identity, self.null_basis, self.range_basis)

    def to(self, dtype: torch.dtype) -> NullSpace:
        """The same null space in another precision."""
        return NullSpace(self.null_basis.to(dtype), self.range_basis.to(dtype), self.proportion)

    def project(self, change: Tensor) -> Tensor:
        """Eq. 7 for the gradient or change of a weight, shape (out, in).

        >>> inputs = LayerInputs(2)
        >>> inputs.add(torch.tensor([[1.0, 0.0]]))
        >>> inputs.null_space().to(torch.float32).project(torch.tensor([[3.0, 4.0]]))
        tensor([[0., 4.]])
        """
        return project_gradient(change, self.null_basis, self.range_basis)


class LayerInputs:
    """The sum of x x^T over all inputs x of a layer, in float64.

    Adding inputs task by task or all at once gives the same sum, up to rounding. It is the
    uncentred covariance of Eq. 9 times the number of inputs. Neither the eigenvectors nor R
    depend on that factor.

    >>> inputs = LayerInputs(3)
    >>> inputs.add(torch.tensor([[1.0, 0.0, 0.0], [2.0, 0.0, 0.0]]))
    >>> null = inputs.null_space()
    >>> null.rank, null.proportion
    (2, 0.0)
    """

    holds_tensors = True

    def __init__(self, size: int, device: torch.device | str = "cpu") -> None:
        self.sum_ = torch.zeros(size, size, dtype=torch.float64, device=device)
        self._spectrum: Spectrum | None = None  # of the sum, until inputs are added

    def state(self) -> dict[str, Tensor]:
        """What a file holds."""
        return {"products": self.sum_}

    @classmethod
    def from_state(cls, state: dict[str, Tensor]) -> LayerInputs:
        """The object whose :meth:`state` this is."""
        inputs = cls(0)
        inputs.sum_ = state["products"]
        return inputs

    def add(self, inputs: Tensor) -> None:
        """Add a batch of inputs, shape (n, in)."""
        inputs = inputs.double()
        self.sum_ += inputs.T @ inputs  # (in, in)
        self._spectrum = None

    def null_space(self, ratio: float = 100.0, max_proportion: float | None = None) -> NullSpace:
        """The directions whose eigenvalue is at most ``ratio`` times the smallest.

        With fewer inputs than dimensions the smallest eigenvalue is rounding noise, so every
        eigenvalue below ``size * eps * largest`` counts as zero too. If ``max_proportion`` is
        given, the null space is instead the largest one whose R (Eq. 10) stays within it.
        """
        eigen = self._spectrum = self._spectrum or spectrum(self.sum_)
        values = eigen.eigenvalues
        rounding = float(values[-1]) * len(values) * torch.finfo(torch.float64).eps
        if max_proportion is None:
            null_size = int((values <= max(ratio * float(values[0]), rounding)).sum())
        else:
            energy = values.cumsum(0)
            null = (energy <= max_proportion * float(energy[-1])) | (values <= rounding)
            null_size = int(null.sum())
        return NullSpace(
            eigen.null_basis(null_size), eigen.range_basis(null_size), proportion(values, null_size)
        )


# --------------------------------------------------------------------------- decoders


@dataclass
class Decoder:
    """A network, and what old classes feed its layers."""

    network: MLP  # from latents to normalised features
    inputs: list[LayerInputs] = field(default_factory=list)  # of each layer that is protected
    tasks: int = 0  # learned so far; while it is 0, all parameters may change freely

    @classmethod
    def new(cls, sizes: list[int], embedding: int, protected: int, rng: Generator) -> Decoder:
        """An untrained one, of which the first ``protected`` layers are kept in null spaces."""
        network = MLP(sizes, embedding, rng=rng)
        widths = [layer.weight.shape[1] for layer in network.linears]
        return cls(network, [LayerInputs(width, rng.device) for width in widths[:protected]])

    @torch.no_grad()
    def protect(self, latents: Tensor, rows: Tensor | None, average: int = 1) -> None:
        """Protect what these latents (n, latent) feed each layer.

        ``average`` > 1 takes means over that many consecutive inputs instead of the inputs
        themselves, as the public code of Adam-NSCL does.
        """
        fed = self.network.layer_inputs(latents, rows)  # (n, in) for each layer
        for layer, inputs in zip(self.inputs, fed, strict=False):
            if average > 1:
                parts = inputs.tensor_split(max(1, len(inputs) // average))
                inputs = torch.stack([part.mean(dim=0) for part in parts])
            layer.add(inputs)


class OneDecoder:
    """VAE-FO: one decoder for all tasks, of which all three layers are protected."""

    protected_layers = 3

    def for_task(self, decoders: list[Decoder], new: Callable[[], Decoder]) -> Decoder:
        """The decoder that a task is to train, which becomes the last one."""
        if not decoders:
            decoders.append(new())
        return decoders[-1]

    def own(self, network: MLP) -> list[Tensor]:
        """What of a decoder belongs to the last task alone: nothing."""
        return []


# --------------------------------------------------------------------------- changes


class Change:
    """What a task may change in a decoder: everything. It is so for the first task.

    Parameters
    ----------
    decoder
        What is trained.
    own
        What of it belongs to the task alone, and so may always change.
    spaces
        The null space of each protected layer.
    """

    protects = False  # whether layers are kept in their null spaces

    def __init__(self, decoder: Decoder, own: list[Tensor], spaces: list[NullSpace]) -> None:
        self.network = decoder.network
        self.parameters: list[Tensor] = list(decoder.network.parameters())

    def after_backward(self) -> None:
        """Called between the gradients and the optimiser's step."""

    def after_step(self) -> None:
        """Called after the optimiser's step."""


class NullSpaceChange(Change):
    """Weights change in null spaces; embeddings, of which old ones get no gradient, freely.

    Biases that tasks share stay as the first task left them: every old input passes through
    them, so they have no null space.
    """

    protects = True

    def __init__(self, decoder: Decoder, own: list[Tensor], spaces: list[NullSpace]) -> None:
        super().__init__(decoder, own, spaces)
        self.weights = [layer.weight for layer in decoder.network.linears[: len(spaces)]]
        self.spaces = [s.to(w.dtype) for w, s in zip(self.weights, spaces, strict=True)]
        self.parameters = [*decoder.network.tables, *own, *self.weights]


class ProjectedGradient(NullSpaceChange):
    """The gradient of each weight is projected (Eq. 7)."""

    @torch.no_grad()
    def after_backward(self) -> None:
        """Eq. 7."""
        for weight, space in zip(self.weights, self.spaces, strict=True):
            if weight.grad is not None:
                weight.grad = space.project(weight.grad)
