"""Multi-layer perceptrons that can share layers, and be conditioned on a class."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from frugalvae.parts.tensors import linear


class MLP(nn.Module):
    """Fully connected layers with ReLU between them.

    With ``embedding > 0`` each layer has a table of class embeddings, (k, embedding). The row
    of a sample's class is appended to the layer's input.

    Parameters
    ----------
    sizes
        Width of the input, of each hidden layer, and of the output.
    embedding
        Length of a class embedding; 0 for none.

    Examples
    --------
    >>> mlp = MLP([2, 8, 3], rng=torch.Generator().manual_seed(0))
    >>> mlp(torch.zeros(5, 2)).shape
    torch.Size([5, 3])
    """

    def __init__(
        self,
        sizes: Sequence[int],
        embedding: int = 0,
        *,
        rng: torch.Generator,
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            linear(n_in + embedding, n_out, rng) for n_in, n_out in itertools.pairwise(sizes)
        )
        self.tables = nn.ParameterList(
            nn.Parameter(torch.empty(0, embedding, device=rng.device))
            for _ in self.layers
            if embedding
        )

    @property
    def linears(self) -> list[nn.Linear]:
        """The layers, with their type."""
        return cast("list[nn.Linear]", list(self.layers))

    def forward(self, x: Tensor, rows: Tensor | None = None) -> Tensor:
        """Output (n, out) for ``x`` (n, in); ``rows`` (n,) says which embeddings to append."""
        for depth in range(len(self.layers)):
            x = self.step(depth, self.layer_input(depth, x, rows))
        return x

    def step(self, depth: int, layer_input: Tensor) -> Tensor:
        """One layer and its activation."""
        out: Tensor = self.layers[depth](layer_input)
        return out if depth == len(self.layers) - 1 else out.relu()

    def layer_input(self, depth: int, x: Tensor, rows: Tensor | None) -> Tensor:
        """The input of a layer: ``x``, and the class embedding if there is one."""
        if not len(self.tables):
            return x
        return torch.cat([x, self.tables[depth][rows]], dim=1)

    def layer_inputs(self, x: Tensor, rows: Tensor | None = None) -> list[Tensor]:
        """The input of each layer for ``x`` (n, in)."""
        inputs = []
        for depth in range(len(self.layers)):
            inputs.append(self.layer_input(depth, x, rows))
            x = self.step(depth, inputs[-1])
        return inputs

    def add_classes(self, count: int, rng: torch.Generator) -> None:
        """Add a random row to each table for each new class."""
        for table in self.tables:
            rows = torch.empty(count, table.shape[1], device=table.device).normal_(generator=rng)
            table.data = torch.cat([table.data, rows])

    def drop_class(self, row: int) -> None:
        """Remove a row from each table."""
        for table in self.tables:
            table.data = torch.cat([table.data[:row], table.data[row + 1 :]])

    def state(self) -> dict[str, list[Any]]:
        """What a file holds: weights and biases of each layer, and tables."""
        return {
            "layers": [[layer.weight, layer.bias] for layer in self.linears],
            "tables": list(self.tables),
        }

    @classmethod
    def from_state(cls, state: dict[str, list[Any]]) -> MLP:
        """The network of these very parameters: networks may share them."""
        network = cls([], rng=torch.Generator())
        for weight, bias in state["layers"]:
            if weight.ndim != 2 or bias.shape != weight.shape[:1]:
                raise ValueError(f"a layer has weights {weight.shape} and biases {bias.shape}")
            layer = nn.Linear(weight.shape[1], weight.shape[0], device="meta")
            layer.weight, layer.bias = weight, bias
            network.layers.append(layer)
        network.tables.extend(state["tables"])
        return network

    def fork(self) -> MLP:
        """A network with a last layer and biases of its own that shares everything else."""
        twin = copy.copy(self)
        twin._modules = dict(self._modules)
        twin.layers = nn.ModuleList(copy.deepcopy(layer) for layer in self.layers)
        for copied, shared in zip(twin.linears[:-1], self.linears[:-1], strict=True):
            copied.weight = shared.weight
        return twin


def layer_sizes(sizes: Sequence[int], embedding: int = 0) -> list[tuple[int, int]]:
    """Inputs and outputs of each layer, inputs widened by the class embedding.

    >>> layer_sizes([4, 8, 2], embedding=1)
    [(5, 8), (9, 2)]
    """
    return [(n_in + embedding, n_out) for n_in, n_out in itertools.pairwise(sizes)]


def parameters(layers: Sequence[tuple[int, int]]) -> int:
    """Weights and biases of fully connected layers."""
    return sum(n_in * n_out + n_out for n_in, n_out in layers)
