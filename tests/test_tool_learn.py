"""``frugalvae learn``: what is found in folders, what is new, and what is refused."""

from __future__ import annotations

import io
import os
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from lab.benchmarks import birds
from PIL import Image

from frugalvae import FrugalClassifier, encoding
from frugalvae.cli.main import main
from frugalvae.images.feature_file import Features, write_features
from frugalvae.labels import check_case
from tests.conftest import blobs
from tests.test_encode import Interrupted
from tests.test_images import save
from tests.tool import QUICK, Encoders, Tool, paint

# --------------------------------------------------------------------------- what is new


def test_the_first_call_makes_the_file_and_later_ones_learn_what_is_new(
    tool: Tool, encoders: Encoders
) -> None:
    lines = tool.learn(paint(tool.folder / "one", "cat", "dax")).splitlines()
    assert lines[0] == "12 images of 2 new classes: cat, dax"
    assert lines[1].startswith("learned 2 classes from 12 images in ")
    assert lines[2].startswith(f"{tool.file}: 2 classes, ")
    lines = tool.learn(paint(tool.folder / "more", "cat", "emu")).splitlines()
    assert lines[0] == "6 images of 1 new class: emu"
    assert lines[1] == "6 images taught before, and not counted again"
    assert tool.classes == ["cat", "dax", "emu"]
    assert encoders.images == 18  # of what was taught none
    assert FrugalClassifier.load(tool.file).encoder_["weights"] == "0"


def test_nothing_new_leaves_the_file_alone(tool: Tool, encoders: Encoders) -> None:
    images = paint(tool.folder / "one", "cat", "dax")
    tool.learn(images)
    before = tool.file.read_bytes()
    lines = tool.learn(images).splitlines()
    assert lines[0] == "12 images taught before, and not counted again"
    assert lines[1] == f"nothing new in {images}; {tool.file} is as it was"
    assert tool.file.read_bytes() == before
    assert tool.beside == ["birds.frugal", "birds.frugal.undo"]


def test_json_and_quiet(tool: Tool) -> None:
    images = paint(tool.folder / "one", "cat", "dax")
    (images / "dax" / "empty.png").touch()
    report = tool.json("learn", images, "--memory", "none", "--head", "lda")
    assert report["learned"] == {"cat": 6, "dax": 6}
    assert report["unreadable"] == {"dax/empty.png": "the file is empty"}
    assert report["encoder"]["encoder"] == "colours"
    assert tool.json("learn", images)["known"] == ["cat", "dax"]
    assert tool("learn", images, "--quiet") == ""


def test_parts_are_chosen_when_the_file_is_made_and_never_again(tool: Tool) -> None:
    one, two = paint(tool.folder / "one", "cat", "dax"), paint(tool.folder / "two", "emu")
    tool(
        "learn",
        one,
        "--memory",
        "none",
        "--head",
        "lda",
        "--set",
        "head.shrinkage=0.5",
        "--seed",
        3,
    )
    made = FrugalClassifier.load(tool.file)
    assert (made.memory, made.head.shrinkage, made.random_state) == ("none", 0.5, 3)
    before = tool.file.read_bytes()
    for options in (
        ["--memory", "none"],
        ["--head=lda"],
        ["--seed=3"],
        ["--set=head.shrinkage=0.5"],
    ):
        error = tool("learn", two, *options, code=2)
        assert f"{tool.file} exists already: {options[0].split('=')[0]} can be" in error
    assert tool.file.read_bytes() == before


# --------------------------------------------------------------------------- folders


def test_a_folder_of_images_alone_is_one_class(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    images = paint(tool.folder / "one", "cat", "dax")
    (images / "cat" / "notes.txt").write_text("seen on Monday")
    assert "left out, not an image: 1 (notes.txt)" in tool.learn(images / "cat")
    monkeypatch.chdir(images / "dax")
    tool.learn(".")
    assert tool.classes == ["cat", "dax"]


def test_train_is_learned_and_test_is_left_alone(tool: Tool) -> None:
    paint(tool.folder / "set" / "train", "cat", "dax")
    paint(tool.folder / "set" / "test", "cat", "dax")
    said = tool.learn(tool.folder / "set")
    note = "taken: train/ (12 images for training); left alone: test/ (12 images for the test)"
    assert said.startswith(f"{note}\n12 images of 2 new")
    assert tool.classes == ["cat", "dax"]


def test_what_is_no_image_is_told(tool: Tool) -> None:
    images = paint(tool.folder / "one", "cat", "dax")
    (images / "empty").mkdir()
    (images / "notes.txt").write_text("all of it")
    (images / "cat" / ".DS_Store").touch()
    os.mkfifo(images / "cat" / "pipe.png")  # reading it would wait for ever
    lines = tool.learn(images).splitlines()
    assert lines[:4] == [
        "left out, hidden, or a system's own: 1 (cat/.DS_Store)",
        "left out, not a regular file: 1 (cat/pipe.png)",
        "left out, a folder without images: 1 (empty/)",
        "left out, not an image: 1 (notes.txt)",
    ]
    assert tool.classes == ["cat", "dax"]


def test_a_name_is_one_class_however_its_accents_are_written(tool: Tool) -> None:
    composed, apart = (unicodedata.normalize(form, "Rüppell") for form in ("NFC", "NFD"))
    for number, name in enumerate((composed, apart)):
        save(tool.folder / "one" / name / f"{number}.png", (9, 9, number))
        save(tool.folder / "one" / name / f"{number + 2}.png", (9, 8, number))
    said = tool.learn(paint(tool.folder / "one", "cat"))
    assert "class 'Rüppell': several folders write it differently" in said
    assert tool.classes == [composed, "cat"] or tool.classes == ["cat", composed]
    save(tool.folder / "two" / apart / "1.png", 0)
    assert "1 more image of 1 known class: Rüppell" in tool.learn(tool.folder / "two")
    assert "nothing new" in tool.learn(tool.folder / "two")


def test_names_that_differ_only_in_case_are_asked_about(tool: Tool) -> None:
    images = paint(tool.folder / "one", "cat", "dax")
    tool.learn(images)
    (images / "dax").rename(images / "Cat")
    error = tool.learn(images, code=2)
    assert "classes 'cat' and 'Cat' differ only in upper and lower case" in error
    tool.learn(images, "--case-matters")
    assert sorted(tool.classes) == ["Cat", "cat", "dax"]
    check_case(["a", "b"], ["c"])


def test_links_are_followed_but_never_in_circles(tool: Tool) -> None:
    images = paint(tool.folder / "one", "cat", "dax")
    (images / "cat" / "self").symlink_to(images)
    (images / "dax" / "up").symlink_to(images / "dax")
    (images / "emu").symlink_to(paint(tool.folder / "elsewhere", "emu") / "emu")
    said = tool.learn(images)
    assert "left out, the same folder again, by a link: 2 (cat/self/, dax/up/)" in said
    assert tool.classes == ["cat", "dax", "emu"]


def test_what_has_no_classes_is_refused(tool: Tool) -> None:
    images = paint(tool.folder / "one", "cat", count=2)
    for number in range(3):
        save(images / f"{number}.png", 0)
    error = tool.learn(images, code=2)
    assert "one: 3 images are in no class's folder, and 2 are in folders" in error
    (tool.folder / "empty").mkdir()
    assert "no images in it" in tool.learn(tool.folder / "empty", code=2)
    assert "there is no such file or folder" in tool.learn(tool.folder / "absent", code=2)
    error = tool.learn(images / "1.png", code=2)
    assert "neither a folder nor a readable zip archive" in error
    os.mkfifo(tool.folder / "pipe")  # opening it would wait for ever
    assert "not a regular file" in tool.learn(tool.folder / "pipe", code=2)
    assert tool.beside == []


# --------------------------------------------------------------------------- images


def test_every_kind_of_damaged_image_is_left_out_and_named(tool: Tool) -> None:
    images = paint(tool.folder / "one", "cat", "dax")
    (images / "cat" / "empty.jpg").touch()
    buffer = io.BytesIO()
    Image.effect_noise((64, 64), 90).save(buffer, "jpeg")
    (images / "cat" / "cut.jpg").write_bytes(buffer.getvalue()[:1500])
    (images / "cat" / "lost.png").symlink_to("nowhere.png")
    (images / "gone").mkdir()
    (images / "gone" / "1.png").write_text("no image")
    refused = tool.learn(images, "--strict", code=2)
    assert "4 files cannot be read; nothing was written" in refused
    assert not tool.file.exists()
    said = tool.learn(images)
    assert "left out as unreadable, 4:" in said
    for line in (
        "  cat/cut.jpg: image file is truncated",
        "  cat/empty.jpg: the file is empty",
        "  cat/lost.png: No such file or directory",
        "  gone/1.png: it is in no known format of images",
        "class 'gone' is left out: no image of it can be read",
    ):
        assert line in said
    assert tool.classes == ["cat", "dax"]


def test_an_animation_and_a_vast_image_are_learned(tool: Tool, encoders: Encoders) -> None:
    images = paint(tool.folder / "one", "cat", "dax", count=1)
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "green", "blue")]
    frames[0].save(images / "cat" / "moving.gif", save_all=True, append_images=frames[1:])
    Image.new("1", (20_000, 10_000)).save(images / "dax" / "vast.png")
    said = tool.learn(images)
    assert "learned 2 classes from 4 images" in said
    assert "unreadable" not in said


def test_nothing_readable_is_an_error(tool: Tool) -> None:
    (tool.folder / "one" / "cat").mkdir(parents=True)
    (tool.folder / "one" / "cat" / "1.png").touch()
    error = tool.learn(tool.folder / "one", code=2)
    assert "no image of a new class can be read:\n  cat/1.png: the file is empty" in error
    assert not tool.file.exists()


# --------------------------------------------------------------------------- going on


def test_interrupted_it_goes_on_where_it_stopped(
    tool: Tool, encoders: Encoders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoding, "PART", 4)
    images = paint(tool.folder / "one", "cat", "dax")
    monkeypatch.setattr("frugalvae.encoders.make_encoder", lambda _: Interrupted(2))
    said = tool.learn(images, "--batch-size", 4, code=130)
    assert said == (
        "frugalvae: interrupted; what is encoded is kept, and the same command continues\n"
    )
    assert tool.beside == ["birds.frugal.parts"]
    monkeypatch.setattr("frugalvae.encoders.make_encoder", encoders)
    said = tool.learn(images, "--batch-size", 4)
    assert "birds.frugal.parts: 8 images encoded before, going on from there" in said
    assert encoders.images == 4
    assert tool.beside == ["birds.frugal", "birds.frugal.undo"]


# --------------------------------------------------------------------------- encoders and features


def written(path: Path, labels: list[int], **more: object) -> Path:
    task = blobs(labels)
    x, y = task.features, task.labels
    write_features(path, Features("blobs", x, y, x[:1], y[:1], **more))  # type: ignore[arg-type]
    return path


def test_a_feature_file_may_have_one_part_alone(tool: Tool) -> None:
    pytest.importorskip("jinja2", reason="pages need the extra report")
    task = blobs([0, 1])
    x, y = task.features.astype(np.float32), task.labels
    train, test = tool.folder / "train.npz", tool.folder / "test.npz"
    np.savez(train, x_train=x, y_train=np.array(["cat", "dax"])[y])
    np.savez(test, x_test=x, y_test=np.array(["cat", "dax"])[y])
    assert "learned 2 classes from 40 samples" in tool.learn(train)
    page = tool.folder / "page.html"
    assert tool.json("evaluate", test, "-o", page)["samples"] == 40
    assert "x_train is missing; y_train is missing" in tool("learn", test, code=2)
    assert "x_test is missing; y_test is missing" in tool("evaluate", train, "-o", page, code=2)


def test_feature_files_are_learned_as_images_are(tool: Tool) -> None:
    identity = {"encoder": "clip", "model": "b32", "weights": "abc"}
    one = written(tool.folder / "one.npz", [0, 1], encoder=identity)
    assert "learned 2 classes from 40 samples" in tool.learn(one)
    two = written(tool.folder / "two.npz", [1, 2], encoder=identity | {"model": "renamed"})
    assert "20 more samples of 1 known class: 1" in tool.learn(two)
    assert tool.classes == [0, 1, 2]
    other = written(tool.folder / "other.npz", [3], encoder=identity | {"weights": "def"})
    error = tool.learn(other, code=2)
    assert "weights differ (clip b32, weights def, expected clip b32, weights abc)" in error
    untold = written(tool.folder / "untold.npz", [4])
    tool.learn(untold)
    assert tool.classes == [0, 1, 2, 4]


def test_an_encoder_is_refused_where_nothing_is_encoded(tool: Tool) -> None:
    path = written(tool.folder / "one.npz", [0, 1])
    for words, named in (
        (["--encoder", "transformers", "--model", "nonsense"], "leave out --encoder and --model"),
        (["--set=encoder.size=3"], "leave out --set encoder"),
    ):
        error = tool.learn(path, *words, code=2)
        assert f"{path} holds features, so no image is encoded; {named}" in error
    assert not tool.file.exists()
    tool.learn(path)
    for verb, *words in (("predict", path), ("learn", path, "--class", 0), ("evaluate", path)):
        assert "leave out --model" in tool(verb, *words, "--model", "x", code=2)


def test_what_is_not_known_of_an_encoder_is_not_made_up(tool: Tool) -> None:
    tool.learn(written(tool.folder / "untold.npz", [0, 1]))
    tool.learn(written(tool.folder / "told.npz", [2], encoder={"encoder": "clip", "weights": "a"}))
    assert tool.classes == [0, 1, 2]
    assert tool.json("status")["encoder"] is None


def test_texts_of_names_are_learned_however_they_are_written(tool: Tool) -> None:
    pytest.importorskip("torch", reason="the memory or the head needs PyTorch")
    composed, apart = (unicodedata.normalize(form, "Rüppell") for form in ("NFC", "NFD"))
    x, y = np.eye(4, dtype=np.float32), np.array([apart, apart, "cat", "cat"])
    text = {apart: x[0], "cat": x[1]}
    write_features(tool.folder / "x.npz", Features("x", x, y, x[:1], y[:1], text))
    tool("learn", tool.folder / "x.npz", "--memory=gaussian-diagonal", "--set=head.start=text")
    assert tool.classes == ["cat", composed] or tool.classes == [composed, "cat"]
    assert len(FrugalClassifier.load(tool.file).head_.text_) == 2


def test_images_of_another_encoder_are_refused(tool: Tool, encoders: Encoders) -> None:
    tool.learn(paint(tool.folder / "one", "cat", "dax"))
    encoders.weights = "1"
    before = tool.file.read_bytes()
    error = tool.learn(paint(tool.folder / "two", "emu"), code=2)
    assert f"the encoder here does not fit {tool.file}: weights differ" in error
    error = tool.learn(tool.folder / "two", "--encoder", "transformers", "--model", "x", code=2)
    assert "--encoder transformers: " in error
    assert "was taught with efficientnet" in error
    assert tool.file.read_bytes() == before


def test_a_file_of_unknown_features_cannot_look_at_images(tool: Tool) -> None:
    tool.learn(written(tool.folder / "one.npz", [0, 1]))
    error = tool.learn(paint(tool.folder / "two", "emu"), code=2)
    assert "was taught features of an unknown encoder" in error


def test_the_clip_of_a_file_is_remembered(
    tmp_path: Path, clip_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tool = Tool(tmp_path, capsys)
    one, two = paint(tmp_path / "one", "cat", "dax"), paint(tmp_path / "two", "emu")
    assert "which model is its transformers? Give --model" in tool.learn(
        one, "--encoder", "transformers", code=2
    )
    tool.learn(one, "--encoder", "transformers", "--model", clip_folder)
    tool.learn(two, "--model", clip_folder)
    assert tool.classes == ["cat", "dax", "emu"]
    remembered = FrugalClassifier.load(tool.file).encoder_
    assert remembered["given"] == {"name": "transformers", "settings": {"model": str(clip_folder)}}
    answers = tool.json("predict", two, "--trust", clip_folder)["predictions"]
    assert [answer["label"] for answer in answers] == ["emu"] * 6


def test_the_whole_way_with_efficientnet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tool = Tool(tmp_path, capsys)
    rng = np.random.default_rng(0)
    for name, colour in (("red", (200, 40, 40)), ("blue", (40, 40, 200)), ("grey", (90, 90, 90))):
        for number in range(4):
            pixels = rng.normal(colour, 20, (48, 40, 3)).clip(0, 255).astype(np.uint8)
            place = tmp_path / ("two" if name == "grey" else "one") / name / f"{number}.jpg"
            place.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels).save(place)
    tool.learn(tmp_path / "one", "--set", "encoder.size=64")
    tool.learn(tmp_path / "two")
    assert tool.classes == ["blue", "red", "grey"]
    answers = tool.json("predict", tmp_path / "one", tmp_path / "two")["predictions"]
    assert [Path(answer["input"]).parent.name for answer in answers] == [
        answer["label"] for answer in answers
    ]
    assert tool.json("status")["encoder"]["model"] == "efficientnet-lite0"


def test_birds_that_are_not_there_are_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FRUGALVAE_DATA", str(tmp_path))
    birds.main()
    assert f"skipped: there are no birds in {tmp_path}" in capsys.readouterr().out


def test_help_tells_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "exit codes:\n  0    done\n  1    partly done" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("  ", "expected a name that can be read"),
        ("two\nlines", "without control characters"),
        ("\x1b[31mred", "without control characters"),
        ("\u202egnol", "without control characters"),
        ("DAX", "classes 'dax' and 'DAX' differ only in upper and lower case"),
        ("dax", "class 'dax' is already known"),
    ],
)
def test_names_that_would_confuse_are_refused(
    tool: Tool, encoders: Encoders, name: str, message: str
) -> None:
    tool.learn(paint(tool.folder / "one", "cat", "dax"))
    assert message in tool("rename", "cat", name, code=2)
    assert tool.classes == ["cat", "dax"]
    tool("rename", "cat", "DAX", "--case-matters")
    assert tool.classes == ["DAX", "dax"]


def test_a_class_of_few_images_beside_larger_ones_is_warned_of(tool: Tool) -> None:
    images = paint(tool.folder / "one", "cat", "dax")
    for path in sorted((images / "dax").iterdir())[1:]:
        path.unlink()
    warning = "fewer than 5 samples, and so often missed: dax"
    assert f"warning: {warning}" in tool.learn(images)
    assert any(line.startswith(warning) for line in tool.json("status")["warnings"])


def test_the_folder_may_stand_behind_options(tool: Tool) -> None:
    photos = paint(tool.folder / "photos", "cat", "emu")
    assert "2 new classes" in tool("learn", *QUICK, "--dry-run", photos)
    assert "learn takes one folder" in tool("learn", photos, "--dry-run", "another", code=2)
