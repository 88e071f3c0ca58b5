"""Finding the data of experiments, and what observers of figures record."""

from __future__ import annotations

import io
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.conftest import SMALL

from frugalvae.errors import InputError
from frugalvae.images.feature_file import Features, load_features, write_features
from frugalvae_lab.bench.data_sources import find_data, fingerprint, in_data_folder, parse_data
from frugalvae_lab.bench.grid import Cell
from frugalvae_lab.bench.pool import load_shared, save_shared
from frugalvae_lab.bench.run import make_run, unpack_counts
from frugalvae_lab.bench.specification import Part
from frugalvae_lab.bench.tasks import first_then_equal


def test_a_written_feature_file_reads_back(features: Features, tmp_path: Path) -> None:
    names = np.array(["ant", "bee", "cat", "dog", "emu", "fox"])
    named = replace(
        features,
        y_train=names[features.y_train],
        y_test=names[features.y_test],
        text={name: np.full(8, number, np.float32) for number, name in enumerate(names.tolist())},
    )
    for entry in (features, named):
        write_features(tmp_path / "f.npz", entry)
        again = load_features(tmp_path / "f.npz")
        assert fingerprint(again) == fingerprint(entry)
        assert again.y_test.tolist() == entry.y_test.tolist()
    assert again.text is not None
    assert again.text["cat"].tolist() == [2.0] * 8


def test_shared_arrays_are_mapped_and_equal(features: Features, tmp_path: Path) -> None:
    text = {label: np.full(8, label, np.float32) for label in range(6)}
    save_shared(tmp_path / "blobs", replace(features, text=text))
    again = load_shared(tmp_path / "blobs")
    assert isinstance(again, Features)
    assert isinstance(again.x_train, np.memmap)
    assert fingerprint(again) == fingerprint(features)
    assert again.text is not None
    assert again.text[3].tolist() == text[3].tolist()


def test_a_fingerprint_tells_data_apart_but_not_how_wide_a_label_is(features: Features) -> None:
    assert fingerprint(features) == fingerprint(
        replace(features, y_train=features.y_train.astype(np.int16))
    )
    moved = features.x_train.copy()
    moved[3, 2] += 1e-3
    assert fingerprint(replace(features, x_train=moved)) != fingerprint(features)


def test_absent_data_is_told_with_where_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRUGALVAE_DATA", str(tmp_path))
    found, absent = find_data(["digits", "cub200", "cub20"], {})
    assert list(found) == ["digits"]
    assert "cub200-efficientnet_lite0.npz does not exist" in absent["cub200"]
    assert "vision.caltech.edu" in absent["cub200"]
    assert "Did you mean 'cub200'?" in absent["cub20"]


def test_data_of_the_command_line_is_checked() -> None:
    for wrong, message in [
        (["birds"], "expected NAME=FILE"),
        (["cub20"], "Did you mean 'cub200'?"),
        (["a=1.npz", "a=2.npz"], "given twice"),
        (["../a=1.npz"], "expected NAME=FILE"),
    ]:
        with pytest.raises(InputError, match=message.replace("?", r"\?")):
            parse_data(wrong)


def test_a_first_task_leaves_room_for_others() -> None:
    assert first_then_equal(100, 0.4, 60) == [40, *[1] * 60]
    assert first_then_equal(242, 0.5, 5) == [121, 25, 24, 24, 24, 24]
    for wrong in (10, 0, 0.999):
        with pytest.raises(InputError, match="leaves no class"):
            first_then_equal(10, wrong, 2)


def cell(observe: str, **settings: object) -> Cell:
    given = {**SMALL, "classwise": False, **settings}
    return Cell(
        "blobs",
        "f",
        3,
        Part("memory", "vae-fo", given, given),
        Part("head", "nearest-mean", {}, {}),
        seed=0,
        observe=observe,
    )


def test_the_figure_of_the_gaussians_has_them_before_and_after(features: Features) -> None:
    record = make_run(cell("placement", latent=2), features)
    first, second, third = record["observed"]["tasks"]
    assert first["old"] == []
    assert np.allclose(second["old"], first["end"])
    assert np.allclose(third["old"], first["end"] + second["end"])
    start, end = np.array(first["start"]), np.array(first["end"])
    assert np.linalg.norm(end[0] - end[1]) > 10 * np.linalg.norm(start[0] - start[1])


def test_the_layout_keeps_the_draws_of_a_class_together(features: Features) -> None:
    record = make_run(cell("tsne"), features)
    panels = record["observed"]["tasks"]
    assert [len(panel) for panel in panels] == [2, 4, 6]
    assert [entry["task"] for entry in panels[-1]] == [0, 0, 1, 1, 2, 2]
    points = np.array([entry["points"] for entry in panels[-1]])  # (class, draw, 2)
    centres = points.mean(axis=1)
    distances = np.linalg.norm(points[:, :, None] - centres, axis=3)
    assert (distances.argmin(axis=2) == np.arange(6)[:, None]).all()


def test_the_recorded_confusions_are_those_of_the_accuracies(features: Features) -> None:
    record = make_run(replace(cell("tsne"), observe=None), features)
    counts = unpack_counts(record["confusion"])
    assert counts.sum() == len(features.y_test)
    right = counts.diagonal() / counts.sum(axis=1)
    assert np.allclose(right.reshape(3, 2).mean(axis=1), record["accuracy"][-1])


def test_folders_of_data_may_have_a_comma(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "mine, and yours"
    for number, name in enumerate(("omniglot_small1.zip", "omniglot_small2.zip")):
        folder.mkdir(exist_ok=True)
        drawn = io.BytesIO()
        Image.new("L", (8, 8), 50 * number).save(drawn, "PNG")
        with zipfile.ZipFile(folder / name, "w") as archive:
            for row in range(4):
                archive.writestr(f"letter {number}/{row}.png", drawn.getvalue() + bytes([row]))
    monkeypatch.setenv("FRUGALVAE_DATA", str(folder))
    found, absent = find_data(["omniglot"], {})
    assert absent == {}
    assert found["omniglot"].data.classes.tolist() == ["letter 0", "letter 1"]
    given = {"mine": str(folder / "omniglot_small1.zip")}
    assert find_data(["mine"], given)[0]["mine"].to_json()["file"] == "omniglot_small1.zip"
    given["mine"] = ",".join(["/dev/null/no", str(folder)])
    with pytest.raises(InputError):
        find_data(["mine"], given)


@pytest.mark.parametrize("place", ["", "features", "images"])
def test_data_may_be_in_folders_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setenv("FRUGALVAE_DATA", str(tmp_path))
    (tmp_path / place / "birds").mkdir(parents=True)
    assert in_data_folder("birds") == [tmp_path / place / "birds"]
