"""How class means are found: what a placement is, and what makes Eq. 5 converge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


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
