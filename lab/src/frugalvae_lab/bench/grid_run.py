"""Run what is missing of experiments, write each run as it ends, and show how it goes."""

from __future__ import annotations

import shlex
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from itertools import chain
from pathlib import Path
from typing import Any

from rich.progress import TimeRemainingColumn

from frugalvae.console import Display
from frugalvae.errors import InputError
from frugalvae.formatting import duration, plural
from frugalvae.images.feature_file import load_features, write_features
from frugalvae_lab.bench.data_sources import Source, find_data, parse_data
from frugalvae_lab.bench.grid import Cell, grid, selected, takes
from frugalvae_lab.bench.pool import Job, Outcome, Pool
from frugalvae_lab.bench.results import Results
from frugalvae_lab.bench.run import Encoding
from frugalvae_lab.bench.specification import Experiment, read_experiments


def run_grid(
    paths: Sequence[Path],
    make_pool: Callable[[], Pool],
    *,
    data: Sequence[str] = (),
    seeds: Sequence[int] | None = None,
    changes: Sequence[tuple[str, str, Any]] = (),
    trust: tuple[str, ...] = (),
    results: Path = Path("results"),
    rows: Sequence[str] = (),
    protocols: Sequence[str] = (),
    again: bool = False,
    plan: bool = False,
    quiet: bool = False,
) -> int:
    """Run what is missing, and return the number of runs that failed.

    Parameters
    ----------
    paths
        Experiments, as TOML files.
    make_pool
        Makes the pool; called if there is something to run.
    data
        ``NAME=FILE``, or names of known data sets; by default those that each experiment
        names, if they are found.
    seeds, changes
        Replace those in the files.
    trust
        Modules and classes that the files may name: no other is imported.
    rows, protocols
        The rows and columns to run now, by name; without any, all.
    again
        Run what is done, too.
    plan
        List what is missing, and run nothing.
    """
    experiments = read_experiments(paths, changes, trust)
    given = parse_data(data)
    update: dict[str, Any] = {"seeds": list(seeds)} if seeds is not None else {}
    update |= {"data": list(given)} if given else {}
    experiments = [entry.model_copy(update=update) for entry in experiments]
    names = list(dict.fromkeys(name for entry in experiments for name in entry.data))
    sources, absent = find_data(names, {name: path for name, path in given.items() if path})
    if given and absent:
        raise InputError("; ".join(absent.values()))
    store, display = Results(results), GridDisplay(quiet)
    for name, reason in absent.items():
        display.say(f"skipped {name}: {reason}")
    about = {name: source.to_json() for name, source in sources.items()}
    wanted = grid(selected(experiments, rows, protocols), about)
    if not wanted:
        why = (
            "; ".join(dict.fromkeys(absent.values()))
            or "the columns that were asked for are not for this data"
        )
        raise InputError(f"nothing to run: none of the data fits; {why}")
    missing = [cell for cell in wanted if again or store.load(cell) is None]
    for cell in missing if plan else ():
        display.say(cell.name)
    done = len(wanted) - len(missing)
    display.say(f"{plural(len(wanted), 'run')}: {done} done before, {len(missing)} to do")
    if plan:
        return 0
    with closing(make_pool()) if missing else nullcontext() as pool:
        store.prepare()  # after what may fail
        for experiment in experiments:
            remember(store, experiment, about, command(paths, data, seeds, changes, trust))
        return work(missing, sources, pool, store, display) if pool else 0


def remember(
    store: Results,
    experiment: Experiment,
    about: Mapping[str, Mapping[str, Any]],
    made_by: str,
) -> None:
    """Record what was asked for; other data or seeds, asked for later, are added to it."""
    before = store.table(experiment.name) or {"experiment": None, "data": {}}
    grown = dict(before["data"]) if before["experiment"] == experiment.source else {}
    for name in experiment.data:
        if name not in about or not takes(experiment, about[name]):
            continue
        known = grown.get(name, {})
        same = known.get("fingerprint") == about[name]["fingerprint"]
        seeds = {*experiment.seeds, *(known["seeds"] if same else ())}
        grown[name] = {**about[name], "seeds": sorted(seeds), "command": made_by}
    store.write_table(experiment.name, {"experiment": experiment.source, "data": grown})


def command(
    paths: Sequence[Path],
    data: Sequence[str],
    seeds: Sequence[int] | None,
    changes: Sequence[tuple[str, str, Any]],
    trust: Sequence[str] = (),
) -> str:
    """The command that makes these results, without the folders of this machine."""
    words = ["frugalvae-lab", "bench", "run"]
    words += [path.name if path.is_absolute() else path.as_posix() for path in paths]
    for entry in data:
        name, equals, path = entry.partition("=")
        short = ",".join(Path(part).name for part in path.split(","))
        words += ["--data", f"{name}{equals}{short}"]
    if seeds is not None:
        words += ["--seeds", *map(str, seeds)]
    for part, key, value in changes:
        words += ["--set", f"{part}.{key}={value}"]
    for name in trust:
        words += ["--trust", name]
    return shlex.join(words)


def work(
    missing: Sequence[Cell],
    sources: Mapping[str, Source],
    pool: Pool,
    store: Results,
    display: GridDisplay,
) -> int:
    """Run the missing cells, write each as it ends, and return the number that failed."""
    display.start(len(missing))
    with display.progress:
        encoded, broken = encode_missing(missing, sources, pool, store, display)
        runnable = [cell for cell in missing if cell.key in encoded]
        for outcome in chain(broken, run_all(runnable, encoded, pool)):
            cell = outcome.job
            assert isinstance(cell, Cell)
            if outcome.traceback is None:
                store.finish(cell, outcome.result)
            else:
                store.fail(cell, outcome.traceback)
            display.ended(cell, outcome)
    display.summary(pool.slots)
    return display.failures


def encode_missing(
    missing: Sequence[Cell],
    sources: Mapping[str, Source],
    pool: Pool,
    store: Results,
    display: GridDisplay,
) -> tuple[dict[str, str], list[Outcome]]:
    """Share all data; train the encoders that some cells need.

    The features of trained encoders are kept with the results, since they take long to make.

    Returns
    -------
    names
        The name of the shared data of each cell.
    broken
        The cells whose encoder failed.
    """
    for name in dict.fromkeys(cell.data for cell in missing):
        pool.share(name, sources[name].data)
    encodings = {cell.key: Encoding(cell) for cell in missing if cell.encoder is not None}
    distinct = {encoding.key: encoding for encoding in encodings.values()}
    places = {key: store.folder / "encoded" / f"{key}.npz" for key in distinct}
    absent = [encoding for key, encoding in distinct.items() if not places[key].exists()]
    tracebacks = {}
    for outcome in run_all(absent, {e.key: e.cell.data for e in absent}, pool):
        display.say(f"encoder: {outcome.job.name}, {duration(outcome.seconds)}")
        if outcome.traceback is None:
            write_features(places[outcome.job.key], outcome.result)
        else:
            tracebacks[outcome.job.key] = outcome.traceback
    for key in distinct.keys() - tracebacks.keys():
        pool.share(key, load_features(places[key]))
    names = {cell.key: cell.data for cell in missing} | {
        key: encoding.key for key, encoding in encodings.items()
    }
    broken = [
        Outcome(cell, traceback=tracebacks[names[cell.key]])
        for cell in missing
        if names[cell.key] in tracebacks
    ]
    for outcome in broken:
        del names[outcome.job.key]
    return names, broken


def run_all(jobs: Sequence[Job], data: Mapping[str, str], pool: Pool) -> Iterator[Outcome]:
    """Outcomes as they come; as many jobs run at a time as the pool has slots."""
    waiting, running = deque(jobs), 0
    while waiting or running:
        while waiting and running < pool.slots:
            job = waiting.popleft()
            pool.start(job, data[job.key])
            running += 1
        for outcome in pool.wait(0.5):
            running -= 1
            yield outcome


# --------------------------------------------------------------------------- what is shown


class GridDisplay(Display):
    """Runs: done, running, failed, and the time left. A line for each that ended."""

    def __init__(self, quiet: bool = False) -> None:
        super().__init__(quiet, TimeRemainingColumn())
        self.done, self.failures, self.spent = 0, 0, 0.0

    def start(self, total: int) -> None:
        """Get ready for that many runs."""
        self.total, self.started = total, time.perf_counter()
        self.task = self.progress.add_task("runs", total=total)

    def ended(self, cell: Cell, outcome: Outcome) -> None:
        """A run has ended, well or not."""
        if outcome.traceback is None:
            self.done += 1
            self.spent += outcome.seconds
            accuracy = outcome.result["metrics"]["final_average_accuracy"]
            text = "" if accuracy is None else f"{accuracy:.1%}, "
            text += duration(outcome.seconds)
        else:
            self.failures += 1
            text = f"FAILED, {outcome.traceback.strip().splitlines()[-1]}"
        ended = self.done + self.failures
        self.progress.update(self.task, completed=ended, description=f"{self.failures} failed")
        self.say(f"{ended} of {self.total}  {cell.name}: {text}")

    def summary(self, slots: int) -> None:
        """What it came to."""
        wall = duration(time.perf_counter() - self.started)
        if self.done + self.failures:
            self.say(
                f"{plural(self.done, 'run')} done, {self.failures} failed: {duration(self.spent)} "
                f"of work in {wall}, {slots} at a time"
            )
