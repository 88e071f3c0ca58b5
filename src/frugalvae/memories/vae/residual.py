"""What a decoder leaves unexplained of a class: isotropic noise, and leading directions."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor


def noise_std(
    real: Tensor,
    decoded: Tensor,
    noise: float | Literal["match"],
    directions: Tensor | None = None,
    spread: Tensor | None = None,
) -> Tensor:
    """Standard deviation of the noise to add to decoded samples of a class.

    Parameters
    ----------
    real, decoded
        Samples of the class (n, d), and decoded ones.
    noise
        A number is taken as it is. ``"match"`` gives samples the variance of the class,
        averaged over dimensions: the decoder explains only a part of it.
    directions
        Class directions (d, m), which explain another part.
    spread
        Standard deviation of the noise per dimension, (d,). The result is then its factor.

    Examples
    --------
    >>> real, decoded = torch.tensor([[-5.0], [5.0]]), torch.tensor([[-3.0], [3.0]])
    >>> noise_std(real, decoded, "match")
    tensor(4.)
    """
    if noise != "match":
        return real.new_tensor(noise)
    missing = real.var(dim=0, correction=0).mean() - decoded.var(dim=0, correction=0).mean()
    if directions is not None:
        missing = missing - directions.square().sum() / len(directions)
    if spread is not None:
        missing = missing / spread.square().mean().clamp(min=1e-12)
    return missing.clamp(min=0).sqrt()


def class_directions(real: Tensor, decoded: Tensor, spread: Tensor, count: int) -> Tensor:
    """F (d, count), so that F F^T is the largest part of the covariance that is unexplained.

    Parameters
    ----------
    real
        Samples of the class, (n, d), with mean zero.
    decoded
        Decoded samples of the class. Their covariance counts as explained.
    spread
        Standard deviation of the noise per dimension, (d,). It counts as explained too.

    Examples
    --------
    >>> real = torch.tensor([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> class_directions(real, torch.zeros(1, 2), torch.ones(2), 1).abs()  # 4.5 - 1 is left
    tensor([[1.8708],
            [0.0000]])
    """
    _, lengths, axes = torch.linalg.svd(real, full_matrices=False)  # axes: (r, d)
    variances = lengths.square() / len(real)  # (r,)
    decoded = (decoded - decoded.mean(dim=0)) @ axes.T
    explained = decoded.T @ decoded / len(decoded)  # (r, r)
    noise = (axes * spread.square()) @ axes.T  # (r, r)
    excess, turn = torch.linalg.eigh(variances.diag() - explained - noise)
    kept = min(count, len(excess))
    excess, turn = excess.flip(0)[:kept], turn.flip(1)[:, :kept]
    directions = (axes.T @ turn) * excess.clamp(min=0).sqrt()  # (d, kept)
    return torch.nn.functional.pad(directions, (0, count - kept))
