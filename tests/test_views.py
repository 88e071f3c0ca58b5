"""Several views of a photograph: their average, what a file remembers, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

from frugalvae import PhotoClassifier
from frugalvae.cli.main import main
from frugalvae.encoders import Choice, choose, make_encoder
from frugalvae.encoders.defaults import Views
from frugalvae.errors import InputError
from frugalvae.testing import check_encoder
from tests.tool import paint

SMALL = ("--set", "encoder.size=32", "--quiet")


def photograph(seed: int = 0) -> Image.Image:
    coarse = np.random.default_rng(seed).integers(0, 256, (6, 8, 3), np.uint8)
    return Image.fromarray(coarse).resize((80, 60), Image.Resampling.BICUBIC)


def small(views: int = 1) -> object:
    return make_encoder("efficientnet", size=64, views=views)


def feature(encoder: object, image: Image.Image) -> np.ndarray:
    return encoder.encode(encoder.prepare(image)[None])[0]


@pytest.mark.parametrize("views", [2, 4])
def test_it_keeps_the_rules_of_encoders(views: int) -> None:
    check_encoder(lambda: small(views))


def test_a_feature_is_the_average_over_views() -> None:
    image, one = photograph(), small()
    near = image.crop((8, 6, 72, 54)).resize((80, 60), Image.Resampling.BICUBIC)
    two = [feature(one, image), feature(one, ImageOps.mirror(near))]
    four = [*two, feature(one, ImageOps.mirror(image)), feature(one, near)]
    for views, expected in ((2, two), (4, four)):
        found = feature(small(views), image)
        scale = np.abs(found).max()
        average = np.mean([one / np.linalg.norm(one) for one in expected], axis=0)
        average /= np.linalg.norm(average)
        np.testing.assert_allclose(found, average, atol=0.05 * scale)
        for other in expected:
            assert np.abs(found - other / np.linalg.norm(other)).max() > 0.1 * scale


def test_with_four_views_a_mirrored_photograph_is_the_same() -> None:
    image = photograph()
    one, other = (feature(small(4), seen) for seen in (image, ImageOps.mirror(image)))
    np.testing.assert_allclose(one, other, atol=0.02 * np.abs(one).max())


def test_photographs_are_decoded_large_enough_for_the_nearer_view() -> None:
    encoder = small(2)
    assert isinstance(encoder, Views)
    assert encoder.side * 0.8 >= small().side > encoder.side * 0.75


@pytest.mark.parametrize("views", [0, 3, 8, 4.0, True, "4", None])
def test_other_numbers_are_refused(views: object) -> None:
    with pytest.raises(InputError, match=r"views is .*(Choices: 1, 2, 4|whole number, from 1)"):
        small(views)


def test_a_file_remembers_its_views(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    photos, file = paint(tmp_path / "photos", "cat", "dax"), str(tmp_path / "a.frugal")
    assert main(["learn", file, str(photos), "--views", "4", *SMALL]) == 0
    assert main(["status", file]) == 0
    assert ", 4 views; feature dimension 1280" in capsys.readouterr().out
    [asked, *_] = sorted((photos / "cat").iterdir())
    assert main(["predict", file, str(asked), "--json"]) == 0  # nobody says it again
    [answer] = json.loads(capsys.readouterr().out)["predictions"]
    expected = PhotoClassifier.load(file).predict(asked)
    assert answer["label"] == expected.item() == "cat"

    before = Path(file).read_bytes()
    more = paint(tmp_path / "more", "emu")
    for views in ("1", "2"):
        for command in ("learn", file, str(more), "--dry-run"), ("learn", file, str(photos)):
            assert main([*command, "--views", views, "--quiet"]) == 2
            assert "was taught with --views 4" in capsys.readouterr().err
    assert main(["serve", file, "--views", "2"]) == 2
    assert "was taught with --views 4" in capsys.readouterr().err
    assert Path(file).read_bytes() == before
    assert main(["learn", file, str(more), "--views", "4", "--quiet"]) == 0

    other = str(tmp_path / "b.frugal")
    assert main(["learn", other, str(more), *SMALL]) == 0
    assert main(["merge", file, other]) == 2
    told = capsys.readouterr().err
    assert "4 views, the other with efficientnet efficientnet-lite0" in told
    assert "views differ" in told
    asked = ["--views", "2", "--set", "encoder.views=4"]
    assert main(["learn", str(tmp_path / "c.frugal"), str(more), *asked]) == 2
    assert "leave one of them out" in capsys.readouterr().err


def test_features_of_other_views_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    photos, file = paint(tmp_path / "photos", "cat", "dax"), str(tmp_path / "a.frugal")
    encoded = str(tmp_path / "features.npz")
    assert main(["encode", str(photos), "-o", encoded, "--views", "2", *SMALL]) == 0
    assert main(["learn", file, str(photos), *SMALL]) == 0
    assert main(["learn", file, encoded, "--quiet"]) == 2
    assert "views differ" in capsys.readouterr().err
    assert main(["learn", str(tmp_path / "b.frugal"), encoded, "--views", "2"]) == 2
    assert "leave out --views" in capsys.readouterr().err
    several = ["--set", "encoder.size=32", "--set", "encoder.threads=1"]
    assert main(["learn", str(tmp_path / "b.frugal"), encoded, *several]) == 2
    assert capsys.readouterr().err.endswith("leave out --set encoder\n")


def test_the_same_network_in_another_format_keeps_the_views() -> None:
    taught = {"encoder": "onnx", "views": 4, "given": {"name": "onnx", "settings": {"views": 4}}}
    chosen = choose(taught, Choice("transformers", "org/model"), "a.frugal")
    assert chosen["settings"] == {"views": 4, "model": "org/model"}
