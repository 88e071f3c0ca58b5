"""Grids on a real Ray of this machine, with two CPUs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.waiting import PATIENCE, kill_a_run, needs_proc, wait_until

from frugalvae.errors import InputError
from frugalvae.images.feature_file import Features
from frugalvae_lab.bench.grid import Cell
from frugalvae_lab.bench.grid_run import run_grid
from frugalvae_lab.bench.pool import ProcessPool, RayPool
from frugalvae_lab.bench.specification import Part
from frugalvae_lab.cli import main
from lab.tests.test_bench import SMALL_GRID, records, written

ONE_RUN = """
title = "one"
tasks = 2
seeds = [0]
rows = [{ name = "LDA", memory = "none", head = "lda" }]
"""


@pytest.fixture(scope="module")
def sequential(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What the small grid gives without Ray, one run after the other."""
    folder = tmp_path_factory.mktemp("sequential")
    path = written(folder / "small.toml", SMALL_GRID)
    assert run_grid([path], lambda: ProcessPool(1), results=folder, quiet=True) == 0
    return records(folder)


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    """A Ray of two CPUs that several tests use one after the other."""
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install '.[ray]'")
    ray.init(
        "local", num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False
    )
    yield ray
    ray.shutdown()


def a_cell(data: str = "blobs") -> Cell:
    return Cell(
        data,
        "0",
        2,
        Part("memory", "gaussian-diagonal", {}, {}),
        Part("head", "lda", {}, {}),
        seed=0,
    )


# --------------------------------------------------------------------------- without a Ray


def test_without_ray_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"pip install '\.\[ray\]'"):
        RayPool(None, jobs=1)


def test_a_run_that_fails_is_recorded_the_others_are_done_and_ray_is_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The whole command, with a Ray of its own: the first that this process starts."""
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install '.[ray]'")
    good = written(tmp_path / "one.toml", ONE_RUN)
    bad = written(tmp_path / "bad.toml", ONE_RUN.replace("tasks = 2", "tasks = [3, 4]"))
    results = tmp_path / "results"
    assert main(["bench", "run", str(bad), str(good), "--ray", "--jobs=1", f"-o{results}"]) == 1
    assert not ray.is_initialized()
    assert "1 run done, 1 failed" in capsys.readouterr().out
    [failed] = (results / "failed").iterdir()
    traceback = json.loads(failed.read_text())["traceback"]
    assert traceback.startswith("Traceback")
    assert "task sizes [3, 4] add up to 7, but there are 10 classes" in traceback
    [done] = records(results).values()
    assert done["settings"]["tasks"] == 2


def test_an_address_without_a_cluster_is_told_at_once() -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install '.[ray]'")
    with pytest.raises(InputError, match=r"--ray-address 127.0.0.1:1: .*refused.*ray start --head"):
        RayPool("127.0.0.1:1", jobs=1)


# --------------------------------------------------------------------------- on one Ray


@needs_proc
def test_a_worker_is_killed_and_the_results_are_those_of_a_sequential_run(
    sequential: dict[str, dict[str, Any]],
    ray: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    puts, put = [], ray.put
    monkeypatch.setattr(ray, "put", lambda data: puts.append(data.name) or put(data))
    killed: list[int] = []
    killer = threading.Thread(target=kill_a_run, args=(killed,), daemon=True)
    killer.start()
    path = written(tmp_path / "small.toml", SMALL_GRID)
    assert run_grid([path], lambda: RayPool(None, jobs=2), results=tmp_path) == 0
    assert len(killed) == 1
    assert records(tmp_path) == sequential  # the versions too
    assert "6 runs done, 0 failed" in capsys.readouterr().out
    assert puts == ["digits"]  # once for all runs
    assert ray.is_initialized()  # it was not the pool's to stop


def test_a_cluster_at_an_address_is_used_and_left_running(ray: Any, tmp_path: Path) -> None:
    path = written(tmp_path / "one.toml", ONE_RUN)
    address = ray.get_runtime_context().gcs_address
    command = [sys.executable, "-W", "error", "-m", "frugalvae_lab", "bench", "run", str(path)]
    done = subprocess.run(
        [*command, "--ray-address", address, "--jobs", "7", "-o", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    assert "1 run done, 0 failed" in done.stdout
    assert ", 2 at a time" in done.stdout  # what the cluster has, whatever --jobs
    assert len(records(tmp_path)) == 1
    assert ray.get(ray.remote(lambda: "here").remote(), timeout=PATIENCE) == "here"


def test_data_of_the_store_gives_no_warnings(ray: Any, features: Features) -> None:
    """Arrays of the store cannot be written, text features neither."""
    text = {label: np.ones(8, np.float32) for label in range(6)}
    pool = RayPool(None, jobs=2)
    pool.share("blobs", Features("blobs", *list(vars(features).values())[1:5], text))
    pool.start(a_cell(), "blobs")
    [outcome] = pool.wait(PATIENCE)
    pool.close()
    assert outcome.traceback is None
    assert outcome.result["warnings"] == []
    assert outcome.result["metrics"]["final_average_accuracy"] == 1


def test_a_run_whose_worker_dies_each_time_is_told(ray: Any, features: Features) -> None:
    pool = RayPool(None, jobs=2)
    pool.share("blobs", features)
    pool.task = ray.remote(lambda *_: os.kill(os.getpid(), signal.SIGKILL)).options(max_retries=1)
    pool.start(a_cell(), "blobs")
    [outcome] = pool.wait(PATIENCE)
    assert outcome.job == a_cell()
    assert outcome.result is None
    assert "Ray gave up this run (WorkerCrashedError)" in outcome.traceback.splitlines()[-1]
    pool.close()


def test_closing_stops_what_runs(ray: Any, features: Features) -> None:
    pool = RayPool(None, jobs=2)
    pool.share("blobs", features)
    pool.task = ray.remote(lambda *_: time.sleep(10 * PATIENCE))
    wait_until(lambda: ray.available_resources().get("CPU") == 2)
    pool.start(a_cell(), "blobs")
    wait_until(lambda: ray.available_resources().get("CPU") == 1)
    assert pool.wait(0) == []
    pool.close()
    wait_until(lambda: ray.available_resources().get("CPU") == 2)


def test_slots_are_what_fits_and_follow_the_cluster(
    ray: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = {"CPU": 3.0}
    monkeypatch.setattr(ray, "cluster_resources", lambda: there)
    assert RayPool(None, jobs=2).slots == 2
    pool, sharing = RayPool("auto", jobs=2), RayPool("auto", jobs=2, gpus=0.25)
    assert (pool.slots, sharing.slots) == (3, 1)
    there |= {"CPU": 8.0, "GPU": 1.0}
    assert (pool.slots, sharing.slots) == (8, 4)
    there.clear()
    assert pool.slots == 1


def test_gpus_that_are_not_there_are_refused(ray: Any) -> None:
    with pytest.raises(InputError, match="fewer GPUs on this machine"):
        RayPool(None, jobs=1, gpus=1000)
