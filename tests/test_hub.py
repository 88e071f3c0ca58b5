"""Models that someone else made: nothing of them runs, and what is wrong with them is told."""

from __future__ import annotations

import builtins
import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from frugalvae import FrugalClassifier, PhotoClassifier
from frugalvae.encoders.transformers import TransformersEncoder
from frugalvae.errors import InputError, UntrustedError
from frugalvae.paper.clip import load_text_tower
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


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("adapter_config.json", {"base_model_name_or_path": "a/b"}, "names another model"),
        ("config.json", {"quantization_config": {"quant_method": "mxfp4"}}, "asks for code of oth"),
        *(
            ("config.json", {tower: {"quantization_config": {"quant_method": "x"}}}, "asks for co")
            for tower in ("vision_config", "text_config")
        ),
        *(
            ("model.safetensors.index.json", {"metadata": {}, "weight_map": {"x": where}}, "names")
            for where in ("../model/model.safetensors", "/dev/zero", "pipe", "")
        ),
    ],
)
def test_a_model_names_nothing_else(
    clip_folder: Path, trap: Path, name: str, content: dict[str, Any], reason: str
) -> None:
    """Neither another model, nor a file elsewhere, nor a package that is to compute it."""
    model = copied(clip_folder, trap.with_name("model"))
    before = json.loads((model / name).read_text()) if (model / name).exists() else {}
    (model / name).write_text(json.dumps(before | content))
    if hasattr(os, "mkfifo"):
        os.mkfifo(model / "pipe")
    with pytest.raises(InputError, match=f"no CLIPVisionModelWithProjection .*{reason}"):
        TransformersEncoder(model)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tokenizer_config.json", {"vocab": "elsewhere.json"}),
        ("tokenizer_config.json", {"merges": "elsewhere.json"}),
        ("tokenizer_config.json", {"init_inputs": ["elsewhere.json"]}),
        ("tokenizer_config.json", {"fast_tokenizer_files": ["../tokenizer.5.0.json"]}),
        ("tokenizer_config.json", {"sp_model_kwargs": {"model_file": "elsewhere.json"}}),
        ("special_tokens_map.json", {"vocab_file": "elsewhere.json"}),
        ("config.json", {"configuration_files": ["../config.4.0.json"]}),
    ],
)
@pytest.mark.parametrize(
    "load",
    [
        lambda model: TransformersEncoder(model).text_features(["wren"]),
        lambda model: load_text_tower(str(model)),
    ],
)
def test_a_model_reads_no_file_that_its_settings_name(
    clip_folder: Path,
    tmp_path: Path,
    name: str,
    content: dict[str, Any],
    load: Callable[[Path], Any],
) -> None:
    model = copied(clip_folder, tmp_path / "model")
    before = json.loads((model / name).read_text()) if (model / name).exists() else {}
    harmless = {"name_or_path": "/home/me", "special_tokens_map_file": "/home/me/map.json"}
    harmless = harmless if name == "tokenizer_config.json" else {}
    (model / name).write_text(json.dumps(before | harmless))
    assert load(model) is not None
    load_text_tower.cache_clear()
    (model / name).write_text(json.dumps(before | harmless | content))
    with pytest.raises(InputError, match=rf"{name} names files in .*; remove this entry"):
        load(model)


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


def test_a_model_that_only_the_file_names_is_not_loaded(
    tmp_path: Path, clip_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tool = Tool(tmp_path, capsys)
    one, two = paint(tmp_path / "one", "cat", "dax"), paint(tmp_path / "two", "emu")
    refused = (
        f"frugalvae: {tool.file} was taught with the model {clip_folder}. Nothing that a file "
        f"names is imported, opened or fetched for that reason: if you know it, give --model "
        f"{clip_folder}, or in Python trust=['{clip_folder}']\n"
    )
    tool.learn(one, "--encoder", "transformers", "--model", clip_folder)
    for verb, *words in (
        ("learn", two),
        ("predict", two, "--json"),
        ("evaluate", two, "-o", tmp_path / "page.html"),
    ):
        assert tool(verb, *words, code=2).endswith(refused)
        tool(verb, *words, "--model", clip_folder)
        assert tool.err == ""
    tool("predict", two, "--trust", clip_folder)


def test_python_names_the_model_when_it_loads_the_file(tmp_path: Path, clip_folder: Path) -> None:
    one = paint(tmp_path / "one", "cat", "dax")
    features = FrugalClassifier(*QUICK[1::2])
    taught = PhotoClassifier("transformers", str(clip_folder), classifier=features).learn(one)
    assert taught.predict(one / "cat" / "0.png").tolist() == ["cat"]
    taught.save(tmp_path / "it.frugal")
    with pytest.raises(UntrustedError, match="was taught with the model .* give --model "):
        PhotoClassifier.load(tmp_path / "it.frugal").predict(one / "cat" / "0.png")
    loaded = PhotoClassifier.load(tmp_path / "it.frugal", trust=[str(clip_folder)])
    assert loaded.predict(one / "cat" / "0.png").tolist() == ["cat"]


def test_a_hub_is_not_asked_for_a_name_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor its cache on this disk; a name that our own code knows needs nobody's word."""
    import huggingface_hub

    asked: list[str] = []

    def ask(name: str, **_: Any) -> None:
        asked.append(name)
        raise OSError("there is no network in tests")

    for function in ("snapshot_download", "list_repo_files"):
        monkeypatch.setattr(huggingface_hub, function, ask)
    classifier = FrugalClassifier(*QUICK[1::2]).fit([[0.0, 1.0], [1.0, 0.0]], ["a", "b"])
    model = "somebody/else-s"
    classifier.encoder_ = {
        "encoder": "onnx",
        "given": {"name": "onnx", "settings": {"model": model}},
    }
    classifier.save(tmp_path / "it.frugal")
    for remembered in (classifier.encoder_, {"encoder": "onnx", "model": model}):
        classifier.encoder_ = remembered
        classifier.save(tmp_path / "it.frugal")
        with pytest.raises(UntrustedError, match=f"give --model {model}"):
            PhotoClassifier.load(tmp_path / "it.frugal").predict(np.zeros((9, 9, 3), "u1"))
        assert not asked
    with pytest.raises(InputError, match="cannot be downloaded"):
        PhotoClassifier.load(tmp_path / "it.frugal", trust=[model]).predict(
            np.zeros((9, 9, 3), "u1")
        )
    assert set(asked) == {model}


def test_nor_is_one_for_prompts(
    tmp_path: Path, clip_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tool, other = Tool(tmp_path, capsys), copied(clip_folder, tmp_path / "other")
    quick = [f"head.{setting}" for setting in (f"model={other}", "epochs=1", "samples=4")]
    settings = [word for setting in quick for word in ("--set", setting)]
    one, two = paint(tmp_path / "one", "cat", "dax"), paint(tmp_path / "two", "emu")
    asked = ["--model", clip_folder]
    tool(
        "learn", one, "--encoder", "transformers", *asked, *QUICK[:2], "--head", "prompt", *settings
    )
    tool("predict", two, *asked)  # of prompts that are learned no model is needed
    for verb, *words in (
        ("learn", two, *asked),
        ("forget", "emu", "--scrub"),
    ):
        refused = tool(verb, *words, code=2)
        assert f"its prompts are learned with the model {other}. Nothing that a file" in refused
        assert f"give --trust {other}, or" in refused
        tool(verb, *words, "--trust", other)
