"""Explanations: parts that matter are found where they are, and told by the tool."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from frugalvae.care.explanations import CELLS, WINDOW, Explanation, _by_cell, explain
from frugalvae.errors import InputError
from frugalvae.images.photographs import encode_photographs
from frugalvae.model.answers import rank
from frugalvae.model.model import Model, Recipe
from tests.colours import Colours
from tests.test_images import save
from tests.tool import Tool, paint


def taught(*colours: str) -> tuple[Model, Colours]:
    encoder = Colours()
    plain = [Image.new("RGB", (32, 32), colour) for colour in colours]
    recipe = Recipe("gaussian-diagonal", "nearest-mean")
    return Model(recipe).learn(encode_photographs(encoder, plain), colours), encoder


@pytest.mark.parametrize(
    ("corner", "place"), [((0, 0), "top left"), ((48, 0), "top right"), ((0, 36), "bottom left")]
)
def test_the_part_that_speaks_for_a_class_is_found(corner: tuple[int, int], place: str) -> None:
    model, encoder = taught("red", "blue")
    image = Image.new("RGB", (64, 48), "red")
    left, top = corner
    image.paste("blue", (left, top, left + 16, top + 12))
    found = explain(model, encoder, image)
    assert found.labels == ("red", "blue")
    assert found.strongest[1] == place
    assert found.influence.shape == (CELLS, CELLS)
    row, column = np.unravel_index(found.influence.argmin(), found.influence.shape)
    assert left <= (column + 0.5) * 64 / CELLS < left + 16
    assert top <= (row + 0.5) * 48 / CELLS < top + 12


def test_a_cell_has_the_mean_change_of_the_windows_that_hide_it() -> None:
    steps = CELLS - WINDOW + 1
    changes = np.random.default_rng(0).normal(size=steps**2)
    windows = changes.reshape(steps, steps)
    found = _by_cell(changes)
    assert found[0, 0] == pytest.approx(windows[0, 0])
    assert found[0, 1] == pytest.approx(windows[0, :2].mean())
    assert found[3, 4] == pytest.approx(windows[2:4, 3:5].mean())


def test_another_class_to_compare_with() -> None:
    model, encoder = taught("red", "blue", "green")
    image = Image.new("RGB", (64, 64), "red")
    image.paste("green", (0, 0, 16, 16))
    found = explain(model, encoder, image, against="green")
    assert found.labels == ("red", "green")
    with pytest.raises(InputError, match="pink"):
        explain(model, encoder, image, against="pink")
    with pytest.raises(InputError, match="compares two classes, and one is known"):
        explain(*taught("red"), image)


class Sizes(Colours):
    """An encoder that sees how large an image is."""

    dim, side = 2, 50

    def prepare(self, image: Image.Image) -> np.ndarray:
        return np.array(image.size, np.float32) / 100

    def encode(self, batch: np.ndarray) -> np.ndarray:
        return batch


def test_probabilities_are_those_of_an_answer(tmp_path: Path) -> None:
    """Also of a JPEG that is decoded at a part of its size, and has parts hidden at another."""
    encoder, path = Sizes(), tmp_path / "large.jpg"
    recipe = Recipe("gaussian-diagonal", "nearest-mean")
    model = Model(recipe).learn(np.float32([[1, 1], [9, 5], [4, 2]]), ["small", "large", "flat"])
    Image.new("RGB", (900, 500), "red").save(path)
    [answer] = rank(model, ["large"], encode_photographs(encoder, path), top=2)
    found = explain(model, encoder, path)
    assert list(zip(found.labels, found.probabilities, strict=True)) == [
        (label, pytest.approx(chance)) for label, chance in answer.top
    ]
    assert found.image.size == (360, 200)


def test_a_place_is_told_where_it_can_be_seen() -> None:
    image, ring = Image.new("RGB", (40, 20), "red"), np.ones((CELLS, CELLS))
    ring[1:-1, 1:-1] = 0
    one, other = 1 - ring, -0.1 * ring
    assert Explanation(("a", "b"), (0.9, 0.1), one + other, image).strongest == ("centre", "")
    assert Explanation(("a", "b"), (0.9, 0.1), one + 5 * other, image).strongest[1] == "edges"


def test_the_picture_has_three_panels_and_names_as_text() -> None:
    image = Image.new("RGB", (40, 20), "red")
    found = Explanation(("a\x1b[31m" + "b" * 99, "c"), (0.9, 0.1), np.eye(CELLS), image)
    picture = found.picture()
    assert picture.width > 3 * 40
    assert np.asarray(picture).min() < 100  # something was written


def test_the_tool_writes_a_picture_and_says_when_it_was_taught(
    tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tool.folder)
    tool.learn(paint(tool.folder / "photos", "cat", "emu"))
    image = tool.folder / "one.png"
    save(image, (190, 40, 40))
    said = tool("explain", image)
    assert said.startswith("cat ")
    assert "taught 6 photographs on 20" in said
    with Image.open("one-explained.png") as picture:
        assert picture.format == "PNG"
    told = tool.json("explain", image, "-o", "other.png", "--against", "emu")
    assert [one["label"] for one in told["classes"]] == ["cat", "emu"]
    assert told["classes"][0]["taught"][0]["samples"] == 6
    assert np.shape(told["influence"]) == (CELLS, CELLS)


def test_the_tool_refuses_what_it_cannot_explain(
    tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tool.folder)
    tool.learn(paint(tool.folder / "photos", "cat", "emu"))
    assert "there is no such file" in tool("explain", "none.jpg", code=2)
    Path("text.jpg").write_text("no image")
    assert "text.jpg cannot be read" in tool("explain", "text.jpg", code=2)
    image = tool.folder / "one.png"
    save(image, (190, 40, 40))
    assert ".png" in tool("explain", image, "-o", "one.jpg", code=2)
    assert "knows no class 'owl'" in tool("explain", image, "--against", "owl", code=2)
    assert not list(tool.folder.glob("*explained*"))
