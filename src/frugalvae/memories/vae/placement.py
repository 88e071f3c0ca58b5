"""How the class means of each task were placed in latent space, for the record."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from torch import Tensor

from frugalvae.errors import ConvergenceWarning
from frugalvae.maths.priors import Placement, smallest_distance

LARGE_RESIDUAL = 1e-3  # at the usual radius of 21, means then still move by 0.02 per step


@dataclass(frozen=True)
class PriorState:
    """How a task's class means were placed, and where all means stand since.

    Attributes
    ----------
    task
        Counted from 1.
    iterations, residual, converged
        See :class:`frugalvae.maths.priors.Placement`.
    smallest_distance, mean_radius
        The smallest distance between two means, and their mean distance from the origin.
    """

    task: int
    iterations: int
    residual: float
    converged: bool
    smallest_distance: float
    mean_radius: float


def prior_state(task: int, placement: Placement, means: Tensor) -> PriorState:
    """The record of a placement. Warns if the iteration is far from converged."""
    if placement.residual > LARGE_RESIDUAL:
        warnings.warn(
            f"the fixed-point iteration stopped after {placement.iterations} steps with a "
            f"residual of {placement.residual:.1e}; give the memory "
            "prior=FixedPointPrior(max_iterations=..., damping=...) of frugalvae.maths.priors",
            ConvergenceWarning,
            stacklevel=5,
        )
    return PriorState(
        task,
        placement.iterations,
        placement.residual,
        placement.converged,
        smallest_distance(means),
        float(means.norm(dim=1).mean()),
    )
