"""``frugalvae check`` and ``learn --except``: pages, lists and what they say."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from frugalvae import FrugalClassifier
from frugalvae.care.except_list import read_list, write_list
from frugalvae.cli.main import main
from frugalvae.errors import InputError
from frugalvae.images.feature_file import Features, write_features
from tests.tool import Tool, paint


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def photographs(here: Path) -> Path:
    """Six photographs of each of three colours, one of them in a wrong folder."""
    folder = paint(here / "photos", "cat", "dax", "emu", count=8)
    rng = np.random.default_rng(0)
    for path in folder.glob("*/*.png"):  # nothing is blank
        pixels = np.asarray(Image.open(path).convert("RGB").resize((90, 80)), np.int16)
        noise = rng.integers(-12, 12, pixels.shape)
        Image.fromarray((pixels + noise).clip(0, 255).astype(np.uint8)).save(path)
    shutil.move(folder / "cat" / "3.png", folder / "emu" / "moved.png")
    shutil.copy(folder / "dax" / "1.png", folder / "dax" / "copy.png")
    (folder / "dax" / "broken.jpg").write_bytes(b"\xff\xd8\xff")
    return folder


def test_a_folder_is_checked_and_what_is_found_is_not_learned(
    tool: Tool, photographs: Path, here: Path
) -> None:
    said = run("check", photographs, tool)
    assert "26 images of 3 classes" in said
    assert "emu/moved.png: it looks like cat" in said
    assert "dax/broken.jpg: it cannot be read: it begins as JPEG, but is damaged" in said
    assert "written: check.html, and except.txt for 'frugalvae learn --except'" in said
    listed = read_list(here / "except.txt")
    assert {"emu/moved.png", "dax/broken.jpg"} < set(listed)
    assert {"dax/copy.png", "dax/1.png"} & set(listed)
    page = (here / "check.html").read_text("utf-8")
    assert "looks like cat" in page
    assert page.count("data:image/jpeg") >= 3
    assert "http" not in page.replace("http://www.w3.org", "")
    learned = tool.json("learn", photographs, "--except", "except.txt")
    assert sorted(learned["excepted"]) == sorted(listed)
    assert learned["unreadable"] == {}
    assert learned["learned"]["emu"] == 8


def run(verb: str, source: object, tool: Tool, *words: object, code: int = 0) -> str:
    tool.capsys.readouterr()
    ended = main([verb, *map(str, words), str(source)])
    tool.out, tool.err = tool.capsys.readouterr()
    assert ended == code, tool.out + tool.err
    return tool.out if code == 0 else tool.err


def test_a_file_tells_what_was_taught_before(tool: Tool, photographs: Path) -> None:
    tool.learn(photographs)
    before = tool.file.read_bytes()
    told = tool.json("check", photographs)
    assert told["found"]["taught-before"] == 25  # all but a broken one
    assert told["images"] == 26
    assert tool.file.read_bytes() == before


def test_features_have_no_thumbnails_but_findings(tool: Tool, here: Path) -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 20)
    x = (rng.normal(size=(40, 8)) + 9 * np.eye(8)[y]).astype(np.float32)
    told = y.copy()
    told[4] = 1
    names = np.array(["cat", "emu"])
    write_features(here / "f.npz", Features("f", x, names[told], x[:2], names[:2]))
    said = run("check", here / "f.npz", tool)
    assert "x_train[4]: it looks like cat" in said
    assert "whether photographs are blurred, tiny or blank is not known" in said
    assert "data:image" not in (here / "check.html").read_text("utf-8")
    words = ["learn", here / "f.frugal", here / "f.npz", "--except", "except.txt"]
    assert main(list(map(str, words))) == 0
    assert FrugalClassifier.load(here / "f.frugal").n_samples_of_class_.tolist() == [19, 20]


def test_a_list_of_another_folder_is_refused(tool: Tool, photographs: Path, here: Path) -> None:
    (here / "list.txt").write_text("elsewhere/1.png\n# emu/1.png\n")
    said = tool("learn", photographs, "--except", "list.txt", code=2)
    assert "--except list.txt names elsewhere/1.png, and nothing of it is in" in said
    assert not tool.file.exists()
    said = tool("learn", photographs, "--except", "nowhere.txt", code=2)
    assert "--except nowhere.txt cannot be read" in said
    (here / "list.txt").write_text("elsewhere/1.png\nemu/1.png\n")
    said = tool.learn(photographs, "--except", "list.txt")
    assert "not there, though --except names it: elsewhere/1.png" in said
    assert "1 image left out, as list.txt says" in said


def test_lists_keep_odd_names(here: Path) -> None:
    names = ["#1.png", "a\nb.png", '"q".png', " blank.png", "plain/1.png", "caf\udce9.png"]
    write_list(here / "list", ["a remark"], [(name, "why", True) for name in names])
    assert read_list(here / "list") == names
    (here / "list").write_text('"broken\n')
    with pytest.raises(InputError, match="is no path, nor a JSON string"):
        read_list(here / "list")


def test_wrong_paths_are_refused_before_anything_is_read(tool: Tool, photographs: Path) -> None:
    assert "there is no such file or folder" in run("check", "nowhere", tool, code=2)
    said = run("check", photographs, tool, "-o", "page.pdf", code=2)
    assert "page.pdf has the ending .pdf" in said
    said = run("check", photographs, tool, "--list", photographs, code=2)
    assert "is what is to be checked; give another name" in said


def test_one_photograph_and_nothing_readable(tool: Tool, here: Path) -> None:
    folder = paint(here / "one", "cat", count=1)
    assert "there is one class only" in run("check", folder, tool)
    (folder / "cat" / "0.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    assert "no image can be read" in run("check", folder, tool)


def test_the_folder_may_stand_behind_options(tool: Tool) -> None:
    photos = paint(tool.folder / "photos", "cat", "emu")
    tool.learn(photos)
    page, listed = tool.folder / "page.html", tool.folder / "list.txt"
    assert "12 images of 2 classes" in tool("check", "--output", page, "--list", listed, photos)
