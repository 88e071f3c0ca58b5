"""What is in a folder: one set of rules for folders, zip archives, flat folders and all verbs."""

from __future__ import annotations

import os
import shutil
import unicodedata
import zipfile
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from frugalvae import FrugalClassifier, PhotoClassifier
from frugalvae.cli.main import main
from frugalvae.errors import InputError
from frugalvae.images.classes import HIDDEN, read_file, role_of, walk
from frugalvae.images.feature_file import load_features
from frugalvae.labels import check_case
from frugalvae.samples import Samples, open_samples
from tests.test_images import save, zipped
from tests.tool import SHADES, Encoders, Tool, paint

COMPOSED, APART = (unicodedata.normalize(form, "Rüppell") for form in ("NFC", "NFD"))


def made(root: Path, *paths: str) -> Path:
    """A folder with images at these paths; ``cat*3`` stands for three images in a folder."""
    for path in paths:
        name, _, count = path.partition("*")
        if count or not name.endswith(".png"):
            for number in range(int(count or 2)):
                save(root / name / f"{number}.png", (number, 0, 0))
        else:
            save(root / name)
    return root


def listed(root: Path, wanted: Any = "learning", **how: Any) -> Samples:
    with open_samples(root, wanted, **how) as images:
        return images


def classes(root: Path, wanted: Any = "learning", **how: Any) -> dict[str, int]:
    """How many images each class has."""
    return dict(sorted(Counter(listed(root, wanted, **how).labels.tolist()).items()))


@pytest.fixture(params=["folder", "zip", "wrapped zip"])
def given(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Path]:
    """Makes a folder of images, or an archive of it."""

    def make(*paths: str, name: str = "set") -> Path:
        root = made(tmp_path / name, *paths)
        if request.param == "folder":
            return root
        prefix = "wrapper/" if request.param == "wrapped zip" else ""
        if prefix and all(path.count("/") == 0 and path.endswith(".png") for path in paths):
            pytest.skip("a folder of images alone is a class, also in an archive")
        return zipped(root, tmp_path / f"{name}.zip", prefix)

    return make


# --------------------------------------------------------------------------- training and test


@pytest.mark.parametrize(
    ("train", "test"),
    [
        ("train", "test"),
        ("Train", "Test"),
        ("TRAIN", "TEST"),
        ("training", "testing"),
        ("train", "val"),
        ("train", "valid"),
        ("Train", "Validation"),
        ("train", "dev"),
    ],
)
def test_parts_never_become_classes(given: Callable[..., Path], train: str, test: str) -> None:
    root = given(f"{train}/cat*3", f"{train}/dax*2", f"{test}/cat*1", f"{test}/dax*1")
    learned, tested = listed(root), listed(root, "testing")
    assert Counter(learned.labels.tolist()) == {"cat": 3, "dax": 2}
    assert Counter(tested.labels.tolist()) == {"cat": 1, "dax": 1}
    assert learned.notes[0].startswith(f"taken: {train}/ (5 images for training); left alone: ")
    assert f"{test}/ (2 images for " in learned.notes[0]
    assert tested.notes[0].startswith(f"taken: {test}/ (2 images for ")
    both = listed(root, "both")
    assert both.test.sum() == 2
    assert both.classes == ["cat", "dax"]


def test_of_three_parts_the_validation_is_left_alone(given: Callable[..., Path]) -> None:
    root = given("train/cat*3", "validation/cat*2", "test/cat*1")
    for wanted, count in (("learning", 3), ("testing", 1), ("both", 4)):
        images = listed(root, wanted)
        assert len(images.files) == count
        assert "validation/ (2 images for validation)" in images.notes[0].split("left alone")[1]


def test_parts_may_be_wrapped_in_one_more_folder_or_be_inside_of_classes(tmp_path: Path) -> None:
    wrapped = made(tmp_path / "one", "birds-v2/train/cat*3", "birds-v2/test/cat*1")
    assert classes(wrapped) == {"cat": 3}
    assert classes(wrapped, "testing") == {"cat": 1}
    inside = made(tmp_path / "two", "cat/train*3", "cat/test*1", "dax/train*2", "dax/test*1")
    assert classes(inside) == {"cat": 3, "dax": 2}
    assert classes(inside, "testing") == {"cat": 1, "dax": 1}
    assert "left alone: */test/ (2 images for the test)" in listed(inside).notes[0]


def test_a_class_may_be_called_test_or_train(tmp_path: Path) -> None:
    lone = made(tmp_path / "one", "test*3")
    assert classes(lone) == {"test": 3}
    assert listed(lone).notes == ["a class, though named as a part of a data set: test/"]
    assert classes(made(tmp_path / "two", "bicycle", "train")) == {"bicycle": 2, "train": 2}
    flat = made(tmp_path / "three", "test*3", "train*3")
    with pytest.raises(InputError, match="three: test/, train/ hold images and no folders of cl"):
        listed(flat)
    assert classes(flat, depth=1) == {"test": 3, "train": 3}
    nested = made(tmp_path / "four", "bicycle/city", "train/steam")
    with pytest.raises(InputError, match="train/ is named as a part of a data set, and bicycle/"):
        listed(nested)
    assert classes(nested, depth=1) == {"bicycle": 2, "train": 2}
    assert classes(nested, known=["bicycle", "train"]) == {"bicycle": 2, "train": 2}


def test_a_part_that_is_missing_is_told(tmp_path: Path) -> None:
    train, test = made(tmp_path / "one", "train/cat*4"), made(tmp_path / "two", "test/cat*4")
    assert classes(train) == classes(test, "testing") == {"cat": 4}
    with pytest.raises(InputError, match="one: there is train/ and no folder for the test; give"):
        listed(train, "testing")
    with pytest.raises(InputError, match="two: there is test/ and no folder for training; give"):
        listed(test)
    assert listed(train, "both").test.sum() == 1  # a quarter


def test_what_is_beside_the_parts_is_left_out_and_what_is_not_plain_is_refused(
    tmp_path: Path,
) -> None:
    root = made(tmp_path / "one", "train/cat*3", "test/cat*1", "unlabelled*5", "cover.png")
    images = listed(root)
    assert images.classes == ["cat"]
    beside = [path for path, why in images.skipped.items() if "next to the folders" in why]
    assert len(beside) == 6
    mixed = made(tmp_path / "two", "cat/train", "cat/test", "dax*3")
    with pytest.raises(InputError, match="cat/test/, cat/train/ are named as parts of a data set"):
        listed(mixed)
    kaggle = made(tmp_path / "three", "train/cat*3", "test*2")
    assert classes(kaggle) == {"cat": 3}
    with pytest.raises(InputError, match="the images of test/ are in no class's folder"):
        listed(kaggle, "testing")


def test_roles() -> None:
    assert [role_of(name) for name in ("Trainset", "VAL", "testing", "cattle")] == [
        "training",
        "validation",
        "the test",
        None,
    ]


# --------------------------------------------------------------------------- how deep classes are


def test_folders_inside_a_class_belong_to_it(given: Callable[..., Path]) -> None:
    root = given("Cardinal/cam 1/2024-05*3", "Cardinal/cam 2*2", "Bobolink*4")
    images = listed(root)
    assert Counter(images.labels.tolist()) == {"Cardinal": 5, "Bobolink": 4}
    assert images.notes == [
        "folders inside a class belong to it: Cardinal/cam 1/2024-05, Cardinal/cam 2; --depth 3 "
        "makes classes of them"
    ]
    assert len(classes(root, depth=3)) == 3
    assert classes(root, depth=2) == {"Bobolink": 4, "Cardinal/cam 1": 3, "Cardinal/cam 2": 2}


def test_classes_of_the_first_level_here_and_deeper_there_are_not_guessed(
    given: Callable[..., Path],
) -> None:
    root = given("Fruit/Apple/Gala", "Fruit/Banana", "Packages/Milk/Oat", "Packages/Juice/Pear")
    with pytest.raises(InputError) as caught:
        listed(root)
    assert str(caught.value) == (
        f"{root.stem}: folders with images are at different depths. If the first level is the "
        "class, such as Fruit, give --depth 1; if every folder with images is one, such as "
        "Packages/Juice/Pear, give --depth 3"
    )
    assert classes(root, depth=1) == {"Fruit": 4, "Packages": 4}
    leaves = ("Fruit/Apple/Gala", "Fruit/Banana", "Packages/Juice/Pear", "Packages/Milk/Oat")
    assert classes(root, depth=3) == dict.fromkeys(leaves, 2)
    assert classes(root, known=leaves) == dict.fromkeys(leaves, 2)


def test_one_folder_with_a_few_images_around_others_is_not_guessed(tmp_path: Path) -> None:
    for place in ("camera/emu/1", "camera/emu/2", "camera/owl/3", "camera/4"):
        save(tmp_path / "set" / f"{place}.png")
    with pytest.raises(InputError) as caught:
        listed(tmp_path / "set")
    assert str(caught.value) == (
        "set: 1 image in camera/ itself, and 3 in 2 folders inside it. If these are the classes, "
        "give camera/ itself; if camera is the class, give --depth 1"
    )
    assert classes(tmp_path / "set", depth=1) == {"camera": 4}
    assert classes(tmp_path / "set", known=["camera"]) == {"camera": 4}
    images = listed(tmp_path / "set" / "camera")
    assert images.classes == ["emu", "owl"]
    assert images.skipped == {"4.png": "in no class's folder"}
    packed = zipped(tmp_path / "set", tmp_path / "set.zip")
    assert listed(packed).classes == ["emu", "owl"]
    assert listed(packed).skipped == images.skipped
    shutil.rmtree(tmp_path / "set" / "camera" / "owl")
    assert classes(tmp_path / "set") == {"camera": 3}


def test_a_folder_with_images_of_its_own_is_the_class(given: Callable[..., Path]) -> None:
    root = given("birds/emu*2", "birds/emu/young*3", "birds/owl", "cat")
    assert classes(root) == {"birds/emu": 5, "birds/owl": 2, "cat": 2}


def test_classes_of_one_depth_are_the_innermost_folders_unless_said_otherwise(
    given: Callable[..., Path],
) -> None:
    root = given("Cardinal/cam 1", "Cardinal/cam 2", "Bobolink/cam 1")
    images = listed(root)
    assert images.classes == ["Bobolink/cam 1", "Cardinal/cam 1", "Cardinal/cam 2"]
    assert images.notes == [
        "classes are named by the path of their folder, such as Bobolink/cam 1; if the first "
        "level is the class, give --depth 1"
    ]
    assert classes(root, depth=1) == {"Bobolink": 2, "Cardinal": 4}
    assert listed(root, depth=1).notes == []
    assert classes(root, known=["Cardinal"]) == {"Bobolink/cam 1": 2, "Cardinal": 4}


def test_a_link_to_itself_is_told_and_others_are_read(tool: Tool) -> None:
    images = paint(tool.folder / "one", "cat", "dax")
    (images / "cat" / "self.png").symlink_to(images / "cat" / "self.png")
    assert classes(images) == {"cat": 7, "dax": 6}
    told = tool.json("learn", images)
    assert told["learned"] == {"cat": 6, "dax": 6}
    assert list(told["unreadable"]) == ["cat/self.png"]


def test_depth_counts_inside_of_the_parts(tmp_path: Path) -> None:
    root = made(tmp_path / "set", "train/cat/a", "train/cat/b", "test/cat/a")
    assert classes(root, depth=1) == {"cat": 4}
    assert classes(root, "testing", depth=1) == {"cat": 2}


def test_a_folder_of_images_alone_is_one_class(given: Callable[..., Path]) -> None:
    root = given("1.png", "2.png", "3.png", name="emu")
    for wanted in ("learning", "testing", "both"):
        assert classes(root, wanted) == {"emu": 3}
        assert listed(root, wanted).notes == []


def test_loose_images_are_left_out_unless_they_are_most_of_all(tmp_path: Path) -> None:
    root = made(tmp_path / "set", "cat*3", "dax*3", "stray.png")
    images = listed(root)
    assert images.classes == ["cat", "dax"]
    assert images.skipped == {"stray.png": "in no class's folder"}
    for number in range(7):
        save(root / f"{number}.png")
    with pytest.raises(InputError, match="set: 8 images are in no class's folder, and 6 are"):
        listed(root)


# --------------------------------------------------------------------------- names


def test_names_are_composed_and_have_no_blanks_around_them(given: Callable[..., Path]) -> None:
    root = given(f"{APART}*2", f"{COMPOSED}*3", "bobolink *2", " bobolink*1", "cat")
    images = listed(root)
    assert Counter(images.labels.tolist())[COMPOSED] in (3, 5)  # one image may have both paths
    assert classes(root)["bobolink"] == 3
    assert f"class {COMPOSED!r}: several folders write it differently" in images.notes
    assert "class 'bobolink': several folders write it differently" in images.notes


def test_names_that_differ_in_case_or_blanks_are_asked_about() -> None:
    check_case(["a", "b"], ["c"])
    with pytest.raises(InputError, match="'Bobolink' and 'bobolink' differ only in upper and low"):
        check_case(["bobolink"], ["Bobolink"])
    with pytest.raises(InputError, match="'snow bunting' and 'Snow  Bunting' differ only in case"):
        check_case(["Snow  Bunting"], ["snow bunting"])


@pytest.mark.parametrize(
    "name", ["cat\x1b[2J", "cat\ncat", "cat\u202egnp", " ", os.fsdecode(b"\xe9")]
)
def test_names_that_cannot_be_labels_are_refused_by_all_verbs(
    tool: Tool, encoders: Encoders, name: str
) -> None:
    tool.learn(paint(tool.folder / "good", "cat", "dax"))
    before = tool.file.read_bytes()
    root = tool.folder / "set"
    save(root / "cat" / "1.png")
    try:
        save(root / name / "1.png")
    except OSError:
        pytest.skip("this disk has no such names")
    for words in (
        ["learn", tool.file, root],
        ["evaluate", tool.file, root, "-o", tool.folder / "page.html"],
        ["encode", root, "-o", tool.folder / "x.npz"],
    ):
        assert main([str(word) for word in words]) == 2
        error = tool.capsys.readouterr().err
        assert "cannot be a class: its name is blank, has control characters, or is not" in error
        assert name == " " or name not in error
    with pytest.raises(InputError, match="cannot be a class"):
        PhotoClassifier().learn(root)
    assert tool.file.read_bytes() == before


def test_names_of_files_that_are_not_utf8_work_in_all_verbs(tool: Tool, encoders: Encoders) -> None:
    needing_pages()
    odd = os.fsdecode(b"caf\xe9\x1b.png")
    root = paint(tool.folder / "set", "cat", "dax")
    try:
        save(root / "cat" / odd, SHADES["cat"])
    except OSError:
        pytest.skip("this disk has no such names")
    (root / "dax" / odd).write_text("no image")
    save(root / odd)
    output = tool.folder / "x.npz"
    quick = ["--memory=gaussian-diagonal", "--head=nearest-mean"]
    for words, code in (
        (["learn", tool.file, root, *quick], 0),
        (["learn", tool.file, root, "--strict"], 2),
        (["learn", tool.file, root / "cat", "--class", "cat"], 0),
        (["learn", tool.file, root / "dax", "--class", "cat", "--flat", "--json"], 0),
        (["predict", tool.file, root], 1),
        (["predict", tool.file, root, "--json"], 1),
        (["predict", tool.file, root, "-o", tool.folder / "answers.csv"], 1),
        (["predict", tool.file, root / "cat" / odd], 0),
        (["evaluate", tool.file, root, "-o", tool.folder / "page.html"], 0),
        (["evaluate", tool.file, root, "-o", tool.folder / "page.html", "--json"], 0),
        (["encode", root, "-o", output, "--set", "encoder.size=32"], 0),
        (["encode", root, "-o", output, "--strict"], 2),
    ):
        assert main([str(word) for word in words]) == code, words
        said = tool.capsys.readouterr()
        assert "\x1b" not in said.out + said.err, words
    assert "cat" in load_features(output).classes


def test_a_folder_whose_own_name_is_not_utf8_is_learned(tool: Tool, encoders: Encoders) -> None:
    odd = os.fsdecode(b"caf\xe9")
    try:
        root = paint(tool.folder / odd, "cat", "dax")
    except OSError:
        pytest.skip("this disk has no such names")
    tool.learn(root)
    assert tool.classes == ["cat", "dax"]
    assert tool.json("history")[0]["source"] == r"caf\xe9"
    assert len(tool.json("predict", root)["predictions"]) == 12
    tool("learn", root / "cat", "--class", "cat")


def test_a_label_may_not_have_control_characters() -> None:
    classifier = FrugalClassifier("gaussian-diagonal").fit(np.eye(2), ["a", "b"])
    for name in ("a\0b", "\x1b[2J", "a\u202eb"):
        with pytest.raises(InputError, match="without control characters"):
            classifier.partial_fit(np.eye(2), [name, "c"])


# --------------------------------------------------------------------------- what is left out


def test_what_systems_keep_in_folders_is_left_out_and_counted(given: Callable[..., Path]) -> None:
    root = given(
        "cat*2",
        "cat/@eaDir/1.png",
        "cat/.thumbnails/1.png",
        "__MACOSX/cat/1.png",
        "$RECYCLE.BIN/x/1.png",
        "#recycle/1.png",
        "dax*2",
        "dax/.hidden.png",
        "lost+found/y/1.png",
    )
    images = listed(root)
    assert images.classes == ["cat", "dax"]
    assert len(images.files) == 4
    assert list(images.skipped.values()) == [HIDDEN] * 7


def test_every_file_is_an_image_or_is_named_with_a_reason(tmp_path: Path) -> None:
    root = made(tmp_path / "set", "cat*2", "dax*2", "loose.png", "dax/linked*2")
    contents = {
        "cat/notes.txt": "not an image",
        "cat/raw.CR2": "a camera's raw file; convert it to JPEG",
        "cat/icon.ico": "an image of a kind that is not read here; convert it to JPEG or PNG",
        "cat/Thumbs.db": HIDDEN,
        "dax/.DS_Store": HIDDEN,
    }
    for path in contents:
        (root / path).write_text("something")
    with (root / "cat" / "huge.jpg").open("wb") as file:
        file.truncate(1 << 38)
    os.mkfifo(root / "cat" / "pipe.png")
    (root / "empty").mkdir()
    (root / "cat" / "again").symlink_to(root / "dax")
    images = listed(root)
    there = {str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir()}
    assert there == set(images.names) | {path for path in images.skipped if not path.endswith("/")}
    assert images.skipped == contents | {
        "cat/huge.jpg": "too large (274.9 GB, the most is 300.0 MB)",
        "cat/pipe.png": "not a regular file",
        "cat/again/": "the same folder again, by a link",
        "empty/": "a folder without images",
        "loose.png": "in no class's folder",
    }


def test_linked_folders_and_images_are_found_under_their_own_names(tmp_path: Path) -> None:
    elsewhere = made(tmp_path / "elsewhere", "emu*3")
    root = made(tmp_path / "set", "zebra*2")
    (root / "emu").symlink_to(elsewhere / "emu")
    (root / "alias").symlink_to(root / "zebra")  # comes first, but is not its name
    (root / "emu loop").symlink_to(root)
    (root / "zebra" / "linked.png").symlink_to(elsewhere / "emu" / "1.png")
    for wanted in ("learning", "testing", "both"):
        assert classes(root, wanted) == {"emu": 3, "zebra": 3}


def test_odd_entries_of_an_archive_are_left_out(tmp_path: Path) -> None:
    save(tmp_path / "1.png")
    content = (tmp_path / "1.png").read_bytes()
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as archive:
        for path in ("cat/1.png", "cat/2.png", "dax\\1.png", "../up.png", "/root.png"):
            archive.writestr(path, content)
        archive.writestr("cat/lzma.png", content, zipfile.ZIP_LZMA)
        for name in (".", ""):
            nameless = zipfile.ZipInfo("x")
            nameless.filename = name
            archive.writestr(nameless, content)
        link = zipfile.ZipInfo("cat/link.png")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("cat/1.png", b"other")
    images = listed(tmp_path / "set.zip")
    assert Counter(images.labels.tolist()) == {"cat": 2, "dax": 1}
    assert images.skipped == {
        "../up.png": "a path that leads out of the archive",
        "/root.png": "a path that leads out of the archive",
        "cat/lzma.png": "packed in a way that is not read here",
        "cat/link.png": "not a regular file",
        "cat/1.png": "there twice in the archive",
        ".": "not a regular file",
    }
    with open_samples(tmp_path / "set.zip", "learning") as opened:
        assert opened.files[0].read() == content


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        with pytest.raises(InputError, match="it is not a regular file"):
            read_file(path)
    with ExitStack() as opened, pytest.raises(InputError, match="not a regular file"):
        walk(Path("/dev/zero"), opened)


# --------------------------------------------------------------------------- all verbs alike


@pytest.fixture
def taught(tool: Tool, encoders: Encoders) -> Tool:
    tool.learn(paint(tool.folder / "known", "cat", "dax", "emu"))
    return tool


def needing_pages() -> None:
    """Skip what writes a page where its packages are not installed."""
    for package in ("jinja2", "matplotlib"):
        pytest.importorskip(package, reason="pip install '.[report]'")


def evaluated(tool: Tool, root: Path, *more: object) -> Any:
    needing_pages()
    return tool.json("evaluate", root, "-o", tool.folder / "page.html", *more)


@pytest.mark.parametrize("packed", [False, True])
def test_a_data_set_is_learned_and_evaluated_by_its_parts(
    tool: Tool, encoders: Encoders, packed: bool
) -> None:
    root = tool.folder / "set"
    paint(root / "Train", "cat", "dax")
    paint(root / "Test", "cat", "dax", count=2)
    paint(root / "Val", "cat", "dax", count=3)
    root = zipped(root, tool.folder / "set.zip", "set/") if packed else root
    assert tool.learn(root).startswith("taken: Train/ (12 images for training); left alone: Test/")
    assert tool.classes == ["cat", "dax"]
    result = evaluated(tool, root)
    assert result["samples"] == 4
    assert result["assumed"][0].startswith("taken: Test/ (4 images for the test); left alone:")
    assert main(["encode", str(root), "-o", str(tool.folder / "x.npz"), "--quiet"]) == 0
    features = load_features(tool.folder / "x.npz")
    assert (len(features.x_train), len(features.x_test)) == (12, 4)
    assert PhotoClassifier().learn(root).classes_.tolist() == ["cat", "dax"]
    assert len(tool.json("predict", root)["predictions"]) == 22


def test_linked_composed_and_flat_folders_work_for_all_verbs(taught: Tool) -> None:
    red, green, blue = SHADES["fox"]
    for number in range(3):
        save(taught.folder / "more" / APART / f"{number}.png", (red, green + number, blue))
    (taught.folder / "links").mkdir()
    (taught.folder / "links" / APART).symlink_to(taught.folder / "more" / APART)
    (taught.folder / "links" / "cat").symlink_to(taught.folder / "known" / "cat")
    taught.learn(taught.folder / "links")
    assert taught.classes[-1] == COMPOSED
    result = evaluated(taught, taught.folder / "links")
    assert (result["samples"], result["accuracy"], result["unknown_classes"]) == (9, 1.0, {})
    assert len(taught.json("predict", taught.folder / "links")["predictions"]) == 9
    flat = taught.folder / "more" / APART
    assert evaluated(taught, flat)["samples"] == 3
    assert evaluated(taught, zipped(flat, taught.folder / f"{APART}.zip"))["samples"] == 3
    assert "3 images taught before" in taught("learn", flat, "--class", COMPOSED)
    assert "3 images taught before" in taught(
        "learn", taught.folder / f"{APART}.zip", "--class", APART
    )


def test_a_class_that_is_written_otherwise_is_told(taught: Tool) -> None:
    root = paint(taught.folder / "test it", "cat", "dax")
    (root / "dax").rename(root / "Dax ")
    result = evaluated(taught, root)
    assert result["unknown_classes"] == {"Dax": 6}
    assert result["assumed"][0] == "class 'Dax' is not known; rename its folder if 'dax' is meant"
    error = taught.learn(root, code=2)
    assert "classes 'dax' and 'Dax' differ only in upper and lower case" in error


def test_depth_is_an_option_of_learn_evaluate_and_encode(tool: Tool, encoders: Encoders) -> None:
    root = tool.folder / "set"
    for name in ("cat", "dax"):
        for camera in ("cam 1", "cam 2"):
            paint(root / camera, name)
            (root / name).mkdir(exist_ok=True)
            (root / camera / name).rename(root / name / camera)
    (root / "cam 1").rmdir()
    (root / "cam 2").rmdir()
    tool.learn(root, "--depth", 1)
    assert tool.classes == ["cat", "dax"]
    assert evaluated(tool, root)["accuracy"] == 1.0  # folders inside known classes
    assert evaluated(tool, root, "--depth", 1)["accuracy"] == 1.0
    assert "nothing new" in tool.learn(root)
    output = str(tool.folder / "x.npz")
    assert main(["encode", str(root), "-o", output, "--depth", "1", "--quiet"]) == 0
    assert load_features(tool.folder / "x.npz").classes.tolist() == ["cat", "dax"]
    assert PhotoClassifier().learn(root, depth=1).classes_.tolist() == ["cat", "dax"]


def test_one_class_takes_no_images_of_other_classes(taught: Tool, encoders: Encoders) -> None:
    before, done = taught.file.read_bytes(), encoders.images
    error = taught("learn", taught.folder / "known", "--class", "cat", code=2)
    assert "known is or has folders of other classes: dax, emu; give the folder" in error
    error = taught("learn", taught.folder / "known" / "dax", "--class", "cat", code=2)
    assert "dax is or has folders of other classes: dax; give the folder of 'cat' alone" in error
    assert taught.file.read_bytes() == before
    assert encoders.images == done
    nested = made(taught.folder / "in", "cam 1*2", "cam 2/may*3", "1.png")  # three are the same
    said = taught("learn", nested, "--class", "cat")
    assert f"{nested}: 6 images of 3 folders are taken" in said
    assert "3 more images of 1 known class: cat" in said
    report = taught.json("learn", taught.folder / "known", "--class", "cat", "--flat")
    assert (report["learned"], report["already"]) == ({"cat": 12}, {"cat": 6})


def test_all_verbs_count_what_is_left_out_and_strict_refuses_it(
    tool: Tool, encoders: Encoders
) -> None:
    needing_pages()
    root = paint(tool.folder / "set", "cat", "dax")
    (root / "cat" / "notes.txt").write_text("seen on Monday")
    (root / "cat" / "Thumbs.db").write_text("a system's own")
    (root / "dax" / "cut.png").write_bytes(b"")
    page, npz = tool.folder / "page.html", tool.folder / "x.npz"

    def ended(*words: object) -> tuple[int, str]:
        code = main([str(word) for word in words])
        captured = tool.capsys.readouterr()
        return code, captured.out + captured.err

    code, said = ended("learn", tool.file, root, "--strict")
    assert code == 2
    assert "2 files cannot be read; nothing was written" in said
    assert not tool.file.exists()
    tool.learn(root)
    before = tool.file.read_bytes()
    commands = [
        ("evaluate", tool.file, root, "-o", page),
        ("encode", root, "-o", npz),
        ("predict", tool.file, root),
        ("learn", tool.file, root, "--class", "cat", "--flat"),
    ]
    for command in commands:
        code, said = ended(*command, "--strict")
        assert code == 2, command
        assert "notes.txt: not an image" in said
        assert "Thumbs.db:" not in said
        assert not page.exists()
        assert not npz.exists()
        assert tool.file.read_bytes() == before
    for command in commands:
        code, said = ended(*command)
        assert code == (1 if command[0] == "predict" else 0), said
        assert "left out, not an image: 1 (" in said
        assert "left out, hidden, or a system's own: 1 (" in said
    skipped = tool.json("learn", root)["skipped"]
    assert skipped == {"cat/notes.txt": "not an image", "cat/Thumbs.db": HIDDEN}
    assert evaluated(tool, root)["skipped"] == skipped
    (tool.folder / "x.npz").unlink()
    assert main(["encode", str(root), "-o", str(npz), "--json"]) == 0
    assert '"cat/notes.txt": "not an image"' in tool.capsys.readouterr().out
    inputs = {entry["input"] for entry in tool.json("predict", root, code=1)["skipped"]}
    assert inputs == {f"{root}/{path}" for path in skipped}
    assert tool.json("learn", root / "cat", "--class", "cat")["skipped"] == {
        f"{root}/{path}": why for path, why in skipped.items()
    }


def test_evaluate_follows_names_that_classes_had_and_tells_of_taught_photographs(
    tool: Tool, encoders: Encoders
) -> None:
    tool.learn(paint(tool.folder / "one", "cat", "dax", "emu"))
    tool("rename", "cat", "lynx")
    found = evaluated(tool, tool.folder / "one")
    assert found["samples"] == 18
    assert "folders whose classes have another name: cat is lynx" in found["assumed"]
    assert found["taught"] == 18
    save(tool.folder / "one" / "cat" / "new.png", (1, 2, 3))
    report = tool.folder / "report.html"
    told = tool("evaluate", tool.folder / "one", "-o", report)
    assert "warning: 18 of 19 images were taught; expect less of new ones" in told
    assert "18 of 19 images were taught; expect less of new ones." in report.read_text("utf-8")
    tool("forget", "lynx")
    assert evaluated(tool, tool.folder / "one")["unknown_classes"] == {"cat": 7}
