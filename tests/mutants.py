"""
Mutation testing: change one expression of the package, and see whether a near test fails.

``make mutants`` does so for every file of ``tests/mutants.toml``, ``make mutants-sample`` for as
many as fit into four minutes, others for each commit. No file is written: a mutant is new code
that a forked process gives to functions that are already imported, so that it costs the time of
its tests and nothing else. What runs on import (constants, defaults) is changed as it is imported.

mutmut leaves constants of modules and decorated functions alone, and names a mutant by its number;
cosmic-ray writes mutants into ``src`` and starts Python, pytest and PyTorch anew for each.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import gc
import hashlib
import importlib
import json
import math
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
import traceback
import types
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

import pytest

from tests.mutations import Mutant, compiled, mutants_of

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src" / "frugalvae"
#: The part of all mutants of a file that tests have to kill.
SHARE = 0.95
#: A sample of fewer says nothing: one function that is hard to test could be most of it.
FEWEST = 50
#: Seconds that a sample gives to one file, once it is known what its tests call.
TURN = 60
#: Imported once, before anything of ours.
SLOW = "torch sklearn scipy.stats PIL.Image onnxruntime starlette.testclient rich.table"
SURVIVED, KILLED, ON_IMPORT, BROKEN = range(4)


def forked(work: Callable[[], int]) -> int:
    """Do this in a process of its own, and end whatever it started. Signals are negative."""
    child = os.fork()
    if not child:
        os.setsid()
        try:
            os._exit(work())
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(BROKEN)
    try:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)


def limit(seconds: float) -> None:
    """End this process after so many seconds of work, or ten times as many of waiting; 0 is never.

    A busy machine makes work wait, and is no reason to end it.
    """
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, 10 * seconds)


class Session:
    """What pytest collected once, and runs again and again."""

    def __init__(self, work: Callable[[Session], int]) -> None:
        self.work, self.code = work, KILLED  # where nothing can be collected, the mutant is seen
        self.calls: set[str] = set()
        self.shared: dict[str, set[str]] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        """The same examples for every mutant."""
        from hypothesis import settings

        settings.register_profile("mutants", settings(), derandomize=True, database=None)
        settings.load_profile("mutants")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        limit(0)
        self.session, self.items = session, {item.nodeid: item for item in session.items}
        self.code = self.work(self)
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[Any]:
        """What a shared fixture calls is called for every test that asks for it."""
        before, self.calls = self.calls, set()
        result = yield
        if fixturedef.scope != "function":
            self.shared[fixturedef.argname] = set(self.calls)
        self.calls |= before
        return result

    def run(self, tests: dict[str, float]) -> Iterator[str]:
        """Run tests; a test that takes much longer than it should ends the process."""
        names = list(tests)
        for test, following in zip(names, [*names, None][1:], strict=True):
            limit(3 + 5 * tests[test])
            self.session.config.hook.pytest_runtest_protocol(
                item=self.items[test], nextitem=self.items.get(following)
            )
            limit(0)
            yield test

    def kills(self, tests: dict[str, float]) -> str:
        """The first test that fails."""
        return next((test for test in self.run(tests) if self.session.testsfailed), "")

    def trace(self, path: Path) -> dict[str, tuple[float, list[str]]]:
        """Seconds of every test, and the functions of a file that it calls."""

        def seen(frame: types.FrameType, event: str, arg: object) -> None:
            if frame.f_code.co_filename == str(path):
                self.calls.add(frame.f_code.co_qualname.split(".<locals>")[0])

        found = {}
        threading.settrace(seen)
        sys.settrace(seen)
        start = time.perf_counter()
        for test in self.run(dict.fromkeys(self.items, 100.0)):
            calls, self.calls = self.calls, set()
            for name in getattr(self.items[test], "fixturenames", ()):
                calls |= self.shared.get(name, set())
            if self.session.testsfailed:
                return {test: (-1.0, [])}
            if calls:
                found[test] = (time.perf_counter() - start, sorted(calls))
            sys.settrace(seen)  # which a recursion that is too deep switches off
            start = time.perf_counter()
        sys.settrace(None)
        return found


def collected(tests: list[str], scratch: Path, work: Callable[[Session], int]) -> int:
    """Collect test files, in a process that is a fork, and work with them."""
    debug = "--debug" in sys.argv
    if not debug:
        null = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(null, stream)
    resource.setrlimit(resource.RLIMIT_DATA, (4 << 30, 4 << 30))
    # A failure is not shown with its lines: to find them, CPython 3.11 may fail to parse the file.
    shown = "auto" if debug else "no"
    options = f"-q -p no:cacheprovider -p no:xdist --assert=plain --tb={shown}"
    session = Session(work)
    limit(120)
    pytest.main([*options.split(), f"--basetemp={scratch / 'tests'}", *tests], plugins=[session])
    return session.code


class Target:
    """One file, its mutants, its near tests and what is known of both."""

    def __init__(self, file: str, near: list[str], kept: Path, scratch: Path) -> None:
        self.file, self.path, self.scratch = file, SRC / f"{file}.py", scratch
        self.tree = ast.parse(self.path.read_text("utf-8"))
        self.mutants = {each.id: each for each in mutants_of(self.tree, file)}
        self.near = [str(self.path), *(str(ROOT / "tests" / f"{name}.py") for name in near)]
        code = sorted([*SRC.rglob("*.py"), *map(Path, self.near), ROOT / "tests/conftest.py"])
        texts = b"".join(path.read_bytes() for path in code)
        self.digest = hashlib.sha256(texts).hexdigest()[:16]
        self.results, self.traced = (
            kept / f"{file.replace('/', '.')}.{end}" for end in ("jsonl", "json")
        )
        self.kills: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.known: dict[str, dict[str, Any]] = {}
        if self.results.exists():
            lines = map(json.loads, self.results.read_text("utf-8").splitlines())
            self.known = {line["mutant"]: line for line in lines}

    def tests(self) -> dict[str, tuple[float, list[str]]]:
        """Near tests with their seconds and calls, traced again after any change of code."""
        if self.traced.exists():
            digest, tests = json.loads(self.traced.read_text("utf-8"))
            if digest == self.digest:
                return tests

        def work(session: Session) -> int:
            self.traced.write_text(json.dumps([self.digest, session.trace(self.path)]), "utf-8")
            return SURVIVED

        self.traced.unlink(missing_ok=True)
        forked(lambda: collected(self.near, self.scratch, work))
        tests = json.loads(self.traced.read_text("utf-8"))[1] if self.traced.exists() else {}
        failing = next((test for test, (seconds, _) in tests.items() if seconds < 0), "")
        if failing or not tests:
            self.traced.unlink(missing_ok=True)
            raise SystemExit(f"{self.file}: {failing or self.near} fails without any mutant")
        return tests

    def fresh(self, name: str) -> bool:
        """Whether its result still holds: killed in the same function, or by no test of now."""
        line = self.known.get(name)
        if line is None or not line["by"]:
            return line is not None and line["digest"] == self.digest
        return bool(line["function"] == self.mutants[name].digest)

    def run(self, chosen: list[Mutant], end: float, seconds: float) -> None:
        """Run mutants and write each result as it comes, until the time is over."""
        tests = self.tests()
        until = min(end, time.time() + seconds)

        def of(mutant: Mutant) -> dict[str, float]:
            """Tests that can see it, first those that killed it or its neighbours."""
            found = [
                test for test, (_, calls) in tests.items() if mutant.early or mutant.name in calls
            ]
            files: Counter[str] = Counter()
            for test in found:
                files[test.split("::")[0]] += tests[test][0]
            first = self.known.get(mutant.id, {}).get("by", "")
            kills = self.kills[mutant.name]
            found.sort(key=lambda t: (t != first, -kills[t], files[t.split("::")[0]]))
            return {test: tests[test][0] for test in found}

        def keep(mutant: Mutant, code: int, start: float) -> None:
            by = (self.scratch / "by").read_text("utf-8") if code == KILLED else ""
            by = by or ("time or memory" if code < 0 else "collection" if code == KILLED else "")
            self.kills[mutant.name][by] += 1
            line = {"mutant": mutant.id, "by": by, "function": mutant.digest, "digest": self.digest}
            line |= {"tests": len(of(mutant)), "seconds": round(time.perf_counter() - start, 2)}
            with self.results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")

        def tested(session: Session, mutant: Mutant) -> int:
            by = session.kills(of(mutant))
            (self.scratch / "by").write_text(by, "utf-8")
            return KILLED if by else SURVIVED

        def all_of(session: Session) -> int:
            late = []
            made = (each for each in gc.get_objects() if type(each) is types.FunctionType)
            self.functions = [each for each in made if each.__code__.co_filename == str(self.path)]
            gc.freeze()
            for mutant in chosen:
                start = time.perf_counter()
                if time.time() > until:
                    break
                code = ON_IMPORT
                if not mutant.early:
                    (self.scratch / "by").write_text("", "utf-8")
                    code = forked(lambda m=mutant: self.given(m) or tested(session, m))
                if code in (ON_IMPORT, BROKEN):
                    late.append(mutant.id)
                else:
                    keep(mutant, code, start)
            (self.scratch / "late").write_text(json.dumps(late), "utf-8")
            return SURVIVED

        if forked(lambda: collected(self.near, self.scratch, all_of)) != SURVIVED:
            raise SystemExit(f"{self.file}: its mutants cannot be run; try --debug")
        for name in json.loads((self.scratch / "late").read_text("utf-8")):
            if time.time() < until:
                mutant, start = self.mutants[name], time.perf_counter()
                (self.scratch / "by").write_text("", "utf-8")
                keep(mutant, forked(lambda m=mutant: self.imported(m, tested)), start)

    def given(self, mutant: Mutant) -> int:
        """Give every function of this name the mutant's code, unless it closes over less."""
        codes = {}

        def find(code: types.CodeType) -> None:
            codes[code.co_qualname, code.co_firstlineno] = code
            for each in code.co_consts:
                if isinstance(each, types.CodeType) and "<locals>" not in each.co_qualname:
                    find(each)

        find(compiled(self.tree, mutant, str(self.path)))
        try:
            for each in self.functions:
                code = codes.get((each.__code__.co_qualname, each.__code__.co_firstlineno))
                if code and each.__code__.co_qualname == mutant.name:
                    each.__code__ = code
        except ValueError:
            return ON_IMPORT
        return SURVIVED

    def imported(self, mutant: Mutant, tested: Callable[[Session, Mutant], int]) -> int:
        """Import the package with this mutant."""
        code, plain = compiled(self.tree, mutant, str(self.path)), SourceFileLoader.get_code

        def get_code(loader: SourceFileLoader, name: str) -> Any:
            return code if loader.path == str(self.path) else plain(loader, name)

        SourceFileLoader.get_code = get_code  # type: ignore[method-assign]
        return collected(self.near, self.scratch, lambda session: tested(session, mutant))


def table() -> tuple[dict[str, list[str]], set[str], set[str]]:
    """Near tests of every file, mutants that may survive, and files that samples leave out."""
    read = tomllib.loads((ROOT / "tests/mutants.toml").read_text("utf-8"))
    near = read["near"]
    listed = {name for row in read.get("survivors", []) for name in row["mutants"]}
    for file, tests in near.items():
        for path in (SRC / f"{file}.py", *(ROOT / f"tests/{name}.py" for name in tests)):
            if not path.exists():
                raise SystemExit(
                    f"tests/mutants.toml, {file}: there is no {path.relative_to(ROOT)}; "
                    "write where it is now, in [near] and in [[survivors]]"
                )
    for name in sorted(listed):
        if name.split(":")[0] not in near:
            raise SystemExit(f"tests/mutants.toml: no file of [near] has the survivor {name}")
    return near, listed, set(read.get("below", []))


def too_many(alive: int, tried: int) -> bool:
    """Whether chance leaves so many alive in less than one sample of a hundred, if SHARE die."""
    if tried < FEWEST:
        return False
    chances = (
        math.exp(
            math.lgamma(tried + 1)
            - math.lgamma(each + 1)
            - math.lgamma(tried - each + 1)
            + each * math.log(1 - SHARE)
            + (tried - each) * math.log(SHARE)
        )
        for each in range(alive, tried + 1)
    )
    return sum(chances) < 0.01


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("files", nargs="*", help="such as moments/rule; all of mutants.toml")
    parser.add_argument("--sample", type=float, metavar="SECONDS", help="as many as fit")
    parser.add_argument("--kept", type=Path, default=ROOT / ".mutants", help="folder of results")
    parser.add_argument("--debug", action="store_true", help="show what pytest prints")
    given = parser.parse_args(arguments)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    near, listed, below = table()
    files = given.files or list(near)
    for file in set(files) - near.keys():
        raise SystemExit(f"{file} is no file of tests/mutants.toml; these are: {', '.join(near)}")
    sys.path[:0] = [str(ROOT), str(SRC.parent)]
    for name in SLOW.split():
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    given.kept.mkdir(parents=True, exist_ok=True)
    if given.sample:
        files = [file for file in files if file not in below]
        return sample(files, near, listed, given.kept, given.sample)
    bad = False
    for file in files:
        done, alive = tried(file, near[file], given.kept, listed)
        share = 1 - len(alive) / max(done, 1)
        gone = {name for name in listed if name.startswith(f"{file}:")} - alive
        for name in sorted(gone):
            print(f"  is listed, and killed or gone: {name}")
        bad |= bool(alive - listed or gone) or share < SHARE
    return int(bad)


def sample(
    files: list[str], near: dict[str, list[str]], listed: set[str], kept: Path, seconds: float
) -> int:
    """Others for each commit. One that survives is printed, and only too many are a failure.

    For it may be one that no test can tell from the code, and that nobody has listed yet.
    """
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True).stdout

    def drawn(name: str) -> bytes:
        return hashlib.sha256(commit + name.encode()).digest()

    end, done, alive = time.time() + seconds, 0, 0
    for file in sorted(files, key=drawn):
        if time.time() > end:
            break
        try:
            count, survivors = tried(file, near[file], kept, listed, drawn, end)
        except SystemExit as error:  # a busy machine; `make test` says whether it is the code
            print(f"{error}; left out", flush=True)
        else:
            done, alive = done + count, alive + len(survivors)
    print(f"sample: {done - alive} of {done} killed; expected {SHARE:.0%}, but for chance")
    return int(too_many(alive, done))


def tried(
    file: str,
    near: list[str],
    kept: Path,
    listed: set[str],
    drawn: Callable[[str], bytes] | None = None,
    end: float = math.inf,
) -> tuple[int, set[str]]:
    """Run what is not known yet; how many mutants are known then, and which of them survive.

    Of a sample, ``drawn`` is the order, and what is listed is left out.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        target = Target(file, near, kept, Path(scratch))
        chosen = list(target.mutants)
        if drawn:
            chosen = sorted(target.mutants.keys() - listed, key=drawn)
        todo = [target.mutants[name] for name in chosen if not target.fresh(name)]
        if todo:
            target.run(todo, end, TURN if drawn else math.inf)
        target = Target(file, near, kept, Path(scratch))
    done = [name for name in chosen if target.fresh(name)]
    alive = {name for name in done if not target.known[name]["by"]}
    killed = len(done) - len(alive)
    print(f"{file}: {killed} of {len(done)} killed, {killed / max(len(done), 1):.1%}", flush=True)
    for name in sorted(alive - listed):
        print(f"  survives: {name}", flush=True)
    return len(done), alive


if __name__ == "__main__":
    sys.exit(main())
