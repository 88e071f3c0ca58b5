"""Models that someone else made: nothing of them runs, and what is wrong with them is told."""

from __future__ import annotations

import builtins
import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from frugalvae.encoders.text_tower import load_text_tower
from frugalvae.encoders.transformers import TransformersEncoder
from frugalvae.errors import InputError
from tests.tool import QUICK, Tool, paint


class Touch:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """The file that code in a model would make."""
    return tmp_path / "trapped"


def copied(source: Path, target: Path, **entries: Any) -> Path:
    """A copy of a model with other entries in its configuration."""
    shutil.copytree(source, target)
    path = target / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | entries))
    return target


@pytest.mark.parametrize("load", [TransformersEncoder, lambda model: load_text_tower(str(model))])
@pytest.mark.parametrize("kind", ["clip", "clip_of_my_own"])
def test_code_in_a_model_never_runs_nor_is_anyone_asked(
    clip_folder: Path,
    trap: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    load: Callable[[Path], Any],
) -> None:
    monkeypatch.setattr(builtins, "input", lambda _: "y")
    parts = ("AutoConfig", "AutoModel", "AutoImageProcessor", "AutoTokenizer")
    mine = dict.fromkeys(parts, "mine.Mine")
    model = copied(clip_folder, trap.with_name("model"), model_type=kind, auto_map=mine)
    (model / "mine.py").write_text(
        f"open({str(trap)!r}, 'w').close()\n"
        "from transformers import CLIPConfig\n"
        "class Mine(CLIPConfig):\n    model_type = 'clip_of_my_own'\n"
    )
    if kind == "clip":  # which is loaded by the library's own code
        assert load(model)
    else:
        with pytest.raises(InputError, match="no AutoConfig can be loaded .*custom code"):
            load(model)
    assert not trap.exists()


def test_attention_is_not_taken_from_elsewhere(clip_folder: Path, tmp_path: Path) -> None:
    theirs = {"attn_implementation": "kernels-community/flash-attn2"}
    config = json.loads((clip_folder / "config.json").read_text())
    towers = {name: config[name] | theirs for name in ("text_config", "vision_config")}
    model = copied(clip_folder, tmp_path / "model", **towers, **theirs)
    assert TransformersEncoder(model).digest == TransformersEncoder(clip_folder).digest
    assert load_text_tower(str(model)).dim == 24


def evil(path: Path, trap: Path) -> None:
    path.write_bytes(pickle.dumps({"logit_scale": Touch(trap)}))


def evil_archive(path: Path, trap: Path) -> None:
    torch.save({"logit_scale": Touch(trap)}, path)


def empty(path: Path, trap: Path) -> None:
    path.touch()


def garbage(path: Path, trap: Path) -> None:
    path.write_bytes(b"\x80garbage" * 100)


def cut(path: Path, trap: Path) -> None:
    torch.save({"logit_scale": torch.zeros(1000)}, path)
    path.write_bytes(path.read_bytes()[:1000])


@pytest.mark.parametrize("make", [evil, evil_archive, empty, garbage, cut])
@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.safetensors"])
def test_weights_that_are_no_tensors_are_an_error_and_run_nothing(
    clip_folder: Path, trap: Path, make: Callable[[Path, Path], None], name: str
) -> None:
    model = copied(clip_folder, trap.with_name("model"))
    (model / "model.safetensors").unlink()
    make(model / name, trap)
    with pytest.raises(
        InputError, match="model: no CLIPVisionModelWithProjection can be loaded"
    ) as told:
        TransformersEncoder(model)
    assert "\n" not in str(told.value)
    assert "\x1b" not in str(told.value)
    if make in (evil, evil_archive) and name == "pytorch_model.bin":
        assert "more than tensors" in str(told.value)
    assert not trap.exists()


def test_the_tool_says_when_it_loads_a_model_that_only_the_file_names(
    tmp_path: Path, clip_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tool = Tool(tmp_path, capsys)
    one, two = paint(tmp_path / "one", "cat", "dax"), paint(tmp_path / "two", "emu")
    named = f"frugalvae: loading the model {clip_folder}, which {tool.file} names\n"
    tool.learn(one, "--encoder", "clip", "--model", clip_folder)
    assert tool.err == ""
    for verb, *words in (
        ("learn", two),
        ("update", "emu", two),
        ("predict", two, "--json"),
        ("evaluate", two, "-o", tmp_path / "page.html"),
    ):
        tool(verb, *words)
        assert tool.err == named
        tool(verb, *words, "--model", clip_folder)
        assert tool.err == ""


def test_the_tool_says_it_of_prompts_too(
    tmp_path: Path, clip_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tool, other = Tool(tmp_path, capsys), copied(clip_folder, tmp_path / "other")
    quick = [f"head.{setting}" for setting in (f"model={other}", "epochs=1", "samples=4")]
    settings = [word for setting in quick for word in ("--set", setting)]
    one, two = paint(tmp_path / "one", "cat", "dax"), paint(tmp_path / "two", "emu")
    asked = ["--model", clip_folder]
    tool("learn", one, "--encoder", "clip", *asked, *QUICK[:2], "--head", "prompt", *settings)
    assert tool.err == ""
    tool("predict", two, *asked)
    assert tool.err == ""  # of prompts that are learned no model is needed
    named = f"frugalvae: loading the model {other}, which {tool.file} names\n"
    for verb, *words in (
        ("learn", two, *asked),
        ("update", "emu", two, *asked),
        ("forget", "emu", "--scrub"),
    ):
        tool(verb, *words)
        assert tool.err == named
