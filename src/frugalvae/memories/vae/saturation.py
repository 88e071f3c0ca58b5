"""Saturation: when a layer's null space counts as used up. The one place that says so."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from frugalvae.errors import SaturationWarning


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
