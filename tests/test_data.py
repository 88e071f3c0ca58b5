from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frugalvae.bench.task_split import equal_sizes, split_classes
from frugalvae.errors import FeatureFileError, InputError
from frugalvae.images.feature_file import Features, load_features, write_features


def arrays(**changes: Any) -> dict[str, Any]:
    """A valid feature file's content, with entries changed; ``None`` removes one."""
    rng = np.random.default_rng(0)
    content = {
        "x_train": rng.normal(size=(6, 3)).astype(np.float16),
        "y_train": np.array([0, 0, 1, 1, 2, 2], np.int16),
        "x_test": rng.normal(size=(3, 3)).astype(np.float16),
        "y_test": np.array([0, 1, 2], np.int16),
        **changes,
    }
    return {key: value for key, value in content.items() if value is not None}


def test_a_feature_file_is_read_as_float32(tmp_path: Path) -> None:
    np.savez(tmp_path / "some.npz", **arrays())
    features = load_features(tmp_path / "some.npz")
    assert features.name == "some"
    assert features.x_train.dtype == np.float32
    np.testing.assert_array_equal(features.x_train, arrays()["x_train"].astype(np.float32))
    assert features.classes.tolist() == [0, 1, 2]
    assert features.text is None


def test_names_and_text_features_are_attached_to_their_classes(tmp_path: Path) -> None:
    text = np.eye(3, dtype=np.float16)
    np.savez(tmp_path / "f.npz", **arrays(class_names=np.array(["cat", "dax", "emu"]), text=text))
    features = load_features(tmp_path / "f.npz")
    assert features.y_test.tolist() == ["cat", "dax", "emu"]
    assert features.text is not None
    assert features.text["dax"].tolist() == [0, 1, 0]


def test_what_made_the_features_goes_with_them(tmp_path: Path) -> None:
    np.savez(tmp_path / "old.npz", **arrays())
    old = load_features(tmp_path / "old.npz")
    assert old.encoder is None
    write_features(tmp_path / "new.npz", replace(old, encoder={"encoder": "clip", "dims": [3]}))
    new = load_features(tmp_path / "new.npz")
    assert new.encoder == {"encoder": "clip", "dims": [3]}
    assert new.held_out(0.5, seed=0).encoder == new.encoder


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x_train": None}, "x_train is missing"),
        ({"y_train": None, "x_test": None}, "y_train is missing; x_test is missing"),
        (
            {"x_train": np.zeros((6, 3), int)},
            r"x_train is int64 of shape \(6, 3\), expected floats",
        ),
        ({"x_train": np.zeros(6)}, r"x_train is float64 of shape \(6,\)"),
        ({"x_train": np.full((6, 3), np.nan)}, "x_train holds NaN or infinite values"),
        ({"y_train": np.zeros(6)}, "y_train is float64 of shape .*, expected integers"),
        ({"y_train": np.array(["a"] * 6)}, "y_train is <U1"),
        ({"y_test": np.zeros(2, int)}, "x_test has 3 rows but y_test has 2 labels"),
        ({"x_test": np.zeros((3, 4))}, "x_train has 3 columns but x_test has 4"),
        ({"y_test": np.array([0, 1, 9])}, r"y_test has classes that y_train lacks: \[9\]"),
        ({"class_names": np.array(["a", "b"])}, "class_names has 2 entries, labels go to 2"),
        ({"text": np.zeros((3, 3), int)}, "text is int64"),
        ({"encoder": np.array("[1]")}, r"encoder is <U3 of shape \(\), expected a JSON object"),
        ({"encoder": np.array(["{}"])}, r"encoder is <U2 of shape \(1,\)"),
        ({"encoder": np.array("{")}, "encoder is <U1"),
    ],
)
def test_a_bad_feature_file_says_what_is_wrong(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    np.savez(tmp_path / "bad.npz", **arrays(**changes))
    with pytest.raises(FeatureFileError, match=f"bad.npz: {message}"):
        load_features(tmp_path / "bad.npz")


def test_files_that_are_no_archives_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FeatureFileError, match="there is no such file"):
        load_features(tmp_path / "absent.npz")
    npy = io.BytesIO()
    np.save(npy, np.zeros(3))
    for content in (b"", b"not an archive", b"PK\x03\x04 but broken", npy.getvalue()):
        (tmp_path / "bad.npz").write_bytes(content)
        with pytest.raises(FeatureFileError, match="not a readable .npz file"):
            load_features(tmp_path / "bad.npz")


def test_pickled_objects_are_never_loaded(tmp_path: Path) -> None:
    np.savez(tmp_path / "evil.npz", **arrays(x_train=np.array([print], object)))
    with pytest.raises(FeatureFileError, match="not a readable .npz file of plain arrays"):
        load_features(tmp_path / "evil.npz")


def test_holding_out_takes_from_training_and_never_from_test() -> None:
    y = np.repeat([0, 1], [8, 4])
    x = np.arange(12, dtype=np.float32)[:, None]
    features = Features("f", x, y, np.full((2, 1), -1, np.float32), np.array([0, 1]))
    part = features.held_out(0.25, seed=3)
    assert sorted([*part.x_train[:, 0], *part.x_test[:, 0]]) == list(range(12))
    assert np.bincount(part.y_test).tolist() == [2, 1]


@given(st.integers(1, 300), st.integers(1, 60), st.integers(0, 5))
def test_every_class_is_in_exactly_one_task(classes: int, tasks: int, seed: int) -> None:
    tasks = min(tasks, classes)
    parts = split_classes(np.arange(classes), tasks, seed)
    assert len(parts) == tasks
    assert sorted(np.concatenate(parts).tolist()) == list(range(classes))
    assert min(map(len, parts)) >= 1


def test_the_paper_s_splits() -> None:
    assert equal_sizes(200, 10) == [20] * 10
    assert equal_sizes(196, 10) == [20] * 9 + [16]


def test_the_seed_decides_the_order() -> None:
    first, same, other = (split_classes(np.arange(50), 5, seed) for seed in (0, 0, 1))
    assert all(np.array_equal(a, b) for a, b in zip(first, same, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize("sizes", [[2, 2], [3, 3], [0, 5], [5, -1, 1]])
def test_sizes_that_do_not_fit_are_refused(sizes: list[int]) -> None:
    with pytest.raises(InputError, match=r"there are 5 classes"):
        split_classes(np.arange(5), sizes, 0)


def test_more_tasks_than_classes_are_refused() -> None:
    with pytest.raises(InputError, match="5 classes cannot be split into 6 tasks"):
        split_classes(np.arange(5), 6, 0)
