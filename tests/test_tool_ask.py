"""``predict``, ``status``, ``history``, ``sample``, ``completion``; ``update`` and its kin."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from frugalvae import FrugalClassifier
from frugalvae.cli.answers import Answer, as_table
from frugalvae.cli.completion import SHELLS, commands_of
from frugalvae.cli.main import main, parser
from frugalvae.cli.status import told
from frugalvae.encoders import FROZEN
from frugalvae.formatting import size
from tests.conftest import SMALL
from tests.test_images import save
from tests.tool import Encoders, Tool, paint


@pytest.fixture
def taught(tool: Tool) -> Tool:
    """Two tasks, of two classes and one."""
    tool.learn(paint(tool.folder / "one", "cat", "dax"))
    tool.learn(paint(tool.folder / "two", "emu"))
    return tool


# --------------------------------------------------------------------------- predict


def test_images_and_folders_are_named(taught: Tool) -> None:
    one = taught.folder / "one" / "cat" / "3.png"
    lines = taught("predict", one, taught.folder / "two", "--top", 2).splitlines()
    assert len(lines) == 7
    assert lines[0].split()[:2] == [str(one), "cat"]
    assert lines[-1].startswith(f"{taught.folder}/two/emu/5.png  emu 1")
    assert lines[-1].count("%") == 2


def test_a_terminal_gets_a_table() -> None:
    answers = [Answer("a/long/way/" * 20, [("cat", 0.9), ("dax", 0.1)], known=False)]
    console = Console(width=60, file=io.StringIO(), force_terminal=True, color_system=None)
    console.print(as_table(answers))
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert shown.count("/") == 60
    for part in ("none of these", "cat", "90.0%", "dax"):
        assert part in shown


def test_json_has_what_the_classifier_says(taught: Tool) -> None:
    paths = sorted((taught.folder / "one").rglob("*.png"))
    answers = taught.json("predict", taught.folder / "one", "--top", 9)
    assert list(answers) == ["file", "predictions", "unreadable"]
    assert [answer["input"] for answer in answers["predictions"]] == [str(path) for path in paths]
    x = [[r + n, g, b] for r, g, b in ((200, 30, 30), (30, 200, 30)) for n in range(6)]
    classifier = FrugalClassifier.load(taught.file)
    for answer, row in zip(
        answers["predictions"], classifier.predict_proba(np.array(x, np.float32)), strict=True
    ):
        chances = {top["label"]: top["probability"] for top in answer["top"]}
        assert chances == dict(zip(classifier.classes_.tolist(), row.tolist(), strict=True))
        assert answer["label"] == max(chances, key=lambda label: chances[label])
        assert answer["known"] is None


def test_csv_has_a_row_for_each_rank(taught: Tool) -> None:
    rows = list(csv.DictReader(io.StringIO(taught("predict", taught.folder, "--csv", "--top=3"))))
    assert list(rows[0]) == ["input", "rank", "label", "probability", "known"]
    assert len(rows) == 18 * 3
    assert [row["rank"] for row in rows[:3]] == ["1", "2", "3"]
    assert sum(float(row["probability"]) for row in rows[:3]) == pytest.approx(1, abs=1e-5)


def test_what_cannot_be_read_is_named_and_the_rest_is_answered(taught: Tool) -> None:
    (taught.folder / "empty.png").touch()
    inputs = [taught.folder / name for name in ("empty.png", "absent.png", "one/cat/1.png")]
    answers = taught.json("predict", *inputs, code=1)
    assert [answer["label"] for answer in answers["predictions"]] == ["cat"]
    assert [entry["reason"] for entry in answers["unreadable"]] == [
        "the file is empty",
        "No such file or directory",
    ]
    assert f"frugalvae: {inputs[0]} cannot be read: the file is empty" in taught.err
    assert taught("predict", inputs[0], code=1).count("\n") == 1


def test_rows_of_feature_files_are_named(taught: Tool) -> None:
    path = taught.folder / "rows.npz"
    x = np.array([[203, 30, 30], [30, 30, 203]], np.float32)
    np.savez(path, x=x)
    answers = taught.json("predict", path)["predictions"]
    assert [(answer["input"], answer["label"]) for answer in answers] == [
        (f"{path}[0]", "cat"),
        (f"{path}[1]", "emu"),
    ]
    np.savez(path, x=x[:, :2])
    error = taught("predict", path, code=2)
    assert "have shape (2, 2); expected (n, 3), n at least 1, from the encoder that made" in error
    np.savez(path, y=x)
    assert "expected floats of shape (n, d) in x or x_test" in taught("predict", path, code=2)
    np.savez(path, x=x, encoder=np.array(json.dumps({"encoder": "colours", "weights": "9"})))
    assert "is not the encoder of" in taught("predict", path, code=2)
    path.write_text("no archive")
    assert "not a readable .npz" in taught("predict", path, code=2)


def test_wrong_questions_are_refused(taught: Tool) -> None:
    (taught.folder / "nothing").mkdir()
    assert "no images in" in taught("predict", taught.folder / "nothing", code=2)
    taught.file.write_bytes(b"damaged")
    for verb in ("predict", "status"):
        words = [taught.folder / "one"] if verb == "predict" else []
        error = taught(verb, *words, code=2)
        assert f"{taught.file}: it is no file that FrugalClassifier.save() wrote" in error
    taught.file.unlink()
    assert f"make one with 'frugalvae learn {taught.file} FOLDER'" in taught("status", code=2)


def test_what_is_none_of_the_classes_is_told(taught: Tool) -> None:
    save(taught.folder / "other.png", (255, 0, 255))
    answers = taught.json("predict", taught.folder / "other.png", "--unknown")["predictions"]
    assert answers[0]["known"] is False
    assert answers[0]["label"] is None
    assert "none of these, nearest is" in taught(
        "predict", taught.folder / "other.png", "--unknown"
    )


# --------------------------------------------------------------------------- without heavy imports


HEAVY = (
    "import sys; from frugalvae.cli.main import main; main(sys.argv[2:]); "
    "heavy = [name for name in sys.argv[1].split(',') if name in sys.modules]; "
    "print(heavy, file=sys.stderr)"
)


@pytest.mark.parametrize(
    ("verb", "heavy"),
    [("status", "torch,sklearn,scipy"), ("history", "torch,sklearn"), ("predict", "sklearn,scipy")],
)
def test_what_takes_long_to_import_is_not_imported(taught: Tool, verb: str, heavy: str) -> None:
    np.savez(taught.folder / "x.npz", x=np.ones((1, 3), np.float32))
    words = [verb, str(taught.file), *([f"{taught.folder}/x.npz"] if verb == "predict" else [])]
    ended = subprocess.run(
        [sys.executable, "-c", HEAVY, heavy, *words], capture_output=True, text=True, check=True
    )
    assert ended.stderr == "[]\n"


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


def test_status_warns_of_layers_that_are_used_up(tool: Tool) -> None:
    pytest.importorskip("torch", reason="the memory or the head needs PyTorch")
    small = [f"--set=memory.{name}={value}" for name, value in SMALL.items()]
    small += ["--memory", "vae-fo"]
    saturated = ["--set=memory.saturation=0", "--set=memory.min_free=1"]
    tool("learn", paint(tool.folder / "one", "cat", "dax"), *small, *saturated)
    status = tool.json("status")
    assert [layer["layer"] for layer in status["layers"]] == [1, 2, 3]
    memory = FrugalClassifier.load(tool.file).memory_
    assert [layer["used_up"] for layer in status["layers"]] == [
        state in memory.saturated_ for state in memory.layers_
    ]
    assert status["warnings"][0].startswith("layer 1 of the decoder has ")
    said = tool("status")
    assert "warning: layer 1" in said
    assert "free directions" in said


def test_the_format_of_old_files_has_a_status_too(
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = Path(__file__).parent / "fixtures" / "format-1.frugal"
    assert main(["status", str(path), "--all"]) == 0
    assert "10 classes in 2 tasks" in capsys.readouterr().out
    assert main(["history", str(path)]) == 0


def test_an_event_is_a_line() -> None:
    event: dict[str, Any] = {"action": "learn", "when": "soon", "classes": {"emu": 3, "dax": 4}}
    assert told(event | {"source": "birds"}) == "soon  learn   emu (3), dax (4), from birds"
    assert told({"action": "rename", "when": "", "from": "a", "to": "b"}) == "  rename  a to b"


# --------------------------------------------------------------------------- sample


def test_samples_are_written_with_what_they_are(taught: Tool) -> None:
    path = taught.folder / "cat.npz"
    said = taught("sample", "cat", "-n", 7, "-o", path)
    assert said == f"{path}: 7 features of 'cat', 3 numbers\n"
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
    more = paint(taught.folder / "more", "cat", count=3)
    (more / "cat" / "empty.png").touch()
    said = taught("update", "cat", more)
    assert "left out as unreadable, 1:" in said
    assert said.endswith(f"{taught.file}: 'cat' was given 3 more examples\n")
    assert taught("rename", "cat", "lynx").endswith("'cat' is called 'lynx' now\n")
    assert taught.classes == ["lynx", "dax", "emu"]
    assert "undone: " in taught("undo")
    assert taught.classes == ["cat", "dax", "emu"]
    said = taught("forget", "dax")
    assert f"{taught.file}: 'dax' is forgotten; 2 classes left" in said
    assert "birds.frugal.undo has it still" in said
    assert "known again: dax" in taught("undo")
    assert "this cannot be undone" in taught("forget", "dax", "--scrub")
    assert taught.beside == ["birds.frugal"]
    actions = [event["action"] for event in taught.json("history")]
    assert actions == ["learn", "learn", "update", "forget"]
    assert taught.json("history")[1]["source"] == "two"


def test_a_class_that_is_not_known_changes_nothing(taught: Tool) -> None:
    before = taught.beside, taught.file.read_bytes()
    for words in (
        ["update", "fox", taught.folder / "two"],
        ["rename", "fox", "x"],
        ["forget", "fox"],
    ):
        assert f"{taught.file} knows no class 'fox'" in taught(*words, code=2)
    assert (taught.beside, taught.file.read_bytes()) == before


# --------------------------------------------------------------------------- completion


def completed(*words: str) -> list[str]:
    """What bash would offer for the last of these words."""
    script = (
        'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
        'complete -p frugalvae >/dev/null && _frugalvae; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    path = Path(__file__).parent  # which is not used, but for files to be found
    ended = subprocess.run(
        ["bash", "-c", script, "/dev/stdin", *words],
        input=SHELLS["bash"](parser()),
        capture_output=True,
        text=True,
        check=True,
        cwd=path,
    )
    assert ended.stderr == ""
    return ended.stdout.split()


@pytest.mark.skipif(not Path("/bin/bash").exists(), reason="there is no bash here")
def test_bash_completes_commands_options_choices_and_files() -> None:
    assert completed("frugalvae", "pre") == ["predict"]
    assert {"learn", "status", "undo"} <= set(completed("frugalvae", ""))
    assert completed("frugalvae", "learn", "x.frugal", "--enc") == ["--encoder"]
    assert completed("frugalvae", "learn", "x.frugal", "--encoder", "") == list(FROZEN)
    assert completed("frugalvae", "predict", "fixt") == ["fixtures"]
    assert completed("frugalvae", "bench", "run", "--pl") == ["--plan"]
    assert completed("frugalvae", "completion", "z") == ["zsh"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_are_told_every_command(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for command in commands_of(parser()):
        assert all(word in script for word in command.path)
        for option in command.options:
            assert all(name.lstrip("-") in script for name in option.names)
