"""What is recorded of each task: where class means stand, and how much of null spaces is left."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from frugalvae.errors import ConvergenceWarning, SaturationWarning

LARGE_RESIDUAL = 1e-3  # at the usual radius of 21, means then still move by 0.02 per step


@dataclass(frozen=True)
class PriorState:
    """How a task's class means were placed, and where all means stand since.

    Attributes
    ----------
    task
        Counted from 1.
    iterations, residual, converged
        See :class:`frugalvae.maths.latent_priors.Placement`.
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
                "max_iterations=..., damping=...) of frugalvae.maths.latent_priors",
                ConvergenceWarning,
                stacklevel=5,
            )


@dataclass(frozen=True)
class Thresholds:
    """When the null space of a layer counts as saturated.

    Attributes
    ----------
    saturation
        The largest R (Eq. 10). The paper, after Adam-NSCL, names 0.05.
    min_free
        The smallest share of directions in which the layer's weight may still change.

    Examples
    --------
    >>> Thresholds().exceeded(proportion=0.01, rank=5, size=100)
    False
    >>> Thresholds.of({"min_free": 0.5}).exceeded(proportion=0.01, rank=5, size=100)
    True
    """

    saturation: float = 0.05
    min_free: float = 0.05

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Thresholds:
        """The thresholds among a memory's settings; defaults for those that it does not name."""
        names = ("saturation", "min_free")
        return cls(**{name: settings[name] for name in names if name in settings})

    def exceeded(self, proportion: float, rank: int, size: int) -> bool:
        """Whether a layer with this R, and ``rank`` of ``size`` directions left, is saturated."""
        return proportion > self.saturation or rank < self.min_free * size


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

    def is_saturated(self, thresholds: Thresholds) -> bool:
        """Whether its null space is used up."""
        return thresholds.exceeded(self.proportion, self.rank, self.size)

    def warn(self) -> None:
        """Warn that learning more classes will disturb old ones."""
        warnings.warn(
            f"after task {self.task}, layer {self.layer} of the decoder has {self.rank} of "
            f"{self.size} directions free and R = {self.proportion:.3f}: learning more "
            "will disturb old classes or fail; on_saturation='fresh' starts a new decoder",
            SaturationWarning,
            stacklevel=5,
        )
