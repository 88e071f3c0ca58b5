"""Saving of what holds networks: VAEs, and files of them."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import safetensors
import safetensors.numpy

from frugalvae import FrugalClassifier, __version__, make_memory
from frugalvae.errors import InputError, MemoryFileError
from frugalvae.parts import HEADS, MEMORIES
from frugalvae.storage.states import HELPERS, Reader, Writer, class_named, name_of
from tests.conftest import SMALL, blobs
from tests.test_saving import forged, put, refused, saved

TINY = {**SMALL, "epochs": 2, "max_steps": 4}


def test_what_a_file_says_can_be_read_without_this_package(tmp_path: Path) -> None:
    path = saved(tmp_path / "it.frugal", make_memory("vae-fo", **TINY))
    with safetensors.safe_open(path, "np") as file:
        document = json.loads(file.metadata()["frugalvae"])
        assert file.get_tensor("memory.normaliser_.mean_").shape == (3, 4)
    assert document["format"] == 3
    assert document["library"] == __version__
    assert document["classes"] == {"dtype": "int64", "values": [0, 1, 2]}
    assert document["memory"]["class"] == "VAEMemory"
    assert document["memory"]["state"]["hidden"] == SMALL["hidden"]
    assert document["encoder"] is None
    assert [event["classes"] for event in document["history"]] == [{"0": 20, "1": 20}, {"2": 20}]
    assert "cpu" not in json.dumps(document)  # where it learned does not matter


def test_every_class_that_may_be_in_a_file_has_a_name_of_its_own() -> None:
    every = {registry.part(name) for registry in (MEMORIES, HEADS) for name in registry}
    every |= {getattr(import_module(module), name) for name, module in HELPERS.items()}
    assert len({name_of(kind) for kind in every}) == len(every)
    assert all(class_named(name_of(kind)) is kind for kind in every)


def test_what_is_shared_stays_shared_and_is_written_once() -> None:
    network = make_memory("vae-fod", **TINY)
    network.learn(blobs([0, 1]), np.random.default_rng(0))
    network.learn(blobs([2]), np.random.default_rng(0))
    writer = Writer()
    written = writer.write(network, "m")
    memory = Reader(writer.arrays).read(written, "m")
    first, second = memory.decoders_
    assert first.inputs[0] is second.inputs[0]
    assert first.network.linears[0].weight is second.network.linears[0].weight
    assert first.network.linears[-1].weight is not second.network.linears[-1].weight
    assert all(p.requires_grad for p in first.network.parameters())


def test_a_wrong_device_is_no_fault_of_the_file(tmp_path: Path) -> None:
    path = saved(tmp_path / "it.frugal", make_memory("vae-fo", **TINY))
    with pytest.raises(InputError, match="device is 'gpu', which cannot be used here") as caught:
        FrugalClassifier.load(path, device="gpu")
    assert not isinstance(caught.value, MemoryFileError)


def test_a_hostile_vae_is_refused_before_it_takes_the_room(tmp_path: Path) -> None:
    scratch = tmp_path / "it.frugal"
    vae = saved(scratch, make_memory("vae-fo", **TINY)).read_bytes()
    for change in (
        put("memory", "state", "hidden", 10**9),
        put("memory", "state", "dynamic", True),
        put("memory", "state", "prior", {"class": "FixedPointPrior", "state": {"a": 1}}),
        put("memory", "state", "route_", {"dict": [[0, 0], [1, 0]]}),
        put("memory", "state", "route_", {"dict": [[0, 0], [1, 0], [2, 5]]}),
        put("memory", "state", "saturated_", []),
        put("memory", "state", "decoders_", 0, "state", "network", {"same": "memory"}),
        put("memory", "state", "encoder_", None),
    ):
        refused(scratch, forged(vae, change))
