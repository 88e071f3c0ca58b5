"""What happened to an incremental VAE at each task, and what to warn of."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from torch import Tensor

from frugalvae.errors import ConvergenceWarning, SaturationWarning
from frugalvae.maths.nullspace import NullSpace
from frugalvae.maths.priors import Placement, smallest_distance


@dataclass(frozen=True)
class LayerState:
    """The null space of one layer after a task: what the next task can use.

    Attributes
    ----------
    task, decoder, layer
        Which, all counted from 1.
    rank, size
        Free directions, and the layer's input dimension.
    proportion
        R of Eq. 10.
    """

    task: int
    decoder: int
    layer: int
    rank: int
    size: int
    proportion: float

    def is_used_up(self, saturation: float, min_free: float) -> bool:
        """Whether R is above the one threshold or free directions below the other."""
        return self.proportion > saturation or self.rank < min_free * self.size

    def warn(self) -> None:
        """Say that learning more will cost."""
        warnings.warn(
            f"after task {self.task}, layer {self.layer} of the decoder has {self.rank} of "
            f"{self.size} directions free and R = {self.proportion:.3f}: learning more "
            "will disturb old classes or fail; on_saturation='fresh' starts a new decoder",
            SaturationWarning,
            stacklevel=4,
        )


def layer_states(task: int, decoder: int, spaces: list[NullSpace]) -> list[LayerState]:
    """The null spaces of all layers of a decoder after a task."""
    return [
        LayerState(task, decoder, layer, space.rank, space.size, space.proportion)
        for layer, space in enumerate(spaces, start=1)
    ]


FAR_FROM_SETTLED = 1e-3  # at the usual radius of 21, means then still move by 0.02 a step


@dataclass(frozen=True)
class PriorState:
    """How a task's class means were placed, and how all stand since."""

    task: int
    iterations: int
    residual: float
    converged: bool
    smallest_distance: float
    mean_radius: float


def prior_state(task: int, placement: Placement, means: Tensor) -> PriorState:
    """The record of a placement, with a warning if it is far from settled."""
    if placement.residual > FAR_FROM_SETTLED:
        warnings.warn(
            f"the fixed-point iteration stopped after {placement.iterations} steps with a "
            f"residual of {placement.residual:.1e}; give the memory "
            "prior=FixedPointPrior(max_iterations=..., damping=...) of frugalvae.maths.priors",
            ConvergenceWarning,
            stacklevel=4,
        )
    return PriorState(
        task,
        placement.iterations,
        placement.residual,
        placement.converged,
        smallest_distance(means),
        float(means.norm(dim=1).mean()),
    )
