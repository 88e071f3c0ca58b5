from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import SMALL, small_head

from frugalvae import FrugalClassifier, make_memory
from frugalvae.files import write_json, write_text
from frugalvae.images.feature_file import Features
from frugalvae.parts import HEADS
from frugalvae_lab.bench.run import run_stream
from frugalvae_lab.cli import main

ROOT = Path(__file__).parents[2]
VAE = ["--memory", "vae-fo"]


def save(features: Features, path: Path) -> Path:
    np.savez(
        path,
        x_train=features.x_train,
        y_train=features.y_train,
        x_test=features.x_test,
        y_test=features.y_test,
    )
    return path


def test_the_package_runs_as_the_command() -> None:
    command = [sys.executable, "-m", "frugalvae_lab", "run", "no.npz"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("frugalvae: no.npz")


def test_the_record_holds_what_happened(features: Features) -> None:
    classifier = FrugalClassifier(make_memory("vae-fo", **SMALL))
    seen = []
    record = run_stream(
        classifier, features, [1, 2, 3], 0, lambda c, _: seen.append(len(c.classes_))
    )
    assert seen == [1, 3, 6]
    assert record.settings["task_sizes"] == [1, 2, 3]
    matrix = np.array(record.accuracy)
    assert np.array_equal(np.isnan(matrix), ~np.tri(3, dtype=bool))
    x, y = features.x_test, features.y_test
    rows = np.isin(y, record.tasks[1])
    assert matrix[2, 1] == np.mean(classifier.predict(x[rows]) == y[rows])
    assert [(state["task"], state["layer"]) for state in record.layers] == [
        (task, layer) for task in (1, 2, 3) for layer in (1, 2, 3)
    ]
    assert [prior["task"] for prior in record.priors] == [1, 2, 3]
    assert record.memory["stored"] == classifier.memory_report().stored
    assert len(record.seconds) == 3


def test_the_same_seed_gives_the_same_file_but_for_the_time(
    features: Features, tmp_path: Path
) -> None:
    path = save(features, tmp_path / "blobs.npz")
    records = []
    for name in ("a.json", "b.json"):
        arguments = ["run", str(path), "--tasks", "3", "--seed", "5", "--quiet", *VAE]
        small = [f"--set=memory.{key}={value}" for key, value in SMALL.items()]
        assert main([*arguments, *small, "-o", str(tmp_path / name)]) == 0
        records.append(json.loads((tmp_path / name).read_text()))
        assert len(records[-1].pop("seconds")) == 3
    assert records[0] == records[1]
    memory = records[0]["settings"]["memory"]
    assert memory["name"] == "vae-fo"
    assert memory["hidden"] == SMALL["hidden"]
    assert memory["warm_up"] == 0.3  # settings that nobody touched are recorded too
    assert records[0]["settings"]["head"]["resample"] is True


def test_run_prints_one_line_a_task_and_the_result(
    features: Features, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, output = save(features, tmp_path / "blobs.npz"), tmp_path / "r.json"
    arguments = ["run", str(path), "--tasks", "2,4", "--memory", "none", "--head", "lda"]
    assert main([*arguments, "-o", str(output)]) == 0
    printed = capsys.readouterr().out
    assert "6 classes in 2 tasks" in printed
    assert "task 2: 4 new classes, 6 in all; accuracy 100.0%" in printed
    assert "final average accuracy" in printed


def test_records_of_different_experiments_have_different_names(
    features: Features, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    save(features, tmp_path / "f.npz")
    usual = ["run", "f.npz", "--memory", "none", "--head", "lda", "--quiet"]
    for more in (["--tasks", "2"], ["--tasks", "2,4"], ["--tasks", "2", "--held-out", "0.5"]):
        assert main([*usual, *more]) == 0
    assert len(list(tmp_path.glob("*.json"))) == 3


def test_mistakes_are_told_and_nothing_is_written(
    features: Features, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(save(features, tmp_path / "blobs.npz"))
    for arguments, message in [
        ([path, "--memory", "vae-f0"], "no memory 'vae-f0'. Did you mean 'vae-fo'?"),
        ([path, *VAE, "--set", "memory.epoch=3"], "no setting 'epoch'. Did you mean 'epochs'?"),
        ([path, "--tasks", "7"], "6 classes cannot be split into 7 tasks"),
        ([str(tmp_path / "absent.npz")], "there is no such file"),
        (
            [
                path,
                "-o",
                str(tmp_path / "no" / "r.json"),
                "--memory",
                "none",
                "--head",
                "lda",
                "--tasks",
                "2",
            ],
            "does not exist; make it first",
        ),
    ]:
        assert main(["run", *arguments, "--quiet"]) == 2
        assert message in capsys.readouterr().err
    assert [entry.name for entry in tmp_path.iterdir()] == ["blobs.npz"]


def test_wrong_options_are_refused_with_the_form_expected(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["run", "f.npz", "--set", "epochs=3"])
    assert "memory.NAME=VALUE" in capsys.readouterr().err


def test_memory_tells_the_cost_before_training(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["memory", "--memory", "vae-fo", "--classes", "200"]) == 0
    assert "2,962,688" in capsys.readouterr().out
    assert (
        main(["memory", "--memory", "store-all", "--classes", "200", "--samples", "5994", "--json"])
        == 0
    )
    assert json.loads(capsys.readouterr().out)["paper"] == 5994 * 768
    assert main(["memory", "--memory", "store-all", "--classes", "200"]) == 2
    assert "give --samples" in capsys.readouterr().err


KILLS = """
import json, pathlib, signal, sys
from frugalvae.files import write_json
from tests.killing import each_kill, ended

path = pathlib.Path(sys.argv[1])
write_json(path, {"turn": 0})
write = lambda: write_json(path, {"turn": 1, "pad": "x" * 10**6})
assert ended(write, within=10**5) == -signal.SIGXFSZ  # in the middle of the file
assert json.loads(path.read_text()) == {"turn": 0}
for killed in each_kill(write):
    print(json.loads(path.read_text())["turn"], "killed" if killed else "done")
    write_json(path, {"turn": 0})
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_a_killed_writer_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLS, str(tmp_path / "state.json")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert list(dict.fromkeys(done.stdout.splitlines())) == ["0 killed", "1 killed", "1 done"]


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    write_text(path, "old")
    with pytest.raises(ValueError, match="JSON"):
        write_json(path, {"accuracy": float("nan")})
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["r.json"]


def test_warnings_are_plain_lines(
    features: Features, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = save(features, tmp_path / "blobs.npz")
    settings = [f"--set=memory.{key}={value}" for key, value in SMALL.items()]
    settings += ["--set=memory.inputs=prior", "--set=memory.prior=normal"]  # all directions
    arguments = ["run", str(path), "--tasks", "3", *VAE, *settings]
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert main([*arguments, "-o", str(tmp_path / "r.json")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("warning: after task 2, layer 1 of the decoder") for line in lines)
    assert not any(".py:" in line for line in lines)


def test_settings_of_the_command_line_are_what_they_look_like(
    features: Features, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(save(features, tmp_path / "blobs.npz"))
    for change, message in [
        ("memory.epochs=abc", "epochs is 'abc'; expected a whole number"),
        ("memory.latent=-2", "latent is -2"),
        ("memory.classwise=perhaps", "classwise is 'perhaps'"),
        ("head.temperature=0", "temperature is 0"),
    ]:
        assert main(["run", path, "--tasks", "2", *VAE, "--set", change, "--quiet"]) == 2
        assert message in capsys.readouterr().err
    small = [f"--set=memory.{key}={value}" for key, value in SMALL.items()]
    output = tmp_path / "r.json"
    small += [*VAE, "--set=memory.classwise=false"]
    arguments = ["run", path, "--tasks", "2", "--quiet", *small]
    assert main([*arguments, "-o", str(output)]) == 0
    assert json.loads(output.read_text())["settings"]["memory"]["classwise"] is False


def test_a_task_without_test_samples_is_left_out_of_the_scores(features: Features) -> None:
    kept = features.y_test != 3
    partial = Features(
        "f", features.x_train, features.y_train, features.x_test[kept], features.y_test[kept]
    )
    record = run_stream(FrugalClassifier("gaussian-diagonal"), partial, 6, seed=0)
    assert np.isfinite(list(record.metrics.values())).all()
    assert np.isnan(np.array(record.accuracy)[:, record.tasks.index([3])]).all()


@pytest.mark.parametrize("head", list(HEADS))
def test_measured_after_the_last_task_alone_the_last_row_is_the_same(
    features: Features, head: str
) -> None:
    named = {f"y_{part}": getattr(features, f"y_{part}").astype(str) for part in ("train", "test")}
    features = replace(features, **named)
    vae = partial(make_memory, "vae-fo", **SMALL)
    memory = partial(make_memory, "gaussian-shared") if head == "bayes" else vae  # has densities
    every, last = (
        run_stream(
            FrugalClassifier(memory(), small_head(head)), features, 3, seed=0, every_task=every_task
        )
        for every_task in (True, False)
    )
    assert last.accuracy[-1] == every.accuracy[-1]
    assert np.isnan(last.accuracy[:-1]).all()
    final = ("final_average_accuracy", "accuracy", "macro_accuracy", "calibration_error")
    assert last.metrics == {name: every.metrics[name] for name in final}
    assert (last.confusion, last.layers, last.priors, last.memory) == (
        every.confusion,
        every.layers,
        every.priors,
        every.memory,
    )


@pytest.mark.parametrize("head", list(HEADS))
def test_a_head_fitted_later_is_the_head_fitted_at_once(features: Features, head: str) -> None:
    at_once, later = (FrugalClassifier("gaussian-diagonal", small_head(head)) for _ in range(2))
    names = {label: f"class {label}" for label in range(6)}
    for classes in ([0, 1], [2, 3], [4, 5]):
        rows = np.isin(features.y_train, classes)
        x, y = features.x_train[rows], features.y_train[rows]
        at_once.partial_fit(x, y, names=names)
        later.partial_fit(x, y, names=names, defer_head=True)
        assert later.model_.head_stale is not later.head_.needs_every_task
    again = copy.deepcopy(later)
    expected = at_once.predict_proba(features.x_test)
    for classifier in (later, again):
        assert np.array_equal(classifier.predict_proba(features.x_test), expected)
