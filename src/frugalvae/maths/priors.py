"""Where the Gaussian of each class stands in latent space.

A prior is asked once a task for the means of the new classes. It sees the mean
latent of every new class and the means of all classes before, which never move.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, get_args

import torch
from torch import Tensor

from frugalvae.errors import check_choice, check_number
from frugalvae.maths.equations import fixed_point_step, pair_weight

Divisor = Literal["others", "pairs", "nothing"]


@dataclass(frozen=True)
class Placement:
    """Means of a task's classes, and how they were found.

    Attributes
    ----------
    means
        One row a class, shape (k, latent).
    iterations
        Steps of the fixed-point iteration; 0 where there is none.
    residual
        Length of the last step's change, relative to the means.
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
        """Means for the new classes, shape (k, latent); ``fixed`` are the old ones."""
        ...


@dataclass(frozen=True)
class FixedPointPrior:
    """Eq. 5: mean latents, pushed apart until attraction and repulsion balance.

    Undamped, the iteration is nearly a 2-cycle; each step here goes only part
    of the way (``damping``). Once under way, it is accelerated (Anderson's method),
    which takes a tenth of the steps where the plain iteration is slow; where there are
    several fixed points, as in few dimensions, it may find another. Coincident means have
    no direction to part in, so they are first moved by a tiny random vector.

    Parameters
    ----------
    weight
        The paper's lambda, 900.
    divide_by
        What lambda is divided by. ``"others"``: the K - 1 summands of Eq. 5, so that
        classes stand about sqrt(lambda / 2) from the centre however many there are.
        ``"pairs"``: K (K - 1), as Eq. 20 does, which draws 100 classes into radius 2.
        ``"nothing"``: Eq. 5 as written, which drives 100 classes out to radius 200.
    damping
        Part of each step that is taken.
    history
        How many earlier steps the acceleration looks back on; 0 for none.
    tolerance, max_iterations
        Stop when the means change by less than this, relatively; or give up.

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
        check_number("history", self.history, 0, whole=True)
        check_number("tolerance", self.tolerance, 0)
        check_number("max_iterations", self.max_iterations, 0, whole=True)

    def place(self, latent_means: Tensor, fixed: Tensor, rng: torch.Generator) -> Placement:
        """Iterate Eq. 5 in float64 until it stands still."""
        target, old = latent_means.double(), fixed.double()
        weight = self._weight(len(target) + len(old))
        means = target + 1e-3 * torch.empty_like(target).normal_(generator=rng)
        stepping = Anderson(self.damping, self.history)
        iterations, residual = 0, float("inf")
        while residual >= self.tolerance and iterations < self.max_iterations:
            change = fixed_point_step(target, means, weight, old) - means
            means = stepping.next(means, change)
            residual = float(change.norm() / means.norm().clamp(min=1e-12))
            iterations += 1
        return Placement(
            means.to(latent_means.dtype), iterations, residual, residual < self.tolerance
        )

    def _weight(self, classes: int) -> float:
        if self.divide_by == "pairs":
            return pair_weight(self.weight, classes)
        return self.weight / max(classes - 1, 1) if self.divide_by == "others" else self.weight


class Anderson:
    """Anderson's acceleration of a damped fixed-point iteration.

    It combines the last steps so that their combined residual is least. The first steps,
    and those after a residual that grew, are plain.
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
        """Where to go from a point at which the iteration would make this change."""
        residual = float(change.norm())
        if residual > 2 * self.best:  # the combination led astray
            self.points, self.changes, self.plain_steps_left = [], [], self.first_plain_steps
        self.best = min(self.best, residual) if self.points else residual
        self.points = [*self.points, point.flatten()][-self.history - 1 :]
        self.changes = [*self.changes, change.flatten()][-self.history - 1 :]
        self.plain_steps_left -= 1
        if self.plain_steps_left >= 0 or not self.history or len(self.points) < 2:
            return point + self.damping * change
        steps = torch.stack(self.points, dim=1).diff(dim=1)
        bends = torch.stack(self.changes, dim=1).diff(dim=1)
        gram = bends.T @ bends
        ridge = 1e-10 * gram.diagonal().mean().clamp(min=1e-300) * torch.eye(len(gram)).to(gram)
        mix = torch.linalg.solve(gram + ridge, bends.T @ change.flatten())
        correction: Tensor = (steps + self.damping * bends) @ mix
        return point + self.damping * change - correction.view_as(point)


@dataclass(frozen=True)
class NormalPrior:
    """Means drawn from N(0, scale^2 I), whatever the data.

    >>> rng = torch.Generator().manual_seed(0)
    >>> NormalPrior().place(torch.zeros(4, 2), torch.empty(0, 2), rng).means.shape
    torch.Size([4, 2])
    """

    scale: float = 1.0

    def place(self, latent_means: Tensor, fixed: Tensor, rng: torch.Generator) -> Placement:
        """Draw one row a class."""
        return Placement(torch.empty_like(latent_means).normal_(generator=rng) * self.scale)


@dataclass(frozen=True)
class UniformPrior:
    """Means drawn from the cube [-scale, scale], whatever the data."""

    scale: float = 1.0

    def place(self, latent_means: Tensor, fixed: Tensor, rng: torch.Generator) -> Placement:
        """Draw one row a class."""
        draw = torch.empty_like(latent_means).uniform_(-1, 1, generator=rng)
        return Placement(draw * self.scale)


@dataclass(frozen=True)
class SinglePrior:
    """Every class shares N(0, I): only class embeddings can tell them apart (VAE-CEO)."""

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
    """A prior by name, or the one given.

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
