"""The whole way: photographs, CLIP, three tasks with learned prompts, one file, and back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from frugalvae import FrugalClassifier, make_head, make_memory
from frugalvae.cli.main import main
from frugalvae.images.feature_file import Features, load_features

COLOURS = {
    "Red_Kite": (200, 30, 30),
    "Blue_Jay": (30, 60, 200),
    "Green_Finch": (40, 170, 40),
    "White_Stork": (235, 235, 235),
    "Black_Swan": (15, 15, 15),
    "Yellow_Wagtail": (220, 200, 30),
}
TASKS = (["Red_Kite", "Blue_Jay"], ["Green_Finch", "White_Stork"], ["Black_Swan", "Yellow_Wagtail"])


def paint(folder: Path) -> Path:
    """Pictures of some colour each, of many sizes, in several formats."""
    rng = np.random.default_rng(0)
    for split, count in (("train", 12), ("test", 4)):
        for name, colour in COLOURS.items():
            (folder / split / name).mkdir(parents=True)
            for number in range(count):
                height, width = rng.integers(32, 90, 2)
                pixels = rng.normal(colour, 25, (height, width, 3)).clip(0, 255).astype(np.uint8)
                ending = ("png", "jpg", "webp", "bmp")[number % 4]
                Image.fromarray(pixels).save(folder / split / name / f"{number}.{ending}")
    return folder


@pytest.fixture
def features(tmp_path: Path, clip_folder: Path) -> Features:
    images, output = paint(tmp_path / "birds"), tmp_path / "birds.npz"
    options = ["--encoder", "transformers", "--model", str(clip_folder), "--quiet"]
    assert main(["encode", str(images), "-o", str(output), *options]) == 0
    return load_features(output)


def teach(clf: FrugalClassifier, features: Features, names: list[str]) -> None:
    rows = np.isin(features.y_train, names)
    clf.partial_fit(features.x_train[rows], features.y_train[rows], text=features.text)


def test_images_to_features_to_prompts_to_a_file_and_back(
    features: Features, clip_folder: Path, tmp_path: Path
) -> None:
    head = make_head("prompt", model=str(clip_folder), epochs=3, samples=64, optimiser="lbfgs")
    clf = FrugalClassifier(make_memory("vae-fo", max_steps=60), head)
    for number, names in enumerate(TASKS[:2], start=1):
        teach(clf, features, names)
        known = np.isin(features.y_test, [name for task in TASKS[:number] for name in task])
        assert clf.score(features.x_test[known], features.y_test[known]) > 0.7
    clf.save(tmp_path / "birds.frugal")

    loaded = FrugalClassifier.load(tmp_path / "birds.frugal", trust=[str(clip_folder)])
    assert loaded.head_.names_ == dict(enumerate(clf.model_.classes))
    assert np.array_equal(loaded.predict_proba(features.x_test), clf.predict_proba(features.x_test))

    for one in (clf, loaded):
        teach(one, features, TASKS[2])
    assert np.array_equal(loaded.predict_proba(features.x_test), clf.predict_proba(features.x_test))
    assert loaded.score(features.x_test, features.y_test) > 0.7


def test_a_file_that_predicts_needs_no_text_tower(
    features: Features, clip_folder: Path, tmp_path: Path
) -> None:
    head = make_head("prompt", model=str(clip_folder), epochs=1, samples=16, passes=2)
    clf = FrugalClassifier("gaussian-diagonal", head)
    teach(clf, features, TASKS[0])
    clf.save(tmp_path / "birds.frugal")
    content = (tmp_path / "birds.frugal").read_bytes()
    assert len(content) < 200_000  # the tower alone takes millions
    loaded = FrugalClassifier.load(tmp_path / "birds.frugal", trust=[str(clip_folder)])
    assert loaded.head_._tower is None
    loaded.predict(features.x_test)
    assert loaded.head_._tower is None
