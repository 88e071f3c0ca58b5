"""What is counted of networks, against real ones."""

from __future__ import annotations

import pytest
import torch

from frugalvae.paper.networks import MLP, layer_sizes, parameters
from tests.test_accounting import cost, named


@pytest.mark.parametrize("embedding", [0, 3])
def test_parameters_are_those_of_a_real_network(embedding: int) -> None:
    network = MLP([5, 7, 6, 4], embedding, rng=torch.Generator())
    real = sum(tensor.numel() for tensor in network.parameters())  # tables have no rows yet
    assert parameters(layer_sizes([5, 7, 6, 4], embedding)) == real


def test_vae_parts_are_those_of_real_networks() -> None:
    rng = torch.Generator()
    encoder, decoder = MLP([9, 6, 6, 8], 3, rng=rng), MLP([4, 6, 6, 9], 3, rng=rng)
    parts = named(cost("vae-fod", 9, 5, 3, hidden=6, latent=4, embedding=3))
    inputs = [layer.in_features for layer in decoder.layers[:-1]]
    assert parts["encoder"].stored == sum(p.numel() for p in encoder.parameters())
    assert parts["decoder"].stored == sum(p.numel() for p in decoder.parameters())
    assert parts["covariances"].paper == sum(size**2 for size in inputs)
    for network in (encoder, decoder):
        network.add_classes(5, rng)
    tables = [*encoder.tables, *decoder.tables]
    assert parts["class embeddings"].stored == sum(table.numel() for table in tables)


def test_task_layers_are_what_a_fork_does_not_share() -> None:
    decoder = MLP([4, 6, 6, 9], rng=torch.Generator())
    shared = {id(tensor) for tensor in decoder.parameters()}
    own = sum(p.numel() for p in decoder.fork().parameters() if id(p) not in shared)
    parts = named(cost("vae-fod", 9, 5, 3, hidden=6, latent=4))
    assert parts["task layers"].stored == 2 * own


def test_class_vae_keeps_a_decoder_for_every_class() -> None:
    decoders = named(cost("vae-cgil", 9, 5, hidden=6, latent=4))["decoders"]
    real = MLP([4, 6, 6, 9], rng=torch.Generator())
    assert decoders.paper == decoders.stored == 5 * sum(p.numel() for p in real.parameters())
