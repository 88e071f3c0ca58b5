"""The examples of parts of one's own, in experiments."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from tests.conftest import blobs
from tests.test_examples import folder, run

from frugalvae.images.feature_file import Features, write_features

__all__ = ["folder"]


def frugalvae_lab(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    """A command, by the function that ``frugalvae-lab`` starts: no folder is added to the path."""
    start = "import sys; sys.path.remove(''); from frugalvae_lab.cli import main; "
    return run(folder, "-c", start + "sys.exit(main())", *command.split())


def test_a_memory_of_ones_own_is_run_on_a_feature_file(folder: Path) -> None:
    train, test = blobs([0, 1, 2, 3]), blobs([0, 1, 2, 3], seed=1)
    data = Features("blobs", train.features, train.labels, test.features, test.labels)
    write_features(folder / "blobs.npz", data)
    parts = "--memory add_a_memory:ExemplarMemory --head add_a_head:NeighbourHead"
    settings = "--set memory.size=3 --set head.samples=7"
    done = frugalvae_lab(folder, f"run blobs.npz --tasks 2 {parts} {settings}")
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
    done = frugalvae_lab(folder, bench)
    assert done.returncode == 2
    assert "give --trust add_a_memory, or" in done.stderr
    assert not (folder / "results").exists()
    done = frugalvae_lab(folder, f"{bench} --trust add_a_memory")
    assert done.returncode == 0, done.stderr
    assert len(list((folder / "results" / "runs").glob("*ExemplarMemory*"))) == 2
    pytest.importorskip("matplotlib")
    done = frugalvae_lab(folder, "report results -o report.csv")
    assert done.returncode == 2  # nothing that results name is imported for that
    assert "give --trust add_a_memory, or" in done.stderr
    done = frugalvae_lab(folder, "report results -o report.csv --trust add_a_memory")
    assert done.returncode == 0, done.stderr
    rows = (folder / "report.csv").read_text("utf-8")
    for name in ("3 exemplars", "10 exemplars", "factors", "store all"):
        assert name in rows


def test_a_memory_of_ones_own_says_its_cost(folder: Path) -> None:
    variant = "--memory add_a_memory:ExemplarMemory"
    done = frugalvae_lab(folder, f"memory {variant} --classes 100 --dim 8")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].split() == ["total", "8,800", "8,800", "35,200"]
