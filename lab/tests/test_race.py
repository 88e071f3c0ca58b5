"""Races: what a run learns, how thousands of runs are kept, and how they are ranked."""

from __future__ import annotations

import csv
import io
import json
import tomllib
from collections import Counter
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from frugalvae.errors import InputError
from frugalvae.images.feature_file import Features
from frugalvae_lab.bench.data_sources import find_data, make_source
from frugalvae_lab.bench.data_sources import join as joined
from frugalvae_lab.bench.grid import Cell, places
from frugalvae_lab.bench.results import Results
from frugalvae_lab.bench.specification import Part, Protocol, parse, read_experiments
from frugalvae_lab.bench.tasks import drawn
from frugalvae_lab.cli import main
from frugalvae_lab.images.dataset import load_digits
from frugalvae_lab.report import race as ranks
from frugalvae_lab.report.pages import summary
from frugalvae_lab.report.race import Race
from frugalvae_lab.report.tables import read_tables

RACE = """
title = "small race"
kind = "race"
measure = "last task"
data = ["digits"]
seeds = [0, 1]

[protocols]
1 = { tasks = 2, shots = 1 }
4 = { tasks = 2, shots = 4 }
all = 2
"long tail" = { tasks = 2, long_tail = 10 }
elsewhere = { tasks = 2, shots = 2, data = ["ucf101"] }

[[rows]]
name = "ours"
memory = "moments"

[[rows]]
name = "LDA"
memory = "none"
head = "lda"
seeds = { "digits all" = [0] }

[[rows]]
name = "means"
memory = "none"
head = "nearest-mean"
"""


# --------------------------------------------------------------------------- what is learned


def test_every_class_has_as_many_samples_as_asked_and_fewer_are_among_more() -> None:
    digits = load_digits()
    few, more = (drawn(digits, shots, None, seed=3) for shots in (2, 16))
    for found, shots in ((few, 2), (more, 16)):
        assert set(Counter(found.y_train.tolist()).values()) == {shots}
        assert found.x_test is digits.x_test
    rows = {row.tobytes() for row in more.x_train}
    assert all(row.tobytes() in rows for row in few.x_train)
    again, other = (drawn(digits, 2, None, seed) for seed in (3, 4))
    np.testing.assert_array_equal(again.x_train, few.x_train)
    assert not np.array_equal(other.x_train, few.x_train)


def test_all_samples_are_the_data_themselves() -> None:
    digits = load_digits()
    assert drawn(digits, None, None, seed=0) is digits
    everything = drawn(digits, 10_000, None, seed=0)
    np.testing.assert_array_equal(everything.x_train, digits.x_train)


def test_uneven_shots_are_drawn_for_each_class() -> None:
    counts = [
        Counter(drawn(load_digits(), [1, 8], None, seed).y_train.tolist()) for seed in range(9)
    ]
    assert {size for found in counts for size in found.values()} == {1, 8}
    assert len({tuple(sorted(found.items())) for found in counts}) > 1


def test_a_long_tail_falls_from_the_largest_class_to_its_hundredth() -> None:
    y = np.repeat(np.arange(20), 500)
    data = Features(
        "many", np.zeros((len(y), 1), np.float32), y, np.zeros((1, 1), np.float32), y[:1]
    )
    sizes = sorted(Counter(drawn(data, None, 100, seed=0).y_train.tolist()).values())
    assert (sizes[0], sizes[-1]) == (5, 500)
    ratios = np.diff(np.log(sizes))
    assert ratios.max() < 1.6 * ratios.min()  # but for rounding, all are the same


def test_joined_data_sets_keep_their_classes_apart(tmp_path: Path) -> None:
    digits = load_digits()
    one, two = make_source("one", None, digits), make_source("two", None, digits)
    both = joined("one+two", [one, two])
    assert isinstance(both.data, Features)
    assert len(both.data.classes) == 20
    assert (both.data.y_train[0], both.data.y_train[-1]) == (
        f"one/{digits.y_train[0]}",
        f"two/{digits.y_train[-1]}",
    )
    narrow = Features(
        "n", digits.x_train[:, :9], digits.y_train, digits.x_test[:, :9], digits.y_test
    )
    with pytest.raises(InputError, match=r"expected features of one width, got shapes .*\(9,\)"):
        joined("one+narrow", [one, make_source("narrow", None, narrow)])
    found, absent = find_data(["digits+digits-of-mine"], {})
    assert not found
    assert "no file was given" in absent["digits+digits-of-mine"]


@pytest.mark.parametrize(
    "wrong",
    [
        "{ shots = 0 }",
        "{ shots = [] }",
        "{ long_tail = 1 }",
        "{ shots = 2, long_tail = 9 }",
        "{ n = 1 }",
    ],
)
def test_a_protocol_with_a_mistake_is_refused(wrong: str, tmp_path: Path) -> None:
    path = tmp_path / "race.toml"
    path.write_text(RACE.replace("{ tasks = 2, shots = 1 }", wrong))
    with pytest.raises(InputError, match=r"protocols\.1\b.* is |unknown key 'n'"):
        read_experiments([path])


def test_joined_data_are_for_protocols_that_name_them() -> None:
    assert Protocol(tasks=10).takes("ucf101")
    assert not Protocol(shots=4).takes("ucf101+cars196")
    assert Protocol(shots=4, data=["ucf101+cars196"]).takes("ucf101+cars196")


# --------------------------------------------------------------------------- how it is kept


def test_keys_of_runs_without_shots_are_as_they_were() -> None:
    """The key of a committed run of an earlier version."""
    part = {"memory": Part("memory", "none", {}, {}), "head": Part("head", "lda", {}, {})}
    cell = Cell("ucf101", "0", 10, **part, seed=0)
    assert "shots" not in json.dumps({k: v for k, v in cell.settings().items() if v is not None})
    few = Cell("ucf101", "0", 10, **part, seed=0, shots=4)
    tail = Cell("ucf101", "0", 10, **part, seed=0, long_tail=100)
    brief = Cell("ucf101", "0", 10, **part, seed=0, brief=True)
    assert len({cell.key, few.key, tail.key}) == 3
    assert brief.key == cell.key


def cell(seed: int) -> Cell:
    part = Part("memory", "none", {}, {}), Part("head", "lda", {}, {})
    return Cell("digits", "0", 10, *part, seed=seed, every_task=False, brief=True)


def record(accuracy: float = 0.5) -> dict[str, Any]:
    return {
        "versions": {"frugalvae": "0"},
        "metrics": {"final_average_accuracy": accuracy, "calibration_error": 0.1},
        "memory": {"paper": 3, "stored": 2, "bytes": 8, "components": [{}]},
        "seconds": [{"learn": 1.0, "predict": 0.5}] * 2,
        "warnings": [],
        "confusion": "long",
    }


def test_runs_of_a_race_are_lines_that_two_processes_write_at_once(tmp_path: Path) -> None:
    Results(tmp_path).prepare()
    with get_context("spawn").Pool(2) as several:
        runs = [(cell(seed), record()) for seed in range(20)]
        several.starmap(Results(tmp_path).finish, runs, chunksize=1)
    store = Results(tmp_path)
    found = [store.load(cell(seed)) for seed in range(20)]
    assert all(found)
    assert found[7] is not None
    assert found[7]["seconds"] == [{"learn": 2.0, "predict": 1.0}]
    assert "confusion" not in found[7]
    assert len((tmp_path / "races" / "digits.jsonl").read_text().splitlines()) == 20
    assert len(list(store.runs())) == 20


def test_a_line_is_replaced_and_a_damaged_one_does_not_count(tmp_path: Path) -> None:
    store = Results(tmp_path)
    store.prepare()
    for accuracy in (0.5, 0.7):
        store.finish(cell(0), record(accuracy))
    path = tmp_path / "races" / "digits.jsonl"
    (line,) = path.read_text().splitlines()
    assert json.loads(line)["metrics"]["final_average_accuracy"] == 0.7
    path.write_text(line[: len(line) // 2])
    assert Results(tmp_path).load(cell(0)) is None


# --------------------------------------------------------------------------- a race on digits


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A race that was run, one row first."""
    root = tmp_path_factory.mktemp("race")
    (root / "race.toml").write_text(RACE)
    words = ["bench", "run", str(root / "race.toml"), "-o", str(root / "results"), "--jobs", "1"]
    assert main([*words, "--rows", "LDA", "--protocols", "1", "all", "--seeds", "0"]) == 0
    lines = (root / "results" / "races" / "digits.jsonl").read_text().splitlines()
    assert len(lines) == 2
    assert main(words) == 0
    return root


def test_a_race_has_every_cell_once_and_only_the_seeds_that_a_row_asks_for(folder: Path) -> None:
    lines = (folder / "results" / "races" / "digits.jsonl").read_text().splitlines()
    assert len(lines) == 3 * 4 * 2 - 1  # the second seed of LDA with all samples
    assert not list((folder / "results" / "runs").iterdir())
    (table,) = read_tables(folder / "results")
    assert [column.protocol for column in table.columns] == ["1", "4", "all", "long tail"]
    assert table.done == len(table.runs) == len(lines)


def test_an_unknown_row_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["bench", "run", str(folder / "race.toml"), "-o", str(folder / "results")]
    assert main([*words, "--rows", "LAD"]) == 2
    assert "row is 'LAD'. Did you mean 'LDA'? Choices: 'ours', 'LDA', 'means'" in (
        capsys.readouterr().err
    )


def test_measures_of_a_run_are_those_of_its_predictions(folder: Path) -> None:
    """Nearest means with all samples, recomputed with plain loops."""
    digits = load_digits()
    (table,) = read_tables(folder / "results")
    entry = Race(table).entry("means", "digits", "all")
    means = np.stack([digits.x_train[digits.y_train == k].mean(0) for k in range(10)])
    nearest = ((digits.x_test[:, None] - means) ** 2).sum(2).argmin(1)
    right = nearest == digits.y_test
    for one in entry.records:
        scores = one["metrics"]
        assert scores["accuracy"] == pytest.approx(right.mean(), abs=0.006)
        macro = np.mean([right[digits.y_test == k].mean() for k in range(10)])
        assert scores["macro_accuracy"] == pytest.approx(macro, abs=0.006)
        assert 0 <= scores["calibration_error"] <= 1
        assert one["memory"]["bytes"] > 0


def test_ranks_differences_and_gaps_are_those_of_the_values(folder: Path) -> None:
    (table,) = read_tables(folder / "results")
    race = Race(table)
    values = np.array([[entry.mean for entry in line.entries] for line in table.lines])
    for row, name in enumerate(race.names):  # with all samples, LDA has the first seed alone
        values[row, 2] = race.entry(name, "digits", "all").values[0]
    expected = stats.rankdata(-values, axis=0).mean(axis=1)
    assert race.ranks == pytest.approx(dict(zip(race.names, expected, strict=True)))
    duels = {one.rival: one for one in race.duels}
    assert set(duels) == {"LDA", "means"}
    np.testing.assert_allclose(
        np.delete(duels["means"].differences, 2), np.delete(values[0] - values[2], 2)
    )
    paired = (
        race.entry("ours", "digits", "all").values[0] - race.entry("LDA", "digits", "all").values[0]
    )
    assert duels["LDA"].differences[2] == pytest.approx(paired)  # one seed has both
    gap = race.gap("digits", "4")
    assert gap is not None
    assert gap.points == pytest.approx(values[0, 1] - values[1:, 1].max())
    assert race.podium() == ["ours", *sorted(["LDA", "means"], key=lambda name: race.ranks[name])]


def test_the_page_and_the_leaderboard_show_them(folder: Path, tmp_path: Path) -> None:
    results = str(folder / "results")
    for ending in ("html", "md", "csv"):
        assert (
            main(["report", results, "--table", "race", "-o", str(tmp_path / f"r.{ending}")]) == 0
        )
    (table,) = read_tables(folder / "results")
    race = Race(table)
    page, text = ((tmp_path / f"r.{ending}").read_text("utf-8") for ending in ("html", "md"))
    for one in race.standings:
        assert f"{one.means['4']:.1f}" in page
        assert f"| {one.name} | {one.rank:.1f} | " in text
    assert page.count("<svg") == 3  # ranks, samples, bytes
    assert "--rows means --protocols 1 --data digits --seeds 0" in text
    assert "src=" not in page
    assert "http" not in page.replace("http://www.w3.org", "")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "r.csv").read_text("utf-8"))))
    assert len(rows) == table.done
    first = next(r for r in rows if (r["method"], r["protocol"], r["seed"]) == ("LDA", "all", "0"))
    assert float(first["final_average_accuracy"]) == pytest.approx(
        race.entry("LDA", "digits", "all").values[0] / 100, abs=1e-5
    )


def test_a_race_is_no_table_of_the_report(folder: Path, tmp_path: Path) -> None:
    """But where there is nothing else, it is the report."""
    words = ["report", str(folder / "results"), "-o", str(tmp_path / "r.md")]
    assert main(words) == 0
    assert (tmp_path / "r.md").read_text().startswith("# small race")
    assert main([*words, "--table", "rice"]) == 2


def test_a_file_that_extends_a_race_adds_rows_and_reuses_runs(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = folder / "mine.toml"
    mine.write_text(
        'extends = "race.toml"\ntitle = "mine"\n'
        '[[rows]]\nname = "shared"\nmemory = "gaussian-shared"\nhead = "bayes"\n'
    )
    words = ["bench", "run", str(mine), "-o", str(folder / "results"), "--plan"]
    assert main(words) == 0
    assert "31 runs: 23 done before, 8 to do" in capsys.readouterr().out
    (found,) = read_experiments([mine])
    assert [row.name for row in found.rows] == ["ours", "LDA", "means", "shared"]
    assert (found.name, found.title, found.kind) == ("mine", "mine", "race")


def test_a_file_does_not_extend_itself(tmp_path: Path) -> None:
    for name, other in (("a", "b"), ("b", "a")):
        (tmp_path / f"{name}.toml").write_text(f'extends = "{other}.toml"\n')
    with pytest.raises(InputError, match=r"a\.toml: circular extends"):
        read_experiments([tmp_path / "a.toml"])


def test_the_summary_has_ours_the_best_rivals_and_what_is_kept(folder: Path) -> None:
    (table,) = read_tables(folder / "results")
    heading, _, *lines = summary(table).splitlines()
    assert heading == "| samples per class | 1 | 4 | all | long tail | rank | kept |"
    assert [line.split(" | ")[0] for line in lines] == [
        f"| {name}" for name in Race(table).podium()
    ]
    for line in lines:
        cells = line.strip("| ").split(" | ")
        mean = Race(table).entry(cells[0], "digits", "4").mean
        assert cells[2].strip("*") == f"{mean:.1f}"


def test_missing_cells_are_named_and_take_no_part_in_ranks(folder: Path, tmp_path: Path) -> None:
    source = (folder / "race.toml").read_text()
    experiment = parse("race", tomllib.loads(source))
    assert experiment is not None
    known = Results(folder / "results")
    store = Results(tmp_path / "results")
    store.prepare()
    content = known.table("race")
    assert content is not None
    store.write_table("race", content)
    for place, one in places(experiment, content["data"]):
        done = known.load(one)
        assert done is not None
        if (place.row.name, place.protocol) != ("means", "4"):
            store.finish(one, done)
    (table,) = read_tables(tmp_path / "results")
    race = Race(table)
    assert [table.columns[n].protocol for n in race.complete] == ["1", "all", "long tail"]
    for one in race.standings:
        assert one.means["4"] is None
        assert one.means["1"] is not None
    assert main(["report", str(store.folder), "-o", str(tmp_path / "r.md")]) == 0
    assert "2 runs of 23:" in (tmp_path / "r.md").read_text()


# --------------------------------------------------------------------------- statistics


def test_critical_differences_are_those_of_the_textbook() -> None:
    """Demšar 2006, Table 5(a): q of 2 to 10 methods at 5 %."""
    printed = [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164]
    for methods, q in enumerate(printed, start=2):
        apart = ranks.critical_difference(methods, 30)
        assert apart == pytest.approx(q * np.sqrt(methods * (methods + 1) / 180), abs=2e-3)


def test_groups_join_all_that_are_near_and_nothing_else() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        values = np.sort(rng.uniform(1, 9, 7))
        found = ranks.groups(values.tolist(), 2.0)
        for i in range(7):
            for j in range(i + 1, 7):
                inside = any(first <= i and j <= last for first, last in found)
                assert inside == (values[j] - values[i] <= 2.0)
