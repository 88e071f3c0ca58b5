"""The tool that plants mutants: what it changes, what it calls a change, and what it reports."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from tests import mutants
from tests.mutations import compiled, mutants_of

CODE = '''
"""A module."""
STALE = 60

def late(age: int, slack: float = 0.5) -> bool:
    """Whether it is late."""
    if age < 0:
        raise ValueError(f"{age} is below 0")
    return age > STALE + slack
'''


def changes(code: str) -> dict[str, object]:
    tree = ast.parse(code)
    return {each.id: compiled(tree, each, "code.py") for each in mutants_of(tree, "code")}


def test_a_mutant_is_named_by_its_change_and_not_by_its_line() -> None:
    found = changes(CODE)
    assert list(found) == list(changes("# above\n\n" + CODE))
    assert set(found) == {
        "code: `60` -> `61`",
        "code: `60` -> `59`",
        "code:late `0.5` -> `1.5`",
        "code:late `0.5` -> `-0.5`",
        "code:late `age < 0` -> `age <= 0`",
        "code:late `age < 0` -> `age >= 0`",
        "code:late `0` -> `1`",
        "code:late `raise ValueError(f'{age} is below 0')` -> `pass`",
        "code:late `return age > STALE + slack` -> `return None`",
        "code:late `age > STALE + slack` -> `age >= STALE + slack`",
        "code:late `age > STALE + slack` -> `age <= STALE + slack`",
        "code:late `STALE + slack` -> `STALE - slack`",
    }


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("x += 1", ["x = 1", "x -= 1", "x += 0", "x += 2"]),
        ("x = a and not b", ["x = a or not b", "x = not b", "x = a", "x = a and b"]),
        ("f(strict=True, copy=False)", ["pass"]),
        ("f(x, axis=0)", ["pass", "f(x)", "f(x, axis=1)"]),
        ("self.x = min(y)", ["pass", "self.x = max(y)"]),
        ("x = y[:n]", ["x = y[:]"]),
        ("x = y.T @ z", ["x = y @ z"]),
        ("x = y if ready else z", ["x = z if ready else y"]),
        ("x = [y for y in z if y]", ["x = [y for y in z]"]),
        ("x = kind == 'word'", ["x = kind != 'word'", "x = kind == 'wor'"]),
        ("x = ('/', '/page/')", ["x = ('', '/page/')", "x = ('/', '/page')"]),
        ("x: Literal['a', 'b'] = y", []),
        ("x = f(y, axis=-1)", ["x = f(y)"]),
        ("warn('careful', stacklevel=2)", ["pass"]),
    ],
)
def test_the_operators(code: str, expected: list[str]) -> None:
    tree = ast.parse(code)
    found = []
    for each in mutants_of(tree, "code"):
        old = each.put(each.new)
        found.append(ast.unparse(ast.fix_missing_locations(tree)))
        each.put(old)
    assert found == expected
    assert ast.unparse(tree) == ast.unparse(ast.parse(code))


def test_what_a_function_inside_does_is_a_change_of_the_function_that_tests_call() -> None:
    code = "class A:\n def f(self):\n  def g():\n   return 1 + x\n  return g"
    found = [each.name for each in mutants_of(ast.parse(code), "code")]
    assert len(found) == 5
    assert set(found) == {"A.f"}


def test_the_table_names_what_is_there_and_gives_reasons() -> None:
    near, _, below = mutants.table()
    assert below < near.keys()
    table = tomllib.loads((mutants.ROOT / "tests/mutants.toml").read_text("utf-8"))
    for row in table.get("survivors", []):
        assert len(row["reason"].split()) > 3, row


#: They see every change of CODE but one, of a constant that is read on import; these see none.
SEES = """
import pytest
from frugalvae.late import late
def test_late():
    assert late(61) and not late(60) and late(60, -1) and not late(59, 1)
    with pytest.raises(ValueError): late(-1)
    assert not late(0)
"""
BLIND = "from frugalvae.late import late\ndef test_late():\n    late(61)\n"
ALIVE = "late:late `age > STALE + slack` -> `age >= STALE + slack`"


class Project:
    """A package of one file, and its tests."""

    def __init__(self, folder: Path, tests: str) -> None:
        (folder / "src/frugalvae").mkdir(parents=True)
        (folder / "tests").mkdir()
        (folder / "src/frugalvae/__init__.py").touch()
        (folder / "src/frugalvae/late.py").write_text(CODE, "utf-8")
        (folder / "tests/conftest.py").touch()
        (folder / "tests/test_late.py").write_text(tests, "utf-8")
        self.folder = folder
        self.lists()

    def lists(
        self, file: str = "late", near: str = "test_late", survivors: str = "", below: str = ""
    ) -> None:
        table = f'{below}\n[near]\n"{file}" = ["{near}"]\n{survivors}'
        (self.folder / "tests/mutants.toml").write_text(table, "utf-8")

    def run(self, *words: str) -> tuple[int, list[str], str]:
        program = (
            "import sys; from pathlib import Path; from tests import mutants; "
            f"mutants.ROOT = Path({str(self.folder)!r}); mutants.SLOW = ''; mutants.FEWEST = 3; "
            f"mutants.SRC = mutants.ROOT / 'src/frugalvae'; sys.exit(mutants.main({[*words]}))"
        )
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONPATH": str(mutants.ROOT)},
            cwd=self.folder,
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stdout.splitlines(), done.stderr


def test_mutants_of_a_file_are_run_and_survivors_need_a_reason(tmp_path: Path) -> None:
    project = Project(tmp_path, SEES)
    killed = "late: 11 of 12 killed, 91.7%"
    assert project.run() == (1, [killed, f"  survives: {ALIVE}"], "")
    results = (tmp_path / ".mutants/late.jsonl").read_bytes()
    assert project.run() == (1, [killed, f"  survives: {ALIVE}"], "")
    assert (tmp_path / ".mutants/late.jsonl").read_bytes() == results, "known, and not run again"
    reason = '[[survivors]]\nreason = "it makes no difference"\n'
    project.lists(survivors=f'{reason}mutants = ["{ALIVE}", "late:late `1` -> `2`"]\n')
    gone = "  is listed, and killed or gone: late:late `1` -> `2`"
    assert project.run() == (1, [killed, gone], "")


def test_a_sample_prints_who_survives_and_fails_if_too_many_do(tmp_path: Path) -> None:
    code, lines, errors = Project(tmp_path / "sees", SEES).run("--sample", "100")
    assert (code, errors) == (0, "")
    assert lines == [
        "late: 11 of 12 killed, 91.7%",
        f"  survives: {ALIVE}",
        "sample: 11 of 12 killed; expected 95%, but for chance",
    ]
    code, lines, errors = Project(tmp_path / "blind", BLIND).run("--sample", "100")
    assert (code, errors) == (1, "")
    assert len(lines) > 5
    left_out = Project(tmp_path / "below", BLIND)
    left_out.lists(below='below = ["late"]')
    nothing = ["sample: 0 of 0 killed; expected 95%, but for chance"]
    assert left_out.run("--sample", "100") == (0, nothing, "")


def test_a_sample_leaves_out_what_cannot_be_run_and_may_be_empty(tmp_path: Path) -> None:
    """Whether tests fail is what `make test` says."""
    failing = Project(tmp_path / "failing", "def test_late(): assert False")
    assert failing.run("--sample", "100") == (
        0,
        [
            "late: tests/test_late.py::test_late fails without any mutant; left out",
            "sample: 0 of 0 killed; expected 95%, but for chance",
        ],
        "",
    )
    assert failing.run()[0] == 1
    late = Project(tmp_path / "late", SEES).run("--sample", "1e-9")
    assert (late[0], late[1][-1]) == (0, "sample: 0 of 0 killed; expected 95%, but for chance")


def test_a_file_that_has_moved_is_told_by_its_name(tmp_path: Path) -> None:
    project = Project(tmp_path, SEES)
    moved = "write where it is now, in [near] and in [[survivors]]\n"
    project.lists("early")
    missing = f"tests/mutants.toml, early: there is no src/frugalvae/early.py; {moved}"
    assert project.run("--sample", "9") == project.run() == (1, [], missing)
    project.lists(near="test_early")
    missing = f"tests/mutants.toml, late: there is no tests/test_early.py; {moved}"
    assert project.run() == (1, [], missing)
    project.lists(survivors='[[survivors]]\nreason = ""\nmutants = ["early:f `1` -> `2`"]\n')
    missing = "tests/mutants.toml: no file of [near] has the survivor early:f `1` -> `2`\n"
    assert project.run() == (1, [], missing)
    project.lists()
    missing = "early is no file of tests/mutants.toml; these are: late\n"
    assert project.run("early") == (1, [], missing)


@pytest.mark.parametrize("count", [50, 100, 400])
def test_chance_is_no_failure(count: int) -> None:
    """Of samples of a code of which tests kill 95 %, less than one in a hundred fails."""
    chances = np.ones(1)  # of 0, 1, ... that survive
    for _ in range(count):
        chances = np.convolve(chances, [0.95, 0.05])
    failing = [alive for alive in range(count + 1) if mutants.too_many(alive, count)]
    assert chances[failing].sum() < 0.01 <= chances[min(failing, default=count) - 1 :].sum()


def test_a_small_sample_is_no_failure() -> None:
    assert not mutants.too_many(0, 0)
    assert not mutants.too_many(49, 49)
    assert mutants.too_many(50, 50)
