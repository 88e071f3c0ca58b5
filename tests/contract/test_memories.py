"""What every memory must do. Memories are discovered: a new one is tested by being there."""

from __future__ import annotations

import copy
import inspect
import json
import sys
import warnings
from typing import Any

import numpy as np
import pytest

from frugalvae import memories
from frugalvae.interfaces import Memory, Task
from frugalvae.maths.arrays import squared_distances
from frugalvae.memories import MEMORIES, make_memory
from frugalvae.plugins import settings_of
from tests.conftest import SMALL, blobs, parts_of

GENERATIVE = [name for name in MEMORIES if name != "none"]

#: Settings of the paper's ablations, each on top of a variant.
ABLATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "normal means": ("vae-fo", {"prior": "normal"}),
    "uniform means": ("vae-fo", {"prior": "uniform"}),
    "free": ("vae-fo", {"decoder": "free"}),
    "frozen": ("vae-fo", {"decoder": "frozen"}),
    "not class-wise": ("vae-fo", {"classwise": False}),
    "ceo, free": ("vae-ceo", {"decoder": "free"}),
    "ceo, frozen": ("vae-ceo", {"decoder": "frozen"}),
    "fod, free": ("vae-fod", {"decoder": "free"}),
    "fod, frozen": ("vae-fod", {"decoder": "frozen"}),
    "relative": ("vae-fo", {"relative": True}),
    "projected gradient": ("vae-fo", {"projection": "gradient"}),
    "fresh decoders": ("vae-fo", {"on_saturation": "fresh", "saturation": 0.0, "min_free": 1.0}),
    "fresh dynamic decoders": (
        "vae-fodce",
        {"on_saturation": "fresh", "saturation": 0.0, "min_free": 1.0},
    ),
    **{
        f"protects {inputs}": ("vae-fo", {"inputs": inputs})
        for inputs in ("prior", "prior-mean", "posterior", "posterior-mean", "batch-mean")
    },
}


def small(name: str, **settings: Any) -> Memory:
    """A memory by name, shrunk by those of the small settings that it has."""
    template = make_memory(name)
    known = inspect.signature(type(template)).parameters
    shrunk = {key: value for key, value in SMALL.items() if key in known}
    return make_memory(name, **{**shrunk, **settings})


@pytest.fixture(params=[*MEMORIES, *ABLATIONS])
def memory(request: pytest.FixtureRequest) -> Memory:
    name, settings = ABLATIONS.get(request.param, (request.param, {}))
    return small(name, **settings)


@pytest.fixture(params=[*GENERATIVE, *ABLATIONS])
def generative(request: pytest.FixtureRequest) -> Memory:
    name, settings = ABLATIONS.get(request.param, (request.param, {}))
    return small(name, **settings)


def test_every_memory_class_of_the_package_has_a_name() -> None:
    assert parts_of(memories, "Memory") == {type(make_memory(name)).__name__ for name in MEMORIES}


def test_classes_come_in_the_order_of_learning(memory: Memory, rng: np.random.Generator) -> None:
    assert memory.classes == []
    memory.learn(blobs([5, 3]), rng)
    memory.learn(blobs([4]), rng)
    assert memory.classes == [3, 5, 4]


def test_samples_have_the_right_shape_and_are_finite(
    generative: Memory, rng: np.random.Generator
) -> None:
    generative.learn(blobs([0, 1]), rng)
    generative.learn(blobs([2]), rng)
    for label in generative.classes:
        sample = generative.sample(label, 7, rng)
        assert sample.shape == (7, 8)
        assert sample.dtype == np.float32
        assert np.isfinite(sample).all()


def test_the_same_generator_gives_the_same_memory_and_samples(generative: Memory) -> None:
    samples = []
    for _ in range(2):
        memory, rng = copy.deepcopy(generative), np.random.default_rng(7)
        memory.learn(blobs([0, 1]), rng)
        memory.learn(blobs([2]), rng)
        samples.append(memory.sample(1, 5, rng))
    assert np.array_equal(samples[0], samples[1])


def test_another_generator_gives_other_samples(
    generative: Memory, rng: np.random.Generator
) -> None:
    generative.learn(blobs([0, 1]), rng)
    assert not np.array_equal(generative.sample(0, 9, rng), generative.sample(0, 9, rng))


def test_global_randomness_is_neither_used_nor_disturbed(
    memory: Memory, rng: np.random.Generator
) -> None:
    torch = sys.modules.get("torch")  # there if the memory needs it
    before = np.random.get_state()[1].copy(), torch and torch.random.get_rng_state()
    memory.learn(blobs([0, 1]), rng)
    if memory.arrays():
        memory.sample(0, 3, rng)
    assert np.array_equal(before[0], np.random.get_state()[1])
    assert torch is None or torch.equal(before[1], torch.random.get_rng_state())


def test_a_class_of_one_sample_a_task_of_one_class_and_constant_dimensions(
    generative: Memory, rng: np.random.Generator
) -> None:
    constant = np.array([[1.0, 2.0, 3.0, 4.0]], np.float32)
    generative.learn(Task(constant, np.array([0])), rng)
    varied = np.array([[1.0, 5.0, 0, 0], [1.0, 6.0, 0, 0]], np.float32)
    generative.learn(Task(varied, np.array([1, 1])), rng)
    drawn = rng.standard_normal((6, 4), np.float32)
    generative.learn(Task(drawn, np.array([2, 2, 3, 3, 3, 2])), rng)
    for label in range(4):
        assert np.isfinite(generative.sample(label, 3, rng)).all()


def test_stored_numbers_are_exactly_the_arrays(memory: Memory, rng: np.random.Generator) -> None:
    for classes in ([0, 1], [2], [3, 4]):
        memory.learn(blobs(classes), rng)
        parts, arrays = memory.components(), memory.arrays()
        assert sum(part.stored for part in parts) == sum(t.size for t in arrays.values())
        assert sum(part.bytes for part in parts) == sum(t.nbytes for t in arrays.values())


def test_an_empty_memory_costs_nothing(memory: Memory) -> None:
    assert sum(part.paper + part.stored for part in memory.components()) == 0


def test_a_deep_copy_learns_without_touching_the_original(
    generative: Memory, rng: np.random.Generator
) -> None:
    generative.learn(blobs([0, 1]), rng)
    before = {key: value.copy() for key, value in generative.arrays().items()}
    copy.deepcopy(generative).learn(blobs([2]), rng)
    after = generative.arrays()
    assert before.keys() == after.keys()
    assert all(np.array_equal(before[key], after[key]) for key in before)


@pytest.mark.parametrize("name", GENERATIVE)
def test_samples_stand_where_their_class_stands(name: str, rng: np.random.Generator) -> None:
    memory = small(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for classes in ([0, 1], [2], [3, 4]):
            memory.learn(blobs(classes), rng)
    real = np.stack([blobs([label]).features.mean(axis=0) for label in range(5)])
    drawn = np.stack([memory.sample(label, 200, rng).mean(axis=0) for label in range(5)])
    nearest = squared_distances(drawn, real).argmin(axis=1)
    assert nearest.tolist() == list(range(5))


def test_every_setting_of_a_memory_can_be_read_back_and_written_as_json(memory: Memory) -> None:
    settings = settings_of(memory)
    assert settings.keys() == inspect.signature(type(memory)).parameters.keys()
    json.dumps(settings)
