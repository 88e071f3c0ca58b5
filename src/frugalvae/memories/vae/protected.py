"""Which layer inputs a null space protects: those of which latents. The paper leaves it open."""

from __future__ import annotations

import torch
from torch import Tensor

from frugalvae.maths.equations import reparametrise
from frugalvae.maths.networks import MLP
from frugalvae.maths.training import Batch, Training, encode
from frugalvae.memories.vae.settings import Source

DRAWS = 256  # latents per class that are drawn from the prior


@torch.no_grad()
def latents_to_protect(
    source: Source,
    classes: Batch,
    data: Batch,
    encoder: MLP | None,
    training: Training,
    rng: torch.Generator,
) -> tuple[Tensor, Tensor | None, int]:
    """Latents (., latent), their embedding rows, and how many layer inputs to average over.

    Parameters
    ----------
    source
        The setting ``inputs``.
    classes, data
        One row per class, and one per sample.
    """
    if source.startswith("prior"):
        count = 1 if source == "prior-mean" else DRAWS
        rows = None if classes.rows is None else classes.rows.repeat_interleave(count)
        z = classes.prior_means.repeat_interleave(count, dim=0)  # (k count, latent)
        if source == "prior":
            z = z + torch.empty_like(z).normal_(generator=rng)
        return z, rows, 1
    average = 1
    if source == "batch-mean":
        data = data[torch.randperm(len(data), generator=rng, device=rng.device)]
        average = training.batch_size
    assert encoder is not None
    mu, sigma = encode(encoder, data, training.relative)  # (n, latent) each
    if source == "posterior-mean":
        return mu, data.rows, average
    z = reparametrise(mu, sigma, torch.empty_like(mu).normal_(generator=rng))
    return z, data.rows, average
