"""Priors: where the Gaussian of each class stands in latent space.

A prior places the means of a task's new classes. It is given the mean latent of each new
class, and the means of all earlier classes, which never move.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, get_args

import torch
from torch import Tensor

from frugalvae.errors import check_choice, check_number
from frugalvae.maths.equations import fixed_point_step

Divisor = Literal["others", "pairs", "nothing"]


@dataclass(frozen=True)
class Placement:
    """Means of a task's classes, and how they were found.

    Attributes
    ----------
    means
        One row per class, shape (k, latent).
    iterations
        The number of steps of the fixed-point iteration; 0 for other priors.
    residual
        The norm of the last step, relative to the norm of the means.
    converged
        Whether the residual fell below the tolerance.
    """

    means: Tensor
    iterations: int = 0
    residual: float = 0.0
    converged: bool = True


class Prior(Protocol):
    """Places the Gaussians of a task's classes."""

    def place(self, latent_means: Tensor, fixed: Tensor, rng: torch.Generator) -> Placement:
        """Means of the new classes, (k, latent); ``fixed`` are the earlier ones, (old, latent)."""
        ...


@dataclass(frozen=True)
class FixedPointPrior:
    """Eq. 5, iterated until the means of the data and the repulsion balance.

    Undamped, the iteration nearly alternates between two points, so each step is shortened
    by ``damping``. After some plain steps Anderson acceleration takes over, which needs a
    tenth of the steps where the plain iteration is slow. If there are several fixed points,
    as in few dimensions, it may find another one. Means that coincide have no direction to
    repel in, so all start with a tiny random offset.

    Parameters
    ----------
    weight
        The paper's lambda, 900.
    divide_by
        What lambda is divided by. ``"others"``: the K - 1 summands of Eq. 5; classes then
        stand about sqrt(lambda / 2) from the centre, whatever K is. ``"pairs"``: K (K - 1), as
        in Eq. 20; 100 classes then stand within radius 2. ``"nothing"``: Eq. 5 as written;
        100 classes then stand at radius 200.
    damping
        The share of each step that is taken.
    history
        The number of earlier steps that the acceleration uses; 0 for none.
    tolerance, max_iterations
        Stop when the relative change of the means is below ``tolerance``, or after
        ``max_iterations`` steps.

    Examples
    --------
    Two classes at the same place end up at distance sqrt(2 lambda):

    >>> rng = torch.Generator().manual_seed(0)
    >>> prior = FixedPointPrior(weight=8.0)
    >>> means = prior.place(torch.zeros(2, 3), torch.empty(0, 3), rng).means
    >>> round(float((means[0] - means[1]).norm()), 3)
    4.0
    """

    weight: float = 900.0
    divide_by: Divisor = "others"
    damping: float = 0.5
    history: int = 8
    tolerance: float = 1e-5
    max_iterations: int = 3000

    def __post_init__(self) -> None:
        check_choice("divide_by", self.divide_by, get_args(Divisor))
        check_number("weight", self.weight, 0)
        check_number("damping", self.damping, 1e-6, 1)
        check_number("history", self.history, 0, 1_000, whole=True)
        check_number("tolerance", self.tolerance, 0)
        check_number("max_iterations", self.max_iterations, 0, 1_000_000, whole=True)

    def place(self, latent_means: Tensor, fixed: Tensor, rng: torch.Generator) -> Placement:
        """Iterate Eq. 5 in float64 until it converges."""
        target, old = latent_means.double(), fixed.double()  # (k, latent), (old, latent)
        weight = self._weight(len(target) + len(old))
        means = target + 1e-3 * torch.empty_like(target).normal_(generator=rng)
        stepping = Anderson(self.damping, self.history)
        iterations, residual = 0, float("inf")
        while residual >= self.tolerance and iterations < self.max_iterations:
            change = fixed_point_step(target, means, weight, old) - means  # (k, latent)
            means = stepping.next(means, change)
            residual = float(change.norm() / means.norm().clamp(min=1e-12))
            iterations += 1
        return Placement(
            means.to(latent_means.dtype), iterations, residual, residual < self.tolerance
        )

    def _weight(self, classes: int) -> float:
        others = max(classes - 1, 1)
        divisors = {"others": others, "pairs": max(classes, 1) * others, "nothing": 1}
        return self.weight / divisors[self.divide_by]


class Anderson:
    """Anderson acceleration of a damped fixed-point iteration.

    It combines the last steps so that the combined residual is smallest. The first steps are
    plain, and so are those after the residual has grown.
    """

    first_plain_steps = 20

    def __init__(self, damping: float, history: int) -> None:
        self.damping = damping
        self.history = history
        self.points: list[Tensor] = []
        self.changes: list[Tensor] = []
        self.best = float("inf")
        self.plain_steps_left = self.first_plain_steps

    def next(self, point: Tensor, change: Tensor) -> Tensor:
        """The next point, given the current one and the change that Eq. 5 would make there."""
        residual = float(change.norm())
        if residual > 2 * self.best:  # acceleration has failed: start over
            self.points, self.changes, self.plain_steps_left = [], [], self.first_plain_steps
        self.best = min(self.best, residual) if self.points else residual
        self.points = [*self.points, point.flatten()][-self.history - 1 :]
        self.changes = [*self.changes, change.flatten()][-self.history - 1 :]
        self.plain_steps_left -= 1
        if self.plain_steps_left >= 0:
            return point + self.damping * change
        steps = torch.stack(self.points, dim=1).diff()  # (k latent, history)
        differences = torch.stack(self.changes, dim=1).diff()  # (k latent, history)
        gram = differences.T @ differences  # (history, history)
        ridge = 1e-10 * gram.diagonal().mean().clamp(min=1e-300) * torch.eye(len(gram)).to(gram)
        mix = torch.linalg.solve(gram + ridge, differences.T @ change.flatten())
        correction: Tensor = (steps + self.damping * differences) @ mix
        return point + self.damping * change - correction.view_as(point)


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
