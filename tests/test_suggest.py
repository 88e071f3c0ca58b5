"""What ``suggest`` chooses, and how it groups what is unknown."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frugalvae import FrugalClassifier
from frugalvae import suggest as suggest_samples
from frugalvae.care.suggestions import NARROW, most_telling, suggest
from frugalvae.errors import InputError
from frugalvae.images.feature_file import write_arrays
from frugalvae.maths.arrays import unit
from frugalvae.model.model import Model, Recipe
from tests.test_check import blobs
from tests.tool import Tool, paint


@given(st.integers(0, 10_000), st.integers(1, 6))
def test_the_choice_is_greedy(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    directions, doubt = unit(rng.normal(size=(30, 4))), rng.uniform(size=30)
    near = np.maximum(directions @ directions.T, 0) ** NARROW
    so_far, expected = np.zeros(30), list[int]()
    for _ in range(n):
        gains = np.array([(np.maximum(row - so_far, 0) * doubt).sum() for row in near])
        gains *= np.sqrt(doubt)
        gains[expected] = -1
        expected.append(int(gains.argmax()))
        so_far = np.maximum(so_far, near[expected[-1]])
    assert most_telling(directions.astype(np.float64), doubt, n) == expected


def test_samples_between_classes_come_before_clear_ones() -> None:
    x, y = blobs(classes=2)
    between = (x[y == 0][:5] + x[y == 1][:5]) / 2
    model = Model().learn(x, y)
    found = suggest(model, np.concatenate([x[:10] + 0.01, between]), 2).suggestions
    assert all(suggestion.row >= 10 for suggestion in found)


def test_of_copies_one_is_suggested() -> None:
    x, y = blobs(classes=3)
    model = Model().learn(x, y)
    first, other = (x[0] + x[20]) / 2, (x[21] + x[40]) / 2
    pool = np.stack([first] * 5 + [other])
    copy, *rest = sorted(s.row for s in suggest(model, pool, 2).suggestions)
    assert copy < 5  # which of them is up to rounding
    assert rest == [5]


@pytest.mark.parametrize("memory", ["moments", "gaussian-diagonal"])
def test_new_classes_are_grouped(memory: str) -> None:
    rng = np.random.default_rng(2)
    means = 3 * rng.normal(size=(12, 32))
    y = np.repeat(np.arange(12), 25)
    x = means[y] + rng.normal(size=(len(y), 32))
    model = Model(Recipe(memory)).learn(x[y < 10], y[y < 10])
    pool = np.concatenate([x[y == 10], x[y == 11], means[:5] + 0.1])
    suggested = suggest(model, pool, 4)
    of = [{0 if row < 25 else 1 if row < 50 else 2 for row in group} for group in suggested.groups]
    assert sorted(of, key=sorted) == [{0}, {1}]
    assert min(map(len, suggested.groups)) >= 15
    assert any(suggestion.group is not None for suggestion in suggested.suggestions)


def test_one_class_one_sample_and_more_than_there_are() -> None:
    model = Model().learn([[0.0, 1.0], [0.1, 1.0]], ["cat", "cat"])
    [only] = suggest(model, [[0.0, 1.0]], 20).suggestions
    assert (only.row, only.label, only.runner_up) == (0, "cat", None)
    with pytest.raises(InputError, match="nothing was taught yet"):
        suggest(Model(), [[0.0]], 1)
    with pytest.raises(InputError, match="n is 0; expected a whole number, at least 1"):
        suggest(model, [[0.0, 1.0]], 0)
    with pytest.raises(InputError, match=r"expected \(n, 2\)"):
        suggest(model, [[0.0, 1.0, 2.0]], 1)


def test_a_memory_without_densities_is_told() -> None:
    x, y = blobs()
    model = Model(Recipe("none", "lda")).learn(x, y)
    with pytest.raises(InputError, match="keeps nothing that samples could be compared with"):
        suggest(model, x, 3)


def test_in_python() -> None:
    x, y = blobs()
    found = suggest_samples(FrugalClassifier().fit(x, y), x + 0.1, 7)
    assert len({suggestion.row for suggestion in found}) == 7
    assert json.dumps(found[0].to_json())


# --------------------------------------------------------------------------- on the command line


def test_a_folder_with_folders_is_looked_into_and_copied(
    taught: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(taught.folder)
    pool = paint(taught.folder / "pool", "cat", "fox", "gnu", count=7)
    (pool / "cat" / "notes.txt").write_text("no image")
    before = taught.file.read_bytes()
    said = taught("suggest", pool, "-n", 3, "--copy-to", "sorted")
    assert "6 images taught before, and left out" in said
    assert "3 images of 15 to label:" in said
    assert "written: suggest.html, and folders in sorted" in said
    assert taught.file.read_bytes() == before
    copied = list(Path("sorted").glob("*/*.png"))
    assert len(copied) >= 3
    assert all(path.parent.name.startswith("perhaps ") for path in copied)
    assert said.splitlines()[-1].endswith(f"then: frugalvae learn {taught.file} sorted")
    said = taught("learn", "sorted", code=2)  # nobody has looked at them
    assert "folders with names of 'frugalvae suggest', which only guesses: 'perhaps " in said
    assert taught.file.read_bytes() == before
    page = Path("suggest.html").read_text("utf-8")
    assert page.count("data:image/jpeg") >= 3
    assert "--copy-to sorted exists already" in taught(
        "suggest", pool, "--copy-to", "sorted", code=2
    )
    (pool / "cat" / "6.png").unlink()  # the only one of its folder that was not taught
    assert "nothing to label" in taught("suggest", pool / "cat")


def test_features_are_suggested_without_thumbnails(
    taught: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(taught.folder)
    width = FrugalClassifier.load(taught.file).n_features_in_
    x = np.random.default_rng(0).uniform(size=(9, width)).astype(np.float32)
    write_arrays(taught.folder / "f.npz", {"x": x})
    told = taught.json("suggest", "f.npz", "-n", 4)
    assert len(told["suggestions"]) == 4
    assert told["suggestions"][0]["image"].startswith("f.npz[")
    assert "data:image" not in Path("suggest.html").read_text("utf-8")
    said = taught("suggest", "f.npz", "--copy-to", "sorted", code=2)
    assert "holds features, no images; leave out --copy-to" in said
