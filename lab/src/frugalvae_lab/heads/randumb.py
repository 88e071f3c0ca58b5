"""RanDumb head: random Fourier features, and a covariance that is shrunk by a formula."""

from __future__ import annotations

import numpy as np

from frugalvae.errors import check_number
from frugalvae.maths.arrays import Array
from frugalvae_lab.heads.fourier_lda import FourierLDA


class RanDumbHead(FourierLDA):
    """Linear discriminant analysis on random Fourier features with OAS shrinkage; no replay.

    Parameters
    ----------
    width
        Number of random features.
    gamma
        The width of the Gaussian kernel, relative to one over the variance of the first task's
        features.
    shrinkage
        The share of the identity that is mixed into the shrunk covariance.

    References
    ----------
    Prabhu et al., "RanDumb: A Simple Approach that Questions the Efficacy of Continual
    Representation Learning", 2024. Chen et al., "Shrinkage Algorithms for MMSE Covariance
    Estimation", 2010.
    """

    def __init__(self, *, width: int = 10_000, gamma: float = 1.0, shrinkage: float = 1e-4) -> None:
        super().__init__(width, gamma, maps=1)
        check_number("shrinkage", shrinkage, 1e-12, 1)
        self.shrinkage = shrinkage

    def _regularised(self, level: float, squares: float) -> tuple[float, float]:
        share = oas_share(level, squares, self.width, self.count_)
        kept = 1 - self.shrinkage
        return kept * (1 - share), kept * share * level + self.shrinkage


def oas(covariance: Array, samples: int) -> Array:
    """A covariance (m, m) of so many samples, shrunk to a multiple of the identity.

    The oracle approximating shrinkage estimator.

    >>> oas(np.diag([3.0, 1.0]), 99).round(2).tolist()
    [[2.87, 0.0], [0.0, 1.13]]
    """
    size, level = len(covariance), float(covariance.diagonal().mean())
    squares = float(np.einsum("ij,ij->", covariance, covariance))
    share = oas_share(level, squares, size, samples)
    shrunk: Array = (1 - share) * covariance
    shrunk[np.diag_indices(size)] += share * level
    return shrunk


def oas_share(level: float, squares: float, size: int, samples: int) -> float:
    """How much of it becomes a multiple of the identity.

    Parameters
    ----------
    level, squares
        The mean of its diagonal entries, and the sum of squares of all its entries.
    size, samples
        Its number of rows, and of how many samples it is.
    """
    mean = squares / size**2
    apart = (samples + 1) * (mean - level**2 / size)
    return min(1.0, (mean + level**2) / apart) if apart > 0 else 1.0
