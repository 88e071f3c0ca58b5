"""Directions in which a class spreads more than what describes it already."""

from __future__ import annotations

import torch
from torch import Tensor


def class_factors(real: Tensor, decoded: Tensor, spread: Tensor, count: int) -> Tensor:
    """F, (d, count), so that F F^T is the most of what the samples' covariance has in excess.

    Parameters
    ----------
    real
        Samples of the class, (n, d), of mean zero.
    decoded
        What the decoder makes of draws of the class, whose covariance is taken off.
    spread
        Standard deviation of the noise in each dimension, whose variance is taken off too.

    Examples
    --------
    >>> real = torch.tensor([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> class_factors(real, torch.zeros(1, 2), torch.ones(2), 1).abs()  # 4.5 - 1 in excess
    tensor([[1.8708],
            [0.0000]])
    """
    _, lengths, directions = torch.linalg.svd(real, full_matrices=False)
    variances = lengths.square() / len(real)
    decoded = (decoded - decoded.mean(dim=0)) @ directions.T
    explained = decoded.T @ decoded / len(decoded)
    shared = (directions * spread.square()) @ directions.T
    excess, turn = torch.linalg.eigh(variances.diag() - explained - shared)
    kept = min(count, len(excess))
    excess, turn = excess.flip(0)[:kept], turn.flip(1)[:, :kept]
    factors = (directions.T @ turn) * excess.clamp(min=0).sqrt()
    return torch.nn.functional.pad(factors, (0, count - kept))
