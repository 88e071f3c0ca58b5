"""What an experiment says of samples: measured as a run goes, and shown in the report."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import blobs

from frugalvae import FrugalClassifier
from frugalvae.images.feature_file import Features
from frugalvae.parts.protocols import Memory, Task
from frugalvae.parts.store_all import StoreAllMemory
from frugalvae_lab.bench.grid_run import run_grid
from frugalvae_lab.bench.metrics import precision_and_recall, relative_frechet_distance
from frugalvae_lab.bench.observe import make_observer
from frugalvae_lab.bench.run import run_stream
from frugalvae_lab.bench.specification import SAMPLE_MEASURES
from frugalvae_lab.images.dataset import load_digits
from frugalvae_lab.report.frontier import points
from frugalvae_lab.report.pages import as_text
from frugalvae_lab.report.tables import read_tables
from lab.tests.test_bench import InlinePool

SEEDS = range(6)
EXPERIMENT = f"""
title = "Replayed"
tasks = 10
seeds = {list(SEEDS)}
measure = "last task"
observe = "samples"
show_memory = true
head = {{ epochs = 2 }}
rows = [
    {{ name = "diagonal", memory = "gaussian-diagonal" }},
    {{ name = "everything", memory = "store-all" }},
    {{ name = "nothing", memory = "none", head = "lda" }},
    {{ name = "theirs", quoted = true, paper = {{ digits = [50.0] }} }},
]
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six seeds of three memories on digits."""
    folder = tmp_path_factory.mktemp("samples")
    path = folder / "replayed.toml"
    path.write_text(EXPERIMENT)
    assert run_grid([path], InlinePool, results=folder / "results") == 0
    return folder / "results"


def observed(results: Path, memory: str, seed: int = 0) -> dict[str, Any]:
    (path,) = (results / "runs").glob(f"digits-{memory}-*-seed{seed}-*.json")
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))["observed"]
    return found


def test_real_samples_look_real_and_stay_where_they_are(results: Path) -> None:
    for seed in SEEDS:
        everything = observed(results, "store-all", seed)["samples"]
        diagonal = observed(results, "gaussian-diagonal", seed)["samples"]
        assert everything["precision"] > 0.85
        assert everything["precision"] > diagonal["precision"] + 0.5
        assert everything["relative_frechet"] < 0.5 * diagonal["relative_frechet"]
        for measures in (everything, diagonal):
            assert set(measures) == set(SAMPLE_MEASURES)
            assert measures["sample_accuracy"] > 0.9
        assert everything["real_accuracy"] == diagonal["real_accuracy"]
        assert everything["sample_accuracy"] == pytest.approx(everything["real_accuracy"], abs=0.05)


@pytest.mark.parametrize("memory", ["store-all", "gaussian-diagonal"])
def test_samples_that_do_not_move_drift_as_far_as_two_draws_are_apart(
    results: Path, memory: str
) -> None:
    """On average: of one class and seed, two draws differ by a quarter."""
    found = [observed(results, memory, seed)["samples"] for seed in SEEDS]
    drift, floor = (np.mean([m[name] for m in found]) for name in ("drift", "drift_floor"))
    assert drift == pytest.approx(floor, rel=0.35)


def test_means_are_those_of_the_classes(results: Path) -> None:
    found = observed(results, "gaussian-diagonal")
    assert sorted(found["classes"]) == [str(digit) for digit in range(10)]
    assert found["left_out"] == []
    for name, mean in found["samples"].items():
        each = [measures[name] for measures in found["classes"].values() if name in measures]
        assert mean == pytest.approx(np.mean(each))
        assert len(each) == (1 if name.startswith("drift") else 10)  # one class a task


def test_a_memory_without_samples_is_skipped_and_says_why(results: Path) -> None:
    assert list(observed(results, "none")) == ["skipped"]
    assert "keeps nothing that could be sampled" in observed(results, "none")["skipped"]


def observe(
    memory: Memory, features: Features, tasks: int = 3
) -> tuple[FrugalClassifier, dict[str, Any]]:
    """A run whose samples are observed."""
    observer = make_observer("samples", features)
    classifier = FrugalClassifier(memory, "nearest-mean")
    run_stream(classifier, features, tasks, 0, observer.after_task, every_task=False)
    return classifier, observer.observed


class MovingMemory(StoreAllMemory):
    """Moves all that it has whenever it learns."""

    def learn(self, task: Task, rng: np.random.Generator) -> None:
        self.features_ = {label: kept + 1 for label, kept in self.features_.items()}
        super().learn(task, rng)


def test_samples_that_move_are_seen_to_drift(features: Features) -> None:
    test = blobs(list(range(6)), per_class=100, seed=2)
    features = replace(features, x_test=test.features, y_test=test.labels)
    classifier, found = observe(MovingMemory(), features)
    drifts = {label: m for label, m in found["classes"].items() if "drift" in m}
    assert list(drifts) == classifier.model_.classes[:2].tolist()
    for label, measures in drifts.items():
        spread = features.x_train[features.y_train == label].var(axis=0).sum()
        moved = 8 * 2.0**2 / spread  # by 2 in each of 8 columns
        assert measures["drift"] == pytest.approx(moved, rel=0.25)
        assert measures["drift_floor"] < 0.1
    for label in classifier.model_.classes[
        classifier.model_.task_of_class == 2
    ]:  # nothing came after it
        assert found["classes"][label]["precision"] > 0.5
    assert found["classes"][classifier.model_.classes[0]]["precision"] == 0


def test_a_class_is_compared_with_its_own_test_features(features: Features) -> None:
    classifier, found = observe(StoreAllMemory(), features)
    label = classifier.model_.classes[3]
    real = features.x_test[features.y_test == label]
    samples = classifier.sample(label, len(real), random_state=2)
    measures = found["classes"][label]
    assert (measures["precision"], measures["recall"]) == precision_and_recall(real, samples)
    assert measures["relative_frechet"] == relative_frechet_distance(real, samples)


def test_after_one_task_nothing_has_moved(features: Features) -> None:
    _, found = observe(StoreAllMemory(), features, tasks=1)
    assert found["samples"]["drift"] == pytest.approx(found["samples"]["drift_floor"], rel=0.5)


def test_classes_with_few_test_features_are_left_out_by_name(features: Features) -> None:
    named = {f"y_{part}": getattr(features, f"y_{part}").astype(str) for part in ("train", "test")}
    features = replace(features, **named)
    kept = np.ones(len(features.y_test), bool)
    kept[np.flatnonzero(features.y_test == "4")[3:]] = False
    kept[features.y_test == "5"] = False
    few = replace(features, x_test=features.x_test[kept], y_test=features.y_test[kept])
    _, found = observe(StoreAllMemory(), few)
    assert sorted(found["left_out"]) == ["4", "5"]
    assert not {"precision", "real_accuracy"} & set(found["classes"]["4"])
    assert np.isfinite(list(found["samples"].values())).all()


def test_observing_changes_nothing_else() -> None:
    features = load_digits()
    observer = make_observer("samples", features)
    records = []
    for after_task in (None, observer.after_task):
        classifier = FrugalClassifier("gaussian-diagonal", "nearest-mean")
        record = run_stream(classifier, features, 5, 0, after_task).to_json()
        del record["seconds"]
        records.append(record)
    assert records[0] == records[1]


def test_the_report_has_a_column_for_each_measure(results: Path) -> None:
    tables = read_tables(results)
    assert [table.name for table in tables] == ["replayed", "replayed-samples-1"]
    accuracy, samples = tables
    assert [line.row.name for line in samples.lines] == ["diagonal", "everything", "nothing"]
    assert len(samples.runs) == len(accuracy.runs) == samples.done == 18
    rows = csv.DictReader(io.StringIO(as_text(tables, "csv")))
    lines = {(r["row"], r["metric"]): r for r in rows if r["table"] == samples.name}
    for name in SAMPLE_MEASURES:
        values = [observed(results, "store-all", seed)["samples"][name] for seed in SEEDS]
        scale = 1 if name in ("relative_frechet", "drift", "drift_floor") else 100
        line = lines["everything", name]
        assert float(line["mean"]) == pytest.approx(scale * np.mean(values))
        assert float(line["std"]) == pytest.approx(scale * np.std(values, ddof=1), abs=1e-9)
        skipped = lines["nothing", name]
        assert (skipped["mean"], skipped["seeds"], skipped["missing"]) == ("", "0", "0")


def test_all_formats_show_the_measures(results: Path) -> None:
    tables = read_tables(results)
    texts = {form: as_text(tables, form) for form in ("html", "md", "csv")}
    precision = tables[1].lines[1].entries[1]
    shown = f"{precision.mean:.1f} ± {precision.std:.1f}"
    assert f"<b>{shown}</b>" in texts["html"]
    assert f"**{shown}**" in texts["md"]
    for form in ("html", "md"):
        assert "relative Fréchet distance" in texts[form]
        assert "Replayed: samples of Digits, 8 x 8 pixels" in texts[form]
    grids = [block.splitlines() for block in texts["md"].split("\n\n") if block.startswith("| ")]
    assert {len(re.findall(r"\|", line)) for line in grids[1]} == {len(SAMPLE_MEASURES) + 2}
    assert "| nothing | " + " | ".join(["\N{EN DASH}"] * len(SAMPLE_MEASURES)) in texts["md"]
    assert texts["md"].count("18 runs, 6 seeds, all finished") == 2


def test_the_frontier_takes_accuracies_alone(results: Path) -> None:
    found = points(read_tables(results), "digits")
    assert sorted(point.name for point in found) == ["diagonal", "everything", "nothing"]
