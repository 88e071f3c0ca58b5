"""Priors other than the paper's: where the Gaussian of each class stands in latent space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from frugalvae.errors import check_choice, check_number
from frugalvae.paper.placement import Placement, Prior
from frugalvae.paper.vae_fo import FixedPoint

Divisor = Literal["others", "pairs", "nothing"]


@dataclass(frozen=True)
class FixedPointPrior(FixedPoint):
    """Eq. 5 with lambda divided by how many classes there are.

    Parameters
    ----------
    divide_by
        What lambda is divided by. ``"others"``: the K - 1 summands of Eq. 5; classes then
        stand about sqrt(lambda / 2) from the centre, whatever K is. ``"pairs"``: K (K - 1), as
        in Eq. 20; 100 classes then stand within radius 2. ``"nothing"``: Eq. 5 as written;
        100 classes then stand at radius 200.

    Examples
    --------
    Two classes at the same place end up at distance sqrt(2 lambda):

    >>> rng = torch.Generator().manual_seed(0)
    >>> prior = FixedPointPrior(weight=8.0)
    >>> means = prior.place(torch.zeros(2, 3), torch.empty(0, 3), rng).means
    >>> round(float((means[0] - means[1]).norm()), 3)
    4.0
    """

    divide_by: Divisor = "others"

    def __post_init__(self) -> None:
        check_choice("divide_by", self.divide_by, get_args(Divisor))
        check_number("weight", self.weight, 0)
        check_number("damping", self.damping, 1e-6, 1)
        check_number("history", self.history, 0, 1_000, whole=True)
        check_number("tolerance", self.tolerance, 0)
        check_number("max_iterations", self.max_iterations, 0, 1_000_000, whole=True)

    def weight_among(self, classes: int) -> float:
        """Lambda, divided."""
        others = max(classes - 1, 1)
        divisors = {"others": others, "pairs": max(classes, 1) * others, "nothing": 1}
        return self.weight / divisors[self.divide_by]


@dataclass(frozen=True)
class NormalPrior:
    """Means drawn from N(0, scale^2 I), regardless of the data.

    >>> rng = torch.Generator().manual_seed(0)
    >>> NormalPrior().place(torch.zeros(4, 2), torch.empty(0, 2), rng).means.shape
    torch.Size([4, 2])
    """

    scale: float = 1.0

    def place(self, latent_means: Tensor, fixed: Tensor, rng: torch.Generator) -> Placement:
        """Draw one row per class."""
        return Placement(torch.empty_like(latent_means).normal_(generator=rng) * self.scale)


@dataclass(frozen=True)
class UniformPrior:
    """Means drawn uniformly from the cube [-scale, scale], regardless of the data."""

    scale: float = 1.0

    def place(self, latent_means: Tensor, fixed: Tensor, rng: torch.Generator) -> Placement:
        """Draw one row per class."""
        draw = torch.empty_like(latent_means).uniform_(-1, 1, generator=rng)
        return Placement(draw * self.scale)


@dataclass(frozen=True)
class SinglePrior:
    """One prior N(0, I) for all classes: only embeddings tell them apart (VAE-CEO)."""

    def place(self, latent_means: Tensor, fixed: Tensor, rng: torch.Generator) -> Placement:
        """All means are the origin."""
        return Placement(torch.zeros_like(latent_means))


_BY_NAME: dict[str, Prior] = {
    "fpi": FixedPointPrior(),
    "fpi-pairs": FixedPointPrior(divide_by="pairs"),
    "fpi-literal": FixedPointPrior(divide_by="nothing"),
    "normal": NormalPrior(),
    "uniform": UniformPrior(),
    "single": SinglePrior(),
}


def make_prior(prior: str | Prior) -> Prior:
    """A prior by name, or the given one unchanged.

    >>> make_prior("uniform")
    UniformPrior(scale=1.0)
    """
    if hasattr(prior, "place"):
        return prior
    check_choice("prior", prior, _BY_NAME)
    return _BY_NAME[prior]


def smallest_distance(means: Tensor) -> float:
    """Distance of the closest two means; infinite for fewer than two.

    >>> smallest_distance(torch.tensor([[0.0], [3.0], [5.0]]))
    2.0
    """
    if len(means) < 2:
        return float("inf")
    return float(torch.nn.functional.pdist(means.double()).min())
