"""The examples are run: as files, and by the commands that they name."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from frugalvae import FrugalClassifier
from frugalvae.images.dataset import load_digits
from frugalvae.images.feature_file import Features, load_features, write_features
from tests.conftest import blobs

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


def test_a_memory_of_ones_own_is_run_on_a_feature_file(folder: Path) -> None:
    train, test = blobs([0, 1, 2, 3]), blobs([0, 1, 2, 3], seed=1)
    data = Features("blobs", train.features, train.labels, test.features, test.labels)
    write_features(folder / "blobs.npz", data)
    parts = "--memory add_a_memory:ExemplarMemory --head add_a_head:NeighbourHead"
    settings = "--set memory.size=3 --set head.samples=7"
    done = frugalvae(folder, f"run blobs.npz --tasks 2 {parts} {settings}")
    assert done.returncode == 0, done.stderr
    (written,) = folder.glob("*.json")
    assert ":" not in written.name
    record = json.loads(written.read_text())
    assert record["settings"]["memory"] == {
        "name": "add_a_memory:ExemplarMemory",
        "size": 3,
        "noise": 0.5,
    }
    assert record["settings"]["head"]["samples"] == 7
    assert record["metrics"]["final_average_accuracy"] > 0.9
    assert record["memory"]["memory"] == "add_a_memory:ExemplarMemory"


def test_a_memory_of_ones_own_is_benchmarked_against_others(folder: Path) -> None:
    pytest.importorskip("sklearn", reason="the digits are scikit-learn's")
    bench = "bench run add_a_memory.toml --seeds 0 --jobs 1 --quiet"
    done = frugalvae(folder, bench)
    assert done.returncode == 2
    assert "give --trust add_a_memory, or" in done.stderr
    assert not (folder / "results").exists()
    done = frugalvae(folder, f"{bench} --trust add_a_memory")
    assert done.returncode == 0, done.stderr
    assert len(list((folder / "results" / "runs").glob("*ExemplarMemory*"))) == 2
    pytest.importorskip("matplotlib")
    (folder / "add_a_memory.py").unlink()  # nothing that results name is imported
    done = frugalvae(folder, "report results -o report.csv")
    assert done.returncode == 0, done.stderr
    rows = (folder / "report.csv").read_text("utf-8")
    for name in ("3 exemplars", "10 exemplars", "factors", "store all"):
        assert name in rows
    (path,) = (folder / "results" / "tables").iterdir()
    table = json.loads(path.read_text("utf-8"))
    del table["parts"]
    path.write_text(json.dumps(table))
    done = frugalvae(folder, "report results -o report.csv")
    assert done.returncode == 2
    assert "memory 'add_a_memory:ExemplarMemory' is not ours" in done.stderr


def test_a_memory_of_ones_own_says_its_cost(folder: Path) -> None:
    variant = "--memory add_a_memory:ExemplarMemory"
    done = frugalvae(folder, f"memory {variant} --classes 100 --dim 8")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].split() == ["total", "8,800", "8,800", "35,200"]


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
