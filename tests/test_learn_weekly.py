"""``frugalvae learn`` over a folder that grows: what is new, recognised, and left out."""

from __future__ import annotations

import io
import itertools
import shutil
import sys
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from frugalvae import FrugalClassifier, PhotoClassifier, labels
from frugalvae import encoding as chunked
from frugalvae.digests import NONE, digest, pack_digests, renamed, unpack_digests
from frugalvae.errors import InputError, MemoryFileError
from frugalvae.images import feature_file
from frugalvae.images.feature_file import Features, stored_rows, write_features
from frugalvae.labels import near, near_pairs
from frugalvae.model.model import Model
from frugalvae.model.plan import choose_samples
from frugalvae.storage.model_file import from_bytes, read_file, to_bytes
from tests.test_images import save
from tests.tool import SHADES, Encoders, Tool, paint


def photo(folder: Path, name: str, number: int) -> None:
    red, green, blue = SHADES[name]
    save(folder / name / f"{number}.png", (red - number, green + 2 * number, blue + number % 7))


def grow(folder: Path, weeks: list[list[tuple[str, int]]]) -> list[Path]:
    """A folder for each week, with all that came so far."""
    found, so_far = [], list[tuple[str, int]]()
    for number, week in enumerate(weeks):
        so_far += week
        for name, photograph in so_far:
            photo(folder / f"week{number}", name, photograph)
        found.append(folder / f"week{number}")
    return found


def sums(file: Path) -> dict[str, Any]:
    """Counts, means and scatter of each class, whatever the order in which they came."""
    memory = FrugalClassifier.load(file).model_.memory
    labels = FrugalClassifier.load(file).model_.classes.tolist()
    found: dict[str, Any] = {}
    for label, number in zip(labels, memory.classes, strict=True):
        root = memory.sums_.roots[number].astype(float)
        found[label] = memory.counts_[number], memory.sums_.means[number], root.T @ root
    return found


def check_same(one: dict[str, Any], two: dict[str, Any]) -> None:
    assert one.keys() == two.keys()
    for label, (count, mean, scatter) in one.items():
        assert count == two[label][0]
        np.testing.assert_allclose(mean, two[label][1], rtol=1e-3, atol=1e-2)
        np.testing.assert_allclose(scatter, two[label][2], atol=0.02 * np.abs(scatter).max() + 1e-6)


# --------------------------------------------------------------------------- the same photographs


def test_the_same_folder_taught_twice_is_taught_once(tool: Tool, encoders: Encoders) -> None:
    images = paint(tool.folder / "one", "cat", "dax")
    tool("learn", images)
    before, made = tool.file.read_bytes(), encoders.images
    assert "12 images taught before, and not counted again" in tool("learn", images)
    assert tool.file.read_bytes() == before
    assert encoders.images == made
    shutil.move(images / "cat" / "1.png", images / "cat" / "another name.png")
    assert "nothing new" in tool("learn", images)


def test_a_folder_that_grows_is_taught_what_is_new(tool: Tool, encoders: Encoders) -> None:
    weeks = grow(
        tool.folder,
        [
            [("cat", 0), ("cat", 1), ("dax", 0), ("dax", 1)],
            [("cat", 2), ("emu", 0), ("emu", 1), ("emu", 2)],
            [("emu", 3), ("dax", 2)],
        ],
    )
    told = [tool.json("learn", week) for week in weeks]
    assert [report["new"] for report in told] == [{"cat": 2, "dax": 2}, {"emu": 3}, {}]
    assert [report["more"] for report in told] == [{}, {"cat": 1}, {"dax": 1, "emu": 1}]
    assert told[2]["already"] == {"cat": 3, "dax": 2, "emu": 3}
    assert encoders.images == 10
    loaded = FrugalClassifier.load(tool.file)
    counts = dict(
        zip(loaded.model_.classes.tolist(), loaded.model_.n_samples_of_class.tolist(), strict=True)
    )
    assert counts == {"cat": 3, "dax": 3, "emu": 4}
    assert loaded.model_.task_of_class.tolist() == [0, 0, 1]
    assert [event["action"] for event in loaded.history_] == ["learn"] * 3


def test_the_order_of_weeks_does_not_matter(tool: Tool, tmp_path: Path) -> None:
    names = ("cat", "dax", "emu")
    weeks = [[(name, 3 * week + n) for name in names for n in range(3)] for week in range(3)]
    files = []
    for order in ([0, 1, 2], [2, 0, 1], None):
        tool.file = tmp_path / f"{order}.frugal"
        chosen = [weeks[n] for n in order or ()] or [[one for week in weeks for one in week]]
        for folder in grow(tmp_path / str(order), chosen):
            tool("learn", folder)
        files.append(tool.file)
    for other in files[1:]:
        check_same(sums(files[0]), sums(other))


def test_a_copy_is_counted_once(tool: Tool) -> None:
    images = paint(tool.folder / "one", "cat", "dax")
    shutil.copy(images / "cat" / "1.png", images / "cat" / "copy.png")
    assert "1 image left out: the same is there twice" in tool("learn", images)
    assert FrugalClassifier.load(tool.file).model_.n_samples_of_class.tolist() == [6, 6]


def test_what_cannot_be_read_is_told_every_week_and_counts_as_no_more_images(tool: Tool) -> None:
    images = paint(tool.folder / "one", "cat", "dax")
    tool("learn", images)
    (images / "cat" / "cut.png").touch()
    before = tool.file.read_bytes()
    for words in ([], ["--dry-run"], []):
        said = tool("learn", images, *words)
        assert "left out as unreadable, 1:\n  cat/cut.png: the file is empty" in said
        assert "12 images taught before, and not counted again" in said
        assert "more image" not in said
        assert ("nothing new in" in said) == (not words)
        told = tool.json("learn", images, *words)
        assert (told["more"], told["learned"]) == ({}, {})
        assert told["unreadable"] == {"cat/cut.png": "the file is empty"}
    assert tool.file.read_bytes() == before
    assert tool.beside == ["birds.frugal", "birds.frugal.undo"]
    photo(images, "cat", 9)
    (images / "emu").mkdir()
    (images / "emu" / "cut.png").write_text("no image")
    for words in (["--dry-run"], []):
        said = tool("learn", images, *words)
        assert "cat/cut.png: the file is empty\n" in said
        assert "\n1 more image of 1 known class: cat\n" in said
    tool("undo")
    told = tool.json("learn", images)
    assert (told["new"], told["more"], told["learned"]) == ({}, {"cat": 1}, {"cat": 1})
    assert told["left_out"] == ["emu"]


def test_strict_names_what_is_no_image_and_what_cannot_be_read_in_one_error(tool: Tool) -> None:
    images = paint(tool.folder / "one", "cat", "dax")
    tool("learn", images)
    before = tool.file.read_bytes()
    (images / "cat" / "cut.png").touch()
    (images / "cat" / "notes.txt").write_text("seen on Monday")
    for command in (["learn", images], ["learn", images, "--dry-run"], ["evaluate", images]):
        error = tool(*command, "--strict", code=2)
        assert "2 files cannot be read; nothing was written" in error
        assert "  cat/notes.txt: not an image" in error
        assert "  cat/cut.png: the file is empty" in error
    (images / "cat" / "notes.txt").unlink()
    assert "1 file cannot be read" in tool("learn", images, "--strict", code=2)
    assert tool.file.read_bytes() == before


def test_digests_cost_16_bytes_and_go_with_their_class(tool: Tool) -> None:
    tool("learn", paint(tool.folder / "one", "cat", "dax"))
    parts = tool.json("status")["components"]
    assert parts["digests of photographs"] == {"numbers": 12, "bytes": 192}
    report = FrugalClassifier.load(tool.file).memory_report()
    assert {part.name: part.bytes for part in report.components}["digests of photographs"] == 192
    tool("forget", "cat")
    assert tool.json("status")["components"]["digests of photographs"]["bytes"] == 96
    tool("undo")
    assert tool.json("status")["components"]["digests of photographs"]["bytes"] == 192
    tool("learn", paint(tool.folder / "one", "emu"))
    tool("undo")
    assert "6 images of 1 new class: emu" in tool("learn", tool.folder / "one")


def test_more_from_update_is_recognised_too(tool: Tool) -> None:
    images = paint(tool.folder / "one", "cat", "dax")
    tool("learn", images)
    photo(tool.folder / "more", "cat", 9)
    more = "learn", tool.folder / "more" / "cat", "--class", "cat"
    assert "1 more image of 1 known class: cat" in tool(*more)
    photo(images, "cat", 9)
    assert "nothing new" in tool("learn", images)
    assert "7 images taught before" in tool("learn", images / "cat", "--class", "cat")
    assert FrugalClassifier.load(tool.file).model_.n_samples_of_class.tolist() == [7, 6]
    assert "nothing new" in tool("learn", images)


def counts(file: Path) -> list[int]:
    return FrugalClassifier.load(file).model_.n_samples_of_class.tolist()


def test_a_photograph_of_two_classes_is_told(tool: Tool) -> None:
    images = paint(tool.folder / "one", "cat", "dax")
    shutil.copy(images / "cat" / "1.png", images / "dax" / "copy.png")
    told = tool("learn", images)
    assert "the same in two classes, and taught as both: 1 of cat, 1 of dax; 'frugalvae ch" in told
    assert counts(tool.file) == [6, 7]


def test_what_was_taken_out_stays_out(tool: Tool) -> None:
    images = paint(tool.folder / "one", "cat", "dax")
    tool("learn", images)
    out = images / "cat" / "1.png"
    said = tool("unlearn", "cat", out)
    assert "so 'frugalvae learn' leaves them out if they are still in a folder" in said
    before = tool.file.read_bytes()
    said = tool("learn", images)
    assert "1 image of 'cat' left out, as before; --again cat teaches them" in said
    assert "nothing new" in said
    assert tool.file.read_bytes() == before
    photo(images, "cat", 9)
    told = tool.json("learn", images)
    assert (told["withheld"], told["learned"]) == ({"cat": 1}, {"cat": 1})
    said = tool("learn", images, "--again", "cta", code=2)
    assert "has no class of this name. Did you mean 'cat'? It has cat, dax" in said
    assert tool.json("learn", images, "--again", "cat")["learned"] == {"cat": 1}
    assert counts(tool.file) == [7, 6]
    assert tool.json("learn", images)["withheld"] == {}
    tool("unlearn", "cat", out)
    tool("learn", out, "--class", "cat")  # says that it is one
    told = tool.json("learn", images)
    assert (told["withheld"], told["already"]) == ({}, {"cat": 7, "dax": 6})


def test_what_was_taken_out_of_a_class_may_be_of_another(tool: Tool) -> None:
    images = paint(tool.folder / "one", "cat", "dax")
    tool("learn", images)
    tool("unlearn", "cat", images / "cat" / "1.png")
    shutil.move(images / "cat" / "1.png", images / "dax" / "moved.png")
    assert tool.json("learn", images)["learned"] == {"dax": 1}
    assert counts(tool.file) == [5, 7]


def test_what_a_list_leaves_out_stays_out_without_it(tool: Tool) -> None:
    images = paint(tool.folder / "one", "cat", "dax")
    tool("learn", images)
    for number in (8, 9):
        photo(images, "cat", number)
    listed = tool.folder / "except.txt"
    listed.write_text("cat/8.png\ncat/9.png\n")
    before = tool.file.read_bytes()
    tool("learn", images, "--except", listed, "--dry-run")
    assert tool.file.read_bytes() == before
    said = tool("learn", images, "--except", listed)
    assert "2 images left out" in said
    assert f"nothing new in {images}; {tool.file} remembers what is left out" in said
    assert "leave out  cat (2)" in tool("history")
    told = tool.json("learn", images)
    assert (told["withheld"], told["learned"]) == ({"cat": 2}, {})
    photo(images, "emu", 1)
    photo(images, "emu", 2)
    listed.write_text("dax/7.png\nemu/2.png\n")
    photo(images, "dax", 7)
    assert tool.json("learn", images, "--except", listed)["learned"] == {"emu": 1}
    assert tool.json("learn", images)["withheld"] == {"cat": 2, "dax": 1, "emu": 1}
    tool("rename", "cat", "lynx")
    assert tool.json("learn", images)["withheld"] == {"lynx": 2, "dax": 1, "emu": 1}
    tool("merge-classes", "dax", "emu")
    assert tool.json("learn", images)["withheld"] == {"lynx": 2, "dax": 2}
    tool("forget", "dax")
    assert tool.json("learn", images)["withheld"] == {"lynx": 2}
    assert counts(tool.file) == [6]


def test_a_class_that_was_taught_without_digests_is_left_alone(tool: Tool) -> None:
    images = paint(tool.folder / "one", "cat", "dax")
    tool("learn", images)
    classifier = FrugalClassifier.load(tool.file)
    classifier.partial_fit(classifier.sample("cat", 3), ["cat"] * 3).save(tool.file)
    photo(images, "cat", 8)
    said = tool("learn", images)
    assert "1 known class left alone: cat; taught without digests" in said
    assert "nothing new" in said
    assert tool.json("learn", images, "--again", "cat")["learned"] == {"cat": 1}


@pytest.mark.parametrize("known", [1_000, 2_000])
def test_going_over_a_folder_of_many_known_classes_looks_at_each_once(
    known: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is made for each class that takes as long as there are classes."""
    y = np.arange(known)
    digests = np.array([digest(bytes([number % 256, number // 256])) for number in y.tolist()])
    found = {number: digests[[number]] for number in y.tolist()}
    model = Model().learn(np.random.default_rng(0).normal(size=(known, 4)), y, digests=found)
    made: list[str] = []
    for name in ("number_of", "count_of"):
        make = getattr(Model, name).func
        kept = cached_property(lambda own, name=name, make=make: made.append(name) or make(own))
        kept.__set_name__(Model, name)
        monkeypatch.setattr(Model, name, kept)
    model = replace(model)  # which has none of them yet
    plan = choose_samples(model, y, lambda rows: digests[rows])
    assert sum(plan.already.values()) == known
    assert len(made) <= 2


# --------------------------------------------------------------------------- names


def test_a_renamed_class_keeps_its_name(tool: Tool) -> None:
    images = paint(tool.folder / "one", "cat", "dax")
    tool("learn", images)
    tool("rename", "cat", "tiger")
    tool("rename", "tiger", "lion")
    assert "nothing new" in tool("learn", images)
    photo(images, "cat", 9)
    said = tool("learn", images)
    assert "1 more image of 1 known class: lion" in said
    assert "folders whose classes have another name: cat is lion" in said
    assert tool.classes == ["lion", "dax"]
    assert tool.json("status")["aliases"] == {"cat": "lion", "tiger": "lion"}
    assert "renamed  cat is lion, tiger is lion now" in tool("status")
    tool("learn", images, "--again", "cat")
    assert sorted(tool.classes) == ["cat", "dax", "lion"]
    assert tool.json("status")["aliases"] == {"tiger": "lion"}


def test_a_forgotten_class_is_not_taught_again_but_on_purpose(tool: Tool) -> None:
    images = paint(tool.folder / "one", "cat", "dax", "emu")
    tool("learn", images)
    assert "'frugalvae learn' leaves out folders of that name, unless --again cat" in tool(
        "forget", "cat"
    )
    said = tool("learn", images)
    assert "6 images of 'cat' left out: it was forgotten; --again cat teaches it anew" in said
    assert tool.json("learn", images)["forgotten"] == {"cat": 6}
    assert "forgotten  cat; 'learn' leaves it out, but for --again" in tool("status")
    assert tool.classes == ["dax", "emu"]
    tool("learn", images, "--again", "cat")
    assert tool.classes == ["dax", "emu", "cat"]
    assert tool.json("status")["aliases"] == {}
    assert "nothing new" in tool("learn", images)


def test_only_new_and_only_known(tool: Tool) -> None:
    images = paint(tool.folder / "one", "cat", "dax")
    tool("learn", images)
    photo(images, "cat", 9)
    paint(images, "emu")
    told = tool.json("learn", images, "--dry-run", "--only-known")
    assert (told["more"], told["new"], told["unwanted"]) == ({"cat": 1}, {}, {"emu": 6})
    said = tool("learn", images, "--only-new")
    assert "13 images left out, as requested: cat, dax" in said
    assert tool.classes == ["cat", "dax", "emu"]
    assert tool.json("learn", images, "--only-known")["learned"] == {"cat": 1}


def test_a_dry_run_changes_nothing(tool: Tool, encoders: Encoders) -> None:
    images = paint(tool.folder / "one", "cat", "dax")
    said = tool("learn", images, "--dry-run")
    assert said.splitlines() == [
        "12 images of 2 new classes: cat, dax",
        f"--dry-run: nothing was encoded, and {tool.file} is as it was",
    ]
    assert tool.beside == []
    assert encoders.images == 0


@pytest.fixture
def misspelt(tool: Tool) -> Path:
    """A folder with a known class, and one that is nearly of its name."""
    for name in ("Cardinal", "Bobolink"):
        save(tool.folder / "one" / name / "1.png", (len(name), 9, 9))
        save(tool.folder / "one" / name / "2.png", (len(name), 8, 9))
    tool("learn", tool.folder / "one")
    save(tool.folder / "two" / "Cardnal" / "1.png", (99, 9, 9))
    save(tool.folder / "two" / "Wren" / "1.png", (9, 9, 99))
    return tool.folder / "two"


def test_a_name_that_is_nearly_known_is_warned_of(tool: Tool, misspelt: Path) -> None:
    tool("learn", misspelt)
    assert "warning: 'Cardnal' is taught as a new class, and is nearly 'Cardinal'" in tool.err
    assert "Wren" not in tool.err
    assert "Cardnal" in tool.classes
    tool("learn", misspelt)
    assert tool.err == ""


def test_two_new_names_that_are_nearly_the_same_are_warned_of(tool: Tool) -> None:
    for name in ("Cardinal", "Cardnal", "Wren"):
        save(tool.folder / "one" / name / "1.png", (len(name), 9, 9))
    tool("learn", tool.folder / "one", "--dry-run")
    assert "nearly the same names: 'Cardinal' and 'Cardnal'; 'frugalvae merge-classes'" in tool.err
    tool("learn", tool.folder / "one", "--near", "new")
    assert tool.err == ""
    assert tool.classes == ["Cardinal", "Cardnal", "Wren"]


@pytest.mark.parametrize(
    ("meant", "classes"),
    [("new", ["Cardnal", "Wren"]), ("same", ["Wren"]), ("skip", ["Wren"])],
)
def test_what_a_near_name_means_is_said_beforehand(
    tool: Tool, misspelt: Path, meant: str, classes: list[str]
) -> None:
    tool("learn", misspelt, "--near", meant)
    assert tool.err == ""
    assert tool.classes == ["Bobolink", "Cardinal", *classes]
    loaded = FrugalClassifier.load(tool.file)
    assert loaded.model_.n_samples_of_class.tolist()[:2] == [2, 3 if meant == "same" else 2]
    assert loaded.model_.aliases == ({"Cardnal": "Cardinal"} if meant == "same" else {})


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("typed", "count"), [("s", 3), ("n", 2), ("l", 2), ("y", 2)])
def test_at_a_terminal_a_near_name_is_asked_about(
    tool: Tool, misspelt: Path, monkeypatch: pytest.MonkeyPatch, typed: str, count: int
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda _: True, raising=False)
    asked: list[str] = []
    monkeypatch.setattr("builtins.input", lambda text: asked.append(text) or typed)
    tool("learn", misspelt)
    question = "A new class (n), the same as 'Cardinal' (s), or leave it out (l)? "
    assert asked == [question] * (3 if typed == "y" else 1)  # what is not understood is asked again
    assert FrugalClassifier.load(tool.file).model_.n_samples_of_class.tolist()[1] == count
    assert ("Cardnal" in tool.classes) == (typed == "n")


def test_many_names_are_not_all_compared_with_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would take the square of their number, of letters or of names."""
    compared: list[str] = []
    rows: list[int] = []

    def counting(name: str, known: list[str]) -> str | None:
        compared.extend(known)
        return near(name, known)

    def looking(letters: Any, row: int) -> list[int]:
        rows.append(row)
        return like(letters, row)

    like = labels._like
    monkeypatch.setattr(labels, "near", counting)
    monkeypatch.setattr(labels, "_like", looking)
    monkeypatch.setattr(labels, "COMPARED", 1_000)
    names = ["".join(word) for word in itertools.permutations("abcdefgh")][:2_000]
    assert near_pairs(names)[0] == ("abcdefgh", "abcdefhg")
    assert len(compared) < 1_000 + len(names)
    rows.clear()
    monkeypatch.setattr(labels, "COUNTED", 20_000)
    assert near_pairs([f"{number}" for number in range(2_000)]) == []
    assert len(rows) <= 11


def test_which_names_are_near() -> None:
    known = ["Song Sparrow", "bird 1", "Wren", "cat"]
    assert near("Song Sparow", known) == "Song Sparrow"
    assert near("wern", known) == "Wren"
    for other in ("bird 2", "bat", "Corn Bunting", "Fox Sparrow"):
        assert near(other, known) is None


# --------------------------------------------------------------------------- feature files


def written(path: Path, x: np.ndarray, y: list[str]) -> Path:
    labels = np.array(y)
    write_features(path, Features("x", x.astype(np.float32), labels, x[:1], labels[:1]))
    return path


def test_rows_of_feature_files_are_recognised(tool: Tool, rng: np.random.Generator) -> None:
    x, y = rng.normal(size=(60, 5)), ["cat", "dax", "emu"] * 20
    tool("learn", written(tool.folder / "one.npz", x[:40], y[:40]))
    told = tool.json("learn", written(tool.folder / "all.npz", x, y))
    assert told["learned"] == {"cat": 6, "dax": 7, "emu": 7}
    assert sum(told["already"].values()) == 40
    once = Tool(tool.folder / "once", tool.capsys)
    once.folder.mkdir()
    once("learn", tool.folder / "all.npz")
    check_same(sums(tool.file), sums(once.file))


def test_a_large_feature_file_is_read_a_share_at_a_time(
    tool: Tool, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = rng.normal(size=(3000, 5)).astype(np.float32), ["cat", "dax", "emu"] * 1000
    path = written(tool.folder / "large.npz", x, y)
    np.testing.assert_array_equal(stored_rows(path, "x_train")[np.array([7, 2999])], x[[7, 2999]])  # type: ignore[index]
    tool("learn", path)
    whole = sums(tool.file)
    monkeypatch.setattr(feature_file, "LARGE", 0)
    monkeypatch.setattr(chunked, "MOST", 500)
    other = Tool(tool.folder / "other", tool.capsys)
    other.folder.mkdir()
    assert "learned 3 classes from 3,000 samples" in other("learn", path)
    check_same(whole, sums(other.file))
    x[5, 3] = np.nan
    np.savez(path, x_train=x, y_train=np.arange(3000) % 3, x_test=x[:1], y_test=[0])
    third = Tool(tool.folder / "third", tool.capsys)
    third.folder.mkdir()
    said = third("learn", path, code=2)
    assert "not finite in 1 of 2500 places, the first in row 5, column 3" in said
    assert third.beside == []


def test_a_known_class_in_a_folder_too_deep_is_asked_about(
    tool: Tool, caplog: pytest.LogCaptureFixture
) -> None:
    tool("learn", paint(tool.folder / "one", "cat", "dax"))
    deep = paint(tool.folder / "deep" / "week 6", "dax", "emu", count=2).parent
    tool("learn", deep, "--dry-run")
    assert "'week 6/dax' is taught as a new class, and is nearly 'dax', which is known" in tool.err
    classifier = PhotoClassifier.load(tool.file)
    told = tool.json("learn", deep, "--near", "same")
    assert told["already"] == {"dax": 2}
    assert tool.classes == ["cat", "dax", "week 6/emu"]
    classifier.learn(deep)
    assert "'week 6/dax' is taught as a new class, and is nearly 'dax'" in caplog.text


# --------------------------------------------------------------------------- Python and files


def test_python_recognises_what_the_tool_has_taught(tool: Tool) -> None:
    images = paint(tool.folder / "one", "cat", "dax")
    tool("learn", images)
    classifier = PhotoClassifier.load(tool.file)
    before = classifier.model_
    assert classifier.learn(images).model_ is before
    assert classifier.left_out_["already"] == {"cat": 6, "dax": 6}
    classifier.rename("dax", "dachs")
    classifier.forget("cat")
    photo(images, "dax", 9)
    classifier.learn(images)
    assert classifier.model_.classes.tolist() == ["dachs"]
    assert classifier.model_.n_samples_of_class.tolist() == [7]
    assert classifier.left_out_["forgotten"] == {"cat": 6}
    classifier.learn(images, again="cat").save(tool.file)
    assert tool.classes == ["dachs", "cat"]
    assert "nothing new" in tool("learn", images)


def test_digests_and_names_survive_merging(tool: Tool) -> None:
    one, two = (paint(tool.folder / name, "cat", "dax") for name in ("one", "two"))
    for number in range(3):
        photo(two, "emu", number)
    mine, yours = PhotoClassifier().learn(one), PhotoClassifier().learn(two)
    mine.rename("dax", "dachs")
    names = {"cat": "tiger", "dax": "dachs"}
    with pytest.raises(InputError, match=r"both were taught the same .*: 6 of 'dachs'\. Leave one"):
        mine.merge(yours, rename=names)
    with pytest.raises(InputError, match="it cannot be merged with itself"):
        mine.merge(mine)
    mine.merge(yours, rename=names, twice=True)
    mine.merge_classes("cat", "tiger")
    assert dict(mine.model_.aliases) == {"dax": "dachs", "tiger": "cat"}
    assert mine.model_.n_samples_of_class.tolist() == [12, 12, 3]
    assert mine.learn(two).model_.n_samples_of_class.tolist() == [12, 12, 3]


def test_what_was_taken_out_stays_out_after_merging(tool: Tool) -> None:
    one, two = (paint(tool.folder / name, "cat", "dax") for name in ("one", "two"))
    for folder, name in ((one, "cat"), (two, "dax")):
        tool.file = tool.folder / f"{folder.name}.frugal"
        photo(folder, name, 8)
        tool("learn", folder)
        tool("unlearn", name, folder / name / "8.png")
    assert "cat', 6 of 'dax'. Leave one" in tool("merge", tool.folder / "one.frugal", code=2)
    tool("merge", tool.folder / "one.frugal", "--twice")
    for folder, name in ((one, "cat"), (two, "dax")):
        assert tool.json("learn", folder)["withheld"] == {name: 1}


def test_files_without_digests_stay_as_they_were(tool: Tool) -> None:
    FrugalClassifier().fit(np.eye(3), ["a", "b", "c"]).save(tool.file)
    assert not {"digests", "aliases"} & read_file(tool.file).document.keys()


BROKEN: dict[str, Any] = {
    "its other name 'cat' is of no class": {"aliases": {"cat": "dax"}},
    "its digests are not as many": {"digests": {"counts": [6, 7], "rows": {"tensor": "digests"}}},
    "nothing uses its tensors digests": {"digests": None},
}


@pytest.mark.parametrize("error", BROKEN)
def test_files_whose_digests_or_names_make_no_sense_are_refused(tool: Tool, error: str) -> None:
    tool("learn", paint(tool.folder / "one", "cat", "dax"))
    document, arrays = from_bytes(tool.file.read_bytes())
    document = {**document, **BROKEN[error]}
    kept = {
        name: value
        for name, value in document.items()
        if value is not None or name == "feature_names"
    }
    tool.file.write_bytes(to_bytes({k: v for k, v in kept.items() if k != "sha256"}, arrays))
    with pytest.raises(MemoryFileError, match=error):
        FrugalClassifier.load(tool.file)


def test_names_come_back_and_digests_are_packed() -> None:
    assert renamed(renamed({}, "a", "b"), "b", "a") == {"b": "a"}
    found = np.array([digest(bytes([n])) for n in range(9)])
    np.testing.assert_array_equal(unpack_digests(pack_digests([found[:4], found[4:]])), found)
    plan = choose_samples(Model(), np.array(["a", "a"]), lambda rows: np.full(len(rows), NONE))
    assert plan.new == {"a": 2}  # what cannot be read is no copy of anything
    with pytest.raises(InputError):
        Model().learn(np.empty((0, 3)), np.array([], "U1"))
