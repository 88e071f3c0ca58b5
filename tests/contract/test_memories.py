"""What every memory must do. Memories are discovered: a new one is tested by being there."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from frugalvae import moments, paper, parts
from frugalvae.parts import MEMORIES, make_memory
from frugalvae.parts.protocols import Memory
from frugalvae.parts.registry import parameters_of
from frugalvae.testing.memories import (
    MEMORY_CHECKS,
    SAMPLELESS_CHECKS,
    densities_tell_classes_apart,
    samples_stand_where_their_class_stands,
    says_its_cost_before_training,
)
from frugalvae.testing.rules import Rule, blobs
from tests.conftest import SMALL, parts_of

#: Rules that a network keeps only after some training; for the others a few steps will do.
TRAINED = {densities_tell_classes_apart, samples_stand_where_their_class_stands}
FEW = {"epochs": 3, "max_steps": 6}

GENERATIVE = [name for name in MEMORIES.names if name != "none"]

#: For a decoder that has to learn by itself where classes stand.
LONGER = {"epochs": 200, "max_steps": 200, "learning_rate": 1e-2, "later_learning_rate": 1e-2}

#: Settings of the paper's ablations, each on top of a variant.
ABLATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "normal means": ("vae-fo", {"prior": "normal"}),
    "uniform means": ("vae-fo", {"prior": "uniform"}),
    "free": ("vae-fo", {"decoder": "free"}),
    "frozen": ("vae-fo", {"decoder": "frozen"}),
    "not class-wise": ("vae-fo", {"classwise": False, **LONGER}),
    "ceo, free": ("vae-ceo", {"decoder": "free"}),
    "ceo, frozen": ("vae-ceo", {"decoder": "frozen"}),
    "fod, free": ("vae-fod", {"decoder": "free"}),
    "fod, frozen": ("vae-fod", {"decoder": "frozen"}),
    "relative": ("vae-fo", {"relative": True}),
    "projected gradient": ("vae-fo", {"projection": "gradient"}),
    "fresh decoders": ("vae-fo", {"on_saturation": "fresh"}),
    "fresh dynamic decoders": ("vae-fodce", {"on_saturation": "fresh"}),
    **{
        f"protects {inputs}": ("vae-fo", {"inputs": inputs})
        for inputs in ("prior", "prior-mean", "posterior", "posterior-mean", "batch-mean")
    },
}


def made(case: str, *, trained: bool = False) -> Memory:
    """A memory by name, or one of the ablations, shrunk by what it has of small settings."""
    name, settings = ABLATIONS.get(case, (case, {}))
    known = parameters_of(MEMORIES.part(name))
    settings = SMALL | settings | ({} if trained else FEW)
    return make_memory(name, **{key: value for key, value in settings.items() if key in known})


def test_every_memory_class_of_the_package_has_a_name() -> None:
    found = set().union(*(parts_of(room, "Memory") for room in (moments, paper, parts)))
    assert found == {type(make_memory(name)).__name__ for name in MEMORIES}


@pytest.mark.parametrize("rule", MEMORY_CHECKS, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("case", [*MEMORIES.names, *ABLATIONS])
def test_every_memory_keeps_every_rule(
    case: str, rule: Rule, monkeypatch: pytest.MonkeyPatch
) -> None:
    if case == "none" and rule not in SAMPLELESS_CHECKS:
        pytest.skip("it keeps nothing to sample from")
    if case.startswith("fresh") and rule is says_its_cost_before_training:
        pytest.skip("how many decoders start afresh depends on the data")
    if case.startswith("fresh"):  # a null space is used up after one class
        monkeypatch.setattr("frugalvae.paper.records.LEAST_FREE", 1.0)
    rule(partial(made, case, trained=rule in TRAINED))


@pytest.mark.parametrize("case", [*GENERATIVE, *ABLATIONS])
def test_another_generator_gives_other_samples(case: str, rng: np.random.Generator) -> None:
    """Not a rule for all: a memory may keep one vector per class."""
    memory = made(case)
    memory.learn(blobs([0, 1]), rng)
    assert not np.array_equal(memory.sample(0, 9, rng), memory.sample(0, 9, rng))


@pytest.mark.parametrize("name", [name for name in MEMORIES if name.startswith("vae")])
def test_the_global_generator_of_pytorch_is_left_alone(name: str) -> None:
    memory = made(name)
    import torch

    before = torch.random.get_rng_state()
    memory.learn(blobs([0, 1]), np.random.default_rng(0))
    memory.sample(0, 3, np.random.default_rng(0))
    assert torch.equal(before, torch.random.get_rng_state())
