"""Which classes lie near each other, and how well each is recognised."""

from __future__ import annotations

import numpy as np
import pytest

from frugalvae.model import neighbours as module
from frugalvae.model.model import Model, Recipe
from frugalvae.model.neighbours import directions_of, neighbours, neighbours_of


@pytest.fixture
def two_pairs(rng: np.random.Generator) -> Model:
    """Four classes of which two and two are alike: the first two are hardly told apart."""
    centres = rng.normal(size=(2, 16)) * 6
    means = np.concatenate([centres[:1], centres[:1] + 0.1, centres[1:], centres[1:] + 2])
    x = np.repeat(means, 20, axis=0) + rng.normal(size=(80, 16))
    return Model(Recipe(calibrate=True)).learn(x, np.repeat(["a", "b", "c", "d"], 20))


def test_alike_classes_are_near_and_confused(two_pairs: Model) -> None:
    found = neighbours(two_pairs)
    nearest = {label: near[0].label for label, near in found.nearest.items()}
    assert nearest == {"a": "b", "b": "a", "c": "d", "d": "c"}
    for label in "ab":
        assert found.expected[label] < 0.8
        assert found.nearest[label][0].share > 0.1
        assert sum(near.share for near in found.nearest[label]) == pytest.approx(
            1 - found.expected[label]
        )
    assert found.expected["c"] > 0.8
    assert [near.label for near in neighbours_of(two_pairs, "a")] == [
        near.label for near in found.nearest["a"]
    ]


def test_a_map_shows_pairs_together(two_pairs: Model) -> None:
    places = {label: np.array(place) for label, place in neighbours(two_pairs).places.items()}
    within = max(
        np.linalg.norm(places["a"] - places["b"]), np.linalg.norm(places["c"] - places["d"])
    )
    assert within < np.linalg.norm(places["a"] - places["c"])
    assert np.abs(list(places.values())).max() == pytest.approx(1)


@pytest.mark.parametrize("memory", ["gaussian-diagonal", "none", "store-all"])
def test_other_memories_expect_nothing(memory: str) -> None:
    recipe = Recipe(memory, "nearest-mean")
    model = Model(recipe).learn([[0.0, 1], [0, 2], [5, 1], [5, 2]], ["a", "a", "b", "b"])
    assert model.expected_accuracy() == {}
    found = neighbours(model)
    assert found.expected == {}
    assert set(found.nearest) == (set() if memory == "none" else {"a", "b"})


def test_many_classes_have_the_neighbours_that_a_loop_finds(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.repeat(rng.normal(size=(30, 6)), 2, axis=0)
    model = Model().learn(x + 0.1 * rng.normal(size=x.shape), np.arange(30).repeat(2))
    labels, directions = directions_of(model)
    monkeypatch.setattr(module, "BLOCK", 7)
    monkeypatch.setattr(module, "MAPPED", 10)
    found = neighbours(model)
    assert found.places == {}
    for row, label in enumerate(labels):
        apart = ((directions - directions[row]) ** 2).sum(axis=1)
        expected = [labels[place] for place in np.argsort(apart) if place != row][:3]
        assert [near.label for near in found.nearest[label]] == expected
        assert [near.label for near in neighbours_of(model, label)] == expected


def test_a_single_class_has_no_neighbours() -> None:
    found = neighbours(Model().learn([[0.0, 1], [0, 2]], ["a", "a"]))
    assert found.nearest == {"a": []}
