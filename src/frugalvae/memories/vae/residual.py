"""What a decoder leaves unexplained of a class: noise and directions; and how to teach it those."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from frugalvae.maths.networks import MLP
from frugalvae.maths.training import Batch, ScheduledAdam, Training
from frugalvae.memories.vae.decoder import UpdateRule
from frugalvae.progress import track


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


def teach_directions(
    decoder: MLP,
    data: Batch,
    rule: UpdateRule,
    learning_rate: float,
    training: Training,
    rng: torch.Generator,
) -> None:
    """Fit the decoder, around the latent mean of each class, to a given linear map.

    For a decoder that is linear around a class's latent mean, the maximum of Eq. 6 has a closed
    form: the directions of the class's covariance, each as long as the standard deviation that
    it has in excess of the noise (Tipping and Bishop, "Probabilistic principal component
    analysis"). The decoder is fitted to them by regression, which needs no encoder.

    Parameters
    ----------
    data
        The linear map of each class, (k, m, d), by which its first m latents are multiplied;
        and the prior means (k, latent) and embedding rows (k,) of the classes.
    rule
        What may change, and how.
    """
    steps, (classes, width, _) = training.max_steps, data.x.shape
    groups = [{"params": rule.parameters, "lr": learning_rate}]
    hooks = rule.after_backward, rule.after_step
    optimiser = ScheduledAdam(groups, steps, training.schedule, *hooks)
    each = max(1, training.batch_size // classes)  # samples per class and step
    rows = None if data.rows is None else data.rows.repeat_interleave(each)
    means = data.prior_means.repeat_interleave(each, dim=0)  # (k each, latent)
    for _ in track(range(steps), "training the decoder"):
        e = torch.empty_like(means).normal_(generator=rng)
        target = e[:, :width].reshape(classes, each, width) @ data.x  # (k, each, d)
        centre = decoder(data.prior_means, data.rows).repeat_interleave(each, dim=0)
        offset = decoder(means + e, rows) - centre  # (k each, d)
        optimiser.minimise((offset - target.flatten(0, 1)).square().sum(dim=1).mean())
    optimiser.finish()


def linear_maps(classes: Sequence[Tensor], spread: Tensor, count: int) -> Tensor:
    """What :func:`teach_directions` fits: of each class's samples (n, d), F^T, (k, count, d)."""
    nothing = classes[0][:1] * 0  # is explained
    directions = [class_directions(x, nothing, spread, count) for x in classes]
    return align(torch.stack(directions)).transpose(1, 2)


def align(directions: Tensor) -> Tensor:
    """Class directions (k, d, m), each rotated to be as similar as possible to the others'.

    F R describes the same covariance as F for any rotation R. Each class gets the rotation
    that brings it closest to the leading directions of all classes (Procrustes): a network
    learns similar maps more easily.
    """
    count = directions.shape[2]
    stacked = directions.transpose(0, 1).flatten(1)  # (d, k m)
    shared = torch.linalg.svd(stacked, full_matrices=False).U[:, :count]
    shared = torch.nn.functional.pad(shared, (0, count - shared.shape[1]))  # (d, m)
    left, _, right = torch.linalg.svd(directions.transpose(1, 2) @ shared)  # (k, m, m) each
    return directions @ (left @ right)
