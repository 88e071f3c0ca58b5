"""``frugalvae check`` and ``learn --except``: pages, lists and what they say."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from frugalvae import FrugalClassifier
from frugalvae.care.lists import ListEntry, read_decisions, read_list, write_list
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
    assert "written: check.html, and except.txt\n" in said
    again, then = said.splitlines()[-2:]
    assert again.startswith(
        "move images to the folder of the class that they show, and check again"
    )
    assert then == f"then: frugalvae learn FILE.frugal {photographs} --except except.txt"
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
    assert len(told["taught_before"]) == 25  # all but a broken one
    assert told["leave_out"] == ["dax/broken.jpg"]
    assert told["found"] == {"unreadable": 1}
    assert told["images"] == 26
    assert tool.file.read_bytes() == before


def test_a_photograph_of_another_class_than_before_is_told(tool: Tool, photographs: Path) -> None:
    tool.learn(photographs)
    shutil.move(photographs / "emu" / "moved.png", photographs / "cat" / "3.png")
    said = tool("check", photographs)
    assert "cat/3.png: exactly this was taught before, as 'emu'" in said
    assert "24 samples taught before: neither checked nor counted again" in said
    assert "2 images better left out" in said


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
    os.mkfifo(here / "pipe")
    for place in ("pipe", "/dev/zero"):  # which would never end
        said = tool("learn", photographs, "--except", place, code=2)
        assert f"--except {place} cannot be read (it is not a regular file); give a list" in said
    (here / "list.txt").write_text("elsewhere/1.png\nemu/1.png\n")
    said = tool.learn(photographs, "--except", "list.txt")
    assert "not there, though --except names it: elsewhere/1.png" in said
    assert "1 image left out: list.txt lists them" in said


def test_lists_keep_odd_names(here: Path) -> None:
    names = ["#1.png", "a\nb.png", '"q".png', " blank.png", "plain/1.png", "caf\udce9.png"]
    write_list(here / "list", ["a remark"], [ListEntry(name, "why") for name in names])
    assert read_list(here / "list") == names
    (here / "list").write_text('"broken\n')
    with pytest.raises(InputError, match="is no path, nor a JSON string"):
        read_list(here / "list")


def test_what_was_decided_is_kept(tool: Tool, photographs: Path, here: Path) -> None:
    run("check", photographs, tool)
    path = here / "except.txt"
    text = path.read_text()
    reason = "# leave out: of emu: it looks like cat"
    assert reason in text
    path.write_text(text.replace("\nemu/moved.png", "\n# emu/moved.png") + "dax/2.png\n")
    said = run("check", photographs, tool)
    assert "2 images as you decided in except.txt" in said
    listed = read_list(path)
    assert "dax/2.png" in listed
    assert "emu/moved.png" not in listed
    assert reason.replace("leave out", "decided") in path.read_text()
    kept = path.read_bytes()
    run("check", photographs, tool)
    assert path.read_bytes() == kept
    shutil.copytree(photographs, here / "other")  # the same names, but nothing was decided there
    error = run("check", here / "other", tool, code=2)
    assert f"except.txt holds 2 decisions about another folder, {photographs.resolve()}" in error
    assert path.read_bytes() == kept
    run("check", here / "other", tool, "--list", "other.txt")
    assert "emu/moved.png" in read_list(here / "other.txt")
    assert "dax/2.png" not in read_list(here / "other.txt")
    run("check", photographs, tool, "--list", "other.txt")  # nothing is lost there


def test_decisions_are_what_differs_from_what_was_written(here: Path) -> None:
    names = {"a": True, "b": False, "#c": True, "d": False, "e": True}
    write_list(
        here / "list", ["of x"], [ListEntry(name, "why", taken) for name, taken in names.items()]
    )
    assert read_decisions(here / "list", "of x") == {}
    lines = (here / "list").read_text().splitlines()
    turned = {"a": "#a", "#   b": "b", '"#c"': '# "#c"'}
    (here / "list").write_text("\n".join(turned.get(line, line) for line in lines))
    decided = {"a": False, "b": True, "#c": False}
    assert read_decisions(here / "list", "of x") == decided
    assert read_decisions(here / "list", "of y") == {}
    assert read_decisions(here / "nowhere", "of x") == {}
    write_list(
        here / "list", ["of x"], [ListEntry(n, "why", t, decided=True) for n, t in names.items()]
    )
    assert read_decisions(here / "list", "of x") == names


def test_a_blank_photograph_is_told_once(tool: Tool, photographs: Path) -> None:
    Image.new("RGB", (90, 80), (200, 30, 30)).save(photographs / "emu" / "red.png")
    assert main(["check", str(photographs), "--json"]) == 0
    found = json.loads(tool.capsys.readouterr().out)["findings"]
    kinds = {f["kind"] for f in found if f["image"] == "emu/red.png"}
    assert "blank" in kinds
    assert not kinds & {"wrong-label", "outlier"}  # though it is as red as a cat


def test_misspelt_folders_come_first(tool: Tool, photographs: Path) -> None:
    shutil.move(photographs / "dax", photographs / "kestrel")
    (photographs / "kestrl").mkdir()
    for number in (5, 6, 7):
        shutil.move(photographs / "kestrel" / f"{number}.png", photographs / "kestrl")
    said = run("check", photographs, tool).splitlines()
    assert said[1:3] == ["Names that are nearly the same: 1", "  kestrl: it is nearly 'kestrel'"]
    assert said[-2].startswith("rename folders that mean the same class, ")


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
