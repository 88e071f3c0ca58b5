"""Epochs of replayed samples, for heads that are fitted by gradient steps."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from frugalvae.parts.protocols import Replay
from frugalvae.progress import track
from frugalvae.tensors import batches, to_generator, to_tensor

#: Features (n, d), and the position of each one's class, (n,).
Samples = tuple[Tensor, Tensor]


def draw(replay: Replay, samples: int, device: torch.device) -> Samples:
    """Replayed samples on a device, ``samples`` per class."""
    x, y = replay.draw(samples)
    return to_tensor(x, device), torch.from_numpy(y).to(device)


def replay_epochs(
    replay: Replay,
    epochs: int,
    samples: int,
    batch_size: int,
    device: torch.device,
    *,
    first: Samples | None = None,
    resample: bool = True,
) -> Iterator[Iterator[Samples]]:
    """For each epoch, its batches; an epoch has ``samples`` per class.

    Parameters
    ----------
    first
        Samples for the first epoch, if they have been drawn already.
    resample
        Draw new samples for every epoch; otherwise the first ones are used throughout.
    """
    rng = to_generator(replay.rng, device)
    for epoch in track(range(epochs), "fitting the head"):
        if first is None or (epoch and resample):
            first = draw(replay, samples, device)
        x, y = first  # (n, d), (n,)
        yield ((x[rows], y[rows]) for rows in batches(len(x), batch_size, rng))
