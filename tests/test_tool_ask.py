"""``status``, ``history`` and ``sample``; ``update``, ``rename``, ``forget`` and ``undo``."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from frugalvae import FrugalClassifier
from frugalvae.cli.changes import describe_event
from frugalvae.cli.status import summarise
from frugalvae.errors import SaturationWarning
from frugalvae.formatting import size
from frugalvae.parts import MEMORIES, make_memory
from frugalvae.storage.store import Store
from tests.conftest import SMALL
from tests.tool import Encoders, Tool, paint

# --------------------------------------------------------------------------- status and history


def test_status_tells_what_is_known_and_what_it_takes(taught: Tool) -> None:
    status = taught.json("status")
    assert status["classes"] == 3
    assert [list(task) for task in status["tasks"]] == [["cat", "dax"], ["emu"]]
    assert status["bytes"] == taught.file.stat().st_size
    assert (status["memory"], status["head"], status["features"]) == (
        "gaussian-diagonal",
        "nearest-mean",
        3,
    )
    numbers = {name: part["numbers"] for name, part in status["components"].items()}
    report = FrugalClassifier.load(taught.file).memory_report()
    assert sum(numbers.values()) == pytest.approx(report.stored, abs=1)
    said, taken = taught("status"), size(status["bytes"])
    assert said.startswith(f"{taught.file}: 3 classes in 2 tasks, {taken}, last changed 20")
    assert "encoder  colours, weights 0; feature dimension 3" in said
    assert "task 2   1 class: emu" in said
    assert f"The last change can be undone: frugalvae undo {taught.file}" in said


@pytest.mark.parametrize("name", MEMORIES)
def test_status_and_memory_report_name_components_alike(name: str, tmp_path: Path) -> None:
    if name.startswith("vae"):
        pytest.importorskip("torch", reason="the memory needs PyTorch")
        settings = {"max_steps": 2, "hidden": 8, "latent": 4}
    else:
        settings = {}
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(120, 12)), np.arange(120) % 6
    classifier = FrugalClassifier(make_memory(name, **settings), "lda")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SaturationWarning)
        for task in (y < 3, y >= 3):
            classifier.partial_fit(x[task], y[task])
    classifier.save(tmp_path / "x.frugal")
    told = summarise(Store(tmp_path / "x.frugal")).components
    parts = classifier.memory_report().components
    report = {part.name: part.stored for part in parts if part.stored}
    if name.startswith(
        "vae-ceo"
    ):  # its single prior is written as a mean per class, and costs nothing
        assert told.pop("latent means")[0] == 6 * 4
    assert {part: numbers for part, (numbers, _) in told.items()} == pytest.approx(report, abs=2)


def test_status_warns_of_layers_that_are_used_up(tool: Tool) -> None:
    pytest.importorskip("torch", reason="the memory or the head needs PyTorch")
    from frugalvae.paper.records import is_saturated

    small = [f"--set=memory.{name}={value}" for name, value in SMALL.items()]
    small += ["--memory", "vae-fo"]
    saturated = ["--set=memory.inputs=prior", "--set=memory.prior=normal"]  # all directions
    tool("learn", paint(tool.folder / "one", "cat", "dax"), *small, *saturated)
    status = tool.json("status")
    assert [layer["layer"] for layer in status["layers"]] == [1, 2, 3]
    memory = FrugalClassifier.load(tool.file).memory_
    assert [layer["used_up"] for layer in status["layers"]] == [
        is_saturated(state.proportion, state.rank, state.size) for state in memory.layers_
    ]
    assert status["warnings"][0].startswith("layer 1 of the decoder has ")
    said = tool("status")
    assert "warning: layer 1" in said
    assert "free directions" in said


def test_an_event_is_a_line() -> None:
    event: dict[str, Any] = {"action": "learn", "when": "soon", "classes": {"emu": 3, "dax": 4}}
    assert (
        describe_event(event | {"source": "birds"}) == "soon  learn   emu (3), dax (4), from birds"
    )
    assert (
        describe_event({"action": "rename", "when": "", "from": "a", "to": "b"})
        == "  rename  a to b"
    )


# --------------------------------------------------------------------------- sample


def test_samples_are_written_with_what_they_are(taught: Tool) -> None:
    path = taught.folder / "cat.npz"
    said = taught("sample", "cat", "-n", 7, "-o", path)
    assert said == f"{path}: 7 features of 'cat', of dimension 3\n"
    with np.load(path) as archive:
        x, label, encoder = archive["x"], archive["label"], archive["encoder"]
    np.testing.assert_array_equal(x, FrugalClassifier.load(taught.file).sample("cat", 7))
    assert label == "cat"
    assert json.loads(encoder.item())["encoder"] == "colours"
    answers = taught.json("predict", path)["predictions"]
    assert {answer["label"] for answer in answers} == {"cat"}
    error = taught("sample", "cta", "-o", path, code=2)
    assert f"{taught.file} knows no class 'cta'. Did you mean 'cat'?" in error


# --------------------------------------------------------------------------- update, rename, forget


def test_a_class_is_updated_renamed_and_forgotten(taught: Tool, encoders: Encoders) -> None:
    more = paint(taught.folder / "more", "fox", count=3)
    (more / "fox" / "empty.png").touch()
    said = taught("learn", more, "--class", "cat")
    assert "left out as unreadable, 1:" in said
    assert "learned 1 class from 3 images" in said
    assert taught("rename", "cat", "lynx").endswith("'cat' is now called 'lynx'\n")
    assert taught.classes == ["lynx", "dax", "emu"]
    assert "undone: " in taught("undo")
    assert taught.classes == ["cat", "dax", "emu"]
    said = taught("forget", "dax")
    assert f"{taught.file}: 'dax' is forgotten; 2 classes left" in said
    assert "'frugalvae undo' brings it back, from birds.frugal.undo" in said
    assert "known again: dax" in taught("undo")
    assert "this cannot be undone" in taught("forget", "dax", "--scrub")
    assert taught.beside == ["birds.frugal"]
    actions = [event["action"] for event in taught.json("history")]
    assert actions == ["learn", "learn", "learn", "forget"]
    assert taught.json("history")[1]["source"] == "two"


def test_a_class_that_is_not_known_changes_nothing(taught: Tool) -> None:
    before = taught.beside, taught.file.read_bytes()
    for words in (
        ["rename", "fox", "x"],
        ["forget", "fox"],
    ):
        assert f"{taught.file} knows no class 'fox'" in taught(*words, code=2)
    assert (taught.beside, taught.file.read_bytes()) == before
