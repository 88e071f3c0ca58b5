"""Images to feature files: what is read, what is left out, kills, Ray, and the command."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import threading
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from frugalvae import encoding
from frugalvae.cli.main import main
from frugalvae.console import listening
from frugalvae.encoding import OWNER, Report, encode_folder
from frugalvae.errors import InputError
from frugalvae.images.decode import decode
from frugalvae.images.feature_file import load_features
from frugalvae.samples import open_samples
from tests.colours import Colours, Held
from tests.test_images import save
from tests.waiting import kill_a_run, needs_proc, wait_until

ROOT = Path(__file__).parent.parent


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """Three classes of eight images, each of its own shade."""
    root = tmp_path / "set"
    for number in range(24):
        name = ("cat", "dax", "emu")[number // 8]
        save(root / name / f"{number % 8}.png", (number, 0, 0))
    return root


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "features.npz"


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "PART", 4)


def encode(images: Path, output: Path, encoder: Any = None, **how: Any) -> Report:
    return encode_folder(images, output, encoder or Colours(), **how)


# --------------------------------------------------------------------------- what is written


def test_features_have_the_labels_and_splits_of_the_images(images: Path, output: Path) -> None:
    encoder = Colours(text=True)
    report = encode(images, output, encoder, batch_size=5)
    features = load_features(output)
    with open_samples(images, "both") as samples:
        red = np.array([decode(file.read()).getpixel((0, 0))[0] for file in samples.files])
    for split, rows in (("train", ~samples.test), ("test", samples.test)):
        np.testing.assert_array_equal(getattr(features, f"x_{split}")[:, 0], red[rows])
        np.testing.assert_array_equal(getattr(features, f"y_{split}"), samples.labels[rows])
    assert features.encoder == encoder.identity
    assert features.text is not None
    assert features.text["dax"].tolist() == [0, 1, 0]
    assert encoder.batches == [5, 5, 5, 5, 4]
    assert (report.encoded, report.kept, report.skipped, report.missing) == (24, 0, {}, [])
    assert sorted(path.name for path in output.parent.iterdir()) == ["features.npz", "set"]


def test_a_zip_archive_and_train_and_test_folders(images: Path, output: Path) -> None:
    split = output.parent / "split"
    shutil.copytree(images, split / "train")
    shutil.copytree(images / "emu", split / "test" / "emu")
    archive = shutil.make_archive(str(output.parent / "packed"), "zip", split)
    encode(Path(archive), output)
    features = load_features(output)
    assert features.x_train[:, 0].tolist() == list(range(24))
    assert features.x_test[:, 0].tolist() == list(range(16, 24))
    assert features.text is None


def test_progress_is_told_by_images(images: Path, output: Path) -> None:
    events: list[tuple[str, int, int]] = []
    with listening(lambda *event: events.append(event)):
        encode(images, output, strict=True)
    assert ("checking images", 24, 24) in events
    assert events[-1] == ("encoding images", 24, 24)


def test_an_encoder_gets_photographs_no_larger_than_it_needs(tmp_path: Path) -> None:
    sizes = []

    class Small(Colours):
        side = 32

        def prepare(self, image: Image.Image) -> np.ndarray:
            sizes.append(image.size)
            return super().prepare(image)

    for name in ("cat", "dax"):
        for number in range(2):
            save(tmp_path / "set" / name / f"{number}.jpg", size=800)
    encode_folder(tmp_path / "set", tmp_path / "features.npz", Small())
    assert sizes == [(100, 100)] * 4


# --------------------------------------------------------------------------- unreadable images


def damage(images: Path) -> dict[str, str]:
    """Make some images unreadable; the reason of each."""
    (images / "cat" / "empty.png").touch()
    (images / "dax" / "text.jpg").write_text("no image")
    buffer = io.BytesIO()
    Image.effect_noise((64, 64), 90).save(buffer, "jpeg")
    (images / "emu" / "cut.jpg").write_bytes(buffer.getvalue()[:1500])
    (images / "emu" / "vast.ppm").write_bytes(b"P6 20000 20000 255\n")
    (images / "gnu").mkdir()
    (images / "gnu" / "1.gif").write_bytes(b"GIF89a")
    return {
        "cat/empty.png": "the file is empty",
        "dax/text.jpg": "it is in no known format of images",
        "emu/cut.jpg": "image file is truncated",
        "emu/vast.ppm": "20000 x 20000 are more than 250,000,000 pixels",
        "gnu/1.gif": "",
    }


def test_unreadable_images_are_left_out_and_named(images: Path, output: Path) -> None:
    reasons = damage(images)
    report = encode(images, output, batch_size=3)
    assert report.skipped.keys() == reasons.keys()
    for path, why in reasons.items():
        assert why in report.skipped[path]
    assert report.missing == ["gnu"]
    features = load_features(output)
    assert features.classes.tolist() == ["cat", "dax", "emu"]
    reds = np.concatenate([features.x_train, features.x_test])[:, 0]
    assert sorted(reds) == list(range(24))


def test_strict_refuses_them_and_writes_nothing(images: Path, output: Path) -> None:
    damage(images)
    encoder = Colours()
    with pytest.raises(InputError, match=r"(?s)5 files cannot be read; .*cat/empty.png: the file"):
        encode(images, output, encoder, strict=True)
    assert encoder.batches == []
    assert [path.name for path in output.parent.iterdir()] == ["set"]


def test_a_long_list_is_cut_short(images: Path, output: Path) -> None:
    for number in range(23):
        (images / "cat" / f"empty{number}.png").touch()
    with pytest.raises(InputError, match=r"(?s)23 files cannot ") as caught:
        encode(images, output, strict=True)
    shown = "  cat/empty0.png, cat/empty1.png, cat/empty10.png and 20 more: the file is empty"
    assert str(caught.value).splitlines()[1:] == [shown]


def test_a_class_whose_training_images_are_unreadable_is_left_out_of_the_test_too(
    images: Path, output: Path
) -> None:
    for path in (images / "dax").iterdir():
        save(images.parent / "split" / "test" / "dax" / path.name)
        save(images.parent / "split" / "test" / "cat" / path.name)
        save(images.parent / "split" / "train" / "cat" / path.name)
    (images.parent / "split" / "train" / "dax").mkdir()
    (images.parent / "split" / "train" / "dax" / "1.png").touch()
    report = encode(images.parent / "split", output)
    assert report.missing == ["dax"]
    assert set(load_features(output).y_test) == {"cat"}


def test_nothing_readable_is_an_error(images: Path, output: Path) -> None:
    for path in images.rglob("*.png"):
        path.write_bytes(b"")
    with pytest.raises(InputError, match=r"set: no training image .* cat/0.png \(the file is"):
        encode(images, output)
    assert not output.exists()


def test_images_larger_than_pillow_likes_are_read(
    images: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10)  # of which the double is an error
    assert encode(images, output).skipped == {}
    assert Image.MAX_IMAGE_PIXELS == 10


def test_a_damaged_entry_of_a_zip_is_left_out(images: Path, output: Path) -> None:
    archive = output.parent / "set.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in images.rglob("*.png"):
            file.write(path, path.relative_to(images))
    content = bytearray(archive.read_bytes())
    content[content.index(b"IDAT") + 6] ^= 255  # its checksum no longer fits
    archive.write_bytes(content)
    [why] = encode(archive, output).skipped.values()
    assert "Bad CRC" in why


# --------------------------------------------------------------------------- what is refused


def test_what_cannot_be_encoded_is_refused_before_the_work(images: Path, output: Path) -> None:
    encoder = Colours()
    with pytest.raises(InputError, match="nowhere: there is no such file or folder"):
        encode(images / "nowhere", output, encoder)
    (images.parent / "empty").mkdir()
    with pytest.raises(InputError, match="empty: no images in it"):
        encode(images.parent / "empty", output, encoder)
    save(images.parent / "one" / "cat" / "1.png")
    with pytest.raises(InputError, match="one: no class has two images"):
        encode(images.parent / "one", output, encoder)
    with pytest.raises(InputError, match="is a folder; give the name of a file"):
        encode(images, images, encoder)
    with pytest.raises(InputError, match="batch_size is 0"):
        encode(images, output, encoder, batch_size=0)
    assert encoder.batches == []


@pytest.mark.parametrize("owner", [None, "[1]", os.mkfifo, os.mkdir])
def test_a_folder_of_someone_else_is_not_touched(images: Path, output: Path, owner: Any) -> None:
    mine = output.with_name("features.npz.parts") / "diary.txt"
    mine.parent.mkdir()
    mine.write_text("dear diary")
    if callable(owner):
        owner(mine.with_name(OWNER))
    elif owner:
        mine.with_name(OWNER).write_text(owner)
    with pytest.raises(InputError, match="features.npz.parts is in the way"):
        encode(images, output)
    assert mine.read_text() == "dear diary"


def test_among_parts_only_files_of_ours_are_read_and_removed(images: Path, output: Path) -> None:
    folder = output.with_name("features.npz.parts")
    folder.mkdir()
    (folder / OWNER).write_text('{"images": "others"}')
    (folder / "diary.txt").write_text("dear diary")
    os.mkfifo(folder / "000001.npz")
    assert encoding.Parts(output, {}).load(1) is None
    encode(images, output)
    assert [path.name for path in folder.iterdir()] == ["diary.txt"]


# --------------------------------------------------------------------------- going on


class Interrupted(Colours):
    """Stops after so many batches."""

    def __init__(self, after: int, **how: Any) -> None:
        super().__init__(**how)
        self.after = after

    def encode(self, batch: np.ndarray) -> np.ndarray:
        if len(self.batches) == self.after:
            raise KeyboardInterrupt
        return super().encode(batch)


@pytest.mark.usefixtures("small_shards")
def test_only_what_is_missing_is_encoded(images: Path, output: Path) -> None:
    damage(images)
    whole = encode(images, output.with_name("whole.npz"), batch_size=2)
    with pytest.raises(KeyboardInterrupt):
        encode(images, output, Interrupted(5), batch_size=2)
    parts = sorted(output.with_name("features.npz.parts").glob("*.npz"))
    assert len(parts) == 2
    parts[0].write_bytes(parts[0].read_bytes()[:-100])  # cut off: it is made again
    said: list[str] = []
    encoder = Colours()
    report = encode(images, output, encoder, batch_size=2, say=said.append)
    assert said == ["features.npz.parts: 4 images encoded before, going on from there"]
    assert (report.encoded, report.kept) == (25, 4)
    assert sum(encoder.batches) == 20  # the readable ones but for four
    assert report.skipped == whole.skipped
    assert output.read_bytes() == output.with_name("whole.npz").read_bytes()
    assert not output.with_name("features.npz.parts").exists()


@pytest.mark.usefixtures("small_shards")
@pytest.mark.parametrize("change", ["images", "encoder", "batch size"])
def test_parts_of_something_else_are_not_used(images: Path, output: Path, change: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        encode(images, output, Interrupted(3), batch_size=4)
    if change == "images":
        save(images / "cat" / "0.png", (99, 0, 0))
    said: list[str] = []
    encoder = Colours(weights="1" if change == "encoder" else "0")
    size = 3 if change == "batch size" else 4
    report = encode(images, output, encoder, batch_size=size, say=said.append)
    assert said == [f"features.npz.parts: started over, as this is of other {change}"]
    assert report.kept == 0
    assert sum(encoder.batches) == 24


@needs_proc
def test_killed_in_the_middle_the_same_command_goes_on(
    images: Path, output: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kill -9 of the whole command; what it had written is not made again."""
    for number in range(600):
        shutil.copy(images / "cat" / f"{number % 8}.png", images / "emu" / f"more{number}.png")
    batches = 2 * encoding.PART // 8 + 1
    command = ["encode", str(images), "-o", str(output), "--batch-size", "8"]
    start = (
        "import pathlib, sys\n"
        "from frugalvae import encoders\n"
        "from frugalvae.cli import main\n"
        "from tests.colours import Held\n"
        "gate = pathlib.Path(sys.argv.pop(1))\n"
        f"encoders.make_encoder = lambda *_: Held(gate, after={batches})\n"
        "main.main(sys.argv[1:])"
    )
    parts = output.with_name("features.npz.parts")
    gate = str(output.with_name("gate"))
    with subprocess.Popen([sys.executable, "-c", start, gate, *command], cwd=ROOT) as process:
        wait_until(lambda: len(list(parts.glob("0*.npz"))) >= 2 or process.poll() is not None)
        process.kill()
    kept = encoding.PART * len(list(parts.glob("0*.npz")))
    assert kept == 2 * encoding.PART
    assert not output.exists()
    monkeypatch.setattr("frugalvae.encoders.make_encoder", lambda *_: Colours())
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert f"{kept:,} images encoded before, going on from there" in printed
    assert f"\n{624 - kept:,} images in " in printed
    command[3] = str(output.with_name("whole.npz"))
    assert main(command) == 0
    assert output.read_bytes() == output.with_name("whole.npz").read_bytes()
    assert not parts.exists()


# --------------------------------------------------------------------------- the command


def test_the_command_says_what_it_did(
    images: Path, output: Path, clip_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(images)
    options = ["--encoder", "transformers", "--model", str(clip_folder)]
    assert main(["encode", str(images), "-o", str(output), *options]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "set: 29 images of 4 classes, 23 for training and 6 for the test"
    assert lines[1].startswith("29 images in ")
    assert lines[2:4] == ["left out as unreadable, 5 images:", "  cat/empty.png: the file is empty"]
    assert lines[8] == "class 'gnu' is left out: no training image of it can be read"
    assert "test features of 24 numbers, and a text feature a class" in lines[9]
    assert lines[10] == f"written: {output}"
    features = load_features(output)
    assert features.encoder is not None
    assert features.encoder["model"] == "small-clip"
    assert main(["encode", str(images), "-o", str(output), "--quiet", *options]) == 0
    assert main(["encode", str(images), "-o", str(output), "--strict", *options]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("frugalvae: 5 files cannot be read; nothing was written.")
    assert captured.out.count("\n") == 1  # of the last command alone


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--encoder", "resnet18"], "there is no frozen encoder 'resnet18'"),
        (["--encoder", "onxx"], "Did you mean 'onnx'"),
        (["--encoder", "transformers"], "such as openai/clip-vit-large-patch14"),
        (["--encoder", "efficientnet", "--model", "b7"], "model is 'b7'. Choices: 'lite0'"),
        (["--encoder", "onnx", "--model", "./nowhere"], "./nowhere: there is no such folder"),
    ],
)
def test_wrong_options_are_told(
    images: Path,
    output: Path,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    message: str,
) -> None:
    assert main(["encode", str(images), "-o", str(output), *options]) == 2
    assert message in capsys.readouterr().err
    assert not output.exists()


@needs_proc
def test_on_ray_a_worker_is_killed_and_the_features_are_the_same(
    images: Path,
    output: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install '.[ray]'")
    damage(images)
    for number in range(200):
        shutil.copy(images / "cat" / f"{number % 8}.png", images / "dax" / f"more{number}.png")
    held = Held(output.with_name("gate"))
    encoders = [Colours(), held]
    monkeypatch.setattr("frugalvae.encoders.make_encoder", lambda _: encoders.pop())
    killed: list[int] = []
    threading.Thread(target=kill_a_run, args=(killed, "_ray_task", held.gate), daemon=True).start()
    command = ["encode", str(images), "-o", str(output), "--encoder", "efficientnet"]
    assert main([*command, "--ray", "--jobs", "2"]) == 0
    assert len(killed) == 1
    on_ray = capsys.readouterr().out
    command[3] = str(output.with_name("here.npz"))
    assert main(command) == 0
    assert output.read_bytes() == output.with_name("here.npz").read_bytes()
    _, start, unreadable = capsys.readouterr().out.partition("left out as unreadable, 5 images:")
    assert start + unreadable.partition("written")[0] in on_ray
