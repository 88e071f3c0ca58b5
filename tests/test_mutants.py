"""The tool that plants mutants: what it changes, what it calls a change, and what it reports."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tomllib
from pathlib import Path

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
    table = tomllib.loads(Path("tests/mutants.toml").read_text("utf-8"))
    for file, near in table["near"].items():
        assert (mutants.SRC / f"{file}.py").exists(), file
        assert all(Path(f"tests/{name}.py").exists() for name in near), file
    for row in table.get("survivors", []):
        assert len(row["reason"].split()) > 3, row
        for name in row["mutants"]:
            assert name.split(":")[0] in table["near"], name


def test_mutants_of_a_file_are_run_and_survivors_need_a_reason(tmp_path: Path) -> None:
    """A file whose tests see every change but one, of a constant that is read on import."""
    (tmp_path / "src/frugalvae").mkdir(parents=True)
    (tmp_path / "tests").mkdir()
    (tmp_path / "src/frugalvae/__init__.py").touch()
    (tmp_path / "src/frugalvae/late.py").write_text(CODE, "utf-8")
    (tmp_path / "tests/conftest.py").touch()
    (tmp_path / "tests/test_late.py").write_text(
        "import pytest\n"
        "from frugalvae.late import late\n"
        "def test_late():\n"
        "    assert late(61) and not late(60) and late(60, -1) and not late(59, 1)\n"
        "    with pytest.raises(ValueError): late(-1)\n"
        "    assert not late(0)\n",
        "utf-8",
    )
    table = tmp_path / "tests/mutants.toml"
    table.write_text('[near]\n"late" = ["test_late"]\n', "utf-8")

    def run() -> tuple[int, list[str]]:
        program = (
            "import sys; from pathlib import Path; from tests import mutants; "
            f"mutants.ROOT = Path({str(tmp_path)!r}); mutants.SLOW = ''; "
            "mutants.SRC = mutants.ROOT / 'src/frugalvae'; sys.exit(mutants.main([]))"
        )
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONPATH": str(mutants.ROOT)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert not done.stderr
        return done.returncode, done.stdout.splitlines()

    killed, alive = (
        "late: 11 of 12 killed, 91.7%",
        "late:late `age > STALE + slack` -> `age >= STALE + slack`",
    )
    assert run() == (1, [killed, f"  survives: {alive}"])
    results = (tmp_path / ".mutants/late.jsonl").read_bytes()
    assert run() == (1, [killed, f"  survives: {alive}"])
    assert (tmp_path / ".mutants/late.jsonl").read_bytes() == results, "known, and not run again"

    table.write_text(
        '[near]\n"late" = ["test_late"]\n[[survivors]]\nreason = "it makes no difference"\n'
        f'mutants = ["{alive}", "late:late `1` -> `2`"]\n',
        "utf-8",
    )
    assert run() == (1, [killed, "  is listed, and killed or gone: late:late `1` -> `2`"])
