"""KLDA and KLDA-E heads: discriminant analysis with a Gaussian kernel."""

from __future__ import annotations

from typing import Any

from frugalvae.errors import check_number
from frugalvae_lab.heads.fourier_lda import FourierLDA


class KLDAHead(FourierLDA):
    """Linear discriminant analysis on random Fourier features; no replay.

    Parameters
    ----------
    width
        Random features of each map.
    gamma
        The width of the Gaussian kernel, relative to one over the variance of the first task's
        features.
    ridge
        What is added to each variance, as a share of the mean variance.
    maps
        How many maps there are, whose scores are averaged.

    References
    ----------
    Momeni, Mazumder and Liu, "Continual Learning Using a Kernel-Based Method Over Foundation
    Models", 2025.
    """

    def __init__(
        self, *, width: int = 5000, gamma: float = 0.1, ridge: float = 0.1, maps: int = 1
    ) -> None:
        super().__init__(width, gamma, maps)
        check_number("ridge", ridge, 1e-6)
        self.ridge = ridge

    def _regularised(self, level: float, squares: float) -> tuple[float, float]:
        return 1.0, self.ridge * (level or 1.0)


class KLDAEnsembleHead(KLDAHead):
    """The same with five maps."""

    def __init__(self, *, maps: int = 5, **settings: Any) -> None:
        super().__init__(maps=maps, **settings)
