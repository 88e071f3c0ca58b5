"""The runner of grids: what it runs, what it keeps, and what a kill at any moment leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.waiting import PATIENCE, descendants, needs_proc, wait_until, worked

from frugalvae.errors import InputError
from frugalvae.files import json_digest, write_bytes
from frugalvae.parts import MEMORIES, usual_head
from frugalvae_lab.bench.grid import Cell, grid
from frugalvae_lab.bench.grid_run import run_grid
from frugalvae_lab.bench.pool import Outcome, ProcessPool, perform
from frugalvae_lab.bench.results import Results
from frugalvae_lab.bench.specification import Experiment, Part, defaults, parse, read_experiments
from frugalvae_lab.cli import main
from frugalvae_lab.images.dataset import load_digits
from lab.benchmarks.rekey import rekey

EXPERIMENTS = Path(__file__).parent.parent / "experiments"

SMALL_GRID = """
title = "small"
tasks = 5
seeds = [0, 1, 2]
rows = [
    { name = "logistic", memory = "store-all", head = "logistic" },
    { name = "SVM", memory = "store-all", head = "svm" },
]
"""
QUICK_GRID = """
title = "quick"
tasks = 2
seeds = [0, 1]
rows = [
    { name = "means", memory = "none", head = "nearest-mean" },
    { name = "LDA", memory = "none", head = "lda" },
]
"""


class InlinePool:
    """Runs everything here: for what does not depend on processes."""

    slots = 1

    def __init__(self) -> None:
        self.shared: dict[str, Any] = {}
        self.jobs: list[tuple[Any, str]] = []

    def share(self, name: str, data: Any) -> None:
        self.shared[name] = data

    def start(self, job: Any, data: str) -> None:
        self.jobs.append((job, data))

    def wait(self, seconds: float) -> list[Outcome]:
        job, data = self.jobs.pop()
        return [Outcome(job, *perform(job, self.shared[data]))]

    def close(self) -> None:
        self.shared.clear()


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def run(path: Path, results: Path, make_pool: Callable[[], Any] = InlinePool) -> int:
    return run_grid([path], make_pool, results=results)


def records(results: Path) -> dict[str, dict[str, Any]]:
    """All runs by file name, but for the time that they took."""
    found = {path.name: json.loads(path.read_text()) for path in (results / "runs").glob("*.json")}
    assert all(record.pop("seconds") for record in found.values())
    return found


def alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:1]
    except OSError:
        return False


# --------------------------------------------------------------------------- kills


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of the small grid, run one after the other."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    assert run(written(folder / "small.toml", SMALL_GRID), folder, lambda: ProcessPool(1)) == 0
    return folder


@needs_proc
def test_killed_with_its_processes_the_same_command_goes_on(
    uninterrupted: Path, tmp_path: Path
) -> None:
    """Kill -9: while it starts, and after a run."""
    path, results = written(tmp_path / "small.toml", SMALL_GRID), tmp_path / "results"
    command = [sys.executable, "-m", "frugalvae_lab", "bench", "run", str(path)]
    command += ["-o", str(results), "--jobs", "2"]
    kept: dict[Path, tuple[int, str]] = {}

    def finished() -> list[Path]:
        return list((results / "runs").glob("*.json"))

    for more in (False, True):
        temporary = tmp_path / f"temporary-{more}"
        temporary.mkdir()
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, env=os.environ | {"TMPDIR": str(temporary)}
        )
        wait_until(lambda: finished() if more else list(temporary.iterdir()))  # noqa: B023
        process.send_signal(signal.SIGSTOP)  # it starts no more processes
        workers = descendants(process.pid)
        if more and len(finished()) < 6:  # it is at work, and not already closing
            assert len(workers) >= 2, workers
        process.kill()
        process.wait()
        wait_until(lambda: not any(map(alive, workers)))  # noqa: B023
        if more:  # the last to leave has tidied up
            assert list(temporary.rglob("frugalvae-*")) == [], workers
        for file, (modified, content) in kept.items():
            assert (file.stat().st_mtime_ns, file.read_text()) == (modified, content)
        kept = {file: (file.stat().st_mtime_ns, file.read_text()) for file in finished()}
        expected = records(uninterrupted)
        for name, record in (records(results) if kept else {}).items():
            assert record == expected[name]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"6 runs: {len(kept)} done before" in done.stdout
    for file, (modified, _) in kept.items():
        assert file.stat().st_mtime_ns == modified
    assert records(results) == records(uninterrupted)


KILLS = """
import pathlib, shutil, sys
from frugalvae_lab.bench.grid_run import run_grid
from tests.killing import each_kill
from lab.tests.test_bench import InlinePool, records

path, whole, results = map(pathlib.Path, sys.argv[1:])
act = lambda results=results: run_grid([path], InlinePool, results=results, quiet=True)
assert act(whole) == 0
expected = records(whole)
for killed in each_kill(act):
    kept = {file: file.stat().st_mtime_ns for file in results.glob("runs/*.json")}
    print(len(kept), "killed" if killed else "done")
    assert records(results).items() <= expected.items()
    assert act() == 0
    assert records(results) == expected
    assert kept.items() <= {file: file.stat().st_mtime_ns for file in kept}.items()
    shutil.rmtree(results)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_killed_before_each_operation_on_files_the_same_command_goes_on(tmp_path: Path) -> None:
    path = written(tmp_path / "quick.toml", QUICK_GRID.replace("[0, 1]", "[0]"))
    command = [sys.executable, "-c", KILLS, str(path), str(tmp_path / "whole"), str(tmp_path / "r")]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=EXPERIMENTS.parents[1]
    )
    assert done.returncode == 0, done.stderr
    states = list(dict.fromkeys(done.stdout.splitlines()))
    assert states == ["0 killed", "1 killed", "2 killed", "2 done"]


def cells(text: str) -> list[Cell]:
    return grid(
        [parse("small", tomllib.loads(text))],
        {"digits": {"fingerprint": "0", "backbone": "pixels"}},
    )


@needs_proc
def test_a_process_that_is_killed_takes_no_run_with_it() -> None:
    quick, slow = cells(QUICK_GRID)[0], cells(SMALL_GRID.replace("tasks = 5", "tasks = 10"))[0]
    pool = ProcessPool(1)
    pool.share("digits", load_digits())

    def outcome(job: Cell, kill: int) -> Outcome:
        """Give it the job and kill its process that many times."""
        pool.start(job, "digits")
        ended: list[Outcome] = []
        for _ in range(kill):
            [process] = active_children()
            enough = worked(process.pid) + 0.1
            wait_until(lambda: worked(process.pid) > enough)  # noqa: B023
            process.kill()
            process.join()
            ended += pool.wait(PATIENCE)
        while not ended:
            ended += pool.wait(PATIENCE)
        [only] = ended
        return only

    try:
        before = outcome(quick, kill=0)
        assert before.traceback is None
        in_the_middle = outcome(slow, kill=1)
        assert in_the_middle.traceback is None
        here, _, _ = perform(slow, load_digits())
        assert in_the_middle.result["accuracy"] == here["accuracy"]

        [idle] = active_children()
        idle.kill()
        idle.join()
        assert outcome(quick, kill=0).result["accuracy"] == before.result["accuracy"]

        given_up = outcome(slow, kill=3)
        assert given_up.job == slow
        assert given_up.traceback == "the process died 3 times: out of memory?"
        assert outcome(quick, kill=0).traceback is None  # and the pool goes on
    finally:
        pool.close()
    assert not pool.folder.exists()


class CountingPool(InlinePool):
    """Counts what the runner asks of it."""

    def __init__(self) -> None:
        super().__init__()
        self.shares: list[str] = []
        self.waits: list[float] = []

    def share(self, name: str, data: Any) -> None:
        self.shares.append(name)
        super().share(name, data)

    def wait(self, seconds: float) -> list[Outcome]:
        self.waits.append(seconds)
        return super().wait(seconds)


def test_the_runner_does_little_beside_the_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It shares data once, waits without looking again and again, and writes each run once."""
    pool, written_files = CountingPool(), Counter[str]()

    def counting(path: str | Path, content: bytes, like: Path | None = None) -> None:
        written_files[Path(path).name] += 1
        write_bytes(path, content, like)

    monkeypatch.setattr("frugalvae.files.write_bytes", counting)
    assert run(written(tmp_path / "quick.toml", QUICK_GRID), tmp_path, lambda: pool) == 0
    assert pool.shares == ["digits"]
    assert len(pool.waits) == 4
    assert min(pool.waits) >= 0.5
    assert len(written_files) == 5  # the runs, and what was asked for
    assert set(written_files.values()) == {1}


# --------------------------------------------------------------------------- what counts as done


def test_finished_runs_are_not_run_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "quick.toml", QUICK_GRID)
    assert run(path, tmp_path) == 0
    before = records(tmp_path)

    def no_pool() -> Any:
        raise AssertionError("there is nothing to run")

    capsys.readouterr()
    assert run(path, tmp_path, no_pool) == 0
    assert "4 runs: 4 done before, 0 to do" in capsys.readouterr().out
    assert records(tmp_path) == before


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda _: "",
        lambda _: "[]",
        lambda text: text.replace('"key": "', '"key": "0', 1),
    ],
    ids=["truncated", "empty", "no table", "wrong key"],
)
def test_a_damaged_file_is_not_trusted(
    damage: Callable[[str], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "quick.toml", QUICK_GRID)
    assert run(path, tmp_path) == 0
    before = records(tmp_path)
    victim = tmp_path / "runs" / sorted(before)[1]
    victim.write_text(damage(victim.read_text()))
    capsys.readouterr()
    assert run(path, tmp_path) == 0
    assert "4 runs: 3 done before, 1 to do" in capsys.readouterr().out
    assert records(tmp_path) == before


def test_a_failed_run_stops_no_other_and_is_cleared_by_the_next_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "quick.toml", QUICK_GRID)
    from frugalvae_lab.bench import pool

    make_run = pool.make_run

    def fragile(cell: Cell, features: Any) -> Any:
        if cell.seed == 0 and cell.head.name == "lda":
            raise RuntimeError("the moon is full")
        return make_run(cell, features)

    monkeypatch.setattr(pool, "make_run", fragile)
    assert run(path, tmp_path) == 1
    assert "FAILED, RuntimeError: the moon is full" in capsys.readouterr().out
    [failed] = (tmp_path / "failed").iterdir()
    content = json.loads(failed.read_text())
    assert content["traceback"].startswith("Traceback (most recent call last)")
    assert content["settings"]["head"]["name"] == "lda"
    assert len(records(tmp_path)) == 3

    assert run(path, tmp_path) == 1  # it is tried again, and fails again
    assert failed.exists()
    monkeypatch.undo()
    assert run(path, tmp_path) == 0
    assert not failed.exists()
    assert failed.name in records(tmp_path)


def test_the_command_says_by_its_exit_code_that_a_run_failed(tmp_path: Path) -> None:
    path = written(tmp_path / "bad.toml", QUICK_GRID.replace("tasks = 2", "tasks = [3, 4]"))
    results = tmp_path / "results"
    arguments = ["bench", "run", str(path), "-o", str(results), "--jobs=1", "--seeds=0", "--quiet"]
    assert main(arguments) == 1
    tracebacks = [json.loads(f.read_text())["traceback"] for f in (results / "failed").iterdir()]
    assert len(tracebacks) == 2
    assert all(
        "task sizes [3, 4] add up to 7, but there are 10 classes" in text for text in tracebacks
    )
    assert records(results) == {}


def test_a_run_measured_after_every_task_answers_for_the_last(tmp_path: Path) -> None:
    store = Results(tmp_path)
    store.prepare()
    every = cells(QUICK_GRID)[0]
    last = replace(every, every_task=False)
    assert every.every_task
    assert every.key == last.key
    store.finish(last, {"metrics": {}})
    assert store.load(last) is not None
    assert store.load(every) is None
    store.finish(every, {"metrics": {}})
    assert store.load(last) == store.load(every) != None  # noqa: E711


def test_a_plan_names_what_is_missing_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "quick.toml", QUICK_GRID)
    arguments = ["bench", "run", str(path), "--plan", "--results", str(tmp_path / "results")]
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "4 runs: 0 done before, 4 to do"
    assert all(line.startswith("digits-") for line in lines[:-1])
    assert len(lines) == 5
    assert not (tmp_path / "results").exists()


def test_a_table_grows_by_what_is_asked_later(tmp_path: Path) -> None:
    path = written(tmp_path / "quick.toml", QUICK_GRID)
    for seeds in ([1], [0]):
        run_grid([path], InlinePool, seeds=seeds, results=tmp_path, quiet=True)
    table = Results(tmp_path).table("quick")
    assert table is not None
    assert list(table["data"]) == ["digits"]
    assert table["data"]["digits"]["seeds"] == [0, 1]
    assert table["data"]["digits"]["command"].endswith("--seeds 0")


# --------------------------------------------------------------------------- mistakes

HEAD = 'title = "t"\n'
ROWS = 'rows = [{ name = "FO", memory = "vae-fo" }]\n'


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        (HEAD + ROWS + "sedes = [0]", ["unknown key 'sedes'. Did you mean 'seeds'?"]),
        (HEAD, ["rows is missing"]),
        (ROWS, ["title is missing"]),
        (HEAD + 'rows = [{ memory = "vae-fo" }]', ["row 1: name is missing"]),
        (HEAD + 'rows = [{ name = "FO" }]', ["row 1: memory is missing", "quoted = true"]),
        (HEAD + "rows = [3]", ["row 1: 3; expected a table"]),
        (HEAD + "rows = []", ["rows is []; List should have at least 1 item"]),
        (
            HEAD + 'rows = [{ name = "FO", memory = 3, head = 4, paper = 5, labels = { a = 6 } }]',
            [
                "row 1: memory is 3; expected text in quotes or a table",
                "row 1: head is 4; expected text in quotes or a table",
                "row 1: paper is 5; expected a valid dictionary",
                "row 1: labels.a is 6; expected a valid string",
            ],
        ),
        (
            HEAD + 'rows = [{ name = "FO", memory = "vae-fo", paper = { a = [true] } }]',
            ["paper.a.0 is True; expected a valid number"],
        ),
        (
            HEAD + 'rows = [{ name = "FO", memory = "vae-f0", head = "cosin" }]',
            [
                "row 1: there is no memory 'vae-f0'. Did you mean 'vae-fo'?",
                "row 1: there is no head 'cosin'. Did you mean 'cosine'?",
            ],
        ),
        (
            HEAD + 'rows = [{ name = "FO", memory = { name = "vae-fo", laten = 3, epochs = -1 } }]',
            ["has no setting 'laten'. Did you mean 'latent'?"],
        ),
        (
            HEAD + 'rows = [{ name = "FO", memory = "vae-fo", heads = "lda" }]',
            ["row 1: unknown key 'heads'. Did you mean 'head'?"],
        ),
        (
            HEAD + ROWS + "memory = { max_step = 3 }",
            ["[memory] max_step: no row's memory has this setting. Did you mean 'max_steps'?"],
        ),
        (HEAD + ROWS + 'seeds = "0"', ["seeds is '0'; expected a valid list"]),
        (HEAD + ROWS + "seeds = [-1]", ["seeds.0 is -1; expected greater than or equal to 0"]),
        (HEAD + ROWS + "data = [3]", ["data.0 is 3; expected a valid string"]),
        ("title = 3\n" + ROWS, ["title is 3; expected a valid string"]),
        (HEAD + ROWS + "show_memory = 1", ["show_memory is 1; expected a valid boolean"]),
        (HEAD + ROWS + 'metric = "forgeting"', ["Did you mean 'forgetting'?"]),
        (HEAD + ROWS + 'kind = "tabel"', ["kind is 'tabel'. Did you mean 'table'?"]),
        (HEAD + ROWS + 'measure = "every tasks"', ["Did you mean 'every task'?"]),
        (HEAD + ROWS + 'observe = "sample"', ["Did you mean 'samples'? Choices: 'samples'"]),
        (HEAD + ROWS + 'observe = "samples"\nkind = "tsne"', ["kind = 'tsne' are both given"]),
        (HEAD + ROWS + "tasks = 0", ["tasks is 0; expected a number of tasks"]),
        (HEAD + ROWS + "tasks = true", ["tasks is True; expected"]),
        (HEAD + ROWS + "tasks = [3, 0]", ["tasks is [3, 0]; expected"]),
        (HEAD + ROWS + "tasks = { first = 2.0, later = 5 }", ["{first = 0.5, later = 5}"]),
        (HEAD + ROWS + "tasks = 2\nprotocols = { a = 2 }", ["both given; keep one"]),
        (
            HEAD + ROWS + "protocols = { a = -2 }",
            ["protocols.a.tasks is -2; expected a number of tasks"],
        ),
        (HEAD + ROWS + "held_out = 1.5", ["held_out is 1.5; expected less than 1"]),
        (
            HEAD
            + 'rows = [{ name = "FO", memory = "vae-fo", paper = { a = 3.0, b = [1, 2, 3] } }]',
            [
                "paper.a is 3.0; expected a valid list",
                "paper.b is [1, 2, 3]; List should have at most 2 items",
            ],
        ),
        ("title = ", ["Invalid value"]),
        (f"title = {'[' * 5_000}{']' * 5_000}", ["too many nested brackets"]),
        (
            HEAD + ROWS + 'sedes = [0]\nkind = "tabel"\ntasks = 0',
            ["3 mistakes; nothing was started", "'seeds'", "'table'", "tasks is 0"],
        ),
    ],
)
def test_every_mistake_is_told_at_once_and_nothing_is_written(
    text: str, messages: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "wrong.toml", text)
    assert main(["bench", "run", str(path), "-o", str(tmp_path / "results")]) == 2
    told = capsys.readouterr().err
    for message in [*messages, "nothing was started", str(path)]:
        assert message in told
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--set=memory.max_step=3"], "--set memory.max_step: no row has this setting"),
        (["--set=memory.max_steps=-3"], "max_steps is -3; expected"),
        (["--data=digit"], "Did you mean 'digits'?"),
        (["--data=mine=absent.npz"], "absent.npz: there is no such file"),
        (["--data=digits", "--data=digits"], "given twice"),
        (["--data=digit-images"], "nothing to run: none of the data fits"),
        (["absent.toml"], "absent.toml: [Errno 2] No such file"),
    ],
)
def test_mistakes_of_the_command_line_are_told_too(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "right.toml", HEAD + ROWS)
    assert main(["bench", "run", str(path), *options, "-o", str(tmp_path / "results")]) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [path]


def test_mistakes_of_all_files_are_told_together(tmp_path: Path) -> None:
    paths = [written(tmp_path / f"{name}.toml", HEAD + ROWS + "tasks = 0") for name in "ab"]
    with pytest.raises(InputError, match="(?s)2 mistakes.*a.toml: tasks.*b.toml: tasks"):
        read_experiments([*paths, written(tmp_path / "c.toml", HEAD + ROWS)])


# --------------------------------------------------------------------------- which runs


def part(name: str = "vae-fo", **changes: Any) -> Part:
    return Part("memory", name, changes, defaults("memory", name) | changes)


CELL = Cell("digits", "0", 5, part(), Part("head", "lda", {}, {"penalty": 1.0}), seed=0)
OTHER = {
    "data": st.text(min_size=1),
    "fingerprint": st.text("0123456789abcdef", min_size=1),
    "tasks": st.integers(1, 20)
    | st.lists(st.integers(1, 9), min_size=1)
    | st.fixed_dictionaries({"first": st.floats(0.1, 0.9), "later": st.integers(1, 9)}),
    "memory": st.sampled_from(list(MEMORIES)).map(part),
    "head": st.floats(0, 9).map(lambda penalty: Part("head", "lda", {}, {"penalty": penalty})),
    "seed": st.integers(0, 2**31),
    "held_out": st.none() | st.floats(0.1, 0.9),
    "encoder": st.none()
    | st.integers(1, 9).map(lambda n: Part("encoder", "resnet18", {}, {"epochs": n})),
    "observe": st.sampled_from([None, "tsne", "placement", "samples"]),
}


@given(st.data(), st.sampled_from(list(OTHER)), st.booleans())
def test_the_key_changes_with_whatever_decides_the_result(
    data: st.DataObject, name: str, every_task: bool
) -> None:
    value = data.draw(OTHER[name])
    changed = replace(CELL, **{name: value, "every_task": every_task})
    assert (changed.key == CELL.key) == (changed.settings() == CELL.settings())


@given(st.data(), st.sampled_from(list(MEMORIES)))
def test_the_key_changes_with_every_setting_of_a_memory_and_not_with_their_order(
    data: st.DataObject, name: str
) -> None:
    cell = replace(CELL, memory=part(name))
    shuffled = dict(data.draw(st.permutations(list(cell.memory.settings.items()))))
    assert replace(cell, memory=Part("memory", name, {}, shuffled)).key == cell.key
    for setting in shuffled:
        changed = replace(cell, memory=part(name, **{setting: "another value"}))
        assert changed.key != cell.key


def test_a_new_setting_leaves_keys_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that was recorded before it came answers for its default, and for nothing else."""
    before, recorded = CELL.key, CELL.settings()
    usual = defaults("memory", "vae-fo") | {"brand_new": 3}
    monkeypatch.setattr("frugalvae_lab.bench.specification.defaults", lambda *_: usual)
    with_default = replace(CELL, memory=part(brand_new=3))
    assert with_default.key == before
    assert with_default.agrees(recorded)
    assert replace(CELL, memory=part(brand_new=4)).key != before


def test_a_run_with_another_default_does_not_count(tmp_path: Path) -> None:
    """Or a default that changes would pass off old results as those of the new one."""
    store = Results(tmp_path)
    store.prepare()
    store.finish(CELL, {"metrics": {}})
    assert store.load(CELL) is not None
    (path,) = (tmp_path / "runs").iterdir()
    then = json.loads(path.read_text())
    then["settings"]["memory"]["latent"] = 17
    path.write_text(json.dumps(then))
    assert store.load(CELL) is None


def test_runs_with_keys_of_the_old_kind_are_renamed(tmp_path: Path) -> None:
    store, runs = Results(tmp_path), tmp_path / "runs"
    store.prepare()
    cells = [CELL, replace(CELL, seed=1, memory=part("gaussian-full"), observe="samples")]

    def written_long_ago(metric: float) -> None:
        for cell in cells:
            settings = cell.settings()
            old = {"key": json_digest(settings), "every_task": True, "settings": settings}
            name = f"{cell.data}-{cell.memory.name}-lda-seed{cell.seed}-{old['key'][:10]}.json"
            (runs / name).write_text(json.dumps(old | {"metrics": {"m": metric}}))

    written_long_ago(1.0)
    assert [store.load(cell) for cell in cells] == [None, None]
    assert rekey(tmp_path) == 2
    assert rekey(tmp_path) == 0
    assert [store.load(cell)["metrics"]["m"] for cell in cells] == [1.0, 1.0]
    written_long_ago(2.0)  # measured again with the older code, and copied over
    assert rekey(tmp_path) == 2
    assert [store.load(cell)["metrics"]["m"] for cell in cells] == [2.0, 2.0]
    assert len(list(runs.iterdir())) == 2


@given(st.dictionaries(st.text(), st.integers() | st.text() | st.none()))
def test_a_digest_survives_a_file(content: dict[str, Any]) -> None:
    assert json_digest(json.loads(json.dumps(content))) == json_digest(content)


def experiment(*memories: str, **changes: Any) -> Experiment:
    rows = [{"name": memory, "memory": memory} for memory in memories]
    return parse("t", {"title": "t", "rows": rows, **changes})


def test_runs_that_tables_share_are_run_once_and_the_first_seed_first() -> None:
    about = {"digits": {"fingerprint": "0", "backbone": "pixels"}}
    one = experiment("vae-fo", "vae-ceo", seeds=[3, 1], measure="last task")
    two = experiment("vae-fo", "store-all", seeds=[3, 1, 2], measure="every task")
    found = grid([one, two], about)
    assert [(cell.seed, cell.memory.name, cell.every_task) for cell in found] == [
        (3, "vae-fo", True),
        (3, "vae-ceo", False),
        (3, "store-all", True),
        (1, "vae-fo", True),
        (1, "vae-ceo", False),
        (1, "store-all", True),
        (2, "vae-fo", True),
        (2, "store-all", True),
    ]
    assert grid([two, one], about)[0].every_task
    assert len({cell.key for cell in found}) == len(found)


@pytest.mark.parametrize(("tasks", "sizes"), [(10, 6), (3, 3), ([2, 4], [2, 4])])
def test_of_fewer_classes_than_tasks_each_is_a_task(tasks: Any, sizes: Any) -> None:
    about = {"digits": {"fingerprint": "0", "backbone": "pixels"}}
    [cell] = grid([experiment("moments", tasks=tasks, seeds=[0])], about)
    assert cell.task_sizes(6) == sizes


def test_a_row_without_a_head_has_the_usual_one_of_its_memory() -> None:
    rows = experiment("factors", "vae-fo", "gaussian-full").rows
    assert [row.head and row.head.name for row in rows] == ["bayes", "cosine", "cosine"]
    assert [usual_head(row.memory.name) for row in rows if row.memory] == [
        row.head.name for row in rows if row.head
    ]


def test_settings_for_all_rows_reach_those_that_have_them() -> None:
    found = experiment("vae-fo", "gaussian-diagonal", memory={"latent": 7})
    assert [row.memory.given for row in found.rows if row.memory] == [{"latent": 7}, {}]


# --------------------------------------------------------------------------- ours


@pytest.mark.parametrize("path", sorted(EXPERIMENTS.glob("*.toml")), ids=lambda path: path.stem)
def test_every_experiment_of_ours_can_be_read(path: Path) -> None:
    [found] = read_experiments([path])
    about = {
        name: {"fingerprint": name, "backbone": None if found.encoder else "features", "text": True}
        for name in found.data
    }
    measured = [row for row in found.rows if not row.quoted]
    runs = len(measured) * len(found.seeds) * len(found.data) * len(found.protocols)
    assert 0 < len(grid([found], about)) <= runs


@pytest.mark.parametrize(
    ("name", "row", "column", "figure"),
    [
        ("table1", 0, "cub200", [11.63, 0.21]),
        ("table1", 5, "cub200", [69.28, 0.14]),
        ("table1", 6, "cifar100", [83.67, 0.25]),
        ("table2", 3, "cars196", [89.27, 0.14]),
        ("table3", 0, "cub200", [62.21, 1.92]),
        ("table3", 3, "cifar100", [81.40]),
        ("means", 1, "cub200", [75.66, 0.47]),
        ("r-first-layer", 0, "imagenet-r", [0.052, 0.01]),
        ("fetril", 0, "cifar100-images 50-T=5", [68.40, 0.83]),
        ("fetril", 1, "cifar100-images 40-T=60", [66.41, 1.44]),
    ],
)
def test_figures_of_the_paper_are_as_printed(
    name: str, row: int, column: str, figure: list[float]
) -> None:
    [found] = read_experiments([EXPERIMENTS / f"{name}.toml"])
    assert found.rows[row].paper[column] == figure
