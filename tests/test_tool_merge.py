"""Commands that add and subtract: merge, merge-classes, unlearn, forget with photographs."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from frugalvae import FrugalClassifier, make_memory
from frugalvae.verbs.merge import new_name
from tests.test_images import save
from tests.tool import SHADES, Encoders, Tool

COUNTS = [("a", 12), ("b", 12), ("c", 8)]
FIXTURES = Path(__file__).parent / "fixtures"


def shades(root: Path, *names: str, first: int = 0, count: int = 6) -> Path:
    """A folder of classes, whose colours vary in all directions, and differ from ``first`` on."""
    for name in names:
        rng = np.random.default_rng([first, *name.encode()])
        for number in range(first, first + count):
            colour = np.clip(np.array(SHADES[name]) + rng.integers(-25, 25, 3), 0, 255)
            save(root / name / f"{number}.png", tuple(colour.tolist()))
    return root


@pytest.fixture
def files(tool: Tool) -> dict[str, Path]:
    """Three classifiers with the default memory: what each was taught, and all at once."""
    folder = tool.folder
    parts = {
        "a": shades(folder / "a", "cat", "dax"),
        "b": shades(folder / "b", "dax", "emu", first=6),
        "c": shades(folder / "c", "fox", "cat", first=12, count=4),
    }
    found = {}
    for name, images in parts.items():
        found[name] = folder / f"{name}.frugal"
        teach(tool, found[name], images)
    for images in parts.values():
        shutil.copytree(images, folder / "all", dirs_exist_ok=True)
    found["all"] = folder / "at-once.frugal"
    teach(tool, found["all"], folder / "all")
    return found


def teach(tool: Tool, file: Path, *words: object) -> None:
    before, tool.file = tool.file, file
    tool("learn", *words)
    tool.file = before


def answers(file: Path) -> dict[str, list[float]]:
    """What a file says of five colours, by class."""
    loaded = FrugalClassifier.load(file)
    logits = loaded.model_.logits(np.array(list(SHADES.values()), np.float32))
    logits = logits - logits.mean(axis=1, keepdims=True)
    return dict(zip(loaded.model_.classes.tolist(), logits.T.tolist(), strict=True))


def known(file: Path) -> dict[Any, int]:
    loaded = FrugalClassifier.load(file)
    return dict(
        zip(loaded.model_.classes.tolist(), loaded.model_.n_samples_of_class.tolist(), strict=True)
    )


# --------------------------------------------------------------------------- merge


def test_files_merged_in_any_order_are_one_that_was_taught_all(
    tool: Tool, files: dict[str, Path]
) -> None:
    said = tool("merge", files["a"], files["b"], files["c"])
    assert [said.count(f"{files[name]}: {n} samples of ") for name, n in COUNTS] == [1, 1, 1]
    assert f"{tool.file}: 4 classes, 32 samples, " in said
    assert known(tool.file) == {"cat": 10, "dax": 12, "emu": 6, "fox": 4}
    mine, expected = FrugalClassifier.load(tool.file), FrugalClassifier.load(files["all"])
    place = expected.model_.classes.tolist().index
    for row, label in enumerate(mine.model_.classes.tolist()):
        there = int(expected.model_.numbers[place(label)])
        np.testing.assert_allclose(
            mine.memory_.sums_.means[row], expected.memory_.sums_.means[there], rtol=1e-3
        )
    colours = np.array(list(SHADES.values())[:4], np.float32)
    assert mine.predict(colours).tolist() == expected.predict(colours).tolist()
    other = tool.folder / "other.frugal"
    for order in ("cab", "bca"):
        other.unlink(missing_ok=True)
        before, tool.file = tool.file, other
        tool("merge", *(files[name] for name in order))
        tool.file = before
        assert answers(other) == answers(tool.file)
    events = tool.json("history")
    assert [event["action"] for event in events] == ["learn", "merge"] * 3
    assert events[-1]["source"] in {"a.frugal", "b.frugal", "c.frugal"}


def test_a_file_that_exists_is_merged_into_and_that_can_be_undone(
    tool: Tool, files: dict[str, Path]
) -> None:
    shutil.copy(files["a"], tool.file)
    told = tool.json("merge", files["b"])
    assert told["merged"] == [
        {
            "file": str(files["b"]),
            "new": ["emu"],
            "known": ["dax"],
            "samples": 12,
        }
    ]
    assert (told["classes"], told["samples"]) == (3, 24)
    assert told["bytes"] == tool.file.stat().st_size
    assert files["b"].exists()
    assert "no longer known: emu" in tool("undo")
    assert tool.file.read_bytes() == files["a"].read_bytes()


@pytest.mark.parametrize("budget", [None, "30kB"])
def test_how_samples_are_cut_into_files_does_not_matter(tool: Tool, budget: str | None) -> None:
    """Files round: means to 16 bits, rows to 8, correlations to 16."""
    x, y = digits()
    chance, found = np.random.default_rng(0), []
    for number in (1, 2, 5):
        part = chance.integers(0, number, len(y))
        files = [tool.folder / f"{number}-{place}.frugal" for place in range(number)]
        for place, file in enumerate(files):
            mine = FrugalClassifier(make_memory("moments", budget=budget))
            mine.fit(x[part == place], y[part == place]).save(file)
        tool.file = tool.folder / f"{number}.frugal"
        tool("merge", *files)
        found.append(FrugalClassifier.load(tool.file))
    first = found[0].memory_
    assert first.sums_.is_whole == (budget is None)
    for other in (merged.memory_ for merged in found[1:]):
        assert other.counts_ == first.counts_
        for label in range(10):
            np.testing.assert_allclose(
                other.sums_.means[label], first.sums_.means[label], atol=1e-3
            )
        level = np.trace(shared(first))
        np.testing.assert_allclose(shared(other), shared(first), atol=1e-3 * level)
    answers = [merged.predict(x) for merged in found]
    assert min((other == answers[0]).mean() for other in answers[1:]) > 0.99


def shared(memory: Any) -> Any:
    """The scatter of all classes."""
    rows = np.concatenate(list(memory.sums_.roots.values())).astype(float)
    return rows.T @ rows if memory.sums_.is_whole else memory.sums_.scatter


def test_many_files_of_the_same_classes_can_be_merged(tool: Tool) -> None:
    """Tasks are those that taught new classes; more tasks than classes could not be saved."""
    parts = []
    for number in range(4):
        file = tool.folder / f"part{number}.frugal"
        for name in ("cat", "dax"):
            images = shades(tool.folder / f"{name}{number}", name, first=10 * number)
            teach(tool, file, images)
        parts.append(file)
    tool("merge", *parts)
    assert known(tool.file) == {"cat": 24, "dax": 24}
    assert tool.json("status")["tasks"] == [{"cat": 24}, {"dax": 24}]


def test_classes_of_merged_files_get_other_names(tool: Tool, files: dict[str, Path]) -> None:
    words = ["--rename", f"{files['b']}:dax=gnu", "--rename", f"{files['a']}:cat=dax 2"]
    tool("merge", files["a"], files["b"], *words)
    assert known(tool.file) == {"dax 2": 6, "dax": 6, "gnu": 6, "emu": 6}
    before = tool.file.read_bytes()
    for words, message in (
        (["--rename", "cat=gnu"], "expected OTHER.frugal:CLASS=NAME"),
        (["--rename", f"{files['c']}:emu=gnu"], f"{files['c']} knows no class 'emu'."),
        (["--rename", f"{files['c']}:fox=cat"], "two classes would be called 'cat'"),
        (["--rename", f"{files['c']}:fox=EMU"], "only in upper and lower case"),
    ):
        error = tool("merge", files["c"], *words, code=2)
        assert message in error, error
        assert tool.file.read_bytes() == before
    words = ["--rename", f"{files['c']}:fox=EMU", "--case-matters"]
    tool("merge", files["c"], *words)
    assert "EMU" in tool.classes


def test_names_may_have_an_equals_sign() -> None:
    path = Path("b.frugal")
    assert new_name(path, "a=b=c", ["a=b"]) == ("a=b", "c")
    assert new_name(path, "a=b=c", ["a"]) == ("a", "b=c")
    assert new_name(path, "7=8", [7]) == (7, 8)


def test_nothing_is_added_twice_unless_it_is_meant_so(tool: Tool, files: dict[str, Path]) -> None:
    tool("merge", files["a"], files["b"])
    before = tool.file.read_bytes()
    said = tool("merge", files["b"], files["a"])
    assert "is as it was: the last change was this very merge" in said
    twice = "would count twice. Nothing was changed; leave one out, or give --twice"
    copied = shutil.copy(files["a"], tool.folder / "copy.frugal")
    for words in ([files["a"]], [tool.file], [files["c"], copied], [files["c"], files["c"]]):
        assert twice in tool("merge", *words, code=2)
    assert tool.file.read_bytes() == before
    tool("merge", files["a"], "--twice")
    assert known(tool.file) == {"cat": 12, "dax": 18, "emu": 6}
    shutil.copy(files["a"], tool.file)
    tool("merge", tool.file, "--twice")
    assert known(tool.file) == {"cat": 12, "dax": 12}


def test_what_does_not_belong_together_is_not_merged(
    tool: Tool, files: dict[str, Path], encoders: Encoders
) -> None:
    shutil.copy(files["a"], tool.file)
    before = tool.file.read_bytes()
    bad = tool.folder / "bad.frugal"
    x, y = np.random.default_rng(0).uniform(1, 9, (8, 3)), np.repeat(["gnu", "emu"], 4)
    moments = make_memory("moments")

    def refused(message: str) -> None:
        error = tool("merge", files["b"], bad, code=2)
        assert message in error, error
        assert tool.file.read_bytes() == before
        assert not (tool.folder / "birds.frugal.undo").exists()

    encoders.weights = "another"
    teach(tool, bad, shades(tool.folder / "d", "gnu"))
    refused("features of different encoders cannot be merged")
    FrugalClassifier().fit(np.hstack([x, x]), y).save(bad)
    refused("one was taught 3 features, the other 6")
    FrugalClassifier(make_memory("moments", root=False)).fit(x, y).save(bad)
    refused("one memory has square roots of features and the other has features as they are")
    FrugalClassifier("gaussian-diagonal").fit(x, y).save(bad)
    refused("one has MomentMemory, the other GaussianMemory")
    FrugalClassifier(moments).fit(x, np.repeat([1, 2], 4)).save(bad)
    refused("cannot be merged into")
    bad.write_bytes(files["b"].read_bytes()[:-7])
    refused(str(bad))
    bad.unlink()
    refused("there is no such file")


# --------------------------------------------------------------------------- merge-classes


def test_two_classes_become_one(tool: Tool, files: dict[str, Path]) -> None:
    tool("merge", files["a"], files["b"])
    said = tool("merge-classes", "cat", "emu")
    assert said == (
        f"{tool.file}: 'emu' became part of 'cat', which has 12 samples now; 2 classes in all\n"
    )
    assert known(tool.file) == {"cat": 12, "dax": 12}
    assert tool("history").splitlines()[-1].endswith("merge-classes  cat (12), of cat and emu")
    assert "cannot be joined with itself" in tool("merge-classes", "cat", "cat", code=2)
    assert f"{tool.file} knows no class 'emu'" in tool("merge-classes", "cat", "emu", code=2)
    assert "known again: emu" in tool("undo")
    told = tool.json("merge-classes", "cat", "emu", "dax")
    assert told == {
        "file": str(tool.file),
        "class": "cat",
        "joined": ["emu", "dax"],
        "samples": 24,
        "classes": 1,
    }


# --------------------------------------------------------------------------- unlearn, forget


def test_photographs_are_taken_out_again(tool: Tool) -> None:
    images = shades(tool.folder / "one", "cat", "dax", count=9)
    some = [images / "cat" / f"{number}.png" for number in (2, 5)]
    rest = tool.folder / "rest"
    shutil.copytree(images, rest)
    for path in some:
        (rest / "cat" / path.name).unlink()
    never = tool.folder / "never.frugal"
    teach(tool, never, rest)
    tool("learn", images)
    said = tool("unlearn", "cat", *some)
    assert f"{tool.file}: 2 samples of 'cat' removed, 7 left" in said
    assert "what remains: familiarity, and how sure answers are, still include" in said
    mine, expected = FrugalClassifier.load(tool.file), FrugalClassifier.load(never)
    np.testing.assert_allclose(
        mine.memory_.sums_.means[0], expected.memory_.sums_.means[0], rtol=1e-3
    )
    np.testing.assert_allclose(
        scatter(mine, 0), scatter(expected, 0), atol=0.03 * np.trace(scatter(expected, 0))
    )
    assert "is as it was" in tool("unlearn", "cat", *some)  # perhaps it was killed
    assert known(tool.file) == {"cat": 7, "dax": 9}
    told = tool.json("unlearn", "cat", images / "cat" / "0.png")
    assert (told["class"], told["taken_out"], told["left"]) == ("cat", 1, 6)


def scatter(classifier: FrugalClassifier, number: int) -> Any:
    rows = classifier.memory_.sums_.roots[number].astype(float)
    return rows.T @ rows


def test_what_was_never_taught_cannot_be_taken_out(tool: Tool, files: dict[str, Path]) -> None:
    shutil.copy(files["a"], tool.file)
    before = tool.file.read_bytes()
    strange = shades(tool.folder / "strange", "gnu", count=6)
    error = tool("unlearn", "cat", *sorted((strange / "gnu").iterdir())[:2], code=2)
    assert "'cat' was never taught" in error
    assert "gnu/0.png" in error
    error = tool("unlearn", "cat", tool.folder / "a" / "cat", "--flat", code=2)
    assert "cannot take 6 samples out of a class of 6; to take out all of them, forget" in error
    error = tool("forget", "cat", "--with", strange / "gnu", "--flat", code=2)
    assert "these are not the samples of the class: their mean is another" in error
    error = tool("forget", "cat", "--with", tool.folder / "a" / "cat" / "0.png", code=2)
    assert "class 'cat' was taught 6 samples, and 1 were given to take out" in error
    assert "give one of them" in tool("forget", "cat", "--scrub", "--with", strange, code=2)
    assert tool.file.read_bytes() == before
    tool.file.unlink()
    tool.learn(tool.folder / "a")  # with parts that are no sums of samples
    before = tool.file.read_bytes()
    assert "cannot take samples out again" in tool(
        "unlearn", "cat", tool.folder / "a" / "cat" / "0.png", code=2
    )
    assert tool.file.read_bytes() == before


@pytest.mark.parametrize("budget", ["1MB", "260B"])
def test_forgetting_gives_a_receipt(tool: Tool, budget: str) -> None:
    images = shades(tool.folder / "one", "cat", "dax", "emu", count=12)
    tool("learn", images, "--set", f"memory.budget={budget}")
    before = tool.file.read_bytes()
    said = tool("forget", "dax", "--with", images / "dax")
    after = tool.file.read_bytes()
    assert f"{tool.file}: 'dax' is forgotten; 2 classes left\nremoved: 12 samples, " in said
    assert f"removed: 12 samples, {len(before) - len(after):,} bytes of the file, 20" in said
    for name, content in (("before", before), ("after", after)):
        checksum = hashlib.sha256(content).hexdigest()
        assert f"\n{name}: {len(content):,} bytes, sha256 {checksum}\n" in said
    assert "what remains of it: the quantiles of familiarity are of all classes" in said
    assert "an average share" not in said
    assert "known again: dax" in tool("undo")
    told = tool.json("forget", "dax")
    assert {"class", "samples", "bytes", "remains", "before", "after", "when"} <= told.keys()
    assert told["before"]["sha256"] == hashlib.sha256(before).hexdigest()
    assert any("an average share" in sentence for sentence in told["remains"]) == (budget != "1MB")


# --------------------------------------------------------------------------- what sample writes


def test_what_sample_writes_can_be_learned(tool: Tool, files: dict[str, Path]) -> None:
    shutil.copy(files["a"], tool.file)
    drawn = tool.folder / "drawn.npz"
    tool("sample", "cat", "-n", 30, "-o", drawn)
    other = tool.folder / "other.frugal"
    teach(tool, other, drawn)
    assert known(other) == {"cat": 30}
    assert FrugalClassifier.load(other).encoder_["encoder"] == "colours"
    teach(tool, other, tool.folder / "b")
    assert known(other) == {"cat": 30, "dax": 6, "emu": 6}
    np.savez(drawn, x=np.ones((2, 3), np.float32), label=np.array([1.5]))
    error = tool("learn", drawn, code=2)
    assert "expected what 'frugalvae sample' writes" in error


def digits() -> tuple[Any, Any]:
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    return x, y
