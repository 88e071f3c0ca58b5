"""What a file says of itself, piece by piece."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from frugalvae import FrugalClassifier
from frugalvae.errors import MemoryFileError
from frugalvae.model.history import MOST, difference, in_words, last_changed, moved_in_words
from frugalvae.storage.model_file import Contents
from frugalvae.storage.schema import EMPTY
from frugalvae.storage.store import Store
from frugalvae.storage.summary import (
    Layer,
    components,
    layers_of,
    name_of,
    summarise,
    tasks_of,
    warnings_of,
)
from tests.conftest import blobs

VAE = {"class": "VAEMemory", "state": {}}
MOMENTS = {"class": "MomentMemory", "state": {}, "name": "moments"}


def document(**given: Any) -> dict[str, Any]:
    """Of three classes in two tasks."""
    return {
        "classes": {"dtype": "str", "values": ["ant", "bee", "cat"]},
        "numbers": [0, 1, 2],
        "task_of_class": [0, 0, 1],
        "n_samples_of_class": [30, 0, 20],
        "n_tasks": 2,
        "n_features": 4,
        "parameters": {"memory": None, "head": "ridge"},
        "memory": VAE,
        "head": {"class": "RidgeHead", "state": {}},
        "head_due": False,
        "encoder": {"encoder": "clip"},
        "history": [],
        **given,
    }


# --------------------------------------------------------------------------- classes and names


def test_classes_of_each_task_have_their_counts() -> None:
    assert tasks_of(document()) == [{"ant": 30, "bee": 0}, {"cat": 20}]
    numbered = document(classes={"dtype": "int64", "values": [7, 8, 9]})
    assert tasks_of(numbered) == [{"7": 30, "8": 0}, {"9": 20}]


def test_parts_have_the_names_that_they_were_asked_for_by() -> None:
    assert name_of(document(memory={**VAE, "name": "vae-fo"}), "memory") == "vae-fo"
    assert name_of(document(), "memory") == "VAEMemory"
    assert name_of(document(memory=MOMENTS), "memory") == "moments"
    assert name_of(document(memory=None), "memory") == "the usual one"
    assert name_of(document(head=None), "head") == "ridge"


def test_the_last_event_says_when_it_was_changed() -> None:
    noon = [{"when": f"202{year}-06-15T12:00:00"} for year in (1, 2, 3)]
    assert last_changed({"history": noon}) == "2023-06-15 12:00:00"
    for history in ([], [{}], [{"when": 3}], [*noon, {}]):
        assert last_changed({"history": history}) == "at an unknown time"


# --------------------------------------------------------------------------- null spaces


def layer(task: int, layer: int, **more: Any) -> dict[str, Any]:
    state = {"task": task, "decoder": 1, "layer": layer, "rank": 10, "size": 20}
    return {"state": {**state, "proportion": 0.01, **more}}


def test_layers_are_those_after_the_last_task() -> None:
    layers = [layer(1, 1), layer(2, 1, rank=0), layer(2, 2, proportion=0.06), layer(1, 2)]
    memory = {"state": {"layers_": layers}}
    assert list(layers_of(memory)) == [
        Layer(1, 1, 0.01, 0, 20, True),
        Layer(1, 2, 0.06, 10, 20, True),
    ]
    assert [each.used_up for each in layers_of({"state": {"layers_": [layer(1, 1)]}})] == [False]
    assert list(layers_of({})) == list(layers_of({"state": {}})) == []


def test_warnings_say_what_the_owner_should_know() -> None:
    full, free = Layer(1, 2, 0.0612, 3, 20, True), Layer(1, 1, 0.01, 10, 20, False)
    assert warnings_of(document(), [free]) == []
    odd = document(n_samples_of_class=[30, 2, 20], head_due=True, encoder=None)
    assert warnings_of(odd, [free, full]) == [
        "layer 2 of the decoder has 3 of 20 directions free and R = 0.061: learning more may "
        "disturb old classes",
        "fewer than 5 samples, and so often missed: bee; teach more of them",
        "its head was not fitted after the last task: it cannot predict yet",
        "the encoder of its features is unknown: it cannot read images",
    ]
    nothing = document(classes={"values": []}, head_due=True)
    found = ["it knows no class: all that it was taught was taken back"]
    assert warnings_of(nothing, []) == found


# --------------------------------------------------------------------------- sizes


def sizes(about: dict[str, Any], arrays: dict[str, Any], role: str = "memory") -> dict[str, Any]:
    return components(Contents(document(**{role: about}), arrays, 0))


def test_arrays_of_one_purpose_are_added_up() -> None:
    arrays = {
        "memory.arrays.means": np.zeros((2, 3), np.float32),
        "memory.arrays.roots": np.zeros(5, np.int8),
        "memory.arrays.root_scales": np.zeros(2, np.float32),
        "memory.arrays.counts": np.zeros(2, np.int64),
        "memory.arrays.variances": np.zeros(0),
        "digests": np.zeros((7, 16), np.uint8),
        "withheld": np.zeros((1, 16), np.uint8),
        "parameters.head.means_": np.zeros(1),
    }
    assert sizes(MOMENTS, arrays) == {
        "means": (6, 24),
        "class scatters": (5 + 2, 5 + 8),
        "class statistics": (2, 16),
        "digests of photographs": (7 + 1, 16 * (7 + 1)),
        "parameters.head.means_": (1, 8),
    }
    assert sizes(MOMENTS, {}) == {}


def test_arrays_are_called_as_in_the_memory_report() -> None:
    one = np.zeros(1, np.int8)

    def called(about: str, path: str, *others: str, role: str = "memory", **settings: Any) -> str:
        part = {"class": about, "state": settings}
        return [*sizes(part, dict.fromkeys((path, *others), one), role)][-1]

    gaussian = "GaussianMemory", "memory.covariances_"
    assert called(*gaussian) == called(*gaussian, covariance="full") == "covariances"
    assert called(*gaussian, covariance="diagonal") == "variances"
    assert called("GaussianMemory", "memory.means_", covariance="diagonal") == "means"
    assert called("Unknown", "memory.own_parts_.3.x") == "own parts"
    assert called("RidgeHead", "head.weights_", role="head") == "head: weights"
    assert called("PromptHead", "head.network_.layers.0", role="head") == "head: shared network"


@pytest.mark.parametrize(("shared", "name"), [(False, "decoder"), (True, "task layers")])
def test_a_decoder_that_shares_its_first_layer_has_task_layers(shared: bool, name: str) -> None:
    first, second = (f"memory.decoders_.1.network.layers.{n}.0" for n in (0, 1))
    arrays = {path: np.zeros(2) for path in ((second,) if shared else (first, second))}
    arrays["memory.decoders_.1.inputs.0"] = np.zeros(3)
    found = {name: (2 if shared else 4, 16 if shared else 32), "covariances": (3, 24)}
    assert sizes(VAE, arrays) == found


# --------------------------------------------------------------------------- of a file


@pytest.fixture
def file(tmp_path: Path) -> Store:
    task = blobs([0, 1, 2], dim=4)
    labels = np.array(["ant", "bee", "cat"])[task.labels]
    FrugalClassifier().fit(task.features, labels).save(tmp_path / "it.frugal")
    return Store(tmp_path / "it.frugal")


def test_a_file_expects_what_its_model_expects(file: Store) -> None:
    found, expected = summarise(file), file.load().forecast
    assert expected is not None
    assert found.expected == expected.to_json()
    assert found == summarise(file, file.load(), file.read())
    assert (found.file, found.bytes) == (str(file.given), file.path.stat().st_size)
    assert (found.classes, found.features, found.undo, found.aliases) == (3, 4, False, {})
    assert (found.memory, found.head) == ("moments", "bayes")
    assert found.to_json()["components"]["means"] == {"numbers": 12, "bytes": 24}


def test_what_is_at_hand_is_not_read_again(file: Store) -> None:
    contents = file.read()
    file.path.unlink()
    assert summarise(file, contents=contents).classes == 3


def test_nothing_is_expected_where_nothing_was_held_out(file: Store) -> None:
    contents = file.read()
    without = {name: kept for name, kept in contents.arrays.items() if "margins" not in name}
    bare = Contents(contents.document, without, 0)
    assert summarise(file, contents=bare).expected is None
    empty = {**contents.document, **EMPTY, "classes": {"values": []}}
    found = summarise(file, contents=Contents(empty, {}, 0))
    assert (found.layers, found.tasks, found.expected) == ([], [], None)


def test_margins_that_say_nothing_expect_nothing(file: Store, monkeypatch: Any) -> None:
    from frugalvae.moments.memory import MomentMemory

    monkeypatch.setattr(MomentMemory, "forecast", lambda _: None)
    assert summarise(file).expected is None


def test_layers_that_are_none_are_told_of(file: Store) -> None:
    memory = {"class": "VAEMemory", "state": {"layers_": [{"state": {}}]}}
    contents = Contents({**file.read().document, "memory": memory}, {}, 0)
    with pytest.raises(
        MemoryFileError, match=f"^{file.given}: what it records of its layers is wr"
    ):
        summarise(file, SimpleNamespace(forecast=None), contents)  # type: ignore[arg-type]


# --------------------------------------------------------------------------- events


def state(*labels: Any, events: int = 0) -> dict[str, Any]:
    history = [{"event": number} for number in range(events)]
    return {"classes": {"values": [*labels]}, "history": history}


def test_going_back_undoes_the_last_event_if_there_is_one_more() -> None:
    now, before = state("ant", "bee", 3, events=3), state("ant", "dax", "3", events=2)
    assert difference(now, before) == ({"event": 2}, ["bee"], ["dax"])
    assert difference(before, now) == (None, ["dax"], ["bee"])
    assert difference(now, now) == (None, [], [])
    assert difference(state(events=1), state()) == ({"event": 0}, [], [])


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ({}, ""),
        ({"classes": 3}, "3"),
        ({"classes": {"emu": 2, "dax": 0}}, "emu (2), dax"),
        ({"classes": {"emu": 2, "dax": 0}, "action": "learn"}, "emu (2), dax (by name only)"),
        ({"from": "a", "to": "b", "classes": {"b": 3}}, "a to b"),
        ({"to": "b", "classes": {"b": 3}}, "b (3)"),
        ({"from": "a", "classes": {"b": 3}}, "b (3)"),
        ({"from": ["a", 1], "classes": {"b": 3}}, "b (3), of a and 1"),
        ({"source": "f", "classes": {"b": 3}}, "b (3), from f"),
        ({"classes": {f"c{n}": 1 for n in range(MOST + 1)}}, "c0 (1), c1 (1), "),
    ],
)
def test_events_in_words(event: dict[str, Any], words: str) -> None:
    found = in_words(event)
    assert found.startswith(words) if words.endswith(", ") else found == words
    assert ("c11 (1) and 1 more" in found) is ("c0" in words)


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ({}, ""),
        ({"moved": {}, "gone": []}, ""),
        ({"moved": 3, "gone": 3}, ""),
        ({"moved": {"a": 1}}, ", moved from a (1)"),
        ({"gone": ["a"]}, "; a had no other and is gone"),
        ({"gone": ["a", 2]}, "; a, 2 had no others and are gone"),
    ],
)
def test_what_moved_in_words(event: dict[str, Any], words: str) -> None:
    assert moved_in_words(event) == words
