"""Names as knowledge: classes by name alone, and names that mean nothing."""

from __future__ import annotations

import copy
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from frugalvae import FrugalClassifier, PhotoClassifier, encoders, make_head
from frugalvae.cli import learn as cli_learn
from frugalvae.errors import InputError
from frugalvae.maths.arrays import Array, softmax, unit
from frugalvae.parts.names import FIRST, LAST, Names
from tests.tool import Tool, paint

DIM, CLASSES = 24, 12


def world(seed: int = 0, per_class: int = 8) -> tuple[Array, Array, dict[str, Array]]:
    """Samples of twelve classes; texts share a part of their own, as CLIP's do."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(CLASSES, DIM))
    y = np.repeat(np.arange(CLASSES), per_class)
    x = (centres[y] + 0.6 * rng.normal(size=(len(y), DIM)) + 1).astype(np.float32)
    shared = 3 * rng.normal(size=DIM)
    text = {f"c{k}": (shared + centres[k]).astype(np.float32) for k in range(CLASSES)}
    return x, np.array([f"c{k}" for k in y]), text


def taught(known: int, text: dict[str, Array] | None = None) -> tuple[Any, Array, Array, Any]:
    """A classifier of the first classes by samples; the others by name alone."""
    x, y, texts = world()
    text = texts if text is None else text
    rows = np.isin(y, list(texts)[:known])
    clf = FrugalClassifier()
    if known:
        clf.fit(x[rows], y[rows], text=text)
    alone = {name: vector for name, vector in text.items() if name in list(texts)[known:]}
    return (clf.learn_names(alone) if alone else clf), x, y, texts


# --------------------------------------------------------------------------- the rule


@pytest.mark.parametrize("known", [0, 1, 5, 11])
def test_probabilities_follow_the_chain_rule(known: int) -> None:
    """Names divide between classes with and without samples; samples decide among the first."""
    clf, x, y, text = taught(known)
    vectors = unit(
        np.stack([text[name] for name in clf.model_.classes.tolist()]).astype(np.float64)
    )
    by_name = softmax(100 * unit(x.astype(np.float64)) @ vectors.T)
    found = clf.model_.predict_proba(x)
    np.testing.assert_allclose(found[:, known:], by_name[:, known:], atol=1e-6)
    if known:
        rows = np.isin(y, clf.model_.classes[:known])
        alone = FrugalClassifier().fit(x[rows], y[rows], text=text).model_.predict_proba(x)
        expected = alone * by_name[:, :known].sum(axis=1, keepdims=True)
        np.testing.assert_allclose(found[:, :known], expected, atol=1e-6)


def test_classes_by_name_are_found(tmp_path: Path) -> None:
    clf, x, y, _ = taught(6)
    assert clf.model_.n_samples_of_class.tolist() == [8] * 6 + [0] * 6
    other = np.isin(y, clf.model_.classes[6:])
    assert np.mean(clf.predict(x[other]) == y[other]) > 0.8
    assert np.mean(clf.predict(x[~other]) == y[~other]) > 0.8
    clf.save(tmp_path / "f")
    again = FrugalClassifier.load(tmp_path / "f")
    assert again.model_.by_name == clf.model_.by_name == clf.model_.classes[6:].tolist()
    np.testing.assert_allclose(
        again.model_.predict_proba(x), clf.model_.predict_proba(x), atol=0.02
    )
    assert clf.history_[-1]["classes"] == dict.fromkeys(clf.model_.classes[6:].tolist(), 0)


def test_a_class_by_name_becomes_an_ordinary_one() -> None:
    x, y, text = world()
    clf, *_ = taught(6)
    late = np.isin(y, clf.model_.classes[6:])
    clf.partial_fit(x[late], y[late])
    once = FrugalClassifier().fit(x, y, text=text)
    assert clf.model_.by_name == []
    assert dict(
        zip(clf.model_.classes, clf.model_.n_samples_of_class, strict=True)
    ) == dict.fromkeys(text, 8)
    order = [clf.model_.classes.tolist().index(name) for name in once.model_.classes]
    clf.head_.evidence_ = once.head_.evidence_  # which depends on the order of batches
    assert np.array_equal(
        once.predict(x), clf.model_.classes[clf.model_.predict_proba(x).argmax(axis=1)]
    )
    np.testing.assert_allclose(
        clf.memory_.logits(x, tempering=1.0)[:, order], once.memory_.logits(x, tempering=1.0),
        atol=1e-3,
    )  # fmt: skip


def test_a_meaningless_name_neither_helps_nor_hurts() -> None:
    """Its class gets the average of what names add to the others: its probability stays."""
    rng = np.random.default_rng(0)
    logits, more = rng.normal(size=(50, 4)), rng.normal(size=(50, 4))
    names = Names(np.zeros((4, 2)), np.ones(4), np.array([True, False, True, True]))
    found, before = softmax(names.added(logits, more)), softmax(logits)
    np.testing.assert_allclose(found[:, 1], before[:, 1])
    inside = softmax((logits + more)[:, [0, 2, 3]]) * (1 - before[:, [1]])
    np.testing.assert_allclose(found[:, [0, 2, 3]], inside)
    nothing = Names(np.zeros((4, 2)), np.ones(4), np.zeros(4, bool))
    assert nothing.added(logits, more) is logits


@pytest.mark.parametrize("kind", ["noise", "others"])
@pytest.mark.parametrize("count", [1, 8])
def test_meaningless_names_are_noticed_one_by_one(kind: str, count: int) -> None:
    rng, size = np.random.default_rng(1), 60
    centres = rng.normal(size=(size, DIM))
    means = centres + 0.6 * rng.normal(size=(size, DIM)) / count**0.5
    text = centres + 3 * rng.normal(size=DIM)
    bad = rng.permutation(size)[:30]
    text[bad] = rng.normal(size=(30, DIM)) if kind == "noise" else text[np.roll(bad, 1)]
    names = Names.of(text, means, np.full(size, count))
    assert names.meaningful[bad].mean() < 0.15  # some fit by chance
    assert np.delete(names.meaningful, bad).mean() > 0.9
    np.testing.assert_allclose(names.weights, LAST + FIRST / count)


def test_how_well_a_name_fits_is_what_a_loop_finds() -> None:
    """The squares of all classes along a name come from one product of means."""
    rng = np.random.default_rng(2)
    means = rng.normal(size=(9, DIM))
    text = means + rng.normal(size=(9, DIM))
    m, share, sure = unit(means) - unit(means).mean(axis=0), 0.9, np.ones(9)
    for _ in range(20):
        v = unit(text) - np.average(unit(text), axis=0, weights=sure)
        fit = [
            (v[c] @ m[c]) / np.sqrt(np.mean([(v[c] @ m[i]) ** 2 for i in range(9) if i != c]))
            for c in range(9)
        ]
        ratio = np.exp(3 * np.array(fit) - 4.5)
        sure = share * ratio / (share * ratio + 1 - share)
        share = (sure.sum() + 1.8) / 11
    names = Names.of(text, means, np.arange(1, 10))
    assert np.array_equal(names.meaningful, sure / (1 - sure) > np.arange(1, 10) ** 2)
    np.testing.assert_allclose(names.vectors, v, atol=1e-6)


def test_classes_without_a_name_stand_beside_named_ones() -> None:
    x, y, text = world()
    half = dict(list(text.items())[:6])
    clf = FrugalClassifier().partial_fit(x[y < "c5"], y[y < "c5"])  # no text at all
    clf.partial_fit(x[y >= "c5"], y[y >= "c5"], text=text)
    assert np.mean(clf.predict(x) == y) > 0.9
    with pytest.raises(InputError, match="of the classes with samples have no text feature"):
        clf.learn_names({"heron": half["c0"]})
    assert "heron" not in clf.model_.classes


# --------------------------------------------------------------------------- verbs


def test_verbs_take_a_class_by_name() -> None:
    clf, x, *_ = taught(6)
    clf.rename("c9", "heron")
    assert "heron" in clf.model_.by_name
    assert clf.forget("c8") == []
    assert "c8" not in clf.model_.classes
    with pytest.raises(InputError, match="'heron' is known by name alone: it has no samples"):
        clf.unlearn("heron", x[:1])
    with pytest.raises(InputError, match="'heron' is known by name alone: there is nothing to s"):
        clf.sample("heron")
    clf.merge_classes("c7", "heron")  # two names: the first is kept
    assert clf.model_.by_name == ["c10", "c11", "c6", "c7"]
    clf.merge_classes("c6", "c0")  # samples and a name
    assert clf.model_.n_samples_of_class[clf.model_.classes.tolist().index("c6")] == 8
    assert clf.model_.by_name == ["c10", "c11", "c7"]
    for label in ("c1", "c10", "c11", "c2", "c6"):
        clf.forget(label)
    assert np.isfinite(clf.model_.predict_proba(x)).all()


def test_the_last_class_with_samples_can_be_forgotten() -> None:
    clf, x, y, _ = taught(1)
    clf.forget("c0")
    assert len(clf.model_.by_name) == 11
    assert np.mean(clf.predict(x[y == "c5"]) == "c5") > 0.8
    with pytest.raises(InputError, match="all classes are known by name alone"):
        clf.familiarity(x)
    clf.partial_fit(x[y == "c0"], y[y == "c0"], text={"c0": world()[2]["c0"]})
    assert clf.model_.n_samples_of_class[-1] == 8


def test_merging_joins_names_and_samples() -> None:
    x, y, text = world()
    mine, *_ = taught(6)
    rows = np.isin(y, ["c9", "c8"])
    yours = FrugalClassifier().fit(x[rows], y[rows], text=text)
    both, other_way = copy.deepcopy(mine).merge(yours), copy.deepcopy(yours).merge(mine)
    assert {"c8", "c9"}.isdisjoint(both.model_.by_name)
    assert sorted(both.model_.by_name) == sorted(other_way.model_.by_name)
    columns = [other_way.model_.classes.tolist().index(name) for name in both.model_.classes]
    np.testing.assert_allclose(
        both.model_.predict_proba(x), other_way.model_.predict_proba(x)[:, columns], atol=1e-4
    )
    names = FrugalClassifier().learn_names({"c0": text["c0"], "c1": text["c1"]})
    more = FrugalClassifier().learn_names({"c2": text["c2"]})
    assert names.merge(more).model_.by_name == ["c0", "c1", "c2"]
    nameless = FrugalClassifier().fit(x[:3], ["z", "z", "z"])
    with pytest.raises(InputError, match="no text feature"):
        mine.merge(nameless)
    assert "c9" in mine.model_.by_name


def test_familiarity_counts_names() -> None:
    clf, x, y, _ = taught(6)
    other = np.isin(y, clf.model_.classes[6:])
    samples = copy.deepcopy(clf)
    for name in list(samples.model_.by_name):
        samples.forget(name)
    assert clf.familiarity(x[other]).mean() > samples.familiarity(x[other]).mean() + 0.2


def test_what_cannot_learn_names_says_so() -> None:
    text = {"heron": np.ones(3)}
    for parts in (
        {"memory": "gaussian-shared", "head": "bayes"},
        {"head": make_head("bayes", names=False)},
    ):
        with pytest.raises(InputError, match="cannot learn a class by its name alone"):
            FrugalClassifier(**parts).learn_names(text)
    with pytest.raises(InputError, match="expected {label: vector"):
        FrugalClassifier().learn_names({})
    clf = FrugalClassifier().learn_names(text)
    with pytest.raises(InputError, match=r"has shape \(2,\); expected \(3,\)"):
        clf.learn_names({"emu": np.ones(2)})
    assert clf.learn_names(text).model_.classes.tolist() == ["heron"]


# --------------------------------------------------------------------------- the command


class Reading:
    """Stands for ``make_encoder``: an encoder of colours that reads their names, or does not."""

    def __init__(self, reads: bool) -> None:
        self.reads = reads

    def __call__(self, name: str, **settings: Any) -> Any:
        from tests.colours import Colours
        from tests.tool import SHADES

        made = Colours()

        def text_features(names: Any) -> Any:
            told = [SHADES.get(name, (128, 128, 128)) for name in names]
            return np.array(told, np.float32) if self.reads else None

        made.text_features = text_features  # type: ignore[method-assign]
        return made


@pytest.fixture
def tool(tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> Tool:
    monkeypatch.setattr(encoders, "make_encoder", Reading(reads=True))
    return Tool(tmp_path, capsys)


def test_names_on_the_command_line(tool: Tool, tmp_path: Path) -> None:
    photos = paint(tmp_path / "photos", "cat", "dax", count=4)
    tool("learn", photos)
    assert "2 new classes by name alone: emu, fox" in tool(
        "learn", "--names", "emu, fox", "--dry-run"
    )
    assert tool.classes == ["cat", "dax"]
    said = tool("learn", "--names", "emu, fox,cat")
    assert "1 class known already: cat" in said
    assert "learned 2 classes by name alone" in said
    assert "emu (by name only), fox (by name only)" in tool("status")
    assert tool.json("status")["tasks"][1] == {"emu": 0, "fox": 0}
    test = paint(tmp_path / "test", "emu", "fox", "cat", count=1)
    answers = tool.json("predict", *(test / name / "0.png" for name in ("emu", "fox", "cat")))
    assert [row["label"] for row in answers["predictions"]] == ["emu", "fox", "cat"]
    assert "nothing new in --names" in tool("learn", "--names", "emu")
    tool("learn", "--names", "badger, badgers, otters, wolverine", "--dry-run")
    assert tool.err.count("nearly the same names: 'badger' and 'badgers'") == 1
    tool("undo")
    assert tool.classes == ["cat", "dax"]
    many = [f"bird number {number}" for number in range(60)]  # longer than a file's name may be
    told = tool.json("learn", "--names", ", ".join(many))
    assert sorted(told["learned"]) == sorted(many)
    assert told["encoder"] == tool.json("status")["encoder"]


def test_one_name_is_one_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoders, "make_encoder", Reading(reads=True))
    assert PhotoClassifier().learn_names("emu").classes_.tolist() == ["emu"]


def test_photographs_come_later(tool: Tool, tmp_path: Path) -> None:
    listed = tmp_path / "names.txt"
    listed.write_text("emu\nfox\n\nemu\n")
    tool("learn", "--names", listed)  # a new file, of names alone
    assert tool.json("status")["tasks"] == [{"emu": 0, "fox": 0}]
    tool("learn", paint(tmp_path / "photos", "emu", "cat", count=3))
    found = FrugalClassifier.load(tool.file)
    counts = zip(found.classes_.tolist(), found.n_samples_of_class_.tolist(), strict=True)
    assert dict(counts) == {"emu": 3, "fox": 0, "cat": 3}
    tool("learn", tmp_path / "photos")  # and not again
    assert FrugalClassifier.load(tool.file).model_.n_samples_of_class.tolist() == [3, 0, 3]


def test_the_command_refuses_clearly(tool: Tool, tmp_path: Path, monkeypatch: Any) -> None:
    assert "one of them; for both, run it twice" in tool("learn", code=2)
    assert "holds no name" in tool("learn", "--names", " , ", code=2)
    binary = tmp_path / "x.txt"
    binary.write_bytes(b"\xff\xfe\x00")
    assert "is no text in UTF-8" in tool("learn", "--names", binary, code=2)
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", "/dev/zero"):
        said = tool("learn", "--names", place, code=2)
        assert f"{place} cannot be read (it is not a regular file); expected a name" in said
    monkeypatch.setattr(encoders, "make_encoder", Reading(reads=False))
    assert "cannot read names; expected CLIP or SigLIP" in tool("learn", "--names", "emu", code=2)
    assert not tool.file.exists()


def test_names_are_split_at_commas_or_lines(tmp_path: Path) -> None:
    assert cli_learn.names_in(" a heron , egret,, egret") == ["a heron", "egret"]
    listed = tmp_path / "names"
    listed.write_text("heron, great blue\n egret \n", "utf-8")
    assert cli_learn.names_in(str(listed)) == ["heron, great blue", "egret"]


def test_a_numbered_class_is_corrected_with_its_name() -> None:
    from frugalvae.verbs.changes import correct

    text: dict[Any, Any] = {0: [255, 0, 0], 1: [0, 0, 255]}
    rows = np.array([[250, 5, 0], [240, 0, 5], [0, 5, 250], [5, 0, 240]], np.float32)
    model = FrugalClassifier().fit(rows, [0, 0, 1, 1], text=text).model_
    encoder = Reading(reads=True)("colours")
    digests = np.array([b"a"], "S16")
    taught = correct(model, "7", rows[:1] + 60, digests, encoder, {"encoder": "colours"})
    assert (taught.label, taught.model.classes.tolist()) == (7, [0, 1, 7])
