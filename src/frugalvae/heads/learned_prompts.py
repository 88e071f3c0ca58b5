"""Learnable prompts as CGIL parametrises them: text features, and gradients through the tower.

:class:`~frugalvae.heads.prompt.PromptHead` is the head that trains them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from frugalvae.encoders.defaults import spoken
from frugalvae.paper.clip import TextTower, groups
from frugalvae.paper.networks import MLP

LEARNED = 2  # learned tokens per prompt: the class's own, and the shared network's
PROMPTS_PER_PASS = 64
GRAPH_LIMIT = 2 * 2**30  # bytes of activations above which they are computed twice


class LearnedPrompts:
    """Prompts of some classes. Each is a token per class, a token from its text feature, its name.

    Parameters
    ----------
    tower
        The frozen text tower.
    names
        Names of the classes, in order.
    tokens
        The token of each class, (k, width).
    network
        Makes the second token from the class's text feature.
    checkpoint
        Compute the tower's activations again for the gradient instead of keeping them, a few
        prompts at a time: 50 % slower, in a fraction of the memory. ``None`` does so if they
        would take more than two gibibytes.
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
        self.groups = groups([len(end) for end in self.ends], PROMPTS_PER_PASS)
        self.checkpoint = self.graph_bytes() > GRAPH_LIMIT if checkpoint is None else checkpoint

    def graph_bytes(self) -> int:
        """Approximate size of the activations that a gradient needs."""
        positions = sum(LEARNED + len(end) for end in self.ends)
        inner = int(self.tower.layers[0].mlp.fc1.out_features)
        numbers = positions * len(self.tower.layers) * (9 * self.tower.width + 4 * inner)
        return numbers * torch.finfo(self.tower.dtype).bits // 8

    def features(self, rows: Sequence[int]) -> Tensor:
        """Text features (n, dim) of prompts of equal length."""
        made: Tensor = self.network(self.described[rows])  # (n, width)
        context = torch.stack([self.tokens[rows], made], dim=1)  # (n, 2, width)
        ends = torch.stack([self.ends[row] for row in rows])
        return self.tower.encode(torch.cat([context, ends], dim=1))

    def all_features(self) -> Tensor:
        """Text features (k, dim) of all prompts, in order."""
        order = torch.tensor([row for rows in self.groups for row in rows]).argsort()
        features = torch.cat([self.features(rows) for rows in self.groups])
        return features[order.to(features.device)]

    def backward(self, loss_of: Callable[[Tensor], Tensor]) -> float:
        """Back-propagate a loss of the text features to tokens and network.

        One pass through the tower is enough, however many samples the loss is over.
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
    """Random tokens (count, width) for new classes, on the scale of CLIP's own tokens."""
    return torch.empty(count, width, device=rng.device).normal_(std=0.02, generator=rng)


def context_network(tower: TextTower, rng: torch.Generator) -> MLP:
    """The shared network from a text feature to a token, as deep and wide as CGIL's.

    CGIL's public code has batch normalisation between these layers, but in evaluation mode and
    with initial statistics. That is an affine map, which the linear layer before it can
    represent. SELU is replaced by ReLU.
    """
    return MLP([tower.dim, tower.dim, tower.dim, tower.width, tower.width], rng=rng)
