"""What is recorded of each task: where class means stand, and how much of null spaces is left."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from frugalvae.errors import ConvergenceWarning, SaturationWarning

LARGE_RESIDUAL = 1e-3  # at the usual radius of 21, means then still move by 0.02 per step
LARGEST_R = 0.05  # of Eq. 10; the paper, after Adam-NSCL, names it
LEAST_FREE = 0.05  # the share of directions in which a layer's weight must still be free


@dataclass(frozen=True)
class PriorState:
    """How a task's class means were placed, and where all means stand since.

    Attributes
    ----------
    task
        Counted from 1.
    iterations, residual, converged
        See :class:`frugalvae.paper.placement.Placement`.
    smallest_distance, mean_radius
        The smallest distance between two means, and their mean distance from the origin.
    """

    task: int
    iterations: int
    residual: float
    converged: bool
    smallest_distance: float
    mean_radius: float

    def warn(self) -> None:
        """Warn if the iteration stopped far from converged."""
        if self.residual > LARGE_RESIDUAL:
            warnings.warn(
                f"the fixed-point iteration stopped after {self.iterations} steps with a "
                f"residual of {self.residual:.1e}; give the memory prior=FixedPointPrior("
                "max_iterations=..., damping=...) of frugalvae.paper.priors",
                ConvergenceWarning,
                stacklevel=5,
            )


def is_saturated(proportion: float, rank: int, size: int) -> bool:
    """Whether a null space with this R, and ``rank`` of ``size`` directions, is used up.

    >>> is_saturated(0.01, 5, 100), is_saturated(0.01, 4, 100), is_saturated(0.06, 5, 100)
    (False, True, True)
    """
    return proportion > LARGEST_R or rank < LEAST_FREE * size


@dataclass(frozen=True)
class LayerState:
    """The null space of one layer after a task: what the next task can use.

    Attributes
    ----------
    task, decoder, layer
        Which task, decoder and layer, all counted from 1.
    rank, size
        The dimension of the null space, and of the layer's input.
    proportion
        R of Eq. 10.
    """

    task: int
    decoder: int
    layer: int
    rank: int
    size: int
    proportion: float

    def warn(self) -> None:
        """Warn if learning more classes will disturb old ones."""
        if is_saturated(self.proportion, self.rank, self.size):
            warnings.warn(
                f"after task {self.task}, layer {self.layer} of the decoder has {self.rank} of "
                f"{self.size} directions free and R = {self.proportion:.3f}: learning more "
                "will disturb old classes or fail; on_saturation='fresh' starts a new decoder",
                SaturationWarning,
                stacklevel=5,
            )
