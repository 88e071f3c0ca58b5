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


def alike(factors: Tensor) -> Tensor:
    """The factors of classes, (k, d, m), turned to be as alike as they can be.

    F R describes what F does, for any rotation R: each class has the one that brings it
    closest to the directions that matter to most classes. A network learns them more easily.
    """
    whole = factors.transpose(0, 1).flatten(1)  # (d, k m)
    common = torch.linalg.svd(whole, full_matrices=False).U[:, : factors.shape[2]]
    common = torch.nn.functional.pad(common, (0, factors.shape[2] - common.shape[1]))
    left, _, right = torch.linalg.svd(factors.transpose(1, 2) @ common)  # Procrustes
    turned: Tensor = factors @ (left @ right)
    return turned
