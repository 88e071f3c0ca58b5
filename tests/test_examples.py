"""The examples are run: as files, and by the commands that they name."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from frugalvae import FrugalClassifier
from frugalvae.images.feature_file import load_features
from tests.conftest import load_digits

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The examples, where they may leave something behind."""
    shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "examples"


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """A command of Python in that folder, which is not on any path but as the current one."""
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def frugalvae(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    """A command, by the function that ``frugalvae`` starts: no folder is added to the path."""
    start = "import sys; sys.path.remove(''); from frugalvae.cli.main import main; sys.exit(main())"
    return run(folder, "-c", start, *command.split())


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_every_example_runs(path: Path, folder: Path) -> None:
    if path.stem != "add_an_encoder":
        pytest.importorskip("sklearn", reason="the digits are scikit-learn's")
    done = run(folder, path.name)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_an_encoder_of_ones_own_teaches_and_predicts(folder: Path) -> None:
    for colour in ("red", "blue"):
        (folder / "photos" / colour).mkdir(parents=True)
        for side in (40, 50):
            image = Image.new("RGB", (side, 60), colour)
            image.save(folder / "photos" / colour / f"{side}.png")
    encoder = "--encoder add_an_encoder:HistogramEncoder"
    learn = f"learn it.frugal photos {encoder} --set encoder.bins=8"
    done = frugalvae(folder, learn)
    assert done.returncode == 0, done.stderr
    predict = "predict it.frugal photos/blue/40.png"
    done = frugalvae(folder, f"{predict} {encoder}")
    assert done.returncode == 0, done.stderr
    assert "blue" in done.stdout
    done = frugalvae(folder, f"encode photos -o features.npz {encoder}")
    assert done.returncode == 0, done.stderr
    assert load_features(folder / "features.npz").x_train.shape[1] == 12
    done = frugalvae(folder, predict)
    assert done.returncode == 2
    assert "Nothing that a file names is imported" in done.stderr


def test_a_memory_of_ones_own_is_saved_and_loaded_where_it_is_trusted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(folder)
    digits = load_digits()
    classifier = FrugalClassifier("add_a_memory:ExemplarMemory", "nearest-mean")
    classifier.fit(digits.x_train, digits.y_train).save(folder / "mine.frugal")
    loaded = FrugalClassifier.load(folder / "mine.frugal", trust=["add_a_memory"])
    assert np.array_equal(loaded.sample(3, 5), classifier.sample(3, 5))
    with pytest.raises(ValueError, match="add_a_memory"):
        FrugalClassifier.load(folder / "mine.frugal")


def test_a_memory_of_ones_own_is_used_on_the_command_line_where_it_is_trusted(
    folder: Path,
) -> None:
    made = "learn it.frugal photos --memory add_a_memory:ExemplarMemory --head nearest-mean"
    for colour in ("red", "blue"):
        (folder / "photos" / colour).mkdir(parents=True)
        Image.new("RGB", (40, 60), colour).save(folder / "photos" / colour / "1.png")
    assert frugalvae(folder, made).returncode == 0
    predict = "predict it.frugal photos/blue/1.png"
    refused = frugalvae(folder, predict)
    assert refused.returncode == 2
    assert "give --trust add_a_memory" in refused.stderr
    done = frugalvae(folder, f"{predict} --trust add_a_memory")
    assert (done.returncode, done.stderr) == (0, "")
    assert "blue" in done.stdout
