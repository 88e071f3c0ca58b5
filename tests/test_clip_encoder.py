"""CLIP: what it makes of an image, and models that are none."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from frugalvae.encoders import ENCODERS, make_encoder
from frugalvae.encoders.defaults import from_config
from frugalvae.encoders.transformers import TransformersEncoder
from frugalvae.errors import InputError, UnknownNameError
from tests.small_clip import save_clip

SHAPES = [(32, 32), (80, 61), (61, 80), (33, 200), (20, 12), (500, 375)]  # width and height


def noise(width: int, height: int, seed: int = 0) -> Image.Image:
    rng = np.random.default_rng(seed)
    return Image.fromarray(rng.integers(0, 256, (height, width, 3), np.uint8))


def theirs(config: dict[str, Any], image: Image.Image) -> np.ndarray:
    from transformers import CLIPImageProcessorPil

    processed = CLIPImageProcessorPil(**config)(image, return_tensors="np")
    return processed["pixel_values"][0]


def changed(source: Path, target: Path, **entries: Any) -> Path:
    """A copy of a model with another preprocessing."""
    shutil.copytree(source, target)
    path = target / "preprocessor_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | entries))
    return target


# --------------------------------------------------------------------------- preprocessing


@pytest.mark.parametrize(
    "config",
    [
        {"size": 32, "crop_size": 32},
        {"size": {"shortest_edge": 40}, "crop_size": {"height": 32, "width": 24}},
        {"size": {"height": 30, "width": 20}, "crop_size": {"height": 32, "width": 32}},
        {"size": {"height": 32, "width": 32}, "do_center_crop": False, "resample": 2},
        {"do_resize": False, "crop_size": 24, "do_normalize": False},
        {"size": 16, "crop_size": 16, "do_rescale": False, "image_mean": [1.0, 2.0, 3.0]},
        {"size": 16, "crop_size": 16, "rescale_factor": 0.01, "image_std": [0.5, 0.1, 2.0]},
    ],
    ids=str,
)
def test_images_are_prepared_as_transformers_does_it(config: dict[str, Any]) -> None:
    prepare = from_config(config)
    for number, (width, height) in enumerate(SHAPES):
        image = noise(width, height, seed=number)
        np.testing.assert_allclose(prepare(image), theirs(config, image), rtol=1e-6, atol=1e-6)


def test_other_sizes_are_refused() -> None:
    with pytest.raises(
        InputError, match="size is {'longest_edge': 9}; expected a number, 'shortest"
    ):
        from_config({"size": {"longest_edge": 9}})


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("resample", [99, "x", 1e30, -1]),
        ("rescale_factor", ["x", [1], 0, math.inf]),
        ("image_mean", [[0.5], "abc", [math.inf] * 3, 0.5, [True] * 3]),
        ("image_std", [[0, 1, 1], [[1], [1], [1]], [1, 1, math.nan]]),
        ("size", [0, -5, "x", True, 20_000, {"shortest_edge": 1.5}, {"height": 9, "width": "x"}]),
        ("crop_size", [0, -1, [1, 2], {"height": 9, "width": 10**9}]),
        ("do_center_crop", ["x", 2]),
    ],
)
def test_a_configuration_of_other_values_is_refused(name: str, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(InputError, match=rf"^{name} is .*(; expected|Choices)"):
            from_config({name: value})


def test_an_image_like_a_thread_is_not_blown_up() -> None:
    with pytest.raises(InputError, match="30000 x 1 pixels, too thin"):
        from_config({})(Image.new("RGB", (30_000, 1)))


# --------------------------------------------------------------------------- CLIP


def test_features_are_those_of_clip_with_length_one(clip_folder: Path) -> None:
    from transformers import CLIPImageProcessorPil, CLIPModel

    images = [noise(width, height) for width, height in SHAPES]
    pixels = CLIPImageProcessorPil.from_pretrained(clip_folder)(images, return_tensors="pt")
    with torch.inference_mode():
        expected = CLIPModel.from_pretrained(clip_folder).get_image_features(**pixels).pooler_output
    encoder = make_encoder("transformers", model=clip_folder)
    features = encoder.encode(np.stack([encoder.prepare(image) for image in images]))
    assert features.shape == (len(SHAPES), encoder.dim) == (6, 24)
    expected = expected / expected.norm(dim=1, keepdim=True)
    np.testing.assert_allclose(features, expected, rtol=1e-5, atol=1e-6)
    assert features.std(axis=0).min() > 1e-3  # images are told apart


def test_text_features_are_those_of_clip(clip_folder: Path) -> None:
    from transformers import CLIPModel, CLIPTokenizer

    names = ["birds/001.Black_footed_Albatross", "cat"]
    texts = ["a photo of a Black footed Albatross.", "a photo of a cat."]
    tokens = CLIPTokenizer.from_pretrained(clip_folder)(texts, padding=True, return_tensors="pt")
    with torch.inference_mode():
        model = CLIPModel.from_pretrained(clip_folder)
        expected = model.get_text_features(**tokens).pooler_output
    features = TransformersEncoder(clip_folder).text_features(names)
    assert features is not None
    expected = expected / expected.norm(dim=1, keepdim=True)
    torch.testing.assert_close(torch.tensor(features), expected, rtol=1e-5, atol=1e-6)


def test_without_a_text_tower_there_are_no_text_features(clip_folder: Path, tmp_path: Path) -> None:
    from transformers import CLIPVisionModelWithProjection

    CLIPVisionModelWithProjection.from_pretrained(clip_folder).save_pretrained(tmp_path)
    shutil.copy(clip_folder / "preprocessor_config.json", tmp_path)
    images_only, whole = TransformersEncoder(tmp_path), TransformersEncoder(str(clip_folder))
    assert images_only.text_features(["cat"]) is None
    assert images_only.digest == whole.digest
    (tmp_path / "preprocessor_config.json").unlink()
    with pytest.raises(InputError, match="preprocessor_config.json is missing, .*; copy it"):
        TransformersEncoder(tmp_path)


def test_the_identity_tells_weights_and_preprocessing_but_no_paths(
    clip_folder: Path, tmp_path: Path
) -> None:
    encoder = TransformersEncoder(clip_folder)
    assert encoder.side == 32
    assert json.loads(json.dumps(encoder.identity)) == encoder.identity
    assert encoder.identity["model"] == "small-clip"
    other = TransformersEncoder(save_clip(tmp_path / "small-clip", seed=1))
    assert other.identity | {"weights": encoder.digest, "probe": encoder.probe} == encoder.identity
    assert other.digest != encoder.digest
    blurred = TransformersEncoder(changed(clip_folder, tmp_path / "two" / "small-clip", resample=2))
    assert blurred.digest == encoder.digest
    assert blurred.identity != encoder.identity


def test_models_without_an_image_tower_are_refused(clip_folder: Path, tmp_path: Path) -> None:
    from transformers import BertConfig, BertModel, CLIPTextModelWithProjection, CLIPVisionModel

    sizes = {"hidden_size": 8, "intermediate_size": 8, "vocab_size": 9, "num_hidden_layers": 1}
    BertModel(BertConfig(**sizes, num_attention_heads=1)).save_pretrained(tmp_path / "bert")
    with pytest.raises(
        InputError, match="bert: a model of the kind 'bert', .*; known: clip, clip_v"
    ):
        TransformersEncoder(tmp_path / "bert")
    CLIPTextModelWithProjection.from_pretrained(clip_folder).save_pretrained(tmp_path / "text")
    with pytest.raises(InputError, match="text: a model of the kind 'clip_text_model'"):
        TransformersEncoder(tmp_path / "text")
    CLIPVisionModel.from_pretrained(clip_folder).save_pretrained(tmp_path / "bare")
    shutil.copy(clip_folder / "preprocessor_config.json", tmp_path / "bare")
    with pytest.raises(InputError, match=r"1 of the weights of a .* such as visual_projection"):
        TransformersEncoder(tmp_path / "bare")
    with pytest.raises(InputError, match="no AutoConfig can be loaded .* as save_pretrained"):
        TransformersEncoder(tmp_path)  # without a config


def test_a_preprocessing_for_another_network_is_refused(clip_folder: Path, tmp_path: Path) -> None:
    path = changed(clip_folder, tmp_path / "model", crop_size={"height": 24, "width": 24})
    with pytest.raises(InputError, match=r"images of \(24, 24\), and its network takes 32 x 32"):
        TransformersEncoder(path)


# --------------------------------------------------------------------------- what is not there


def test_a_missing_package_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(InputError, match=r"pip install '\.\[clip\]'"):
        make_encoder("transformers", model=tmp_path)


def test_names_of_frozen_encoders() -> None:
    assert list(ENCODERS) == ["efficientnet", "onnx", "transformers"]
    with pytest.raises(
        InputError, match="there is no frozen encoder 'resnet18'. Known: efficientnet, "
    ):
        make_encoder("resnet18")
    with pytest.raises(UnknownNameError, match="no frozen encoder 'onxx'. Did you mean 'onnx'"):
        make_encoder("onxx")


def test_without_a_network_a_name_on_the_hub_gives_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "cat").mkdir()
    for number in range(2):
        Image.new("RGB", (8, 8)).save(tmp_path / "cat" / f"{number}.png")
    command = [sys.executable, "-m", "frugalvae", "encode", str(tmp_path)]
    options = [
        "-o",
        str(tmp_path / "f.npz"),
        "--encoder",
        "transformers",
        "--model",
        "openai/absent",
    ]
    offline = os.environ | {"HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [*command, *options], env=offline, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("frugalvae: openai/absent: no AutoConfig can be loaded")
    assert "expected a folder with a model" in done.stderr
    assert done.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["cat"]
