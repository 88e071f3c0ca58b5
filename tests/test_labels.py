"""Labels that look the same are one class, by whichever door they come in."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frugalvae import FrugalClassifier
from frugalvae.errors import FeatureFileError, InputError, MemoryFileError
from frugalvae.images.feature_file import load_features
from frugalvae.labels import LONGEST, as_label, check_label, edits, label_named, like
from frugalvae.storage.model_file import from_bytes, to_bytes
from tests.tool import Tool

KEPT = "Rüppell's warbler"
WRITTEN = [
    unicodedata.normalize("NFD", KEPT),
    f"{KEPT} ",
    f"\u3000{KEPT}\t",
    KEPT.replace(" ", "\u00a0"),
    KEPT.replace(" ", "  "),
    KEPT.replace("w", "w\u200d"),
    KEPT.replace("p", "p\ufe0f"),
    f"\u034f{KEPT}\u200c",
]
X = np.array([[0.0, 1.0, 0.2], [0.1, 1.0, 0.1], [1.0, 0.0, 0.0], [1.0, 0.2, 0.0]])
BLANKS = [" ", "\u00a0", "\u2003", "\u3000", "\u2800"]


@given(st.text(), st.sampled_from(BLANKS), st.sampled_from(["NFC", "NFD"]))
def test_what_looks_the_same_is_kept_the_same(name: str, blank: str, form: Any) -> None:
    kept = as_label(name)
    assert as_label(kept) == kept
    assert as_label(unicodedata.normalize(form, name)) == kept
    assert as_label(f"{blank}{name}{blank}") == kept
    assert as_label(name.replace(" ", blank)) == kept


@given(
    st.text("abcé \u0430\u03b1", min_size=1),
    st.integers(0),
    st.sampled_from("\u200c\u200d\u034f\ufe0f"),
)
def test_what_cannot_be_seen_is_not_kept(name: str, place: int, unseen: str) -> None:
    place %= len(name) + 1
    assert as_label(name[:place] + unseen + name[place:]) == as_label(name)


def test_joiners_are_kept_where_they_are_seen() -> None:
    for name in ("\u0645\u06cc\u200c\u062e", "क्\u200dष", "👩\u200d🚀", "❤\ufe0f"):
        assert as_label(name) == check_label(name) == name
    assert [as_label(label) for label in (7, True, 2.5, None)] == [7, True, 2.5, None]
    for name in ("two\nlines", "\u200b", "\u3164", "soft\u00adhyphen"):
        with pytest.raises(InputError, match="expected a name that can be read"):
            check_label(name)


def test_no_label_is_long_enough_to_take_minutes(tmp_path: Path) -> None:
    """Composing accents takes the square of their number, in Python and in files alike."""
    long, path = "a" + "\u0301\u0323" * LONGEST, tmp_path / "f.npz"
    np.savez(
        path, x_train=X, y_train=[0, 0, 1, 1], x_test=X, y_test=[0] * 4, class_names=[long, "b"]
    )
    for use in (
        lambda: label_named("it", ["a"], long),
        lambda: FrugalClassifier().fit(X, [long] * 4),
        lambda: FrugalClassifier().fit(X, [7] * 4).rename(7, long),
        lambda: like(7, "9" * 5_000),
        lambda: load_features(path),
    ):
        with pytest.raises(InputError, match=r"has [\d,]+ characters; expected at most 255"):
            use()


def test_a_typed_name_is_composed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Mock(side_effect=as_label)
    monkeypatch.setattr("frugalvae.labels.as_label", counted)
    assert label_named("it", [*map(str, range(99))], "98") == "98"
    assert counted.call_count == 1


def test_letters_of_names_are_compared_up_to_two_edits() -> None:
    """Counting all edits would take the product of the names' lengths."""
    one, two = "a" * 250 + "bc", "a" * 249 + "cb"
    assert [edits(one, two), edits(one, f"{one}def"), edits(one, f"{one}defghi")] == [2, 3, 3]


@pytest.mark.parametrize("written", WRITTEN)
def test_in_python_they_are_one_class(written: str) -> None:
    text = {KEPT: [0.0, 1.0, 0.0], "emu": [1.0, 0.0, 0.0]}
    spelt = {written: text[KEPT], "emu": text["emu"]}
    clf = FrugalClassifier().fit(X, [KEPT, written, "emu", "emu "], text=spelt)
    assert sorted(clf.classes_.tolist()) == [KEPT, "emu"]
    assert clf.partial_fit(X[:1], np.array([written], object)).n_samples_of_class_.max() == 3
    assert clf.score(X, [written, KEPT, "emu", "emu"]) == 1.0
    assert clf.partial_fit(X[:1], [written]).n_samples_of_class_.max() == 4
    assert clf.sample(written, 2, 0).tolist() == clf.sample(KEPT, 2, 0).tolist()
    assert clf.unlearn(written, X[:1]).n_samples_of_class_.max() == 3
    with pytest.raises(InputError, match=r"is already known|one class of both"):
        clf.rename("emu", written)
    assert clf.learn_names({**spelt, "heron ": [0.0, 0.0, 1.0]}).classes_.tolist() == [
        KEPT,
        "emu",
        "heron",
    ]
    clf.rename(written, f"old {written}")
    assert f"old {KEPT}" in clf.classes_.tolist()
    other = FrugalClassifier().fit(X[:2], [written] * 2, text={written: text[KEPT]})
    with pytest.raises(InputError, match=r"is there twice, written in two ways"):
        clf.merge(other, rename={written: "a", KEPT: "b"})
    clf.merge(other, rename={written: f" old  {written}"})
    assert sorted(clf.classes_.tolist()) == ["emu", "heron", f"old {KEPT}"]
    clf.forget(f"old {written}")
    assert clf.merge_classes("emu", "heron ").classes_.tolist() == ["emu"]


def test_two_texts_for_one_class_are_refused() -> None:
    text = {KEPT: X[0], WRITTEN[0]: X[1]}
    for teach in (
        lambda clf: clf.fit(X[:2], [KEPT] * 2, text=text),
        lambda clf: clf.learn_names(text),
        lambda clf: clf.fit(X[:2], [KEPT] * 2, names={KEPT: "a", WRITTEN[0]: "b"}),
    ):
        with pytest.raises(InputError, match="is there twice, written in two ways; leave one out"):
            teach(FrugalClassifier())


@pytest.mark.parametrize("written", WRITTEN)
def test_in_feature_files_they_are_one_class(tmp_path: Path, written: str, tool: Tool) -> None:
    path, x = tmp_path / "f.npz", X.astype(np.float32)
    y = [KEPT, written, "emu", "emu "]
    np.savez(path, x_train=x, y_train=y, x_test=x, y_test=y[::-1])
    assert np.unique(load_features(path).y_train).tolist() == [KEPT, "emu"]
    assert np.unique(load_features(path).y_test).tolist() == [KEPT, "emu"]
    tool("learn", path)
    assert tool.json("learn", path, "--dry-run")["already"] == {KEPT: 2, "emu": 2}
    numbers = np.array([0, 1, 1, 0])
    np.savez(
        path, x_train=x, y_train=numbers, x_test=x, y_test=numbers, class_names=[written, "emu"]
    )
    assert load_features(path).y_train.tolist() == [KEPT, "emu", "emu", KEPT]
    np.savez(
        path, x_train=x, y_train=numbers, x_test=x, y_test=numbers, class_names=[written, KEPT]
    )
    with pytest.raises(FeatureFileError, match="class_names holds a name twice"):
        load_features(path)
    np.savez(path, x=x, label=f"{written} ")
    tool("learn", path)
    assert tool.json("status")["tasks"] == [{KEPT: 4, "emu": 2}]  # two rows were taught before


@pytest.mark.parametrize("written", WRITTEN)
def test_a_file_has_labels_in_one_writing_alone(tmp_path: Path, written: str) -> None:
    path = tmp_path / "it.frugal"
    FrugalClassifier().fit(X, [KEPT, KEPT, "emu", "emu"]).save(path)
    document, arrays = from_bytes(path.read_bytes())
    document["classes"]["values"] = [written.strip("\t"), "emu"]
    del document["sha256"]
    path.write_bytes(to_bytes(document, arrays))
    with pytest.raises(MemoryFileError, match="has blanks or accents that no label has"):
        FrugalClassifier.load(path)
