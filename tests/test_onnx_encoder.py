"""Any encoder in ONNX: the features of PyTorch, where files lie, and what files may not do."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from frugalvae.cli.main import main
from frugalvae.encoders import check_same, make_encoder
from frugalvae.encoders.conversion import message
from frugalvae.encoders.defaults import from_config
from frugalvae.encoders.onnx import Network, OnnxEncoder, OnnxModel, named_files, read_model
from frugalvae.errors import InputError
from frugalvae.images.feature_file import load_features
from tests.small_clip import save_clip
from tests.small_onnx import (
    export_clip,
    export_dino,
    export_siglip,
    forged,
    linear,
    named,
    save_dino,
    save_siglip,
)

NAMES = ["birds/001.Black_footed_Albatross", "cat", "dax"]
HOW: dict[str, Any] = {"size": 8, "mean": [0.5] * 3, "std": [0.25] * 3}


def noise(width: int, height: int, seed: int = 0) -> Image.Image:
    rng = np.random.default_rng(seed)
    return Image.fromarray(rng.integers(0, 256, (height, width, 3), np.uint8))


def features(encoder: Any) -> np.ndarray:
    images = [noise(50, 41), noise(33, 90, 1), Image.new("RGB", (40, 40), "red")]
    return encoder.encode(np.stack([encoder.prepare(image) for image in images]))


@pytest.fixture(scope="module")
def clip_onnx(clip_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_clip(clip_folder, tmp_path_factory.mktemp("clip") / "small-clip-onnx")


# --------------------------------------------------------------------------- features


def test_clip_is_the_same_in_onnx_and_in_pytorch(clip_folder: Path, clip_onnx: Path) -> None:
    theirs, ours = (
        make_encoder("transformers", model=clip_folder),
        make_encoder("onnx", model=clip_onnx),
    )
    assert ours.dim == theirs.dim == 24
    np.testing.assert_allclose(features(ours), features(theirs), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(features(ours), axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(ours.text_features(NAMES), theirs.text_features(NAMES), atol=1e-5)
    assert ours.identity["preprocessing"] == theirs.identity["preprocessing"]
    assert ours.identity["weights"] != theirs.identity["weights"]
    assert ours.identity["model"] == "small-clip-onnx"
    assert ours.side == 32


def test_siglip_is_the_same_in_onnx_and_in_pytorch(tmp_path: Path) -> None:
    source = save_siglip(tmp_path / "siglip")
    theirs = make_encoder("transformers", model=source)
    ours = make_encoder("onnx", model=export_siglip(source, tmp_path / "exported"))
    np.testing.assert_allclose(features(ours), features(theirs), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(features(ours), axis=1), 1, atol=1e-6)
    text = theirs.text_features(NAMES)
    np.testing.assert_allclose(ours.text_features(NAMES), text, atol=1e-5)
    assert np.abs(text[0] - text[1]).max() > 1e-4  # names are told apart
    check_same(theirs.identity, ours.identity, tmp_path, "it")


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("outputs", [["last_hidden_state"], ["last_hidden_state", "pooler_output"]])
def test_dino_is_the_same_in_onnx_and_in_pytorch(
    tmp_path: Path, version: int, outputs: list[str]
) -> None:
    source = save_dino(tmp_path / "dino", version)
    theirs = make_encoder("transformers", model=source)
    ours = make_encoder("onnx", model=export_dino(source, tmp_path / "exported", outputs))
    np.testing.assert_allclose(features(ours), features(theirs), atol=1e-4)
    assert ours.text_features(NAMES) is None
    assert theirs.text_features(NAMES) is None
    assert features(ours).std(axis=0).min() > 1e-4
    check_same(theirs.identity, ours.identity, tmp_path, "it")


def test_a_graph_of_ones_own_with_settings(tmp_path: Path) -> None:
    encoder = OnnxEncoder(linear(tmp_path / "mine.onnx"), **HOW)
    weights = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    red = (np.array([255, 0, 0]) / 255 - 0.5) / 0.25
    np.testing.assert_allclose(features(encoder)[2], red @ weights, rtol=1e-5)
    assert encoder.identity["model"] == "mine.onnx"
    assert json.loads(json.dumps(encoder.identity)) == encoder.identity
    with pytest.raises(
        InputError, match="mine.onnx: preprocessor_config.json is missing, .*set encoder"
    ):
        OnnxEncoder(tmp_path / "mine.onnx", size=8)


def test_settings_change_what_the_configuration_says(clip_onnx: Path, tmp_path: Path) -> None:
    shutil.copy(clip_onnx / "preprocessor_config.json", tmp_path)
    told = OnnxEncoder(linear(tmp_path / "onnx" / "model.onnx")).prepared
    changed = OnnxEncoder(tmp_path, size=20, std=[1, 2, 3]).prepared
    assert (told.resize, told.crop) == (32, (32, 32))
    assert (changed.resize, changed.crop) == (20, (20, 20))
    assert (changed.mean, changed.std) == (told.mean, (1.0, 2.0, 3.0))


def test_the_text_tower_is_loaded_once_and_not_sent_to_other_processes(
    clip_onnx: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[Path] = []

    def counting(path: Path) -> Any:
        loaded.extend([path] * (path.name == "text_model.onnx"))
        return read_model(path)

    monkeypatch.setattr("frugalvae.encoders.onnx.read_model", counting)
    encoder = OnnxEncoder(clip_onnx, threads=1)
    assert not loaded
    expected = encoder.text_features(NAMES)
    np.testing.assert_array_equal(encoder.text_features(NAMES), expected)
    assert len(loaded) == 1
    there = pickle.loads(pickle.dumps(encoder))
    assert len(loaded) == 1
    np.testing.assert_array_equal(there.text_features(NAMES), expected)
    assert len(loaded) == 2


def test_nothing_heavy_is_imported(clip_onnx: Path) -> None:
    code = f"""
import sys
from frugalvae.encoders import make_encoder
make_encoder("onnx", model={str(clip_onnx)!r}).text_features(["cat"])
heavy = {{"torch", "sklearn", "scipy", "onnx", "transformers", "huggingface_hub"}}
print(*heavy & {{*sys.modules}})
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"
    assert done.stderr == ""


# --------------------------------------------------------------------------- one file, two formats


def test_a_file_taught_in_pytorch_is_asked_in_onnx(
    clip_folder: Path, clip_onnx: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, colour in (("red", (200, 0, 0)), ("blue", (0, 0, 200))):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for number in range(6):
            picture = np.asarray(noise(40, 40, number)) // 4 + np.array(colour) // 2
            Image.fromarray(picture.astype(np.uint8)).save(
                tmp_path / "photos" / name / f"{number}.png"
            )
    file, photos = str(tmp_path / "colours.frugal"), str(tmp_path / "photos")
    asked = ["predict", file, str(tmp_path / "photos" / "red"), "--json"]
    clip = ["--encoder", "transformers", "--model", str(clip_folder)]
    onnx = ["--encoder", "onnx", "--model", str(clip_onnx)]
    assert main(["learn", file, photos, *clip, "--quiet"]) == 0
    assert main([*asked, *clip]) == 0
    expected = json.loads(capsys.readouterr().out)["predictions"]
    assert main([*asked, *onnx]) == 0
    found = json.loads(capsys.readouterr().out)["predictions"]
    assert len(found) == len(expected) == 6
    for one, other in zip(found, expected, strict=True):
        assert one["label"] == other["label"] == "red"
        assert one["top"][0]["probability"] == pytest.approx(
            other["top"][0]["probability"], abs=1e-4
        )
    other = save_clip(tmp_path / "other", seed=1)
    assert (
        main([*asked, "--encoder", "onnx", "--model", str(export_clip(other, tmp_path / "no"))])
        == 2
    )
    assert "encoder and weights differ (onnx no" in capsys.readouterr().err
    assert main([*asked, "--encoder", "efficientnet"]) == 2
    assert "was taught with transformers, and features of another" in capsys.readouterr().err


def test_formats_agree_by_features_alone() -> None:
    one = {"encoder": "clip", "weights": "a", "preprocessing": {"crop": 1}, "probe": [1.0, -2.0]}
    same = {"encoder": "onnx", "weights": "b", "preprocessing": {"crop": 1}, "probe": [1.0, -2.01]}
    check_same(one, same, Path("f"), "it")
    for change in (
        {"probe": [1.0, -1.0]},
        {"probe": [2.0, -4.0]},  # of another length
        {"probe": [1.0]},
        {"probe": None},
        {"probe": ["x", {}]},
        {"probe": []},
        {"preprocessing": {"crop": 2}},
        {"encoder": "clip"},  # in one format, weights tell
    ):
        with pytest.raises(InputError, match="it does not fit f: .* differ"):
            check_same(one, same | change, Path("f"), "it")
    old = {key: told for key, told in one.items() if key != "probe"}
    check_same(old, one, Path("f"), "it")
    with pytest.raises(InputError, match="encoder and weights differ"):
        check_same(old, same, Path("f"), "it")


def test_images_are_encoded_by_the_command(clip_onnx: Path, tmp_path: Path) -> None:
    for number in range(4):
        noise(30, 30, number).save(tmp_path / f"{number}.png")
    photos = tmp_path / "photos" / "cat"
    photos.mkdir(parents=True)
    for path in tmp_path.glob("*.png"):
        path.rename(photos / path.name)
    output = tmp_path / "f.npz"
    command = ["encode", str(photos.parent), "-o", str(output), "--encoder", "onnx", "--quiet"]
    assert main([*command, "--model", str(clip_onnx)]) == 0
    found = load_features(output)
    assert found.x_train.shape == (3, 24)
    assert found.text is not None
    assert found.encoder is not None
    assert found.encoder["encoder"] == "onnx"
    settings = [f"--set=encoder.{name}={value}" for name, value in HOW.items()]
    assert main([*command, "--model", str(linear(tmp_path / "mine.onnx")), *settings]) == 0
    assert load_features(output).x_train.shape == (3, 5)
    assert main([*command, "--set", "memory.width=3"]) == 2


# --------------------------------------------------------------------------- where files lie


def test_the_precision_chooses_the_file(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    half = {"type": onnx.TensorProto.FLOAT16}
    linear(tmp_path / "onnx" / "model.onnx")
    linear(tmp_path / "onnx" / "model_fp16.onnx", **half)
    whole, halved = (OnnxEncoder(tmp_path, p, **HOW) for p in ("float32", "float16"))
    assert whole.digest != halved.digest
    assert features(halved).dtype == np.float32
    np.testing.assert_allclose(features(halved), features(whole), atol=1e-2)
    with pytest.raises(InputError, match=r"no vision_model_int8.onnx .*found: onnx/model.onnx, on"):
        OnnxEncoder(tmp_path, "int8", **HOW)
    linear(tmp_path / "onnx" / "model_quantized.onnx")
    assert OnnxEncoder(tmp_path, "int8", **HOW).digest == whole.digest
    with pytest.raises(InputError, match="precision is 'int4'. Did you mean 'int8'"):
        OnnxEncoder(tmp_path, "int4")


@pytest.mark.parametrize("missing", ["tokenizer.json", "tokenizer_config.json", "config.json"])
def test_a_text_tower_needs_its_tokenizer(clip_onnx: Path, tmp_path: Path, missing: str) -> None:
    folder = shutil.copytree(clip_onnx, tmp_path / "clip")
    (folder / missing).unlink()
    with pytest.raises(InputError, match=f"text_model.onnx: {missing} is missing, .*; copy it"):
        OnnxEncoder(folder).text_features(["cat"])
    (folder / "onnx" / "text_model.onnx").unlink()
    assert OnnxEncoder(folder).text_features(["cat"]) is None


def test_a_name_that_is_too_long_is_told(clip_onnx: Path) -> None:
    with pytest.raises(InputError, match="makes 1.. tokens; expected at most 77, .*another name"):
        OnnxEncoder(clip_onnx).text_features(["cat " * 100])


@pytest.mark.parametrize("package", ["tokenizers", "huggingface_hub"])
def test_a_missing_package_is_told(
    clip_onnx: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    model = clip_onnx if package == "tokenizers" else "someone/clip"
    with pytest.raises(InputError, match=rf"{package}', .*; pip install '\.\[onnx\]'"):
        OnnxEncoder(model).text_features(["cat"])


class Hub:
    """A hub with one model, and a folder where downloads go."""

    def __init__(self, model: Path, cache: Path) -> None:
        self.model, self.cache, self.downloaded = model, cache, list[str]()
        self.online = True

    def list_repo_files(self, name: str) -> list[str]:
        if not self.online or name != "someone/clip":
            raise OSError("no network\nor something")
        files = [path for path in self.model.rglob("*") if path.is_file()]
        return sorted(path.relative_to(self.model).as_posix() for path in files)

    def snapshot_download(
        self, name: str, allow_patterns: Any = None, local_files_only: bool = False
    ) -> str:
        if local_files_only:
            if not self.cache.exists():
                raise FileNotFoundError("not here")
            return str(self.cache)
        for file in self.list_repo_files(name):
            if file in allow_patterns:
                self.downloaded.append(file)
                (self.cache / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(self.model / file, self.cache / file)
        return str(self.cache)


def test_a_name_on_the_hub_is_downloaded_once(
    clip_onnx: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub

    model = shutil.copytree(clip_onnx, tmp_path / "remote")
    (model / "model.safetensors").write_text("large")
    (model / "onnx" / "model.onnx").write_text("large")
    hub = Hub(model, tmp_path / "cache")
    for name in ("list_repo_files", "snapshot_download"):
        monkeypatch.setattr(huggingface_hub, name, getattr(hub, name))
    with pytest.raises(InputError, match=r"someone/else: it cannot be downloaded \(no network\)"):
        OnnxEncoder("someone/else")
    with pytest.raises(InputError, match=r"no vision_model_fp16.onnx .*found: onnx/model.onnx, on"):
        OnnxEncoder("someone/clip", "float16")
    assert hub.downloaded == []
    encoder = OnnxEncoder("someone/clip")
    assert hub.downloaded[-1] == "onnx/vision_model.onnx"  # once it is there, all is
    assert {"onnx/text_model.onnx", "tokenizer.json"} <= {*hub.downloaded}
    assert not {"model.safetensors", "onnx/model.onnx"} & {*hub.downloaded}
    assert encoder.identity["model"] == "someone/clip"
    hub.online = False
    again = OnnxEncoder("someone/clip")
    np.testing.assert_array_equal(again.text_features(["cat"]), encoder.text_features(["cat"]))


# --------------------------------------------------------------------------- what files may not do


def external(path: Path, location: str = "weights.bin") -> Path:
    """A model whose weights stand in another file."""
    return linear(
        path,
        save_as_external_data=True,
        all_tensors_to_one_file=True,
        location=location,
        size_threshold=0,
    )


def renamed(path: Path, old: str, new: str) -> None:
    """Let a model name another file."""
    onnx = pytest.importorskip("onnx")
    model = onnx.load(path, load_external_data=False)
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            entry.value = new if entry.value == old else entry.value
    onnx.save(model, path)


def test_weights_beside_the_graph_are_read(tmp_path: Path) -> None:
    inline, apart = linear(tmp_path / "a.onnx"), external(tmp_path / "b" / "b.onnx")
    assert list(read_model(apart).files) == ["weights.bin"]
    one, two = OnnxEncoder(inline, **HOW), OnnxEncoder(apart, **HOW)
    np.testing.assert_array_equal(features(one), features(two))
    np.testing.assert_array_equal(features(pickle.loads(pickle.dumps(two))), features(one))
    (apart.parent / "weights.bin").write_bytes(bytes(60))
    assert OnnxEncoder(apart, **HOW).digest != two.digest
    (apart.parent / "weights.bin").write_bytes(bytes(9))
    with pytest.raises(InputError, match="b.onnx: ONNX Runtime cannot load the network"):
        OnnxEncoder(apart, **HOW)
    (apart.parent / "weights.bin").unlink()
    with pytest.raises(InputError, match="its weights are in weights.bin, which is missing"):
        OnnxEncoder(apart, **HOW)


def test_the_hubs_cache_is_a_folder_of_links(tmp_path: Path) -> None:
    blobs, shown = tmp_path / "blobs", tmp_path / "snapshots" / "1" / "onnx"
    external(blobs / "model.onnx", "model.onnx_data")
    shown.mkdir(parents=True)
    for name in ("model.onnx", "model.onnx_data"):
        (shown / name).symlink_to(blobs / name)
    assert OnnxEncoder(shown.parent, **HOW).dim == 5


@pytest.mark.parametrize(
    "where",
    [
        *(
            "../secret",
            "{}/secret",
            "C:\\secret",
            "a/../../secret",
            "link",
            ".",
            "",
            "./weights.bin",
        ),
        "*/_ORT_MEM_ADDR_/*",  # which ONNX Runtime takes for an address in memory
    ],
)
def test_no_file_elsewhere_is_read(tmp_path: Path, where: str) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(60))
    path = external(tmp_path / "model" / "model.onnx")
    (path.parent / "a").mkdir()
    (path.parent / "link").symlink_to(secret)
    renamed(path, "weights.bin", where.format(tmp_path))
    with pytest.raises(InputError, match="model.onnx: it wants to read .*, which is not in its fo"):
        OnnxEncoder(path, **HOW)


def test_weights_of_a_graph_of_our_own_hand_are_read(tmp_path: Path) -> None:
    """Or the forgeries below would be refused for another reason."""
    (tmp_path / "m.onnx").write_bytes(forged("graph", named("w.bin")))
    for scale in (1, 2):
        (tmp_path / "w.bin").write_bytes((np.ones((3, 5), np.float32) * scale).tobytes())
        encoder = OnnxEncoder(tmp_path / "m.onnx", size=8, mean=[0] * 3, std=[1] * 3)
        np.testing.assert_allclose(features(encoder)[2], scale)  # an image that is red


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (forged("graph", named("w.bin", 13 + 2**29)), "not in the format of protocol buffers"),
        (forged("graph", named("w.bin", 13 + 2**61)), "a number of more than 64 bits"),
        (forged("constant", named("w.bin")), "weights in another file that are none of its"),
        (forged("nested graph", named("w.bin")), "weights in another file that are none of its"),
        (forged("function", named("w.bin")), "it has functions, which is not read here"),
        (forged("training", named("w.bin")), "it has training information, which is not read"),
        (forged("sparse", named("w.bin")), "it has sparse weights, which is not read here"),
        (message([(99, "x")]), "it has a field 99 in its model, which is not read here"),
        (message([(99, 1)]), "it has a field 99 in its model, which is not read here"),
        (message([(0, "x")]), "not in the format of protocol buffers"),
        (bytes([6 << 3 | 3, 6 << 3 | 4]), "not in the format of protocol buffers"),  # a group
        (bytes([6 << 3 | 6]), "not in the format of protocol buffers"),
        (bytes([1 << 3, *[255] * 10, 1]), "a number of more than 64 bits"),
        (bytes([1 << 3, *[255] * 9, 2]), "a number of more than 64 bits"),
        (bytes([6 << 3 | 5, 0, 0, 0]), "it is cut off"),
    ],
)
def test_what_onnx_runtime_might_read_otherwise_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: bytes, reason: str
) -> None:
    """It opens the file of the first, and of nested graphs from wherever the command is run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w.bin").write_bytes(bytes(60))
    (tmp_path / "m.onnx").write_bytes(model)
    with pytest.raises(InputError, match=f"m.onnx: no ONNX file .*{reason}"):
        OnnxEncoder(tmp_path / "m.onnx", **HOW)


def test_a_digest_belongs_to_one_graph_and_its_files_alone() -> None:
    """Bytes at an end of the one were once as good as at the start of the other."""
    name = "2 " + 32 * "d"  # which is a doc_string to who reads on
    graph, weights = forged("graph", named(name)), bytes(60)
    assert list(named_files(graph + name.encode())) == [name]
    one = OnnxModel(graph, {name: name.encode() + weights})
    other = OnnxModel(graph + name.encode(), {name: weights})
    assert one.digest != other.digest
    assert OnnxModel(graph).digest == hashlib.sha256(graph).hexdigest()[:16]  # as it always was


def test_what_was_digested_is_what_computes(tmp_path: Path) -> None:
    path = linear(tmp_path / "m.onnx")
    model, images = read_model(path), np.ones((1, 3, 4, 4), np.float32)
    expected = Network(model).run("features", {"images": images})
    path.write_bytes(forged("sparse", b""))
    network = Network(model, path=path)
    np.testing.assert_array_equal(network.run("features", {"images": images}), expected)
    for again in (network.to, lambda _: pickle.dumps(network)):
        with pytest.raises(InputError, match="m.onnx: no ONNX file"):
            again("cpu")
        linear(path, outputs="others")
        with pytest.raises(InputError, match="m.onnx: it was changed since it was loaded"):
            again("cpu")
        path.write_bytes(forged("sparse", b""))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_a_pipe_in_a_models_folder_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "model.onnx")
    monkeypatch.setattr(Path, "read_bytes", lambda path: pytest.fail(f"{path} is opened"))
    with pytest.raises(InputError, match="model.onnx: no file, or none that ends"):
        OnnxEncoder(tmp_path, **HOW)


def test_damaged_models_are_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    whole, chance = linear(tmp_path / "m.onnx").read_bytes(), random.Random(0)
    path, refused = tmp_path / "damaged.onnx", list[str]()
    for _ in range(300):
        damaged = bytearray(whole)
        start = chance.randrange(len(whole))
        damaged[start : start + chance.randrange(4)] = chance.randbytes(chance.randrange(4))
        path.write_bytes(damaged[: chance.choice([None, chance.randrange(len(whole))])])
        try:
            OnnxEncoder(path, **HOW)
        except InputError as error:
            refused.append(str(error))
    assert 100 < len(refused) < 300
    assert not any("\n" in line for line in refused)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", ["preprocessor_config.json", "config.json"])
def test_settings_of_endless_brackets_are_no_traceback(tmp_path: Path, name: str) -> None:
    linear(tmp_path / "model.onnx")
    (tmp_path / name).write_text("[" * 100_000)
    if name == "config.json":  # of which only the kind is looked up
        assert OnnxEncoder(tmp_path, **HOW).dim == 5
    else:
        with pytest.raises(InputError, match=f"{name}: no JSON of settings"):
            OnnxEncoder(tmp_path, **HOW)


def test_other_networks_are_told(tmp_path: Path, clip_onnx: Path) -> None:
    with pytest.raises(InputError, match="a.onnx: ONNX Runtime cannot load .*mine"):
        OnnxEncoder(linear(tmp_path / "a.onnx", domain="mine"), **HOW)
    with pytest.raises(InputError, match="inputs are input_ids; expected images alone"):
        OnnxEncoder(clip_onnx / "onnx" / "text_model.onnx", **HOW)
    with pytest.raises(InputError, match=r"cannot compute the network .*; is encoder.size right\?"):
        OnnxEncoder(clip_onnx, size=40)
    with pytest.raises(InputError, match="there is no such folder"):
        OnnxEncoder(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"no vision_model.onnx or model.onnx .*\(found: none\)"):
        OnnxEncoder(tmp_path / "empty")


# --------------------------------------------------------------------------- preprocessing


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        ("Siglip", {"size": {"height": 32, "width": 24}}),
        ("Bit", {"size": {"shortest_edge": 40}, "crop_size": {"height": 32, "width": 32}}),
        ("ViT", {"size": {"height": 32, "width": 32}}),
        ("ViT", {"size": 20}),
        ("CLIP", {}),
    ],
)
def test_images_are_prepared_as_transformers_does_it(
    kind: str, config: dict[str, Any], tmp_path: Path
) -> None:
    import transformers

    theirs = getattr(transformers, f"{kind}ImageProcessorPil")(**config)
    ours = from_config({"image_processor_type": f"{kind}ImageProcessorFast", **config})
    theirs.save_pretrained(tmp_path)
    saved = from_config(json.loads((tmp_path / "preprocessor_config.json").read_text()))
    assert saved == ours
    for number, size in enumerate([(32, 32), (80, 61), (61, 80), (33, 200), (20, 12)]):
        image = noise(*size, seed=number)
        expected = theirs(image, return_tensors="np")["pixel_values"][0]
        np.testing.assert_allclose(ours(image), expected, rtol=1e-6, atol=1e-6)


def test_other_preprocessing_is_refused() -> None:
    with pytest.raises(InputError, match="by a LevitImageProcessor there, which is not known here"):
        from_config({"image_processor_type": "LevitImageProcessor"})
    with pytest.raises(InputError, match="by a Siglip2ImageProcessor there"):
        from_config({"image_processor_type": "Siglip2ImageProcessor"})


@pytest.mark.parametrize("device", [5, ["cpu"]])
def test_a_device_is_a_name(clip_onnx: Path, device: Any) -> None:
    with pytest.raises(InputError, match=r"device is .*; expected 'cpu' or 'cuda'"):
        OnnxEncoder(clip_onnx, device=device)
