"""What commands make of saved files: old, copied, damaged, and taught twice."""

from __future__ import annotations

import os
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from frugalvae import FrugalClassifier
from frugalvae.cli.main import main
from frugalvae.errors import InputError, MemoryFileError
from tests.test_saving import forged, put, saved, taught, zeros
from tests.tool import Tool, paint


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return saved(tmp_path / "it.frugal")


def told(capsys: pytest.CaptureFixture[str], *words: object, code: int = 0) -> str:
    capsys.readouterr()
    assert main([str(word) for word in words]) == code
    out, err = capsys.readouterr()
    return out if code == 0 else err


def test_last_changed_is_when_it_was_taught_and_not_when_it_was_copied(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = FrugalClassifier.load(file)
    event = {"action": "learn", "when": "2020-02-02T12:00:00+00:00", "classes": {}}
    model.model_ = replace(model.model_, history=(event,))
    model.save(file)
    assert "last changed 2020-02-0" in told(capsys, "status", file)
    os.utime(file, (0, 0))
    assert "last changed 2020-02-0" in told(capsys, "status", file)


def test_a_file_without_a_history_does_not_tell_when_it_was_changed(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_bytes(forged(file.read_bytes(), put("history", [])))
    assert "last changed at an unknown time" in told(capsys, "status", file)
    assert "has no history" in told(capsys, "history", file)


@pytest.mark.parametrize(
    "event",
    [{}, {"action": None}, {"when": [1], "classes": 3}, {"action": {"a": 1}, "classes": {"x": {}}}],
)
def test_any_event_of_a_history_is_a_line(
    file: Path, capsys: pytest.CaptureFixture[str], event: dict[str, Any]
) -> None:
    file.write_bytes(forged(file.read_bytes(), put("history", [event])))
    assert len(told(capsys, "history", file).splitlines()) == 1
    told(capsys, "status", file)


def test_a_history_sends_no_commands_to_a_terminal(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    event = {"action": "learn", "source": "a\x1b[2Jb\nc\u202ed", "classes": {"\x1b[31m": 1}}
    file.write_bytes(forged(file.read_bytes(), put("history", [event])))
    line = told(capsys, "history", file)
    assert line.endswith("\\x1b[31m (1), from a\\x1b[2Jb\\nc\\u202ed\n")


@pytest.mark.parametrize("label", ["a\nb", "a\x00b", "\x1b[31ma", "a\u202eb", "a\x9bb"])
def test_a_label_has_no_control_characters(file: Path, label: str) -> None:
    x, y = np.eye(2), np.array(["cat", label], dtype=object)
    with pytest.raises(InputError, match="without control characters"):
        FrugalClassifier("gaussian-diagonal", "nearest-mean").fit(x, y)
    classifier = FrugalClassifier("gaussian-diagonal", "nearest-mean").fit(x, ["cat", "dax"])
    with pytest.raises(InputError, match="without control characters"):
        classifier.rename("cat", label)
    labels = {"dtype": "str", "values": ["cat", "dax", label]}
    file.write_bytes(forged(file.read_bytes(), put("classes", labels)))
    with pytest.raises(MemoryFileError, match="contains control characters"):
        FrugalClassifier.load(file)


# --------------------------------------------------------------------------- damaged files

DAMAGES = {
    "one label less": put("classes", "values", [0, 1]),
    "an unknown field": put("more", 1),
    "an unknown attribute": put("memory", "state", "more_", 1),
    "a count that is a name": put("memory", "state", "count_", "x"),
    "negative variances": lambda _, arrays: arrays.update({"memory.covariances_": zeros(3, 4) - 1}),
    "more tasks than classes": put("n_tasks", 4),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_no_verb_answers_from_a_file_that_load_refuses(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    good = file.read_bytes()
    bad = forged(good, DAMAGES[damage])
    file.write_bytes(bad)
    with pytest.raises(MemoryFileError):
        FrugalClassifier.load(file)
    np.savez(tmp_path / "x.npz", x=np.zeros((2, 4), np.float32))
    assert f"frugalvae: {file}: " in told(capsys, "predict", file, tmp_path / "x.npz", code=2)
    file.write_bytes(good)
    undo = file.with_name("it.frugal.undo")
    undo.write_bytes(bad)
    assert f"frugalvae: {undo}: " in told(capsys, "undo", file, code=2)
    assert (file.read_bytes(), undo.read_bytes()) == (good, bad)


def test_a_damaged_file_can_be_undone(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = file.read_bytes()
    file.with_name("it.frugal.undo").write_bytes(good)
    file.write_bytes(good[:-5])
    assert f"'frugalvae undo {file}' goes back" in told(capsys, "rename", file, "0", "a", code=2)
    said = told(capsys, "undo", file)
    assert "as it could not be read" in said
    assert file.read_bytes() == good


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_a_pipe_is_refused_and_not_waited_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe.frugal")
    for verb in ("status", "history"):
        assert "is a folder or a device" in told(capsys, verb, tmp_path / "pipe.frugal", code=2)
    with pytest.raises(MemoryFileError, match="is a folder or a device"):
        FrugalClassifier.load(tmp_path / "pipe.frugal")


# --------------------------------------------------------------------------- taught twice


def test_more_of_one_class_that_is_repeated_counts_once(tool: Tool) -> None:
    images = paint(tool.folder / "one", "cat", "dax")
    more = paint(tool.folder / "two", "emu", count=2) / "emu"
    tool.learn(images)
    assert tool.json("learn", more, "--class", "cat")["learned"] == {"cat": 2}
    before = tool.file.read_bytes()
    assert tool.json("learn", more, "--class", "cat")["already"] == {"cat": 2}
    assert tool.file.read_bytes() == before
    assert "learn takes one folder; give --class NAME" in tool("learn", more, images, code=2)
    tool("learn", more, "--class", "dax")  # another class may have the same
    assert FrugalClassifier.load(tool.file).n_samples_of_class_.tolist() == [8, 8]


def test_samples_that_are_taken_out_again_are_told_of(tool: Tool) -> None:
    images = paint(tool.folder / "one", "cat", "dax")
    tool("learn", images)
    first, again = (tool.json("unlearn", "cat", images / "cat" / "0.png") for _ in range(2))
    assert (first["taken_out"], first["left"]) == (1, 5)
    assert again == first | {"taken_out": 0}


def test_a_file_that_is_write_protected_is_not_replaced(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though its folder may be written; who is root may write all."""
    before = file.read_bytes()
    monkeypatch.setattr(os, "access", lambda path, _: Path(path) != file)
    assert "it.frugal is write-protected, and is as it was" in told(
        capsys, "rename", file, "0", "a", code=2
    )
    assert file.read_bytes() == before


def test_a_link_stays_a_link(tool: Tool) -> None:
    real, link = tool.folder / "real.frugal", tool.folder / "link.frugal"
    classifier = FrugalClassifier().fit(np.eye(2), ["a", "b"])
    classifier.save(real)
    link.symlink_to(real)
    classifier.rename("a", "c").save(link)
    assert link.is_symlink()
    assert FrugalClassifier.load(real).classes_.tolist() == ["b", "c"]


def test_very_wide_features_fit_the_budget() -> None:
    x = np.random.default_rng(0).normal(size=(10, 8000)).astype(np.float32)
    tracemalloc.start()
    classifier = FrugalClassifier().fit(x, np.arange(10) % 2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 250e6  # a covariance of all features would take 512 MB
    assert classifier.predict(x).tolist() == (np.arange(10) % 2).tolist()


def test_a_class_of_many_samples_is_replayed_within_bounds() -> None:
    """However many samples a file claims that a class had."""
    classifier = taught("gaussian-full", "nearest-mean")
    counts = np.array([2**40, 20, 20])
    classifier.model_ = replace(classifier.model_, n_samples_of_class=counts)
    classifier.partial_fit(np.zeros((3, 4)), [0] * 3)
    assert classifier.n_samples_of_class_.tolist() == [2**40 + 3, 20, 20]
