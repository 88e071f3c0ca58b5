"""Fitting a decoder to class directions in closed form, in place of training it on Eq. 6."""

from __future__ import annotations

import torch
from torch import Tensor

from frugalvae.maths.networks import MLP
from frugalvae.maths.training import Batch, OneCycleAdam, Training
from frugalvae.memories.vae.decoder import UpdateRule
from frugalvae.progress import track


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
    optimiser = OneCycleAdam(groups, steps, rule.after_backward, rule.after_step)
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
    aligned: Tensor = directions @ (left @ right)
    return aligned
