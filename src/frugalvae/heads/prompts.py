"""Prompts as CGIL parametrises them, and the gradient of a loss with respect to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from frugalvae.encoders.sentence import spoken
from frugalvae.encoders.text_tower import TextTower, groups
from frugalvae.maths.networks import MLP

LEARNED = 2  # tokens of a prompt that are learned: the class's own, and the shared network's
TOGETHER = 64  # prompts that pass the tower at once
GRAPH_LIMIT = 2 * 2**30  # bytes of activations above which they are not kept


class Prompts:
    """Prompts of some classes: a token of each, a token made from its text feature, its name.

    Parameters
    ----------
    tower
        The frozen text tower.
    names
        Of the classes, in order.
    tokens
        The token of each class, (k, width).
    network
        Makes the second token of a class's own text feature.
    checkpoint
        Forget the tower's activations and compute them again for the gradient, a few
        prompts at a time: half as long again, in a fraction of the memory. ``None``
        does so where they would take more than two gibibytes.
    """

    def __init__(
        self,
        tower: TextTower,
        names: Sequence[str],
        tokens: Tensor,
        network: MLP,
        *,
        checkpoint: bool | None = None,
    ) -> None:
        self.tower, self.tokens, self.network = tower, tokens, network
        self.described = tower.describe(names)  # (k, dim); never changes
        spelled = [tower.tokenise(f"{spoken(name)}.", LEARNED) for name in names]
        self.ends = [tower.embed(tokens) for tokens in spelled]  # each (length, width)
        self.groups = groups([len(end) for end in self.ends], TOGETHER)
        self.checkpoint = self.graph_bytes() > GRAPH_LIMIT if checkpoint is None else checkpoint

    def graph_bytes(self) -> int:
        """About what the activations take that a gradient needs."""
        positions = sum(LEARNED + len(end) for end in self.ends)
        inner = int(self.tower.layers[0].mlp.fc1.out_features)
        numbers = positions * len(self.tower.layers) * (9 * self.tower.width + 4 * inner)
        return numbers * torch.finfo(self.tower.dtype).bits // 8

    def features(self, rows: Sequence[int]) -> Tensor:
        """Text features (n, dim) of prompts of equal length."""
        made: Tensor = self.network(self.described[rows])
        context = torch.stack([self.tokens[rows], made], dim=1)  # (n, 2, width)
        ends = torch.stack([self.ends[row] for row in rows])
        return self.tower.encode(torch.cat([context, ends], dim=1))

    def all_features(self) -> Tensor:
        """Text features (k, dim) of all prompts, in order."""
        order = torch.tensor([row for rows in self.groups for row in rows]).argsort()
        features = torch.cat([self.features(rows) for rows in self.groups])
        return features[order.to(features.device)]

    def backward(self, loss_of: Callable[[Tensor], Tensor]) -> float:
        """Add the gradient of a loss of the text features to every parameter's.

        One pass through the tower serves the loss, however many samples it is over.
        """
        if not self.checkpoint:
            loss = loss_of(self.all_features())
            loss.backward()  # type: ignore[no-untyped-call]
            return float(loss.detach())
        with torch.no_grad():
            features = self.all_features()
        loss = loss_of(features.requires_grad_())
        loss.backward()  # type: ignore[no-untyped-call]
        assert features.grad is not None
        for rows in self.groups:
            self.features(rows).backward(features.grad[rows])  # type: ignore[no-untyped-call]
        return float(loss.detach())


def first_tokens(count: int, width: int, rng: torch.Generator) -> Tensor:
    """Random tokens for new classes, of the size that CLIP's own have, (count, width)."""
    return torch.empty(count, width, device=rng.device).normal_(std=0.02, generator=rng)


def context_network(tower: TextTower, rng: torch.Generator) -> MLP:
    """The shared network from a text feature to a token, as deep and wide as CGIL's.

    CGIL's public code has batch normalisation between these layers, but keeps it in
    evaluation and never fills its statistics: an affine map, which the linear layer
    before it can be. Its SELU is a ReLU here.
    """
    return MLP([tower.dim, tower.dim, tower.dim, tower.width, tower.width], rng=rng)
